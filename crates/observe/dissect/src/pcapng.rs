//! Files of packets: pcapng is written, pcapng and pcap are read.

mod reader;
mod writer;

pub use reader::{Item, Kept, Packet, Reader};
pub use writer::{Capture, Interface, Settings, Writer, Written};
