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
    pub(crate) routes: Vec<RouteItem>,
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
    /// What only a router has; `None` for a switch or IMP.
    pub(crate) router: Option<RouterItem>,
    pub(crate) routes: Vec<RouteItem>,
}

/// What only a router has.
#[derive(Clone, Debug, Default)]
pub(crate) struct RouterItem {
    /// Whether it sends ICMP, with the span.
    pub(crate) icmp: Option<(bool, TextSpan)>,
    pub(crate) nat: Option<GateItem>,
    pub(crate) firewall: Option<GateItem>,
}

/// `nat on isp timeout 30 s entries 1000` or `firewall on isp idle 60 s reject`.
#[derive(Clone, Debug)]
pub(crate) struct GateItem {
    /// The neighbour on its outer side.
    pub(crate) outside: Word,
    /// After which time without packets an entry is forgotten.
    pub(crate) time: Option<SpecValue>,
    pub(crate) entries: Option<SpecValue>,
    /// The span of `reject`.
    pub(crate) rejects: Option<TextSpan>,
}

/// `route b via r2, r3` or `route default via r2`.
#[derive(Clone, Debug)]
pub(crate) struct RouteItem {
    /// `None` for `default`.
    pub(crate) to: Option<Word>,
    pub(crate) via: Vec<Word>,
    pub(crate) span: TextSpan,
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
    pub(crate) shaper: Option<ShaperItem>,
    pub(crate) policer: Option<PolicerItem>,
    /// The code point that its packets get.
    pub(crate) dscp: Option<SpecValue>,
    pub(crate) reorder: Option<ReorderItem>,
}

/// A token bucket: `10 Mbit/s burst 32 KiB`, with the word before it in the span.
#[derive(Clone, Debug)]
pub(crate) struct BucketItem {
    pub(crate) rate: SpecValue,
    pub(crate) burst: SpecValue,
    pub(crate) span: TextSpan,
}

/// A token bucket that packets wait for: `shape 10 Mbit/s burst 32 KiB latency 50 ms`.
#[derive(Clone, Debug)]
pub(crate) struct ShaperItem {
    pub(crate) bucket: BucketItem,
    pub(crate) limit: Option<ShaperLimit>,
}

/// How many packets may wait for a shaper.
#[derive(Clone, Debug)]
pub(crate) enum ShaperLimit {
    /// What waits no longer than this.
    Latency(SpecValue),
    Bytes(SpecValue),
}

/// A token bucket that packets do not wait for: `police 10 Mbit/s burst 32 KiB remark af12`.
#[derive(Clone, Debug)]
pub(crate) struct PolicerItem {
    pub(crate) bucket: BucketItem,
    /// The code point of packets that exceed it; they are dropped without.
    pub(crate) remark: Option<SpecValue>,
}

/// Packets that skip the delay: `reorder 25% correlation 50% gap 5`.
#[derive(Clone, Debug)]
pub(crate) struct ReorderItem {
    pub(crate) share: SpecValue,
    pub(crate) correlation: Option<SpecValue>,
    pub(crate) gap: Option<SpecValue>,
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
    /// The same in netem's order, one to four: good to bad, bad to good, the loss in the bad state, that in the good one.
    GeModel(Vec<SpecValue>),
    /// netem's transitions p13, p31, p32, p23 and p14, one to five.
    FourStates(Vec<SpecValue>),
}

/// Random extra delay of each packet.
#[derive(Clone, Debug)]
pub(crate) struct JitterItem {
    pub(crate) drawn: DistributionItem,
    /// How much of it the delay of the packet before decides, in per cent.
    pub(crate) correlation: Option<SpecValue>,
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
    /// The classes of `classes`.
    pub(crate) classes: Vec<ClassItem>,
}

/// A class of a queue: `ef cs6 strict 20 packets`.
#[derive(Clone, Debug)]
pub(crate) struct ClassItem {
    /// Its code points; none for `default`.
    pub(crate) dscps: Vec<SpecValue>,
    /// Its weight; `None` for `strict`.
    pub(crate) weight: Option<SpecValue>,
    pub(crate) limit: Option<QueueLimit>,
    pub(crate) discipline: Option<DisciplineItem>,
    pub(crate) span: TextSpan,
}

/// A setting of a discipline: `target = 5 ms`.
#[derive(Clone, Debug)]
pub(crate) struct SettingItem {
    pub(crate) name: Word,
    pub(crate) value: SpecValue,
    /// Whether the value is in per cent.
    pub(crate) percent: bool,
}
