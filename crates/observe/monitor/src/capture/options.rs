//! What is captured: how much of each packet, of which interfaces, and how much memory the kernel keeps for them.

/// What is captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureOptions {
    /// Bytes that are kept of each packet, from its IP header on: at least 1.
    pub snaplen: u32,
    /// Kernel memory for packets that were not read yet, rounded up to blocks of 256 KiB, at least two. A block is over after
    /// `retire_ms` however few packets it has: 64 blocks of 20 ms last 1.3 s without a reader.
    pub ring_bytes: usize,
    /// Longest time until a packet can be read, in ms: packets come in blocks, which are handed over when they are full or so old.
    pub retire_ms: u32,
    /// Names of interfaces, as they are when the capture is opened; none for all, also those that come later.
    pub interfaces: Vec<String>,
    /// Only TCP and UDP, in IPv6 behind at most one extension header; otherwise all of IP.
    pub tcp_udp_only: bool,
}

impl Default for CaptureOptions {
    fn default() -> Self {
        Self {
            snaplen: 65_535,
            ring_bytes: 16 << 20,
            retire_ms: 20,
            interfaces: Vec::new(),
            tcp_udp_only: true,
        }
    }
}
