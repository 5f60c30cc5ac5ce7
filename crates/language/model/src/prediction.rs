//! What a prediction holds: a figure with what limits it, the values on the way to it, and what was assumed.

use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::plan::World;

/// What is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictedQuantity {
    /// Bytes of data units that arrive over the measured period, in bit/s.
    Throughput,
    /// Request handed over to response received, in seconds.
    Response,
    /// Connect plus disconnect, in seconds.
    Connect,
}

impl PredictedQuantity {
    /// Its name in a sentence.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Response => "response time",
            Self::Connect => "connect time",
        }
    }

    /// Its unit.
    #[must_use]
    pub const fn unit(self) -> FigureUnit {
        match self {
            Self::Throughput => FigureUnit::BitPerSecond,
            Self::Response | Self::Connect => FigureUnit::Seconds,
        }
    }
}

/// The unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureUnit {
    /// bit/s.
    BitPerSecond,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// A share or a probability, 0 to 1.
    Share,
    /// A number of segments, packets, flows or rounds.
    Count,
}

impl FigureUnit {
    /// As it is written behind a number.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BitPerSecond => "bit/s",
            Self::Seconds => "s",
            Self::Bytes => "B",
            Self::Share => "share",
            Self::Count => "count",
        }
    }
}

/// A number on the way to the figure.
#[derive(Clone, Debug, PartialEq)]
pub struct IntermediateValue {
    /// What it is.
    pub name: &'static str,
    /// In its unit.
    pub value: f64,
    /// Its unit.
    pub unit: FigureUnit,
    /// The form it comes from: a paper's section, an RFC, or how it was added up.
    pub source: &'static str,
}

/// A figure and how it came about.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedFigure {
    /// What it is.
    pub quantity: PredictedQuantity,
    /// In the quantity's unit.
    pub value: f64,
    /// Where nine of ten runs lie, in the same unit: what the form leaves out, and what chance makes of a run.
    pub interval: [f64; 2],
    /// What binds: `rate`, `cells`, `window`, `loss`, `buffer`, `slow start`, `round trips`, `pace`, `host`,
    /// `propagation`, `service`, `waiting`.
    pub limit: &'static str,
    /// The values on the way, in order.
    pub values: Vec<IntermediateValue>,
    /// What was assumed, a sentence each.
    pub assumptions: Vec<String>,
    /// Bytes moved and the seconds it takes, where data units move.
    pub moved: Option<(f64, f64)>,
}

/// A figure, or why there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum PredictionOutcome {
    /// A form holds.
    Predicted(PredictedFigure),
    /// None does, for this reason.
    NotCovered(String),
}

/// The prediction for one measured part, or for all parts together.
#[derive(Clone, Debug, PartialEq)]
pub struct PartPrediction {
    /// Index of the measurement in the plan.
    pub measurement: usize,
    /// Index of the part; absent for all parts together.
    pub part_index: Option<usize>,
    /// The measurement as written.
    pub text: String,
    /// The part as written; `all` for all parts together.
    pub part: String,
    /// Name of the application type; several with ` + ` between.
    pub application: String,
    /// The stack with its options; several with ` + ` between.
    pub stack: String,
    /// The world it was written for.
    pub world: World,
    /// The network.
    pub network: Option<String>,
    /// What comes of it.
    pub outcome: PredictionOutcome,
}

impl PartPrediction {
    /// The figure, where there is one.
    #[must_use]
    pub const fn answer(&self) -> Option<&PredictedFigure> {
        match &self.outcome {
            PredictionOutcome::Predicted(answer) => Some(answer),
            PredictionOutcome::NotCovered(_) => None,
        }
    }
}
