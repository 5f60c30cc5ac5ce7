//! An item of a symbol: 20 bytes on the wire and in memory (Lantz et al. 1985, sections 5.3 and 8: 20 bytes per `AddItem`).
//!
//! ```text
//! id 4 | x0 2 | y0 2 | x1 2 | y1 2 | data 4          16 bytes on the wire behind a head of 4, which holds kind and stipple
//! ```

/// The kinds of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DisplayItemKind {
    /// A line, one pixel wide, from the first corner to the second.
    Vector = 1,
    /// A rectangle that includes both corners, filled with a stipple.
    Rectangle = 2,
    /// Characters of 8 by 16 pixels; the upper left corner of the first is at `x0`, `y0`. The extra bytes are the characters.
    Text = 3,
    /// Lines from point to point. The extra bytes are the points (x and y, 2 bytes each), relative to `x0`, `y0`.
    Polyline = 4,
    /// A curve near the points (a quadratic B-spline). The extra bytes are the points.
    Spline = 5,
    /// The area bounded by the points. The extra bytes are the points.
    Fill = 6,
    /// A bitmap of `x1` by `y1` pixels. The extra bytes are its rows from the top, each a whole number of bytes.
    Raster = 7,
    /// A call of another symbol, whose number is `data`: moved by `x0`, `y0`, scaled by `x1` (in 256ths), rotated by `y1` quarter turns.
    Call = 8,
}

impl DisplayItemKind {
    /// The kind with that number on the wire.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Vector,
            2 => Self::Rectangle,
            3 => Self::Text,
            4 => Self::Polyline,
            5 => Self::Spline,
            6 => Self::Fill,
            7 => Self::Raster,
            8 => Self::Call,
            _ => return None,
        })
    }
}

/// The patterns with which areas are filled, 8 by 8 pixels: solid, and one for each of the four layers of an NMOS chip.
pub const STIPPLES: [[u8; 8]; 5] = [
    [0xff; 8],
    [0x88, 0x44, 0x22, 0x11, 0x88, 0x44, 0x22, 0x11],
    [0x11, 0x22, 0x44, 0x88, 0x11, 0x22, 0x44, 0x88],
    [0xaa, 0x55, 0xaa, 0x55, 0xaa, 0x55, 0xaa, 0x55],
    [0xff, 0x00, 0x00, 0x00, 0xff, 0x00, 0x00, 0x00],
];

/// An item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisplayItem {
    /// The id, which the client chooses; it is unique in its symbol.
    pub id: u32,
    /// For a call the number of the called symbol, otherwise the colour (0 to 255).
    pub data: u32,
    /// The x coordinate of the first corner.
    pub x0: i16,
    /// The y coordinate of the first corner.
    pub y0: i16,
    /// The x coordinate of the second corner; other kinds use it as [`DisplayItemKind`] says.
    pub x1: i16,
    /// The y coordinate of the second corner; other kinds use it as [`DisplayItemKind`] says.
    pub y1: i16,
    /// The kind; `None` for an item that was deleted.
    pub kind: Option<DisplayItemKind>,
    /// The index in [`STIPPLES`] of the pattern that fills it.
    pub stipple: u8,
    /// The index plus one of its extra bytes in the symbol that has it; 0 if it has none.
    pub(crate) bytes: u16,
}

/// Bytes of an item on the wire after the message's header.
pub const WIRE_BYTES: usize = 16;
/// A scale of one, in 256ths.
pub const ONE: i16 = 256;

impl DisplayItem {
    /// An item that is drawn, of colour 1.
    #[must_use]
    pub const fn drawn(kind: DisplayItemKind, id: u32, from: (i16, i16), to: (i16, i16)) -> Self {
        Self {
            id,
            data: 1,
            x0: from.0,
            y0: from.1,
            x1: to.0,
            y1: to.1,
            kind: Some(kind),
            stipple: 0,
            bytes: 0,
        }
    }

    /// A call of a symbol at a place.
    #[must_use]
    pub const fn call(id: u32, symbol: u32, x: i16, y: i16) -> Self {
        Self {
            id,
            data: symbol,
            x0: x,
            y0: y,
            x1: ONE,
            y1: 0,
            kind: Some(DisplayItemKind::Call),
            stipple: 0,
            bytes: 0,
        }
    }

    /// The same item with another stipple.
    #[must_use]
    pub const fn stippled(self, stipple: u8) -> Self {
        Self { stipple, ..self }
    }

    /// The same item in another colour.
    #[must_use]
    pub const fn coloured(self, colour: u8) -> Self {
        Self {
            data: colour as u32,
            ..self
        }
    }

    /// The item's encoding on the wire, without the message's header.
    #[inline]
    #[must_use]
    pub fn to_wire(&self) -> [u8; WIRE_BYTES] {
        // Assembled as one integer, so that the compiler need not write single bytes to memory.
        let short = |value: i16| u128::from(value as u16);
        let places =
            short(self.x0) << 48 | short(self.y0) << 32 | short(self.x1) << 16 | short(self.y1);
        (u128::from(self.id) << 96 | places << 32 | u128::from(self.data)).to_be_bytes()
    }

    /// Decodes an item from the wire.
    #[inline]
    #[must_use]
    pub fn from_wire(kind: DisplayItemKind, stipple: u8, wire: &[u8; WIRE_BYTES]) -> Self {
        let long =
            |at: usize| u32::from_be_bytes([wire[at], wire[at + 1], wire[at + 2], wire[at + 3]]);
        let short = |at: usize| i16::from_be_bytes([wire[at], wire[at + 1]]);
        Self {
            id: long(0),
            data: long(12),
            x0: short(4),
            y0: short(6),
            x1: short(8),
            y1: short(10),
            kind: Some(kind),
            stipple,
            bytes: 0,
        }
    }

    /// The colour of the item.
    #[must_use]
    pub const fn colour(&self) -> u8 {
        self.data as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_has_twenty_bytes_in_memory_and_on_the_wire() {
        assert_eq!(size_of::<DisplayItem>(), 20);
        assert_eq!(WIRE_BYTES + super::super::protocol::HEAD_BYTES, 20);
        let item =
            DisplayItem::drawn(DisplayItemKind::Rectangle, 7, (-3, 4), (500, -600)).stippled(2);
        assert_eq!(
            DisplayItem::from_wire(DisplayItemKind::Rectangle, 2, &item.to_wire()),
            item
        );
    }
}
