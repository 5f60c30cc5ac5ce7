//! Senders that keep few bytes of a long message in flight and wait for acknowledgements, although the path could carry more.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::Finding;
use crate::findings::kind::FindingKind;
use crate::findings::observed::connections::format_ns;
use crate::findings::requests::costs::{LARGE, RequestCause};
use crate::findings::requests::long_transfers::LongTransfers;
use crate::findings::requests::network::Slowest;
use crate::findings::requests::worst::{LEAST_NETWORK_NS, find_worst_place, report_request_cause};
use stackline_core::units;

/// The finding about such a sender.
pub(crate) fn sender_window(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let worst = find_worst_place(log, RequestCause::SenderWindow, LEAST_NETWORK_NS)?;
    let transfers = LongTransfers::find_in(&worst);
    let slowest = Slowest::from_log(log, &worst.messages(log).of_length(LARGE));
    let link = slowest
        .as_ref()
        .map_or_else(String::new, |slowest| format!("; {}", slowest.words()));
    let sentence = format!(
        "{} sends long messages with only about {} in flight and waits for acknowledgements, a round trip of {} each time, although the receiver has room and nothing is lost: {}{link}; the sender is limited by its send buffer or its congestion window, or has no more data to send",
        worst.place,
        units::format_size(transfers.bytes_under_way()),
        format_ns(transfers.trip_ns()),
        worst.time_in_words()
    );
    let confidence = if slowest.is_some() { 0.9 } else { 0.85 };
    let mut found = report_request_cause(kind, log, &worst, confidence, sentence);
    found
        .evidence
        .extend(slowest.map(|slowest| slowest.evidence(log)));
    Some(
        found
            .attempt("give its socket a larger send buffer (SO_SNDBUF, net.ipv4.tcp_wmem), or let the system choose its size")
            .attempt("check `ss -ti` on the sender while it sends: cwnd, and whether it is app_limited"),
    )
}
