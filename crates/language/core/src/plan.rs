//! A plan: what a specification asks for, as plain data. `spec` makes it, `stackline plan` prints it, a world carries
//! it out.
//!
//! Sweeps and lists of stacks are already expanded: one [`Measurement`] gives one row of results (or one for each of
//! its parts). A plan says what is measured, not how.

use crate::distribution::Distribution;
use crate::expectation::Expectation;
use crate::network::Network;
use crate::procedure::Procedure;
use crate::time::Duration;
use crate::units::Quantity;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

pub use crate::stack::Stack;

/// Everything that one specification asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Root of all random seeds, unless the command line gives another.
    pub seed: u64,
    /// Declared hosts, by name.
    pub hosts: BTreeMap<String, HostPlan>,
    /// Declared networks.
    pub networks: Vec<Network>,
    /// The measurements, in the order they run.
    pub measurements: Vec<Measurement>,
}

impl Plan {
    /// The longest time that the runs take on a real clock: the sum of their time limits. `None` where a measurement
    /// has no limit, is simulated, warms up for a given time or repeats until an interval is narrow enough. Opening
    /// and closing connections is not included.
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

/// How a host is reached and where on it the programs run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPlan {
    /// How its agent is started.
    pub via: Via,
    /// Address by which the other hosts reach it; derived from `via` when absent.
    pub address: Option<String>,
    /// Core that its threads are pinned to.
    pub cpu: Option<usize>,
    /// The directory under which its agent may read and write files.
    pub files: Option<String>,
    /// The share of a processor it gets; all processors when absent.
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
    /// Not at all: it is a server outside the run, at this address (`http://b.example:8080/`).
    FarEnd(String),
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
    /// Modelled hosts and network in virtual time.
    Simulated,
}

impl World {
    /// All worlds.
    pub const ALL: [Self; 3] = [Self::Live, Self::Emulated, Self::Simulated];
}

crate::named_values!(World, Live = "live"; Emulated = "emulated"; Simulated = "simulated");

/// How the parts of a measurement are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Composer {
    /// A single part.
    Basic,
    /// All parts at the same time, each measured separately.
    Parallel,
    /// The first part is measured; the others are load, and start again until it has ended.
    Background,
    /// As `Background`, with the first part at a higher scheduling priority.
    PriorityBackground,
    /// All parts at the same time, with one result for all together.
    Total,
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Its text as written, on one line, with the swept variables and the stack filled in.
    pub text: String,
    /// The line of the specification it begins on, counted from 1.
    pub line: usize,
    /// Which specification of the text it comes from: those with the same number are rows of one sweep. A plan in JSON
    /// does not have it.
    #[serde(skip)]
    pub specification: usize,
    /// Names and values of the swept variables.
    pub variables: Vec<(String, f64)>,
    /// What these values are about, in the same order; empty where all are plain numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variable_units: Vec<VariableUnit>,
    /// Number of counted runs; the least number when `until` is given.
    pub runs: u32,
    /// The longest time a run may take.
    pub time_limit: Option<Duration>,
    /// Set when runs repeat until the 95 % interval's half width is below a share of the mean.
    pub until: Option<StoppingCriterion>,
    /// The runs before the counted ones, which no total includes.
    pub warmup: Warmup,
    /// How the parts are combined.
    pub composer: Composer,
    /// The world that it runs in.
    pub world: World,
    /// The name of the network that it runs across, if one is declared.
    pub across: Option<String>,
    /// Whether the moments of its calls are kept, so that they can be shown over time.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub keeps_calls: bool,
    /// The length of the intervals whose sums are kept, if any are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
    /// What its results must be; it does not change what is measured, so `text` leaves it out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<Expectation>,
    /// The parts; at least one.
    pub parts: Vec<MeasurementPart>,
}

/// What the values of a swept variable are about.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariableUnit {
    /// The quantity.
    pub quantity: Quantity,
    /// What a value is multiplied by for the quantity's base unit: bytes, seconds, bit/s, percent.
    pub factor: f64,
}

impl VariableUnit {
    /// Of plain numbers.
    pub const NUMBER: Self = Self {
        quantity: Quantity::Number,
        factor: 1.0,
    };
}

/// Values of swept variables as people read them: `D = 40 ms, L = 1 %`; empty without any.
#[must_use]
pub fn describe_swept_values(variables: &[(String, f64)], units: &[VariableUnit]) -> String {
    let mut text = String::new();
    for (at, (name, value)) in variables.iter().enumerate() {
        let unit = units.get(at).copied().unwrap_or(VariableUnit::NUMBER);
        let separator = if at == 0 { "" } else { ", " };
        let value = unit.quantity.written(value * unit.factor);
        text += &format!("{separator}{name} = {value}");
    }
    text
}

/// When to stop repeating.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoppingCriterion {
    /// Half width of the 95 % interval over the mean, 0 to 1.
    pub share: f64,
    /// Number of runs after which repeating ends although the interval is still too wide; the result is flagged then.
    pub at_most: u32,
}

/// Runs before the counted ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Warmup {
    /// This many.
    Runs(u32),
    /// As many runs as start within this time.
    Time(Duration),
}

/// One part of a measurement: a pair of hosts, an application type, its data and a stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasurementPart {
    /// Its text as written, on one line.
    pub text: String,
    /// Number of pairs (initiator and responder) that run at the same time.
    pub replicas: u32,
    /// Initiator host; `None` for an agent on this machine.
    pub from: Option<String>,
    /// Responder host; `None` for an agent on this machine.
    pub to: Option<String>,
    /// The application type: the procedures of initiator and responder.
    pub procedure: Procedure,
    /// Sizes and number of data units, and delays.
    pub data: DataSpec,
    /// Where data units come from.
    pub source: DataAccess,
    /// Where data units go.
    pub destination: DataAccess,
    /// The stack with its options.
    pub stack: Stack,
    /// Cores that initiator and responder are pinned to; they override the hosts' own `cpu`.
    pub cpu: (Option<usize>, Option<usize>),
    /// Whether it is background load, which is not measured.
    pub background: bool,
}

impl MeasurementPart {
    /// How many connections its pairs have at the same time.
    #[must_use]
    pub fn connections(&self) -> u32 {
        let pairs = self.replicas.max(1);
        pairs.div_ceil(self.stack.pairs_per_connection())
    }
}

/// A data unit's size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// Always this size, in bytes.
    Bytes(u64),
    /// Drawn for each unit, in bytes.
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

/// How many data units are transferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnitCount {
    /// This number of units.
    Units(u64),
    /// As many as make up exactly this number of bytes; the last may be shorter.
    Amount(u64),
    /// As many as make up the source FILE. The caller that starts a run finds its length and replaces this by
    /// [`UnitCount::Amount`].
    WholeFile,
    /// Until the time limit, or until a background load is ended.
    Unlimited,
}

/// The data specification without source and destination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataSpec {
    /// The first size.
    pub unit: Size,
    /// The second size; equal to the first when only one is written.
    pub reply: Size,
    /// The number of units.
    pub count: UnitCount,
    /// The delays that the procedure refers to by position, in seconds.
    pub timings: Vec<Distribution>,
    /// The smallest size that the stack carries, in bytes; a smaller draw is raised to it.
    #[serde(default = "any_size")]
    pub least_drawn: u64,
    /// Whether the pairs share one rate and take turns: the first wait of the k-th of n pairs is k/n of what was drawn.
    #[serde(default, skip_serializing_if = "is_false")]
    pub takes_turns: bool,
}

/// Whether a flag that is rarely set may be left out of a kept plan.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The default of `least_drawn`: 1 byte, the least that a byte stream carries.
#[must_use]
pub const fn any_size() -> u64 {
    1
}

impl DataSpec {
    /// The size of the last data unit, in bytes, where units of a fixed size make up an amount and the last is
    /// shorter.
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

/// Where data units come from or go to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataAccess {
    /// One buffer in memory, reused for every unit.
    #[default]
    Memory,
    /// A region of memory larger than the caches, used from end to end.
    VirtualMemory,
    /// A file under the directory that the agent was given.
    File(String),
}
