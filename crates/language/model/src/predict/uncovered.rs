//! What no form covers: situations in which a figure would look sure and be wrong. Each is a sentence why. It computes no figure.

mod stacks;
mod ways;

use super::bulk::SendingPace;
use super::flow_limits::{FEW_SEGMENTS, ModelledFlow};
use super::situation::Situation;
use crate::path::PathModel;
use crate::transport::CongestionModel;
use crate::{HopModel, count_to_f64, loss, mean_loss, pipe};
use alloc::format;
use alloc::string::String;
use stackline_core::catalogue::ClosedForm;
use stackline_core::units;

pub(super) use stacks::{frames_of_turns, sizes_of_turns};
pub(super) use ways::jitter_of_turns;

/// Losses that go with less than this share of a figure are left out of it.
const LITTLE: f64 = 0.04;
/// A run that meets a loss with so little chance seldom meets one.
const SELDOM: f64 = 0.05;
/// From so many losses on a transfer has the window that a form of the long run gives it.
const MANY: f64 = 30.0;
/// A transfer that lasts so many round trips hardly shows what its beginning cost.
const LONG: f64 = 60.0;
/// What a loss at the end of a flight costs at least: Linux' least time-out.
const LEAST_TIMEOUT_S: f64 = 0.2;
/// How long the first packets are waited for (RFC 6298, section 2.1).
const FIRST_TIMEOUT_S: f64 = 1.0;

/// Why no form covers a transfer that `binds` limits in the long run and `limit` in all, and that takes so long.
pub(super) fn transfer(
    flow: &ModelledFlow<'_>,
    [binds, limit]: [&str; 2],
    [elapsed_s, rtt_s]: [f64; 2],
    pace: &SendingPace,
) -> Result<(), String> {
    ways::unsteady(flow.s)?;
    ways::jitter_of_transfer(flow, elapsed_s, rtt_s)?;
    ways::beside_turns(flow.s)?;
    stacks::options(flow.s)?;
    stacks::sizes_of_transfer(flow)?;
    slow_packets(flow.s, flow.data, flow.bytes.unwrap_or(u64::MAX))?;
    beside(flow.s, flow.data, elapsed_s / rtt_s)?;
    // What is paced below the path's rate fills no queue and no window.
    paced(flow, pace)?;
    if binds == "pace" {
        return losses(flow);
    }
    ways::drops_early(flow.data)?;
    if !flow.s.transport.stream {
        return datagrams(flow);
    }
    way_back(flow.s, flow.data, flow.acks)?;
    losses(flow)?;
    stacks::send_buffer(flow, rtt_s)?;
    stacks::congestion(flow)?;
    stacks::opening(flow, limit)?;
    if binds == "loss" {
        few_segments(flow, rtt_s)?;
    }
    if limit == "window" {
        small_window(flow)?;
    }
    overrun(flow, elapsed_s / rtt_s)
}

/// Units that come at moments of their own: few of them, in heaps, or about as fast as the way passes them.
fn paced(flow: &ModelledFlow<'_>, pace: &SendingPace) -> Result<(), String> {
    const FEW: f64 = 20.0;
    if !pace.is_kept {
        return Ok(());
    }
    if pace.draws < FEW {
        return Err("so few units keep a pace that their beginning and end decide".into());
    }
    if pace.in_heaps {
        return Err("units come at random, and no form says how many meet at a link".into());
    }
    let packets = flow.s.packets(flow.unit);
    let longest = count_to_f64(packets.full * packets.full_bytes + packets.last_bytes);
    if packets.full > 0
        && fed(flow.data).any(|fed| longest * (1.0 - fed.rate / fed.before) > fed.queue)
    {
        return Err("a unit that leaves at once is longer than a queue on its way holds".into());
    }
    Ok(())
}

/// Datagrams go as fast as they are handed over: what a queue cannot hold is lost.
fn datagrams(flow: &ModelledFlow<'_>) -> Result<(), String> {
    let packet = flow.packet().max(flow.piece());
    let sent =
        flow.bytes.map(count_to_f64).unwrap_or(f64::INFINITY) * f64::from(flow.s.part.replicas);
    let narrow = flow
        .data
        .bottleneck(packet)
        .and_then(|hop| Some((hop, hop.queue_bytes?)));
    match narrow {
        Some((hop, queue)) if sent > queue => Err(format!(
            "datagrams come faster than {} passes them, and its queue of {} loses what it cannot hold",
            name(hop),
            units::format_size(queue as u64)
        )),
        _ => Ok(()),
    }
}

/// What is sent at once takes longer to leave than timers wait for it: it is sent again for nothing.
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
            "the first packets take {} at {}, longer than timers wait",
            units::format_time(seconds),
            name(hop)
        ));
    }
    Ok(())
}

fn busy(host: &str) -> String {
    format!("no form says how {host} shares its processor, which copies, with what others send")
}

/// Others on the same link.
fn beside(s: &Situation<'_>, path: &PathModel, rounds: f64) -> Result<(), String> {
    let packet = s.transport.segment_bytes + s.transport.header_bytes;
    if let Some(host) = s.busy_with_others() {
        return Err(busy(host));
    }
    let back = s.opposite(path);
    if let Some(hop) = back.hops.iter().find(|hop| s.load.carries(hop)) {
        return Err(format!(
            "acknowledgements wait behind what others send over {}, and no form says how long",
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
            "no form says how streams that are not alike, or short, share {}",
            name(hop)
        ));
    }
    Ok(())
}

/// Windows that open side by side: each stream's packets lie between those of the others, so its trains are longer than it made them, and
/// it takes that for a queue (HyStart, RFC 9406).
fn side_by_side(s: &Situation<'_>) -> Result<(), String> {
    if s.part.replicas > 1 && s.transport.stream && s.transport.congestion == CongestionModel::Cubic
    {
        return Err("windows of several streams open side by side, and no form says when each leaves slow start".into());
    }
    Ok(())
}

/// A way back that is too narrow for the acknowledgements.
fn way_back(s: &Situation<'_>, data: &PathModel, acks: &PathModel) -> Result<(), String> {
    let packet = s.transport.segment_bytes + s.transport.header_bytes;
    let (Some(there), Some(back)) = (
        data.bottleneck(packet),
        acks.bottleneck(s.transport.ack_bytes),
    ) else {
        return Ok(());
    };
    let segments = there.serialisation_s(packet).unwrap_or(0.0);
    let acks = back.serialisation_s(s.transport.ack_bytes).unwrap_or(0.0);
    // At first each segment is acknowledged, later every second.
    if s.transport.stream && acks > segments {
        return Err(format!(
            "acknowledgements wait for the way back: {} passes fewer of them than segments come",
            name(back)
        ));
    }
    Ok(())
}

/// Packets that begin and end a transfer, each way.
const CONTROLS: f64 = 2.0;

/// Few losses on a stream: whether and when they come decides.
fn losses(flow: &ModelledFlow<'_>) -> Result<(), String> {
    let p = flow.loss();
    if !flow.s.transport.stream {
        return Ok(());
    }
    let packets = flow.packets().map_or(f64::INFINITY, count_to_f64);
    let back = flow.acks.loss_of(flow.s.transport.control_bytes, None);
    let expected = (p * (packets + CONTROLS) + back * CONTROLS) * f64::from(flow.s.part.replicas);
    if expected < LITTLE {
        return Ok(());
    }
    if flow.s.part.stack.facts.form == ClosedForm::SmolTcp {
        return Err(
            "no form says what losses cost a stream without selective acknowledgements".into(),
        );
    }
    if flow
        .data
        .hops
        .iter()
        .any(|hop| mean_loss::in_bursts(&hop.losses))
    {
        return Err("no form says what bursts of loss cost a stream".into());
    }
    if expected < MANY {
        return Err(format!(
            "{expected:.1} losses are expected: where they fall decides, and no form says that"
        ));
    }
    Ok(())
}

/// Windows that losses keep so small that time-outs are the rule.
fn few_segments(flow: &ModelledFlow<'_>, rtt_s: f64) -> Result<(), String> {
    let p = flow.loss();
    let window = match flow.s.transport.congestion {
        CongestionModel::Reno => loss::mathis_window(p, 1),
        _ => loss::cubic_window(rtt_s, p),
    };
    if window.is_some_and(|window| window < FEW_SEGMENTS) {
        return Err("losses keep the window so small that timers decide, and no form says how often they end".into());
    }
    Ok(())
}

/// Windows of few segments wait for delayed acknowledgements.
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
        "a window of {:.1} segments waits for acknowledgements that are delayed, and no form says how often",
        window / segment
    ))
}

/// A queue that can grow: packets come faster than they leave.
struct Fed<'p> {
    hop: &'p HopModel,
    /// What it holds, bytes.
    queue: f64,
    /// At which they leave, bit/s.
    rate: f64,
    /// At which the links before let them come, bit/s.
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

/// A queue that the beginning overruns, or that is too small for the window in the long run.
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
        // In slow start packets come twice as fast as they leave. The largest window that it opens within the transfer holds half
        // of what is sent in all.
        let opened = (most / 2.0).min(window) * flows;
        let opened = if opened > first {
            opened * (1.0 - rate / before.min(2.0 * rate))
        } else {
            0.0
        };
        // What is on its way beyond what the path holds stands in the queue.
        let stands = (window.min(most) * flows - product).min(queue);
        let needed = at_once
            .max(opened.min(product + queue + packet))
            .max(stands)
            + packet;
        let size = units::format_size(queue as u64);
        if needed > queue && rounds < LONG {
            return Err(format!(
                "slow start overruns the queue of {size} at {}, and no form says what that costs",
                name(hop)
            ));
        }
        if needed > queue && small(flow, product, queue) {
            return Err(format!(
                "the queue of {size} at {} is small for {} on the way: no form holds there",
                name(hop),
                units::format_size(product as u64)
            ));
        }
    }
    Ok(())
}

/// Whether a queue is far from bridging a fall of the window.
fn small(flow: &ModelledFlow<'_>, product: f64, queue: f64) -> bool {
    let least = if flow.s.transport.congestion == CongestionModel::Reno {
        0.8
    } else {
        0.4
    };
    queue < least * product || queue < 16.0 * count_to_f64(flow.packet())
}

/// Messages that are sent at once, by all pairs, into a queue that cannot hold them.
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
        let packets = s.packets(bytes);
        if packets.full > 0 {
            ways::drops_early(path)?;
        }
        let all = f64::from(s.part.replicas)
            * (count_to_f64(packets.full * packets.full_bytes + packets.last_bytes));
        if s.transport.stream
            && s.transport
                .window_bytes
                .is_some_and(|window| window < count_to_f64(bytes))
        {
            return Err("messages are longer than the buffers written, and no form says how their windows move".into());
        }
        if packets.full > 8 {
            way_back(s, path, s.opposite(path))?;
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
            if all * (1.0 - rate / before) + count_to_f64(most) > queue && packets.full > 0 {
                let size = units::format_size(queue as u64);
                return Err(format!(
                    "messages are longer than the queue of {size} at {} holds, and no form says what that costs",
                    name(hop)
                ));
            }
        }
    }
    Ok(())
}

/// Calls at moments of their own wait behind one that waits for a lost datagram.
pub(super) fn behind_lost(s: &Situation<'_>, paced: bool, loss: f64) -> Result<(), String> {
    if s.transport.stream || !paced || loss <= 0.0 {
        return Ok(());
    }
    Err("calls wait behind one whose datagram was lost, and no form says how long".into())
}

/// A mean over so few calls that come at random, with waits of that share of their service, that chance decides.
pub(super) fn few_calls(waits: f64, chance: f64) -> Result<(), String> {
    if waits * chance <= 0.5 {
        return Ok(());
    }
    Err("so few calls come at random that their mean is chance".into())
}

/// A mean over so few draws, with that variation, that may be so far off by chance.
pub(super) fn few_draws(variation: f64, off: f64, draws: f64) -> Result<(), String> {
    // Rare long draws make a mean of few of them anything but normal.
    const MANY_DRAWS: f64 = 30.0;
    let is_skewed = draws < MANY_DRAWS * variation * variation;
    if off <= LITTLE || (off <= 0.25 && !is_skewed) {
        return Ok(());
    }
    Err("so few times are drawn that their mean is chance".into())
}

/// Calls over datagrams that are answered later than their caller waits: they count as lost.
pub(super) fn lost_by_time(s: &Situation<'_>, way_s: f64, longest_s: f64) -> Result<(), String> {
    const WAITS_S: f64 = 1.0;
    let waits_s = s.part.stack.seconds("timeout").unwrap_or(WAITS_S);
    if s.transport.stream || way_s + longest_s < waits_s {
        return Ok(());
    }
    Err("answers may come later than callers of datagrams wait for them, and such calls count as lost".into())
}

/// Pairs that meet at what is busiest at random, or in turns that are no calls.
pub(super) fn pairs_that_meet(s: &Situation<'_>, busy: f64, is_random: bool) -> Result<(), String> {
    if s.part.replicas > 1 && busy > LITTLE && is_random {
        return Err(
            "pairs meet at random at what they share, and no form says how long they wait there"
                .into(),
        );
    }
    Ok(())
}

/// Messages whose windows open for a good part of the time: how far depends on when the calls before were acknowledged.
pub(super) fn opening_of_calls(window_s: f64, total_s: f64) -> Result<(), String> {
    const MUCH: f64 = 0.15;
    if window_s <= MUCH * total_s {
        return Ok(());
    }
    Err(
        "windows open for a good part of the time, and no form says how far each call opens them"
            .into(),
    )
}

/// Calls that wait so long for those of other pairs, or come so often.
pub(super) fn other_pairs(
    s: &Situation<'_>,
    [shared_s, alone_s]: [f64; 2],
    loss: f64,
) -> Result<(), String> {
    if s.transport.stream && shared_s > LEAST_TIMEOUT_S / 2.0 && shared_s > 0.5 * alone_s {
        return Err(
            "calls of several pairs wait for each other longer than timers wait for them".into(),
        );
    }
    if !s.transport.stream && shared_s > 0.0 && loss > 0.0 {
        return Err("a pair that waits for a lost datagram leaves the others alone, and no form says how often".into());
    }
    Ok(())
}

/// Messages longer than a first window, with pauses in which a window that was opened closes again (RFC 5681 section 4.1).
pub(super) fn idle_window(s: &Situation<'_>, longest: u64) -> Result<(), String> {
    let first = s
        .transport
        .initial_segments
        .saturating_mul(s.transport.segment_bytes);
    if s.transport.stream && longest > first {
        return Err(
            "a pause between calls closes the window again for messages of so many segments: no form says how often"
                .into(),
        );
    }
    Ok(())
}

/// Several pairs whose calls come at moments of their own, and keep what is busiest with them busy for that share of the time.
pub(super) fn pairs_at_random(s: &Situation<'_>, busy: f64) -> Result<(), String> {
    if s.part.replicas > 1 && busy > LITTLE {
        return Err(
            "calls of several pairs come at moments of their own: no form says how long they wait for each other"
                .into(),
        );
    }
    Ok(())
}

/// Connections alone wait for what closes the ones before from so much of their time on.
pub(super) const CONNECTIONS_ALONE: f64 = 0.3;
/// Calls do at once.
pub(super) const CONNECTIONS_OF_CALLS: f64 = LITTLE;

/// Connections whose links are still busy with the ones before, or with those of other pairs, for more than that share of their time.
pub(super) fn connections(s: &Situation<'_>, time_s: f64, most: f64) -> Result<(), String> {
    // SYN, ACK, the introduction, FIN; the same back.
    const PACKETS: f64 = 4.0;
    let each = |path: &PathModel| {
        path.bottleneck(64)
            .and_then(|hop| hop.serialisation_s(64))
            .unwrap_or(0.0)
    };
    let busy_s = PACKETS * each(&s.there).max(each(&s.back)) * f64::from(s.part.replicas);
    if s.part.stack.facts.form == ClosedForm::Quic && busy_s > LITTLE * time_s {
        return Err("a handshake of QUIC takes a part of the time to pass, and no form says how many packets it has".into());
    }
    if busy_s > most * time_s {
        return Err(
            "no form says how long connections wait for what closes the ones before".into(),
        );
    }
    Ok(())
}

/// Why no form covers turns of so long, of which that share meets a loss, and which may open a connection each.
pub(super) fn turns(
    s: &Situation<'_>,
    turn_s: f64,
    loss: f64,
    opens: bool,
    made: f64,
) -> Result<(), String> {
    ways::unsteady(s)?;
    ways::beside_turns(s)?;
    stacks::options(s)?;
    if let Some(host) = s.busy_with_others() {
        return Err(busy(host));
    }
    for path in [&s.there, &s.back] {
        // A queue grows where packets come faster than they leave: at the bottleneck.
        let narrowest = path
            .bottleneck(s.transport.segment_bytes + s.transport.header_bytes)
            .into_iter();
        if let Some(hop) = narrowest.chain(&path.hops).find(|hop| s.load.carries(hop)) {
            let most = hop
                .queue_bytes
                .zip(hop.rate_bit_s)
                .and_then(|(queue, rate)| pipe::queueing_delay_s(queue, rate));
            let most = most.map_or_else(String::new, |s| {
                format!(", {} when it is full", units::format_time(s))
            });
            return Err(format!(
                "what others send waits in the queue at {}{most}: no form says how full it is",
                name(hop)
            ));
        }
    }
    let timeout_s = if opens {
        FIRST_TIMEOUT_S
    } else {
        LEAST_TIMEOUT_S
    }
    .max(2.0 * turn_s);
    let made = made * f64::from(s.part.replicas);
    let is_seldom = loss * made <= SELDOM || timeout_s <= LITTLE * turn_s * made;
    if s.transport.stream && (loss * timeout_s > LITTLE * turn_s || !is_seldom) {
        return Err(format!(
            "{} of the turns meet a loss and wait for a timer: a mean of so few is no figure",
            percent(loss)
        ));
    }
    Ok(())
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn name(hop: &HopModel) -> String {
    format!("{} -> {}", hop.ends.0, hop.ends.1)
}
