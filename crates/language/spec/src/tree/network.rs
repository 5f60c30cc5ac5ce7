//! The tree of a network: what was written about its hosts, switches and links. Nothing here is checked or resolved.

use super::{DistributionItem, SpecValue, TokenIndices, Word};
use crate::diagnostic::TextSpan;
use alloc::vec::Vec;
use stackline_core::network::{FakeHost, WorkKind};

#[derive(Clone, Debug)]
pub(crate) struct NetworkItem {
    pub(crate) name: Word,
    pub(crate) hosts: Vec<NodeItem>,
    pub(crate) switches: Vec<SwitchItem>,
    pub(crate) links: Vec<LinkItem>,
    /// Its tokens.
    pub(crate) at: TokenIndices,
    /// Something in it could not be read, so what it lacks is not reported.
    pub(crate) broken: bool,
}

impl NetworkItem {
    /// Names of all its hosts, as written.
    pub(crate) fn host_names(&self) -> impl Iterator<Item = &Word> {
        self.hosts.iter().flat_map(|item| &item.names)
    }

    /// Names of its hosts, then of its switches.
    pub(crate) fn node_names(&self) -> impl Iterator<Item = &Word> {
        self.host_names()
            .chain(self.switches.iter().map(|item| &item.name))
    }
}

/// Hosts that are alike.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeItem {
    pub(crate) names: Vec<Word>,
    pub(crate) buffer_frames: Option<SpecValue>,
    pub(crate) single_buffered: Option<()>,
    pub(crate) busy_waiting: Option<()>,
    /// Where it is said that the interface copies by itself.
    pub(crate) interface_copies: Option<TextSpan>,
    pub(crate) copy: Option<TextSpan>,
    pub(crate) copy_per_packet: Option<SpecValue>,
    pub(crate) copy_per_byte: Option<SpecValue>,
    pub(crate) cpu: Option<SpecValue>,
    pub(crate) work: Option<TextSpan>,
    pub(crate) work_per_operation: Option<SpecValue>,
    pub(crate) work_per_byte: Option<SpecValue>,
    pub(crate) work_per_message: Option<SpecValue>,
    pub(crate) work_per_switch: Option<SpecValue>,
    pub(crate) polls: Option<SpecValue>,
    pub(crate) priority: Option<(WorkKind, TextSpan)>,
    pub(crate) pace: Option<SpecValue>,
    pub(crate) clock: Vec<ClockItem>,
    /// From when it is down, until when, and where that is said.
    pub(crate) down: Option<(SpecValue, Option<SpecValue>, TextSpan)>,
    /// Per cent of a processor.
    pub(crate) share: Option<SpecValue>,
    /// How it works as a fake host, and where that is said.
    pub(crate) fake: Option<(FakeHost, TextSpan)>,
}

#[derive(Clone, Debug)]
pub(crate) struct ClockItem {
    pub(crate) kind: ClockKind,
    /// `behind` or `slow`.
    pub(crate) negative: bool,
    pub(crate) value: SpecValue,
    pub(crate) span: TextSpan,
}

#[derive(Clone, Debug)]
pub(crate) enum ClockKind {
    Offset,
    /// When.
    Step(SpecValue),
    Drift,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct SwitchItem {
    pub(crate) name: Word,
    pub(crate) buffer: Option<SpecValue>,
    pub(crate) per_port: bool,
    pub(crate) cells: Option<SpecValue>,
    pub(crate) early_packet_discard: Option<bool>,
    /// Whether it is on, and where that is said.
    pub(crate) abr: Option<(bool, TextSpan)>,
    pub(crate) queue: Option<QueueItem>,
    pub(crate) imp: Option<ImpItem>,
}

/// What is said of an IMP: its machine's word, and its properties.
#[derive(Clone, Debug)]
pub(crate) struct ImpItem {
    pub(crate) machine: Word,
    pub(crate) reassembly: Option<SpecValue>,
    pub(crate) window: Option<SpecValue>,
    pub(crate) channels: Option<SpecValue>,
    pub(crate) buffers: Option<SpecValue>,
    pub(crate) september: Option<bool>,
    pub(crate) reservation: Option<bool>,
    pub(crate) splitting: Option<bool>,
}

#[derive(Clone, Debug)]
pub(crate) struct LinkItem {
    pub(crate) ends: (Word, Word),
    pub(crate) one_way: bool,
    pub(crate) rate: RateItem,
    pub(crate) delay: DelayItem,
    pub(crate) loss: Option<LossItem>,
    pub(crate) jitter: Option<JitterItem>,
    /// Per cent.
    pub(crate) duplicate: Option<SpecValue>,
    pub(crate) mtu: Option<SpecValue>,
    pub(crate) charge: Option<stackline_core::network::Charge>,
    pub(crate) queue: Option<QueueItem>,
}

/// Rates are in bit/s.
#[derive(Clone, Debug)]
pub(crate) enum RateItem {
    Unlimited,
    Constant(SpecValue),
    Schedule(ScheduleItem<SpecValue>),
    Trace(Word),
}

#[derive(Clone, Debug)]
pub(crate) enum DelayItem {
    Constant(SpecValue),
    Schedule(ScheduleItem<SpecValue>),
}

/// `schedule(0 s 10 ms, 5 s 20 ms) every 10 s`
#[derive(Clone, Debug)]
pub(crate) struct ScheduleItem<T> {
    /// From when what.
    pub(crate) steps: Vec<(SpecValue, T)>,
    pub(crate) every: Option<SpecValue>,
    pub(crate) span: TextSpan,
}

/// Shares are per cent.
#[derive(Clone, Debug)]
pub(crate) enum LossItem {
    Schedule(ScheduleItem<Self>),
    Share(SpecValue),
    BitErrors(SpecValue),
    Every(SpecValue),
    Packets(Vec<SpecValue>),
    GilbertElliott(Vec<SpecValue>),
}

#[derive(Clone, Debug)]
pub(crate) struct JitterItem {
    pub(crate) drawn: DistributionItem,
    pub(crate) reordering: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct QueueItem {
    pub(crate) limit: Option<QueueLimit>,
    pub(crate) discipline: Option<DisciplineItem>,
    pub(crate) ecn: Option<TextSpan>,
    pub(crate) span: TextSpan,
}

#[derive(Clone, Debug)]
pub(crate) enum QueueLimit {
    Bytes(SpecValue),
    Packets(SpecValue),
}

#[derive(Clone, Debug)]
pub(crate) struct DisciplineItem {
    pub(crate) name: Word,
    pub(crate) settings: Vec<SettingItem>,
}

/// `target = 5 ms`
#[derive(Clone, Debug)]
pub(crate) struct SettingItem {
    pub(crate) name: Word,
    pub(crate) value: SpecValue,
    pub(crate) percent: bool,
}
