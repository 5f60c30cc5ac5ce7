//! The types of a prediction: a predicted figure with what limits it, the intermediate values, and the assumptions, or
//! the reason why no formula applies.

use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::plan::World;

/// What is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictedQuantity {
    /// Throughput: the bits of the data units that arrive, over the measured time, in bit/s.
    Throughput,
    /// Response time: from handing over a request to receiving the response, in seconds.
    Response,
    /// Time to connect and disconnect, in seconds.
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

/// A value computed on the way to the figure.
#[derive(Clone, Debug, PartialEq)]
pub struct IntermediateValue {
    /// What it is.
    pub name: &'static str,
    /// The value, in `unit`.
    pub value: f64,
    /// Its unit.
    pub unit: FigureUnit,
    /// The source of the formula: a section of a paper, an RFC, or how the value was added up.
    pub source: &'static str,
}

/// A predicted figure, and how it was computed.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedFigure {
    /// What is predicted.
    pub quantity: PredictedQuantity,
    /// The value, in the quantity's unit.
    pub value: f64,
    /// The interval in which nine of ten runs lie, in the same unit. It allows for what the formula leaves out and for
    /// chance.
    pub interval: [f64; 2],
    /// What limits the figure: `rate`, `cells`, `window`, `loss`, `buffer`, `slow start`, `round trips`, `pace`,
    /// `host`, `propagation`, `service`, `waiting`.
    pub limit: &'static str,
    /// The intermediate values, in the order of the computation.
    pub values: Vec<IntermediateValue>,
    /// The assumptions, one string each.
    pub assumptions: Vec<String>,
    /// Bytes moved and the time it takes in seconds; `None` for a response or connect time, and for a transfer without
    /// end.
    pub moved: Option<(f64, f64)>,
}

/// The predicted figure, or the reason why there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum PredictionOutcome {
    /// A formula applies.
    Predicted(PredictedFigure),
    /// No formula applies, for this reason.
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
    /// The figure, or the reason why there is none.
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
