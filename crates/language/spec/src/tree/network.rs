//! The tree of a network: what was written about its hosts, switches and links. Nothing here is checked or resolved.

use super::{DistributionItem, SpecValue, TokenIndices, Word};
use crate::diagnostic::TextSpan;
use alloc::vec::Vec;
use stackline_core::network::{FakeHost, WorkKind};

/// `network lan { ... }`
#[derive(Clone, Debug)]
pub(crate) struct NetworkItem {
    pub(crate) name: Word,
    pub(crate) hosts: Vec<NodeItem>,
    pub(crate) switches: Vec<SwitchItem>,
    pub(crate) links: Vec<LinkItem>,
    /// Its tokens, from `network` to the closing brace.
    pub(crate) at: TokenIndices,
    /// Whether something in it could not be read; what it lacks is then not reported.
    pub(crate) broken: bool,
}

impl NetworkItem {
    /// A network without nodes and links.
    pub(crate) const fn empty(name: Word) -> Self {
        Self {
            name,
            hosts: Vec::new(),
            switches: Vec::new(),
            links: Vec::new(),
            at: 0..0,
            broken: false,
        }
    }

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

/// Hosts of a network that are declared together and have the same properties.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeItem {
    pub(crate) names: Vec<Word>,
    /// Frames that its interface holds in each direction.
    pub(crate) buffer_frames: Option<SpecValue>,
    /// Written if the next frame can be copied into the interface only when the one before has left.
    pub(crate) single_buffered: Option<()>,
    /// Written if the processor waits, doing nothing else, until the frame it has copied has been transmitted.
    pub(crate) busy_waiting: Option<()>,
    /// The span of `interface_copies`: the interface copies by itself, without the processor.
    pub(crate) interface_copies: Option<TextSpan>,
    /// The span of the word `copy`, if the cost of copying is given.
    pub(crate) copy: Option<TextSpan>,
    /// Time to copy a packet between memory and interface, beside the time for its bytes.
    pub(crate) copy_per_packet: Option<SpecValue>,
    /// Time to copy a byte.
    pub(crate) copy_per_byte: Option<SpecValue>,
    /// Processor speed relative to the one that the costs are given for.
    pub(crate) cpu: Option<SpecValue>,
    /// The span of the word `work`, if the cost of program work is given.
    pub(crate) work: Option<TextSpan>,
    /// Processor time for each operation of the program.
    pub(crate) work_per_operation: Option<SpecValue>,
    pub(crate) work_per_byte: Option<SpecValue>,
    pub(crate) work_per_message: Option<SpecValue>,
    /// Processor time for each switch from one program to another.
    pub(crate) work_per_switch: Option<SpecValue>,
    /// The interval at which the host polls.
    pub(crate) polls: Option<SpecValue>,
    /// Which kind of work runs first, with its span.
    pub(crate) priority: Option<(WorkKind, TextSpan)>,
    /// The rate at which its packets leave, in bit/s.
    pub(crate) pace: Option<SpecValue>,
    /// The errors of its clock.
    pub(crate) clock: Vec<ClockItem>,
    /// The time from which it is down, the time until which (`None`: to the end), and the span.
    pub(crate) down: Option<(SpecValue, Option<SpecValue>, TextSpan)>,
    /// Per cent of a processor.
    pub(crate) share: Option<SpecValue>,
    /// How it generates its traffic as a fake host, with the span.
    pub(crate) fake: Option<(FakeHost, TextSpan)>,
}

/// One error of a host's clock: `ahead 20 ms`, `behind 1 s at 10 s`, `fast 20 ppm`.
#[derive(Clone, Debug)]
pub(crate) struct ClockItem {
    pub(crate) kind: ClockKind,
    /// Whether the word is `behind` or `slow`, which make the value negative.
    pub(crate) negative: bool,
    pub(crate) value: SpecValue,
    pub(crate) span: TextSpan,
}

/// What is wrong with the clock.
#[derive(Clone, Debug)]
pub(crate) enum ClockKind {
    /// It is ahead or behind from the beginning.
    Offset,
    /// It is set wrongly at this time.
    Step(SpecValue),
    /// It runs fast or slow; the value is in parts per million.
    Drift,
}

/// A switch, router or IMP of a network.
#[derive(Clone, Debug, Default)]
pub(crate) struct SwitchItem {
    pub(crate) name: Word,
    pub(crate) buffer: Option<SpecValue>,
    /// Whether the buffer is one of each port and not shared by all.
    pub(crate) per_port: bool,
    /// Cell size, where packets are cut into cells.
    pub(crate) cells: Option<SpecValue>,
    pub(crate) early_packet_discard: Option<bool>,
    /// Whether it assigns rates to hosts (ATM's available bit rate service), with the span.
    pub(crate) abr: Option<(bool, TextSpan)>,
    pub(crate) queue: Option<QueueItem>,
    /// The properties of an IMP; `None` for a switch or router.
    pub(crate) imp: Option<ImpItem>,
}

/// The properties of an IMP, a packet switch of the ARPANET.
#[derive(Clone, Debug)]
pub(crate) struct ImpItem {
    /// `516`, `316`, `tip` or `free`.
    pub(crate) machine: Word,
    pub(crate) reassembly: Option<SpecValue>,
    pub(crate) window: Option<SpecValue>,
    pub(crate) channels: Option<SpecValue>,
    pub(crate) buffers: Option<SpecValue>,
    /// Whether `routing` is `september` and not `january`.
    pub(crate) september: Option<bool>,
    pub(crate) reservation: Option<bool>,
    pub(crate) splitting: Option<bool>,
}

/// A link: its two ends, rate, delay and clauses.
#[derive(Clone, Debug)]
pub(crate) struct LinkItem {
    pub(crate) ends: (Word, Word),
    /// Whether it is written with `->`: packets go only from the first end to the second.
    pub(crate) one_way: bool,
    pub(crate) rate: RateItem,
    pub(crate) delay: DelayItem,
    pub(crate) loss: Option<LossItem>,
    pub(crate) jitter: Option<JitterItem>,
    /// Share of packets that are duplicated, in per cent.
    pub(crate) duplicate: Option<SpecValue>,
    pub(crate) mtu: Option<SpecValue>,
    /// Which bytes the rate counts: those of packets, of frames, or all on the wire.
    pub(crate) charge: Option<stackline_core::network::Charge>,
    pub(crate) queue: Option<QueueItem>,
}

/// The rate of a link, in bit/s.
#[derive(Clone, Debug)]
pub(crate) enum RateItem {
    Unlimited,
    Constant(SpecValue),
    Schedule(ScheduleItem<SpecValue>),
    /// The file name of a Mahimahi trace.
    Trace(Word),
}

/// The propagation delay of a link.
#[derive(Clone, Debug)]
pub(crate) enum DelayItem {
    Constant(SpecValue),
    Schedule(ScheduleItem<SpecValue>),
}

/// Values that change over time: `schedule(0 s 10 ms, 5 s 20 ms) every 10 s`.
#[derive(Clone, Debug)]
pub(crate) struct ScheduleItem<T> {
    /// The time from which each value holds, and the value.
    pub(crate) steps: Vec<(SpecValue, T)>,
    /// The period after which the schedule begins again.
    pub(crate) every: Option<SpecValue>,
    pub(crate) span: TextSpan,
}

/// The losses of a link. Shares are in per cent.
#[derive(Clone, Debug)]
pub(crate) enum LossItem {
    Schedule(ScheduleItem<Self>),
    /// The share of packets that are lost, at random.
    Share(SpecValue),
    /// The probability that a bit is wrong; a packet with a wrong bit is lost.
    BitErrors(SpecValue),
    /// Every n-th packet is lost.
    Every(SpecValue),
    /// The numbers of the packets that are lost.
    Packets(Vec<SpecValue>),
    /// Two shares, good to bad and bad to good, or four: also the loss in the good state and in the bad one.
    GilbertElliott(Vec<SpecValue>),
}

/// Random extra delay of each packet.
#[derive(Clone, Debug)]
pub(crate) struct JitterItem {
    pub(crate) drawn: DistributionItem,
    /// Whether packets may overtake each other.
    pub(crate) reordering: bool,
}

/// A queue: its limit, its discipline, and whether it marks packets (ECN).
#[derive(Clone, Debug)]
pub(crate) struct QueueItem {
    pub(crate) limit: Option<QueueLimit>,
    pub(crate) discipline: Option<DisciplineItem>,
    /// The span of `ecn`, if it is written.
    pub(crate) ecn: Option<TextSpan>,
    pub(crate) span: TextSpan,
}

/// The most that a queue holds.
#[derive(Clone, Debug)]
pub(crate) enum QueueLimit {
    Bytes(SpecValue),
    Packets(SpecValue),
}

/// A queue discipline: `codel(target = 5 ms)`.
#[derive(Clone, Debug)]
pub(crate) struct DisciplineItem {
    pub(crate) name: Word,
    pub(crate) settings: Vec<SettingItem>,
}

/// A setting of a discipline: `target = 5 ms`.
#[derive(Clone, Debug)]
pub(crate) struct SettingItem {
    pub(crate) name: Word,
    pub(crate) value: SpecValue,
    /// Whether the value is in per cent.
    pub(crate) percent: bool,
}
