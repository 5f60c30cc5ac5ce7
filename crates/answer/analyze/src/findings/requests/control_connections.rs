//! Connections that control a transfer, such as that of iperf3: a request of an unknown protocol (recognised by the turns of its
//! connection) that lasts as long as a transfer between the same two programs and is answered when that is over. Nobody waits for it, so
//! it is not slow.

use crate::findings::rows::EventRows;
use stackline_events::unit_ids;
use std::collections::BTreeMap;

/// The least number of bytes of a transfer.
const TRANSFER_BYTES: i64 = 1 << 18;
/// The least fraction of the longer of request and transfer in which both are in progress.
const ALIKE: f64 = 0.8;

/// A request or a one-way message of an unknown protocol.
pub(super) struct AlternatingMessage<'r> {
    /// Its connection.
    pub(super) flow: u32,
    /// Whether it is a request to be answered.
    pub(super) is_call: bool,
    /// The host and the program that ask. The server's program is not compared, as it may be unknown if it only reads.
    pub(super) client: (&'r str, &'r str),
    /// The host that is asked.
    pub(super) server: &'r str,
    /// When it began, reference time.
    pub(super) from_ns: u64,
    /// When it ended, reference time.
    pub(super) to_ns: u64,
}

impl<'r> AlternatingMessage<'r> {
    fn ends(&self) -> (&'r str, &'r str, &'r str) {
        (self.client.0, self.client.1, self.server)
    }
}

/// A connection without requests that moved many bytes.
#[derive(Clone, Copy)]
struct ControlledTransfer {
    flow: u32,
    from_ns: u64,
    to_ns: u64,
}

/// The indices of the requests among `turns` that control transfers; `turns` has each with its index.
pub(super) fn find_control_requests<'r>(
    turns: &[(usize, AlternatingMessage<'r>)],
    log: &EventRows<'_>,
) -> Vec<usize> {
    let transfers = transfers(log);
    let mut flows: BTreeMap<u32, (&str, &str, &str)> = BTreeMap::new();
    for (_, turn) in turns.iter().filter(|(_, turn)| !turn.is_call) {
        flows.entry(turn.flow).or_insert_with(|| turn.ends());
    }
    let controls = |turn: &AlternatingMessage<'_>| {
        transfers.iter().any(|transfer| {
            transfer.flow != turn.flow
                && flows.get(&transfer.flow) == Some(&turn.ends())
                && lasts_as_long(turn, transfer)
        })
    };
    let calls = turns.iter().filter(|(_, turn)| turn.is_call);
    calls
        .filter(|(_, turn)| controls(turn))
        .map(|(at, _)| *at)
        .collect()
}

fn transfers(log: &EventRows<'_>) -> Vec<ControlledTransfer> {
    let transfer = |row: &u32| {
        let bytes = ["bytes_there", "bytes_back"].map(|field| log.number(*row, field).unwrap_or(0));
        let duration_ns = log.number(*row, "duration_ns")?.max(0).unsigned_abs();
        let from_ns = log.at(*row);
        let transfer = ControlledTransfer {
            flow: unit_ids::stream_parts(log.number(*row, "stream")?).0,
            from_ns,
            to_ns: from_ns.saturating_add(duration_ns),
        };
        let is_much = bytes.iter().any(|bytes| *bytes >= TRANSFER_BYTES);
        is_much.then_some(transfer)
    };
    let rows = log.rows("TCP_CONNECTION").iter();
    rows.filter_map(transfer).collect()
}

/// Whether a request and a transfer are in progress at nearly the same time.
fn lasts_as_long(turn: &AlternatingMessage<'_>, transfer: &ControlledTransfer) -> bool {
    let (from_ns, to_ns) = (
        turn.from_ns.max(transfer.from_ns),
        turn.to_ns.min(transfer.to_ns),
    );
    let longest = turn
        .to_ns
        .saturating_sub(turn.from_ns)
        .max(transfer.to_ns - transfer.from_ns);
    longest > 0 && to_ns.saturating_sub(from_ns) as f64 >= ALIKE * longest as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_as_long_as_a_transfer_controls_it() {
        let lasts = |from_ns, to_ns| {
            let turn = AlternatingMessage {
                flow: 0,
                is_call: true,
                client: ("src", "iperf3"),
                server: "sink",
                from_ns,
                to_ns,
            };
            let transfer = ControlledTransfer {
                flow: 1,
                from_ns: 100,
                to_ns: 1_100,
            };
            lasts_as_long(&turn, &transfer)
        };
        assert!(lasts(50, 1_060));
        assert!(!lasts(500, 520), "a quick request meanwhile");
        assert!(!lasts(0, 20_000), "one that goes on for long after it");
        assert!(!lasts(2_000, 3_000), "later");
    }
}
