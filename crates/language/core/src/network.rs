//! A declared network as plain data: hosts, switches, links and their properties.
//!
//! `spec` reads and checks it; `net` makes the machine of it that the simulated and the emulated world drive; `model`
//! computes with it. Every value here is already sensible: rates above zero, ends that exist, one connected whole.

use crate::distribution::Distribution;
use crate::plan::ProcessorShare;
use crate::time::{Duration, Instant};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

mod step_schedule;

pub use step_schedule::{RateSchedule, StepSchedule};

/// Largest packet of a link that says nothing else, in bytes (Ethernet's).
pub const DEFAULT_MTU: u64 = 1500;
/// Links that a packet may cross, as its time to live has it in Linux (RFC 1700); more is a loop.
pub const MOST_HOPS: u8 = 64;
/// An IMP so many lines away cannot be reached: routing takes it for a loop (the program of September 1973).
pub const MOST_IMP_HOPS: usize = 22;
/// IMPs that the formats of 1973 had numbers for.
pub const MOST_IMPS: usize = 64;

/// One `network NAME { ... }`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// Its name, used by `across`.
    pub name: String,
    /// Its hosts.
    pub hosts: Vec<NetworkHost>,
    /// Its switches and routers.
    pub switches: Vec<NetworkSwitch>,
    /// Its links.
    pub links: Vec<NetworkLink>,
}

impl Network {
    /// Whether any queue marks packets instead of dropping them: then the TCP of all hosts asks for marks.
    #[must_use]
    pub fn marks(&self) -> bool {
        let of_links = self.links.iter().map(|link| &link.queue);
        let of_switches = self.switches.iter().map(|switch| &switch.queue);
        of_links.chain(of_switches).flatten().any(|queue| queue.ecn)
    }

    /// Whether it is a network of IMPs.
    #[must_use]
    pub fn has_imps(&self) -> bool {
        self.switches.iter().any(|switch| switch.imp.is_some())
    }

    /// The host of that name.
    #[must_use]
    pub fn host(&self, name: &str) -> Option<&NetworkHost> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// The name of a port: `khons>edge` is the direction of their link that leads from the one to the other. Links have two
    /// ports each, in their order.
    #[must_use]
    pub fn port_name(&self, port: u32) -> Option<String> {
        let (first, second) = &self.links.get(port as usize / 2)?.ends;
        Some(if port.is_multiple_of(2) {
            format!("{first}>{second}")
        } else {
            format!("{second}>{first}")
        })
    }
}

/// A host of a network: a name, the interface by which it meets its links, its clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkHost {
    /// Its name.
    pub name: String,
    /// What lies between the host's memory and its links.
    #[serde(default)]
    pub interface: NetworkInterface,
    /// How its clock departs from true time.
    #[serde(default)]
    pub clock: ClockModel,
    /// When it is down, at an interface to an IMP, which then says so to who sends to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<Outage>,
    /// How much of a processor its programs get where it is emulated; all where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<ProcessorShare>,
    /// Whether it is a program of its IMP, and how that works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fake: Option<FakeHost>,
    /// What its processor spends on programs where it is simulated.
    #[serde(default, skip_serializing_if = "ProgramCosts::is_nothing")]
    pub work: ProgramCosts,
}

/// What a simulated processor spends on programs, at the speed for which it was measured (Lantz, Nowicki and Theimer 1985, sections 4 and
/// 6): what they compute, and what handing data to a transport takes. Copying into the interface goes before all of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramCosts {
    /// For each operation of a program: a data unit that it makes or takes, a call, an answer.
    pub per_operation: Duration,
    /// Further for each byte of it, ns.
    pub ns_per_byte: f64,
    /// For each message between a program and its transport: system calls, switches between processes, agents on the way.
    pub per_message: Duration,
    /// When the processor goes from one program to another.
    pub per_switch: Duration,
    /// Programs look so often for what has come; at once where absent.
    pub polls: Option<Duration>,
    /// What goes first where both want the processor; whoever came first where absent.
    pub first: Option<WorkKind>,
}

impl ProgramCosts {
    /// Whether programs take no time.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Time for an operation on so many bytes, ns, at the measured speed.
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
    /// What it computes.
    Operations,
    /// What it takes to hand data to a transport and to take it from there.
    Messages,
}

impl WorkKind {
    /// Both, with their names in the language.
    pub const ALL: [(&str, Self); 2] = [
        ("operations", Self::Operations),
        ("messages", Self::Messages),
    ];
}

/// A fake host: a program of an IMP that generates messages and discards them (BBN 2499, 2.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FakeHost {
    /// A word at a time: each costs the processor time.
    Word,
    /// A packet at a time, which costs next to nothing.
    Packet,
}

impl FakeHost {
    /// All of them, with their names in the language.
    pub const ALL: [(&str, Self); 2] = [("word", Self::Word), ("packet", Self::Packet)];

    /// Cycles of the IMP for a word that it generates, and for one that it discards (2.2.1); a packet at a time costs next to nothing a
    /// word (2.2.1.6).
    #[must_use]
    pub const fn cycles(self) -> (u64, u64) {
        match self {
            Self::Word => (25, 20),
            Self::Packet => (1, 1),
        }
    }
}

/// A time in which something is down, from the beginning of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// Since then.
    pub from: Duration,
    /// Until then; to the end where absent.
    pub to: Option<Duration>,
}

/// A network interface, and the copying between it and memory (Zwaenepoel 1985, section 2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkInterface {
    /// Frames it can hold in each direction; unlimited when absent.
    pub buffer_frames: Option<u32>,
    /// Whether the next frame can be copied in while the one before is on the wire (else it waits until that has left).
    pub single_buffered: bool,
    /// Whether the host's processor does nothing else while what it has copied last is on the wire.
    #[serde(default)]
    pub busy_waiting: bool,
    /// Whether a processor of its own copies, and the host's is free meanwhile (Zwaenepoel 1985, section 2.1.3: Excelan, CMC).
    #[serde(default)]
    pub interface_copies: bool,
    /// Time the host's processor takes to copy a packet in or out, whatever its size.
    pub copy_per_packet: Duration,
    /// Further time for each byte of it, in ns.
    pub copy_ns_per_byte: f64,
    /// Speed of the host's processor against the one those times were measured on; 1 when absent.
    pub cpu_speed: Option<f64>,
    /// It sends no faster than this, in bit/s of what the link charges; as fast as the link when absent.
    pub pace_bit_s: Option<f64>,
}

impl NetworkInterface {
    /// How many times as fast its host's processor is as the one that costs were measured on.
    #[must_use]
    pub fn speed(&self) -> f64 {
        self.cpu_speed
            .filter(|speed| speed.is_finite() && *speed > 0.0)
            .unwrap_or(1.0)
    }

    /// The same of what copies: the host's processor, or one of the interface, which is the one that costs were measured on.
    #[must_use]
    pub fn copy_speed(&self) -> f64 {
        if self.interface_copies {
            1.0
        } else {
            self.speed()
        }
    }
}

/// A host's clock: reads `true + offset + drift x true + steps so far`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockModel {
    /// At the beginning, in ns; negative is behind.
    pub offset_ns: i64,
    /// Parts per million it gains; negative loses.
    pub drift_ppm: f64,
    /// When it is set (true time since the beginning) and by how many ns.
    pub steps: Vec<(Duration, i64)>,
}

impl ClockModel {
    /// What it reads at a true moment, in ns since the beginning as a right clock would count them; below 0 where it is
    /// behind.
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

    /// How far below 0 it may read, in ns.
    #[must_use]
    pub fn behind_ns(&self) -> u64 {
        let set_back = self.steps.iter().map(|(_, by)| by.min(&0).unsigned_abs());
        set_back.fold(self.offset_ns.min(0).unsigned_abs(), u64::saturating_add)
    }
}

/// A switch or a router: forwards by destination.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkSwitch {
    /// Its name.
    pub name: String,
    /// Bytes of buffer; unlimited when absent. What is in a buffer counts until its last bit has left.
    pub buffer_bytes: Option<u64>,
    /// Whether that is per output port (else one pool for all).
    pub buffer_per_port: bool,
    /// Bytes of a cell when frames are cut into cells (53 for ATM, 5 of them header; AAL5 adds 8 bytes a frame).
    pub cell_bytes: Option<u64>,
    /// Whether it tells hosts how fast they may send (ATM's available bit rate with explicit rates).
    #[serde(default)]
    pub abr: bool,
    /// Whether a frame that will not fit, or one of whose cells was dropped, is refused as a whole.
    pub early_packet_discard: bool,
    /// The queue at each of its output ports, unless the link says another.
    #[serde(default)]
    pub queue: Option<LinkQueue>,
    /// It is an IMP of the ARPANET, and nothing of the above is said of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imp: Option<ImpSettings>,
}

/// An Interface Message Processor (BBN Report 2499); what is absent is as it was in January 1973.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImpSettings {
    /// What kind of machine it is.
    pub machine: ImpMachine,
    /// Messages that it has room to put together.
    pub reassembly: Option<u32>,
    /// Messages under way to each other IMP.
    pub window: Option<u32>,
    /// Packets that each line has or waits for.
    pub channels: Option<u16>,
    /// Packets on their way through it, at most.
    #[serde(default)]
    pub buffers: Option<u32>,
    /// Whether ways are found by the rule of September 1973.
    #[serde(default)]
    pub september: bool,
    /// Whether messages are sent before there is room for them.
    #[serde(default)]
    pub unreserved: bool,
    /// Whether packets are divided among lines that lead as near.
    #[serde(default)]
    pub splits: bool,
}

/// What holds of an IMP and its lines where nothing else is said, in January 1973.
impl ImpSettings {
    /// Messages of several packets that it has room to put together, with 12K of memory (BBN 2499, 2.2.1.4).
    pub const ROOM: u32 = 3;
    /// Messages under way from it to another (2.3).
    pub const WINDOW: u32 = 4;
    /// Packets that a line has or waits for (2.2.1.5), and one by satellite (2.1.2).
    pub const CHANNELS: u16 = 8;
    /// See `CHANNELS`.
    pub const SATELLITE_CHANNELS: u16 = 32;
    /// Packets on their way through it; as many more for each satellite's line as that has more channels.
    pub const BUFFERS: u32 = 20;
    /// A packet without acknowledgement goes again after this.
    pub const AGAIN_AFTER: Duration = Duration(125_000_000);
    /// It tells its neighbours its routing so often (2.1.2).
    pub const ROUTING_EVERY: Duration = Duration(640_000_000);
    /// A line with so long a delay goes by satellite.
    pub const SATELLITE_DELAY: Duration = Duration(100_000_000);

    /// Channels of a line with that delay.
    #[must_use]
    pub fn channels(delay: Duration) -> u16 {
        if delay >= Self::SATELLITE_DELAY {
            Self::SATELLITE_CHANNELS
        } else {
            Self::CHANNELS
        }
    }
}

/// Kinds of machines that IMPs were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImpMachine {
    /// Honeywell 516.
    #[default]
    H516,
    /// Honeywell 316.
    H316,
    /// A 316 that serves terminals too.
    Tip,
    /// One that takes no time.
    Free,
}

impl ImpMachine {
    /// All of them, with their names in the language.
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
    /// The nodes it joins.
    pub ends: (String, String),
    /// Whether it leads from the first to the second only; else it is the same both ways.
    #[serde(default)]
    pub one_way: bool,
    /// How fast bits go onto it.
    pub rate: LinkRate,
    /// Propagation delay one way; its mean in the long run where it changes.
    pub delay: Duration,
    /// How the delay changes in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delays: Option<StepSchedule<Duration>>,
    /// What is added to the delay of each packet.
    #[serde(default)]
    pub jitter: Option<Jitter>,
    /// What gets lost on it.
    #[serde(default)]
    pub loss: LossModel,
    /// Probability that a packet arrives twice, 0 to 1.
    #[serde(default)]
    pub duplicate: f64,
    /// Largest packet in bytes (network layer).
    pub mtu_bytes: Option<u64>,
    /// Whose bytes the rate is spent on.
    #[serde(default)]
    pub charge: Charge,
    /// The queue at each end; the switch's own, else an unlimited one, when absent.
    pub queue: Option<LinkQueue>,
}

impl NetworkLink {
    /// Largest packet in bytes.
    #[must_use]
    pub fn mtu(&self) -> u64 {
        self.mtu_bytes.unwrap_or(DEFAULT_MTU)
    }

    /// The least that its propagation delay comes to.
    #[must_use]
    pub fn least_delay(&self) -> Duration {
        let steps = self.delays.iter().flat_map(|delays| &delays.steps);
        steps.map(|(_, delay)| *delay).min().unwrap_or(self.delay)
    }
}

/// How fast bits go onto a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkRate {
    /// No time is spent on it.
    #[default]
    Unlimited,
    /// bit/s.
    Constant(f64),
    /// Changes in time.
    Schedule(RateSchedule),
    /// A Mahimahi trace.
    Trace(DeliveryTrace),
}

/// Bits that may leave at one opportunity of a Mahimahi trace.
const OPPORTUNITY_BITS: f64 = 8.0 * 1504.0;

impl LinkRate {
    /// Whether it is not the same all the time.
    #[must_use]
    pub const fn changes(&self) -> bool {
        matches!(self, Self::Schedule(_) | Self::Trace(_))
    }

    /// The mean in bit/s from the beginning to a time; `None` when no time is spent on it.
    #[must_use]
    pub fn mean_until_bit_s(&self, end: Duration) -> Option<f64> {
        match self {
            Self::Schedule(schedule) => Some(schedule.mean_until(end, |rate| *rate)),
            _ => self.mean_bit_s(),
        }
    }

    /// The mean in bit/s in the long run; `None` when no time is spent on it.
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

/// Moments at which up to 1504 bytes may leave, as Mahimahi writes them: one number of milliseconds a line, repeated for
/// ever with the last number as period.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeliveryTrace {
    /// Where it was read.
    pub file: String,
    /// The moments, ascending; not empty, the last above 0.
    pub opportunities_ms: Vec<u32>,
}

/// Delay that differs from packet to packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Jitter {
    /// What is added, in seconds.
    pub distribution: Distribution,
    /// Whether a packet may overtake another (else it waits for the one before).
    pub reorder: bool,
}

/// What gets lost on a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossModel {
    /// Nothing.
    #[default]
    None,
    /// Each packet with this probability, 0 to 1.
    Independent(f64),
    /// Each bit is wrong with this probability; one wrong bit loses the packet (or the cell).
    BitErrors(f64),
    /// Two states (Gilbert 1960, Elliott 1963), begun in the good one; a packet is lost by its state's probability,
    /// then the state may change.
    GilbertElliott {
        /// Probability to go from good to bad.
        to_bad: f64,
        /// Probability to go from bad to good.
        to_good: f64,
        /// Loss in the good state.
        loss_good: f64,
        /// Loss in the bad state.
        loss_bad: f64,
    },
    /// Packets of these numbers in each direction, from 1, ascending.
    List(Vec<u64>),
    /// Every n-th packet in each direction.
    Every(u64),
    /// Changes in time; none of the steps is a schedule itself.
    Schedule(StepSchedule<Self>),
}

/// Whose bytes a link's rate is spent on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Charge {
    /// The network-layer packet alone.
    #[default]
    Packet,
    /// An Ethernet frame: 18 bytes of header and check sequence more, at least 64.
    Frame,
    /// What Ethernet takes on the wire: the frame and 20 bytes of preamble and gap.
    Wire,
}

impl Charge {
    /// Bytes charged for a packet of so many bytes.
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

/// The queue before a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkQueue {
    /// Most bytes in it; unlimited when absent. A packet counts until its last bit has left.
    pub limit_bytes: Option<u64>,
    /// Most packets in it, likewise.
    pub limit_packets: Option<u64>,
    /// Who is dropped, and when.
    pub discipline: Discipline,
    /// Whether packets that allow it are marked where the discipline would drop them early.
    pub ecn: bool,
}

/// Who is dropped from a queue, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// The packet that finds it full.
    #[default]
    DropTail,
    /// The oldest, to make room.
    DropHead,
    /// Random early detection (Floyd and Jacobson 1993), gentle.
    Red {
        /// Average length below which nothing is dropped, in bytes.
        min_bytes: u64,
        /// Average length above which the probability rises from `most` to 1 at twice this, in bytes.
        max_bytes: u64,
        /// Probability at `max_bytes`.
        most: f64,
        /// Weight of the newest length in the average.
        weight: f64,
    },
    /// RFC 8289.
    CoDel {
        /// Acceptable standing delay.
        target: Duration,
        /// Within which it has to fall below that.
        interval: Duration,
    },
    /// RFC 8033.
    Pie {
        /// Delay it keeps to.
        target: Duration,
        /// How often the probability is adjusted.
        update: Duration,
    },
    /// RFC 8290.
    FqCoDel {
        /// As for `CoDel`.
        target: Duration,
        /// As for `CoDel`.
        interval: Duration,
        /// Queues that flows are hashed to.
        flows: u32,
        /// Bytes a queue may send in its turn.
        quantum: u32,
    },
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
