//! Predicts the Host-Host protocol (`ncp`) over IMPs: in each round trip of a message as many messages are sent as
//! there are links (connections), up to the rate of the slowest line (BBN Report 2499, 2.1.3).
//!
//! A message takes the path with the fewest lines. Its first packet is stored and forwarded at each IMP, the others
//! follow at the rate of the slowest line; the host gets the message when it is complete; its answer (RFNM) returns on
//! the same path. Queues, retransmissions and changes of route are not included.

use super::situation::IntermediateValues;
use crate::arpanet_messages::{PACKET_BITS, PACKET_DATA_BITS};
use crate::count_to_f64;
use crate::prediction::{FigureUnit, PredictedFigure, PredictedQuantity};
use crate::workload_pattern::WorkloadPattern;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use stackline_core::network::{
    FakeHost, ImpMachine, ImpSettings, LossModel, MOST_IMP_HOPS, Network, NetworkLink,
};
use stackline_core::plan::{Measurement, MeasurementPart, Size, UnitCount};
use stackline_core::procedure::{CountArgument, DelayArgument, SizeArgument};

/// Bits of a packet besides its data (2.1.2).
const OVERHEAD_BITS: f64 = PACKET_BITS - PACKET_DATA_BITS;
/// Bits of a message's leader at a host's interface (BBN 1822).
const LEADER_BITS: f64 = 32.0;
/// Bits of a message's header besides its data (NIC 8246).
const HEADER_BITS: f64 = 40.0;
/// Most bytes of data in a message.
const MESSAGE_BYTES: u64 = 1003;
/// Length of a command on the control link, bytes.
const COMMAND_BYTES: u64 = 10;
/// The default of the option `allocate`, in bytes: eight messages.
const ALLOCATE: u64 = 8 * MESSAGE_BYTES;
/// Cycles of an IMP to receive and examine a packet (2.1.1: 1160 with [`CYCLES_OUT`]).
const CYCLES_IN: f64 = 860.0;
/// Cycles of an IMP to put a packet on a line.
const CYCLES_OUT: f64 = 300.0;
/// Cycles for a packet from a host, and for each word of it (table 3A).
const CYCLES_OF_HOST: (f64, f64) = (200.0, 4.6);
/// Cycles for each word of a message to a host (table 3A).
const CYCLES_TO_HOST: f64 = 29.22;
/// From this allocation on, in bytes, it is renewed before messages wait for it: four messages.
const WHOLE_ALLOCATION: u64 = 4 * MESSAGE_BYTES;
/// Bits of an IMP's word.
const WORD_BITS: f64 = 16.0;
/// Interval in seconds at which routing takes a full packet's time on each line (2.1.2).
const ROUTING_S: f64 = 0.64;
/// Time after which unused space at the destination is given back, s (history: R619).
const KEPT_S: f64 = 0.125;
/// Relative error of the formula for transfers: from queues behind routing messages, and from the choice among several
/// paths.
const WITHIN: f64 = 0.13;
/// Relative error of the formula for calls, which also depend on the processors at both ends.
const CALLS_WITHIN: f64 = 0.18;
/// Messages up to this many bytes are no longer than commands and answers between hosts.
const SHORT: u64 = 64;
/// The assumption of every formula here.
const ALONE: &str = "messages take the path with the fewest lines, and there is no other traffic";

/// The path between two hosts.
struct ImpPath {
    /// Cycles of the first IMP for a word of the sending host, and of the last one for a word of the receiving host.
    word_cycles: (f64, f64),
    /// Rates of the interfaces of the sending and of the receiving host, bit/s; transmission takes no time when
    /// absent.
    interfaces: [Option<f64>; 2],
    lines: Vec<ImpPathLine>,
    /// Length of a cycle of the first IMP and of the last, s.
    cycles_s: (f64, f64),
    /// Messages that the first IMP allows in flight to the last.
    window: u64,
    /// Messages of several packets that the last IMP can reassemble at once.
    room: u64,
    /// Whether an IMP has fewer channels or buffers than the original, which no formula covers.
    is_short: bool,
    /// Whether packets are divided among lines of equal distance.
    divides: bool,
    /// Whether a line loses packets.
    loses: bool,
    /// Whether messages are answered as soon as their host has the first packet (the program of September 1973).
    answers_first: bool,
}

/// A line and the IMPs at its ends.
#[derive(Clone, Copy)]
struct ImpPathLine {
    bit_s: f64,
    delay_s: f64,
    /// Length of a cycle of the sending IMP and of the receiving one, s.
    cycles_s: (f64, f64),
}

impl ImpPathLine {
    /// Seconds until a packet with `bits` bits of data is at the next IMP and has been examined, including the mean
    /// wait for routing messages.
    fn packet_s(&self, bits: f64) -> f64 {
        let routing = PACKET_BITS / self.bit_s;
        // The share of the time that a routing message takes, times half its length.
        let waits = routing * routing / (2.0 * ROUTING_S);
        let processors = CYCLES_OUT * self.cycles_s.0 + CYCLES_IN * self.cycles_s.1;
        waits + (bits + OVERHEAD_BITS) / self.bit_s + self.delay_s + processors
    }

    /// Seconds from one full packet to the next: the slower of the line and the processors.
    fn full_s(&self) -> f64 {
        let routing = PACKET_BITS / self.bit_s / ROUTING_S;
        let line = PACKET_BITS / self.bit_s + CYCLES_OUT * self.cycles_s.0;
        (line / (1.0 - routing).max(0.1))
            .max((CYCLES_IN + CYCLES_OUT) * self.cycles_s.0.max(self.cycles_s.1))
    }
}

/// Length of a cycle, s (2.2.1.1).
const fn cycle_s(machine: ImpMachine) -> f64 {
    match machine {
        ImpMachine::H516 => 1.0e-6,
        ImpMachine::H316 => 1.6e-6,
        ImpMachine::Tip => 2.2e-6,
        ImpMachine::Free => 0.0,
    }
}

/// Whether an IMP has fewer channels or buffers than the original: 8 channels on a line by land, 32 on one by
/// satellite, 20 buffers (2.2.1.5).
fn is_short(imp: &ImpSettings, by_satellite: bool) -> bool {
    let channels = if by_satellite {
        ImpSettings::SATELLITE_CHANNELS
    } else {
        ImpSettings::CHANNELS
    };
    imp.channels.is_some_and(|has| has < channels)
        || imp.buffers.is_some_and(|has| has < ImpSettings::BUFFERS)
}

/// The path with the fewest links: each node after the first, with the link to it.
fn fewest_hops<'n>(
    network: &'n Network,
    from: &'n str,
    to: &'n str,
) -> Option<Vec<(&'n str, &'n NetworkLink)>> {
    let mut before = BTreeMap::from([(from, (from, usize::MAX))]);
    let mut next = VecDeque::from([from]);
    while let Some(at) = next.pop_front().filter(|at| *at != to) {
        for (number, link) in network.links.iter().enumerate() {
            let other = match (link.ends.0 == at, link.ends.1 == at) {
                (true, _) => link.ends.1.as_str(),
                (_, true) => link.ends.0.as_str(),
                _ => continue,
            };
            if !before.contains_key(other) {
                before.insert(other, (at, number));
                next.push_back(other);
            }
        }
    }
    let mut hops = Vec::new();
    let mut at = to;
    while at != from {
        let (earlier, link) = *before.get(at)?;
        hops.push((at, &network.links[link]));
        at = earlier;
    }
    hops.reverse();
    Some(hops)
}

impl ImpPath {
    /// The path with the fewest lines; of several, the one declared first.
    fn between(network: &Network, from: &str, to: &str) -> Option<Self> {
        let hops = fewest_hops(network, from, to)?;
        let imp = |name: &str| {
            network
                .switches
                .iter()
                .find(|switch| switch.name == name)
                .and_then(|switch| switch.imp.as_ref())
        };
        let cycle = |name: &str| cycle_s(imp(name).map(|imp| imp.machine).unwrap_or_default());
        let (first, last) = (hops.first()?, hops.last()?);
        let imps = hops.get(..hops.len() - 1).unwrap_or_default();
        let line = |pair: &[(&str, &NetworkLink)]| ImpPathLine {
            bit_s: pair[1].1.rate.mean_bit_s().unwrap_or(f64::INFINITY),
            delay_s: pair[1].1.delay.seconds(),
            cycles_s: (cycle(pair[0].0), cycle(pair[1].0)),
        };
        let by_satellite = hops
            .iter()
            .any(|(_, link)| link.delay >= ImpSettings::SATELLITE_DELAY);
        let fake = |name: &str| {
            let fake = network
                .hosts
                .iter()
                .find(|host| host.name == name)
                .and_then(|host| host.fake);
            fake.map_or((0, 0), FakeHost::cycles)
        };
        Some(Self {
            word_cycles: (
                CYCLES_OF_HOST.1 + count_to_f64(fake(from).0),
                CYCLES_TO_HOST + count_to_f64(fake(to).1),
            ),
            interfaces: [first.1.rate.mean_bit_s(), last.1.rate.mean_bit_s()],
            lines: imps.windows(2).map(line).collect(),
            cycles_s: (
                cycle(first.0),
                imps.last().map_or(0.0, |(name, _)| cycle(name)),
            ),
            window: imp(first.0)
                .and_then(|imp| imp.window)
                .map_or(u64::from(ImpSettings::WINDOW), u64::from),
            room: imps
                .last()
                .and_then(|(name, _)| imp(name)?.reassembly)
                .map_or(u64::from(ImpSettings::ROOM), u64::from),
            is_short: imps
                .iter()
                .any(|(name, _)| imp(name).is_some_and(|imp| is_short(imp, by_satellite))),
            divides: imps
                .iter()
                .any(|(name, _)| imp(name).is_some_and(|imp| imp.splits)),
            loses: hops.iter().any(|(_, link)| link.loss != LossModel::None),
            answers_first: imps
                .last()
                .and_then(|(name, _)| imp(name))
                .is_some_and(|imp| imp.september),
        })
    }

    /// Seconds for `bits` bits at an interface: 0 the sender's, 1 the receiver's.
    fn interface_s(&self, end: usize, bits: f64) -> f64 {
        self.interfaces[end].map_or(0.0, |rate| bits / rate)
    }

    /// Seconds for a packet with `bits` bits of data over all lines.
    fn packet_s(&self, bits: f64) -> f64 {
        self.lines.iter().map(|line| line.packet_s(bits)).sum()
    }

    /// Seconds until the first IMP has a packet with `bits` bits of data from its host.
    fn taken_s(&self, bits: f64) -> f64 {
        let cycles = CYCLES_OF_HOST.0 + self.word_cycles.0 * bits / WORD_BITS;
        self.interface_s(0, bits) + cycles * self.cycles_s.0
    }

    /// Seconds to give a complete message of `bits` bits to its host.
    fn given_s(&self, bits: f64) -> f64 {
        self.interface_s(1, LEADER_BITS + bits)
            + self.word_cycles.1 * self.cycles_s.1 * bits / WORD_BITS
    }

    /// Seconds from one full packet to the next at the slowest part of the path: a line, or the first interface.
    fn slowest_s(&self) -> f64 {
        self.lines
            .iter()
            .map(ImpPathLine::full_s)
            .fold(self.taken_s(PACKET_DATA_BITS), f64::max)
    }

    /// Seconds from a message at the sending host's interface until the receiving host has all of it.
    fn message_s(&self, bytes: u64) -> f64 {
        let bits = HEADER_BITS + 8.0 * count_to_f64(bytes);
        let first = bits.min(PACKET_DATA_BITS);
        let packets = libm::ceil(bits / PACKET_DATA_BITS).max(1.0);
        let taken = self.interface_s(0, LEADER_BITS) + self.taken_s(first);
        taken + self.packet_s(first) + (packets - 1.0) * self.slowest_s() + self.given_s(bits)
    }

    /// Seconds that a message waits behind the RFNM of the message that it answers, which leaves just before it on the
    /// same line.
    fn behind_rfnm_s(&self, bytes: u64) -> f64 {
        let first = (HEADER_BITS + 8.0 * count_to_f64(bytes)).min(PACKET_DATA_BITS);
        let taken = self.interface_s(0, LEADER_BITS) + self.taken_s(first);
        let line = |line: &ImpPathLine| {
            (OVERHEAD_BITS / line.bit_s + CYCLES_OUT * line.cycles_s.0 - taken).max(0.0)
        };
        self.lines.first().map_or(0.0, line)
    }

    /// Seconds to request space for a message.
    fn asks_s(&self, back: &Self) -> f64 {
        self.packet_s(0.0) + back.packet_s(0.0)
    }

    /// Whether packets are retransmitted before their acknowledgement can arrive: it waits for half a packet, and is
    /// carried in another (2.1.2).
    fn repeats(&self) -> bool {
        let acknowledged_s =
            |line: &ImpPathLine| 1.5 * PACKET_BITS / line.bit_s + 2.0 * line.delay_s;
        self.lines.iter().any(|line| {
            line.delay_s < ImpSettings::SATELLITE_DELAY.seconds()
                && acknowledged_s(line) > ImpSettings::AGAIN_AFTER.seconds()
        })
    }

    /// Seconds from a message to its RFNM.
    fn round_trip_s(&self, bytes: u64, back: &Self) -> f64 {
        let bits = HEADER_BITS + 8.0 * count_to_f64(bytes);
        let rest = if self.answers_first && bits > PACKET_DATA_BITS {
            self.interface_s(1, bits - PACKET_DATA_BITS)
        } else {
            0.0
        };
        self.message_s(bytes) - rest + back.packet_s(0.0)
    }

    /// The data rate of full messages that the slowest part of the path carries, bit/s.
    fn carries_bit_s(&self) -> f64 {
        let bits = HEADER_BITS + 8.0 * count_to_f64(MESSAGE_BYTES);
        // A full message has eight packets.
        let message_s = 8.0 * self.slowest_s();
        8.0 * count_to_f64(MESSAGE_BYTES)
            / message_s
                .max(self.given_s(bits))
                .max(self.last_processor_s(bits))
    }

    /// Seconds that the last IMP's processor works for a message: it receives the packets and gives the words to the
    /// host.
    fn last_processor_s(&self, bits: f64) -> f64 {
        let packets = libm::ceil(bits / PACKET_DATA_BITS).max(1.0);
        self.cycles_s.1 * (packets * CYCLES_IN + self.word_cycles.1 * bits / WORD_BITS)
    }

    /// Whether a processor on the path is no faster than the line that brings it packets. It then refuses packets,
    /// which are retransmitted after 125 ms; no formula covers this.
    fn is_processor_full(&self) -> bool {
        let pairs = self
            .lines
            .windows(2)
            .map(|pair| (&pair[0], pair[1].cycles_s.0));
        let mut passes =
            pairs.map(|(line, cycle_s)| (line.bit_s, (CYCLES_IN + CYCLES_OUT) * cycle_s));
        passes.any(|(bit_s, works_s)| works_s > 0.8 * PACKET_BITS / bit_s)
    }

    /// The reason why the formula does not cover this path, if it does not.
    fn uncovered(&self) -> Option<String> {
        let reasons = [
            (
                self.is_short,
                "an IMP has fewer channels or buffers than the original",
            ),
            (
                self.divides,
                "packets are divided among lines (`splitting on`)",
            ),
            (
                self.is_processor_full(),
                "an IMP's processor is no faster than a line, so it refuses packets, which are retransmitted after 125 ms",
            ),
            (self.loses, "lines lose packets, which are retransmitted"),
        ];
        let lines = self.lines.len();
        let far = || {
            (lines >= MOST_IMP_HOPS).then(|| {
                format!("the host is {lines} hops away, but IMPs {MOST_IMP_HOPS} or more hops away are unreachable")
            })
        };
        let found = reasons.into_iter().find(|(applies, _)| *applies);
        found.map(|(_, why)| why.to_string()).or_else(far)
    }
}

/// Predicts a part over `ncp`.
pub(super) fn predict(
    network: &Network,
    measurement: &Measurement,
    part: &MeasurementPart,
    shape: &WorkloadPattern,
) -> Result<PredictedFigure, String> {
    let (Some(from), Some(to)) = (&part.from, &part.to) else {
        return Err("both ends must be hosts of the network: `from HOST to HOST`".to_string());
    };
    let path_between = |a: &str, b: &str| {
        ImpPath::between(network, a, b)
            .ok_or_else(|| format!("{} has no path from {a} to {b}", network.name))
    };
    if measurement.parts.len() > 1 || part.replicas > 1 {
        return Err(
            "no closed-form formula covers several parts or pairs on one network of IMPs"
                .to_string(),
        );
    }
    let paths = (path_between(from, to)?, path_between(to, from)?);
    if paths.0.repeats() || paths.1.repeats() {
        return Err(
            "a line is so slow that packets are retransmitted (after 125 ms) before they can be acknowledged".to_string()
        );
    }
    if let Some(why) = paths.0.uncovered().or_else(|| paths.1.uncovered()) {
        return Err(why);
    }
    // Whether these delays do not occur in the part.
    let none = |waits: &[DelayArgument]| {
        let is_none = |wait: &DelayArgument| match wait {
            DelayArgument::Drawn(_) => false,
            DelayArgument::Timing(index) => part.data.timings.get(*index).is_none(),
        };
        waits.iter().all(is_none)
    };
    match shape {
        WorkloadPattern::Bulk {
            get,
            count,
            waits,
            connects: false,
            ..
        } if none(waits) => {
            let (there, back) = if *get {
                (&paths.1, &paths.0)
            } else {
                (&paths.0, &paths.1)
            };
            bulk(part, there, back, *count)
        }
        WorkloadPattern::Calls {
            calls: of,
            arrival,
            service,
            fresh: false,
        } if none(service)
            && arrival
                .as_ref()
                .is_none_or(|one| none(core::slice::from_ref(one)))
            && of.len() == 1 =>
        {
            calls(part, &paths.0, &paths.1, of[0])
        }
        _ => Err(
            "over IMPs, the formulas cover only bulk transfers and sequential calls".to_string(),
        ),
    }
}

fn size(part: &MeasurementPart, argument: SizeArgument) -> Result<u64, String> {
    let size = match argument {
        SizeArgument::Bytes(bytes) => return Ok(bytes),
        SizeArgument::Unit => &part.data.unit,
        SizeArgument::Reply => &part.data.reply,
    };
    match size {
        Size::Bytes(bytes) => Ok(*bytes),
        Size::Drawn(_) => Err("no closed-form formula covers random sizes over IMPs".to_string()),
    }
}

fn links(part: &MeasurementPart) -> u64 {
    part.stack.number("links").unwrap_or(1)
}

/// Predicts a bulk transfer: the smallest of the limits set by messages in flight, allocation and the slowest line.
fn bulk(
    part: &MeasurementPart,
    there: &ImpPath,
    back: &ImpPath,
    count: CountArgument,
) -> Result<PredictedFigure, String> {
    let allocate = allocation(part)?;
    let message = MESSAGE_BYTES.min(allocate);
    let (links, trip) = (links(part), there.round_trip_s(message, back));
    let message_bits = 8.0 * count_to_f64(message);
    let one_packet = HEADER_BITS + message_bits <= PACKET_DATA_BITS;
    let under_way = links
        .min(there.window)
        .min(if one_packet { u64::MAX } else { there.room });
    // The allocation is renewed by a message of its own once half of it is read, while the RFNM is in flight.
    let allocated_s = there.message_s(message) + back.message_s(COMMAND_BYTES);
    let limits = [
        (
            "messages in flight",
            count_to_f64(under_way) * message_bits / trip,
        ),
        ("allocation", 8.0 * count_to_f64(allocate) / allocated_s),
        ("rate", there.carries_bit_s()),
    ];
    let (limit, steady) =
        limits.into_iter().fold(
            limits[0],
            |least, one| if one.1 < least.1 { one } else { least },
        );
    let mut values = IntermediateValues::new();
    values.add(
        "round trip of a full message",
        trip,
        FigureUnit::Seconds,
        "2.1.3, with interfaces and processors",
    );
    values.add(
        "maximum messages in flight",
        count_to_f64(under_way),
        FigureUnit::Count,
        "links, limited by the IMPs' window (2.3) and the space at the destination",
    );
    values.add(
        "messages that would fill the path",
        trip * there.carries_bit_s() / message_bits,
        FigureUnit::Count,
        "F of 2.1.3",
    );
    for (name, rate) in limits {
        values.add(name, rate, FigureUnit::BitPerSecond, "2.1.2, 2.1.3");
    }
    // The time around the transfer: a byte that starts it, the last message in flight, and a byte that confirms it.
    let around = there.message_s(1) + back.message_s(1) + trip - message_bits / steady;
    let moved = bytes_moved(part, count)?.map(count_to_f64);
    let moved = moved.map(|bytes| (bytes, around.max(0.0) + 8.0 * bytes / steady));
    let value = moved.map_or(steady, |(bytes, elapsed)| 8.0 * bytes / elapsed);
    Ok(PredictedFigure {
        quantity: PredictedQuantity::Throughput,
        value,
        interval: within(value, WITHIN),
        limit,
        values: values.0,
        assumptions: vec![
            ALONE.to_string(),
            "space at the destination is granted with the answer to the previous message"
                .to_string(),
        ],
        moved,
    })
}

/// Bytes that a host lets another send before it allocates more. An error where the send buffer is smaller than the
/// messages in flight.
fn allocation(part: &MeasurementPart) -> Result<u64, String> {
    let held = part.stack.number("send_buffer");
    if held.is_some_and(|held| held < links(part).saturating_mul(MESSAGE_BYTES)) {
        return Err("a send buffer is smaller than the messages that may be in flight, and no closed-form formula describes how it is filled".to_string());
    }
    let allocate = part.stack.number("allocate").unwrap_or(ALLOCATE);
    if allocate > MESSAGE_BYTES && allocate < WHOLE_ALLOCATION {
        return Err(format!(
            "an allocation of {allocate} B is returned in parts while messages wait for it"
        ));
    }
    Ok(allocate)
}

/// Bytes of a transfer; `None` when it has no end.
fn bytes_moved(part: &MeasurementPart, count: CountArgument) -> Result<Option<u64>, String> {
    let unit = size(part, SizeArgument::Unit)?;
    Ok(match (count, part.data.count) {
        (CountArgument::Times(times), _) | (CountArgument::Count, UnitCount::Units(times)) => {
            Some(times * unit)
        }
        (CountArgument::Count, UnitCount::Amount(bytes)) => Some(bytes),
        (CountArgument::Count, UnitCount::Unlimited | UnitCount::WholeFile) => None,
    })
}

fn within(value: f64, share: f64) -> [f64; 2] {
    [value * (1.0 - share), value * (1.0 + share)]
}

/// Predicts sequential calls.
fn calls(
    part: &MeasurementPart,
    there: &ImpPath,
    back: &ImpPath,
    sizes: (SizeArgument, SizeArgument),
) -> Result<PredictedFigure, String> {
    let (request, response) = (size(part, sizes.0)?, size(part, sizes.1)?);
    if request.max(response) > MESSAGE_BYTES {
        return Err(format!(
            "no closed-form formula covers calls that need several messages of {MESSAGE_BYTES} B over IMPs"
        ));
    }
    if request.max(response) <= SHORT {
        return Err("answers as short as commands may coincide with the commands of earlier messages, and no closed-form formula says how often".to_string());
    }
    let asks_s = asking_s(there, back, request, response);
    let message_s = |path: &ImpPath, bytes: u64| path.behind_rfnm_s(bytes) + path.message_s(bytes);
    let value = asks_s + message_s(there, request) + message_s(back, response);
    let delay_s: f64 = [there, back]
        .iter()
        .flat_map(|path| &path.lines)
        .map(|line| line.delay_s)
        .sum();
    let mut values = IntermediateValues::new();
    values.add(
        "propagation, both directions",
        delay_s,
        FigureUnit::Seconds,
        "5.4 us per mile",
    );
    values.add(
        "lines in each direction",
        count_to_f64(there.lines.len() as u64),
        FigureUnit::Count,
        "on the shortest path",
    );
    values.add(
        "requesting space",
        Some(asks_s).filter(|time| *time > 0.0),
        FigureUnit::Seconds,
        "messages of several packets (2.3)",
    );
    values.add(
        "response time",
        value,
        FigureUnit::Seconds,
        "store and forward, interfaces and processors (2.1.4)",
    );
    let limit = if delay_s > value / 2.0 {
        "propagation"
    } else {
        "round trips"
    };
    let moved = Some((count_to_f64(request.saturating_add(response)), value));
    Ok(PredictedFigure {
        quantity: PredictedQuantity::Response,
        value,
        interval: within(value, CALLS_WITHIN),
        limit,
        values: values.0,
        assumptions: vec![ALONE.to_string()],
        moved,
    })
}

/// Seconds that a call spends on requesting space for its messages of several packets. Space granted with the last
/// answer is given back after [`KEPT_S`]. The first such message always requests space, and requesting may take so
/// long that the next one has to request it again.
fn asking_s(there: &ImpPath, back: &ImpPath, request: u64, response: u64) -> f64 {
    let is_long = |bytes: u64| HEADER_BITS + 8.0 * count_to_f64(bytes) > PACKET_DATA_BITS;
    let asks = [(there, back, request), (back, there, response)].map(|(path, other, bytes)| {
        if is_long(bytes) {
            path.asks_s(other)
        } else {
            0.0
        }
    });
    // The grant for one message comes with its answer; the host's next message follows it by this time.
    let later = [
        back.message_s(response) - back.packet_s(0.0) + asks[1],
        there.message_s(request) - there.packet_s(0.0) + asks[0],
    ];
    asks.iter()
        .zip(later)
        .filter(|(_, later)| *later > KEPT_S)
        .map(|(asks, _)| asks)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(hops: usize, bit_s: f64) -> ImpPath {
        let line = ImpPathLine {
            bit_s,
            delay_s: 0.0,
            cycles_s: (0.0, 0.0),
        };
        ImpPath {
            word_cycles: (CYCLES_OF_HOST.1, CYCLES_TO_HOST),
            interfaces: [None; 2],
            lines: vec![line; hops],
            cycles_s: (0.0, 0.0),
            window: u64::from(ImpSettings::WINDOW),
            room: u64::from(ImpSettings::ROOM),
            is_short: false,
            divides: false,
            loses: false,
            answers_first: false,
        }
    }

    #[test]
    fn without_interfaces_and_processors_it_is_the_form_of_table_1() {
        // F messages for a full path: the round trip over the time of a message on a line. RFNMs and routing cost a little.
        for (hops, needed) in [(1, 1.0), (8, 1.875)] {
            let path = path(hops, 50_000.0);
            let trip = path.round_trip_s(MESSAGE_BYTES, &path);
            let in_flight = trip / (8.0 * PACKET_BITS / 50_000.0);
            assert!(
                (needed..1.12 * needed).contains(&in_flight),
                "{hops}: {in_flight}"
            );
        }
    }

    #[test]
    fn a_full_line_carries_what_is_useful_of_it() {
        // 40 kbit/s of 50 (2.1.2).
        let carries = path(3, 50_000.0).carries_bit_s();
        assert!((40_000.0..42_000.0).contains(&carries), "{carries}");
    }
}
