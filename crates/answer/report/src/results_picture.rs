//! The results of measurements as a picture: for each a dot at the mean, the 95 % interval, and the range of its runs.
//!
//! Rows with the same metric share an axis that begins at zero.

use crate::colours::{INK, RULE, SOFT};
use crate::figure;
use crate::scene::{SceneMeasure, SceneShape, TextAnchor, VectorScene};
use stackline_analyze::{RunMetric, Summary};

const BAR: u32 = 0x3e7cb1;

const WIDTH: f32 = 960.0;
const LEFT: f32 = 24.0;
const AXIS: f32 = 430.0;
const AXIS_END: f32 = 760.0;
const ROW: f32 = 30.0;
const TOP: f32 = 54.0;
/// The most characters of a label.
const LABEL: usize = 66;
/// The most rows of a picture; it says how many more there are.
const ROWS: usize = 60;

/// Draws the summaries that have figures; `None` if nothing was measured.
#[must_use]
pub fn results_picture(title: &str, summaries: &[Summary]) -> Option<VectorScene> {
    let measured: Vec<&Summary> = summaries
        .iter()
        .filter(|summary| summary.main_statistics().is_some())
        .collect();
    if measured.is_empty() {
        return None;
    }
    let mut shapes = vec![
        SceneShape::text(LEFT, 24.0, TextAnchor::Start, INK, title),
        SceneShape::text(
            LEFT,
            40.0,
            TextAnchor::Start,
            SOFT,
            "dot: mean of runs; thick line: its 95 % interval; thin line: lowest to highest run",
        ),
    ];
    let shown = measured.len().min(ROWS);
    for (at, summary) in measured[..shown].iter().enumerate() {
        let most = measured
            .iter()
            .filter(|other| other.main == summary.main)
            .map(|other| RunRange::from_summary(other).reach())
            .fold(0.0, f64::max);
        row(&mut shapes, summary, TOP + ROW * at as f32, most);
    }
    let mut height = TOP + ROW * shown as f32 + 16.0;
    if shown < measured.len() {
        let more = format!("and {} more", measured.len() - shown);
        shapes.push(SceneShape::text(
            LEFT,
            height,
            TextAnchor::Start,
            SOFT,
            more,
        ));
        height += 20.0;
    }
    Some(VectorScene {
        title: title.to_owned(),
        measure: SceneMeasure::Screen,
        width: WIDTH,
        height,
        shapes,
    })
}

/// The range of the runs' values of a measurement. Times of single calls are left out: one of thousands would determine the axis.
struct RunRange {
    least: f64,
    most: f64,
    interval: Option<(f64, f64)>,
}

impl RunRange {
    fn from_summary(summary: &Summary) -> Self {
        let values = summary
            .main
            .map_or(&[][..], |metric| summary.values(metric));
        let mean = summary.main_statistics().map_or(0.0, |s| s.mean);
        Self {
            least: values.iter().copied().reduce(f64::min).unwrap_or(mean),
            most: values.iter().copied().reduce(f64::max).unwrap_or(mean),
            interval: summary.main_statistics().and_then(|s| s.ci95),
        }
    }

    /// The greatest value that is drawn.
    fn reach(&self) -> f64 {
        self.interval
            .map_or(self.most, |(_, high)| high.max(self.most))
    }
}

fn row(shapes: &mut Vec<SceneShape>, summary: &Summary, top: f32, most: f64) {
    let (Some(metric), Some(s)) = (summary.main, summary.main_statistics()) else {
        return;
    };
    let across = |value: f64| {
        let share = if most > 0.0 { value / most } else { 0.0 };
        AXIS + (AXIS_END - AXIS) * share.clamp(0.0, 1.0) as f32
    };
    let middle = top + ROW / 2.0;
    let over = format!(" over {}", summary.stack);
    let label = match summary.part.contains(&over) {
        true => shortened(&summary.part),
        false => shortened(&format!("{}{over}", summary.part)),
    };
    let range = RunRange::from_summary(summary);
    shapes.push(SceneShape::text(
        LEFT,
        middle + 4.0,
        TextAnchor::Start,
        INK,
        label,
    ));
    shapes.push(line(AXIS, AXIS_END, middle, RULE, 1.0));
    shapes.push(line(
        across(range.least),
        across(range.most),
        middle,
        BAR,
        1.5,
    ));
    if let Some((low, high)) = range.interval {
        shapes.push(line(across(low), across(high), middle, BAR, 6.0));
    }
    shapes.push(SceneShape::Dot {
        x: across(s.mean),
        y: middle,
        radius: 4.5,
        colour: INK,
    });
    let value = format!(
        "{} {}",
        words(metric),
        figure::with_half_width(metric, s.mean, s.half_width().filter(|half| *half > 0.0))
    );
    shapes.push(SceneShape::text(
        AXIS_END + 14.0,
        middle + 4.0,
        TextAnchor::Start,
        INK,
        value.trim_start(),
    ));
}

/// What a figure is about, if its unit does not say it.
fn words(metric: RunMetric) -> &'static str {
    match metric {
        RunMetric::Response => "a call",
        RunMetric::Connect => "a connection",
        _ => "",
    }
}

fn shortened(label: &str) -> String {
    if label.chars().count() <= LABEL {
        return label.to_owned();
    }
    label.chars().take(LABEL - 3).chain("...".chars()).collect()
}

fn line(from: f32, to: f32, y: f32, colour: u32, width: f32) -> SceneShape {
    SceneShape::Line {
        points: vec![(from, y), (to, y)],
        colour,
        width,
        dashes: &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::picture_file::PictureFileFormat;
    use crate::testing::summaries;

    #[test]
    fn each_row_has_its_figure_and_more_than_fit_are_counted() {
        let summaries = summaries();
        let measured = summaries.iter().filter(|s| s.main_statistics().is_some());
        let measured = measured.count();
        let picture = results_picture("a run", &summaries).unwrap();
        let dots = picture.shapes.iter();
        let dots = dots.filter(|shape| matches!(shape, SceneShape::Dot { .. }));
        assert_eq!(dots.count(), measured);
        // Each metric's axis ends at what is drawn of it.
        let ends = picture.shapes.iter().filter_map(|shape| match shape {
            SceneShape::Line {
                points,
                colour: BAR,
                ..
            } => points.last().map(|(x, _)| *x),
            _ => None,
        });
        assert!((ends.fold(0.0, f32::max) - AXIS_END).abs() < 0.1);
        for format in [
            PictureFileFormat::Svg,
            PictureFileFormat::Png,
            PictureFileFormat::Pdf,
        ] {
            assert!(!picture.encode(format).unwrap().is_empty());
        }
        let many: Vec<Summary> = (0..=ROWS).flat_map(|_| summaries.clone()).collect();
        let svg = results_picture("x", &many)
            .unwrap()
            .encode(PictureFileFormat::Svg);
        let more = format!("and {} more", measured * (1 + ROWS) - ROWS);
        assert!(String::from_utf8(svg.unwrap()).unwrap().contains(&more));
        assert_eq!(results_picture("x", &[]), None);
    }
}
