//! Latency over time as a picture: each probe is a dot, the phases stand side by side, and answers one below the other on the same scale.

use super::{LatencyScale, TitledBufferbloat};
use crate::axes::{AxesFrame, Axis, AxisScale, AxisTick};
use crate::colours::{INK, LIGHT, PANEL, SOFT};
use crate::scene::{DASHED, SceneMeasure, SceneShape, TextAnchor, VectorScene};
use stackline_analyze::bufferbloat::{PhaseLatency, ProbeKind};
use stackline_core::units;

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
    let mut shapes = vec![SceneShape::text(LEFT, 26.0, TextAnchor::Start, INK, title)];
    legend(&mut shapes, has_self);
    let mut top = TOP;
    for one in answers {
        scale.draw(one, top, &mut shapes);
        top += ANSWER;
    }
    Some(VectorScene {
        title: title.to_owned(),
        measure: SceneMeasure::Screen,
        width: WIDTH,
        height: top + 8.0,
        shapes,
    })
}

fn legend(shapes: &mut Vec<SceneShape>, has_self: bool) {
    let mut at = LEFT + 4.0;
    for (_, colour, name) in KINDS.iter().take(1 + usize::from(has_self)) {
        shapes.push(dot(at, 44.0, 3.0, *colour));
        shapes.push(SceneShape::text(
            at + 10.0,
            48.0,
            TextAnchor::Start,
            SOFT,
            *name,
        ));
        at += 290.0;
    }
    shapes.push(dashed([(at, 44.0), (at + 24.0, 44.0)]));
    let name = "median on connections of their own";
    shapes.push(SceneShape::text(
        at + 32.0,
        48.0,
        TextAnchor::Start,
        SOFT,
        name,
    ));
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
        shapes.push(SceneShape::text(
            LEFT,
            top + 16.0,
            TextAnchor::Start,
            INK,
            heading,
        ));
        let phases = one.answer.phases.len().max(1) as f32;
        let width = (RIGHT - LEFT - GAP * (phases - 1.0)) / phases;
        for (at, phase) in one.answer.phases.iter().enumerate() {
            let left = LEFT + (width + GAP) * at as f32;
            let frame = self.frame([left, left + width], top, at == 0);
            let panel = PicturePanel {
                scale: self.latency,
                frame,
            };
            panel.draw(phase, shapes);
        }
    }

    /// The frame of a phase between these edges, in an answer that begins at `top`.
    fn frame(&self, edges: [f32; 2], top: f32, has_y_labels: bool) -> AxesFrame {
        let axis = |to: f64| Axis {
            name: String::new(),
            scale: AxisScale::Linear,
            from: 0.0,
            to,
        };
        let ticks = |axis: &Axis, label: fn(f64) -> String| {
            let values = axis.round_values(5.0).into_iter();
            values
                .map(|value| AxisTick {
                    value,
                    label: label(value),
                })
                .collect()
        };
        let (x, y) = (axis(self.latency.to_s), axis(self.latency.most_s));
        AxesFrame {
            left: edges[0],
            right: edges[1],
            top: top + PANEL_TOP,
            bottom: top + PANEL_END,
            x_ticks: ticks(&x, |seconds| format!("{seconds} s")),
            y_ticks: ticks(&y, units::format_time),
            x,
            y,
            has_y_labels,
            ground: Some(PANEL),
            letters: SceneMeasure::Screen.letters(),
        }
    }
}

/// Where the probes of a phase are drawn.
struct PicturePanel {
    scale: LatencyScale,
    frame: AxesFrame,
}

impl PicturePanel {
    /// What has no place is drawn at the upper edge.
    fn y(&self, latency_s: f64) -> f32 {
        self.frame.y(latency_s.min(self.scale.most_s))
    }

    fn draw(&self, phase: &PhaseLatency, shapes: &mut Vec<SceneShape>) {
        let (left, right) = (self.frame.left, self.frame.right);
        self.frame.draw_ground(shapes);
        let load = phase.load_bit_s.map(units::format_rate);
        let load = load.map_or_else(String::new, |load| format!(", {load}"));
        let absent = phase.absent.as_ref().map_or("", |_| ", not measured");
        let name = format!("{}{load}{absent}", phase.phase.name());
        let above = self.frame.top - 8.0;
        shapes.push(SceneShape::text(left, above, TextAnchor::Start, INK, name));
        self.probes(phase, shapes);
        if let Some(latency) = phase.latency_s {
            let y = self.y(latency.median);
            shapes.push(dashed([(left, y), (right, y)]));
        }
    }

    fn probes(&self, phase: &PhaseLatency, shapes: &mut Vec<SceneShape>) {
        let stride = phase.series.len().div_ceil(DOTS).max(1);
        for probe in phase.series.iter().step_by(stride) {
            let known = KINDS.iter().find(|(kind, ..)| *kind == probe.probe);
            let colour = known.map_or(INK, |(_, colour, _)| *colour);
            let at = (self.frame.x(probe.at_s), self.y(probe.latency_s));
            shapes.push(dot(at.0, at.1, 2.0, colour));
        }
        let beyond = || {
            let all = phase.series.iter();
            all.filter(|probe| self.scale.is_beyond(probe))
        };
        if let Some(most) = beyond().map(|probe| probe.latency_s).reduce(f64::max) {
            let (n, most) = (beyond().count(), units::format_time(most));
            let words = format!("{n} beyond, up to {most}");
            let at = (self.frame.right - 4.0, self.frame.top + 14.0);
            shapes.push(SceneShape::text(at.0, at.1, TextAnchor::End, SOFT, words));
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

fn dashed(points: [(f32, f32); 2]) -> SceneShape {
    SceneShape::Line {
        points: points.to_vec(),
        colour: INK,
        width: 1.0,
        dashes: DASHED,
    }
}
