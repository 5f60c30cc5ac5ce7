//! Encodes tiles as PNG, fast rather than small.

use super::fault::GatewayFault;
use crate::tile;
pub(super) use crate::tile::find_colour_type;
use hyper::StatusCode;
use stackline_blocks::pyramid::Pyramid;

/// Tiles of at least this many bytes are encoded in a thread of their own, so that they delay nobody.
pub(super) const LARGE: usize = 256 << 10;

/// Checks that the tiles of a picture can be encoded as PNG.
pub(super) fn check_drawable(
    name: &str,
    picture: Option<&Pyramid>,
) -> Result<(Pyramid, png::ColorType), GatewayFault> {
    let picture = picture
        .ok_or_else(|| GatewayFault::not_found(format!("the set {name} is not a picture")))?;
    let colours = find_colour_type(picture).ok_or_else(|| {
        let words = format!(
            "the pixels of {name} have {} bytes each, which PNG does not support",
            picture.pixel_bytes
        );
        GatewayFault::not_found(words)
    })?;
    Ok((picture.clone(), colours))
}

/// Encodes a tile as PNG.
pub(super) fn encode_picture(
    picture: &Pyramid,
    colours: png::ColorType,
    pixels: &[u8],
) -> Result<Vec<u8>, GatewayFault> {
    tile::encode_png(picture, colours, pixels, png::Compression::Fastest)
        .map_err(|error| GatewayFault::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_come_back_out_of_the_picture() {
        for pixel_bytes in 1..=4 {
            let picture = Pyramid {
                width: 64,
                height: 64,
                tile: 32,
                pixel_bytes,
            };
            let pixels: Vec<u8> = (0..picture.tile_bytes())
                .map(|at| (at * at / 7) as u8)
                .collect();
            let (picture, colours) = check_drawable("map", Some(&picture)).unwrap();
            let file = encode_picture(&picture, colours, &pixels).unwrap();
            let mut reader = png::Decoder::new(std::io::Cursor::new(file))
                .read_info()
                .unwrap();
            let mut back = vec![0; reader.output_buffer_size().unwrap()];
            let info = reader.next_frame(&mut back).unwrap();
            assert_eq!(
                (info.width, info.height, info.color_type),
                (32, 32, colours)
            );
            assert_eq!(back, pixels);
        }
        let odd = Pyramid {
            width: 64,
            height: 64,
            tile: 32,
            pixel_bytes: 5,
        };
        assert_eq!(
            check_drawable("map", Some(&odd)).unwrap_err().status,
            StatusCode::NOT_FOUND
        );
    }
}
