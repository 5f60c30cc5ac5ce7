//! Options of the raw Ethernet carrier.

use super::mac::Mac;

/// The default ethertype: IEEE 802's local experimental ethertype 1, for experiments within one network.
pub const ETHERTYPE: u16 = 0x88B5;

/// How a raw Ethernet carrier is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameCarrierOptions {
    /// Bytes of the ring for received frames; it has at least 256 slots, even if they take more.
    pub receive_buffer: usize,
    /// Send buffer requested from the kernel, in bytes.
    pub send_buffer: usize,
    /// Most bytes of a packet, head and payload; 0 for what the interface's MTU allows. Slots of the ring have this
    /// length for all packets: where packets will be much shorter, as over loopback, a lower value makes room for more.
    pub packet: usize,
    /// The ethertype of the frames.
    pub ethertype: u16,
    /// The peer's address, if the initiator knows it: then it does not broadcast to find the peer.
    pub peer: Option<Mac>,
}

impl Default for FrameCarrierOptions {
    fn default() -> Self {
        Self {
            receive_buffer: 4 << 20,
            send_buffer: 4 << 20,
            packet: 0,
            ethertype: ETHERTYPE,
            peer: None,
        }
    }
}
