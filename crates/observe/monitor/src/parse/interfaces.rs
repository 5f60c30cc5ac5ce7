//! Parses `/proc/net/dev`: the traffic of each interface.

/// The counters of an interface that are used.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct InterfaceTraffic {
    /// The name of the interface.
    pub(crate) name: String,
    /// Bytes, packets, errors and drops: received, then sent.
    pub(crate) counters: [u64; 8],
}

/// Names of [`InterfaceTraffic::counters`].
pub(crate) const COLUMNS: [&str; 8] = [
    "received_bytes",
    "received_packets",
    "receive_errors",
    "receive_drops",
    "sent_bytes",
    "sent_packets",
    "send_errors",
    "send_drops",
];

/// Reads every interface whose line is complete.
pub(crate) fn parse(text: &str) -> Vec<InterfaceTraffic> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<InterfaceTraffic> {
    let (name, rest) = line.rsplit_once(':')?;
    let all: Vec<u64> = rest
        .split_ascii_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    let (received, sent) = (all.get(0..4)?, all.get(8..12)?);
    let mut counters = [0; 8];
    counters[..4].copy_from_slice(received);
    counters[4..].copy_from_slice(sent);
    Some(InterfaceTraffic {
        name: name.trim().to_owned(),
        counters,
    })
}
