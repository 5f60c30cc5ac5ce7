//! The syntax tree: what was written, with its places in the text. Nothing in it has been checked or resolved.

mod factor;
mod network;
mod network_figures;

pub(crate) use factor::{FactorItem, FactorSide, LevelItem, LinkProperty, VariedProperty, texts};
pub(crate) use network::{
    ClockItem, ClockKind, DelayItem, DisciplineItem, ImpItem, JitterItem, LinkItem, LossItem,
    NetworkItem, NodeItem, QueueItem, QueueLimit, RateItem, ScheduleItem, SettingItem, SwitchItem,
};
pub(crate) use network_figures::FigureKind;

use crate::diagnostic::TextSpan;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use stackline_core::plan::{Composer, World};

/// A range of token indices.
pub(crate) type TokenIndices = Range<usize>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) span: TextSpan,
}

#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) items: Vec<SpecItem>,
}

#[derive(Debug)]
pub(crate) enum SpecItem {
    Host(HostItem),
    Network(NetworkItem),
    Procedure(ProcedureItem),
    Factor(FactorItem),
    Seed(SpecValue, TextSpan),
    Specification(Box<Specification>),
}

#[derive(Debug, Default)]
pub(crate) struct HostItem {
    pub(crate) names: Vec<Word>,
    /// `Some(None)`: local.
    pub(crate) via: Option<Option<ViaItem>>,
    pub(crate) at: Option<Word>,
    pub(crate) cpu: Option<SpecValue>,
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

#[derive(Debug)]
pub(crate) struct ProcedureItem {
    pub(crate) name: Word,
    pub(crate) timings: Vec<Word>,
    pub(crate) initiator: Option<Vec<Statement>>,
    pub(crate) responder: Option<Vec<Statement>>,
    pub(crate) broken: bool,
}

#[derive(Debug)]
pub(crate) enum Statement {
    /// A number of passes (`None` for `count`), and the body.
    Repeat(Option<SpecValue>, Vec<Self>, TextSpan),
    /// The operation's canonical name, and its arguments.
    Call(&'static str, Vec<Argument>, TextSpan),
}

#[derive(Debug)]
pub(crate) enum Argument {
    Word(Word),
    Value(SpecValue),
    Drawn(DistributionItem),
}

/// A number or a variable, with or without a unit.
#[derive(Clone, Debug)]
pub(crate) struct SpecValue {
    pub(crate) base: Base,
    pub(crate) unit: SpecUnit,
    pub(crate) span: TextSpan,
}

#[derive(Clone, Debug)]
pub(crate) enum Base {
    Number(f64),
    Variable(String),
}

/// The unit written after a number, with its factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SpecUnit {
    None,
    Size(f64),
    Time(f64),
    Rate(f64),
    Percent,
}

impl SpecUnit {
    pub(crate) const fn factor(self) -> f64 {
        match self {
            Self::None | Self::Percent => 1.0,
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
        }
    }

    /// The base unit in its written form behind a number.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Percent => "%",
            Self::Size(_) => " B",
            Self::Time(_) => " s",
            Self::Rate(_) => " bit/s",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct DistributionItem {
    pub(crate) name: Word,
    pub(crate) parameters: Vec<SpecValue>,
    pub(crate) file: Option<Word>,
    pub(crate) span: TextSpan,
}

#[derive(Debug)]
pub(crate) struct Specification {
    pub(crate) span: TextSpan,
    pub(crate) line: usize,
    /// Its tokens, without terminator and sweeps.
    pub(crate) at: TokenIndices,
    /// The tokens of number of runs and limits.
    pub(crate) head_at: TokenIndices,
    /// The tokens of limits that are written behind a part.
    pub(crate) late_at: Vec<TokenIndices>,
    pub(crate) runs: SpecValue,
    pub(crate) time_limit: Option<SpecValue>,
    pub(crate) until: Option<(SpecValue, Option<SpecValue>)>,
    pub(crate) warmup: Option<SpecValue>,
    pub(crate) composer: Composer,
    pub(crate) composer_at: TokenIndices,
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

#[derive(Debug)]
pub(crate) struct PartItem {
    pub(crate) span: TextSpan,
    /// The tokens of replicas, hosts, application and data.
    pub(crate) head_at: TokenIndices,
    pub(crate) replicas: Option<SpecValue>,
    pub(crate) from: Option<Word>,
    pub(crate) to: Option<Word>,
    /// The tokens of hosts that are written behind the application type.
    pub(crate) late_at: Vec<TokenIndices>,
    pub(crate) application: Word,
    pub(crate) data: Option<DataItem>,
    pub(crate) source: Option<AccessItem>,
    pub(crate) destination: Option<AccessItem>,
    pub(crate) timings: Vec<(DistributionItem, TokenIndices)>,
    pub(crate) clauses: Vec<Clause>,
}

#[derive(Debug)]
pub(crate) struct DataItem {
    pub(crate) unit: SizeItem,
    pub(crate) reply: Option<SizeItem>,
    pub(crate) count: CountItem,
    pub(crate) span: TextSpan,
}

#[derive(Debug)]
pub(crate) enum SizeItem {
    Value(SpecValue),
    Drawn(DistributionItem),
}

#[derive(Debug)]
pub(crate) enum CountItem {
    Times(SpecValue),
    Amount(SpecValue),
    Open,
}

#[derive(Debug)]
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

#[derive(Debug)]
pub(crate) struct Clause {
    pub(crate) kind: ClauseKind,
    pub(crate) span: TextSpan,
    pub(crate) at: TokenIndices,
}

#[derive(Debug)]
pub(crate) enum ClauseKind {
    Over(Vec<StackItem>),
    In(World),
    Across(Word),
    Cpu(SpecValue, Option<SpecValue>),
}

#[derive(Debug)]
pub(crate) struct StackItem {
    pub(crate) name: Word,
    pub(crate) options: Vec<OptionItem>,
    pub(crate) at: TokenIndices,
}

#[derive(Debug)]
pub(crate) struct OptionItem {
    pub(crate) name: Word,
    pub(crate) value: Option<OptionText>,
}

#[derive(Debug)]
pub(crate) enum OptionText {
    Value(SpecValue),
    Word(Word),
}

#[derive(Debug)]
pub(crate) struct Sweep {
    pub(crate) name: Word,
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
    /// After `...`.
    To,
}
