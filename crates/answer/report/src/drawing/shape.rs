//! Rotated rectangles: whether two of them overlap, and where a line leaves one.

use super::node_layout::DrawingPoint;

/// A rectangle around a middle, rotated by an angle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RotatedRectangle {
    pub(crate) middle: DrawingPoint,
    /// Half its width and height.
    pub(crate) half: DrawingPoint,
    /// The rotation, radians.
    pub(crate) angle: f64,
}

impl RotatedRectangle {
    fn axes(&self) -> [DrawingPoint; 2] {
        let (y, x) = self.angle.sin_cos();
        [DrawingPoint { x, y }, DrawingPoint { x: -y, y: x }]
    }

    /// How far it reaches from its middle in a direction (a unit vector).
    fn reach(&self, direction: DrawingPoint) -> f64 {
        let [across, down] = self.axes();
        self.half.x * dot(across, direction).abs() + self.half.y * dot(down, direction).abs()
    }

    /// Whether two rectangles overlap: no axis of either separates them (separating axis theorem).
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let apart = other.middle.minus(self.middle);
        let mut axes = self.axes().into_iter().chain(other.axes());
        axes.all(|axis| dot(apart, axis).abs() < self.reach(axis) + other.reach(axis))
    }

    /// The point where a line from the middle leaves a rectangle that is not rotated.
    pub(crate) fn edge(&self, towards: DrawingPoint) -> DrawingPoint {
        let v = towards.minus(self.middle);
        let share = (self.half.x / v.x.abs().max(1e-9))
            .min(self.half.y / v.y.abs().max(1e-9))
            .min(1.0);
        self.middle.plus(v.times(share))
    }

    /// A line as a thin rectangle, 2 pixels wide.
    pub(crate) fn line(from: DrawingPoint, to: DrawingPoint) -> Self {
        let v = to.minus(from);
        let half = DrawingPoint {
            x: v.length() / 2.0,
            y: 1.0,
        };
        Self {
            middle: from.plus(to).times(0.5),
            half,
            angle: v.y.atan2(v.x),
        }
    }
}

fn dot(a: DrawingPoint, b: DrawingPoint) -> f64 {
    a.x * b.x + a.y * b.y
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(x: f64, y: f64, angle: f64) -> RotatedRectangle {
        RotatedRectangle {
            middle: DrawingPoint { x, y },
            half: DrawingPoint { x: 10.0, y: 2.0 },
            angle,
        }
    }

    #[test]
    fn turned_boxes_pass_between_each_other() {
        assert!(shape(0.0, 0.0, 0.0).overlaps(&shape(19.0, 3.0, 0.0)));
        assert!(!shape(0.0, 0.0, 0.0).overlaps(&shape(19.0, 5.0, 0.0)));
        let up = std::f64::consts::FRAC_PI_2;
        assert!(shape(0.0, 0.0, 0.0).overlaps(&shape(11.0, 0.0, up)));
        assert!(!shape(0.0, 0.0, 0.0).overlaps(&shape(13.0, 0.0, up)));
    }

    #[test]
    fn a_line_leaves_at_the_edge() {
        assert_eq!(
            shape(0.0, 0.0, 0.0).edge(DrawingPoint { x: 100.0, y: 0.0 }),
            DrawingPoint { x: 10.0, y: 0.0 }
        );
        assert_eq!(
            shape(0.0, 0.0, 0.0).edge(DrawingPoint { x: 4.0, y: 4.0 }),
            DrawingPoint { x: 2.0, y: 2.0 }
        );
    }
}
