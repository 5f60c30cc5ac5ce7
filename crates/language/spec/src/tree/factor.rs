//! The tree of a factor: what a designed experiment varies, and its levels. Nothing here is checked.

use super::Word;
use crate::diagnostic::TextSpan;
use alloc::vec::Vec;

/// `factor bandwidth of a - b x 10;`
#[derive(Clone, Debug)]
pub(crate) struct FactorItem {
    pub(crate) what: VariedProperty,
    pub(crate) levels: Vec<LevelItem>,
}

/// What is varied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VariedProperty {
    /// A property of one link, or of all.
    Link(LinkProperty, Option<(FactorText, FactorText)>),
    /// The processor of one host, or of all.
    Cpu(Option<FactorText>),
    /// The share of a processor of one host, or of all.
    Share(Option<FactorText>),
    /// The buffer of one switch, or of all.
    Buffer(Option<FactorText>),
    /// The stack.
    Stack,
    /// The size of data units.
    Size,
    /// The number of pairs at once.
    Clients,
    /// The initiator's host, or the responder's.
    Place(FactorSide),
    /// An option of the stack, or a variable.
    Named(FactorText),
}

type FactorText = alloc::string::String;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkProperty {
    Bandwidth,
    Delay,
    Loss,
    Queue,
    Mtu,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FactorSide {
    From,
    To,
}

#[derive(Clone, Debug)]
pub(crate) enum LevelItem {
    /// So many times what is written.
    Times(f64),
    /// What is to be written there.
    Set(TextSpan),
}

impl LinkProperty {
    pub(crate) const ALL: [(&'static str, Self); 5] = [
        ("bandwidth", Self::Bandwidth),
        ("delay", Self::Delay),
        ("loss", Self::Loss),
        ("queue", Self::Queue),
        ("mtu", Self::Mtu),
    ];

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

/// The ends of a link as words.
pub(crate) fn texts(first: &Word, second: &Word) -> (FactorText, FactorText) {
    (first.text.clone(), second.text.clone())
}
