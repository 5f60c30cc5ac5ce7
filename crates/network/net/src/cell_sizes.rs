//! Sizes of frames that travel in cells (ATM with AAL5, ITU-T I.363.5).
//!
//! A cell has a header of 5 bytes; a frame gets a trailer of 8 bytes and is padded to whole cells. A frame that loses
//! one cell is lost; its other cells still use the link.

use crate::packet::SegmentSizes;

/// Bytes of a cell's header.
const HEADER: u64 = 5;
/// Bytes of the trailer that AAL5 appends to a frame.
const TRAILER: u64 = 8;

/// The size of the cells that frames are cut into on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cells {
    /// Bytes of a cell on the wire, header included; more than the header's 5.
    pub bytes: u64,
}

impl Cells {
    /// The number of cells that a packet of `packet_bytes` takes.
    #[must_use]
    pub const fn count(self, packet_bytes: u64) -> u64 {
        // A cell without room for data would divide by zero; such a size is refused before.
        let carried = if self.bytes > HEADER {
            self.bytes - HEADER
        } else {
            1
        };
        (packet_bytes + TRAILER).div_ceil(carried)
    }

    /// Bytes on the wire of all cells of a packet of `packet_bytes`.
    #[must_use]
    pub const fn wire_bytes(self, packet_bytes: u64) -> u64 {
        self.count(packet_bytes) * self.bytes
    }

    /// Bytes on the wire of all cells of several segments, each of which is a frame of its own.
    #[must_use]
    pub const fn wire_bytes_of(self, segments: SegmentSizes) -> u64 {
        let last = self.wire_bytes(segments.bytes_of(segments.count - 1));
        last + (segments.count as u64 - 1) * self.wire_bytes(segments.bytes_of(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_takes_whole_cells() {
        let atm = Cells { bytes: 53 };
        assert_eq!(atm.count(40), 1);
        assert_eq!(atm.count(41), 2);
        assert_eq!(atm.count(9180), 192);
        assert_eq!(atm.wire_bytes(9180), 10_176);
    }
}
