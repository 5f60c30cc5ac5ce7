//! The syntax tree of a specification text: what was written, with its spans in the text. The parser builds it;
//! nothing in it has been checked or resolved.
//!
//! Spans are in bytes. A field is `None` where nothing was written for it.

mod expectation;
mod factor;
mod network;
mod network_figures;

pub(crate) use expectation::{BoundItem, BoundSign, ConditionItem, ExpectationItem};
pub(crate) use factor::{FactorItem, FactorSide, LevelItem, LinkProperty, VariedProperty, texts};
pub(crate) use network::{
    BucketItem, ClassItem, ClockItem, ClockKind, DelayItem, DisciplineItem, GateItem, ImpItem,
    JitterItem, LinkItem, LossItem, NetworkItem, NodeItem, PolicerItem, QueueItem, QueueLimit,
    RateItem, ReorderItem, RouteItem, RouterItem, ScheduleItem, SettingItem, ShaperItem,
    ShaperLimit, SwitchItem,
};
pub(crate) use network_figures::FigureKind;

use crate::diagnostic::TextSpan;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use stackline_core::plan::{Composer, World};

/// A range of token indices.
pub(crate) type TokenIndices = Range<usize>;

/// A name, number or quoted text, with its span. The text is as it was written, without quotes; that of a keyword may be in
/// its common form (lower case, `_` for `-`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) span: TextSpan,
}

/// The items of a text, in order.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) items: Vec<SpecItem>,
}

/// One item at the top level of a text.
#[derive(Debug)]
pub(crate) enum SpecItem {
    Host(HostItem),
    Network(NetworkItem),
    Procedure(ProcedureItem),
    Factor(FactorItem),
    /// The seed of the random numbers, and the span of the whole item.
    Seed(SpecValue, TextSpan),
    /// A measurement: `10 rr 32*100 over tcp;`.
    Specification(Box<Specification>),
}

/// `host a, b via ssh "user@b";`: hosts declared outside a network, which share their clauses.
#[derive(Debug, Default)]
pub(crate) struct HostItem {
    pub(crate) names: Vec<Word>,
    /// How the agent is reached; `Some(None)` for `via local`.
    pub(crate) via: Option<Option<ViaItem>>,
    /// The address under which other hosts reach it.
    pub(crate) at: Option<Word>,
    /// The core that its processes run on.
    pub(crate) cpu: Option<SpecValue>,
    /// The directory under which its agent may read and write files.
    pub(crate) files: Option<Word>,
    /// Per cent of a processor.
    pub(crate) share: Option<SpecValue>,
}

/// How an agent that is not a child process is reached.
#[derive(Debug)]
pub(crate) struct ViaItem {
    /// `ssh`, `tcp` or `exec`.
    pub(crate) way: &'static str,
    pub(crate) destination: Word,
}

/// A procedure, which declares an application type: what each side of a pair does.
#[derive(Debug)]
pub(crate) struct ProcedureItem {
    pub(crate) name: Word,
    /// Names of its timings, in order.
    pub(crate) timings: Vec<Word>,
    pub(crate) initiator: Option<Vec<Statement>>,
    pub(crate) responder: Option<Vec<Statement>>,
    /// Whether part of it could not be read, so that what it lacks may have been written.
    pub(crate) broken: bool,
}

/// A statement of a procedure, with its span.
#[derive(Debug)]
pub(crate) enum Statement {
    /// A number of passes (`None` for `count`), and the body.
    Repeat(Option<SpecValue>, Vec<Self>, TextSpan),
    /// The operation's canonical name, and its arguments.
    Call(&'static str, Vec<Argument>, TextSpan),
}

/// An argument of an operation.
#[derive(Debug)]
pub(crate) enum Argument {
    /// A name: `unit`, `reply`, or a timing.
    Word(Word),
    Value(SpecValue),
    /// A distribution to draw a time from.
    Drawn(DistributionItem),
}

/// A number or a variable, with or without a unit.
#[derive(Clone, Debug)]
pub(crate) struct SpecValue {
    pub(crate) base: Base,
    pub(crate) unit: SpecUnit,
    pub(crate) span: TextSpan,
}

/// The value without its unit.
#[derive(Clone, Debug)]
pub(crate) enum Base {
    Number(f64),
    /// The name of a swept variable.
    Variable(String),
}

/// The unit written after a number, with the factor that converts the number to the base unit: bytes, seconds or
/// bit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SpecUnit {
    None,
    Size(f64),
    Time(f64),
    Rate(f64),
    Percent,
    /// `/s` behind a variable where an interval stands: the number is the divisor of these seconds.
    PerSecond(f64),
}

impl SpecUnit {
    /// The factor to the base unit; 1 for a per cent, which stays a per cent.
    pub(crate) const fn factor(self) -> f64 {
        match self {
            Self::None | Self::Percent | Self::PerSecond(_) => 1.0,
            Self::Size(factor) | Self::Time(factor) | Self::Rate(factor) => factor,
        }
    }

    /// The base unit of the same kind.
    pub(crate) const fn base(self) -> Self {
        match self {
            Self::None => Self::None,
            Self::Percent => Self::Percent,
            Self::Size(_) => Self::Size(1.0),
            Self::Time(_) => Self::Time(1.0),
            Self::Rate(_) => Self::Rate(1.0),
            Self::PerSecond(_) => Self::PerSecond(1.0),
        }
    }

    /// A value in the base unit as it is written: `40 ms`, `22.2 ms`, `10 Mbit/s`, `16 KiB`; in the base unit where three decimals of a
    /// larger one are not exact.
    pub(crate) fn written(self, value: f64) -> String {
        let units: &[(f64, &str)] = match self {
            Self::None | Self::Percent | Self::PerSecond(_) => &[],
            Self::Size(_) => &[
                (1_073_741_824.0, "GiB"),
                (1_048_576.0, "MiB"),
                (1024.0, "KiB"),
            ],
            Self::Time(_) => &[(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")],
            Self::Rate(_) => &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")],
        };
        let largest = units.iter().find(|(factor, _)| value >= *factor);
        let exact = largest.and_then(|(factor, unit)| {
            let decimals = format!("{:.3}", value / factor);
            let text = decimals.trim_end_matches('0').trim_end_matches('.');
            let written: f64 = text.parse().ok()?;
            let is_same = (written * factor - value).abs() <= 1e-12 * value;
            is_same.then(|| format!("{text} {unit}"))
        });
        exact.unwrap_or_else(|| format!("{value}{}", self.text()))
    }

    /// The base unit in its written form behind a number.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Percent => "%",
            Self::Size(_) => " B",
            Self::Time(_) => " s",
            Self::Rate(_) => " bit/s",
            Self::PerSecond(_) => "/s",
        }
    }
}

/// A distribution: `uniform(1, 2)`, `empirical(file "sizes")`.
#[derive(Clone, Debug)]
pub(crate) struct DistributionItem {
    pub(crate) name: Word,
    pub(crate) parameters: Vec<SpecValue>,
    /// The file of an empirical distribution.
    pub(crate) file: Option<Word>,
    pub(crate) span: TextSpan,
}

/// A measurement as written: number of runs, limits, composer, clauses, parts and sweeps.
#[derive(Debug)]
pub(crate) struct Specification {
    pub(crate) span: TextSpan,
    /// The line on which it begins, from 1.
    pub(crate) line: usize,
    /// Its tokens, without the terminator and the sweeps.
    pub(crate) at: TokenIndices,
    /// The tokens of number of runs and limits.
    pub(crate) head_at: TokenIndices,
    /// The tokens of limits that are written behind a part.
    pub(crate) late_at: Vec<TokenIndices>,
    pub(crate) runs: SpecValue,
    /// `timelimit`: the longest time of a run.
    pub(crate) time_limit: Option<SpecValue>,
    /// `until 2% at most 100`: the precision at which to stop, and the largest number of runs.
    pub(crate) until: Option<(SpecValue, Option<SpecValue>)>,
    /// `warmup`: a number of runs, or a time, that is not measured.
    pub(crate) warmup: Option<SpecValue>,
    pub(crate) composer: Composer,
    /// The tokens of the composer; empty where none is written.
    pub(crate) composer_at: TokenIndices,
    /// Clauses that hold for all parts.
    pub(crate) clauses: Vec<Clause>,
    pub(crate) parts: Vec<PartItem>,
    pub(crate) sweeps: Vec<Sweep>,
    pub(crate) readable: Readable,
}

/// How much of a specification could be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readable {
    Whole,
    /// At least one application type is there; what is not there may have been written.
    InPart,
    /// Only its sweeps.
    Not,
}

/// A part of a measurement: one application between two hosts, once or as several pairs at the same time.
#[derive(Clone, Debug)]
pub(crate) struct PartItem {
    pub(crate) span: TextSpan,
    /// The tokens of replicas, hosts, application and data.
    pub(crate) head_at: TokenIndices,
    /// Number of pairs at the same time.
    pub(crate) replicas: Option<SpecValue>,
    /// The initiator's host.
    pub(crate) from: Option<Word>,
    /// The responder's host.
    pub(crate) to: Option<Word>,
    /// The tokens of hosts that are written behind the application type.
    pub(crate) late_at: Vec<TokenIndices>,
    /// How the members of sets of hosts are paired, with the span of its word.
    pub(crate) pairing: Option<(HostPairing, TextSpan)>,
    /// The tokens of the ends, where they name sets of hosts.
    pub(crate) set_at: Option<TokenIndices>,
    pub(crate) application: Word,
    pub(crate) data: Option<DataItem>,
    /// Where the sender reads its data, after `<`.
    pub(crate) source: Option<AccessItem>,
    /// Where the receiver puts the data, after `>`.
    pub(crate) destination: Option<AccessItem>,
    /// Distributions for the timings of the procedure.
    pub(crate) timings: Vec<TimingItem>,
    pub(crate) clauses: Vec<Clause>,
}

/// How the members of two sets of hosts are paired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostPairing {
    /// The first with the first, the second with the second.
    Pairwise,
    /// Each host sends to one other, drawn from the seed, and each is sent to by one.
    Permutation,
}

/// A timing of a part: `exponential(1 ms)`, `2000/s`, `rate poisson 2000/s total`, `service 2 ms`.
#[derive(Clone, Debug)]
pub(crate) struct TimingItem {
    pub(crate) meant: MeantTiming,
    pub(crate) drawn: DistributionItem,
    /// Whether it is the rate of all pairs together.
    pub(crate) is_total: bool,
    pub(crate) span: TextSpan,
    pub(crate) at: TokenIndices,
}

/// Which timing of the procedure a distribution is for.
#[derive(Clone, Debug)]
pub(crate) enum MeantTiming {
    /// The first that no other is for.
    Next,
    /// The one that says when operations begin: after `rate` or `poisson`.
    Pace,
    /// The one with this name.
    Named(Word),
}

/// The data of a part: `32*100`, `64 KiB 1 GiB`, `32, 1 KiB*100`.
#[derive(Clone, Debug)]
pub(crate) struct DataItem {
    /// Size of a data unit.
    pub(crate) unit: SizeItem,
    /// Size of a data unit in the other direction, where a second size is written.
    pub(crate) reply: Option<SizeItem>,
    pub(crate) count: CountItem,
    pub(crate) span: TextSpan,
}

/// The size of a data unit: a value, or drawn for each unit.
#[derive(Clone, Debug)]
pub(crate) enum SizeItem {
    Value(SpecValue),
    Drawn(DistributionItem),
}

/// How much data is moved.
#[derive(Clone, Debug)]
pub(crate) enum CountItem {
    /// `*100`: a number of data units.
    Times(SpecValue),
    /// A number of bytes in all.
    Amount(SpecValue),
    /// Not written.
    Open,
}

/// Where data comes from or goes to.
#[derive(Clone, Debug)]
pub(crate) enum AccessItem {
    Memory,
    VirtualMemory,
    File(Word),
    /// A FILE, read once from beginning to end.
    WholeFile(Word),
}

impl AccessItem {
    /// The name of its FILE, if it has one.
    pub(crate) const fn file(&self) -> Option<&Word> {
        match self {
            Self::File(name) | Self::WholeFile(name) => Some(name),
            Self::Memory | Self::VirtualMemory => None,
        }
    }
}

/// A clause of a part or of a whole specification.
#[derive(Clone, Debug)]
pub(crate) struct Clause {
    pub(crate) kind: ClauseKind,
    pub(crate) span: TextSpan,
    pub(crate) at: TokenIndices,
}

/// What a clause says.
#[derive(Clone, Debug)]
pub(crate) enum ClauseKind {
    /// `over`: the stacks to measure, one after another.
    Over(Vec<StackItem>),
    /// `in`: live, emulated or simulated.
    In(World),
    /// `across`: the name of a network.
    Across(Word),
    /// `on cpu`: the initiator's core, and the responder's.
    Cpu(SpecValue, Option<SpecValue>),
    /// `expect`: what the results must be.
    Expect(Vec<ExpectationItem>),
}

/// A stack with its options: `tcp(nodelay, mss = 536)`.
#[derive(Clone, Debug)]
pub(crate) struct StackItem {
    pub(crate) name: Word,
    pub(crate) options: Vec<OptionItem>,
    pub(crate) at: TokenIndices,
}

/// An option of a stack; one without a value is switched on by its name.
#[derive(Clone, Debug)]
pub(crate) struct OptionItem {
    /// Empty, with the span of the value, where a text stands without a name.
    pub(crate) name: Word,
    pub(crate) value: Option<OptionText>,
}

/// The value of an option: a number or variable, a word, or a quoted text.
#[derive(Clone, Debug)]
pub(crate) enum OptionText {
    Value(SpecValue),
    Word(Word),
    Quoted(Word),
}

impl OptionText {
    /// Where it stands.
    pub(crate) const fn span(&self) -> TextSpan {
        match self {
            Self::Value(value) => value.span,
            Self::Word(word) | Self::Quoted(word) => word.span,
        }
    }
}

/// `N = 1, 2 ... 8;`: the values of a variable, each of which gives a measurement.
#[derive(Debug)]
pub(crate) struct Sweep {
    pub(crate) name: Word,
    /// Each value in its base unit, with its span and how it follows the previous one.
    pub(crate) values: Vec<(SweepStep, f64, TextSpan)>,
    /// The base unit of its values, if they have a unit.
    pub(crate) unit: SpecUnit,
    pub(crate) span: TextSpan,
}

/// How a value of a sweep follows the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SweepStep {
    /// After a comma.
    Next,
    /// After `...`: the values between the previous one and this one belong to the sweep too.
    To,
}
