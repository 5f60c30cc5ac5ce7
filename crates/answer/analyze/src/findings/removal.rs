//! Which change takes a finding's cause away, so that what it saves is the cause's. It runs nothing.

use super::calls::connection_per_call;
use super::{Finding, PlanChange};

/// Whether a change takes away what a finding names, and no more: what is made half as long or twice as fast is still there, another
/// algorithm changes more, and a connection that is kept has an open window besides.
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
