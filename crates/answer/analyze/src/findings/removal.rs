//! Which changes of a plan remove the cause of a finding entirely, so that the time saved by the change is the time that the cause costs.

use super::calls::connection_per_call;
use super::{Finding, PlanChange};

/// Whether a change removes the cause that a finding names, and nothing else. A link that is half as long or twice as fast is still there;
/// another congestion control changes more than the cause; a connection that is kept also saves slow start, so keeping it counts only for
/// findings about connections themselves.
#[must_use]
pub fn takes_away(finding: &Finding, change: &PlanChange) -> bool {
    match change {
        PlanChange::KeepConnection(_) => finding.kind == connection_per_call::KIND.name,
        PlanChange::Option(_, name, _) => *name != "congestion",
        PlanChange::Unset(..)
        | PlanChange::Window(..)
        | PlanChange::Queue(..)
        | PlanChange::DropTail(..)
        | PlanChange::NoLoss(_)
        | PlanChange::NoOutage(_)
        | PlanChange::InOrder(_)
        | PlanChange::NoDelays(..)
        | PlanChange::NoLoad => true,
        PlanChange::FairQueue(_)
        | PlanChange::Faster(_)
        | PlanChange::Nearer(_)
        | PlanChange::Packets(_)
        | PlanChange::Reassembly(..)
        | PlanChange::ImpWindow(..)
        | PlanChange::Machine(..)
        | PlanChange::Channels(..)
        | PlanChange::Pace(..)
        | PlanChange::Processor(_) => false,
    }
}
