//! What a text is checked against, what the command line changes in it, and what comes out.

use crate::diagnostic::Diagnostic;
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::plan::{HostPlan, Plan, World};

pub use stackline_core::catalogue::Available;

/// What a text is checked against.
pub struct CheckContext<'a> {
    /// The worlds there are.
    pub worlds: &'a [Available<'a>],
    /// Reads the file of an `empirical` distribution or of a `trace`; the error is a cause in words.
    pub read_file: &'a dyn Fn(&str) -> Result<String, String>,
    /// The cores of this machine that may be used; empty where they are not known.
    pub cores: &'a [usize],
}

/// What the command line says in the place of the text.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Stacks, as after `over`.
    pub over: Option<String>,
    /// The world.
    pub world: Option<World>,
    /// Hosts; how to reach them replaces what the text says.
    pub hosts: Vec<(String, HostPlan)>,
    /// The seed.
    pub seed: Option<u64>,
    /// Cores of initiators and responders, for every part.
    pub cpu: Option<(usize, usize)>,
    /// Whether only the declarations matter: then nothing is settled, and no world's capabilities are checked.
    pub declarations_only: bool,
}

/// The outcome of [`crate::check`].
#[derive(Clone, Debug)]
pub struct Checked {
    /// There exactly when no diagnostic is an error.
    pub plan: Option<Plan>,
    /// In the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// The whole text as it would be right, where [`crate::repair()`] found a small change that leaves no mistake.
    pub right: Option<String>,
    /// What was made up because the text does not say it.
    pub notes: Vec<String>,
}
