//! Reads TIFF, GeoTIFF and BigTIFF by rows of strips or tiles, and cuts them into tiles. The georeference is not kept.

use super::pixels::{MOST_AT_ONCE, Made, to_rgb, unreadable};
use crate::block_source::tile_cutter::{self, Cutter, PIXEL};
use stackline_core::error::Result;
use std::fs::File;
use std::io::BufReader;
use tiff::ColorType;
use tiff::decoder::{Decoder, DecodingResult, Limits};
use tiff::tags::Tag;

pub(crate) fn cut(file: File) -> Made {
    let mut limits = Limits::default();
    limits.decoding_buffer_size = MOST_AT_ONCE as usize;
    limits.intermediate_buffer_size = MOST_AT_ONCE as usize;
    limits.ifd_value_size = MOST_AT_ONCE as usize;
    let decoder = Decoder::new(BufReader::with_capacity(1 << 20, file)).map_err(unreadable)?;
    let mut decoder = decoder.with_limits(limits);
    let (width, height) = decoder.dimensions().map_err(unreadable)?;
    let about = tile_cutter::describe_pyramid(width, height)?;
    let colours = Colours::from_decoder(&mut decoder)?;
    let (chunk_width, chunk_height) = decoder.chunk_dimensions();
    if chunk_width == 0 || chunk_height == 0 {
        return Err(unreadable("its strips have no rows"));
    }
    let band = u64::from(width) * u64::from(chunk_height.min(height)) * PIXEL as u64;
    if band > MOST_AT_ONCE {
        return Err(unreadable("one of its strips does not fit into 1 GiB"));
    }
    let across = width.div_ceil(chunk_width);
    let row_bytes = width as usize * PIXEL;
    let mut cutter = Cutter::new(about.clone())?;
    let mut band = vec![0; band as usize];
    let mut rgb = Vec::new();
    for down in 0..height.div_ceil(chunk_height) {
        let rows = chunk_height.min(height - down * chunk_height) as usize;
        for column in 0..across {
            let index = down * across + column;
            let (wide, high) = decoder.chunk_data_dimensions(index);
            rgb.clear();
            colours.convert(decoder.read_chunk(index).map_err(unreadable)?, &mut rgb)?;
            let (wide, at) = (
                wide as usize * PIXEL,
                (column * chunk_width) as usize * PIXEL,
            );
            if rgb.len() < wide * high as usize || at + wide > row_bytes || (high as usize) < rows {
                return Err(unreadable("one of its strips is too short"));
            }
            for (from, to) in rgb
                .chunks_exact(wide)
                .zip(band.chunks_exact_mut(row_bytes))
                .take(rows)
            {
                to[at..at + wide].copy_from_slice(from);
            }
        }
        band.chunks_exact(row_bytes)
            .take(rows)
            .try_for_each(|row| cutter.row(row))?;
    }
    Ok((cutter, about))
}

/// How samples become red, green and blue.
enum Colours {
    /// This many samples per pixel, of which the first is grey or the first three are red, green, blue.
    Samples(usize),
    /// Each sample is an index in this table of colours.
    Palette(Vec<[u8; PIXEL]>),
}

impl Colours {
    fn from_decoder(decoder: &mut Decoder<BufReader<File>>) -> Result<Self> {
        let colours = decoder.colortype().map_err(unreadable)?;
        let planes = decoder
            .find_tag_unsigned::<u16>(Tag::PlanarConfiguration)
            .map_err(unreadable)?;
        if planes == Some(2) && colours.num_samples() > 1 {
            return Err(unreadable(
                "separate colour planes are not supported (`gdal_translate -co INTERLEAVE=PIXEL`)",
            ));
        }
        match colours {
            ColorType::Gray(8 | 16)
            | ColorType::GrayA(8 | 16)
            | ColorType::RGB(8 | 16)
            | ColorType::RGBA(8 | 16) => Ok(Self::Samples(colours.num_samples().into())),
            ColorType::Multiband {
                bit_depth: 8 | 16,
                num_samples: bands @ 1..,
            } => Ok(Self::Samples(bands.into())),
            ColorType::Palette(8) => {
                let map = decoder.get_tag_u16_vec(Tag::ColorMap).map_err(unreadable)?;
                // All reds come first, then all greens, then all blues, of 16 bits each.
                let third = map.len() / 3;
                let colour =
                    |index: usize| [0, 1, 2].map(|colour| (map[colour * third + index] >> 8) as u8);
                Ok(Self::Palette((0..third).map(colour).collect()))
            }
            other => Err(unreadable(format!(
                "its pixels are {other:?}, but only grey, colour and palette pixels of 8 and 16 bits are supported \
                 (`gdal_translate -ot Byte`)"
            ))),
        }
    }

    fn convert(&self, read: DecodingResult, rgb: &mut Vec<u8>) -> Result<()> {
        let samples = match read {
            DecodingResult::U8(samples) => samples,
            DecodingResult::U16(samples) => samples
                .into_iter()
                .map(|sample| (sample >> 8) as u8)
                .collect(),
            _ => {
                return Err(unreadable(
                    "its samples are not unsigned integers (`gdal_translate -ot Byte -scale`)",
                ));
            }
        };
        match self {
            Self::Samples(a_pixel) => to_rgb(&samples, *a_pixel, rgb),
            Self::Palette(table) => {
                let colour =
                    |index: &u8| table.get(usize::from(*index)).copied().unwrap_or_default();
                rgb.extend(samples.iter().flat_map(colour));
            }
        }
        Ok(())
    }
}
