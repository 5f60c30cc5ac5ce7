//! The answer whether latency grows under load: a table of the phases, the growth, and the grade with its rule.

use crate::figure::ABSENT;
use crate::grid::{Align, line, widths};
use serde_json::{Value, json};
use stackline_analyze::bufferbloat::{BufferbloatAnswer, GRADES, PhaseLatency};
use stackline_core::units;

/// An answer and what it is about.
#[derive(Debug)]
pub struct TitledBufferbloat {
    /// What was loaded.
    pub title: String,
    /// The answer.
    pub answer: BufferbloatAnswer,
    /// The directory of the runs.
    pub directory: String,
}

/// Answers of one path, as it is and then with changes, as text.
#[must_use]
pub fn bufferbloat(answers: &[TitledBufferbloat]) -> String {
    let mut text = String::new();
    for TitledBufferbloat { title, answer, .. } in answers {
        text += &format!("{title}\n{}{}\n", phases(answer), verdict(answer));
    }
    text += &compared(answers);
    text += &format!("grades, by growth of the median latency: {}\n", rule());
    text += "rtt/min: round trips a minute, of connections and requests of their own\n";
    for TitledBufferbloat { directory, .. } in answers {
        text += &format!("kept in {directory}\n");
    }
    text
}

fn phases(answer: &BufferbloatAnswer) -> String {
    let head = [
        "", "n", "median", "p90", "p99", "connect", "load", "rtt/min",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(answer.phases.iter().map(figures));
    let mut align = [Align::Right; 8];
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
    text
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
        load.map_or_else(|| ABSENT.into(), units::format_rate),
        phase
            .round_trips_per_minute
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
            "run": titled.directory,
            "phases": answer.phases,
            "growth_s": answer.growth_s,
            "worst": answer.worst,
            "grade": answer.grade,
        })
    };
    Value::Array(answers.iter().map(one).collect())
}
