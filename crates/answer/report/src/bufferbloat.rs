//! The answer whether latency grows under load: a table of the phases, the growth, the grade with its rule, and latency over time.

mod latency_picture;
mod latency_plot;

pub use latency_picture::latency_picture;
pub use latency_plot::PlotCharacters;

use crate::figure::ABSENT;
use crate::grid::{Align, line, widths};
use latency_plot::latency_plots;
use serde_json::{Value, json};
use stackline_analyze::bufferbloat::{
    BufferbloatAnswer, GRADES, PhaseLatency, ProbeKind, ProbedLatency,
};
use stackline_core::units;
use std::collections::BTreeMap;

/// An answer and what it is about.
#[derive(Debug)]
pub struct TitledBufferbloat {
    /// What was loaded.
    pub title: String,
    /// The answer.
    pub answer: BufferbloatAnswer,
    /// The version of HTTP that was spoken, as people write it; absent across a modelled line.
    pub http: Option<&'static str>,
    /// The directory of the runs.
    pub directory: String,
}

/// How latency over time is drawn in a text.
#[derive(Clone, Copy, Debug)]
pub struct PlotForm {
    /// With which characters.
    pub characters: PlotCharacters,
    /// In how many columns; more than 80 are not used.
    pub columns: usize,
}

/// Answers of one path, as it is and then with changes, as text; with latency over time if `plot` says how.
#[must_use]
pub fn bufferbloat(answers: &[TitledBufferbloat], plot: Option<PlotForm>) -> String {
    let mut text = String::new();
    let form = plot.zip(LatencyScale::of_answers(answers));
    for TitledBufferbloat { title, answer, .. } in answers {
        text += &format!("{title}\n{}", phases(answer));
        if let Some((form, scale)) = form {
            text += &latency_plots(answer, form, scale);
        }
        text += &format!("{}\n", verdict(answer));
    }
    text += &compared(answers);
    text += &format!("grades, by growth of the median latency: {}\n", rule());
    text += &probes(answers);
    for TitledBufferbloat { directory, .. } in answers {
        text += &format!("kept in {directory}\n");
    }
    text
}

/// What round trips a minute are the mean of, and why there are no self probes where there are none.
fn probes(answers: &[TitledBufferbloat]) -> String {
    let phases = || answers.iter().flat_map(|one| &one.answer.phases);
    let mut text =
        String::from("rtt/min: round trips a minute, of connections and requests of their own");
    if phases().any(|phase| phase.self_latency_s.is_some()) {
        text += " (foreign probes)\n         and of requests on the loading connections (self probes), half each";
    }
    text.push('\n');
    let mut reasons: Vec<&str> = phases()
        .filter_map(|phase| phase.self_absent.as_deref())
        .collect();
    reasons.dedup();
    for reason in reasons {
        text += &format!("no requests on the loading connections: {reason}\n");
    }
    text
}

/// What plots and panels of all answers have in common, so that they can be compared.
#[derive(Clone, Copy, Debug)]
struct LatencyScale {
    /// When the first and the last probe of a phase began, s.
    from_s: f64,
    to_s: f64,
    /// The greatest latency that has a place, s: a tenth of a phase's probes may be beyond, as those whose packets were lost.
    most_s: f64,
}

impl LatencyScale {
    /// The scale of these answers; `None` if no probe was answered.
    fn of_answers(answers: &[TitledBufferbloat]) -> Option<Self> {
        let phases = || answers.iter().flat_map(|one| &one.answer.phases);
        let times = || {
            phases()
                .flat_map(|phase| &phase.series)
                .map(|probe| probe.at_s)
        };
        let usual = |phase: &PhaseLatency, kind: ProbeKind| {
            let probes = phase.series.iter().filter(|probe| probe.probe == kind);
            let mut all: Vec<f64> = probes.map(|probe| probe.latency_s).collect();
            all.sort_by(f64::total_cmp);
            all.get(all.len() * 9 / 10).copied().unwrap_or(0.0)
        };
        let kinds = [ProbeKind::Foreign, ProbeKind::OnLoad];
        let usual = phases().flat_map(|phase| kinds.map(|kind| usual(phase, kind)));
        Some(Self {
            from_s: times().reduce(f64::min)?,
            to_s: times().reduce(f64::max)?,
            most_s: 1.2 * usual.fold(f64::MIN_POSITIVE, f64::max),
        })
    }

    /// Whether a probe took longer than what has a place.
    fn is_beyond(&self, probe: &ProbedLatency) -> bool {
        probe.latency_s > self.most_s
    }
}

fn phases(answer: &BufferbloatAnswer) -> String {
    let head = [
        "", "n", "median", "p90", "p99", "connect", "self", "load", "rtt/min",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(answer.phases.iter().map(figures));
    let mut align = [Align::Right; 9];
    align[0] = Align::Left;
    let widths = widths(&rows);
    let mut text: String = rows
        .iter()
        .map(|row| line(row, &widths, &align) + "\n")
        .collect();
    for phase in &answer.phases {
        if let Some(why) = &phase.absent {
            text += &format!("! {}: {why}\n", phase.phase.name());
        }
    }
    text + &flags(answer)
}

/// What makes figures doubtful, each flag once with its phases.
fn flags(answer: &BufferbloatAnswer) -> String {
    let mut phases_of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for phase in &answer.phases {
        for flag in &phase.flags {
            phases_of.entry(flag).or_default().push(phase.phase.name());
        }
    }
    let lines = phases_of.iter();
    let lines = lines.map(|(flag, phases)| format!("! {}: {flag}\n", phases.join(", ")));
    lines.collect()
}

fn figures(phase: &PhaseLatency) -> Vec<String> {
    let time = |seconds: Option<f64>| seconds.map_or_else(|| ABSENT.into(), units::format_time);
    let latency = phase.latency_s;
    let load = phase.load_bit_s;
    vec![
        phase.phase.name().to_owned(),
        latency.map_or_else(|| ABSENT.into(), |latency| latency.n.to_string()),
        time(latency.map(|latency| latency.median)),
        time(latency.map(|latency| latency.p90)),
        time(latency.map(|latency| latency.p99)),
        time(phase.connect_s.map(|connect| connect.median)),
        time(phase.self_latency_s.map(|latency| latency.median)),
        load.map_or_else(|| ABSENT.into(), units::format_rate),
        phase
            .round_trips_per_minute
            .both
            .map_or_else(|| ABSENT.into(), |rpm| format!("{rpm:.0}")),
    ]
}

fn verdict(answer: &BufferbloatAnswer) -> String {
    match (answer.growth_s, answer.worst, answer.grade) {
        (Some(growth), Some(worst), Some(grade)) => format!(
            "grade {grade}: the median latency grows by {} under load ({})\n",
            units::format_time(growth),
            worst.name()
        ),
        _ => "no grade: latency was not measured both idle and under load\n".into(),
    }
}

/// How much less latency grows with each change.
fn compared(answers: &[TitledBufferbloat]) -> String {
    let Some((first, changed)) = answers.split_first() else {
        return String::new();
    };
    let before = first.answer.growth_s.filter(|growth| *growth > 0.0);
    let sentence = |one: &TitledBufferbloat| {
        let (before, after) = (before?, one.answer.growth_s?);
        Some(format!(
            "{}: latency grows by {} instead of {}\n",
            one.title,
            units::format_time(after),
            units::format_time(before)
        ))
    };
    changed.iter().filter_map(sentence).collect()
}

/// The rule of the grades: `A+ below 5 ms, A below 30 ms, ...`.
fn rule() -> String {
    let each = GRADES.iter().map(|(grade, below)| {
        if below.is_finite() {
            format!("{grade} < {}", units::format_time(*below))
        } else {
            (*grade).to_owned()
        }
    });
    each.collect::<Vec<_>>().join(", ")
}

/// The same for programs.
#[must_use]
pub fn bufferbloat_json(answers: &[TitledBufferbloat]) -> Value {
    let one = |titled: &TitledBufferbloat| {
        let answer = &titled.answer;
        json!({
            "path": titled.title,
            "http": titled.http,
            "run": titled.directory,
            "phases": answer.phases,
            "growth_s": answer.growth_s,
            "worst": answer.worst,
            "grade": answer.grade,
        })
    };
    Value::Array(answers.iter().map(one).collect())
}

#[cfg(test)]
mod tests;
