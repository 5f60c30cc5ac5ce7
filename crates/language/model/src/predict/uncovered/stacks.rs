//! Properties of stacks that no formula covers: options that change a protocol's behaviour, congestion control, how
//! windows open, send buffers, random sizes.

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

/// Options that the formulas take into account, or that do not affect their figures.
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
/// The most bytes that are handed over at once (a train), 64 KiB.
const TRAIN: f64 = 65_536.0;
/// A blocked writer goes on when this share of its send buffer is free.
const FREE: f64 = 1.0 / 3.0;
/// Bytes that Linux charges to a send buffer for each packet in it, beside the payload.
const BLOCK: u64 = 1536;
/// The number of segments is uncertain by this much: control messages, and units that are cut into one segment more.
const EDGE: u64 = 2;
/// From so many first windows on (2^10 - 1, sent in ten round trips that double), one round trip more hardly matters.
const ROUNDS: f64 = 1023.0;
/// The size to which Linux's send buffer grows where none is written, in bytes as an application would ask for it.
const GROWS_TO: u64 = 2 << 20;

/// Whether an option has the value for which the formulas hold.
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
        OptionValue::Set | OptionValue::Text(_) => false,
    }
}

/// Stacks whose windows, acknowledgements, timers or recovery are not those of the formulas: smoltcp, and options with
/// unusual values.
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

/// Congestion control without a formula, if more than one segment is sent. Algorithms that react to delay or rate have
/// another window and space their packets. `bytes` is `None` for a transfer without end.
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

/// A few partly filled packets (`nodelay`), where one packet takes a good part of the time on a link or a host.
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

/// Slow start that the formula does not describe: in QUIC, or while hosts copy; or where one segment more would take
/// one round trip more.
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
    // Each window is twice the one before. `sent` counts the segments of all windows up to `window`.
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

/// Payload that the send buffer holds, in bytes, if each packet carries `payload` bytes.
fn held_bytes(s: &Situation<'_>, payload: u64) -> f64 {
    let written = s.part.stack.number("send_buffer");
    if s.part.stack.facts.form != ClosedForm::Tcp {
        return written.map_or(f64::INFINITY, count_to_f64);
    }
    let memory = socket_memory::send_memory(written.unwrap_or(GROWS_TO));
    count_to_f64(memory) * count_to_f64(payload) / count_to_f64(payload + BLOCK)
}

/// A send buffer too small for the data in flight. It is refilled in trains when part of it is free, so the amount in
/// flight depends on unit sizes, acknowledgements and earlier windows.
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

/// A message that does not fit into the written send buffer.
pub(super) fn buffer_of_message(s: &Situation<'_>, bytes: u64) -> Result<(), String> {
    let written = s.part.stack.number("send_buffer");
    if s.transport.stream && written.is_some_and(|written| written < bytes) {
        return Err("a message is longer than the send buffer, and no closed-form formula says when the rest is handed over".into());
    }
    Ok(())
}

/// Random unit sizes in a transfer: so few units, or so different ones, that chance decides how much is moved; or
/// datagrams that are sometimes fragmented.
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

/// Turns over QUIC, whose packets carry other frames beside data, and whose window opens only when it is filled.
/// `longest` is the longest message, in bytes.
pub(crate) fn frames_of_turns(s: &Situation<'_>, turn_s: f64, longest: u64) -> Result<(), String> {
    // Bytes of an acknowledgement frame and of a stream frame's header.
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

/// Random message sizes in turns. If messages need several packets, or a packet takes a good part of the turn, the
/// time of a message of mean size is not the mean time.
pub(crate) fn sizes_of_turns(s: &Situation<'_>, turn_s: f64) -> Result<(), String> {
    let segment = s.transport.segment_bytes;
    // The time of a full packet on the bottleneck.
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
