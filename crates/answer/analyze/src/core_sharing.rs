//! Whether both ends of a pair ran on one core. A call between two cores has to wake the other core, which may take longer than the
//! rest of the call; so figures from different placements differ by that too.

use crate::machines::on_one;
use stackline_core::plan::{MeasurementPart, Plan, World};
use stackline_core::run_record::RunRecord;

/// On which cores of one machine the two ends of a part's first pair ran, over all counted runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreSharing {
    /// Both on one core.
    OneCore,
    /// Each on a core of its own.
    CoreEach,
    /// Sometimes on one core, sometimes on two.
    Changing,
}

impl CoreSharing {
    /// The text for reports.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::OneCore => "both ends on one core",
            Self::CoreEach => "one core for each end",
            Self::Changing => "ends sometimes on one core, sometimes on two",
        }
    }

    /// Both placements together.
    const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::OneCore, Self::OneCore) => Self::OneCore,
            (Self::CoreEach, Self::CoreEach) => Self::CoreEach,
            _ => Self::Changing,
        }
    }
}

/// How the ends of these parts shared cores; `None` if they are not in the live world, not on one machine, or not recorded.
pub(crate) fn core_sharing<'r>(
    plan: &Plan,
    world: World,
    parts: &[&MeasurementPart],
    records: impl Iterator<Item = &'r RunRecord>,
) -> Option<CoreSharing> {
    if world != World::Live || !parts.iter().all(|part| on_one(plan, part)) {
        return None;
    }
    records.filter_map(of_record).reduce(CoreSharing::and)
}

/// From the cores of both ends at the start and at the end of a run.
fn of_record(record: &RunRecord) -> Option<CoreSharing> {
    let ((a, b, _), (c, d, _)) = record.initiator.cpu.zip(record.responder.cpu)?;
    Some(match (a == c, b == d) {
        (true, true) => CoreSharing::OneCore,
        (false, false) => CoreSharing::CoreEach,
        _ => CoreSharing::Changing,
    })
}

/// A warning for a comparison whose two sides shared cores in different ways, or changed; `None` if the placements are equal.
pub(crate) fn unlike_placement(a: Option<CoreSharing>, b: Option<CoreSharing>) -> Option<String> {
    let (a, b) = (a?, b?);
    (a != b || a == CoreSharing::Changing).then(|| {
        format!(
            "different placement: A had {}, B {}, which affects times as much as the choice of stack",
            a.words(),
            b.words()
        )
    })
}
