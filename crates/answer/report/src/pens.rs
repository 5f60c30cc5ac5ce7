//! Pens of curves: each has its colour, dashes and marker, so that lines are distinguished in grey as well.

use crate::colours::LIGHT;
use crate::scene::{LineDashes, SceneShape};

/// Dashes in the order of the colours.
const DASHES: [LineDashes; 6] = [
    &[],
    &[7.0, 4.0],
    &[2.0, 3.0],
    &[9.0, 3.0, 2.0, 3.0],
    &[12.0, 4.0],
    &[4.0, 4.0],
];

/// The form of a curve's points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PointMarker {
    Dot,
    Square,
    Triangle,
    Diamond,
}

const MARKERS: [PointMarker; 4] = [
    PointMarker::Dot,
    PointMarker::Square,
    PointMarker::Triangle,
    PointMarker::Diamond,
];

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CurvePen {
    pub(crate) colour: u32,
    pub(crate) dashes: LineDashes,
    marker: PointMarker,
}

impl CurvePen {
    /// The pen of the curve with this index; 24 follow until colour, dashes and marker come again together.
    pub(crate) fn with_index(index: usize) -> Self {
        Self {
            colour: LIGHT[index % LIGHT.len()],
            dashes: DASHES[index % DASHES.len()],
            marker: MARKERS[index % MARKERS.len()],
        }
    }

    /// A stroke of this pen.
    pub(crate) fn line(self, points: Vec<(f32, f32)>, width: f32) -> SceneShape {
        SceneShape::Line {
            points,
            colour: self.colour,
            width,
            dashes: self.dashes,
        }
    }

    /// The marker of a point, in this colour.
    pub(crate) fn mark(self, at: (f32, f32), radius: f32, colour: u32) -> SceneShape {
        let (x, y) = at;
        let around = |corners: &[(f32, f32)]| SceneShape::Area {
            points: corners
                .iter()
                .map(|(across, down)| (x + radius * across, y + radius * down))
                .collect(),
            colour,
            cover: 1.0,
        };
        match self.marker {
            PointMarker::Dot => SceneShape::Dot {
                x,
                y,
                radius,
                colour,
            },
            PointMarker::Square => around(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            PointMarker::Triangle => around(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]),
            PointMarker::Diamond => around(&[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_first_pens_differ_without_their_colours() {
        let look = |index| {
            let pen = CurvePen::with_index(index);
            format!("{:?} {:?}", pen.dashes, pen.marker)
        };
        assert_eq!((0..12).map(look).collect::<BTreeSet<_>>().len(), 12);
    }
}
