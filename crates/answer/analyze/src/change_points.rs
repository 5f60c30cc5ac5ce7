//! Finds where a series of figures changed, as Apache Otava does: E-divisive means with Student's t-test, in windows, and a second,
//! stricter judgement of what was found (Matteson and James 2014; Fleming et al. 2023, "Hunter: Using Change Point Detection to Hunt
//! for Performance Regressions").
//!
//! 1. In windows of a few values, each half a window after the one before, the place is sought at which the values before and after
//!    differ most (energy distance). If a t-test finds the difference, it is a weak change point, and both halves are searched in turn.
//! 2. Of all weak change points together, the one with the largest probability is taken out, and the one behind it is judged again
//!    with what it now separates, until all that are left have a small probability and change the mean by enough.
//!
//! Where Otava deviates from the textbook, so does this, so that both find the same: the standard deviations of the t-test have n
//! and not n - 1 below them, weak points may have ten times the probability, and the point before one that is taken out keeps its
//! probability.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// When something counts as a change point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ChangePointRule {
    /// How many values a window has, at least 2.
    pub window: usize,
    /// The largest probability of such a difference without a change.
    pub max_p: f64,
    /// The least change of the mean, as a share: 0.05 is 5 %.
    pub min_magnitude: f64,
}

impl ChangePointRule {
    /// Otava's own: windows of 50, a probability of 0.001, changes of any size.
    pub const USUAL: Self = Self {
        window: 50,
        max_p: 0.001,
        min_magnitude: 0.0,
    };

    /// The largest probability of a weak change point.
    fn weak_p(&self) -> f64 {
        match self.max_p {
            p if p < 0.05 => p * 10.0,
            p if p < 0.5 => p * 2.0,
            p => p,
        }
    }
}

/// A place where a series changed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ChangePoint {
    /// Index of the first value after the change.
    pub index: usize,
    /// Mean of the values since the change point before.
    pub before: f64,
    /// Mean of the values up to the next change point.
    pub after: f64,
    /// The probability of such a difference, or a larger one, without a change.
    pub p: f64,
}

impl ChangePoint {
    /// The mean after over the mean before.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.after / self.before
    }

    /// The change as a share of the smaller mean: 0.05 is 5 %.
    fn magnitude(&self) -> f64 {
        let change = |of: f64, by: f64| {
            if by == 0.0 {
                0.0
            } else {
                (of / by - 1.0).abs()
            }
        };
        change(self.after, self.before).max(change(self.before, self.after))
    }
}

/// The change points of a series, in its order.
#[must_use]
pub fn find_change_points(series: &[f64], rule: &ChangePointRule) -> Vec<ChangePoint> {
    let weak = weak_points(series, rule);
    judged_together(series, weak, rule)
}

/// The places that may be change points, ascending.
fn weak_points(series: &[f64], rule: &ChangePointRule) -> Vec<usize> {
    let window = rule.window.max(2);
    let (mut start, mut found) = (0, Vec::new());
    while start < series.len() {
        let end = (start + window).min(series.len());
        let new = divided(&series[start..end], rule.weak_p());
        let last = new.last().map_or(0, |at| at + start);
        for at in new {
            if !found.contains(&(at + start)) {
                found.push(at + start);
            }
        }
        start = last.max(start + window / 2);
    }
    found.sort_unstable();
    found
}

/// The change points of one window: of all stretches between those found so far, the most different halves are judged, as long as
/// they differ by more than chance.
fn divided(window: &[f64], most_p: f64) -> Vec<usize> {
    let distances = DistanceSums::new(window);
    let mut found: Vec<usize> = Vec::new();
    loop {
        let stretches = stretches(&found, window.len());
        let best = stretches
            .iter()
            .filter_map(|&(from, to)| Some((distances.most_different(from, to)?, from, to)))
            .reduce(|best, next| if next.0.0 > best.0.0 { next } else { best });
        let Some(((_, at), from, to)) = best else {
            return found;
        };
        let p = compared(&window[from..at], &window[at..to]).p;
        // No probability is none that is small.
        if p.is_nan() || p > most_p {
            return found;
        }
        found.push(at);
        found.sort_unstable();
    }
}

/// The stretches between change points, as ranges.
fn stretches(points: &[usize], len: usize) -> Vec<(usize, usize)> {
    let begins = std::iter::once(0).chain(points.iter().copied());
    let ends = points.iter().copied().chain([len]);
    begins.zip(ends).collect()
}

/// Takes out what is not a change point among the weak ones, the weakest first. Means are those of the stretches that are left.
fn judged_together(series: &[f64], weak: Vec<usize>, rule: &ChangePointRule) -> Vec<ChangePoint> {
    let mut places = weak;
    let mut judged: Vec<ChangePoint> = (0..places.len())
        .map(|at| judged_at(series, &places, at))
        .collect();
    while let Some(out) = weakest(&judged, rule) {
        judged.remove(out);
        places.remove(out);
        for at in (out..places.len()).take(2) {
            judged[at] = judged_at(series, &places, at);
        }
    }
    for (at, point) in judged.iter_mut().enumerate() {
        let now = judged_at(series, &places, at);
        (point.before, point.after) = (now.before, now.after);
    }
    judged
}

/// A place with what it separates, up to the places before and after it.
fn judged_at(series: &[f64], places: &[usize], at: usize) -> ChangePoint {
    let from = at.checked_sub(1).map_or(0, |before| places[before]);
    let to = places.get(at + 1).copied().unwrap_or(series.len());
    let index = places[at];
    ChangePoint {
        index,
        ..compared(&series[from..index], &series[index..to])
    }
}

/// Which point is taken out next; `None` if all are change points.
fn weakest(judged: &[ChangePoint], rule: &ChangePointRule) -> Option<usize> {
    // What has no probability is the weakest of all.
    let p = |at: usize| {
        if judged[at].p.is_nan() {
            2.0
        } else {
            judged[at].p
        }
    };
    let all = || 0..judged.len();
    let weakest = all().reduce(|a, b| if p(b) > p(a) { b } else { a })?;
    let size = |at: usize| judged[at].magnitude();
    let smallest = all().reduce(|a, b| if size(b) < size(a) { b } else { a })?;
    if p(weakest) >= rule.max_p {
        Some(weakest)
    } else {
        (size(smallest) <= rule.min_magnitude).then_some(smallest)
    }
}

/// Student's t-test of two stretches with one variance, from standard deviations with n below them. The index is not set.
fn compared(before: &[f64], after: &[f64]) -> ChangePoint {
    let [(n, mean_1, square_1), (m, mean_2, square_2)] = [before, after].map(|values| {
        let n = count(values.len());
        let mean = values.iter().sum::<f64>() / n;
        let squares = values.iter().map(|value| (value - mean).powi(2));
        (n, mean, squares.sum::<f64>() / n)
    });
    let freedom = n + m - 2.0;
    let variance = ((n - 1.0) * square_1 + (m - 1.0) * square_2) / freedom;
    let t = (mean_1 - mean_2).abs() / (variance * (1.0 / n + 1.0 / m)).sqrt();
    let p = match StudentsT::new(0.0, 1.0, freedom.max(1.0)) {
        _ if freedom < 1.0 => 1.0,
        _ if t.is_nan() => f64::NAN,
        _ if t.is_infinite() => 0.0,
        Ok(distribution) => 2.0 * distribution.sf(t),
        Err(_) => 1.0,
    };
    ChangePoint {
        index: 0,
        before: mean_1,
        after: mean_2,
        p,
    }
}

/// Sums of the distances between any values of a window: `sums[a][b]` is that of the first `a` to the first `b`.
struct DistanceSums {
    sums: Vec<Vec<f64>>,
}

impl DistanceSums {
    fn new(values: &[f64]) -> Self {
        let mut sums = vec![vec![0.0; values.len() + 1]];
        for one in values {
            let (above, mut row, mut whole) = (&sums[sums.len() - 1], vec![0.0], 0.0);
            for (other, above) in values.iter().zip(&above[1..]) {
                whole += (one - other).abs();
                row.push(above + whole);
            }
            sums.push(row);
        }
        Self { sums }
    }

    /// The distances of all values of one range to all of another.
    fn between(&self, a: (usize, usize), b: (usize, usize)) -> f64 {
        let sums = &self.sums;
        sums[a.1][b.1] - sums[a.0][b.1] - sums[a.1][b.0] + sums[a.0][b.0]
    }

    /// Where a range is divided so that the values before the place differ most from those behind it, up to any end within the range,
    /// and by how much: the energy distance of both parts times their sizes over their sum.
    fn most_different(&self, from: usize, to: usize) -> Option<(f64, usize)> {
        let mut best: Option<(f64, usize)> = None;
        for at in from + 1..to {
            for end in at + 1..=to {
                let [n, m] = [at - from, end - at].map(count);
                let across = self.between((from, at), (at, end));
                // Each distance within a part stands twice in its sum; a single value has none.
                let within = |range: (usize, usize), n: f64| match n > 1.0 {
                    true => self.between(range, range) / 2.0 / (n - 1.0),
                    false => 0.0,
                };
                let inside = m * within((from, at), n) + n * within((at, end), m);
                let difference = 2.0 / (n + m) * (across - inside);
                if best.is_none_or(|(most, _)| difference > most) {
                    best = Some((difference, at));
                }
            }
        }
        best
    }
}

#[expect(clippy::cast_precision_loss, reason = "a number of values, below 2^53")]
const fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests;
