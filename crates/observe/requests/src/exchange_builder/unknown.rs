//! What could not be said of requests, and why.

use stackline_dissect::left_out::LeftOut;

/// Why something is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// Connections that were there before anybody looked.
    pub midway: u64,
    /// Connections of which only one side's data were seen.
    pub one_way: u64,
    /// Requests that were not answered yet when the trace ended, on connections that neither side had ended.
    pub under_way: u64,
    /// What was left out at bounds.
    pub left_out: LeftOut,
    /// Bytes that no capture saw.
    pub lost_bytes: u64,
    /// Connections of QUIC that carried what cannot be read, as their secrets are not known.
    pub sealed_quic: u64,
    /// Packets of QUIC that could not be opened although the secrets of their connections are known.
    pub unopened_quic: u64,
    /// Bytes of sockets that were there before anybody looked.
    pub early_sockets: u64,
}

/// How a line begins of several, and of one.
const ONE: [(&str, &str); 6] = [
    ("requests were under", "request was under"),
    (
        "connections already existed: their",
        "connection already existed: its",
    ),
    ("connection bytes were", "connection byte was"),
    (
        "connections were captured in only one direction: their requests",
        "connection was captured in only one direction: its requests",
    ),
    (
        "QUIC connections are encrypted and their secrets are unknown, so their",
        "QUIC connection is encrypted and its secrets are unknown, so its",
    ),
    (
        "QUIC packets could not be decrypted with their connections' secrets, because they were",
        "QUIC packet could not be decrypted with its connection's secrets, because it was",
    ),
];

impl Unknown {
    /// What that means for requests, a line each.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let counts = [
            (
                self.under_way,
                "requests were under way when the trace ended",
            ),
            (
                self.midway,
                "connections already existed: their first requests are unknown",
            ),
            (
                self.lost_bytes,
                "connection bytes were not captured; requests with missing headers are unknown",
            ),
            (
                self.one_way,
                "connections were captured in only one direction: their requests are not reported",
            ),
            (
                self.sealed_quic,
                "QUIC connections are encrypted and their secrets are unknown, so their contents were not read",
            ),
            (
                self.unopened_quic,
                "QUIC packets could not be decrypted with their connections' secrets, because they were truncated or damaged; the affected requests are incomplete",
            ),
        ];
        let some = counts.iter().filter(|(count, _)| *count > 0);
        some.map(|(count, what)| {
            match (
                count,
                ONE.iter()
                    .find_map(|(many, one)| Some((one, what.strip_prefix(many)?))),
            ) {
                (1, Some((one, rest))) => format!("1 {one}{rest}"),
                _ => format!("{count} {what}"),
            }
        })
        .collect()
    }
}
