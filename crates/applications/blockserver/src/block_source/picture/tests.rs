//! Pictures that were written by their crates are read back, tile by tile.

use super::*;
use crate::block_source::tile_cutter::TILE_BYTES;
use stackline_blocks::pyramid::Tile;
use std::io::{Seek, Write};
use std::os::unix::fs::FileExt;

const SIZE: (u32, u32) = (300, 200);

fn colour(x: u32, y: u32) -> [u8; 3] {
    [x as u8, y as u8, (x ^ y) as u8]
}

fn pixels() -> Vec<u8> {
    (0..SIZE.1)
        .flat_map(|y| (0..SIZE.0).flat_map(move |x| colour(x, y)))
        .collect()
}

fn tiles_of(form: PictureFormat, bytes: &[u8]) -> Result<(File, Pyramid)> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    cut(form, file, Path::new("picture"))
}

fn pixel((file, about): &(File, Pyramid), x: u32, y: u32) -> [u8; 3] {
    let number = about
        .number(Tile {
            level: 0,
            row: y / 128,
            column: x / 128,
        })
        .unwrap();
    let mut pixel = [0; 3];
    let at = number * u64::from(TILE_BYTES) + u64::from((y % 128) * 128 + x % 128) * 3;
    file.read_exact_at(&mut pixel, at).unwrap();
    pixel
}

fn is_right(cut: &(File, Pyramid)) {
    assert_eq!((cut.1.width, cut.1.height), SIZE);
    for (x, y) in [(0, 0), (127, 127), (128, 128), (299, 199), (13, 180)] {
        assert_eq!(pixel(cut, x, y), colour(x, y), "{x} {y}");
    }
}

fn png() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = ::png::Encoder::new(&mut bytes, SIZE.0, SIZE.1);
    encoder.set_color(::png::ColorType::Rgb);
    encoder
        .write_header()
        .unwrap()
        .write_image_data(&pixels())
        .unwrap();
    bytes
}

#[test]
fn png_comes_row_by_row() {
    is_right(&tiles_of(PictureFormat::Png, &png()).unwrap());
}

#[test]
fn tiff_comes_strip_by_strip() {
    use ::tiff::encoder::{TiffEncoder, colortype};
    let mut bytes = std::io::Cursor::new(Vec::new());
    let mut encoder = TiffEncoder::new(&mut bytes).unwrap();
    encoder
        .write_image::<colortype::RGB8>(SIZE.0, SIZE.1, &pixels())
        .unwrap();
    assert_eq!(
        PictureFormat::recognise(bytes.get_ref()),
        Some(PictureFormat::Tiff)
    );
    is_right(&tiles_of(PictureFormat::Tiff, bytes.get_ref()).unwrap());

    let mut bytes = std::io::Cursor::new(Vec::new());
    let grey: Vec<u16> = (0..SIZE.1)
        .flat_map(|y| (0..SIZE.0).map(move |x| ((x + y) as u8 as u16) << 8 | 7))
        .collect();
    TiffEncoder::new(&mut bytes)
        .unwrap()
        .write_image::<colortype::Gray16>(SIZE.0, SIZE.1, &grey)
        .unwrap();
    assert_eq!(
        pixel(
            &tiles_of(PictureFormat::Tiff, bytes.get_ref()).unwrap(),
            150,
            160
        ),
        [(150 + 160 - 256) as u8; 3]
    );
}

#[test]
fn what_is_cut_short_is_an_error() {
    let whole = png();
    for length in [8, 40, whole.len() / 2] {
        let error = tiles_of(PictureFormat::Png, &whole[..length]).unwrap_err();
        assert!(error.message.starts_with("picture: "), "{error:?}");
    }
    for form in [PictureFormat::Jpeg, PictureFormat::Tiff] {
        assert!(tiles_of(form, &whole[..100]).is_err());
    }
}

#[test]
fn forms_are_recognised_by_their_first_bytes() {
    assert_eq!(PictureFormat::recognise(&png()), Some(PictureFormat::Png));
    assert_eq!(
        PictureFormat::recognise(b"\xff\xd8\xff\xe0"),
        Some(PictureFormat::Jpeg)
    );
    assert_eq!(
        (
            PictureFormat::recognise(b"II+\0"),
            PictureFormat::recognise(b""),
            PictureFormat::recognise(b"II")
        ),
        (Some(PictureFormat::Tiff), None, None)
    );
}
