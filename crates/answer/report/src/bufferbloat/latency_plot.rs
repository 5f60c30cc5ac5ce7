//! Latency over time as a plot of characters: a column is an interval, the phases stand side by side.

use super::{LatencyScale, PlotForm};
use stackline_analyze::bufferbloat::{BufferbloatAnswer, PhaseLatency, ProbeKind, ProbedLatency};
use stackline_core::units;

/// With which characters a plot is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlotCharacters {
    /// Blocks of eighths of a line.
    Blocks,
    /// ASCII alone, in whole lines.
    Ascii,
}

/// Lines of a plot.
const LINES: usize = 6;
/// Levels of a line.
const EIGHTHS: usize = 8;
/// Columns of the labels at the left, with the axis.
const MARGIN: usize = 10;
/// The least and the most columns of a phase.
const PHASE_COLUMNS: (usize, usize) = (8, 22);
/// Blocks of one eighth to seven eighths.
const BLOCKS: [char; 7] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇'];

/// The plots of an answer: of the foreign probes, and of the self probes if there are any.
pub(super) fn latency_plots(
    answer: &BufferbloatAnswer,
    form: PlotForm,
    scale: LatencyScale,
) -> String {
    let (fewest, most) = PHASE_COLUMNS;
    // Two more are the lines between phases.
    let each = form.columns.min(80).saturating_sub(MARGIN + 2) / answer.phases.len().max(1);
    let axes = PlotAxes {
        scale,
        columns: each.clamp(fewest, most),
        characters: form.characters,
    };
    let (median, most, beyond) = match form.characters {
        PlotCharacters::Blocks => ('█', '░', '▲'),
        PlotCharacters::Ascii => ('#', ':', '^'),
    };
    let mut text = format!(
        "latency over time: {median} median, {most} most of each interval, {beyond} beyond the scale\n"
    );
    for (kind, name) in [
        (ProbeKind::Foreign, "on connections of their own"),
        (ProbeKind::OnLoad, "on the loading connections"),
    ] {
        let phases = answer.phases.iter();
        let drawn: Vec<Vec<IntervalLevels>> =
            phases.map(|phase| axes.levels(phase, kind)).collect();
        if drawn.iter().flatten().any(|levels| levels.most > 0) {
            text += &format!("{name}\n");
            text += &axes.plot(answer, &drawn);
        }
    }
    text
}

/// What both plots of an answer have in common.
struct PlotAxes {
    scale: LatencyScale,
    /// Columns of a phase.
    columns: usize,
    characters: PlotCharacters,
}

/// How high an interval reaches, in eighths of a line: 0 without a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct IntervalLevels {
    median: usize,
    most: usize,
    /// Whether a probe was beyond the scale.
    is_beyond: bool,
}

impl PlotAxes {
    /// How high each interval of a phase reaches.
    fn levels(&self, phase: &PhaseLatency, kind: ProbeKind) -> Vec<IntervalLevels> {
        let scale = self.scale;
        let mut intervals: Vec<Vec<&ProbedLatency>> = vec![Vec::new(); self.columns];
        for probe in phase.series.iter().filter(|probe| probe.probe == kind) {
            intervals[self.column(probe)].push(probe);
        }
        let level = |latency_s: f64| {
            let share = latency_s / scale.most_s;
            ((share * (LINES * EIGHTHS) as f64).round() as usize).clamp(1, LINES * EIGHTHS)
        };
        let of_interval = |mut all: Vec<&ProbedLatency>| {
            all.sort_by(|one, other| one.latency_s.total_cmp(&other.latency_s));
            match (all.get(all.len() / 2), all.last()) {
                (Some(median), Some(most)) => IntervalLevels {
                    median: level(median.latency_s),
                    most: level(most.latency_s),
                    is_beyond: scale.is_beyond(most),
                },
                _ => IntervalLevels::default(),
            }
        };
        intervals.into_iter().map(of_interval).collect()
    }

    fn column(&self, probe: &ProbedLatency) -> usize {
        let LatencyScale { from_s, to_s, .. } = self.scale;
        let share = (probe.at_s - from_s) / (to_s - from_s).max(f64::MIN_POSITIVE);
        ((share * self.columns as f64) as usize).min(self.columns - 1)
    }

    fn plot(&self, answer: &BufferbloatAnswer, phases: &[Vec<IntervalLevels>]) -> String {
        let characters = self.characters;
        let (side, corner, below, between) = match characters {
            PlotCharacters::Blocks => ('│', '└', '─', '┴'),
            PlotCharacters::Ascii => ('|', '+', '-', '+'),
        };
        let mut text = String::new();
        let label = |share: f64| units::format_time(self.scale.most_s * share);
        for line in (0..LINES).rev() {
            let label = match line + 1 {
                LINES => label(1.0),
                at if at * 2 == LINES => label(0.5),
                _ => String::new(),
            };
            let of_phase = |levels: &Vec<IntervalLevels>| {
                let columns = levels.iter();
                columns
                    .map(|levels| character(*levels, line * EIGHTHS, characters))
                    .collect::<String>()
            };
            let drawn: Vec<String> = phases.iter().map(of_phase).collect();
            let whole = format!("{label:>8} {side}{}", drawn.join(&side.to_string()));
            text += whole.trim_end();
            text.push('\n');
        }
        let foot = vec![below.to_string().repeat(self.columns); phases.len()];
        text += &format!("{:>8} {corner}{}\n", "0 s", foot.join(&between.to_string()));
        let names = answer.phases.iter();
        let names: Vec<String> = names
            .map(|phase| format!("{:<width$}", phase.phase.name(), width = self.columns))
            .collect();
        text += format!("{:>MARGIN$}{}", "", names.join(" ")).trim_end();
        text + "\n"
    }
}

/// The character of an interval in the line that begins at `base` eighths.
fn character(levels: IntervalLevels, base: usize, characters: PlotCharacters) -> char {
    let filled = levels.median.saturating_sub(base);
    let most = levels.most.saturating_sub(base);
    let is_top = base + EIGHTHS == LINES * EIGHTHS;
    match characters {
        PlotCharacters::Blocks if is_top && levels.is_beyond => '▲',
        PlotCharacters::Ascii if is_top && levels.is_beyond => '^',
        PlotCharacters::Blocks if filled >= EIGHTHS => '█',
        PlotCharacters::Blocks if filled > 0 => BLOCKS[filled - 1],
        PlotCharacters::Blocks if most > 0 => '░',
        // Of a line that is less than half full nothing is shown, except of the lowest.
        PlotCharacters::Ascii if filled >= EIGHTHS / 2 || base == 0 && filled > 0 => '#',
        PlotCharacters::Ascii if most >= EIGHTHS / 2 => ':',
        _ => ' ',
    }
}
