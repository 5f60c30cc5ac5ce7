//! Lifelines as a picture for papers: time to the right, stages of the way upwards, one line for each data unit, and bars for
//! retransmissions and drops on top. Connections are drawn only if there is nothing else, or if they are named.
//!
//! If there are very many lines, only some are drawn (those with unusual outcomes first), and the picture says so. Bars cover all.

use crate::axes::round_step;
use crate::colours::{INK, LIGHT as COLOURS, PAPER, RULE, SOFT};
use crate::lifeline_selection::thin_lifelines;
use crate::scene::{DASHED, SceneMeasure, SceneShape, TextAnchor, VectorScene};
use stackline_analyze::colouring::Colouring;
use stackline_analyze::lifelines::{Id, Lifeline, LifelineOutcome, LifelinePassage, Lifelines};
use stackline_analyze::stages::Stages;
use stackline_core::trace_index::Index;
use stackline_core::units;
use stackline_events::catalogue::{self, DataFate};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;

/// The most lines that are drawn; more could not be distinguished.
pub const MOST_LINES: usize = 3000;

const DROPPED: u32 = 0xc62f1d;
const AGAIN: u32 = 0xb86e00;

/// The two rows of bars: name, colour, and the fates that they show.
const BARS: [(&str, u32, &[DataFate]); 2] = [
    ("retransmitted", AGAIN, &[DataFate::SentAgain]),
    ("dropped", DROPPED, &[DataFate::Dropped, DataFate::GivenUp]),
];

/// The width of the picture, in pixels of the SVG; the measures below are pixels too.
const WIDTH: f32 = 960.0;
const LEFT: f32 = 250.0;
const RIGHT: f32 = WIDTH - 24.0;
const ROW: f32 = 30.0;
const LANE: f32 = 16.0;
/// The most characters of a name.
const NAME: usize = 36;
/// Entries of the legend on one line, if all names are short.
const SHORT: usize = 4;
/// The distance between two entries of the legend, with short names and with long ones.
const ENTRY: (f32, f32) = (170.0, 226.0);

/// Which lines are drawn, and which time range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PictureSelection {
    /// The moment that times count from, reference time, ns.
    pub origin_ns: u64,
    /// Begin of the time range, reference time, ns; by default the begin of the first line.
    pub from_ns: Option<u64>,
    /// End of the time range, ns; by default the end of the last line.
    pub to_ns: Option<u64>,
    /// Ids of the units to draw; if empty, all.
    pub units: Vec<String>,
    /// Retransmissions and drops that are on no line: reference time in ns, and the fate.
    pub beside: Vec<(u64, DataFate)>,
}

/// A picture that was drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct LifelinePicture {
    /// The shapes of the picture.
    pub scene: VectorScene,
    /// How many lines it shows.
    pub lines: usize,
    /// How many lines there are in the time range.
    pub of_lines: usize,
}

/// Draws the wanted lines; `None` when there are none.
#[must_use]
pub fn picture(
    lifelines: &Lifelines,
    index: &Index,
    wanted: &PictureSelection,
) -> Option<LifelinePicture> {
    let units: BTreeSet<Id> = wanted.units.iter().map(|unit| Id::parse(unit)).collect();
    let is_wanted = |line: &Lifeline| {
        let (first, last) = span(lifelines, line);
        (units.is_empty() || units.contains(&line.unit))
            && wanted.to_ns.is_none_or(|to| first <= to)
            && wanted.from_ns.is_none_or(|from| last >= from)
    };
    let line = |index: &u32| &lifelines.lines[*index as usize];
    let mut all: Vec<u32> = (0..lifelines.lines.len() as u32).collect();
    all.retain(|index| line(index).count > 0 && is_wanted(line(index)));
    let is_connection = |index: &u32| lifelines.is_connection(line(index));
    if units.is_empty() && !all.iter().all(is_connection) {
        all.retain(|index| !is_connection(index));
    }
    let of_lines = all.len();
    let from_ns = wanted
        .from_ns
        .or_else(|| all.iter().map(|index| span(lifelines, line(index)).0).min())?;
    let to_ns = wanted
        .to_ns
        .or_else(|| all.iter().map(|index| span(lifelines, line(index)).1).max())?;
    let marks = all.iter().flat_map(|index| lifelines.marks_of(line(index)));
    let fates: Vec<(u64, DataFate)> = fates_of(lifelines, marks)
        .chain(wanted.beside.iter().copied())
        .collect();
    let lines = thin_lifelines(lifelines, all, &HashSet::new(), MOST_LINES, |_| 1);
    if lines.is_empty() || to_ns < from_ns {
        return None;
    }
    let colouring = Colouring::from_lifelines(lifelines, index);
    let lines: Vec<DrawnLifeline<'_>> = lines
        .iter()
        .map(|at| (line(at), colouring.of[*at as usize]))
        .collect();
    let frame = PictureFrame::new(
        lifelines,
        &colouring,
        &lines,
        from_ns..to_ns.max(from_ns + 1),
    );
    let begins_ns = from_ns.saturating_sub(wanted.origin_ns);
    Some(LifelinePicture {
        scene: frame.scene(&lines, of_lines, &fates, begins_ns),
        lines: lines.len(),
        of_lines,
    })
}

/// The times and fates that marks of lines report.
fn fates_of<'l>(
    lifelines: &Lifelines,
    marks: impl Iterator<Item = &'l LifelinePassage>,
) -> impl Iterator<Item = (u64, DataFate)> {
    let of_points: Vec<Option<DataFate>> = lifelines
        .marked
        .iter()
        .map(|point| catalogue::fate(&point.keyword))
        .collect();
    marks.filter_map(move |mark| Some((mark.at_ns, (*of_points.get(mark.point as usize)?)?)))
}

/// The first and the last time of a line's events, ns.
fn span(lifelines: &Lifelines, line: &Lifeline) -> (u64, u64) {
    let events = || {
        lifelines
            .passages_of(line)
            .iter()
            .chain(lifelines.marks_of(line))
    };
    let moments = || events().map(|event| event.at_ns);
    (moments().min().unwrap_or(0), moments().max().unwrap_or(0))
}

/// A line and the number of its colour.
type DrawnLifeline<'l> = (&'l Lifeline, u32);

/// Maps times and stages to places in the picture.
struct PictureFrame<'l> {
    lifelines: &'l Lifelines,
    stages: Stages,
    from_ns: u64,
    to_ns: u64,
    /// By stage that lines pass: its row, from the bottom.
    rows: BTreeMap<u32, usize>,
    /// The entries of the legend: a name, its colour, whether its line is dashed.
    legend: Vec<(String, u32, bool)>,
    top: f32,
    bottom: f32,
}

impl<'l> PictureFrame<'l> {
    fn new(
        lifelines: &'l Lifelines,
        colouring: &'l Colouring,
        lines: &[DrawnLifeline<'_>],
        times_ns: Range<u64>,
    ) -> Self {
        let stages = Stages::from_lifelines(lifelines);
        let passages = lines
            .iter()
            .flat_map(|(line, _)| lifelines.passages_of(line));
        let met: BTreeSet<u32> = passages
            .map(|passage| stages.of[passage.point as usize])
            .collect();
        let rows: BTreeMap<u32, usize> = met.into_iter().zip(0..).collect();
        let legend = legend(colouring, lines);
        let high = legend.len().div_ceil(columns(&legend)) as f32 * 18.0;
        let top = 16.0 + high + 2.0 * LANE + 8.0;
        let bottom = top + ROW * rows.len() as f32;
        Self {
            lifelines,
            stages,
            from_ns: times_ns.start,
            to_ns: times_ns.end,
            rows,
            legend,
            top,
            bottom,
        }
    }

    fn x(&self, at_ns: u64) -> f32 {
        let since = at_ns as f64 - self.from_ns as f64;
        LEFT + (since / (self.to_ns - self.from_ns) as f64) as f32 * (RIGHT - LEFT)
    }

    fn y(&self, point: u32) -> f32 {
        let stage = self.stages.of.get(point as usize).copied().unwrap_or(0);
        self.row(self.rows.get(&stage).copied().unwrap_or(0))
    }

    fn row(&self, row: usize) -> f32 {
        self.bottom - ROW * (row as f32 + 0.5)
    }

    fn scene(
        &self,
        lines: &[DrawnLifeline<'_>],
        of_lines: usize,
        fates: &[(u64, DataFate)],
        begins_ns: u64,
    ) -> VectorScene {
        let mut shapes = Vec::new();
        for row in self.rows.values() {
            let points = vec![(LEFT, self.row(*row)), (RIGHT, self.row(*row))];
            shapes.push(SceneShape::Line {
                points,
                colour: RULE,
                width: 1.0,
                dashes: &[],
            });
        }
        lines
            .iter()
            .for_each(|(line, colour)| self.line(line, *colour, &mut shapes));
        let height = self.bottom + 52.0;
        shapes.extend(margins(height));
        self.names(&mut shapes);
        self.key(&mut shapes);
        self.bars(fates, &mut shapes);
        self.axis(&mut shapes);
        let shown = if lines.len() < of_lines {
            format!("{} of {of_lines} lines", lines.len())
        } else {
            String::new()
        };
        shapes.push(SceneShape::text(
            RIGHT,
            height - 6.0,
            TextAnchor::End,
            SOFT,
            shown,
        ));
        let begins = match begins_ns {
            0 => "time since the first event".into(),
            ns => format!(
                "0 s is {} after the first event",
                units::format_time(ns as f64 * 1e-9)
            ),
        };
        shapes.push(SceneShape::text(
            LEFT,
            height - 6.0,
            TextAnchor::Start,
            SOFT,
            begins,
        ));
        VectorScene {
            title: "lifelines".to_owned(),
            measure: SceneMeasure::Screen,
            width: WIDTH,
            height,
            shapes,
        }
    }

    fn names(&self, shapes: &mut Vec<SceneShape>) {
        for (stage, row) in &self.rows {
            let y = self.row(*row);
            let place = self.stages.place(*stage, NAME);
            shapes.push(SceneShape::text(
                LEFT - 10.0,
                y - 1.0,
                TextAnchor::End,
                INK,
                short(&self.stages.names[*stage as usize]),
            ));
            shapes.push(SceneShape::text(
                LEFT - 10.0,
                y + 11.0,
                TextAnchor::End,
                SOFT,
                short(&place),
            ));
        }
    }

    fn line(&self, line: &Lifeline, colour: u32, shapes: &mut Vec<SceneShape>) {
        let passages = self.lifelines.passages_of(line);
        let points: Vec<(f32, f32)> = passages
            .iter()
            .map(|p| (self.x(p.at_ns), self.y(p.point)))
            .collect();
        let end = points.last().copied().map(|(x, y)| match line.outcome {
            // A wall where it was given up, a cross where it was lost.
            LifelineOutcome::Flushed { .. } => vec![[(x, y - 5.0), (x, y + 5.0)]],
            LifelineOutcome::NeverArrived { .. } => [-4.0, 4.0]
                .map(|slant| [(x - 4.0, y - slant), (x + 4.0, y + slant)])
                .to_vec(),
            _ => Vec::new(),
        });
        for points in end.into_iter().flatten() {
            shapes.push(SceneShape::Line {
                points: points.to_vec(),
                colour: DROPPED,
                width: 1.6,
                dashes: &[],
            });
        }
        let colour = COLOURS[colour as usize % COLOURS.len()];
        shapes.push(SceneShape::Line {
            points,
            colour,
            width: 1.2,
            dashes: if is_broken(line) { DASHED } else { &[] },
        });
    }

    /// Draws the bars for retransmissions and drops above the lines, including those of lines that are not drawn.
    fn bars(&self, fates: &[(u64, DataFate)], shapes: &mut Vec<SceneShape>) {
        for (lane, (name, colour, wanted)) in BARS.into_iter().enumerate() {
            let y = self.top - 4.0 - LANE * (2 - lane) as f32;
            let shown = fates.iter().filter(|(at_ns, fate)| {
                (self.from_ns..=self.to_ns).contains(at_ns) && wanted.contains(fate)
            });
            let columns: BTreeSet<u32> = shown.map(|(at_ns, _)| self.x(*at_ns) as u32).collect();
            if !columns.is_empty() {
                shapes.push(SceneShape::text(
                    LEFT - 10.0,
                    y + 10.0,
                    TextAnchor::End,
                    SOFT,
                    name,
                ));
            }
            let bar = |x: u32| SceneShape::Rect {
                x: x as f32,
                y,
                width: 2.0,
                height: LANE - 4.0,
                colour,
            };
            shapes.extend(columns.into_iter().map(bar));
        }
    }

    fn key(&self, shapes: &mut Vec<SceneShape>) {
        let columns = columns(&self.legend);
        let wide = if columns == SHORT { ENTRY.0 } else { ENTRY.1 };
        for (place, (name, colour, dashed)) in self.legend.iter().enumerate() {
            let (x, y) = (
                LEFT + wide * (place % columns) as f32,
                10.0 + 18.0 * (place / columns) as f32,
            );
            let points = vec![(x, y - 1.5), (x + 18.0, y - 1.5)];
            shapes.push(SceneShape::Line {
                points,
                colour: *colour,
                width: 3.0,
                dashes: if *dashed { DASHED } else { &[] },
            });
            shapes.push(SceneShape::text(
                x + 24.0,
                y + 3.0,
                TextAnchor::Start,
                INK,
                short(name),
            ));
        }
    }

    /// Draws the time axis, which counts from the left edge.
    fn axis(&self, shapes: &mut Vec<SceneShape>) {
        let wide = (self.to_ns - self.from_ns) as f64;
        let step = round_step(wide / 7.0).max(1.0);
        let y = self.bottom + 6.0;
        shapes.push(SceneShape::Line {
            points: vec![(LEFT, y), (RIGHT, y)],
            colour: SOFT,
            width: 1.0,
            dashes: &[],
        });
        for tick in 0..=(wide / step) as u64 {
            let since = tick as f64 * step;
            let x = LEFT + (since / wide) as f32 * (RIGHT - LEFT);
            shapes.push(SceneShape::Line {
                points: vec![(x, y), (x, y + 5.0)],
                colour: SOFT,
                width: 1.0,
                dashes: &[],
            });
            shapes.push(SceneShape::text(
                x,
                y + 18.0,
                TextAnchor::Middle,
                INK,
                units::format_time(since * 1e-9),
            ));
        }
    }
}

/// The margins, which cover what goes beyond the time shown.
fn margins(height: f32) -> [SceneShape; 2] {
    let cover = |x, width| SceneShape::Rect {
        x,
        y: 0.0,
        width,
        height,
        colour: PAPER,
    };
    [cover(0.0, LEFT), cover(RIGHT, WIDTH - RIGHT)]
}

/// The entries of the legend: the colours in use, and the meaning of dashed lines.
fn legend(colouring: &Colouring, lines: &[DrawnLifeline<'_>]) -> Vec<(String, u32, bool)> {
    let kinds: BTreeSet<u32> = lines.iter().map(|(_, colour)| *colour).collect();
    let name = |kind: u32| {
        colouring
            .names
            .get(kind as usize)
            .cloned()
            .unwrap_or_default()
    };
    let mut entries: Vec<(String, u32, bool)> = kinds
        .into_iter()
        .map(|kind| (name(kind), COLOURS[kind as usize % COLOURS.len()], false))
        .collect();
    for (wanted, said) in [
        (true, "flushed: | marks the end"),
        (false, "never arrived: x marks the end"),
    ] {
        let is = |line: &Lifeline| {
            is_broken(line) && matches!(line.outcome, LifelineOutcome::Flushed { .. }) == wanted
        };
        if lines.iter().any(|(line, _)| is(line)) {
            entries.push((said.into(), SOFT, true));
        }
    }
    entries
}

/// How many entries of the legend are on one line.
fn columns(legend: &[(String, u32, bool)]) -> usize {
    if legend.iter().all(|(name, ..)| name.chars().count() <= 20) {
        SHORT
    } else {
        SHORT - 1
    }
}

/// Whether a unit was flushed or lost, so that its line is dashed.
const fn is_broken(line: &Lifeline) -> bool {
    matches!(
        line.outcome,
        LifelineOutcome::Flushed { .. } | LifelineOutcome::NeverArrived { .. }
    )
}

/// A name cut to the available space.
fn short(name: &str) -> String {
    if name.chars().count() <= NAME {
        name.to_owned()
    } else {
        name.chars().take(NAME - 1).chain(['…']).collect()
    }
}

#[cfg(test)]
mod tests;
