//! Figures of kept runs as series: of each measurement, one figure of every run that made it, in time order.

use crate::change_points::{ChangePoint, ChangePointRule, find_change_points};
use crate::compare::Label;
use crate::curves::{CurveAxis, CurveMetric};
use crate::summarise::summarise;
use crate::summary::{RunMetric, Summary};
use stackline_core::error::Result;
use stackline_runs::StoredRun;
use std::path::Path;

/// A figure of kept runs of one measurement.
#[derive(Clone, Debug)]
pub struct KeptSeries {
    /// The measurement, its part and its stack, by which runs belong together.
    pub label: Label,
    /// What the figure is: its name, quantity and unit.
    pub axis: CurveAxis,
    /// Whether more of it is faster.
    pub more_is_faster: bool,
    /// Index of each run in the order in which runs were added.
    pub runs: Vec<usize>,
    /// The figure of each of these runs.
    pub values: Vec<f64>,
    /// Where the figure changed.
    pub changes: Vec<ChangePoint>,
}

/// Collects series of runs that are added in time order.
#[derive(Debug)]
pub struct SeriesCollector {
    metric: CurveMetric,
    added: usize,
    series: Vec<KeptSeries>,
}

impl SeriesCollector {
    /// Without a run yet.
    #[must_use]
    pub const fn new(metric: CurveMetric) -> Self {
        Self {
            metric,
            added: 0,
            series: Vec::new(),
        }
    }

    /// Adds the figures of a kept run.
    ///
    /// # Errors
    /// If its results cannot be read; the run then has its place, without a figure.
    pub fn add_run(&mut self, run: &Path) -> Result<()> {
        let index = self.added;
        self.added += 1;
        let run = StoredRun::open(run)?;
        self.add(index, &summarise(&run.plan, &run.records));
        Ok(())
    }

    fn add(&mut self, run: usize, summaries: &[Summary]) {
        for summary in summaries.iter().filter(|summary| !summary.background) {
            let Ok(value) = self.metric.figure_in(summary) else {
                continue;
            };
            if !value.is_finite() {
                continue;
            }
            let label = Label::from_summary(summary);
            let at = self.series.iter().position(|one| one.label == label);
            let at = at.unwrap_or_else(|| {
                self.series.push(self.begun(label, summary.main));
                self.series.len() - 1
            });
            let series = &mut self.series[at];
            // The same text twice in one specification is one series; of each run its first value counts.
            if series.runs.last() != Some(&run) {
                series.runs.push(run);
                series.values.push(value);
            }
        }
    }

    fn begun(&self, label: Label, main: Option<RunMetric>) -> KeptSeries {
        KeptSeries {
            label,
            axis: self.metric.axis(main),
            more_is_faster: self.metric.more_is_faster(main),
            runs: Vec::new(),
            values: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// All series with their change points, in the order in which their measurements were first seen.
    #[must_use]
    pub fn finish(mut self, rule: &ChangePointRule) -> Vec<KeptSeries> {
        for series in &mut self.series {
            series.changes = find_change_points(&series.values, rule);
        }
        self.series
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::SampleStatistics;

    fn summary(text: &str, response_s: f64) -> Summary {
        Summary {
            text: text.into(),
            part: text.into(),
            stack: "tcp".into(),
            runs: 1,
            main: Some(RunMetric::Response),
            response_s: SampleStatistics::from_values(&[response_s]),
            ..Summary::default()
        }
    }

    #[test]
    fn runs_of_the_same_text_are_one_series_in_their_order() {
        let mut collector = SeriesCollector::new(CurveMetric::OWN);
        for run in 0..20 {
            let slow = if run < 10 { 0.01 } else { 0.012 };
            let jitter = 1e-5 * f64::from(run % 3);
            let mut summaries = vec![summary("rr 1", slow + jitter), summary("rr 1", 9.0)];
            if run % 2 == 0 {
                summaries.push(summary("rr 2", 0.5));
            }
            collector.add(run as usize, &summaries);
        }
        let series = collector.finish(&ChangePointRule::USUAL);
        let [one, other] = &series[..] else {
            panic!("{series:?}");
        };
        assert_eq!((one.values.len(), other.values.len()), (20, 10));
        assert_eq!(other.runs[..3], [0, 2, 4]);
        assert_eq!(one.axis.name, "response time");
        assert!(!one.more_is_faster);
        let found: Vec<usize> = one.changes.iter().map(|change| change.index).collect();
        assert_eq!(found, [10]);
        assert!(other.changes.is_empty());
    }
}
