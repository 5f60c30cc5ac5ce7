//! Runs a specification across the machines of the profile and returns the results.

use super::TEXT;
use crate::{parallel, profile};
use stackline_core::error::{Error, Result};
use stackline_core::network::Network;

/// The TCP of 1985, with `packet` data bytes in each packet: no selective acknowledgements, a first window of 64 packets instead of slow
/// start, and acknowledgements delayed by 200 ms unless the options say otherwise.
pub(super) fn tcp(packet: u32, options: &str) -> String {
    format!(
        "tcp(mss = {}, congestion = reno, recovery = reno, first_window = 64, quickack = off{}, {options})",
        // Twelve bytes of a segment are the timestamp option.
        packet + 12,
        if options.contains("delayed_ack") {
            ""
        } else {
            ", delayed_ack = 200 ms"
        },
    )
}

/// The results of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct VSystemSessionFigures {
    pub(super) kbit_s: f64,
    pub(super) seconds: f64,
    /// The mean time of its calls, ms.
    pub(super) call_ms: f64,
    /// Packets on the first link, in each direction.
    pub(super) packets: [f64; 2],
    /// Packets that the initiator retransmitted.
    pub(super) again: f64,
    /// Packets that the responder's TCP dropped because it had no free buffer.
    pub(super) unkept: f64,
    /// Packets that ports dropped, for example because an interface had no free buffer.
    pub(super) dropped: f64,
}

/// Runs a specification.
pub(super) fn run(specification: &str) -> Result<VSystemSessionFigures> {
    run_across(specification, |_| {})
}

/// Runs a specification with its network changed by `change`.
pub(super) fn run_across(
    specification: &str,
    change: impl Fn(&mut Network),
) -> Result<VSystemSessionFigures> {
    let outcome = profile::carry_out(&format!("{TEXT}\n{specification}"), change)?;
    let first = outcome.records.first();
    let record = first.ok_or_else(|| Error::measurement("a run produced no record"))?;
    let seconds = record.elapsed_ns as f64 / 1e9;
    let bytes = record.data_bytes() as f64;
    let noted = |note: &String| {
        note.rsplit_once("the receiver had no free buffer: ")?
            .1
            .parse::<f64>()
            .ok()
    };
    let packets = |port: usize| {
        outcome
            .ports
            .get(port)
            .map_or(0.0, |port| port.packets as f64)
    };
    Ok(VSystemSessionFigures {
        kbit_s: bytes * 8.0 / seconds / 1e3,
        seconds,
        call_ms: record.calls.sum as f64 / (record.calls.n() as f64).max(1.0) / 1e6,
        packets: [packets(0), packets(1)],
        again: record
            .initiator
            .transport
            .as_ref()
            .map_or(0.0, |(_, transport)| transport.retransmits as f64),
        unkept: record
            .responder
            .notes
            .iter()
            .filter_map(noted)
            .fold(0.0, |all, one| all + one),
        dropped: outcome.ports.iter().map(|port| port.dropped() as f64).sum(),
    })
}

/// Runs several specifications on all processors; the results are in the same order.
pub(super) fn run_all<const N: usize>(
    specifications: [String; N],
) -> Result<[VSystemSessionFigures; N]> {
    let found: Result<Vec<VSystemSessionFigures>> = parallel::each(&specifications, |one| run(one))
        .into_iter()
        .collect();
    let lost = |_| Error::measurement("a simulation ended without a result");
    found?.try_into().map_err(lost)
}

/// The specification of a transfer of two million bytes from one workstation to the other, in blocks.
pub(super) fn transfer(block: u32, over: &str, across: &str) -> String {
    format!(
        "1 from a to b bulk_put {block}*{} over {over} across {across};",
        2_000_000 / block
    )
}
