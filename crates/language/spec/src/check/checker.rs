//! The state of a check: its context, everything that a specification may refer to, and the plan being made.

use super::measurement_origin::MeasurementOrigin;
use super::referenced_files::SpecFiles;
use super::varied_network::VariedNetwork;
use crate::context::{CheckContext, Overrides};
use crate::diagnostic::DiagnosticReport;
use crate::token_layout::Marked;
use crate::tree::StackItem;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::network::Network;
use stackline_core::plan::{HostPlan, Plan};
use stackline_core::procedure::Procedure;

/// Stacks that the command line gives in place of the text's, with their own tokens.
pub(crate) struct Instead<'o> {
    pub(crate) stacks: Vec<StackItem>,
    pub(crate) marked: &'o Marked<'o>,
}

/// The declarations that a specification may refer to, and the plan being made.
pub(crate) struct Checker<'c> {
    pub(crate) context: &'c CheckContext<'c>,
    pub(crate) overrides: &'c Overrides,
    pub(crate) marked: &'c Marked<'c>,
    pub(crate) instead: Option<Instead<'c>>,
    pub(crate) report: &'c mut DiagnosticReport,
    pub(crate) files: SpecFiles<'c>,
    /// Procedures by key; `None` for one that is declared but has mistakes.
    pub(crate) procedures: BTreeMap<String, Option<Procedure>>,
    pub(crate) hosts: BTreeMap<String, HostPlan>,
    pub(crate) networks: BTreeMap<String, Rc<Network>>,
    /// The networks with variables in their figures, by the names they are declared with.
    pub(crate) varied: BTreeMap<String, VariedNetwork>,
    /// How much more work the text may ask for; see [`super::expansion::BUDGET`].
    pub(crate) budget: usize,
    pub(crate) plan: Plan,
    /// The origin in the text of each measurement of the plan.
    pub(crate) origins: Vec<MeasurementOrigin>,
}
