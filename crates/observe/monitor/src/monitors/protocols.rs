//! The monitor of the TCP and UDP counters of the sampling thread's network namespace, from `/proc/net/snmp` and
//! `/proc/net/netstat`.

use super::sample::{MonitorSetup, SampleInterval, Started, create_sampled, file_reader, growths};
use crate::parse::block;
use stackline_events::EventLog;
use stackline_events::catalogue::rows::{NetstatTcp, NetstatUdp};

/// Starts the monitor.
pub(super) fn start(_: &MonitorSetup<'_>) -> Started {
    create_sampled(
        file_reader(
            [
                "/proc/thread-self/net/snmp",
                "/proc/thread-self/net/netstat",
            ],
            parse,
        )?,
        record,
    )
}

/// Groups and names of the TCP counters, in the order of the event's fields.
const TCP: [(&str, &str); 10] = [
    ("Tcp", "InSegs"),
    ("Tcp", "OutSegs"),
    ("Tcp", "RetransSegs"),
    ("Tcp", "EstabResets"),
    ("TcpExt", "TCPTimeouts"),
    ("TcpExt", "ListenDrops"),
    ("TcpExt", "TCPRcvQDrop"),
    ("TcpExt", "DelayedACKs"),
    ("TcpExt", "TCPLossProbes"),
    ("TcpExt", "TCPOFOQueue"),
];

/// Groups and names of the UDP counters, in the order of the event's fields.
const UDP: [(&str, &str); 5] = [
    ("Udp", "InDatagrams"),
    ("Udp", "OutDatagrams"),
    ("Udp", "RcvbufErrors"),
    ("Udp", "SndbufErrors"),
    ("Udp", "InCsumErrors"),
];

/// The counters of TCP and of UDP; `None` for those that this kernel lacks.
type Protocols = ([Option<u64>; TCP.len()], [Option<u64>; UDP.len()]);

fn parse([snmp, netstat]: [&str; 2]) -> Option<Protocols> {
    let mut counters = block::parse(snmp);
    counters.extend(block::parse(netstat));
    let count = |name: (&str, &str)| {
        counters
            .get(&name)
            .and_then(|count| u64::try_from(*count).ok())
    };
    let protocols = (TCP.map(count), UDP.map(count));
    protocols.0[0].map(|_| protocols)
}

fn record(interval: SampleInterval, before: &Protocols, now: &mut Protocols, log: &mut EventLog) {
    let [
        segments_in,
        segments_out,
        retransmits,
        resets,
        timeouts,
        listen_drops,
        receive_queue_drops,
        delayed_acks,
        loss_probes,
        out_of_order,
    ] = growths(&before.0, &now.0);
    NetstatTcp {
        interval_ns: interval.length_ns.into(),
        segments_in,
        segments_out,
        retransmits,
        resets,
        timeouts,
        listen_drops,
        receive_queue_drops,
        delayed_acks,
        loss_probes,
        out_of_order,
    }
    .write(log, interval.end_ns);
    let [
        r#in,
        out,
        receive_buffer_errors,
        send_buffer_errors,
        checksum_errors,
    ] = growths(&before.1, &now.1);
    NetstatUdp {
        interval_ns: interval.length_ns.into(),
        r#in,
        out,
        receive_buffer_errors,
        send_buffer_errors,
        checksum_errors,
    }
    .write(log, interval.end_ns);
}

#[cfg(test)]
mod tests {
    use super::super::sample::testing::recorded;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_counter_this_kernel_lacks_is_left_out() {
        let snmp = |segments, retransmits| {
            format!(
                "Tcp: RtoAlgorithm MaxConn InSegs OutSegs RetransSegs EstabResets\nTcp: 1 -1 {segments} 9 {retransmits} 0\n\
                 Udp: InDatagrams OutDatagrams RcvbufErrors SndbufErrors\nUdp: 5 6 0 0\n"
            )
        };
        let netstat = |timeouts| format!("TcpExt: DelayedACKs TCPTimeouts\nTcpExt: 4 {timeouts}\n");
        let rows = recorded(
            parse,
            record,
            [&snmp(100, 3), &netstat(1)],
            [&snmp(150, 5), &netstat(2)],
        );
        assert_eq!(
            rows,
            [
                "NETSTAT_TCP 1000000000;50;0;2;0;1;;;0;;",
                "NETSTAT_UDP 1000000000;0;0;0;0;"
            ]
        );
        assert!(parse(["", ""]).is_none());
    }

    proptest! {
        #[test]
        fn any_text_is_harmless(snmp in "((Tcp|Udp): ?[0-9A-Za-z -]{0,40}\n|[0-9a-f ]{0,60}\n){0,6}", netstat in "\\PC{0,80}") {
            let _ = parse([&snmp, &netstat]);
        }
    }
}
