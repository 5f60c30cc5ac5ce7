//! The input of a check besides the text (worlds, files, overrides of the command line), and its result.

use crate::diagnostic::Diagnostic;
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::plan::{HostPlan, Plan, World};

pub use stackline_core::catalogue::Available;

/// What a check needs besides the text.
pub struct CheckContext<'a> {
    /// The worlds that exist, with their stacks.
    pub worlds: &'a [Available<'a>],
    /// Reads the file of an `empirical` distribution or of a `trace`; the error is the cause as text.
    pub read_file: &'a dyn Fn(&str) -> Result<String, String>,
    /// The cores of this machine that may be used; empty where they are unknown.
    pub cores: &'a [usize],
}

/// The values of the command line that replace those of the text.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The stacks, in the form written after `over`.
    pub over: Option<String>,
    /// The world.
    pub world: Option<World>,
    /// Hosts by name: how each is reached, in place of what the text says.
    pub hosts: Vec<(String, HostPlan)>,
    /// The seed.
    pub seed: Option<u64>,
    /// Cores of initiators and responders, for every part.
    pub cpu: Option<(usize, usize)>,
    /// Whether the moments of all calls are kept.
    pub keeps_calls: bool,
    /// Whether only the declarations are needed: then nothing is assumed, and the capabilities of worlds are not
    /// checked.
    pub declarations_only: bool,
}

/// The outcome of [`crate::check`].
#[derive(Clone, Debug)]
pub struct Checked {
    /// The plan; present exactly when no diagnostic is an error.
    pub plan: Option<Plan>,
    /// The diagnostics in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// The whole text without mistakes, where [`crate::repair()`] found a small change that achieves this.
    pub right: Option<String>,
    /// What was assumed because the text does not say it.
    pub notes: Vec<String>,
}
