//! The tree of a factor: what a designed experiment varies, and its levels. Nothing here is checked.

use super::Word;
use crate::diagnostic::TextSpan;
use alloc::vec::Vec;

/// A factor: `factor bandwidth of a - b x 10;`.
#[derive(Clone, Debug)]
pub(crate) struct FactorItem {
    pub(crate) what: VariedProperty,
    pub(crate) levels: Vec<LevelItem>,
}

/// What is varied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VariedProperty {
    /// A property of the link between two nodes, or of all links.
    Link(LinkProperty, Option<(FactorText, FactorText)>),
    /// The processor speed of one simulated host, or of all.
    Cpu(Option<FactorText>),
    /// The share of a processor of one host, or of all.
    Share(Option<FactorText>),
    /// The buffer of one switch, or of all.
    Buffer(Option<FactorText>),
    /// The stack.
    Stack,
    /// The size of data units.
    Size,
    /// The number of pairs that run at the same time.
    Clients,
    /// The host of the initiator (`from`) or of the responder (`to`).
    Place(FactorSide),
    /// An option of the stack, or a variable.
    Named(FactorText),
}

/// A name as written.
type FactorText = alloc::string::String;

/// The properties of a link that can be varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkProperty {
    Bandwidth,
    Delay,
    Loss,
    Queue,
    Mtu,
}

/// Which host of a part is varied: the initiator's or the responder's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FactorSide {
    From,
    To,
}

/// A level as written.
#[derive(Clone, Debug)]
pub(crate) enum LevelItem {
    /// `x 10`: the written value times this number.
    Times(f64),
    /// The span of the text that replaces the written value.
    Set(TextSpan),
}

impl LinkProperty {
    /// Each property with its word in the language.
    pub(crate) const ALL: [(&'static str, Self); 5] = [
        ("bandwidth", Self::Bandwidth),
        ("delay", Self::Delay),
        ("loss", Self::Loss),
        ("queue", Self::Queue),
        ("mtu", Self::Mtu),
    ];

    /// Its word in the language.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Bandwidth => "bandwidth",
            Self::Delay => "delay",
            Self::Loss => "loss",
            Self::Queue => "queue",
            Self::Mtu => "mtu",
        }
    }
}

/// The names of the two ends of a link.
pub(crate) fn texts(first: &Word, second: &Word) -> (FactorText, FactorText) {
    (first.text.clone(), second.text.clone())
}
