//! What of a stack no form covers: options that make another of it, buffers, sizes that are drawn.

use super::shared_words::{FIRST_TIMEOUT_S, LEAST_TIMEOUT_S, LITTLE};
use crate::predict::flow_limits::ModelledFlow;
use crate::predict::situation::Situation;
use crate::predict::transfer_estimate::TransferEstimate;
use crate::response::copy_s;
use crate::slow_start::INITIAL_SEGMENTS;
use crate::transport::CongestionModel;
use crate::{count_to_f64, pipe};
use alloc::format;
use alloc::string::String;
use stackline_core::catalogue::{ClosedForm, OptionValue};
use stackline_core::socket_memory;

/// Options that the forms know of, or that change nothing that they say.
const KNOWN: [&str; 15] = [
    "nodelay",
    "congestion",
    "crypto",
    "window",
    "send_buffer",
    "receive_buffer",
    "mss",
    "timeout",
    "receive",
    "threads",
    "port",
    "zerocopy",
    "batch",
    "gso",
    "sealed",
];
/// Bytes that a writer may be ahead in a piece: a train.
const TRAIN: f64 = 65_536.0;
/// A writer waits until so much of its buffer is free.
const FREE: f64 = 1.0 / 3.0;
/// What a block of data takes of a send buffer of Linux beside its bytes.
const BLOCK: u64 = 1536;
/// Segments that begin a connection, or that units are cut into beyond the least.
const EDGE: u64 = 2;
/// Of so many first windows one round trip more is little.
const ROUNDS: f64 = 1023.0;
/// A send buffer of Linux grows to this, as asked for.
const GROWS_TO: u64 = 2 << 20;

/// Whether an option has the value that the forms are of.
fn is_usual(name: &str, value: &OptionValue) -> bool {
    let times = [
        ("least_timeout", LEAST_TIMEOUT_S),
        ("first_timeout", FIRST_TIMEOUT_S),
        ("delayed_ack", 0.04),
        ("ack_tick", 0.0),
        ("timer_tick", 0.0),
    ];
    match value {
        OptionValue::Word(word) => {
            [("recovery", "linux"), ("quickack", "on")].contains(&(name, word.as_str()))
        }
        OptionValue::Seconds(seconds) => times.contains(&(name, *seconds)),
        OptionValue::Number(number) => [
            ("first_window", INITIAL_SEGMENTS),
            ("initial_window", 12_000),
        ]
        .contains(&(name, *number)),
        OptionValue::Set => false,
    }
}

/// A stack with windows, acknowledgements, timers or recovery of its own.
pub(super) fn options(s: &Situation<'_>) -> Result<(), String> {
    let stack = &s.part.stack;
    if stack.facts.form == ClosedForm::SmolTcp {
        return Err(
            "no closed-form formula describes how smoltcp acknowledges data and opens its window"
                .into(),
        );
    }
    let other = stack
        .options
        .iter()
        .find(|(name, value)| !KNOWN.contains(&name.as_str()) && !is_usual(name, value));
    other.map_or(Ok(()), |(name, _)| {
        let usual = if stack.facts.form == ClosedForm::Tcp {
            "Linux's TCP"
        } else {
            &stack.name
        };
        Err(format!(
            "the closed-form formulas describe {usual}, whose behaviour `{name}` changes"
        ))
    })
}

/// Algorithms that go by delay or rate open and keep another window, and let packets leave one by one.
pub(super) fn congestion(s: &Situation<'_>, bytes: Option<u64>) -> Result<(), String> {
    match &s.transport.congestion {
        CongestionModel::Other(name)
            if bytes.is_none_or(|bytes| bytes > s.transport.segment_bytes) =>
        {
            Err(format!("no closed-form formula gives the window of {name}"))
        }
        _ => Ok(()),
    }
}

/// A few packets that are not full, each by itself, where one takes a part of the time to pass a link or a host.
pub(super) fn packets_alone(flow: &ModelledFlow<'_>, elapsed_s: f64) -> Result<(), String> {
    const FEW: u64 = 60;
    let s = flow.s;
    let segment = s.transport.segment_bytes;
    let alone = s.transport.stream
        && s.part.stack.flag("nodelay")
        && !flow.unit.is_multiple_of(segment.max(1))
        && flow.packets().is_some_and(|packets| packets < FEW);
    let packet = flow.packet();
    let passes_s = flow
        .data
        .bottleneck(packet)
        .and_then(|hop| hop.serialisation_s(packet))
        .unwrap_or(0.0)
        .max(copy_s(&flow.data.sender, packet))
        .max(copy_s(&flow.data.receiver, packet));
    if alone && passes_s > LITTLE / 2.0 * elapsed_s {
        return Err("a few partly filled packets leave one by one, and no closed-form formula describes their spacing".into());
    }
    Ok(())
}

/// A beginning that goes otherwise than segment by segment, or that a segment more makes a round trip longer.
pub(super) fn opening(
    flow: &ModelledFlow<'_>,
    estimate: &TransferEstimate<'_>,
) -> Result<(), String> {
    let (s, limit) = (flow.s, estimate.limit);
    // Hosts that copy send the segments of a window one by one.
    let copies_s = flow.packets().map_or(0.0, count_to_f64)
        * copy_s(&flow.data.sender, flow.packet()).max(copy_s(&flow.data.receiver, flow.packet()));
    let little_s = LITTLE * estimate.elapsed_s;
    let opens = limit == "round trips" || estimate.grown_s > little_s;
    if s.part.stack.facts.form == ClosedForm::Quic && estimate.grown_s > little_s {
        return Err(
            "no closed-form formula describes how QUIC's window opens during path MTU discovery"
                .into(),
        );
    }
    if opens && copies_s > little_s {
        return Err(
            "hosts copy while the window opens, and no closed-form formula gives the resulting delay".into(),
        );
    }
    let first = s.transport.initial_segments;
    let Some(packets) = flow.packets().filter(|_| first < u64::MAX) else {
        return Ok(());
    };
    // A window holds twice as many as the one before: the first and the sums of the next ones.
    let mut window = first;
    let mut sent = first;
    while sent + EDGE < packets {
        window = window.saturating_mul(2);
        sent = sent.saturating_add(window);
    }
    let rounds = count_to_f64(sent / first).max(1.0);
    let before = sent - window;
    let is_edge =
        packets.abs_diff(sent) <= EDGE || (before > 0 && packets.abs_diff(before) <= EDGE);
    if is_edge && rounds < ROUNDS && limit != "rate" {
        return Err(
            "one segment more or less means a round trip more or less, which no closed-form formula can resolve"
                .into(),
        );
    }
    Ok(())
}

/// Data that a send buffer holds of that stream, in bytes, whose packets carry so much.
fn held_bytes(s: &Situation<'_>, payload: u64) -> f64 {
    let written = s.part.stack.number("send_buffer");
    if s.part.stack.facts.form != ClosedForm::Tcp {
        return written.map_or(f64::INFINITY, count_to_f64);
    }
    let memory = socket_memory::send_memory(written.unwrap_or(GROWS_TO));
    count_to_f64(memory) * count_to_f64(payload) / count_to_f64(payload + BLOCK)
}

/// A send buffer that does not hold what is on its way: it is filled when a part of it is free, by whole trains, which differs with units,
/// acknowledgements and what the window was when they were made.
pub(super) fn send_buffer(flow: &ModelledFlow<'_>, rtt_s: f64) -> Result<(), String> {
    let s = flow.s;
    let segment = s.transport.segment_bytes;
    let payload = if s.part.stack.flag("nodelay") {
        segment.min(flow.unit).max(1)
    } else {
        segment
    };
    let holds = held_bytes(s, payload);
    let all = flow.bytes.map_or(f64::INFINITY, count_to_f64);
    if holds >= all {
        return Ok(());
    }
    let product = flow
        .data
        .bottleneck(flow.packet())
        .and_then(|hop| hop.rate_bit_s)
        .map_or(f64::INFINITY, |rate| {
            pipe::bandwidth_delay_bytes(rate, rtt_s)
        });
    let window = s.transport.window_bytes.unwrap_or(f64::INFINITY);
    if holds * (1.0 - FREE) >= product.min(window) + TRAIN {
        return Ok(());
    }
    Err("the send buffer is the limit: it is refilled when part of it is free, in trains of up to 64 KiB, and no closed-form formula gives the amount in flight".into())
}

/// A message that its send buffer does not hold.
pub(super) fn buffer_of_message(s: &Situation<'_>, bytes: u64) -> Result<(), String> {
    let written = s.part.stack.number("send_buffer");
    if s.transport.stream && written.is_some_and(|written| written < bytes) {
        return Err("a message is longer than the send buffer, and no closed-form formula says when the rest is handed over".into());
    }
    Ok(())
}

/// Units of a transfer whose sizes differ so much, or are so few, that chance decides how much is moved; and datagrams in several
/// fragments now and then.
pub(super) fn sizes_of_transfer(flow: &ModelledFlow<'_>) -> Result<(), String> {
    let s = flow.s;
    let Some(drawn) = s.drawn_sizes().next() else {
        return Ok(());
    };
    if !s.transport.stream && drawn.range().1 > count_to_f64(s.transport.segment_bytes) {
        return Err("datagrams of random size are sometimes fragmented".into());
    }
    let units = count_to_f64(flow.bytes.unwrap_or(u64::MAX) / flow.unit.max(1)).max(1.0);
    let spread = drawn.variance().map_or(f64::INFINITY, libm::sqrt)
        / count_to_f64(flow.unit.max(1))
        / libm::sqrt(units * f64::from(s.part.replicas));
    if spread > LITTLE {
        return Err(
            "too few units of random size are moved: the amount of data depends on chance".into(),
        );
    }
    Ok(())
}

/// Turns over QUIC, whose packets carry acknowledgements and more beside data, and whose window only opens for who fills it.
pub(crate) fn frames_of_turns(s: &Situation<'_>, turn_s: f64, longest: u64) -> Result<(), String> {
    // An acknowledgement frame, and a frame's own head.
    const FRAMES: u64 = 16;
    if s.part.stack.facts.form != ClosedForm::Quic {
        return Ok(());
    }
    let first = s
        .transport
        .initial_segments
        .saturating_mul(s.transport.segment_bytes);
    if longest + s.transport.segment_bytes > first {
        return Err("messages are longer than QUIC's initial window, which opens only when filled: no closed-form formula says how often it opens".into());
    }
    let longer_s = |path: &crate::PathModel| -> f64 {
        let bytes = s.transport.header_bytes + FRAMES;
        let hops = path.hops.iter();
        hops.filter_map(|hop| {
            Some(hop.serialisation_s(bytes)? - hop.serialisation_s(s.transport.header_bytes)?)
        })
        .sum()
    };
    if longer_s(&s.there) + longer_s(&s.back) > LITTLE * turn_s {
        return Err(
            "QUIC packets carry more than data; the rest takes up part of the turn, and no closed-form formula covers it"
                .into(),
        );
    }
    Ok(())
}

/// Messages of turns whose sizes are drawn: where they need several packets, or take a part of the turn, a mean size is not the mean time.
pub(crate) fn sizes_of_turns(s: &Situation<'_>, turn_s: f64) -> Result<(), String> {
    let segment = s.transport.segment_bytes;
    let full_s = |path: &crate::PathModel| {
        path.bottleneck(segment)
            .and_then(|hop| hop.serialisation_s(segment + s.transport.header_bytes))
            .unwrap_or(0.0)
    };
    let longest_s = full_s(&s.there).max(full_s(&s.back));
    let differs = |drawn: &stackline_core::distribution::Distribution| {
        drawn.range().1 > count_to_f64(segment) || longest_s > LITTLE * turn_s
    };
    if s.drawn_sizes().any(differs) {
        return Err(
            "message sizes are random, and the time for a message of mean size is not the mean time"
                .into(),
        );
    }
    Ok(())
}
