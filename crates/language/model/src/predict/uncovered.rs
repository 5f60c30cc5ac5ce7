//! Situations that no formula covers: a figure would look certain and be wrong. Each function returns the reason as an
//! error; no figure is computed here.

mod paths;
mod shared_words;
mod stacks;
mod turns;

use super::flow_limits::{FEW_SEGMENTS, ModelledFlow};
use super::situation::Situation;
use super::transfer_estimate::TransferEstimate;
use crate::path::PathModel;
use crate::transport::CongestionModel;
use crate::{HopModel, count_to_f64, loss, mean_loss, pipe};
use alloc::format;
use alloc::string::String;
use shared_words::{FIRST_TIMEOUT_S, LEAST_TIMEOUT_S, LITTLE, busy, name};
use stackline_core::units;

pub(super) use paths::jitter_of_turns;
pub(super) use stacks::{frames_of_turns, sizes_of_turns};
pub(super) use turns::{
    CONNECTIONS_ALONE, CONNECTIONS_OF_CALLS, behind_lost, connections, few_calls, few_draws,
    idle_window, long_messages, lost_by_time, opening_of_calls, opening_of_turns, other_pairs,
    pairs_at_random, pairs_that_meet, turns,
};

/// With at least this many expected losses, a transfer has the average window of the long-run formula.
const MANY: f64 = 30.0;
/// A transfer of at least this many round trips is long: its slow start hardly matters.
const LONG: f64 = 60.0;
/// A window that allows less than this many times the steady rate is close to being the limit.
const NEAR_WINDOW: f64 = 1.5;

/// The reason why no formula covers a transfer, if none does.
pub(super) fn transfer(
    flow: &ModelledFlow<'_>,
    estimate: &TransferEstimate<'_>,
) -> Result<(), String> {
    let &TransferEstimate {
        binds,
        limit,
        elapsed_s,
        rtt_s,
        ..
    } = estimate;
    paths::unsteady(flow.s)?;
    paths::jitter_of_transfer(flow, elapsed_s, rtt_s)?;
    paths::beside_turns(flow.s)?;
    stacks::options(flow.s)?;
    stacks::sizes_of_transfer(flow)?;
    slow_packets(flow.s, flow.data, flow.bytes.unwrap_or(u64::MAX))?;
    beside(flow.s, flow.data, elapsed_s / rtt_s)?;
    stacks::packets_alone(flow, elapsed_s)?;
    together(flow, elapsed_s, rtt_s)?;
    // A sender that is paced below the path's rate fills neither a queue nor a window.
    paced(flow, estimate)?;
    if binds == "pace" {
        return losses(flow);
    }
    paths::drops_early(flow.data)?;
    if !flow.s.transport.stream {
        return datagrams(flow, limit);
    }
    return_path(flow.s, flow.data, flow.acks)?;
    losses(flow)?;
    stacks::send_buffer(flow, rtt_s)?;
    stacks::congestion(flow.s, flow.bytes)?;
    stacks::opening(flow, estimate)?;
    few_segments(flow, estimate)?;
    let near = flow
        .s
        .transport
        .window_bytes
        .and_then(|window| pipe::window_limited_bit_s(window, rtt_s))
        .is_some_and(|lets| lets < NEAR_WINDOW * estimate.steady_bit_s);
    if limit == "window" || near {
        small_window(flow)?;
    }
    overrun(flow, elapsed_s / rtt_s)
}

/// Paced units that are too few, that arrive at random or about as fast as the path carries them, that wait for the
/// window at the beginning, or that are bursts too long for a queue.
fn paced(flow: &ModelledFlow<'_>, estimate: &TransferEstimate<'_>) -> Result<(), String> {
    const FEW: f64 = 20.0;
    let pace = estimate.pace;
    if !pace.is_kept {
        return Ok(());
    }
    if pace.draws < FEW {
        return Err("too few units are paced: start and end effects dominate".into());
    }
    if pace.in_heaps {
        return Err(
            "units arrive at random, from several pairs, or about as fast as a link carries them: no closed-form formula says how many coincide"
                .into(),
        );
    }
    if estimate.grown_s > LITTLE * estimate.elapsed_s {
        return Err(
            "units wait for the window at the beginning and catch up later, and no closed-form formula says how long this takes"
                .into(),
        );
    }
    let packets = flow.s.packets(flow.unit);
    // While it arrives at the rate before, a part of it leaves: the rest has to wait.
    let longest = count_to_f64(packets.full * packets.full_bytes + packets.last_bytes);
    if packets.full > 0
        && fed(flow.data).any(|fed| longest * (1.0 - fed.rate / fed.before) > fed.queue)
    {
        return Err(
            "a unit is sent in one burst, but a queue on its path is too small to hold it".into(),
        );
    }
    Ok(())
}

/// Datagrams that overflow a queue, as they are sent as fast as they are handed over; and transfers that are mostly
/// start and end messages.
fn datagrams(flow: &ModelledFlow<'_>, limit: &str) -> Result<(), String> {
    if limit == "round trips" {
        return Err(
            "a transfer consists mostly of its start and end messages, which are retransmitted until answered"
                .into(),
        );
    }
    let packet = flow.packet().max(flow.piece());
    let sent =
        flow.bytes.map(count_to_f64).unwrap_or(f64::INFINITY) * f64::from(flow.s.part.replicas);
    let narrow = flow
        .data
        .bottleneck(packet)
        .and_then(|hop| Some((hop, hop.queue_bytes?)));
    match narrow {
        Some((hop, queue)) if sent > queue => Err(format!(
            "datagrams arrive faster than {} carries them, and its queue of {} overflows",
            name(hop),
            units::format_size(queue as u64)
        )),
        _ => Ok(()),
    }
}

/// First packets that take longer to transmit than the retransmission timeout, and so are retransmitted needlessly.
fn slow_packets(s: &Situation<'_>, path: &PathModel, bytes: u64) -> Result<(), String> {
    let packet = s.transport.segment_bytes + s.transport.header_bytes;
    let Some(hop) = path.bottleneck(packet).filter(|_| s.transport.stream) else {
        return Ok(());
    };
    let packets = bytes
        .div_ceil(s.transport.segment_bytes.max(1))
        .min(s.transport.initial_segments);
    let seconds = count_to_f64(packets)
        * hop.serialisation_s(packet).unwrap_or(0.0)
        * f64::from(s.part.replicas);
    if seconds > FIRST_TIMEOUT_S {
        return Err(format!(
            "the first packets take {} on {}, longer than the retransmission timeout",
            units::format_time(seconds),
            name(hop)
        ));
    }
    Ok(())
}

/// Other traffic on the same link or host. `rounds` is the number of round trips of the transfer.
fn beside(s: &Situation<'_>, path: &PathModel, rounds: f64) -> Result<(), String> {
    let packet = s.transport.segment_bytes + s.transport.header_bytes;
    if let Some(host) = s.busy_with_others() {
        return Err(busy(host));
    }
    let back = s.opposite(path);
    if let Some(hop) = back.hops.iter().find(|hop| s.load.carries(hop)) {
        return Err(format!(
            "acknowledgements wait behind other traffic on {}, and no closed-form formula gives the delay",
            name(hop)
        ));
    }
    if rounds < LONG {
        side_by_side(s)?;
    }
    let Some(hop) = path
        .bottleneck(packet)
        .filter(|hop| s.load.on(hop) > s.part.replicas)
    else {
        return Ok(());
    };
    if rounds < LONG || !s.others_are_alike() {
        return Err(format!(
            "no closed-form formula describes how short streams, or streams that differ, share {}",
            name(hop)
        ));
    }
    Ok(())
}

/// Several streams that open their windows at the same time: packets of different streams interleave, so a stream's
/// packet trains are longer than it sent them, and CUBIC takes that for a queue (HyStart, RFC 9406).
fn side_by_side(s: &Situation<'_>) -> Result<(), String> {
    if s.part.replicas > 1 && s.transport.stream {
        return Err("windows of several streams open concurrently, and no closed-form formula says when each leaves slow start".into());
    }
    Ok(())
}

/// A return path that carries an acknowledgement more slowly than the data path carries a segment.
fn return_path(s: &Situation<'_>, data: &PathModel, acks: &PathModel) -> Result<(), String> {
    let packet = s.transport.segment_bytes + s.transport.header_bytes;
    let (Some(there), Some(back)) = (
        data.bottleneck(packet),
        acks.bottleneck(s.transport.ack_bytes),
    ) else {
        return Ok(());
    };
    let segments = there.serialisation_s(packet).unwrap_or(0.0);
    let acks = back.serialisation_s(s.transport.ack_bytes).unwrap_or(0.0);
    // At the beginning each segment is acknowledged, later every second one.
    if s.transport.stream && acks > segments {
        return Err(format!(
            "acknowledgements wait on the return path: {} carries them more slowly than segments arrive",
            name(back)
        ));
    }
    Ok(())
}

/// Packets that begin and end a transfer, in each direction.
const CONTROLS: f64 = 2.0;

/// A stream with few losses, whose number and positions decide the result, or with losses in bursts.
fn losses(flow: &ModelledFlow<'_>) -> Result<(), String> {
    let p = flow.loss();
    if !flow.s.transport.stream {
        return Ok(());
    }
    let packets = flow.packets().map_or(f64::INFINITY, count_to_f64);
    let back = flow.acks.loss_of(flow.s.transport.control_bytes, None);
    // What opens and closes a stream crosses both paths.
    let expected = (p * (packets + CONTROLS) + back * CONTROLS) * f64::from(flow.s.part.replicas);
    if expected < LITTLE {
        return Ok(());
    }
    if flow
        .data
        .hops
        .iter()
        .any(|hop| mean_loss::in_bursts(&hop.losses))
    {
        return Err("no closed-form formula gives the cost of loss bursts to a stream".into());
    }
    if expected < MANY {
        return Err(format!(
            "{expected:.1} losses are expected: their positions matter, and no closed-form formula gives them"
        ));
    }
    Ok(())
}

/// Windows that losses keep so small that timeouts dominate, unless such a window still allows much more than the
/// steady rate.
fn few_segments(flow: &ModelledFlow<'_>, estimate: &TransferEstimate<'_>) -> Result<(), String> {
    const MUCH_MORE: f64 = 4.0;
    let p = flow.loss();
    let window = match flow.s.transport.congestion {
        CongestionModel::Reno => loss::mathis_window(p, 1),
        _ => loss::cubic_window(estimate.rtt_s, p),
    };
    let few = if estimate.binds == "loss" {
        FEW_SEGMENTS
    } else {
        2.0 * FEW_SEGMENTS
    };
    let Some(window) = window.filter(|window| p > 0.0 && *window < few) else {
        return Ok(());
    };
    let lets = pipe::window_limited_bit_s(
        window * count_to_f64(flow.s.transport.segment_bytes),
        estimate.rtt_s,
    );
    if estimate.binds == "loss" || lets.is_some_and(|lets| lets < MUCH_MORE * estimate.steady_bit_s)
    {
        return Err("losses keep the window so small that timeouts dominate, and no closed-form formula gives their frequency".into());
    }
    Ok(())
}

/// Several streams that are so short that one which waits for a timeout does not catch up; and short transfers of
/// datagrams by several pairs.
fn together(flow: &ModelledFlow<'_>, elapsed_s: f64, rtt_s: f64) -> Result<(), String> {
    // A transfer of so many minimum retransmission timeouts is long enough to catch up after one.
    const TIMERS: f64 = 25.0;
    let s = flow.s;
    if s.part.replicas < 2 {
        return Ok(());
    }
    if !s.transport.stream && elapsed_s < LONG * rtt_s {
        return Err(
            "datagrams of several pairs interleave, and no closed-form formula describes how"
                .into(),
        );
    }
    let may_drop = flow.data.hops.iter().any(|hop| hop.queue_bytes.is_some());
    if s.transport.stream && may_drop && elapsed_s < TIMERS * LEAST_TIMEOUT_S {
        return Err("one of several streams may wait for a timeout while the others continue: no closed-form formula says how often".into());
    }
    Ok(())
}

/// Windows of few segments, which are sometimes used up while an acknowledgement is delayed.
fn small_window(flow: &ModelledFlow<'_>) -> Result<(), String> {
    const FEW: f64 = 10.0;
    let segment = count_to_f64(flow.s.transport.segment_bytes);
    let Some(window) = flow
        .s
        .transport
        .window_bytes
        .filter(|window| *window < FEW * segment)
    else {
        return Ok(());
    };
    if flow
        .bytes
        .is_some_and(|bytes| count_to_f64(bytes) <= window)
    {
        return Ok(());
    }
    Err(format!(
        "a window of {:.1} segments waits for delayed acknowledgements, and no closed-form formula says how often",
        window / segment
    ))
}

/// A queue that can grow, because packets arrive faster than they leave.
struct Fed<'p> {
    hop: &'p HopModel,
    /// Bytes that it can hold.
    queue: f64,
    /// Rate at which packets leave, bit/s.
    rate: f64,
    /// Rate at which the links before it deliver packets, bit/s.
    before: f64,
}

/// The queues of a path that can grow.
fn fed(path: &PathModel) -> impl Iterator<Item = Fed<'_>> {
    path.hops.iter().enumerate().filter_map(|(at, hop)| {
        let before = path.hops[..at]
            .iter()
            .filter_map(|hop| hop.rate_bit_s)
            .fold(f64::INFINITY, f64::min);
        let fed = Fed {
            hop,
            queue: hop.queue_bytes?,
            rate: hop.rate_bit_s?,
            before,
        };
        (fed.rate < before).then_some(fed)
    })
}

/// A queue that overflows in slow start, or that is too small for the window in the long run. `rounds` is the number
/// of round trips of the transfer.
fn overrun(flow: &ModelledFlow<'_>, rounds: f64) -> Result<(), String> {
    let (s, packet) = (flow.s, count_to_f64(flow.packet()));
    for Fed {
        hop,
        queue,
        rate,
        before,
    } in fed(flow.data)
    {
        let flows = f64::from(s.part.replicas);
        let most = flow.bytes.map_or(f64::INFINITY, |bytes| {
            count_to_f64(bytes.div_ceil(s.transport.segment_bytes))
        }) * packet;
        let window = s.transport.window_bytes.unwrap_or(f64::INFINITY) * packet
            / count_to_f64(s.transport.segment_bytes);
        let first = (count_to_f64(s.transport.initial_segments) * packet)
            .min(window)
            .min(most)
            * flows;
        let at_once = first * (1.0 - rate / before);
        let product = pipe::bandwidth_delay_bytes(rate, flow.rtt_s()?);
        // In slow start packets arrive twice as fast as they leave. The largest window within the transfer holds half
        // of what is sent in all.
        let opened = (most / 2.0).min(window) * flows;
        let opened = if opened > first {
            opened * (1.0 - rate / before.min(2.0 * rate))
        } else {
            0.0
        };
        // Data in flight beyond what the path holds are in the queue.
        let stands = (window.min(most) * flows - product).min(queue);
        let needed = at_once
            .max(opened.min(product + queue + packet))
            .max(stands)
            + packet;
        let size = units::format_size(queue as u64);
        if needed > queue && rounds < LONG {
            return Err(format!(
                "slow start overruns the queue of {size} at {}, and no closed-form formula gives the cost",
                name(hop)
            ));
        }
        if needed > queue && small(flow, product, queue) {
            return Err(format!(
                "the queue of {size} at {} is small for {} in flight: no closed-form formula covers that",
                name(hop),
                units::format_size(product as u64)
            ));
        }
    }
    Ok(())
}

/// Whether a queue is far too small to keep the link busy when a loss reduces the window. `product` is the
/// bandwidth-delay product, in bytes.
fn small(flow: &ModelledFlow<'_>, product: f64, queue: f64) -> bool {
    let least = if flow.s.transport.congestion == CongestionModel::Reno {
        0.8
    } else {
        0.4
    };
    queue < least * product || queue < 16.0 * count_to_f64(flow.packet())
}

/// Messages of turns that no formula covers: their windows open concurrently, or they are longer than the buffers, or
/// all pairs together overflow a queue. Sizes are in bytes.
pub(super) fn messages(s: &Situation<'_>, [request, response]: [u64; 2]) -> Result<(), String> {
    if request.max(response)
        > s.transport
            .initial_segments
            .saturating_mul(s.transport.segment_bytes)
    {
        side_by_side(s)?;
    }
    for (path, bytes) in [(&s.there, request), (&s.back, response)] {
        slow_packets(s, path, bytes)?;
        stacks::buffer_of_message(s, bytes)?;
        stacks::congestion(s, Some(bytes))?;
        let packets = s.packets(bytes);
        if packets.full > 0 {
            paths::drops_early(path)?;
        }
        let all = f64::from(s.part.replicas)
            * (count_to_f64(packets.full * packets.full_bytes + packets.last_bytes));
        if s.transport.stream
            && s.transport
                .window_bytes
                .is_some_and(|window| window < count_to_f64(bytes))
        {
            return Err("messages are longer than the specified buffers, and no closed-form formula describes how the window then moves".into());
        }
        if packets.full > 0 {
            return_path(s, path, s.opposite(path))?;
        }
        let most = packets.last_bytes.max(if packets.full > 0 {
            packets.full_bytes
        } else {
            0
        });
        for Fed {
            hop,
            queue,
            rate,
            before,
        } in fed(path)
        {
            let several = packets.full > 0 || s.part.replicas > 1;
            if all * (1.0 - rate / before) + count_to_f64(most) > queue && several {
                let size = units::format_size(queue as u64);
                return Err(format!(
                    "messages are longer than the queue of {size} at {}, and no closed-form formula gives the cost",
                    name(hop)
                ));
            }
        }
    }
    Ok(())
}
