//! What is to be found first of exchanges that tests play in captures and live: the same from every door.

/// An exchange, and the kinds of findings of which one comes first.
const VERDICTS: &[(&str, &[&str])] = &[
    ("slow server", &["server_takes"]),
    (
        "slow client reader",
        &["request_window", "client_reads_late"],
    ),
    ("distance", &["chatty_requests"]),
    ("loss early", &["request_loss"]),
    ("loss late", &["request_loss"]),
    ("small window", &["request_window"]),
    ("Nagle", &["request_held"]),
    ("refused", &["unanswered_requests"]),
    ("reset", &["server_ends_connection"]),
    ("cut off", &["unanswered_requests"]),
    ("5xx", &["failed_requests"]),
    ("large upload", &["request_rate"]),
    ("first window", &["healthy"]),
    ("small send buffer", &["request_sender_window"]),
    ("idle close", &["server_ends_connection"]),
    ("loss of a request's end", &["request_loss"]),
    ("pause within an answer", &["server_takes"]),
    ("connection for each", &["connection_per_request"]),
    ("far and once", &["healthy"]),
    ("pause within an upload", &["client_pauses"]),
    ("late 100 Continue", &["server_takes"]),
    ("no 100 Continue", &["client_pauses"]),
    ("one of many", &["server_takes"]),
    ("half-closed", &["server_takes"]),
];

/// The kinds of which one is to be found first of an exchange.
///
/// # Panics
/// When there is no exchange of that name.
#[must_use]
pub fn expected_kinds(exchange: &str) -> &'static [&'static str] {
    let known = VERDICTS.iter().find(|(name, _)| *name == exchange);
    known
        .unwrap_or_else(|| panic!("no exchange is called {exchange}"))
        .1
}
