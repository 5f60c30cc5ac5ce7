//! Pixels as the readers of all forms give them: rows in the cutter of tiles, as red, green, blue; how much is in memory at once, and the
//! error of a file that gives none.

use crate::block_source::tile_cutter::Cutter;
use stackline_blocks::pyramid::Pyramid;
use stackline_core::error::{Error, Result};

/// Bytes of a picture that has to be in memory at once, at most.
pub(crate) const MOST_AT_ONCE: u64 = 1 << 30;

/// What a form's reader gives: tiles in the making, with all rows in them.
pub(crate) type Made = Result<(Cutter, Pyramid)>;

/// That the file is damaged, or of a kind that is not read.
pub(crate) fn unreadable(cause: impl std::fmt::Display) -> Error {
    Error::input(format!("cannot read the picture: {cause}"))
.hint("--plain loads the file unchanged; `gdal_translate -of GTiff` converts most pictures to a plain TIFF")
}

/// Appends pixels of that many samples of a byte as red, green, blue: one or two samples are grey (and opacity).
pub(crate) fn to_rgb(samples: &[u8], a_pixel: usize, rgb: &mut Vec<u8>) {
    for pixel in samples.chunks_exact(a_pixel) {
        match *pixel {
            [grey] | [grey, _] => rgb.extend([grey; 3]),
            [red, green, blue, ..] => rgb.extend([red, green, blue]),
            [] => {}
        }
    }
}
