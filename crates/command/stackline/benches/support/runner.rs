//! Runs the sides of a case in turns and keeps their figures.

use super::args::Options;
use super::cases::Case;
use super::figure::{Figure, Unit, spread};
use super::neighbours::Neighbours;

/// A side's figures, one a round, or why it has none.
pub(crate) struct Row {
    /// The side.
    pub(crate) side: String,
    /// By round; `None` where it failed.
    pub(crate) rounds: Vec<Option<Figure>>,
    /// The last failure.
    pub(crate) failure: Option<String>,
}

impl Row {
    /// Median, least and greatest figure.
    pub(crate) fn value(&self) -> Option<(f64, f64, f64)> {
        spread(&self.figures(|figure| Some(figure.value)))
    }

    /// Median, least and greatest CPU time.
    pub(crate) fn cpu(&self) -> Option<(f64, f64, f64)> {
        spread(&self.figures(|figure| figure.cpu))
    }

    /// The note of the last round.
    pub(crate) fn note(&self) -> &str {
        self.rounds
            .iter()
            .flatten()
            .next_back()
            .map_or("", |figure| figure.note.trim())
    }

    fn figures(&self, of: impl Fn(&Figure) -> Option<f64>) -> Vec<f64> {
        self.rounds.iter().flatten().filter_map(of).collect()
    }

    /// This side's figure over another's, round by round, so that what the host did to both cancels.
    pub(crate) fn ratio(&self, other: &Self) -> Option<(f64, f64, f64)> {
        let pairs = self
            .rounds
            .iter()
            .zip(&other.rounds)
            .filter_map(|(a, b)| Some((a.as_ref()?, b.as_ref()?)));
        spread(&pairs.map(|(a, b)| a.value / b.value).collect::<Vec<_>>())
    }
}

/// A case that was run.
pub(crate) struct Outcome {
    /// Its name.
    pub(crate) name: String,
    /// What its figures are.
    pub(crate) unit: Unit,
    /// Its sides, the subject first.
    pub(crate) rows: Vec<Row>,
    /// What was left out, and why.
    pub(crate) notes: Vec<String>,
    /// Processors' worth of time that other processes took meanwhile.
    pub(crate) others: Option<f64>,
}

/// Runs a case; `None` when none of its sides is wanted.
pub(crate) fn run(case: Case, options: &Options) -> Option<Outcome> {
    let sides: Vec<_> = case
        .sides
        .into_iter()
        .filter(|side| options.wants_side(&side.name))
        .collect();
    if sides.is_empty() {
        return None;
    }
    let rounds = case
        .rounds
        .map_or(options.rounds, |own| if options.quick { 1 } else { own });
    let row = |name: &String| Row {
        side: name.clone(),
        rounds: Vec::new(),
        failure: None,
    };
    let mut rows: Vec<Row> = sides.iter().map(|side| row(&side.name)).collect();
    let neighbours = Neighbours::watch();
    for round in 0..rounds {
        let mut turns: Vec<usize> = (0..sides.len()).collect();
        if round % 2 == 1 {
            turns.reverse(); // nobody is always first
        }
        for turn in turns {
            keep(&mut rows[turn], (sides[turn].run)());
        }
    }
    Some(Outcome {
        name: case.name,
        unit: case.unit,
        rows,
        notes: case.notes,
        others: neighbours.took(),
    })
}

fn keep(row: &mut Row, result: Result<Figure, String>) {
    match result {
        Ok(figure) => row.rounds.push(Some(figure)),
        Err(reason) => {
            row.failure = Some(reason);
            row.rounds.push(None);
        }
    }
}
