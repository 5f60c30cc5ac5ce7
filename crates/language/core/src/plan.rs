//! What will be done, as plain data: `spec` makes it, `stackline plan` prints it, a world carries it out.
//!
//! A sweep and a list of stacks are already multiplied out: one [`Measurement`] is one row of results (or several
//! parts of one). Nothing in it says how a thing is done.

use crate::distribution::Distribution;
use crate::network::Network;
use crate::procedure::Procedure;
use crate::time::Duration;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

pub use crate::stack::Stack;

/// All that one specification says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Root of all randomness, unless the command line gives another.
    pub seed: u64,
    /// Declared hosts, by name.
    pub hosts: BTreeMap<String, HostPlan>,
    /// Declared networks.
    pub networks: Vec<Network>,
    /// In the order they run.
    pub measurements: Vec<Measurement>,
}

impl Plan {
    /// The most time that its runs take on a real clock: what their time limits add up to. Unknown where one has no limit, or
    /// warms up or repeats for as long as it takes; opening and closing connections comes on top.
    #[must_use]
    pub fn most_time(&self) -> Option<Duration> {
        let most = |m: &Measurement| match (m.time_limit, m.warmup, m.until) {
            (Some(limit), Warmup::Runs(warmup), None) if m.world != World::Simulated => {
                Some(Duration(
                    limit
                        .0
                        .saturating_mul(u64::from(m.runs) + u64::from(warmup)),
                ))
            }
            _ => None,
        };
        self.measurements
            .iter()
            .map(most)
            .try_fold(Duration::ZERO, |sum, time| Some(sum + time?))
    }
}

/// How a host is reached and where on it the work is placed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPlan {
    /// How its agent is started.
    pub via: Via,
    /// Address the others reach it by; derived from `via` when absent.
    pub address: Option<String>,
    /// Core its threads are pinned to.
    pub cpu: Option<usize>,
    /// Directory its agent may touch files under.
    pub files: Option<String>,
    /// How much of a processor it gets; all where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<ProcessorShare>,
}

/// A share of a processor in thousandths: 1500 is one and a half processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorShare(pub u32);

impl fmt::Display for ProcessorShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", f64::from(self.0) / 10.0)
    }
}

/// How an agent is started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// A child process on this machine.
    #[default]
    Local,
    /// `ssh DESTINATION stackline agent`.
    Ssh(String),
    /// An agent that listens at HOST:PORT (`stackline agent --listen`).
    Tcp(String),
    /// A command of the shell whose standard streams are an agent's.
    Exec(String),
}

/// Where a measurement runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum World {
    /// Real stacks between real processes.
    #[default]
    Live,
    /// Real programs and stacks over a modelled network in real time.
    Emulated,
    /// Virtual time.
    Simulated,
}

impl World {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Live, Self::Emulated, Self::Simulated];
}

crate::named_values!(World, Live = "live"; Emulated = "emulated"; Simulated = "simulated");

/// How the parts of a measurement go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Composer {
    /// One part alone.
    Basic,
    /// All parts at once, each measured.
    Parallel,
    /// The first part is measured; the others load the system and start again until it is done.
    Background,
    /// The same with the first part at a higher scheduling priority.
    PriorityBackground,
    /// All parts at once, one figure for all.
    Total,
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// As written, on one line, with swept variables and the stack filled in.
    pub text: String,
    /// Line of the specification it stands on, from 1.
    pub line: usize,
    /// Values of the swept variables.
    pub variables: Vec<(String, f64)>,
    /// Counted runs; the least number when `until` is given.
    pub runs: u32,
    /// Most time a run may take.
    pub time_limit: Option<Duration>,
    /// Repeat until the 95 % interval's half width is below this share of the mean.
    pub until: Option<StoppingCriterion>,
    /// What comes before the counted runs and is left out of every total.
    pub warmup: Warmup,
    /// How the parts go together.
    pub composer: Composer,
    /// The world.
    pub world: World,
    /// The network, by name.
    pub across: Option<String>,
    /// At least one.
    pub parts: Vec<MeasurementPart>,
}

/// When to stop repeating.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoppingCriterion {
    /// Half width of the 95 % interval over the mean, 0 to 1.
    pub share: f64,
    /// Runs after which it is given up and flagged.
    pub at_most: u32,
}

/// Uncounted runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Warmup {
    /// This many.
    Runs(u32),
    /// As many as start within this time.
    Time(Duration),
}

/// One part of a measurement: a pair of hosts, an application type, its data, a stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasurementPart {
    /// As written, on one line.
    pub text: String,
    /// Pairs that do the same at once.
    pub replicas: u32,
    /// Initiator host; `None`: a local agent.
    pub from: Option<String>,
    /// Responder host; `None`: a local agent.
    pub to: Option<String>,
    /// The application type, compiled.
    pub procedure: Procedure,
    /// Sizes and counts.
    pub data: DataSpec,
    /// Where data units come from.
    pub source: DataAccess,
    /// Where they go.
    pub destination: DataAccess,
    /// The stack.
    pub stack: Stack,
    /// Cores of initiator and responder; before the hosts' own.
    pub cpu: (Option<usize>, Option<usize>),
    /// Whether it is load and not measured.
    pub background: bool,
}

/// A data unit's size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// Always these bytes.
    Bytes(u64),
    /// Drawn anew for each unit, in bytes.
    Drawn(Distribution),
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{bytes}"),
            Self::Drawn(distribution) => write!(f, "{distribution}"),
        }
    }
}

/// How many data units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnitCount {
    /// This many.
    Units(u64),
    /// As many as make up exactly these bytes; the last may be shorter.
    Amount(u64),
    /// As many as make up the FILE they come from. Who starts a run finds its length and makes it an [`UnitCount::Amount`].
    WholeFile,
    /// Until the time limit, or until a background load is ended.
    Unlimited,
}

/// The data specification without its ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataSpec {
    /// First size.
    pub unit: Size,
    /// Second size; the first when only one is written.
    pub reply: Size,
    /// How many.
    pub count: UnitCount,
    /// The timing list, in seconds.
    pub timings: Vec<Distribution>,
    /// The least size that the stack carries, in bytes: what is drawn below it counts as it.
    #[serde(default = "any_size")]
    pub least_drawn: u64,
}

/// As a byte stream carries it.
#[must_use]
pub const fn any_size() -> u64 {
    1
}

impl DataSpec {
    /// The size of the last data unit where units of one size make up an amount and the last is shorter.
    #[must_use]
    pub const fn last_unit(&self) -> Option<u64> {
        match (self.count, &self.unit) {
            (UnitCount::Amount(amount), Size::Bytes(unit)) if *unit > 0 && amount % *unit > 0 => {
                Some(amount % *unit)
            }
            _ => None,
        }
    }
}

/// Where data comes from or goes to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataAccess {
    /// One buffer, used again for every unit.
    #[default]
    Memory,
    /// A region larger than the caches, walked through.
    VirtualMemory,
    /// A file under the directory the agent was given.
    File(String),
}
