//! The pixels of a window, a byte each (an index in the palette), and drawing on them: exactly, without antialiasing, like a display of
//! 1985.
//!
//! Coordinates may be outside the window; what lies outside is clipped.

use crate::font::{self, CELL};
use crate::item::STIPPLES;

/// The pixels of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pixels {
    width: i32,
    height: i32,
    bytes: Vec<u8>,
}

/// A point: x to the right, y downwards.
pub type PixelPoint = (i32, i32);

/// The largest width and height of a window, pixels.
pub const LARGEST: u16 = 4096;

impl Pixels {
    /// Pixels that all have colour 0.
    #[must_use]
    pub fn new(width: u16, height: u16) -> Self {
        let (width, height) = (width.min(LARGEST), height.min(LARGEST));
        let bytes = vec![0; usize::from(width) * usize::from(height)];
        Self {
            width: i32::from(width),
            height: i32::from(height),
            bytes,
        }
    }

    /// Width and height, pixels.
    #[must_use]
    pub const fn size(&self) -> (i32, i32) {
        (self.width, self.height)
    }

    /// The pixels row by row from the top.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The colour at a point; `None` outside.
    #[must_use]
    pub fn at(&self, point: PixelPoint) -> Option<u8> {
        let (x, y) = point;
        ((0..self.width).contains(&x) && (0..self.height).contains(&y))
            .then(|| self.bytes[y as usize * self.width as usize + x as usize])
    }

    /// Sets all pixels to colour 0.
    pub fn clear(&mut self) {
        self.bytes.fill(0);
    }

    /// Whether a point is inside. A negative coordinate becomes a large unsigned number, so one comparison per axis suffices.
    #[inline]
    const fn has(&self, point: PixelPoint) -> bool {
        (point.0 as u32) < self.width as u32 && (point.1 as u32) < self.height as u32
    }

    /// Draws a line one pixel wide, both ends included (Bresenham 1965).
    #[inline]
    pub fn vector(&mut self, from: PixelPoint, to: PixelPoint, colour: u8) {
        if !self.has(from) || !self.has(to) {
            return self.clipped(from, to, colour);
        }
        // The line is entirely inside, so the index advances without clipping and both candidates for the next pixel are computed without
        // branches.
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let (right, down) = (
            dx.signum() as isize,
            dy.signum() as isize * self.width as isize,
        );
        let (dx, dy) = (dx.unsigned_abs(), dy.unsigned_abs());
        let (long, short, along) = if dx >= dy {
            (dx, dy, right)
        } else {
            (dy, dx, down)
        };
        // The same steps as in `clipped`, arranged so that `rest` never falls below 0.
        let (both, back, mut rest) = (right + down, long - short, long / 2);
        let mut at = from.1 as isize * self.width as isize + from.0 as isize;
        // A half-open range: an inclusive one checks its end at each step, which costs a fifth of the time.
        for _ in 0..long + 1 {
            if let Some(pixel) = self.bytes.get_mut(at as usize) {
                *pixel = colour;
            }
            (rest, at) = if rest < short {
                (rest + back, at + both)
            } else {
                (rest - short, at + along)
            };
        }
    }

    /// Draws a line of which at least one end is outside.
    #[inline(never)]
    fn clipped(&mut self, from: PixelPoint, to: PixelPoint, colour: u8) {
        let ((x0, y0), (x1, y1)) = (from, to);
        // Lines entirely on one side of the window draw nothing.
        if x0.max(x1) < 0 || y0.max(y1) < 0 || x0.min(x1) >= self.width || y0.min(y1) >= self.height
        {
            return;
        }
        let (dx, dy) = ((x1 - x0).abs(), (y1 - y0).abs());
        let (right, down) = ((x1 - x0).signum(), (y1 - y0).signum());
        // Each step goes along the longer axis, and sometimes along the other too.
        let (long, short) = (dx.max(dy), dx.min(dy));
        let (along, aside) = if dx >= dy {
            ((right, 0), (0, down))
        } else {
            ((0, down), (right, 0))
        };
        let mut rest = long / 2;
        let (mut x, mut y) = (x0, y0);
        for _ in 0..=long {
            if self.has((x, y)) {
                self.bytes[(y * self.width + x) as usize] = colour;
            }
            rest -= short;
            (x, y) = (x + along.0, y + along.1);
            if rest < 0 {
                rest += long;
                (x, y) = (x + aside.0, y + aside.1);
            }
        }
    }

    /// Fills a rectangle, both corners included, with a stipple; the pattern is aligned to the window.
    pub fn rectangle(&mut self, a: PixelPoint, b: PixelPoint, colour: u8, stipple: u8) {
        let (left, right) = (a.0.min(b.0).max(0), a.0.max(b.0).min(self.width - 1));
        let (top, bottom) = (a.1.min(b.1).max(0), a.1.max(b.1).min(self.height - 1));
        if left > right || top > bottom {
            return;
        }
        let pattern = STIPPLES[usize::from(stipple) % STIPPLES.len()];
        let many = (right - left + 1) as usize;
        for y in top..=bottom {
            let begin = (y * self.width + left) as usize;
            let Some(row) = self.bytes.get_mut(begin..begin + many) else {
                return;
            };
            // Anchored to the window, not to the rectangle: the patterns of neighbours meet.
            match pattern[(y & 7) as usize] {
                0xff => row.fill(colour),
                0 => {}
                bits => stippled(row, bits.rotate_left((left & 7) as u32), colour),
            }
        }
    }

    /// Draws text; the upper left corner of the first character is at `at`.
    pub fn text(&mut self, at: PixelPoint, letters: &[u8], colour: u8) {
        let (x, y) = at;
        for (number, byte) in letters.iter().enumerate() {
            let left = x + CELL.0 * number as i32;
            if left >= self.width {
                return;
            }
            if left + CELL.0 > 0 {
                self.bits((left, y), font::letter(*byte), CELL.0 as usize, colour);
            }
        }
    }

    /// Draws a bitmap of `width` pixels per row, each row a whole number of bytes. Set bits get the colour; padding bits are ignored.
    pub fn bits(&mut self, corner: PixelPoint, bits: &[u8], width: usize, colour: u8) {
        let (x, top) = corner;
        let row_bytes = width.div_ceil(8).max(1);
        // Bits of the last byte beyond the width are padding, which may be set.
        let (last, in_last) = (row_bytes - 1, (0xff_u32 << (8 * row_bytes - width)) as u8);
        for (number, row) in bits.chunks(row_bytes).enumerate() {
            let y = top + number as i32;
            if !(0..self.height).contains(&y) {
                continue;
            }
            let bytes = row
                .iter()
                .enumerate()
                .map(|(at, byte)| (at, if at == last { byte & in_last } else { *byte }));
            for (at, byte) in bytes.filter(|(_, byte)| *byte != 0) {
                let left = x + 8 * at as i32;
                if left >= 0 && left + 8 <= self.width {
                    let begin = (y * self.width + left) as usize;
                    self.bytes
                        .get_mut(begin..begin + 8)
                        .into_iter()
                        .for_each(|row| stippled(row, byte, colour));
                    continue;
                }
                for bit in (0..8).filter(|bit| byte & 0x80 >> bit != 0) {
                    if self.has((left + bit, y)) {
                        self.bytes[(y * self.width + left + bit) as usize] = colour;
                    }
                }
            }
        }
    }

    /// Lines from point to point.
    pub fn polyline(&mut self, points: &[PixelPoint], colour: u8) {
        points
            .windows(2)
            .for_each(|pair| self.vector(pair[0], pair[1], colour));
    }

    /// Fills the area bounded by the points, by the even-odd rule: pixels whose centre is inside.
    pub fn fill(&mut self, points: &[PixelPoint], colour: u8, stipple: u8) {
        let (Some(top), Some(bottom)) = (
            points.iter().map(|p| p.1).min(),
            points.iter().map(|p| p.1).max(),
        ) else {
            return;
        };
        let mut row = Vec::new();
        for y in top.max(0)..bottom.min(self.height) {
            row.clear();
            row.extend(crossings(points, y));
            row.sort_unstable();
            for pair in row.chunks_exact(2) {
                if pair[1] > pair[0] {
                    self.rectangle((pair[0], y), (pair[1] - 1, y), colour, stipple);
                }
            }
        }
    }
}

/// The x coordinates at which the edges of an area cross a row, unordered: for each edge the first pixel whose centre is to the right of it
/// at the middle of the row. The result does not depend on the edge's direction.
fn crossings(points: &[PixelPoint], y: i32) -> impl Iterator<Item = i32> {
    let ends = points
        .iter()
        .zip(points.iter().skip(1).chain(points.first()));
    // Half-open: a corner that two edges share counts for one of them.
    ends.filter(move |(a, b)| (a.1 <= y) != (b.1 <= y))
        .map(move |(a, b)| {
            let (above, below) = if a.1 < b.1 { (a, b) } else { (b, a) };
            let (dx, dy) = (
                i64::from(below.0) - i64::from(above.0),
                i64::from(below.1) - i64::from(above.1),
            );
            // All in halves: the row is crossed at its middle, and pixels have theirs there, too.
            let along = (2 * (i64::from(y) - i64::from(above.1)) + 1) * dx;
            above.0 + (2 * along + 2 * dy - 1).div_euclid(4 * dy) as i32
        })
}

/// Whether [`Pixels::fill`] with a solid stipple paints this pixel.
#[must_use]
pub(crate) fn is_filled(points: &[PixelPoint], at: PixelPoint) -> bool {
    crossings(points, at.1)
        .filter(|crossing| *crossing <= at.0)
        .count()
        % 2
        == 1
}

/// Sets those pixels of a row whose bit is set in the repeated 8-bit pattern, highest bit first.
fn stippled(row: &mut [u8], bits: u8, colour: u8) {
    let mask = spread(bits);
    // Native order both ways: the pixels keep their places in memory.
    let paint = u64::from_ne_bytes([colour; 8]) & mask;
    let mut eights = row.chunks_exact_mut(8);
    for eight in &mut eights {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(eight);
        let mixed = u64::from_ne_bytes(bytes) & !mask | paint;
        eight.copy_from_slice(&mixed.to_ne_bytes());
    }
    for (at, pixel) in eights.into_remainder().iter_mut().enumerate() {
        if bits & 0x80 >> at != 0 {
            *pixel = colour;
        }
    }
}

/// Expands 8 bits to 8 bytes, highest bit first in memory: 0xff where the bit is set.
fn spread(bits: u8) -> u64 {
    let mut bytes = [0; 8];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = if bits & 0x80 >> at != 0 { 0xff } else { 0 };
    }
    u64::from_ne_bytes(bytes)
}

/// The points of a quadratic B-spline from the first point to the last, through the midpoints of the lines between the points.
#[must_use]
pub fn spline(points: &[PixelPoint]) -> Vec<PixelPoint> {
    const STEPS: i64 = 16;
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Vec::new();
    };
    if points.len() < 3 {
        return points.to_vec();
    }
    // In half pixels, so that midpoints are integers.
    let middle = |a: &PixelPoint, b: &PixelPoint| {
        (
            i64::from(a.0) + i64::from(b.0),
            i64::from(a.1) + i64::from(b.1),
        )
    };
    let mut out = vec![*first];
    for three in points.windows(3) {
        let (from, to) = (middle(&three[0], &three[1]), middle(&three[1], &three[2]));
        let over = (2 * i64::from(three[1].0), 2 * i64::from(three[1].1));
        for step in 0..=STEPS {
            let rest = STEPS - step;
            let mix = |a: i64, b: i64, c: i64| {
                // The weights add up to STEPS squared; the 2 turns half pixels into whole ones.
                (rest * rest * a + 2 * rest * step * b + step * step * c) / (2 * STEPS * STEPS)
            };
            out.push((
                mix(from.0, over.0, to.0) as i32,
                mix(from.1, over.1, to.1) as i32,
            ));
        }
    }
    out.push(*last);
    out.dedup();
    out
}

/// The palette, as red, green and blue: white, black, the four layers of an NMOS chip, other colours, then greys.
#[must_use]
pub fn palette() -> Vec<[u8; 3]> {
    const FIRST: [[u8; 3]; 16] = [
        [0xff, 0xff, 0xff],
        [0x11, 0x18, 0x20],
        [0x2b, 0x8a, 0x3e],
        [0xc9, 0x2a, 0x2a],
        [0x1c, 0x6d, 0xd0],
        [0xe0, 0xa1, 0x00],
        [0x86, 0x2e, 0x9c],
        [0x0b, 0x72, 0x85],
        [0xd9, 0x48, 0x0f],
        [0x5c, 0x94, 0x0d],
        [0xa6, 0x1e, 0x4d],
        [0x36, 0x4f, 0xc7],
        [0x49, 0x50, 0x57],
        [0x86, 0x8e, 0x96],
        [0xad, 0xb5, 0xbd],
        [0xde, 0xe2, 0xe6],
    ];
    FIRST
        .into_iter()
        .chain((16..=255).map(|grey| [grey; 3]))
        .collect()
}

/// Encodes the pixels as PNG.
///
/// # Errors
/// A sentence when they cannot be encoded.
pub fn png(pixels: &Pixels) -> Result<Vec<u8>, String> {
    let failed = |error: png::EncodingError| format!("cannot encode the window: {error}");
    // PNG has no empty pictures.
    let (width, height) = (pixels.width.max(1) as u32, pixels.height.max(1) as u32);
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(palette().concat());
    let mut writer = encoder.write_header().map_err(failed)?;
    let one = [0];
    writer
        .write_image_data(if pixels.bytes.is_empty() {
            &one
        } else {
            &pixels.bytes
        })
        .map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pixels: &Pixels) -> Vec<String> {
        let row = |row: &[u8]| {
            row.iter()
                .map(|pixel| if *pixel == 0 { '.' } else { '#' })
                .collect()
        };
        pixels
            .bytes
            .chunks(pixels.width as usize)
            .map(row)
            .collect()
    }

    #[test]
    fn a_vector_has_both_ends_in_every_direction() {
        let mut pixels = Pixels::new(7, 4);
        pixels.vector((0, 0), (6, 3), 1);
        assert_eq!(
            shown(&pixels),
            ["##.....", "..##...", "....##.", "......#"].map(|row| row.to_owned())
        );
        for (from, to) in [
            ((0, 3), (6, 0)),
            ((6, 0), (0, 3)),
            ((3, 3), (3, 0)),
            ((2, 2), (2, 2)),
        ] {
            let mut pixels = Pixels::new(7, 4);
            pixels.vector(from, to, 1);
            assert_eq!((pixels.at(from), pixels.at(to)), (Some(1), Some(1)));
        }
    }

    #[test]
    fn rectangles_are_clipped_and_stipples_lie_fast() {
        let mut pixels = Pixels::new(10, 3);
        pixels.rectangle((8, 1), (-5, 9), 1, 0);
        assert_eq!(
            shown(&pixels),
            ["..........", "#########.", "#########."].map(|row| row.to_owned())
        );
        // Two halves of a stippled area are one.
        let (mut whole, mut halves) = (Pixels::new(40, 9), Pixels::new(40, 9));
        whole.rectangle((1, 0), (38, 8), 1, 1);
        halves.rectangle((1, 0), (13, 8), 1, 1);
        halves.rectangle((14, 0), (38, 8), 1, 1);
        assert_eq!(whole, halves);
        assert_eq!(
            whole.bytes.iter().filter(|pixel| **pixel == 1).count(),
            38 * 9 / 4
        );
    }

    #[test]
    fn letters_and_areas_stay_inside() {
        let mut pixels = Pixels::new(20, 20);
        pixels.text((-4, -3), b"AB", 1);
        pixels.text((14, 10), b"WW", 1);
        pixels.fill(&[(2, 2), (12, 2), (12, 12), (2, 12)], 2, 0);
        assert_eq!(
            (pixels.at((2, 2)), pixels.at((11, 11)), pixels.at((12, 12))),
            (Some(2), Some(2), Some(0))
        );
        assert!(png(&pixels).unwrap().starts_with(b"\x89PNG"));
    }

    #[test]
    fn bits_behind_a_row_are_not_painted() {
        for (width, left) in (1..=24).flat_map(|width| (-9..12).map(move |left| (width, left))) {
            let mut pixels = Pixels::new(20, 3);
            pixels.bits(
                (left, 1),
                &[0xff; 6][..2 * usize::div_ceil(width, 8)],
                width,
                1,
            );
            let is_of_it = |x: i32| (left..left + width as i32).contains(&x);
            let row: String = (0..20)
                .map(|x| if is_of_it(x) { '#' } else { '.' })
                .collect();
            assert_eq!(
                shown(&pixels),
                [".".repeat(20), row.clone(), row],
                "{width} at {left}"
            );
        }
    }

    #[test]
    fn areas_beside_each_other_fit_in_either_order_of_their_points() {
        let (one, other) = (
            [(0, 0), (10, 0), (40, 100), (0, 100)],
            [(10, 0), (200, 0), (200, 100), (40, 100)],
        );
        let turned: Vec<PixelPoint> = one.iter().rev().copied().collect();
        for first in [&one[..], &turned] {
            let (mut a, mut b) = (Pixels::new(200, 100), Pixels::new(200, 100));
            a.fill(first, 1, 0);
            b.fill(&other, 1, 0);
            let seen = a
                .bytes
                .iter()
                .zip(&b.bytes)
                .filter(|(a, b)| (**a == 1) != (**b == 1))
                .count();
            assert_eq!(seen, 200 * 100);
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_drawn_outside(
            a in (-40_000i32..40_000, -40_000i32..40_000), b in (-300i32..300, -300i32..300), colour: u8, stipple: u8
        ) {
            let mut pixels = Pixels::new(64, 48);
            pixels.vector(a, b, colour);
            pixels.vector(b, a, colour);
            pixels.rectangle(a, b, colour, stipple);
            pixels.text(b, b"abc", colour);
            pixels.fill(&[a, b, (5, 5), (60, 40)], colour, stipple);
            pixels.polyline(&spline(&[a, b, (1, 2), (30, 40)]), colour);
            proptest::prop_assert_eq!(pixels.bytes().len(), 64 * 48);
        }

        /// A line that leaves the window has the same pixels inside as on a larger one.
        #[test]
        fn a_vector_that_leaves_the_window_is_the_same_inside(a in (0i32..32, 0i32..32), b in (-50i32..80, -50i32..80)) {
            let (mut small, mut large) = (Pixels::new(32, 32), Pixels::new(200, 200));
            small.vector(a, b, 1);
            large.vector((a.0 + 60, a.1 + 60), (b.0 + 60, b.1 + 60), 1);
            for place in (0..32).flat_map(|y| (0..32).map(move |x| (x, y))) {
                proptest::prop_assert_eq!(small.at(place), large.at((place.0 + 60, place.1 + 60)));
            }
        }
    }
}
