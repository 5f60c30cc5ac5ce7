//! The stack `quic` as experiments name it: its options, and the mapping of the communication operations to its services. The live and the
//! simulated world share it.

use stackline_core::catalogue::{
    ClosedForm, OptionKind, OptionTable, ServiceMapping, StackFacts, StackTable,
};
use stackline_core::plan::Stack;

/// Bytes of the IPv4 and UDP headers.
pub const HEADERS: u64 = 28;
/// Bytes of the smallest UDP payload that a path must carry for QUIC (RFC 9000, 14).
pub const LEAST_MTU: u64 = 1200;
/// Bytes of the largest UDP payload.
pub const LARGEST_MTU: u64 = 65_507;
/// quinn's default of the stream's receive window, bytes.
pub const RECEIVE_BUFFER: u64 = 1_250_000;
/// quinn's default of the send window, bytes.
pub const SEND_BUFFER: u64 = 10_000_000;
/// quinn's default of the idle timeout, s.
pub const TIMEOUT_S: f64 = 30.0;

/// The initial congestion window in bytes (RFC 9002, 7.2): with a window below two packets a connection could not send its first one.
#[must_use]
pub fn initial_window(stack: &Stack) -> u64 {
    let packet = stack.number("mtu").unwrap_or(LEAST_MTU);
    let least = 2 * packet;
    match stack.number("initial_window") {
        Some(bytes) => bytes.max(least),
        None => (10 * packet).min(least.max(14_720)),
    }
}

/// QUIC.
pub const TABLE: StackTable = StackTable {
    name: "quic",
    summary: "QUIC (RFC 9000; quinn, TLS 1.3 of rustls) over UDP",
    options: &[
        OptionTable::new(
            "congestion",
            OptionKind::Word(&["cubic", "reno", "bbr"]),
            "cubic",
            "congestion control: cubic (RFC 9438), reno (RFC 9002), or bbr, which quinn calls experimental",
        ),
        OptionTable::new(
            "initial_window",
            OptionKind::Number(2400, 1 << 30),
            "12000 B; more with a large `mtu`",
            "initial congestion window in bytes, at least two packets",
        ),
        OptionTable::new(
            "send_buffer",
            OptionKind::BUFFER,
            "10 MB",
            "unacknowledged bytes that the send buffer can hold",
        ),
        OptionTable::new(
            "receive_buffer",
            OptionKind::BUFFER,
            "1.25 MB",
            "the stream's flow-control window in bytes",
        ),
        OptionTable::new(
            "mtu",
            OptionKind::Number(LEAST_MTU, LARGEST_MTU),
            "1200 B, then up to 1452 B by discovery",
            "fixed UDP payload in bytes, without discovery",
        ),
        OptionTable::new(
            "timeout",
            OptionKind::Time,
            "30 s",
            "give up a connection, even an idle one, that receives nothing for this long; 0 s: never",
        ),
        OptionTable::flag(
            "resume",
            "later connections of a pair resume the session of an earlier one (TLS 1.3: of one that has carried data)",
        ),
        OptionTable::new(
            "port",
            OptionKind::PORT,
            "any free port",
            "first port of the responders; replicas use consecutive ports",
        ),
        OptionTable::STREAMS,
    ],
    mapping: ServiceMapping(
        "\
ConnectRequest -> handshake until it completes here, then a stream with 16 bytes of introduction (in procedures without \
data: on the first connection only); with `streams` the first pair's handshake, then a stream with 18 bytes by each
AwaitConnectIndication -> the same, from the other side: the stream is accepted
DataRequest -> the whole unit into the stream's send buffer
AwaitDataIndication -> from the stream until the unit is complete; data read ahead serves the next unit
RPCCall -> the request into the stream, the response from it
RPCAwaitCallInd, RPCReturn -> the same, from the other side
StartBulkGet, StartBulkPut -> 1 byte
StopBulkGet -> none: the last unit has arrived
AwaitStopBulkGet -> none: nothing is held back
StopBulkPut -> 1 byte that confirms arrival
AwaitStopBulkPut -> that byte
end of stream (time limit) -> FIN of the stream
DisconnectRequest -> FIN of the stream; CONNECTION_CLOSE when it is acknowledged (at once when there are unread bytes), \
with `streams` by the last pair
AwaitDisconnectIndication -> FIN or CONNECTION_CLOSE from the peer, then a FIN in reply",
    ),
    least_mtu: |stack| stack.number("mtu").unwrap_or(LEAST_MTU) + HEADERS,
    // `retransmits` counts packets that were declared lost; QUIC resends their frames in other packets.
    unreported: (
        &["rtt_var_s", "bytes_acked"],
        "quinn-proto does not report it",
    ),
    ecn: true,
    shares_connections: true,
    facts: StackFacts {
        form: ClosedForm::Quic,
        ..StackTable::RELIABLE.facts
    },
    ..StackTable::RELIABLE
};

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use stackline_core::catalogue::OptionValue;

    #[test]
    fn the_initial_window_has_room_for_two_packets() {
        let window = |options: &[(&str, u64)]| {
            let written = options
                .iter()
                .map(|(name, value)| ((*name).into(), OptionValue::Number(*value)));
            initial_window(&TABLE.stack(written.collect::<BTreeMap<_, _>>()))
        };
        assert_eq!(window(&[]), 12_000);
        assert_eq!(window(&[("mtu", 1452)]), 14_520);
        assert_eq!(window(&[("mtu", 9000)]), 18_000);
        assert_eq!(window(&[("initial_window", 2400)]), 2400);
        assert_eq!(window(&[("initial_window", 2400), ("mtu", 9000)]), 18_000);
    }
}
