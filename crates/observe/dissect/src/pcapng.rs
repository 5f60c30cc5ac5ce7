//! Files of packets: pcapng is written, pcapng and pcap are read.

mod reader;
mod writer;

pub use reader::{CaptureItem, CapturePacket, CaptureReader, OwnedCapturePacket};
pub use writer::{CaptureInterface, PcapngPacket, PcapngSettings, PcapngTotals, PcapngWriter};
