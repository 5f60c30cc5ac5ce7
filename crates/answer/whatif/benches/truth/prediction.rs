//! Predictions of random specifications beside their simulated runs.

use crate::asked::Asked;
use stackline_testing::seeds::for_each_seed;
use stackline_verdicts::Question;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Instant;

/// A figure so near to the median of its runs is right.
const NEAR: f64 = 0.1;

/// What became of a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PredictionVerdict {
    /// Near to the median of the runs.
    Right,
    /// Further off, and the median within what was printed.
    Within,
    /// Further off and outside: nobody was warned.
    Miss,
    /// There is no figure.
    Open,
}

/// Runs of a specification that are further apart than this, over their median, differ by chance.
const ALIKE: f64 = 0.06;

/// How many runs the intervals of some answers hold.
#[derive(Default)]
struct HeldRuns {
    held: usize,
    of: usize,
    widths: Vec<f64>,
}

impl HeldRuns {
    fn add(&mut self, asked: &Asked) {
        let held = |figure: &&f64| asked.holds(**figure);
        self.held += asked.figures.iter().filter(held).count();
        self.of += asked.figures.len();
        self.widths.extend(asked.width());
    }

    fn line(mut self, of: &str) -> String {
        self.widths.sort_unstable_by(f64::total_cmp);
        let median = self.widths.get(self.widths.len() / 2);
        format!(
            "{} of {} runs ({:.1} %) lie in the intervals of {} {of}, whose median reaches {:.0} % to one side\n",
            self.held,
            self.of,
            100.0 * self.held as f64 / self.of.max(1) as f64,
            self.widths.len(),
            100.0 * median.unwrap_or(&0.0)
        )
    }
}

/// All that were asked, by seed.
pub(crate) struct JudgedPredictions(Vec<(u64, Result<Asked, String>)>);

/// Predicts the specifications of seeds from `from` on, until one of the limits is reached.
pub(crate) fn judge(from: u64, count: u64, until: Instant, simulate: bool) -> JudgedPredictions {
    let ask = |(): &(), seed| Asked::new(&Question::draw(seed), simulate);
    JudgedPredictions(for_each_seed(from, count, until, || (), ask))
}

impl Asked {
    fn median(&self) -> Option<f64> {
        let mut figures = self.figures.clone();
        figures.sort_unstable_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied()
    }

    fn holds(&self, figure: f64) -> bool {
        matches!(self.interval[..], [least, greatest] if least <= figure * (1.0 + 1e-9) && figure <= greatest * (1.0 + 1e-9))
    }

    fn verdict(&self) -> Option<PredictionVerdict> {
        let Some(predicted) = self.predicted else {
            return Some(PredictionVerdict::Open);
        };
        let median = self.median().filter(|median| *median > 0.0)?;
        Some(match predicted / median {
            ratio if (ratio - 1.0).abs() <= NEAR => PredictionVerdict::Right,
            _ if self.holds(median) => PredictionVerdict::Within,
            _ => PredictionVerdict::Miss,
        })
    }

    /// Whether its runs are further apart than what counts as one figure.
    fn differ(&self) -> bool {
        let (least, greatest) = self
            .figures
            .iter()
            .fold((f64::INFINITY, 0.0_f64), |(least, greatest), figure| {
                (least.min(*figure), greatest.max(*figure))
            });
        self.median()
            .is_some_and(|median| greatest - least > ALIKE * median)
    }

    /// How far the interval reaches to its wider side, over the figure.
    fn width(&self) -> Option<f64> {
        let [least, greatest] = self.interval[..] else {
            return None;
        };
        let predicted = self.predicted?;
        Some((greatest / predicted - 1.0).max(1.0 - least / predicted))
    }
}

impl JudgedPredictions {
    /// A line for each.
    pub(crate) fn lines(&self) -> String {
        let mut out = String::new();
        for (seed, asked) in &self.0 {
            let traits = Question::draw(*seed).traits.join(", ");
            let _ = match asked {
                Err(error) => writeln!(
                    out,
                    "{seed} failed ({traits}): {}",
                    error.lines().next().unwrap_or_default()
                ),
                Ok(asked) => writeln!(
                    out,
                    "{seed} {:?} ({traits}): {:?} {:?}, measured {:?}",
                    asked.verdict(),
                    asked.predicted,
                    asked.interval,
                    asked.median()
                ),
            };
        }
        out
    }

    /// What they come to: in all, and for each trait.
    pub(crate) fn table(&self) -> String {
        let mut out = String::from(
            "\n| specifications | right | within | miss | open |\n| --- | --- | --- | --- | --- |\n",
        );
        let mut rows: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
        let mut kinds: BTreeMap<&str, HeldRuns> = BTreeMap::new();
        for (seed, asked) in self.asked() {
            let Some(verdict) = asked.verdict() else {
                continue;
            };
            for name in Question::draw(seed).traits.into_iter().chain(["all"]) {
                rows.entry(name).or_default()[verdict as usize] += 1;
            }
            if asked.predicted.is_some() {
                let kind = match (asked.is_simulated, asked.differ()) {
                    (false, false) => "forms of runs that are alike",
                    (false, true) => "forms of runs that differ by chance",
                    (true, false) => "simulations of runs that are alike",
                    (true, true) => "simulations of runs that differ by chance",
                };
                kinds.entry(kind).or_default().add(asked);
            }
        }
        for (name, [right, within, miss, open]) in rows {
            let _ = writeln!(out, "| {name} | {right} | {within} | {miss} | {open} |");
        }
        out.push('\n');
        for (kind, held) in kinds {
            out += &held.line(kind);
        }
        let failed = self.0.len() - self.asked().count();
        let _ = writeln!(out, "{failed} specifications cannot be run");
        out
    }

    /// How many figures are right or within their interval, how many are not, and how many specifications have none.
    pub(crate) fn counts(&self) -> [usize; 3] {
        let of = |wanted: &[PredictionVerdict]| {
            self.asked()
                .filter(|(_, asked)| {
                    asked
                        .verdict()
                        .is_some_and(|verdict| wanted.contains(&verdict))
                })
                .count()
        };
        [
            of(&[PredictionVerdict::Right, PredictionVerdict::Within]),
            of(&[PredictionVerdict::Miss]),
            of(&[PredictionVerdict::Open]),
        ]
    }

    fn asked(&self) -> impl Iterator<Item = (u64, &Asked)> {
        self.0
            .iter()
            .filter_map(|(seed, asked)| Some((*seed, asked.as_ref().ok()?)))
    }
}
