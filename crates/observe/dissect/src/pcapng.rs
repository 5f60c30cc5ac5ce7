//! Capture files: writes pcapng, reads pcapng and pcap.

mod reader;
mod writer;

pub use reader::{CaptureItem, CapturePacket, CaptureReader, OwnedCapturePacket};
pub use writer::{CaptureInterface, PcapngPacket, PcapngSettings, PcapngTotals, PcapngWriter};
