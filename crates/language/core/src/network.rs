//! A declared network as plain data: hosts, switches, links and their properties.
//!
//! `spec` reads and checks it; `net` builds the model that the simulated and the emulated world run; `model` computes
//! with it. The values are already checked: rates are above zero, the ends of links exist, and the network is
//! connected.

use crate::distribution::Distribution;
use crate::plan::ProcessorShare;
use crate::time::{Duration, Instant};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

mod router_settings;
mod step_schedule;
mod traffic_control;

pub use router_settings::{FirewallSettings, NatSettings, RouterSettings, StaticRoute};
pub use step_schedule::{RateSchedule, StepSchedule};
pub use traffic_control::{
    ClassService, DSCP_NAMES, DelaySkipping, DualPi2Settings, FourStateLoss, LARGEST_DSCP, Policer,
    QueueClass, TokenBucket, dscp_name,
};

/// Largest packet of a link that declares no MTU, in bytes (Ethernet's).
pub const DEFAULT_MTU: u64 = 1500;
/// The largest number of links a packet may cross, Linux's default time to live (RFC 1700); a packet that needs more
/// is in a loop.
pub const MOST_HOPS: u8 = 64;
/// Lines to an IMP from which on routing holds it for unreachable: a longer path is taken for a loop (the program of
/// September 1973).
pub const MOST_IMP_HOPS: usize = 22;
/// The largest number of IMPs: the formats of 1973 have no more numbers.
pub const MOST_IMPS: usize = 64;

/// A declared network: one `network NAME { ... }` of a specification.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// Its name, which `across` refers to.
    pub name: String,
    /// Its hosts.
    pub hosts: Vec<NetworkHost>,
    /// Its switches and routers.
    pub switches: Vec<NetworkSwitch>,
    /// Its links.
    pub links: Vec<NetworkLink>,
}

impl Network {
    /// Whether any queue marks packets (ECN) instead of dropping them: if so, the TCP of all hosts negotiates ECN.
    #[must_use]
    pub fn marks(&self) -> bool {
        let of_links = self.links.iter().map(|link| &link.queue);
        let of_switches = self.switches.iter().map(|switch| &switch.queue);
        of_links.chain(of_switches).flatten().any(|queue| queue.ecn)
    }

    /// Whether it is a network of IMPs (the packet switches of the ARPANET).
    #[must_use]
    pub fn has_imps(&self) -> bool {
        self.switches.iter().any(|switch| switch.imp.is_some())
    }

    /// The host of that name.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<&NetworkHost> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// The name of a port, the sending end of one direction of a link: `khons>edge` sends from `khons` to `edge`.
    /// Ports are numbered by link: link n has the ports 2n (first end to second) and 2n + 1.
    #[must_use]
    pub fn port_name(&self, port: u32) -> Option<String> {
        let (first, second) = &self.links.get(port as usize / 2)?.ends;
        Some(if port.is_multiple_of(2) {
            format!("{first}>{second}")
        } else {
            format!("{second}>{first}")
        })
    }

    /// Whether packets may leave by a port: a one-way link has none at its second end.
    #[must_use]
    pub fn has_port(&self, port: u32) -> bool {
        let link = self.links.get(port as usize / 2);
        link.is_some_and(|link| port.is_multiple_of(2) || !link.one_way)
    }

    /// The number and the name of each port.
    pub fn ports(&self) -> impl Iterator<Item = (u32, String)> {
        let numbers = (0..).map_while(|port| Some((port, self.port_name(port)?)));
        numbers.filter(|(port, _)| self.has_port(*port))
    }
}

/// A host of a network: a name, the interface that connects it to its links, its clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkHost {
    /// Its name.
    pub name: String,
    /// The interface between the host's memory and its links.
    #[serde(default)]
    pub interface: NetworkInterface,
    /// How its clock differs from true time.
    #[serde(default)]
    pub clock: ClockModel,
    /// When the host is down, for a host at an IMP; the IMP then informs those who send to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<Outage>,
    /// The share of a processor its programs get in the emulated world; a whole machine when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<ProcessorShare>,
    /// Set when the host is a program inside its IMP (a fake host): how that program generates messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fake: Option<FakeHost>,
    /// What its processor spends on programs in the simulated world.
    #[serde(default, skip_serializing_if = "ProgramCosts::is_nothing")]
    pub work: ProgramCosts,
    /// Its own routes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<StaticRoute>,
}

/// The time a simulated processor spends on programs, at the speed for which it was measured (Lantz, Nowicki and
/// Theimer 1985, sections 4 and 6): for computing, and for handing data to a transport. Copying into the interface has
/// precedence over both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramCosts {
    /// For each operation of a program: producing or consuming a data unit, a call, an answer.
    pub per_operation: Duration,
    /// In addition for each byte of the operation, ns.
    pub ns_per_byte: f64,
    /// For each message between a program and its transport: system calls, switches between processes, intermediate
    /// agents.
    pub per_message: Duration,
    /// For each switch of the processor from one program to another.
    pub per_switch: Duration,
    /// The interval at which programs poll for arrived data; when absent they receive it at once.
    pub polls: Option<Duration>,
    /// Which kind of work has precedence when both want the processor; first come, first served when absent.
    pub first: Option<WorkKind>,
}

impl ProgramCosts {
    /// Whether programs take no time.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Time for an operation on `bytes` bytes, ns, at the speed that was measured.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "operations on fewer than 2^52 bytes"
    )]
    pub fn operation_ns(&self, bytes: u64) -> f64 {
        self.per_operation.0 as f64 + self.ns_per_byte * bytes as f64
    }
}

/// What a program's work is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkKind {
    /// Computing: the program's operations.
    Operations,
    /// Handing data to a transport and receiving it from there.
    Messages,
}

impl WorkKind {
    /// Both kinds with their names in the language.
    pub const ALL: [(&str, Self); 2] = [
        ("operations", Self::Operations),
        ("messages", Self::Messages),
    ];
}

/// A fake host: a program of an IMP that generates messages and discards them (BBN 2499, 2.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FakeHost {
    /// Generates a word at a time, and each word costs processor time.
    Word,
    /// Generates a packet at a time, which costs next to nothing.
    Packet,
}

impl FakeHost {
    /// Both with their names in the language.
    pub const ALL: [(&str, Self); 2] = [("word", Self::Word), ("packet", Self::Packet)];

    /// Cycles of the IMP for a word that it generates and for a word that it discards (2.2.1). For a packet at a time
    /// the cost is next to nothing (2.2.1.6), here 1 cycle a word.
    #[must_use]
    pub const fn cycles(self) -> (u64, u64) {
        match self {
            Self::Word => (25, 20),
            Self::Packet => (1, 1),
        }
    }
}

/// A period in which something is down; times count from the beginning of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// When it goes down.
    pub from: Duration,
    /// When it is up again; never, when absent.
    pub to: Option<Duration>,
}

/// A network interface, and the copying between it and the host's memory (Zwaenepoel 1985, section 2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkInterface {
    /// Frames it can hold in each direction; unlimited when absent.
    pub buffer_frames: Option<u32>,
    /// Whether its single buffer is occupied until the frame in it has left, so that the next frame can be copied in
    /// only then. Otherwise copying and transmission overlap.
    pub single_buffered: bool,
    /// Whether the host's processor waits, doing nothing else, until the frame it has copied has been transmitted.
    #[serde(default)]
    pub busy_waiting: bool,
    /// Whether the interface has its own processor for copying, which leaves the host's free (Zwaenepoel 1985, section
    /// 2.1.3: Excelan, CMC).
    #[serde(default)]
    pub interface_copies: bool,
    /// Time to copy a packet in or out, whatever its size, at the speed that was measured.
    pub copy_per_packet: Duration,
    /// In addition for each byte of the packet, in ns.
    pub copy_ns_per_byte: f64,
    /// Speed of the host's processor relative to the one that the times were measured on; 1 when absent.
    pub cpu_speed: Option<f64>,
    /// The largest rate at which the interface sends, in bit/s counted as the link charges them; the rate of the link
    /// when absent.
    pub pace_bit_s: Option<f64>,
}

impl NetworkInterface {
    /// Speed of the host's processor relative to the one that the costs were measured on.
    #[must_use]
    pub fn speed(&self) -> f64 {
        self.cpu_speed
            .filter(|speed| speed.is_finite() && *speed > 0.0)
            .unwrap_or(1.0)
    }

    /// Speed of the processor that copies: the host's, or the interface's own, on which the costs were measured (1).
    #[must_use]
    pub fn copy_speed(&self) -> f64 {
        if self.interface_copies {
            1.0
        } else {
            self.speed()
        }
    }
}

/// A host's clock. It reads `true + offset + drift x true + steps so far`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockModel {
    /// Offset at the beginning, in ns; negative is behind.
    pub offset_ns: i64,
    /// Drift in parts per million; a clock with negative drift loses time.
    pub drift_ppm: f64,
    /// Its steps: when the clock is set (true time since the beginning) and by how many ns.
    pub steps: Vec<(Duration, i64)>,
}

impl ClockModel {
    /// The clock's reading at a true moment, in ns since the beginning; below 0 where the clock is behind.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "an offset of a few hours at most"
    )]
    pub fn reading_ns(&self, at: Instant) -> i128 {
        let gained = (at.0 as f64 * self.drift_ppm * 1e-6) as i128;
        let stepped: i128 = self
            .steps
            .iter()
            .filter(|(when, _)| when.0 <= at.0)
            .map(|(_, by)| i128::from(*by))
            .sum();
        (i128::from(at.0) + i128::from(self.offset_ns))
            .saturating_add(gained)
            .saturating_add(stepped)
    }

    /// A bound on how far below 0 the clock's offset and backward steps can bring its reading, in ns.
    #[must_use]
    pub fn behind_ns(&self) -> u64 {
        let set_back = self.steps.iter().map(|(_, by)| by.min(&0).unsigned_abs());
        set_back.fold(self.offset_ns.min(0).unsigned_abs(), u64::saturating_add)
    }
}

/// A switch or a router: forwards packets by destination.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkSwitch {
    /// Its name.
    pub name: String,
    /// Bytes of buffer; unlimited when absent. A packet occupies the buffer until its last bit has left.
    pub buffer_bytes: Option<u64>,
    /// Whether each output port has a buffer of that size; otherwise all ports share one.
    pub buffer_per_port: bool,
    /// Bytes of a cell, when the switch cuts frames into cells (53 for ATM, of which 5 are header; AAL5 adds 8 bytes
    /// to a frame).
    pub cell_bytes: Option<u64>,
    /// Whether it assigns rates to the hosts (ATM's available bit rate service with explicit rates).
    #[serde(default)]
    pub abr: bool,
    /// Whether a frame is discarded as a whole when it will not fit, or when one of its cells was dropped.
    pub early_packet_discard: bool,
    /// The queue at each of its output ports, unless the link declares another.
    #[serde(default)]
    pub queue: Option<LinkQueue>,
    /// Set when it is an IMP of the ARPANET; the properties above do not apply to it then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imp: Option<ImpSettings>,
    /// Set when it is a router, which counts hops, has an address and sends ICMP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router: Option<RouterSettings>,
    /// Its own routes, if it is a router.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<StaticRoute>,
}

/// An Interface Message Processor (BBN Report 2499). A property that is absent has its value of January 1973.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImpSettings {
    /// What kind of machine it is.
    pub machine: ImpMachine,
    /// Messages that it can reassemble at once.
    pub reassembly: Option<u32>,
    /// Messages in flight to each other IMP.
    pub window: Option<u32>,
    /// Logical channels of each line: packets that may wait for an acknowledgement.
    pub channels: Option<u16>,
    /// Packets in transit that it can hold.
    #[serde(default)]
    pub buffers: Option<u32>,
    /// Whether routes are found by the rule of September 1973.
    #[serde(default)]
    pub september: bool,
    /// Whether messages are sent before buffers are reserved for them at the destination.
    #[serde(default)]
    pub unreserved: bool,
    /// Whether packets are divided among lines of equal distance to the destination.
    #[serde(default)]
    pub splits: bool,
}

/// The values of January 1973, which hold where nothing else is declared.
impl ImpSettings {
    /// Messages of several packets that an IMP with 12K of memory can reassemble at once (BBN 2499, 2.2.1.4).
    pub const ROOM: u32 = 3;
    /// Messages in flight from one IMP to another (2.3).
    pub const WINDOW: u32 = 4;
    /// Logical channels of a line, each holding one unacknowledged packet (2.2.1.5).
    pub const CHANNELS: u16 = 8;
    /// Logical channels of a line by satellite (2.1.2).
    pub const SATELLITE_CHANNELS: u16 = 32;
    /// Packets in transit that it can hold; with each satellite line it holds as many more as that line has more
    /// channels.
    pub const BUFFERS: u32 = 20;
    /// A packet that is not acknowledged is retransmitted after this time.
    pub const AGAIN_AFTER: Duration = Duration(125_000_000);
    /// Interval between routing messages to its neighbours (2.1.2).
    pub const ROUTING_EVERY: Duration = Duration(640_000_000);
    /// A line with at least this delay is taken for a satellite line.
    pub const SATELLITE_DELAY: Duration = Duration(100_000_000);

    /// Channels of a line with this delay.
    #[must_use]
    pub fn channels(delay: Duration) -> u16 {
        if delay >= Self::SATELLITE_DELAY {
            Self::SATELLITE_CHANNELS
        } else {
            Self::CHANNELS
        }
    }
}

/// The machines that IMPs ran on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImpMachine {
    /// Honeywell 516.
    #[default]
    H516,
    /// Honeywell 316.
    H316,
    /// A Terminal IMP: a 316 that serves terminals too.
    Tip,
    /// A hypothetical machine that needs no processor time.
    Free,
}

impl ImpMachine {
    /// All machines with their names in the language.
    pub const ALL: [(&str, Self); 4] = [
        ("516", Self::H516),
        ("316", Self::H316),
        ("tip", Self::Tip),
        ("free", Self::Free),
    ];
}

/// A link between two nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkLink {
    /// The two nodes that it connects.
    pub ends: (String, String),
    /// Whether it leads from the first node to the second only; otherwise it has the same properties in both
    /// directions.
    #[serde(default)]
    pub one_way: bool,
    /// How fast bits go onto it.
    pub rate: LinkRate,
    /// Propagation delay in one direction; its long-run mean where it changes.
    pub delay: Duration,
    /// How the delay changes in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delays: Option<StepSchedule<Duration>>,
    /// A random time that is added to the delay of each packet.
    #[serde(default)]
    pub jitter: Option<Jitter>,
    /// Which packets are lost on it.
    #[serde(default)]
    pub loss: LossModel,
    /// Probability that a packet arrives twice, 0 to 1.
    #[serde(default)]
    pub duplicate: f64,
    /// Largest packet in bytes of the network layer; [`DEFAULT_MTU`] when absent.
    pub mtu_bytes: Option<u64>,
    /// Which bytes of a packet count against the rate.
    #[serde(default)]
    pub charge: Charge,
    /// The queue at each end; when absent, the switch's queue, otherwise an unlimited one.
    pub queue: Option<LinkQueue>,
    /// A token bucket between the queue and the link, which packets wait for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaper: Option<TokenBucket>,
    /// A token bucket before the queue, which packets do not wait for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policer: Option<Policer>,
    /// The code point of differentiated services that packets get before they join the queue; when absent they keep
    /// theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// Which packets skip the delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipping: Option<DelaySkipping>,
}

impl NetworkLink {
    /// Largest packet in bytes of the network layer.
    #[must_use]
    pub fn mtu(&self) -> u64 {
        self.mtu_bytes.unwrap_or(DEFAULT_MTU)
    }

    /// The smallest propagation delay that occurs.
    #[must_use]
    pub fn least_delay(&self) -> Duration {
        if self.skipping.is_some() {
            return Duration::ZERO;
        }
        let least = self.delays.as_ref().and_then(traffic_control::least_step);
        least.unwrap_or(self.delay)
    }

    /// The long-run mean of what can pass in bit/s, the shaper's rate included; `None` for an unlimited rate.
    #[must_use]
    pub fn mean_bit_s(&self) -> Option<f64> {
        let shaped = self.shaper.map(|shaper| shaper.bit_s);
        self.rate
            .mean_bit_s()
            .into_iter()
            .chain(shaped)
            .reduce(f64::min)
    }
}

/// How fast bits go onto a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkRate {
    /// Transmission takes no time.
    #[default]
    Unlimited,
    /// A constant rate, bit/s.
    Constant(f64),
    /// A rate that changes in time.
    Schedule(RateSchedule),
    /// Transmission opportunities of a Mahimahi trace.
    Trace(DeliveryTrace),
}

/// Bits that may leave at one opportunity of a Mahimahi trace: a packet of 1504 bytes.
const OPPORTUNITY_BITS: f64 = 8.0 * 1504.0;

impl LinkRate {
    /// Whether the rate changes in time.
    #[must_use]
    pub const fn changes(&self) -> bool {
        matches!(self, Self::Schedule(_) | Self::Trace(_))
    }

    /// The mean rate in bit/s from the beginning until `end`; `None` for an unlimited rate.
    #[must_use]
    pub fn mean_until_bit_s(&self, end: Duration) -> Option<f64> {
        match self {
            Self::Schedule(schedule) => Some(schedule.mean_until(end, |rate| *rate)),
            _ => self.mean_bit_s(),
        }
    }

    /// The long-run mean rate in bit/s; `None` for an unlimited rate.
    #[must_use]
    pub fn mean_bit_s(&self) -> Option<f64> {
        match self {
            Self::Unlimited => None,
            Self::Constant(rate) => Some(*rate),
            Self::Schedule(schedule) => Some(schedule.mean(|rate| *rate)),
            Self::Trace(trace) => {
                let period_s = f64::from(trace.opportunities_ms.last().copied().unwrap_or(0)) / 1e3;
                let bits = trace
                    .opportunities_ms
                    .iter()
                    .fold(0.0, |bits, _| bits + OPPORTUNITY_BITS);
                Some(if period_s > 0.0 { bits / period_s } else { 0.0 })
            }
        }
    }
}

/// Moments at which up to 1504 bytes may leave, as Mahimahi writes them: one number of milliseconds on each line. The
/// last number is the period, after which the trace repeats.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeliveryTrace {
    /// The file it was read from.
    pub file: String,
    /// The moments, ascending; not empty, the last above 0.
    pub opportunities_ms: Vec<u32>,
}

/// Delay that differs from packet to packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Jitter {
    /// The distribution of the added delay, in seconds.
    pub distribution: Distribution,
    /// Whether a packet may overtake another; otherwise it waits for the one before.
    pub reorder: bool,
    /// How much of the added delay the one of the packet before decides, 0 to 1: with c, it is c times that and 1 - c times
    /// a new draw, which is then the correlation of neighbours. The mean stays, the variance is (1 - c) / (1 + c) of the
    /// distribution's.
    #[serde(default)]
    pub correlation: f64,
}

/// Which packets are lost on a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossModel {
    /// No packet.
    #[default]
    None,
    /// Each packet is lost with this probability, 0 to 1.
    Independent(f64),
    /// Each bit is wrong with this probability; one wrong bit loses the packet (on a link of cells, the cell).
    BitErrors(f64),
    /// Two states (Gilbert 1960, Elliott 1963), starting in the good one. A packet is lost with the probability of the
    /// current state; afterwards the state may change.
    GilbertElliott {
        /// Probability of a change from good to bad after a packet.
        to_bad: f64,
        /// Probability of a change from bad to good after a packet.
        to_good: f64,
        /// Probability of a loss in the good state.
        loss_good: f64,
        /// Probability of a loss in the bad state.
        loss_bad: f64,
    },
    /// Four states (tc-netem(8), `loss state`), starting in the first; the state changes before each packet.
    FourStates(FourStateLoss),
    /// The packets with these numbers, counted from 1 in each direction, ascending.
    List(Vec<u64>),
    /// Every n-th packet of each direction.
    Every(u64),
    /// A loss that changes in time; no step of it is itself a schedule.
    Schedule(StepSchedule<Self>),
}

/// Which bytes of a packet count against a link's rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Charge {
    /// The bytes of the network-layer packet.
    #[default]
    Packet,
    /// The bytes of an Ethernet frame: 18 bytes more for header and check sequence, at least 64 in all.
    Frame,
    /// The bytes Ethernet occupies on the wire: the frame and 20 bytes of preamble and gap.
    Wire,
}

impl Charge {
    /// Bytes charged for a packet of `packet` bytes.
    #[must_use]
    pub const fn bytes(self, packet: u64) -> u64 {
        let framed = if packet + 18 < 64 { 64 } else { packet + 18 };
        match self {
            Self::Packet => packet,
            Self::Frame => framed,
            Self::Wire => framed + 20,
        }
    }
}

/// The queue in front of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkQueue {
    /// Most bytes in the queue; unlimited when absent. A packet counts until its last bit has left.
    pub limit_bytes: Option<u64>,
    /// Most packets in the queue; unlimited when absent. A packet counts until its last bit has left.
    pub limit_packets: Option<u64>,
    /// Which packet is dropped, and when.
    pub discipline: Discipline,
    /// Whether packets that support ECN are marked where the discipline would drop them early.
    pub ecn: bool,
    /// The classes of the discipline [`Discipline::Classes`], those of strict priority first; the one for all other code
    /// points has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<QueueClass>,
}

/// Which packet of a queue is dropped, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// The arriving packet, when the queue is full.
    #[default]
    DropTail,
    /// The oldest packet, to make room for the arriving one.
    DropHead,
    /// Random early detection (Floyd and Jacobson 1993) in its gentle form.
    Red {
        /// Average queue length below which nothing is dropped, in bytes.
        min_bytes: u64,
        /// Average length in bytes above which the drop probability rises from `most`, to 1 at twice this length.
        max_bytes: u64,
        /// Drop probability at `max_bytes`.
        most: f64,
        /// Weight of the newest queue length in the average.
        weight: f64,
    },
    /// Controlled delay (RFC 8289).
    CoDel {
        /// Acceptable standing queueing delay.
        target: Duration,
        /// Time for which the delay may stay above `target` before packets are dropped.
        interval: Duration,
    },
    /// Proportional integral controller enhanced (RFC 8033).
    Pie {
        /// The queueing delay it aims at.
        target: Duration,
        /// Interval at which the drop probability is adjusted.
        update: Duration,
    },
    /// Flow queueing with CoDel (RFC 8290).
    FqCoDel {
        /// As for `CoDel`.
        target: Duration,
        /// As for `CoDel`.
        interval: Duration,
        /// Number of queues that flows are hashed to.
        flows: u32,
        /// Bytes a queue may send in one turn.
        quantum: u32,
    },
    /// A queue for each class of code points: [`LinkQueue::classes`].
    Classes,
    /// Two queues, for L4S and for everything else, with coupled controllers (RFC 9332).
    DualPi2(DualPi2Settings),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_means_in_the_long_run() {
        let close = |a: f64, b: f64| assert!((a - b).abs() <= 1e-9 * b, "{a} is not {b}");
        assert_eq!(LinkRate::Unlimited.mean_bit_s(), None);
        let steps = alloc::vec![(Duration::ZERO, 1e6), (Duration::from_seconds(1.0), 4e6)];
        let over = |period: Option<f64>| {
            let schedule = RateSchedule {
                steps: steps.clone(),
                period: period.map(Duration::from_seconds),
            };
            LinkRate::Schedule(schedule).mean_bit_s().unwrap()
        };
        // 1 s of 1 Mbit/s and 2 s of 4 Mbit/s: 9 Mbit in 3 s.
        close(over(Some(3.0)), 3e6);
        close(over(Some(0.5)), 1e6);
        close(over(None), 4e6);
        // Two packets of 1504 bytes each 2 ms: 24064 bits in 2 ms.
        let trace = DeliveryTrace {
            file: "t".into(),
            opportunities_ms: alloc::vec![1, 2],
        };
        close(LinkRate::Trace(trace).mean_bit_s().unwrap(), 12.032e6);
    }
}
