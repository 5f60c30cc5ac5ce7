//! The Host-Host protocol over IMPs: as many messages as there are links in each round trip of a message, as far as the slowest line
//! carries them (BBN Report 2499, 2.1.3).
//!
//! A message goes by the way with the fewest lines. Its first packet is stored and sent on at each IMP, the others follow it as fast
//! as the slowest line takes them; its host gets it whole; its answer (RFNM) comes back the same way. Queues, retransmissions and
//! changes of the way are left out.

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

/// Bits of a packet beside its data (2.1.2), and of a message beside its data at a host's interface (BBN 1822, NIC 8246).
const OVERHEAD_BITS: f64 = PACKET_BITS - PACKET_DATA_BITS;
const LEADER_BITS: f64 = 32.0;
const HEADER_BITS: f64 = 40.0;
/// Most bytes of data of a message.
const MESSAGE_BYTES: u64 = 1003;
/// A command on the control link is as long.
const COMMAND_BYTES: u64 = 10;
/// What `allocate` is where it is not written: eight messages.
const ALLOCATE: u64 = 8 * MESSAGE_BYTES;
/// Cycles of an IMP for a packet: it comes and is looked at, and it is put on a line (2.1.1: 1160 together).
const CYCLES_IN: f64 = 860.0;
const CYCLES_OUT: f64 = 300.0;
/// Cycles for a packet of a host and for a word of it, and for a word of a message that a host gets (table 3A).
const CYCLES_OF_HOST: (f64, f64) = (200.0, 4.6);
const CYCLES_TO_HOST: f64 = 29.22;
/// From so much on, four messages, an allocation comes back before messages wait for it.
const WHOLE_ALLOCATION: u64 = 4 * MESSAGE_BYTES;
const WORD_BITS: f64 = 16.0;
/// Routing takes a full packet of each line each 640 ms (2.1.2).
const ROUTING_S: f64 = 0.64;
/// Room that nobody uses is given back after this (history: R619).
const KEPT_S: f64 = 0.125;
/// How far runs lie from the form: by queues behind routing messages, and by which of several ways is taken.
const WITHIN: f64 = 0.13;
/// The same of calls, which the processors at both ends take a part of.
const CALLS_WITHIN: f64 = 0.18;
/// Messages of so many bytes take no longer than commands and answers between hosts.
const SHORT: u64 = 64;
/// What every form here assumes.
const ALONE: &str = "messages take the path with the fewest lines, and there is no other traffic";

/// What lies between two hosts.
struct ImpPath {
    /// Cycles of the first IMP for a word of the host that sends, and of the last for one of the host that receives.
    word_cycles: (f64, f64),
    /// Rates of the interfaces of the host that sends and of the one that receives; none takes no time.
    interfaces: [Option<f64>; 2],
    lines: Vec<ImpPathLine>,
    /// Seconds of a cycle of the first IMP, and of the last.
    cycles_s: (f64, f64),
    /// Messages that the first IMP lets be under way to the last.
    window: u64,
    /// Messages of several packets that the last IMP has room to put together.
    room: u64,
    /// Whether an IMP has fewer channels or buffers than there were, which no form knows.
    is_short: bool,
    /// Whether packets are divided among lines that lead as near, or are lost.
    divides: bool,
    loses: bool,
    /// Whether messages are answered once their host has the first packet (the program of September 1973).
    answers_first: bool,
}

/// A line and the IMPs at its ends.
#[derive(Clone, Copy)]
struct ImpPathLine {
    bit_s: f64,
    delay_s: f64,
    /// Seconds of a cycle of the IMP that sends, and of the one that receives.
    cycles_s: (f64, f64),
}

impl ImpPathLine {
    /// Seconds until a packet of so much data is at the next IMP and has been looked at. Routing is in its way now and then.
    fn packet_s(&self, bits: f64) -> f64 {
        let routing = PACKET_BITS / self.bit_s;
        let waits = routing * routing / (2.0 * ROUTING_S);
        let processors = CYCLES_OUT * self.cycles_s.0 + CYCLES_IN * self.cycles_s.1;
        waits + (bits + OVERHEAD_BITS) / self.bit_s + self.delay_s + processors
    }

    /// Seconds from one full packet to the next: the processor looks after the line between them.
    fn full_s(&self) -> f64 {
        let routing = PACKET_BITS / self.bit_s / ROUTING_S;
        let line = PACKET_BITS / self.bit_s + CYCLES_OUT * self.cycles_s.0;
        (line / (1.0 - routing).max(0.1))
            .max((CYCLES_IN + CYCLES_OUT) * self.cycles_s.0.max(self.cycles_s.1))
    }
}

/// Seconds of a cycle (2.2.1.1).
const fn cycle_s(machine: ImpMachine) -> f64 {
    match machine {
        ImpMachine::H516 => 1.0e-6,
        ImpMachine::H316 => 1.6e-6,
        ImpMachine::Tip => 2.2e-6,
        ImpMachine::Free => 0.0,
    }
}

/// Whether an IMP has fewer channels or buffers than there were: 8 of its lines by land, 32 of those by satellite, 20 buffers (2.2.1.5).
fn is_short(imp: &ImpSettings, by_satellite: bool) -> bool {
    let channels = if by_satellite {
        ImpSettings::SATELLITE_CHANNELS
    } else {
        ImpSettings::CHANNELS
    };
    imp.channels.is_some_and(|has| has < channels)
        || imp.buffers.is_some_and(|has| has < ImpSettings::BUFFERS)
}

/// The nodes behind the first, and the link to each, on the way with the fewest links.
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
    /// The way with the fewest lines; of several the one that is declared first.
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

    /// Seconds of so many bits at an interface.
    fn interface_s(&self, end: usize, bits: f64) -> f64 {
        self.interfaces[end].map_or(0.0, |rate| bits / rate)
    }

    /// Seconds of a packet of so much data from line to line.
    fn packet_s(&self, bits: f64) -> f64 {
        self.lines.iter().map(|line| line.packet_s(bits)).sum()
    }

    /// Seconds until the first IMP has a packet of so much data of its host.
    fn taken_s(&self, bits: f64) -> f64 {
        let cycles = CYCLES_OF_HOST.0 + self.word_cycles.0 * bits / WORD_BITS;
        self.interface_s(0, bits) + cycles * self.cycles_s.0
    }

    /// Seconds until a host has a message of so many bits that is whole.
    fn given_s(&self, bits: f64) -> f64 {
        self.interface_s(1, LEADER_BITS + bits)
            + self.word_cycles.1 * self.cycles_s.1 * bits / WORD_BITS
    }

    /// From one full packet to the next at the slowest part of the way: a line, or the first interface.
    fn slowest_s(&self) -> f64 {
        self.lines
            .iter()
            .map(ImpPathLine::full_s)
            .fold(self.taken_s(PACKET_DATA_BITS), f64::max)
    }

    /// Seconds from a message at its host's interface to all of it at the other host.
    fn message_s(&self, bytes: u64) -> f64 {
        let bits = HEADER_BITS + 8.0 * count_to_f64(bytes);
        let first = bits.min(PACKET_DATA_BITS);
        let packets = libm::ceil(bits / PACKET_DATA_BITS).max(1.0);
        let taken = self.interface_s(0, LEADER_BITS) + self.taken_s(first);
        taken + self.packet_s(first) + (packets - 1.0) * self.slowest_s() + self.given_s(bits)
    }

    /// Seconds that a message waits behind the RFNM of the one that it answers, which leaves just before it on the same line.
    fn behind_rfnm_s(&self, bytes: u64) -> f64 {
        let first = (HEADER_BITS + 8.0 * count_to_f64(bytes)).min(PACKET_DATA_BITS);
        let taken = self.interface_s(0, LEADER_BITS) + self.taken_s(first);
        let line = |line: &ImpPathLine| {
            (OVERHEAD_BITS / line.bit_s + CYCLES_OUT * line.cycles_s.0 - taken).max(0.0)
        };
        self.lines.first().map_or(0.0, line)
    }

    /// Seconds to ask for room for a message.
    fn asks_s(&self, back: &Self) -> f64 {
        self.packet_s(0.0) + back.packet_s(0.0)
    }

    /// Whether packets go again before their acknowledgement can be there: it waits for half a packet, and goes in another (2.1.2).
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

    /// Data bits of full messages that the slowest part of the way carries, bit/s.
    fn carries_bit_s(&self) -> f64 {
        let bits = HEADER_BITS + 8.0 * count_to_f64(MESSAGE_BYTES);
        let message_s = 8.0 * self.slowest_s();
        8.0 * count_to_f64(MESSAGE_BYTES)
            / message_s
                .max(self.given_s(bits))
                .max(self.last_processor_s(bits))
    }

    /// Seconds that the last IMP's processor works for a message: its packets come, its words go to the host.
    fn last_processor_s(&self, bits: f64) -> f64 {
        let packets = libm::ceil(bits / PACKET_DATA_BITS).max(1.0);
        self.cycles_s.1 * (packets * CYCLES_IN + self.word_cycles.1 * bits / WORD_BITS)
    }

    /// Whether a processor on the way is no faster than the line that it gets packets from: they are refused then, and go again after
    /// 125 ms, which is in no form.
    fn is_processor_full(&self) -> bool {
        let pairs = self
            .lines
            .windows(2)
            .map(|pair| (&pair[0], pair[1].cycles_s.0));
        let mut passes =
            pairs.map(|(line, cycle_s)| (line.bit_s, (CYCLES_IN + CYCLES_OUT) * cycle_s));
        passes.any(|(bit_s, works_s)| works_s > 0.8 * PACKET_BITS / bit_s)
    }

    /// Why the form does not cover this way, if it does not.
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

/// A part over `ncp`.
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
    // Pauses that the part does not have are none.
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

/// A bulk transfer: the least of what messages in flight, the allocation and the slowest line allow.
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
    // The allocation comes back with a message of its own once half of it is read, while the RFNM is under way.
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
    // A byte that starts it before, the last message on its way and a byte that confirms it behind.
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

/// Bytes that a host lets another send before it allocates more, where its own buffer holds what may be under way.
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

/// Bytes of a transfer; none where it has no end.
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

/// Calls that follow one another.
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

/// Seconds that a call spends on asking for room: for each of its messages that has several packets, once what was given with the
/// last answer is given back. The first of them asks in any case, and asking may take so long that the next has to ask again.
fn asking_s(there: &ImpPath, back: &ImpPath, request: u64, response: u64) -> f64 {
    let is_long = |bytes: u64| HEADER_BITS + 8.0 * count_to_f64(bytes) > PACKET_DATA_BITS;
    let asks = [(there, back, request), (back, there, response)].map(|(path, other, bytes)| {
        if is_long(bytes) {
            path.asks_s(other)
        } else {
            0.0
        }
    });
    // The answer to the one message leaves with the other one, which comes later by so much.
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
