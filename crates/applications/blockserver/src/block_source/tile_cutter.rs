//! Cuts a picture that comes row by row into the tiles of a pyramid. Each level is the box average of the one below. The tiles are written
//! to an unnamed file. Memory: two rows of tiles of the full resolution, whatever the picture's height.

use stackline_blocks::pyramid::{Pyramid, Tile};
use stackline_core::error::{Error, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The side of a tile, pixels.
pub(crate) const SIDE: usize = 128;
/// Bytes of a pixel: red, green, blue.
pub(crate) const PIXEL: usize = 3;
/// Bytes of a tile.
pub(crate) const TILE_BYTES: u32 = (SIDE * SIDE * PIXEL) as u32;
/// The largest side of a picture, pixels: coordinates stay exact, and a row of tiles fits into memory.
pub(crate) const MOST_PIXELS: u32 = 1 << 20;

/// The description of a picture of that size.
pub(crate) fn describe_pyramid(width: u32, height: u32) -> Result<Pyramid> {
    if !(1..=MOST_PIXELS).contains(&width) || !(1..=MOST_PIXELS).contains(&height) {
        let error = Error::input(format!(
            "a picture of {width} by {height} pixels cannot be cut into tiles"
        ));
        return Err(error.hint("each side must have 1 to 1,048,576 pixels"));
    }
    Ok(Pyramid {
        width,
        height,
        tile: SIDE as u16,
        pixel_bytes: PIXEL as u8,
    })
}

struct PyramidLevel {
    /// The width of this level, pixels.
    width: usize,
    height: usize,
    rows: usize,
    /// The row of tiles that is being filled; columns beyond the picture are black.
    band: Vec<u8>,
    /// The first row of the two that become one above.
    odd: Option<Vec<u8>>,
}

/// Cuts a picture into tiles.
pub(crate) struct Cutter {
    about: Pyramid,
    file: File,
    levels: Vec<PyramidLevel>,
}

impl Cutter {
    pub(crate) fn new(about: Pyramid) -> Result<Self> {
        let file = stackline_guard::scratch::create_file().map_err(|error| unwritten(&error))?;
        let levels = (0..about.levels()).map(|level| {
            let size = |pixels: u32| (u64::from(pixels)).div_ceil(1 << level) as usize;
            let (width, height) = (size(about.width), size(about.height));
            PyramidLevel {
                width,
                height,
                rows: 0,
                band: vec![0; width.next_multiple_of(SIDE) * SIDE * PIXEL],
                odd: None,
            }
        });
        let levels = levels.collect();
        Ok(Self {
            about,
            file,
            levels,
        })
    }

    /// Takes the next row of the full resolution.
    pub(crate) fn row(&mut self, row: &[u8]) -> Result<()> {
        self.row_of(0, row)
    }

    fn row_of(&mut self, at: usize, row: &[u8]) -> Result<()> {
        let is_top = at + 1 == self.levels.len();
        let level = &mut self.levels[at];
        let stride = level.width.next_multiple_of(SIDE) * PIXEL;
        let within = level.rows % SIDE;
        level.band[within * stride..][..level.width * PIXEL]
            .copy_from_slice(&row[..level.width * PIXEL]);
        level.rows += 1;
        let is_last = level.rows == level.height;
        // The last row of an odd height has no partner: it counts twice.
        let above = match level.odd.take() {
            _ if is_top => None,
            Some(first) => Some(halved(&first, row)),
            None if is_last => Some(halved(row, row)),
            None => {
                level.odd = Some(row.to_vec());
                None
            }
        };
        if within + 1 == SIDE || is_last {
            self.write_band(at)?;
        }
        above.map_or(Ok(()), |above| self.row_of(at + 1, &above))
    }

    fn write_band(&mut self, at: usize) -> Result<()> {
        let level = &mut self.levels[at];
        let stride = level.width.next_multiple_of(SIDE) * PIXEL;
        // At least one row has come.
        let row = ((level.rows - 1) / SIDE) as u32;
        let mut tile = vec![0; TILE_BYTES as usize];
        for column in 0..level.width.div_ceil(SIDE) {
            for (from, to) in level
                .band
                .chunks_exact(stride)
                .zip(tile.chunks_exact_mut(SIDE * PIXEL))
            {
                to.copy_from_slice(&from[column * SIDE * PIXEL..][..SIDE * PIXEL]);
            }
            let number = self.about.number(Tile {
                level: at as u8,
                row,
                column: column as u32,
            });
            // Every tile here has a number: the levels are those of `about`.
            let offset = number.unwrap_or(0) * u64::from(TILE_BYTES);
            self.file
                .write_all_at(&tile, offset)
                .map_err(|error| unwritten(&error))?;
        }
        // The last band may have fewer rows: it must not show those of the one before.
        level.band.fill(0);
        Ok(())
    }

    /// Returns the file of all tiles, in the order of their blocks.
    pub(crate) fn finish(self) -> Result<File> {
        let missing = self
            .levels
            .first()
            .map_or(0, |level| level.height - level.rows);
        if missing > 0 {
            return Err(Error::input(format!(
                "the picture ends too early (missing rows: {missing})"
            )));
        }
        Ok(self.file)
    }
}

fn unwritten(error: &std::io::Error) -> Error {
    Error::environment(format!(
        "cannot write the tiles to a temporary file: {error}"
    ))
    .hint("set TMPDIR to a directory with enough space for the set")
}

/// A row of half the length: each pixel is the mean of the up to four pixels below it.
fn halved(first: &[u8], second: &[u8]) -> Vec<u8> {
    let pairs = first.chunks(2 * PIXEL).zip(second.chunks(2 * PIXEL));
    let mut row = Vec::with_capacity(first.len().div_ceil(2 * PIXEL) * PIXEL);
    for (a, b) in pairs {
        for colour in 0..PIXEL {
            // The last column of an odd width counts twice.
            let right = if a.len() == 2 * PIXEL {
                colour + PIXEL
            } else {
                colour
            };
            let sum = [a[colour], a[right], b[colour], b[right]]
                .map(u16::from)
                .iter()
                .sum::<u16>();
            // To the nearest: rounded down, each level would be a little darker.
            row.push(((sum + 2) / 4) as u8);
        }
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_averages_and_edges_are_black() {
        let about = describe_pyramid(300, 130).unwrap();
        let mut cutter = Cutter::new(about.clone()).unwrap();
        for y in 0..130_u32 {
            let row: Vec<u8> = (0..300_u32)
                .flat_map(|x| [x as u8, y as u8, 8 * (x % 2 + y % 2) as u8])
                .collect();
            cutter.row(&row).unwrap();
        }
        let file = cutter.finish().unwrap();
        let pixel = |level, x: u32, y: u32| {
            let tile = Tile {
                level,
                row: y / 128,
                column: x / 128,
            };
            let at = about.number(tile).unwrap() * u64::from(TILE_BYTES);
            let mut pixel = [0; 3];
            file.read_exact_at(&mut pixel, at + u64::from((y % 128) * 128 + x % 128) * 3)
                .unwrap();
            pixel
        };
        assert_eq!(about.tiles(), 6 + 2 + 1);
        assert_eq!(
            (pixel(0, 200, 129), pixel(0, 255, 1)),
            ([200, 129, 8], [255, 1, 16])
        );
        assert_eq!((pixel(0, 300, 0), pixel(0, 0, 130)), ([0; 3], [0; 3]));
        // The mean of 10 and 11 is 10.5, rounded up; of the pattern below it, 8.
        assert_eq!(pixel(1, 5, 7), [11, 15, 8]);
        assert_eq!(pixel(2, 2, 3)[2], 8);
        assert_eq!(pixel(1, 150, 0), [0; 3]);
    }

    #[test]
    fn a_picture_that_ends_early_is_refused() {
        let mut cutter = Cutter::new(describe_pyramid(10, 3).unwrap()).unwrap();
        cutter.row(&[0; 30]).unwrap();
        assert!(
            cutter
                .finish()
                .unwrap_err()
                .message
                .contains("missing rows: 2")
        );
        assert!(describe_pyramid(0, 5).is_err() && describe_pyramid(5, 1 << 21).is_err());
    }
}
