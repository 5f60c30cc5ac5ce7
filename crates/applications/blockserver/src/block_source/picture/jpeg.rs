//! Reads a JPEG as a whole, and cuts it into tiles.

use super::pixels::{MOST_AT_ONCE, Made, unreadable};
use crate::block_source::source_files::read_all;
use crate::block_source::tile_cutter::{self, Cutter, PIXEL};
use std::fs::File;
use std::path::Path;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

pub(crate) fn cut(file: File, path: &Path) -> Made {
    let bytes = read_all(file, path, MOST_AT_ONCE)?;
    let most = usize::from(u16::MAX);
    let options = DecoderOptions::default()
        .set_max_width(most)
        .set_max_height(most);
    let options = options.jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(unreadable)?;
    let (width, height) = decoder
        .dimensions()
        .ok_or_else(|| unreadable("it has no size"))?;
    if (width * height * PIXEL) as u64 > MOST_AT_ONCE {
        return Err(unreadable(format!(
            "a JPEG of {width} by {height} pixels does not fit into 1 GiB"
        )));
    }
    let about = tile_cutter::describe_pyramid(width as u32, height as u32)?;
    let pixels = decoder.decode().map_err(unreadable)?;
    let mut cutter = Cutter::new(about.clone())?;
    pixels
        .chunks_exact(width * PIXEL)
        .try_for_each(|row| cutter.row(row))?;
    Ok((cutter, about))
}
