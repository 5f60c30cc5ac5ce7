//! One tile of a picture, as PNG.

use crate::exit::{Error, Result};
use stackline_blocks::pyramid::{Pyramid, Tile};
use stackline_blocks::set::BlockSet;

fn picture(about: &BlockSet) -> Result<&Pyramid> {
    about.picture.as_ref().ok_or_else(|| {
        Error::input(format!("the set {} is no picture", about.name))
            .hint("leave --tile out; --blocks reads a part of it")
    })
}

/// The block of a tile: its level, row and column.
pub(super) fn find_tile_block(
    about: &BlockSet,
    (level, row, column): (u8, u32, u32),
) -> Result<u64> {
    let picture = picture(about)?;
    picture.number(Tile { level, row, column }).ok_or_else(|| {
        let error = Error::input(format!(
            "the picture {} has no tile {level}/{row}/{column}",
            about.name
        ));
        let last = picture.levels() - 1;
        let (columns, rows) = picture.grid(level.min(last));
        error.hint(format!(
            "levels are 0 to {last}; level {} has rows 0 to {} and columns 0 to {}",
            level.min(last),
            rows - 1,
            columns - 1
        ))
    })
}

/// Pixels as PNG.
pub(super) fn encode_png(about: &BlockSet, pixels: &[u8]) -> Result<Vec<u8>> {
    let picture = picture(about)?;
    let colour = match picture.pixel_bytes {
        1 => png::ColorType::Grayscale,
        2 => png::ColorType::GrayscaleAlpha,
        3 => png::ColorType::Rgb,
        4 => png::ColorType::Rgba,
        bytes => {
            return Err(Error::input(format!(
                "pixels of {bytes} bytes have no form in PNG"
            )));
        }
    };
    let failed = |error: png::EncodingError| {
        Error::measurement(format!("the tile cannot be written as PNG: {error}"))
    };
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, picture.tile.into(), picture.tile.into());
    encoder.set_color(colour);
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(pixels).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(bytes)
}
