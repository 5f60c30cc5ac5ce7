//! A picture at several resolutions, cut into square tiles: which block is which tile.
//!
//! Level 0 is the full resolution, each further one has half of it in both directions, the last is one tile. Tiles are
//! numbered level by level, row by row. A tile of 128 by 128 pixels of three bytes is a block of 48 KiB.

use crate::wire::codec::record;

record! {
    /// The size of a picture and of its tiles.
    pub struct Pyramid {
        /// Width of the full resolution, pixels.
        pub width: u32,
        /// Height of the full resolution, pixels.
        pub height: u32,
        /// Side of a square tile, pixels.
        pub tile: u16,
        /// Bytes per pixel.
        pub pixel_bytes: u8,
    }
}

/// The position of a tile in a [`Pyramid`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tile {
    /// The level, 0 for the full resolution.
    pub level: u8,
    /// The row within the level, counted from the top.
    pub row: u32,
    /// The column within the level, counted from the left.
    pub column: u32,
}

impl Pyramid {
    /// Columns and rows of tiles at a level, or (0, 0) if the tile size is 0. It is (1, 1) at every level at which one tile covers the
    /// whole picture.
    #[must_use]
    pub const fn grid(&self, level: u8) -> (u32, u32) {
        if self.tile == 0 {
            return (0, 0);
        }
        // No larger shift is needed: at level 32 even a tile of one pixel covers 2^32 pixels, more than a side can have.
        let side = (self.tile as u64) << if level < 32 { level } else { 32 };
        let (columns, rows) = (
            (self.width as u64).div_ceil(side),
            (self.height as u64).div_ceil(side),
        );
        (columns as u32, rows as u32)
    }

    /// The number of levels, at least 1.
    #[must_use]
    pub const fn levels(&self) -> u8 {
        let mut level = 0;
        while !matches!(self.grid(level), (0 | 1, 0 | 1)) && level < 31 {
            level += 1;
        }
        level + 1
    }

    /// The number of tiles at one level.
    const fn tiles_of(&self, level: u8) -> u64 {
        let (columns, rows) = self.grid(level);
        // Two factors below 2^32: the product fits.
        columns as u64 * rows as u64
    }

    /// The number of tiles at all levels together.
    #[must_use]
    pub fn tiles(&self) -> u64 {
        (0..self.levels())
            .map(|level| self.tiles_of(level))
            .fold(0, u64::saturating_add)
    }

    /// Bytes of one tile.
    #[must_use]
    pub const fn tile_bytes(&self) -> u64 {
        self.tile as u64 * self.tile as u64 * self.pixel_bytes as u64
    }

    /// The number of the block that holds a tile; `None` if the picture has no such tile.
    #[must_use]
    pub fn number(&self, tile: Tile) -> Option<u64> {
        if tile.level >= self.levels() {
            return None;
        }
        let (columns, rows) = self.grid(tile.level);
        if tile.column >= columns || tile.row >= rows {
            return None;
        }
        let before =
            (0..tile.level).try_fold(0_u64, |sum, level| sum.checked_add(self.tiles_of(level)))?;
        before
            .checked_add(u64::from(tile.row) * u64::from(columns))?
            .checked_add(u64::from(tile.column))
    }

    /// The tile that a block holds; `None` if the picture has no such block.
    #[must_use]
    pub fn tile(&self, number: u64) -> Option<Tile> {
        let mut rest = number;
        for level in 0..self.levels() {
            let of_level = self.tiles_of(level);
            if rest < of_level {
                // Not 0: the level has at least this tile.
                let columns = u64::from(self.grid(level).0);
                return Some(Tile {
                    level,
                    row: (rest / columns) as u32,
                    column: (rest % columns) as u32,
                });
            }
            rest -= of_level;
        }
        None
    }

    /// Whether the tiles of this picture are exactly `blocks` blocks of `block_size` bytes each.
    #[must_use]
    pub fn fits(&self, blocks: u64, block_size: u32) -> bool {
        let sized = self.width > 0 && self.height > 0 && self.tile > 0 && self.pixel_bytes > 0;
        sized && self.tile_bytes() == u64::from(block_size) && self.tiles() == blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PICTURE: Pyramid = Pyramid {
        width: 1000,
        height: 300,
        tile: 128,
        pixel_bytes: 3,
    };

    #[test]
    fn levels_end_with_one_tile() {
        let grids: alloc::vec::Vec<_> = (0..PICTURE.levels())
            .map(|level| PICTURE.grid(level))
            .collect();
        assert_eq!(grids, [(8, 3), (4, 2), (2, 1), (1, 1)]);
        assert_eq!(PICTURE.tiles(), 24 + 8 + 2 + 1);
        assert_eq!(PICTURE.tile_bytes(), 48 << 10);
    }

    #[test]
    fn no_picture_and_no_tile_that_somebody_names_does_harm() {
        let sides = [0, 1, 7, u32::MAX];
        for (width, height) in sides
            .iter()
            .flat_map(|width| sides.map(|height| (*width, height)))
        {
            for tile in [0, 1, 128, 256, u16::MAX] {
                let picture = Pyramid {
                    width,
                    height,
                    tile,
                    pixel_bytes: 255,
                };
                let (levels, tiles) = (picture.levels(), picture.tiles());
                assert!(levels <= 32 && !picture.fits(tiles, 0));
                for level in 0..=u8::MAX {
                    let (columns, rows) = picture.grid(level);
                    let number = picture.number(Tile {
                        level,
                        row: 0,
                        column: 0,
                    });
                    assert!(
                        number.is_none() || (level < levels && columns > 0 && rows > 0),
                        "{picture:?}, {level}"
                    );
                    assert_eq!(
                        picture.number(Tile {
                            level,
                            row: u32::MAX,
                            column: u32::MAX
                        }),
                        None
                    );
                }
                let _ = picture.tile(u64::MAX);
            }
        }
        assert_eq!(
            PICTURE.number(Tile {
                level: 57,
                row: 0,
                column: 0
            }),
            None
        );
    }

    #[test]
    fn every_block_is_one_tile() {
        for number in 0..PICTURE.tiles() {
            let tile = PICTURE.tile(number).unwrap();
            assert_eq!(PICTURE.number(tile), Some(number));
        }
        assert_eq!(PICTURE.tile(PICTURE.tiles()), None);
        assert_eq!(
            PICTURE.number(Tile {
                level: 1,
                row: 0,
                column: 4
            }),
            None
        );
    }
}
