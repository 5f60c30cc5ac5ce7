//! Tiles of a picture: the block that holds a tile, and a tile's pixels as PNG.

use stackline_blocks::pyramid::{Pyramid, Tile};
use stackline_blocks::set::BlockSet;
use stackline_core::error::{Error, Result};

/// The picture of a set.
fn picture(about: &BlockSet) -> Result<&Pyramid> {
    about.picture.as_ref().ok_or_else(|| {
        Error::input(format!("the set {} is not a picture", about.name))
            .hint("omit --tile; use --blocks to read a part of it")
    })
}

/// The number of the block that holds a tile.
///
/// # Errors
/// If the set has no such tile.
pub fn find_tile_block(about: &BlockSet, tile: Tile) -> Result<u64> {
    let picture = picture(about)?;
    let Tile { level, row, column } = tile;
    picture.number(tile).ok_or_else(|| {
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

/// The PNG colour type for the bytes per pixel: grey, grey and alpha, RGB, RGBA.
pub(crate) const fn find_colour_type(picture: &Pyramid) -> Option<png::ColorType> {
    match picture.pixel_bytes {
        1 => Some(png::ColorType::Grayscale),
        2 => Some(png::ColorType::GrayscaleAlpha),
        3 => Some(png::ColorType::Rgb),
        4 => Some(png::ColorType::Rgba),
        _ => None,
    }
}

/// Encodes the pixels of a tile as PNG.
pub(crate) fn encode_png(
    picture: &Pyramid,
    colours: png::ColorType,
    pixels: &[u8],
    compression: png::Compression,
) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::with_capacity(pixels.len() / 2);
    let side = u32::from(picture.tile);
    let mut encoder = png::Encoder::new(&mut bytes, side, side);
    encoder.set_color(colours);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(compression);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(bytes)
}

/// Encodes the pixels of a tile of a set as PNG, for a file.
///
/// # Errors
/// If the set is not a picture, or PNG has no such pixels.
pub fn png_of(about: &BlockSet, pixels: &[u8]) -> Result<Vec<u8>> {
    let picture = picture(about)?;
    let colours = find_colour_type(picture).ok_or_else(|| {
        let bytes = picture.pixel_bytes;
        Error::input(format!("PNG does not support {bytes}-byte pixels"))
    })?;
    encode_png(picture, colours, pixels, png::Compression::default())
        .map_err(|error| Error::measurement(format!("cannot write the tile as PNG: {error}")))
}
