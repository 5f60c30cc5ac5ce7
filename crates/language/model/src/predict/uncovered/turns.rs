//! Properties of turns that no formula covers: pairs that wait for each other, losses, pauses, connections, means of
//! few random values. A turn is one call, one exchange of a unit in each direction, or one connection; a pair is an
//! initiator with its responder.

use super::shared_words::{FIRST_TIMEOUT_S, LEAST_TIMEOUT_S, LITTLE, SELDOM, busy, name};
use super::{paths, stacks};
use crate::path::PathModel;
use crate::pipe;
use crate::predict::situation::Situation;
use crate::response::copy_s;
use alloc::format;
use alloc::string::String;
use stackline_core::catalogue::ClosedForm;
use stackline_core::units;

/// Calls with intended start times (`paced`) that wait behind one which lost a packet. `loss` is the probability that
/// a call meets a loss, `made` the number of calls of a pair.
pub(crate) fn behind_lost(
    s: &Situation<'_>,
    paced: bool,
    loss: f64,
    made: f64,
) -> Result<(), String> {
    let seldom = s.transport.stream && loss * made * f64::from(s.part.replicas) <= SELDOM;
    if !paced || loss <= 0.0 || seldom {
        return Ok(());
    }
    Err(
        "calls wait behind one that lost a packet, and no closed-form formula gives the delay"
            .into(),
    )
}

/// A mean over too few calls that arrive at random. `waits` is the mean wait as a share of the mean service time,
/// `chance` the relative error of a run's mean wait.
pub(crate) fn few_calls(waits: f64, chance: f64) -> Result<(), String> {
    if waits * chance <= 0.5 {
        return Ok(());
    }
    Err("too few calls with random arrivals: their mean time depends on chance".into())
}

/// A mean over too few random values. `variation` is their coefficient of variation, `off` the relative error of their
/// mean, `draws` their number.
pub(crate) fn few_draws(variation: f64, off: f64, draws: f64) -> Result<(), String> {
    // With rare long values, the mean of a few is far from normally distributed.
    const MANY_DRAWS: f64 = 60.0;
    let is_skewed = draws < MANY_DRAWS * variation * variation;
    if off <= LITTLE || (off <= 0.25 && !is_skewed) {
        return Ok(());
    }
    Err("too few random times are drawn: their mean depends on chance".into())
}

/// Calls over datagrams whose answers may arrive after the caller has stopped waiting; they count as lost. `longest_s`
/// is the longest service time.
pub(crate) fn lost_by_time(
    s: &Situation<'_>,
    network_s: f64,
    longest_s: f64,
) -> Result<(), String> {
    // How long a caller waits where no `timeout` is written.
    const WAITS_S: f64 = 1.0;
    let waits_s = s.part.stack.seconds("timeout").unwrap_or(WAITS_S);
    if s.transport.stream || network_s + longest_s < waits_s {
        return Ok(());
    }
    Err(
        "answers may arrive after the callers have stopped waiting, and such calls count as lost"
            .into(),
    )
}

/// Pairs that compete at random for the busiest link or processor. `busy` is the share of the time in which it is
/// busy; `is_random` is true for random service times, for hosts that copy, and for all turns other than calls.
pub(crate) fn pairs_that_meet(s: &Situation<'_>, busy: f64, is_random: bool) -> Result<(), String> {
    if s.part.replicas > 1 && busy > LITTLE && is_random {
        return Err(
            "pairs compete at random for shared resources, and no closed-form formula gives their waiting time"
                .into(),
        );
    }
    Ok(())
}

/// Exchanged units longer than the first window, which each turn opens further. `longest` is in bytes.
pub(crate) fn opening_of_turns(s: &Situation<'_>, longest: u64) -> Result<(), String> {
    let first = s
        .transport
        .initial_segments
        .saturating_mul(s.transport.segment_bytes);
    if !s.transport.stream || longest <= first {
        return Ok(());
    }
    Err(
        "units are longer than the initial window, and no closed-form formula describes how far each turn opens it"
            .into(),
    )
}

/// Messages of several packets that hosts copy together with their acknowledgements, that wait for those of other
/// pairs, or whose window closes again during a long service time. The array gives seconds of a turn spent on copying,
/// seconds of waiting for other pairs, and the longest service time.
pub(crate) fn long_messages(
    s: &Situation<'_>,
    longest: u64,
    turn_s: f64,
    [copying_s, shared_s, longest_service_s]: [f64; 3],
) -> Result<(), String> {
    const MUCH: f64 = 0.1;
    let segment = s.transport.segment_bytes;
    if !s.transport.stream || longest <= segment {
        return Ok(());
    }
    if copying_s > MUCH * turn_s {
        return Err("hosts copy messages of several packets and their acknowledgements, and no closed-form formula gives their order".into());
    }
    if shared_s > MUCH * turn_s {
        return Err(
            "messages of several packets wait for those of other pairs, and timers may expire during the wait"
                .into(),
        );
    }
    let first = s.transport.initial_segments.saturating_mul(segment);
    if longest > first && longest_service_s > LEAST_TIMEOUT_S {
        return Err(
            "the window closes again during a service time this long, and no closed-form formula says how often"
                .into(),
        );
    }
    Ok(())
}

/// Calls that spend a good part of their time waiting for windows to open: how far these open depends on when earlier
/// calls were acknowledged.
pub(crate) fn opening_of_calls(window_s: f64, total_s: f64) -> Result<(), String> {
    const MUCH: f64 = 0.15;
    if window_s <= MUCH * total_s {
        return Ok(());
    }
    Err(
        "windows are still opening for much of the time, and no closed-form formula describes how far each call opens them"
            .into(),
    )
}

/// Calls of streams that wait longer for other pairs than a retransmission timeout allows; and calls over datagrams of
/// several pairs with losses. `shared_s` is the wait for other pairs, `alone_s` the rest of a call.
pub(crate) fn other_pairs(
    s: &Situation<'_>,
    [shared_s, alone_s]: [f64; 2],
    loss: f64,
) -> Result<(), String> {
    if s.transport.stream && shared_s > LEAST_TIMEOUT_S / 2.0 && shared_s > 0.5 * alone_s {
        return Err(
            "calls of several pairs wait for each other longer than the retransmission timeout"
                .into(),
        );
    }
    if !s.transport.stream && shared_s > 0.0 && loss > 0.0 {
        return Err("a pair that waits for a lost datagram does not delay the others, and no closed-form formula says how often this happens".into());
    }
    Ok(())
}

/// Messages longer than the first window, with pauses between calls in which the window closes again (RFC 5681 section
/// 4.1).
pub(crate) fn idle_window(s: &Situation<'_>, longest: u64) -> Result<(), String> {
    let first = s
        .transport
        .initial_segments
        .saturating_mul(s.transport.segment_bytes);
    if s.transport.stream && longest > first {
        return Err(
            "with messages this long, a pause between calls closes the window again, and no closed-form formula says how often"
                .into(),
        );
    }
    Ok(())
}

/// Several pairs whose calls have intended start times and may coincide. `busy` is the time for which the calls of all
/// pairs keep the busiest link or processor busy, as a share of a call or of the interval between calls, whichever is
/// shorter.
pub(crate) fn pairs_at_random(s: &Situation<'_>, busy: f64) -> Result<(), String> {
    if s.part.replicas > 1 && busy > LITTLE {
        return Err(
            "calls of several pairs arrive independently: no closed-form formula gives their waiting time"
                .into(),
        );
    }
    Ok(())
}

/// The share of their time for which connections without data may keep a link busy; above it they wait for the packets
/// that close earlier ones.
pub(crate) const CONNECTIONS_ALONE: f64 = 0.3;
/// The same share for calls with a connection each, which wait sooner.
pub(crate) const CONNECTIONS_OF_CALLS: f64 = LITTLE;

/// Connections whose links or hosts are busy with packets of earlier connections, or of other pairs, for more than the
/// share `most` of the time `time_s` of a connection.
pub(crate) fn connections(s: &Situation<'_>, time_s: f64, most: f64) -> Result<(), String> {
    // Packets in each direction: SYN, ACK, the introduction, FIN.
    const PACKETS: f64 = 4.0;
    const CONTROL_BYTES: u64 = 64;
    let is_quic = s.part.stack.facts.form == ClosedForm::Quic;
    // The packets of a QUIC handshake are full.
    let bytes = if is_quic {
        s.transport.segment_bytes
    } else {
        CONTROL_BYTES
    };
    let each = |path: &PathModel| {
        let copies = copy_s(&path.sender, bytes).max(copy_s(&path.receiver, bytes));
        let link = path
            .bottleneck(bytes)
            .and_then(|hop| hop.serialisation_s(bytes))
            .unwrap_or(0.0);
        (link, copies)
    };
    let (there, back) = (each(&s.there), each(&s.back));
    let pairs = f64::from(s.part.replicas);
    let busy_s = PACKETS * there.0.max(back.0) * pairs;
    // Over datagrams, the messages that begin and end a connection are repeated until they are answered.
    let most = if s.transport.stream { most } else { LITTLE };
    if is_quic && busy_s > LITTLE * time_s {
        return Err("a QUIC handshake takes up part of the time, and no closed-form formula gives its number of packets".into());
    }
    if PACKETS * there.1.max(back.1) * pairs > LITTLE * time_s {
        return Err(
            "hosts copy the packets that close earlier connections, and no closed-form formula says when".into(),
        );
    }
    if busy_s > most * time_s {
        return Err(
            "no closed-form formula says how long connections wait for earlier ones to close"
                .into(),
        );
    }
    Ok(())
}

/// The reason why no formula covers turns of any kind, if none does. `turn_s` is the duration of a turn, `loss` the
/// probability that it meets a loss, `made` the number of turns of a pair; `opens` says that each turn opens a
/// connection.
pub(crate) fn turns(
    s: &Situation<'_>,
    turn_s: f64,
    loss: f64,
    opens: bool,
    made: f64,
) -> Result<(), String> {
    paths::unsteady(s)?;
    paths::beside_turns(s)?;
    stacks::options(s)?;
    if let Some(host) = s.busy_with_others() {
        return Err(busy(host));
    }
    for path in [&s.there, &s.back] {
        // The bottleneck is named first, as its queue grows: packets arrive there faster than they leave.
        let narrowest = path
            .bottleneck(s.transport.segment_bytes + s.transport.header_bytes)
            .into_iter();
        if let Some(hop) = narrowest.chain(&path.hops).find(|hop| s.load.carries(hop)) {
            let most = hop
                .queue_bytes
                .zip(hop.rate_bit_s)
                .and_then(|(queue, rate)| pipe::queueing_delay_s(queue, rate));
            let most = most.map_or_else(String::new, |s| {
                format!(" (up to {})", units::format_time(s))
            });
            return Err(format!(
                "other traffic waits in the queue at {}{most}: no closed-form formula gives the queue length",
                name(hop)
            ));
        }
    }
    let timeout_s = if opens {
        FIRST_TIMEOUT_S
    } else {
        LEAST_TIMEOUT_S
    }
    .max(2.0 * turn_s);
    let made = made * f64::from(s.part.replicas);
    let is_seldom = loss * made <= SELDOM || timeout_s <= LITTLE * turn_s * made;
    if s.transport.stream && (loss * timeout_s > LITTLE * turn_s || !is_seldom) {
        return Err(format!(
            "{} of the turns suffer a loss and wait for a timeout: the mean is too uncertain to state",
            percent(loss)
        ));
    }
    Ok(())
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}
