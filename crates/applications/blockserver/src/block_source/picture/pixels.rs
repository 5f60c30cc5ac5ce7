//! Common parts of the picture readers: the result type, the limit on memory, the error for unreadable files, and the conversion of samples
//! to red, green and blue.

use crate::block_source::tile_cutter::Cutter;
use stackline_blocks::pyramid::Pyramid;
use stackline_core::error::{Error, Result};

/// The largest picture that is decoded in memory as a whole, bytes.
pub(crate) const MOST_AT_ONCE: u64 = 1 << 30;

/// The result of a reader: a tile cutter that has taken all rows, and the picture's description.
pub(crate) type Made = Result<(Cutter, Pyramid)>;

/// The error for a file that is damaged, or of a kind that is not supported.
pub(crate) fn unreadable(cause: impl std::fmt::Display) -> Error {
    Error::input(format!("cannot read the picture: {cause}"))
.hint("--plain loads the file unchanged; `gdal_translate -of GTiff` converts most pictures to a plain TIFF")
}

/// Appends pixels of `a_pixel` samples of one byte each as red, green, blue; one or two samples are grey (and alpha).
pub(crate) fn to_rgb(samples: &[u8], a_pixel: usize, rgb: &mut Vec<u8>) {
    for pixel in samples.chunks_exact(a_pixel) {
        match *pixel {
            [grey] | [grey, _] => rgb.extend([grey; 3]),
            [red, green, blue, ..] => rgb.extend([red, green, blue]),
            [] => {}
        }
    }
}
