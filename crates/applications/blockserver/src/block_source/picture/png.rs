//! Reads a PNG row by row (an interlaced one as a whole), and cuts it into tiles.

use super::pixels::{MOST_AT_ONCE, Made, to_rgb, unreadable};
use crate::block_source::tile_cutter::{self, Cutter};
use png::{Decoder, Limits, Transformations};
use std::fs::File;
use std::io::BufReader;

pub(crate) fn cut(file: File) -> Made {
    let limits = Limits {
        bytes: MOST_AT_ONCE as usize,
    };
    let mut decoder = Decoder::new_with_limits(BufReader::with_capacity(1 << 20, file), limits);
    decoder.set_transformations(Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(unreadable)?;
    let (width, height, interlaced) = (
        reader.info().width,
        reader.info().height,
        reader.info().interlaced,
    );
    let about = tile_cutter::describe_pyramid(width, height)?;
    let samples = reader.output_color_type().0.samples();
    let mut cutter = Cutter::new(about.clone())?;
    let mut rgb = Vec::new();
    let mut row = |samples_of_row: &[u8], cutter: &mut Cutter| {
        rgb.clear();
        to_rgb(samples_of_row, samples, &mut rgb);
        cutter.row(&rgb)
    };
    if interlaced {
        let size = reader
            .output_buffer_size()
            .filter(|size| *size as u64 <= MOST_AT_ONCE);
        let size = size.ok_or_else(|| unreadable("it is interlaced and larger than 1 GiB"))?;
        let mut all = vec![0; size];
        reader.next_frame(&mut all).map_err(unreadable)?;
        for samples_of_row in all.chunks_exact(width as usize * samples) {
            row(samples_of_row, &mut cutter)?;
        }
    } else {
        while let Some(next) = reader.next_row().map_err(unreadable)? {
            row(next.data(), &mut cutter)?;
        }
    }
    Ok((cutter, about))
}
