//! Latency over time as a picture: each probe is a dot, the phases stand side by side, and answers one below the other on the same scale.

use super::{LatencyScale, TitledBufferbloat};
use crate::chart::step;
use crate::colours::LIGHT;
use crate::scene::{SceneShape, TextAnchor, VectorScene};
use stackline_analyze::bufferbloat::{PhaseLatency, ProbeKind};
use stackline_core::units;

const INK: u32 = 0x1f2933;
const SOFT: u32 = 0x52606d;
const RULE: u32 = 0xdde3ea;
const PANEL: u32 = 0xf5f7fa;

const WIDTH: f32 = 960.0;
const LEFT: f32 = 74.0;
const RIGHT: f32 = WIDTH - 24.0;
/// Where the first answer begins, below the heading.
const TOP: f32 = 64.0;
/// The height of an answer, and within it where its panels begin and end.
const ANSWER: f32 = 282.0;
const PANEL_TOP: f32 = 42.0;
const PANEL_END: f32 = 232.0;
/// Between two panels.
const GAP: f32 = 14.0;
/// The most dots of a phase.
const DOTS: usize = 4000;

/// The kinds of probes with their colours and names.
const KINDS: [(ProbeKind, u32, &str); 2] = [
    (
        ProbeKind::Foreign,
        LIGHT[0],
        "a request on a connection of its own",
    ),
    (
        ProbeKind::OnLoad,
        LIGHT[1],
        "a request on a loading connection (idle: an open one)",
    ),
];

/// Draws the answers; `None` if no probe was answered.
#[must_use]
pub fn latency_picture(answers: &[TitledBufferbloat]) -> Option<VectorScene> {
    let latency = LatencyScale::of_answers(answers)?;
    let scale = PictureScale { latency };
    let mut phases = answers.iter().flat_map(|one| &one.answer.phases);
    let has_self = phases.any(|phase| phase.self_latency_s.is_some());
    let title = "latency over time, idle and under load";
    let mut shapes = vec![text(LEFT, 26.0, TextAnchor::Start, INK, title)];
    legend(&mut shapes, has_self);
    let mut top = TOP;
    for one in answers {
        scale.draw(one, top, &mut shapes);
        top += ANSWER;
    }
    Some(VectorScene {
        title: title.to_owned(),
        width: WIDTH,
        height: top + 8.0,
        shapes,
    })
}

fn legend(shapes: &mut Vec<SceneShape>, has_self: bool) {
    let mut at = LEFT + 4.0;
    for (_, colour, name) in KINDS.iter().take(1 + usize::from(has_self)) {
        shapes.push(dot(at, 44.0, 3.0, *colour));
        shapes.push(text(at + 10.0, 48.0, TextAnchor::Start, SOFT, name));
        at += 290.0;
    }
    shapes.push(line([(at, 44.0), (at + 24.0, 44.0)], INK, true));
    let name = "median on connections of their own";
    shapes.push(text(at + 32.0, 48.0, TextAnchor::Start, SOFT, name));
}

/// What all panels have in common.
struct PictureScale {
    latency: LatencyScale,
}

impl PictureScale {
    fn draw(&self, one: &TitledBufferbloat, top: f32, shapes: &mut Vec<SceneShape>) {
        let grade = one.answer.grade.map_or_else(String::new, |grade| {
            let growth = one
                .answer
                .growth_s
                .map_or_else(String::new, units::format_time);
            format!(": grade {grade}, the median grows by {growth}")
        });
        let heading = format!("{}{grade}", one.title);
        shapes.push(text(LEFT, top + 16.0, TextAnchor::Start, INK, &heading));
        let phases = one.answer.phases.len().max(1) as f32;
        let width = (RIGHT - LEFT - GAP * (phases - 1.0)) / phases;
        for (at, phase) in one.answer.phases.iter().enumerate() {
            let left = LEFT + (width + GAP) * at as f32;
            let panel = PicturePanel {
                scale: self,
                left,
                width,
                top: top + PANEL_TOP,
                bottom: top + PANEL_END,
            };
            panel.draw(phase, at == 0, shapes);
        }
    }

    /// The latencies of grid lines, s.
    fn grid(&self) -> impl Iterator<Item = f64> + use<> {
        let (step, most) = (step(self.latency.most_s / 5.0), self.latency.most_s);
        (0..)
            .map(move |at| f64::from(at) * step)
            .take_while(move |at| *at <= most)
    }

    /// The times with labels, s.
    fn times(&self) -> impl Iterator<Item = f64> + use<> {
        let (step, most) = (step(self.latency.to_s / 5.0), self.latency.to_s);
        (0..)
            .map(move |at| f64::from(at) * step)
            .take_while(move |at| *at <= most)
    }
}

/// Where the probes of a phase are drawn.
struct PicturePanel<'s> {
    scale: &'s PictureScale,
    left: f32,
    width: f32,
    top: f32,
    bottom: f32,
}

impl PicturePanel<'_> {
    fn x(&self, seconds: f64) -> f32 {
        self.left + self.width * (seconds / self.scale.latency.to_s) as f32
    }

    /// What has no place is drawn at the upper edge.
    fn y(&self, latency_s: f64) -> f32 {
        let share = (latency_s / self.scale.latency.most_s).min(1.0);
        self.bottom - (self.bottom - self.top) * share as f32
    }

    fn draw(&self, phase: &PhaseLatency, has_labels: bool, shapes: &mut Vec<SceneShape>) {
        let (left, right) = (self.left, self.left + self.width);
        shapes.push(SceneShape::Rect {
            x: left,
            y: self.top,
            width: self.width,
            height: self.bottom - self.top,
            colour: PANEL,
        });
        for latency_s in self.scale.grid() {
            let y = self.y(latency_s);
            shapes.push(line([(left, y), (right, y)], RULE, false));
            if has_labels {
                let label = units::format_time(latency_s);
                shapes.push(text(left - 8.0, y + 4.0, TextAnchor::End, SOFT, &label));
            }
        }
        for seconds in self.scale.times() {
            let label = format!("{seconds} s");
            let at = (self.x(seconds), self.bottom + 16.0);
            shapes.push(text(at.0, at.1, TextAnchor::Middle, SOFT, &label));
        }
        let load = phase.load_bit_s.map(units::format_rate);
        let load = load.map_or_else(String::new, |load| format!(", {load}"));
        let absent = phase.absent.as_ref().map_or("", |_| ", not measured");
        let name = format!("{}{load}{absent}", phase.phase.name());
        shapes.push(text(left, self.top - 8.0, TextAnchor::Start, INK, &name));
        self.probes(phase, shapes);
        if let Some(latency) = phase.latency_s {
            let y = self.y(latency.median);
            shapes.push(line([(left, y), (right, y)], INK, true));
        }
    }

    fn probes(&self, phase: &PhaseLatency, shapes: &mut Vec<SceneShape>) {
        let stride = phase.series.len().div_ceil(DOTS).max(1);
        for probe in phase.series.iter().step_by(stride) {
            let known = KINDS.iter().find(|(kind, ..)| *kind == probe.probe);
            let colour = known.map_or(INK, |(_, colour, _)| *colour);
            let at = (self.x(probe.at_s), self.y(probe.latency_s));
            shapes.push(dot(at.0, at.1, 2.0, colour));
        }
        let beyond = || {
            let all = phase.series.iter();
            all.filter(|probe| self.scale.latency.is_beyond(probe))
        };
        if let Some(most) = beyond().map(|probe| probe.latency_s).reduce(f64::max) {
            let (n, most) = (beyond().count(), units::format_time(most));
            let words = format!("{n} beyond, up to {most}");
            let right = self.left + self.width - 4.0;
            shapes.push(text(right, self.top + 14.0, TextAnchor::End, SOFT, &words));
        }
    }
}

const fn dot(x: f32, y: f32, radius: f32, colour: u32) -> SceneShape {
    SceneShape::Dot {
        x,
        y,
        radius,
        colour,
    }
}

fn line(points: [(f32, f32); 2], colour: u32, dashed: bool) -> SceneShape {
    SceneShape::Line {
        points: points.to_vec(),
        colour,
        width: 1.0,
        dashed,
    }
}

fn text(x: f32, y: f32, anchor: TextAnchor, colour: u32, words: &str) -> SceneShape {
    SceneShape::Text {
        x,
        y,
        anchor,
        colour,
        text: words.to_owned(),
    }
}
