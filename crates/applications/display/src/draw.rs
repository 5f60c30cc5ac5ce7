//! Draws a symbol with everything that it calls as pixels. The items and pixels of one picture are limited, because nested calls can
//! multiply beyond any time.

use crate::item::{DisplayItem, DisplayItemKind, ONE};
use crate::pixels::{PixelPoint, Pixels, spline};
use crate::symbols::{Symbol, Symbols};

/// The limit on items drawn in one picture; the rest is left out.
pub const MOST_ITEMS: usize = 4_000_000;
/// The limit on pixels touched in one picture: sixteen windows of the largest size.
pub const MOST_PIXELS: i64 = 1 << 28;
/// The limit on the nesting of calls.
pub(crate) const DEEPEST: usize = 64;

/// The placement of a symbol: translation, scale and rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolPlacement {
    /// The point of the window at which the symbol's origin is.
    pub at: PixelPoint,
    /// The scale, in 256ths.
    pub scale: i32,
    /// Quarter turns, from x towards y.
    pub turns: u8,
}

impl SymbolPlacement {
    /// The window's point for a point of the symbol.
    #[must_use]
    pub const fn point(&self, point: PixelPoint) -> PixelPoint {
        let (x, y) = point;
        // The coordinates of an item are short: unscaled, they need no limit.
        if self.scale == ONE as i32 && self.turns == 0 {
            return (self.at.0 + x, self.at.1 + y);
        }
        let (x, y) = match self.turns & 3 {
            0 => (x, y),
            1 => (-y, x),
            2 => (-x, -y),
            _ => (y, -x),
        };
        // Coordinates far outside any window are limited, since only the side on which they lie matters. [`DEEPEST`] nested calls then
        // cannot overflow.
        (
            self.at.0 + limited(scaled(x, self.scale)),
            self.at.1 + limited(scaled(y, self.scale)),
        )
    }

    /// The placement of a symbol that an item of this one calls.
    #[must_use]
    pub fn of_call(&self, call: &DisplayItem) -> Self {
        // The scales of nested calls multiply: they must reach neither 0 nor an overflow.
        let scale =
            ((i64::from(self.scale) * i64::from(call.x1.max(1))) >> 8).clamp(1, 1 << 16) as i32;
        Self {
            at: self.point((i32::from(call.x0), i32::from(call.y0))),
            scale,
            turns: (self.turns + (call.y1.rem_euclid(4)) as u8) & 3,
        }
    }
}

const fn scaled(value: i32, scale: i32) -> i64 {
    // Rounds down on both sides of 0, so that nothing shifts where a picture crosses it.
    (value as i64 * scale as i64) >> 8
}

const fn limited(value: i64) -> i32 {
    const FAR: i64 = 1 << 20;
    if value > FAR {
        FAR as i32
    } else if value < -FAR {
        -FAR as i32
    } else {
        value as i32
    }
}

/// The points of an item in the window; of a spline, the points of its curve.
pub(crate) fn points(
    symbol: &Symbol,
    item: &DisplayItem,
    place: &SymbolPlacement,
) -> Vec<PixelPoint> {
    let short = |bytes: &[u8]| i32::from(i16::from_be_bytes([bytes[0], bytes[1]]));
    let all = symbol.bytes_of(item).chunks_exact(4);
    let relative = |four: &[u8]| {
        (
            i32::from(item.x0) + short(four),
            i32::from(item.y0) + short(&four[2..]),
        )
    };
    let points: Vec<PixelPoint> = all.map(|four| place.point(relative(four))).collect();
    if item.kind == Some(DisplayItemKind::Spline) {
        spline(&points)
    } else {
        points
    }
}

/// Draws a symbol. Returns the number of items drawn, and whether these were all.
pub fn draw_symbol(
    pixels: &mut Pixels,
    symbols: &Symbols,
    number: u32,
    place: SymbolPlacement,
) -> (usize, bool) {
    let mut drawing = SymbolDrawing {
        pixels,
        symbols,
        left: MOST_ITEMS,
        left_pixels: MOST_PIXELS,
        is_too_deep: false,
    };
    let Some(symbol) = symbols.get(number) else {
        return (0, true);
    };
    let is_whole = drawing.items(symbol, symbol.items(), place, 0);
    (MOST_ITEMS - drawing.left, is_whole && !drawing.is_too_deep)
}

/// Draws items that were added to a symbol that is drawn already. Returns the number of items drawn.
pub fn draw_added_items(
    pixels: &mut Pixels,
    symbols: &Symbols,
    symbol: &Symbol,
    items: &[DisplayItem],
    place: SymbolPlacement,
) -> usize {
    let mut drawing = SymbolDrawing {
        pixels,
        symbols,
        left: MOST_ITEMS,
        left_pixels: MOST_PIXELS,
        is_too_deep: false,
    };
    drawing.items(symbol, items, place, 0);
    MOST_ITEMS - drawing.left
}

struct SymbolDrawing<'d> {
    pixels: &'d mut Pixels,
    symbols: &'d Symbols,
    left: usize,
    left_pixels: i64,
    /// Whether a call was left out because it was nested too deeply.
    is_too_deep: bool,
}

impl SymbolDrawing<'_> {
    /// Draws items in their order. Returns false when a limit is reached.
    fn items(
        &mut self,
        symbol: &Symbol,
        items: &[DisplayItem],
        place: SymbolPlacement,
        depth: usize,
    ) -> bool {
        items.iter().all(|item| match item.kind {
            // Vectors are by far the most frequent; handling them apart is a quarter faster.
            Some(DisplayItemKind::Vector) => self.vector(item, &place),
            Some(kind) => self.item(symbol, item, kind, place, depth),
            None => true,
        })
    }

    /// Counts an item that touches about `pixels` pixels. Returns false if a limit is reached.
    #[inline]
    const fn has_time(&mut self, pixels: i64) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        self.left_pixels -= pixels;
        self.left_pixels >= 0
    }

    #[inline]
    fn vector(&mut self, item: &DisplayItem, place: &SymbolPlacement) -> bool {
        let (from, to) = corners(item, place);
        let is_drawn = self.has_time(self.cost(DisplayItemKind::Vector, || 0, from, to));
        if is_drawn {
            self.pixels.vector(from, to, item.colour());
        }
        is_drawn
    }

    fn item(
        &mut self,
        symbol: &Symbol,
        item: &DisplayItem,
        kind: DisplayItemKind,
        place: SymbolPlacement,
        depth: usize,
    ) -> bool {
        let ((from, to), colour) = (corners(item, &place), item.colour());
        if !self.has_time(self.cost(kind, || symbol.bytes_of(item).len() as i64, from, to)) {
            return false;
        }
        match kind {
            DisplayItemKind::Vector => self.pixels.vector(from, to, colour),
            DisplayItemKind::Rectangle => self.pixels.rectangle(from, to, colour, item.stipple),
            DisplayItemKind::Text => self.pixels.text(from, symbol.bytes_of(item), colour),
            DisplayItemKind::Polyline | DisplayItemKind::Spline => {
                self.pixels.polyline(&points(symbol, item, &place), colour)
            }
            DisplayItemKind::Fill => {
                self.pixels
                    .fill(&points(symbol, item, &place), colour, item.stipple)
            }
            DisplayItemKind::Raster => {
                let width = usize::from(item.x1.max(0) as u16);
                self.pixels.bits(from, symbol.bytes_of(item), width, colour);
            }
            DisplayItemKind::Call => {
                let called = self.symbols.get(item.data);
                self.is_too_deep |= called.is_some() && depth >= DEEPEST;
                let called = called.filter(|_| depth < DEEPEST);
                let inner = place.of_call(item);
                return called
                    .is_none_or(|called| self.items(called, called.items(), inner, depth + 1));
            }
        }
        true
    }

    /// The approximate number of pixels that drawing an item touches; an upper estimate.
    #[inline]
    fn cost(
        &self,
        kind: DisplayItemKind,
        bytes: impl Fn() -> i64,
        from: PixelPoint,
        to: PixelPoint,
    ) -> i64 {
        let (width, height) = self.pixels.size();
        let points = || bytes() / 4;
        let within = |a: i32, b: i32, most: i32| long(a, b).min(i64::from(most) + 1);
        match kind {
            DisplayItemKind::Vector => long(from.0, to.0).max(long(from.1, to.1)),
            DisplayItemKind::Rectangle => {
                within(from.0, to.0, width) * within(from.1, to.1, height)
            }
            // A character has 8 by 16 pixels.
            DisplayItemKind::Text => 128 * bytes(),
            DisplayItemKind::Raster => 8 * bytes(),
            // Points may be anywhere, so each line is counted as if it crossed everything.
            DisplayItemKind::Polyline => points() * FAR,
            DisplayItemKind::Spline => points() * FAR / 4,
            // Each row looks at all edges, and paints at most its width.
            DisplayItemKind::Fill => i64::from(height) * (points() + i64::from(width)),
            DisplayItemKind::Call => 0,
        }
    }
}

/// Both corners of an item in the window.
#[inline]
const fn corners(item: &DisplayItem, place: &SymbolPlacement) -> (PixelPoint, PixelPoint) {
    (
        place.point((item.x0 as i32, item.y0 as i32)),
        place.point((item.x1 as i32, item.y1 as i32)),
    )
}

/// The number of pixels from one coordinate to another, both included.
#[inline]
fn long(a: i32, b: i32) -> i64 {
    i64::from(a.abs_diff(b)) + 1
}

/// The assumed length of a line that crosses everything, pixels.
const FAR: i64 = 4096;
