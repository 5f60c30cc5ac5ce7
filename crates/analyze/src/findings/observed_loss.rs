//! Segments of any program that were sent again, by a monitor or a capture.

use super::finding::{Finding, LEAST};
use super::kind::{Find, Kind};
use super::log::Log;
use super::observed::{captured, is_observed, watched, worst};
use stackline_core::units;

pub(super) const KIND: Kind = Kind {
    name: "observed_loss",
    meaning: "of connections that were watched or captured: more than 0.1 % of segments, and five, or 1 % were sent again; its share is ten times theirs, at most 1",
    find: &[Find::Run(find)],
};

/// Less is usual; of so little it takes some, as probes of a closed window are sent again too.
const LITTLE: f64 = 0.001;
const SOME: f64 = 5.0;
/// This is much, of however few.
const MUCH: f64 = 0.01;
/// The data of a segment, where it is not known.
const SEGMENT: f64 = 1448.0;

fn find(log: &Log<'_>) -> Option<Finding> {
    if !is_observed(log) {
        return None;
    }
    let of_monitors = watched(log).into_iter().map(|one| {
        let segment = if one.segment_bytes > 0 { one.segment_bytes as f64 } else { SEGMENT };
        resent(one.local, one.remote, (one.retransmits as f64, one.acked_bytes as f64, segment), one.rows)
    });
    let of_captures = captured(log).into_iter().map(|(row, one)| {
        let (again, bytes) = (one.again.iter().sum::<u64>() as f64, one.bytes.iter().sum::<u64>() as f64);
        resent(&one.initiator, &one.responder, (again, bytes, SEGMENT), vec![row])
    });
    let found = worst(&KIND, log, of_monitors.chain(of_captures).flatten())?;
    Some(found.attempt("find where packets are lost: full queues, a bad link, or reordering that looks like loss"))
}

/// A connection of which more than a little was sent again.
fn resent(
    from: &str,
    to: &str,
    (again, bytes, segment): (f64, f64, f64),
    rows: Vec<u32>,
) -> Option<(f64, String, String, Vec<u32>)> {
    let rate = again / (bytes / segment + again).max(1.0);
    let of = units::size(bytes as u64);
    (rate >= MUCH || again >= SOME && rate >= LITTLE).then(|| {
        let sentence = format!("{again} segments between {from} and {to} were sent again, beside {of} that were new");
        let figures = format!("{from} > {to}: {again} segments again");
        ((10.0 * rate).clamp(LEAST, 1.0), sentence, figures, rows)
    })
}
