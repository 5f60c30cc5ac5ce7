//! The task of one side (initiator or responder) of one part of a measurement, for all its replicas. Plain data: an
//! agent is sent it.

use serde::{Deserialize, Serialize};
use stackline_core::plan::{DataSpec, Measurement, MeasurementPart, UnitCount};
use stackline_core::procedure::{self, PairSide, ProcedureStep};
use stackline_core::random::Seed;
use stackline_core::time::Duration;

/// What the endpoints of one side of one part do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndpointTask {
    /// The side.
    pub side: PairSide,
    /// The program of this side.
    pub steps: Vec<ProcedureStep>,
    /// Whether connections carry data units.
    pub carries_data: bool,
    /// The sizes and the number of the data units.
    pub data: DataSpec,
    /// The run's and part's node in the tree of seeds; replicas are its numbered children.
    pub seed: Seed,
    /// The number of endpoints that carry out the task at once.
    pub replicas: u32,
    /// The longest time that a run may take.
    pub time_limit: Option<Duration>,
    /// Whether the part is a load: its program begins again until it is stopped.
    pub background: bool,
    /// Whether the stack delivers everything, once and in order.
    pub reliable: bool,
    /// Whether the moments of calls are kept.
    #[serde(default)]
    pub keeps_calls: bool,
    /// The length of the intervals whose sums are kept, if any are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
    /// The even time between the data units that the other side sends, if intervals are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Duration>,
}

impl EndpointTask {
    /// The task of one side of a part.
    #[must_use]
    pub fn new(
        measurement: &Measurement,
        part: &MeasurementPart,
        side: PairSide,
        seed: Seed,
        reliable: bool,
    ) -> Self {
        let (count, time_limit) = if part.background {
            // A load continues on the connection it has, until it is stopped.
            (UnitCount::Unlimited, None)
        } else {
            (part.data.count, measurement.time_limit)
        };
        Self {
            side,
            steps: part.procedure.walked(side),
            carries_data: part.procedure.carries_data(),
            data: DataSpec {
                count,
                ..part.data.clone()
            },
            seed,
            replicas: part.replicas,
            time_limit,
            background: part.background,
            reliable,
            keeps_calls: measurement.keeps_calls && side == PairSide::Initiator,
            interval: measurement.interval,
            pace: measurement.interval.and_then(|_| pace_of_peer(part, side)),
        }
    }

    /// The time limit, for a side that begins something by itself; a side that only awaits follows the other side's
    /// limit.
    #[must_use]
    pub fn own_time_limit(&self) -> Option<Duration> {
        self.time_limit
            .filter(|_| procedure::contains_call(&self.steps, &|call| call.drives() == Some(true)))
    }

    /// Whether its program has an operation of that name.
    #[must_use]
    pub fn does(&self, name: &str) -> bool {
        procedure::contains_call(&self.steps, &|call| call.name() == name)
    }

    /// The number of data units that one endpoint moves, where it is known.
    #[must_use]
    pub const fn expected_units(&self) -> Option<u64> {
        match self.data.count {
            UnitCount::Units(units) if !self.background && self.time_limit.is_none() => Some(units),
            _ => None,
        }
    }
}

/// The time between two data units that the peer of a side sends, if it is always the same.
fn pace_of_peer(part: &MeasurementPart, side: PairSide) -> Option<Duration> {
    let steps = part.procedure.walked(side.other());
    let has = |name: &str| procedure::contains_call(&steps, &|call| call.name() == name);
    let [timing] = &part.data.timings[..] else {
        return None;
    };
    let is_paced = has("Pace") && has("DataRequest") && !has("Delay");
    timing
        .constant()
        .filter(|_| is_paced)
        .map(Duration::from_seconds)
        .filter(|pace| *pace > Duration::ZERO)
}
