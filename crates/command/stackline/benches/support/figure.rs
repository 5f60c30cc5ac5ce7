//! One side's figure of one round, and the statistics over rounds.

/// What a figure is, and so how it is shown and which way is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unit {
    /// Received payload; more is better.
    BitPerSecond,
    /// Time of one call; less is better.
    Call,
    /// Time of a whole command; less is better.
    Command,
}

impl Unit {
    /// Divisor and name for people.
    pub(crate) fn shown(self) -> (f64, &'static str) {
        match self {
            Self::BitPerSecond => (1e9, "Gbit/s"),
            Self::Call => (1e-6, "us"),
            Self::Command => (1e-3, "ms"),
        }
    }

    /// What CPU time is divided by, the divisor for people, and the name.
    pub(crate) fn cost(self) -> (f64, &'static str) {
        match self {
            Self::BitPerSecond => (1.0, "CPU s/GB"),
            Self::Call => (1e-6, "CPU us/call"),
            Self::Command => (1e-3, "CPU ms"),
        }
    }

    /// Which way is better.
    pub(crate) fn better(self) -> &'static str {
        if self == Self::BitPerSecond {
            "more is better"
        } else {
            "less is better"
        }
    }
}

/// A figure in base units (bit/s or s), CPU seconds of both ends a GB, call or command, and what else is to be said.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figure {
    /// The figure.
    pub(crate) value: f64,
    /// CPU time of both ends.
    pub(crate) cpu: Option<f64>,
    /// In words.
    pub(crate) note: String,
}

impl Figure {
    /// A throughput.
    pub(crate) fn throughput(bytes: u64, wall_s: f64, cpu_s: f64) -> Self {
        let bytes = bytes as f64;
        Self {
            value: bytes * 8.0 / wall_s,
            cpu: Some(cpu_s / (bytes / 1e9)),
            note: String::new(),
        }
    }

    /// The same figure with a note.
    pub(crate) fn noting(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

/// Median, least and greatest; `None` of nothing.
pub(crate) fn spread(values: &[f64]) -> Option<(f64, f64, f64)> {
    let mut sorted: Vec<f64> = values
        .iter()
        .copied()
        .filter(|value| value.is_finite())
        .collect();
    sorted.sort_by(f64::total_cmp);
    let (least, greatest) = (*sorted.first()?, *sorted.last()?);
    Some((middle(&sorted), least, greatest))
}

fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[half]
    } else {
        f64::midpoint(sorted[half - 1], sorted[half])
    }
}

/// The value below which a share of sorted samples lies.
pub(crate) fn quantile(sorted: &[u64], share: f64) -> u64 {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}
