//! The options of a capture: how much of each packet, of which interfaces, and how much memory the kernel keeps for packets.

/// The options of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureOptions {
    /// How many bytes are captured of each packet, from its IP header on: at least 1.
    pub snaplen: u32,
    /// Kernel memory for packets that were not read yet, rounded up to blocks of 256 KiB, at least two. A block is over after
    /// `retire_ms` however few packets it has: 64 blocks of 20 ms last 1.3 s without a reader.
    pub ring_bytes: usize,
    /// The longest time until a packet can be read, ms: the kernel hands blocks of packets over when they are full or this old.
    pub retire_ms: u32,
    /// The names of interfaces when the capture is opened; empty: all, including those that are added later.
    pub interfaces: Vec<String>,
    /// Whether only TCP and UDP is captured (in IPv6 behind at most one extension header), or all of IP.
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
