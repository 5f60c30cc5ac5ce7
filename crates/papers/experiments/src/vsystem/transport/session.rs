//! Runs a specification across the machines of the profile and returns the results.

use super::TEXT;
use crate::{parallel, profile};
use stackline_core::error::{Error, Result};
use stackline_core::network::Network;

/// The transport of 1985: no selective acknowledgements, no slow start, a single acknowledgement waits long for company. Each packet
/// carries so many bytes.
pub(super) fn tcp(packet: u32, options: &str) -> String {
    format!(
        "tcp(mss = {}, congestion = reno, recovery = reno, first_window = 64, quickack = off{}, {options})",
        // Of which twelve are timestamps.
        packet + 12,
        if options.contains("delayed_ack") {
            ""
        } else {
            ", delayed_ack = 200 ms"
        },
    )
}

/// What a run came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct VSystemSessionFigures {
    pub(super) kbit_s: f64,
    pub(super) seconds: f64,
    /// Mean of its calls, ms.
    pub(super) call_ms: f64,
    /// Packets of its first link, there and back.
    pub(super) packets: [f64; 2],
    /// Packets with data sent again, by the side that asks.
    pub(super) again: f64,
    /// Packets that the responder had no buffer for; that an interface had none for.
    pub(super) unkept: f64,
    pub(super) dropped: f64,
}

/// Carries one out.
pub(super) fn run(specification: &str) -> Result<VSystemSessionFigures> {
    run_across(specification, |_| {})
}

/// Carries one out across its network as that is changed.
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

/// Several, over all processors, in their order.
pub(super) fn run_all<const N: usize>(
    specifications: [String; N],
) -> Result<[VSystemSessionFigures; N]> {
    let found: Result<Vec<VSystemSessionFigures>> = parallel::each(&specifications, |one| run(one))
        .into_iter()
        .collect();
    let lost = |_| Error::measurement("a simulation ended without a result");
    found?.try_into().map_err(lost)
}

/// Two million bytes from one workstation to the other, in blocks.
pub(super) fn transfer(block: u32, over: &str, across: &str) -> String {
    format!(
        "1 from a to b bulk_put {block}*{} over {over} across {across};",
        2_000_000 / block
    )
}
