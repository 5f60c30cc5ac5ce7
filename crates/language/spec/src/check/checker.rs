//! What checking a text has at hand and fills: the context, everything a specification may refer to, and the plan.

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

/// Stacks the command line gives instead of the text's, with their own tokens.
pub(crate) struct Instead<'o> {
    pub(crate) stacks: Vec<StackItem>,
    pub(crate) marked: &'o Marked<'o>,
}

/// Everything a specification may refer to.
pub(crate) struct Checker<'c> {
    pub(crate) context: &'c CheckContext<'c>,
    pub(crate) overrides: &'c Overrides,
    pub(crate) marked: &'c Marked<'c>,
    pub(crate) instead: Option<Instead<'c>>,
    pub(crate) report: &'c mut DiagnosticReport,
    pub(crate) files: SpecFiles<'c>,
    /// By key; `None`: declared, but with mistakes.
    pub(crate) procedures: BTreeMap<String, Option<Procedure>>,
    pub(crate) hosts: BTreeMap<String, HostPlan>,
    pub(crate) networks: BTreeMap<String, Rc<Network>>,
    /// Those of them whose figures vary, by the name they are declared with.
    pub(crate) varied: BTreeMap<String, VariedNetwork>,
    /// What is left of the work a text may ask for.
    pub(crate) budget: usize,
    pub(crate) plan: Plan,
    /// Where each measurement of the plan comes from.
    pub(crate) origins: Vec<MeasurementOrigin>,
}
