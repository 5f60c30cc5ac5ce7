//! A simulated person who looks at a large picture: which tiles of the pyramid are needed at each moment while the view pans, zooms, or
//! flies over terrain (TerraVision asks every 200 ms; Tierney et al. 1996, section 2.1.4).
//!
//! Nothing is drawn and no state is kept: the same motion at the same moment needs the same tiles, nearest first.

use crate::pyramid::{Pyramid, Tile};
use alloc::vec::Vec;
use libm::{atan2, cos, fabs, log2, sin, sqrt};

/// How the view moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewerMotion {
    /// Along the rows at full resolution, reversing at the edges.
    Pan,
    /// From the whole picture into its full resolution and out again.
    Zoom,
    /// Forward over the picture, with far tiles coarser than near ones.
    Flight,
}

stackline_core::named_values!(ViewerMotion,
    Pan = "pan", "Along the rows at full resolution";
    Zoom = "zoom", "Into the picture and out again";
    Flight = "flight", "Forward over the picture, with far tiles coarser than near ones");

/// A person who looks at a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PyramidViewer {
    /// How the view moves.
    pub path: ViewerMotion,
    /// Width and height of the window, pixels.
    pub window: (u32, u32),
    /// Pixels of the full resolution that the view passes per second.
    pub speed: f64,
}

impl Default for PyramidViewer {
    /// A flight over a window of 1024 by 768 pixels, 400 pixels a second.
    fn default() -> Self {
        Self {
            path: ViewerMotion::Flight,
            window: (1024, 768),
            speed: 400.0,
        }
    }
}

impl PyramidViewer {
    /// The blocks that are needed `seconds` after the beginning, the most important first.
    #[must_use]
    pub fn needs(&self, picture: &Pyramid, seconds: f64) -> Vec<u64> {
        let mut tiles = match self.path {
            ViewerMotion::Pan => self.pan(picture, seconds),
            ViewerMotion::Zoom => self.zoom(picture, seconds),
            ViewerMotion::Flight => self.flight(picture, seconds),
        };
        tiles.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        tiles
            .iter()
            .filter_map(|(_, tile)| picture.number(*tile))
            .collect()
    }

    /// The tiles that a pan needs, each with its distance as the sort key.
    fn pan(&self, picture: &Pyramid, seconds: f64) -> Vec<(f64, Tile)> {
        let (width, height) = (f64::from(picture.width), f64::from(picture.height));
        let (window_width, window_height) = (f64::from(self.window.0), f64::from(self.window.1));
        let line = (width - window_width).max(1.0);
        let distance = self.speed * seconds;
        let rows = libm::floor(distance / line);
        let x = bounce(distance, line);
        let y = bounce(
            rows * window_height / 2.0,
            (height - window_height).max(1.0),
        );
        window(picture, 0, (x, y), (window_width, window_height))
    }

    /// The tiles that a zoom needs, each with its distance as the sort key.
    fn zoom(&self, picture: &Pyramid, seconds: f64) -> Vec<(f64, Tile)> {
        let deepest = f64::from(picture.levels() - 1);
        // The zoom passes one level in the time in which half a window width passes at full resolution.
        let level = deepest
            - bounce(
                self.speed * seconds / f64::from(self.window.0) * 2.0,
                deepest.max(1.0),
            );
        let at = libm::round(level.clamp(0.0, deepest));
        let scale = libm::exp2(at);
        let (width, height) = (
            f64::from(self.window.0) * scale,
            f64::from(self.window.1) * scale,
        );
        let corner = |size: u32, seen: f64| (f64::from(size) / 2.0 - seen / 2.0).max(0.0);
        let from = (corner(picture.width, width), corner(picture.height, height));
        window(picture, at as u8, from, (width, height))
    }

    /// The tiles of a wedge in front of the viewer, each with its distance as the sort key: full resolution up to half a window's width
    /// away, and each coarser level twice as far.
    fn flight(&self, picture: &Pyramid, seconds: f64) -> Vec<(f64, Tile)> {
        let (width, height) = (f64::from(picture.width), f64::from(picture.height));
        // The viewer flies around the middle of the picture, on a circle whose radius is a third of its shorter side.
        let radius = (width.min(height) / 3.0).max(1.0);
        let turn = self.speed * seconds / radius;
        let (x, y) = (
            width / 2.0 + radius * cos(turn),
            height / 2.0 + radius * sin(turn),
        );
        let heading = turn + core::f64::consts::FRAC_PI_2;
        let near = f64::from(self.window.0) / 2.0;
        let half_angle = core::f64::consts::FRAC_PI_6;
        let mut tiles = Vec::new();
        for level in 0..picture.levels() {
            let (inner, outer) = if level == 0 {
                (0.0, near)
            } else {
                (
                    near * libm::exp2(f64::from(level) - 1.0),
                    near * libm::exp2(f64::from(level)),
                )
            };
            let side = f64::from(picture.tile) * libm::exp2(f64::from(level));
            let (columns, rows) = picture.grid(level);
            let range = |centre: f64, count: u32| {
                let first = ((centre - outer) / side).max(0.0) as u32;
                let last = ((centre + outer) / side).max(0.0) as u32;
                first.min(count)..(last.saturating_add(1)).min(count)
            };
            for row in range(y, rows) {
                for column in range(x, columns) {
                    let (dx, dy) = (
                        (f64::from(column) + 0.5) * side - x,
                        (f64::from(row) + 0.5) * side - y,
                    );
                    let distance = sqrt(dx * dx + dy * dy);
                    let mut off = fabs(atan2(dy, dx) - heading) % core::f64::consts::TAU;
                    // The angle between both directions, whichever way round.
                    if off > core::f64::consts::PI {
                        off = core::f64::consts::TAU - off;
                    }
                    // A tile whose centre is just outside the wedge still reaches into it.
                    let reach = side * core::f64::consts::FRAC_1_SQRT_2;
                    let seen = off <= half_angle + atan2(reach, distance.max(reach));
                    if seen && distance + reach > inner && distance - reach < outer {
                        tiles.push((log2(1.0 + distance), Tile { level, row, column }));
                    }
                }
            }
        }
        tiles
    }
}

/// A position that moves back and forth between 0 and `length`.
fn bounce(distance: f64, length: f64) -> f64 {
    let at = distance % (2.0 * length);
    if at > length { 2.0 * length - at } else { at }
}

/// The tiles of a level in a window whose corner is `from`, with their squared distances from its centre. `from` and `size` are in pixels
/// of the full resolution.
fn window(picture: &Pyramid, level: u8, from: (f64, f64), size: (f64, f64)) -> Vec<(f64, Tile)> {
    let side = f64::from(picture.tile) * libm::exp2(f64::from(level));
    let (columns, rows) = picture.grid(level);
    let span = |start: f64, length: f64, count: u32| {
        let first = (start / side) as u32;
        let last = libm::ceil((start + length) / side) as u32;
        first.min(count)..last.min(count)
    };
    let centre = (from.0 + size.0 / 2.0, from.1 + size.1 / 2.0);
    let mut tiles = Vec::new();
    for row in span(from.1, size.1, rows) {
        for column in span(from.0, size.0, columns) {
            let dx = (f64::from(column) + 0.5) * side - centre.0;
            let dy = (f64::from(row) + 0.5) * side - centre.1;
            tiles.push((dx * dx + dy * dy, Tile { level, row, column }));
        }
    }
    tiles
}

#[cfg(test)]
mod tests {
    use super::*;

    const PICTURE: Pyramid = Pyramid {
        width: 8192,
        height: 4096,
        tile: 128,
        pixel_bytes: 3,
    };

    fn viewer(path: ViewerMotion) -> PyramidViewer {
        PyramidViewer {
            path,
            ..PyramidViewer::default()
        }
    }

    #[test]
    fn a_pan_needs_the_window_and_moves_with_it() {
        let at = |seconds| viewer(ViewerMotion::Pan).needs(&PICTURE, seconds);
        assert_eq!(at(0.0).len(), 8 * 6);
        let (first, later) = (at(0.0), at(1.0));
        let new = later
            .iter()
            .filter(|number| !first.contains(number))
            .count();
        // 400 pixels are a little more than three columns of six tiles.
        assert!((18..=24).contains(&new), "{new}");
    }

    #[test]
    fn a_zoom_begins_with_the_whole_picture() {
        let tiles = viewer(ViewerMotion::Zoom).needs(&PICTURE, 0.0);
        assert_eq!(tiles, [PICTURE.tiles() - 1]);
        let deepest = 1024.0 / 2.0 / 400.0 * f64::from(PICTURE.levels() - 1);
        let tiles = viewer(ViewerMotion::Zoom).needs(&PICTURE, deepest);
        assert!(
            tiles
                .iter()
                .all(|number| PICTURE.tile(*number).is_some_and(|tile| tile.level == 0))
        );
    }

    #[test]
    fn a_flight_sees_far_tiles_coarser() {
        let tiles = viewer(ViewerMotion::Flight).needs(&PICTURE, 3.0);
        let levels: alloc::collections::BTreeSet<_> = tiles
            .iter()
            .map(|number| PICTURE.tile(*number).unwrap().level)
            .collect();
        assert!(levels.len() >= 4, "{levels:?}");
        assert!((20..400).contains(&tiles.len()), "{}", tiles.len());
        assert_eq!(PICTURE.tile(tiles[0]).unwrap().level, 0);
    }
}
