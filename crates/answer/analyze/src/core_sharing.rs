//! Whether the ends of a pair shared a core. A call between two cores wakes the other one, which may take longer than all the
//! rest of it, so figures of unlike placement differ by that too.

use crate::machines::on_one;
use stackline_core::plan::{MeasurementPart, Plan, World};
use stackline_core::run_record::RunRecord;

/// On which cores of one machine both ends of a part's first pair were, over all counted runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreSharing {
    /// On one and the same.
    OneCore,
    /// On two.
    CoreEach,
    /// Sometimes so and sometimes so.
    Changing,
}

impl CoreSharing {
    /// What is said of ends that shared cores so.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::OneCore => "both ends on one core",
            Self::CoreEach => "one core for each end",
            Self::Changing => "ends sometimes on one core, sometimes on two",
        }
    }

    const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::OneCore, Self::OneCore) => Self::OneCore,
            (Self::CoreEach, Self::CoreEach) => Self::CoreEach,
            _ => Self::Changing,
        }
    }
}

/// How the ends of these parts shared cores; `None` where a network is between them, or no run says it.
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

fn of_record(record: &RunRecord) -> Option<CoreSharing> {
    let ((a, b, _), (c, d, _)) = record.initiator.cpu.zip(record.responder.cpu)?;
    Some(match (a == c, b == d) {
        (true, true) => CoreSharing::OneCore,
        (false, false) => CoreSharing::CoreEach,
        _ => CoreSharing::Changing,
    })
}

/// What is said of two that shared cores in different ways: of rows whose ratio is that of the placement too.
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
