//! A font of 8 by 16 pixels, built into the program. Characters that it lacks are shown as a box.

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster};
use std::sync::OnceLock;

/// Width and height of a character, pixels.
pub const CELL: (i32, i32) = (8, 16);
/// A pixel of the antialiased font is set if its coverage exceeds this value.
const DARK: u8 = 96;
const BOX: [u8; 16] = [
    0, 0, 0x7e, 0x42, 0x42, 0x42, 0x42, 0x42, 0x42, 0x42, 0x42, 0x7e, 0, 0, 0, 0,
];

/// The rows of a character from the top; the leftmost pixel is the highest bit.
#[must_use]
pub fn letter(byte: u8) -> &'static [u8; 16] {
    static LETTERS: OnceLock<Vec<[u8; 16]>> = OnceLock::new();
    let letters = LETTERS.get_or_init(|| (0..=255).map(made).collect());
    letters.get(usize::from(byte)).unwrap_or(&BOX)
}

fn made(byte: u8) -> [u8; 16] {
    if byte == b' ' {
        return [0; 16];
    }
    let known = char::from(byte);
    let Some(raster) = get_raster(known, FontWeight::Regular, RasterHeight::Size16)
        .filter(|_| known.is_ascii_graphic())
    else {
        return BOX;
    };
    let mut rows = [0; 16];
    for (row, line) in rows.iter_mut().zip(raster.raster()) {
        *row = (0..8)
            .filter(|at| line.get(*at).is_some_and(|cover| *cover > DARK))
            .fold(0, |bits, at| bits | 0x80 >> at);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_differ_and_a_blank_is_blank() {
        let set = |byte: u8| letter(byte).iter().map(|row| row.count_ones()).sum::<u32>();
        assert_eq!(set(b' '), 0);
        assert!(
            (10..80).contains(&set(b'A'))
                && letter(b'A') != letter(b'B')
                && letter(b'a') != letter(b'A')
        );
        assert_eq!((letter(200), letter(0)), (&BOX, &BOX));
    }
}
