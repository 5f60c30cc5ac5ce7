//! Generated terrain: a picture that needs no data, the same for the same size and seed on every machine. Each tile is computed by itself.
//!
//! Heights are value noise of several octaves (lattices of random numbers, smoothly interpolated), coloured by height and shaded by a light
//! from the north-west. A coarse level leaves out the octaves that it could not show.

use super::tile_cutter::{self, PIXEL, SIDE, TILE_BYTES};
use crate::load::BlockSource;
use stackline_blocks::pyramid::{Pyramid, Tile};
use stackline_core::error::{Error, Result};

/// Points along a tile's side: its pixels, and one more on both sides for slopes.
const POINTS: usize = SIDE + 2;

/// A picture of terrain.
#[derive(Clone, Debug)]
pub struct Terrain {
    about: Pyramid,
    seed: u64,
}

impl Terrain {
    /// Parses `terrain:WIDTHxHEIGHT[:SEED]`; `None` for other texts.
    #[must_use]
    pub fn parse(text: &str) -> Option<Result<Self>> {
        let rest = text.strip_prefix("terrain:")?;
        let (size, seed) = rest.split_once(':').unwrap_or((rest, "1"));
        let sides = size
            .split_once('x')
            .and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
        let Some(((width, height), seed)) = sides.zip(seed.parse().ok()) else {
            let error = Error::input(format!("invalid terrain {text}"));
            return Some(Err(error.hint(
                "use terrain:WIDTHxHEIGHT or terrain:WIDTHxHEIGHT:SEED, as in terrain:4096x4096:7",
            )));
        };
        Some(tile_cutter::describe_pyramid(width, height).map(|about| Self { about, seed }))
    }

    /// The description of the picture.
    #[must_use]
    pub fn about(&self) -> Pyramid {
        self.about.clone()
    }

    /// The spacing of the coarsest octave's lattice, pixels: a fourth of the longer side, at least 64, rounded down to a power of two.
    fn longest(&self) -> i64 {
        1 << (self.about.width.max(self.about.height) / 4)
            .max(64)
            .ilog2()
    }

    /// The heights of a tile's pixels and those around them, from about -1 to 1.
    fn heights(&self, tile: Tile) -> Vec<f32> {
        let step = 1_i64 << tile.level;
        // The point before the first pixel, in the middle of what a pixel covers at this level.
        let origin = |tiles: u32| (i64::from(tiles) * SIDE as i64 - 1) * step + step / 2;
        let (left, top) = (origin(tile.column), origin(tile.row));
        let mut heights = vec![0.0; POINTS * POINTS];
        // 1/2 + 1/4 + ... stays below 1.
        let (mut wavelength, mut share) = (self.longest(), 0.5);
        // A wave shorter than two points cannot be shown: it would only be noise.
        while wavelength >= (2 * step).max(4) {
            self.add_octave(&mut heights, [left, top], step, wavelength, share);
            (wavelength, share) = (wavelength / 2, share / 2.0);
        }
        heights
    }

    fn add_octave(
        &self,
        heights: &mut [f32],
        corner: [i64; 2],
        step: i64,
        wavelength: i64,
        share: f32,
    ) {
        let [left, top] = corner;
        // Without it, each octave would repeat the lattice of the one before.
        let salt = scattered(self.seed ^ wavelength as u64);
        let across: Vec<(i64, f32)> = (0..POINTS as i64)
            .map(|at| place(left + at * step, wavelength))
            .collect();
        let first = across[0].0;
        // One for the count itself, one for the lattice point after the last place.
        let count = (across[POINTS - 1].0 - first + 2) as usize;
        let lattice = |y: i64| -> Vec<f32> {
            (0..count as i64)
                .map(|x| value(salt, first + x, y))
                .collect()
        };
        let mut rows: Option<(i64, Vec<f32>, Vec<f32>)> = None;
        for (row, heights) in heights.chunks_exact_mut(POINTS).enumerate() {
            let (y, down) = place(top + row as i64 * step, wavelength);
            // At fine levels many rows lie between the same two rows of the lattice.
            let (_, above, below) = match rows.take() {
                Some(same) if same.0 == y => rows.insert(same),
                Some((before, _, below)) if before + 1 == y => {
                    rows.insert((y, below, lattice(y + 1)))
                }
                _ => rows.insert((y, lattice(y), lattice(y + 1))),
            };
            for (height, (x, right)) in heights.iter_mut().zip(&across) {
                let at = (x - first) as usize;
                let upper = above[at] + (above[at + 1] - above[at]) * right;
                let lower = below[at] + (below[at + 1] - below[at]) * right;
                *height += share * (upper + (lower - upper) * down);
            }
        }
    }

    fn tile(&self, tile: Tile, into: &mut Vec<u8>) {
        let heights = self.heights(tile);
        // The factor that makes slopes look equally steep at each level.
        let relief = self.longest() as f32 * 0.35 / (1_u64 << tile.level) as f32;
        let size = |pixels: u32| u64::from(pixels).div_ceil(1 << tile.level);
        let (width, height) = (size(self.about.width), size(self.about.height));
        for y in 0..SIDE {
            for x in 0..SIDE {
                let within = |at: usize, tiles: u32, most: u64| {
                    at as u64 + u64::from(tiles) * (SIDE as u64) < most
                };
                if !within(x, tile.column, width) || !within(y, tile.row, height) {
                    into.extend([0; PIXEL]);
                    continue;
                }
                let at = (y + 1) * POINTS + x + 1;
                let east = (heights[at + 1] - heights[at - 1]) * relief;
                let south = (heights[at + POINTS] - heights[at - POINTS]) * relief;
                into.extend(coloured(heights[at], east, south));
            }
        }
    }
}

impl BlockSource for Terrain {
    fn block(&mut self, number: u64, into: &mut Vec<u8>) -> Result<()> {
        into.reserve(TILE_BYTES as usize);
        if let Some(tile) = self.about.tile(number) {
            self.tile(tile, into);
        }
        Ok(())
    }
}

/// The lattice point before a position, and the position's fraction from it to the next: 0 to 1, smoothed so that slopes have no edges.
fn place(at: i64, wavelength: i64) -> (i64, f32) {
    let part = at.rem_euclid(wavelength) as f32 / wavelength as f32;
    (at.div_euclid(wavelength), part * part * (3.0 - 2.0 * part))
}

/// The pseudo-random height of a lattice point, from -1 to 1.
fn value(salt: u64, x: i64, y: i64) -> f32 {
    let bits = scattered(salt ^ scattered((x as u64) << 32 ^ (y as u64 & 0xffff_ffff)));
    // 24 bits: as many as an `f32` holds exactly.
    (bits >> 40) as f32 / (1_u32 << 23) as f32 - 1.0
}

/// Hashes a number so that every bit of the result depends on every bit of the input (the finaliser of SplitMix64).
const fn scattered(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Heights and their colours (RGB); colours in between are interpolated.
const COLOURS: [(f32, [f32; 3]); 7] = [
    (-0.70, [18.0, 44.0, 94.0]),
    (-0.12, [62.0, 124.0, 168.0]),
    (-0.10, [206.0, 194.0, 146.0]),
    (-0.04, [96.0, 142.0, 74.0]),
    (0.22, [64.0, 104.0, 56.0]),
    (0.40, [126.0, 110.0, 90.0]),
    (0.58, [244.0, 246.0, 250.0]),
];

/// The colour of a point with this height and these slopes to the east and the south. Water is flat.
fn coloured(height: f32, east: f32, south: f32) -> [u8; PIXEL] {
    let above = COLOURS
        .iter()
        .position(|(at, _)| height < *at)
        .unwrap_or(COLOURS.len() - 1)
        .max(1);
    let ((low, first), (high, second)) = (COLOURS[above - 1], COLOURS[above]);
    let part = ((height - low) / (high - low)).clamp(0.0, 1.0);
    // The light comes from the north-west at 45 degrees; the surface normal is (-east, -south, 1).
    let lit = if height < COLOURS[1].0 {
        1.0
    } else {
        (0.5 * east + 0.5 * south + 0.707) / (east * east + south * south + 1.0).sqrt() / 0.707
    };
    [0, 1, 2].map(|at| {
        ((first[at] + (second[at] - first[at]) * part) * lit.clamp(0.25, 1.35)).clamp(0.0, 255.0)
            as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terrain(text: &str) -> Terrain {
        Terrain::parse(text).unwrap().unwrap()
    }

    fn tile(text: &str, level: u8, row: u32, column: u32) -> Vec<u8> {
        let mut into = Vec::new();
        terrain(text).tile(Tile { level, row, column }, &mut into);
        into
    }

    #[test]
    fn it_is_the_same_everywhere_and_differs_by_seed() {
        let first = tile("terrain:1024x1024:7", 0, 3, 4);
        assert_eq!(first.len(), TILE_BYTES as usize);
        assert_eq!(first, tile("terrain:1024x1024:7", 0, 3, 4));
        assert_ne!(first, tile("terrain:1024x1024:8", 0, 3, 4));
        // Kept from when it was written: sets that were loaded then and now are the same.
        assert_eq!(crc(&first), 4_040_391_030_265_588_741);
    }

    fn crc(bytes: &[u8]) -> u64 {
        bytes
            .iter()
            .fold(0, |sum, byte| scattered(sum ^ u64::from(*byte)))
    }

    #[test]
    fn tiles_go_on_in_their_neighbours() {
        let (west, east) = (terrain("terrain:1024x1024"), terrain("terrain:1024x1024"));
        let west = west.heights(Tile {
            level: 1,
            row: 1,
            column: 1,
        });
        let east = east.heights(Tile {
            level: 1,
            row: 1,
            column: 2,
        });
        for row in 0..POINTS {
            // The last two columns of one are the first two of the other.
            assert_eq!(west[row * POINTS + SIDE..][..2], east[row * POINTS..][..2]);
        }
    }

    #[test]
    fn a_coarse_level_shows_the_same_land() {
        let terrain = terrain("terrain:2048x2048:3");
        let fine = terrain.heights(Tile {
            level: 0,
            row: 4,
            column: 4,
        });
        let coarse = terrain.heights(Tile {
            level: 3,
            row: 0,
            column: 0,
        });
        // The middle of a tile in the fine level, and the pixel over it.
        let at = |x: usize, y: usize| (y + 1) * POINTS + x + 1;
        let mean: f32 = (0..8)
            .flat_map(|y| (0..8).map(move |x| (x, y)))
            .map(|(x, y)| fine[at(64 + x, 64 + y)])
            .sum::<f32>()
            / 64.0;
        assert!(
            (mean - coarse[at(72, 72)]).abs() < 0.03,
            "{mean} {}",
            coarse[at(72, 72)]
        );
    }

    #[test]
    fn what_is_beyond_the_picture_is_black() {
        let edge = tile("terrain:200x200", 0, 1, 1);
        assert_eq!(
            edge[(71 * SIDE + 71) * PIXEL..][..3]
                .iter()
                .filter(|byte| **byte > 0)
                .count(),
            3
        );
        assert_eq!(edge[(71 * SIDE + 72) * PIXEL..][..3], [0; 3]);
        assert_eq!(edge[72 * SIDE * PIXEL..][..3], [0; 3]);
    }

    #[test]
    fn texts_that_are_no_terrain() {
        assert!(Terrain::parse("map.png").is_none());
        for text in [
            "terrain:",
            "terrain:5",
            "terrain:5x",
            "terrain:0x5",
            "terrain:5x5:x",
            "terrain:9999999x5",
        ] {
            assert!(Terrain::parse(text).unwrap().is_err(), "{text}");
        }
    }
}
