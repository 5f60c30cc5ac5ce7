//! Entry point for fuzzers: reads, marks, duplicates and cuts a frame of arbitrary bytes, as a host may send it.

use super::buffer::{LARGE, PooledBuffer};
use super::frame::VnetFrame;
use super::header::{NETWORK, read};
use stackline_net::PacketPayload;

/// Processes one input. Its first byte says where to cut; the rest is a frame with its virtio-net header. Panics on a bug.
pub fn frame(bytes: &[u8]) {
    let Some((cut, bytes)) = bytes
        .split_first()
        .filter(|(_, bytes)| bytes.len() <= LARGE)
    else {
        return;
    };
    let Ok(header) = read(bytes) else { return };
    let mut buffer = PooledBuffer::holding(bytes.len());
    buffer[..bytes.len()].copy_from_slice(bytes);
    let mut frame = VnetFrame::new(buffer, bytes.len(), &header);
    frame.mark();
    frame.address([1; 6], [2; 6]);
    let count = header.segments.count;
    if count > 1 {
        let mut front = frame.again();
        let back = front.split(1 + u32::from(*cut) % (count - 1));
        let headers = header.data;
        // A part may be unreadable when the header was wrong; its data is complete.
        assert_eq!(
            front.bytes().len() + back.bytes().len(),
            header.end + headers
        );
        assert!(front.bytes().len() > headers.max(NETWORK) && back.bytes().len() > headers);
    }
}
