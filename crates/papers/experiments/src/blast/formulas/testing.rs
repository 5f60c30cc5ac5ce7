//! What the tests of the formulas compare with.

/// Whether `a` is `b` within a share of it.
pub(super) fn close(a: f64, b: f64, share: f64) -> bool {
    (a - b).abs() <= share * b.abs()
}
