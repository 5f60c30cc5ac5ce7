//! Counts of what could not be found out about requests, and why.

use stackline_dissect::left_out::LeftOut;

/// Counts of the reasons why something is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// Connections that existed before the observation.
    pub midway: u64,
    /// Connections of which only one side's data were seen.
    pub one_way: u64,
    /// Requests that were not answered yet when the trace ended, on connections that neither side had ended.
    pub under_way: u64,
    /// What was left out because bounds on memory were reached.
    pub left_out: LeftOut,
    /// Bytes that no capture saw.
    pub lost_bytes: u64,
    /// Connections of QUIC that carried what cannot be read, as their secrets are not known.
    pub sealed_quic: u64,
    /// Packets of QUIC that could not be opened although the secrets of their connections are known.
    pub unopened_quic: u64,
    /// Bytes that were written or read at sockets of unknown connections, as they existed before the observation.
    pub early_sockets: u64,
}

impl Unknown {
    /// What these counts mean for requests, one line each.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let counts = [
            (
                self.under_way,
                "request was under way when the trace ended",
                "requests were under way when the trace ended",
            ),
            (
                self.midway,
                "connection existed before the trace: its first requests are unknown",
                "connections existed before the trace: their first requests are unknown",
            ),
            (
                self.lost_bytes,
                "connection byte was not captured; requests with missing headers are unknown",
                "connection bytes were not captured; requests with missing headers are unknown",
            ),
            (
                self.one_way,
                "connection was captured in only one direction: its requests are not reported",
                "connections were captured in only one direction: their requests are not reported",
            ),
            (
                self.sealed_quic,
                "QUIC connection is encrypted and its secrets are unknown, so its contents were not read",
                "QUIC connections are encrypted and their secrets are unknown, so their contents were not read",
            ),
            (
                self.unopened_quic,
                "QUIC packet could not be decrypted with its connection's secrets, because it was truncated or damaged; the affected requests are incomplete",
                "QUIC packets could not be decrypted with their connections' secrets, because they were truncated or damaged; the affected requests are incomplete",
            ),
        ];
        let some = counts.iter().filter(|(count, ..)| *count > 0);
        some.map(|(count, one, many)| format!("{count} {}", if *count == 1 { one } else { many }))
            .collect()
    }
}
