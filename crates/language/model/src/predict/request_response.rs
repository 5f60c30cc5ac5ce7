//! Predicts workloads that go in turns: calls, a unit in each direction, connections. A turn takes the time of the
//! path there, the work done there, and the path back.

use super::situation::{IntermediateValues, Situation, loss_of};
use super::{error_interval, uncovered};
use crate::count_to_f64;
use crate::path::PathModel;
use crate::prediction::{FigureUnit, PredictedFigure, PredictedQuantity};
use crate::response::{copy_s, message_s, random_arrivals_wait_s};
use crate::slow_start::{SlowStartTransfer, time_transfer};
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use stackline_core::catalogue::ClosedForm;
use stackline_core::distribution::Distribution;
use stackline_core::procedure::{CountArgument, DelayArgument, SizeArgument};

/// The source of values from the store-and-forward formula.
const HOPS: &str = "store and forward, packets back to back";

/// A loop of calls.
pub(super) struct CallLoop<'s> {
    /// Sizes of request and response of each call in a pass.
    pub(super) calls: &'s [(SizeArgument, SizeArgument)],
    /// The delay that paces the calls, if they have intended moments.
    pub(super) arrival: Option<&'s DelayArgument>,
    /// The delays at the responder.
    pub(super) service: &'s [DelayArgument],
    /// Whether each call opens a connection of its own.
    pub(super) fresh: bool,
}

/// The parts of a message's time, s.
#[derive(Clone, Copy, Debug, Default)]
struct MessageTimeSplit {
    total_s: f64,
    propagation_s: f64,
    /// Copying between memory and interfaces at both hosts.
    copying_s: f64,
    /// Waiting for the window to open.
    window_s: f64,
}

impl MessageTimeSplit {
    fn plus(self, other: Self) -> Self {
        Self {
            total_s: self.total_s + other.total_s,
            propagation_s: self.propagation_s + other.propagation_s,
            copying_s: self.copying_s + other.copying_s,
            window_s: self.window_s + other.window_s,
        }
    }

    fn times(self, n: f64) -> Self {
        Self {
            total_s: self.total_s * n,
            propagation_s: self.propagation_s * n,
            copying_s: self.copying_s * n,
            window_s: self.window_s * n,
        }
    }

    fn over(self, n: f64) -> Self {
        self.times(1.0 / n)
    }

    /// Transmission onto links, s: what is left of the total.
    fn serialisation_s(&self) -> f64 {
        (self.total_s - self.propagation_s - self.copying_s - self.window_s).max(0.0)
    }
}

/// The time of one message over a path, with the round trips that it waits when it is larger than the window `first`,
/// in bytes, with which its sender begins. Without `first` only the transport's own window limits it.
fn message(
    s: &Situation<'_>,
    path: &PathModel,
    acks: &PathModel,
    bytes: u64,
    first: Option<f64>,
) -> Option<MessageTimeSplit> {
    let packets = s.packets(bytes);
    let through = message_s(path, &packets)?;
    let copies = |bytes| copy_s(&path.sender, bytes) + copy_s(&path.receiver, bytes);
    let copying_s =
        count_to_f64(packets.full) * copies(packets.full_bytes) + copies(packets.last_bytes);
    let (segment, header) = (s.transport.segment_bytes, s.transport.header_bytes);
    let window = [first, s.transport.window_bytes]
        .into_iter()
        .flatten()
        .reduce(f64::min);
    let mut window_s = 0.0;
    if let Some(window) =
        window.filter(|window| s.transport.stream && count_to_f64(bytes) > *window)
    {
        let hop = path.bottleneck(segment + header);
        let rate = hop.and_then(|hop| {
            Some(8.0 * count_to_f64(segment) / hop.serialisation_s(segment + header)?)
        });
        let transfer = SlowStartTransfer {
            bytes,
            segment_bytes: 1,
            initial_segments: bytes_of(window),
            rate_bit_s: rate,
            rtt_s: s.round_trip_s(path, acks, segment + header)?,
            window_bytes: s.transport.window_bytes,
        };
        // What the transfer takes longer than it would without waiting.
        window_s = (time_transfer(&transfer)?.time_s
            - rate.map_or(0.0, |rate| 8.0 * count_to_f64(bytes) / rate))
        .max(0.0);
    }
    let total_s = through + window_s;
    Some(MessageTimeSplit {
        total_s,
        propagation_s: path.delay_s(),
        copying_s: copying_s.min(through),
        window_s,
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float-to-int casts saturate"
)]
fn bytes_of(window: f64) -> u64 {
    (window as u64).max(1)
}

/// The mean time of a message over the calls of a connection, whose window opens with them. With `fresh` each call has
/// a connection of its own and begins with the initial window.
fn message_of_calls(
    s: &Situation<'_>,
    path: &PathModel,
    acks: &PathModel,
    bytes: u64,
    fresh: bool,
) -> Option<MessageTimeSplit> {
    let first = count_to_f64(
        s.transport
            .initial_segments
            .saturating_mul(s.transport.segment_bytes),
    );
    if fresh || !s.transport.stream {
        return message(s, path, acks, bytes, Some(first));
    }
    let count = s.count(CountArgument::Count, bytes).unwrap_or(u64::MAX);
    let (mut window, mut opening) = (first, 0);
    let mut all = MessageTimeSplit::default();
    while window < count_to_f64(bytes) && opening < count {
        all = all.plus(message(s, path, acks, bytes, Some(window))?);
        // The window grows by what was sent and acknowledged.
        window += count_to_f64(bytes);
        opening += 1;
    }
    let open = message(s, path, acks, bytes, None)?;
    let n = count_to_f64(count.min(1 << 40));
    Some(all.plus(open.times(n - count_to_f64(opening))).over(n))
}

/// The reason why a path with a rate of zero has no prediction.
const STUCK: &str = "a link with a rate of zero carries nothing";

/// The totals of one pass of a loop of calls.
struct CallTotals {
    spent: MessageTimeSplit,
    /// Probability that no packet of them is lost.
    no_loss_chance: f64,
    /// Time for which the busiest link or processor is busy with them, s.
    busiest_s: f64,
    /// The longest message, bytes.
    longest: u64,
    /// Whether each message is a single packet.
    is_alone: bool,
}

/// Times of calls from request to response, without waiting for each other.
struct ServedCalls {
    /// The mean, s.
    mean_s: f64,
    /// The variance, s^2; infinite where it does not exist.
    variance_s2: f64,
    /// The longest time of a pass of calls, s.
    longest_s: f64,
}

impl ServedCalls {
    /// The coefficient of variation: standard deviation over mean.
    fn variation(&self) -> f64 {
        libm::sqrt(self.variance_s2) / self.mean_s
    }
}

/// The variance of these delays and of the jitter in both directions, s^2.
fn variance_s2(s: &Situation<'_>, waits: &[DelayArgument]) -> f64 {
    s.waits_variance_s2(waits).unwrap_or(f64::INFINITY) + jitter_variance_s2(s)
}

fn jitter_variance_s2(s: &Situation<'_>) -> f64 {
    let hops = s.there.hops.iter().chain(&s.back.hops);
    hops.filter_map(|hop| hop.jitter.as_ref())
        .map(|jitter| jitter.distribution.variance().unwrap_or(f64::INFINITY))
        .sum()
}

/// Number of turns of a pair in a run, when one is made every `every_s` seconds and a pass has `a_pass` of them.
fn made(s: &Situation<'_>, every_s: f64, a_pass: f64) -> f64 {
    let limit_s = s.measurement.time_limit.map(|time| time.seconds());
    let in_time = limit_s.map_or(f64::INFINITY, |limit_s| (limit_s / every_s).max(1.0));
    let counted = s
        .count(CountArgument::Count, 1)
        .map_or(f64::INFINITY, count_to_f64);
    (counted * a_pass).min(in_time)
}

/// Adds up the calls of one pass.
fn total_calls(s: &Situation<'_>, calls: &CallLoop<'_>) -> Result<CallTotals, String> {
    let (mut spent, mut no_loss_chance, mut busiest_s, mut longest) =
        (MessageTimeSplit::default(), 1.0, 0.0, 0);
    let mut is_alone = true;
    for (request, response) in calls.calls {
        let (request, response) = (s.size(*request)?, s.size(*response)?);
        uncovered::messages(s, [request, response])?;
        longest = longest.max(request).max(response);
        is_alone &= s.packets(request).full + s.packets(response).full == 0;
        busiest_s += busy_s(s, request, response).ok_or(STUCK)?;
        let there = message_of_calls(s, &s.there, &s.back, request, calls.fresh).ok_or(STUCK)?;
        let back = message_of_calls(s, &s.back, &s.there, response, calls.fresh).ok_or(STUCK)?;
        spent = spent.plus(there).plus(back);
        no_loss_chance *= (1.0 - loss_of(&s.there, &s.packets(request), None))
            * (1.0 - loss_of(&s.back, &s.packets(response), None));
    }
    Ok(CallTotals {
        spent,
        no_loss_chance,
        busiest_s,
        longest,
        is_alone,
    })
}

/// The mean times of a call of a loop, s.
struct CallTimes {
    spent: MessageTimeSplit,
    service_s: f64,
    /// Time for which other pairs keep the busiest resource busy before it.
    shared_s: f64,
    served: ServedCalls,
    /// Time that it waits for earlier calls.
    waiting_s: f64,
    /// Share of the time in which a call is in progress.
    load: f64,
    /// Number of calls of a pair in a run.
    made: f64,
    /// Whether calls have intended moments.
    paced: bool,
    /// Share of a call's time in which the busiest resource is busy with the calls of all pairs.
    busy: f64,
    /// Probability that a packet of the call is lost.
    loss: f64,
}

impl CallTimes {
    fn from_seconds(
        s: &Situation<'_>,
        calls: &CallLoop<'_>,
        totals: &CallTotals,
        said: &mut Vec<String>,
    ) -> Result<Self, String> {
        let n = count_to_f64(calls.calls.len().max(1) as u64);
        let spent = totals.spent.over(n);
        let service_s = s.waits_s(calls.service)? / n;
        uncovered::sizes_of_turns(s, spent.total_s + service_s)?;
        uncovered::jitter_of_turns(s, spent.total_s + service_s, totals.is_alone)?;
        uncovered::lost_by_time(s, spent.total_s, s.longest_waits_s(calls.service))?;
        let interval_s = calls
            .arrival
            .map(|argument| s.wait_s(argument))
            .transpose()?
            .flatten();
        let all_s = f64::from(s.part.replicas) * totals.busiest_s;
        if let Some(interval_s) = interval_s {
            let alone_s = interval_s.min(n * (spent.total_s + service_s));
            uncovered::pairs_at_random(s, all_s / alone_s)?;
            uncovered::idle_window(s, totals.longest)?;
        }
        // Pairs that call one after the other keep the busiest resource busy all the time.
        let shared_s = if interval_s.is_some() {
            0.0
        } else {
            (all_s / n - spent.total_s - service_s).max(0.0)
        };
        let served = ServedCalls {
            mean_s: spent.total_s + service_s + shared_s,
            variance_s2: variance_s2(s, calls.service) / n,
            longest_s: spent.total_s * n + s.longest_waits_s(calls.service),
        };
        let (waiting_s, load) = waiting_s(s, calls, &served, said)?;
        let every_s = interval_s.map_or(served.mean_s, |interval_s| interval_s / n);
        Ok(Self {
            spent,
            service_s,
            shared_s,
            waiting_s,
            load,
            made: made(s, every_s, n),
            paced: interval_s.is_some(),
            busy: all_s / n / served.mean_s,
            loss: 1.0 - libm::pow(totals.no_loss_chance, 1.0 / n),
            served,
        })
    }

    /// The reason why no formula covers the calls, if none does.
    fn covered(&self, s: &Situation<'_>, calls: &CallLoop<'_>, longest: u64) -> Result<(), String> {
        let served_s = self.served.mean_s;
        uncovered::turns(s, served_s, self.loss, calls.fresh, self.made)?;
        if calls.fresh {
            uncovered::connections(s, served_s, uncovered::CONNECTIONS_OF_CALLS)?;
        }
        uncovered::frames_of_turns(s, served_s, longest)?;
        uncovered::opening_of_calls(self.spent.window_s, served_s)?;
        let parts = [
            self.spent.copying_s,
            self.shared_s,
            s.longest_waits_s(calls.service),
        ];
        uncovered::long_messages(s, longest, served_s, parts)?;
        let is_random = self.served.variance_s2 > 0.0 || self.spent.copying_s > 0.0;
        uncovered::pairs_that_meet(s, self.busy, is_random)?;
        uncovered::behind_lost(s, self.paced, self.loss, self.made)?;
        uncovered::other_pairs(s, [self.shared_s, served_s - self.shared_s], self.loss)
    }

    /// The intermediate values of the prediction.
    fn values(&self, s: &Situation<'_>) -> IntermediateValues {
        let mut values = values(s, &self.spent);
        let mut add = |name, value: f64, unit, source| {
            values.add(name, Some(value).filter(|value| *value > 0.0), unit, source);
        };
        add(
            "service",
            self.service_s,
            FigureUnit::Seconds,
            "mean delay at the responder",
        );
        add(
            "coefficient of variation",
            self.served.variation(),
            FigureUnit::Share,
            "a whole call's duration: standard deviation / mean",
        );
        add(
            "waiting for earlier calls",
            self.waiting_s,
            FigureUnit::Seconds,
            "Pollaczek and Khinchine, rho S (1 + c^2) / (2 (1 - rho))",
        );
        add(
            "waiting for other pairs",
            self.shared_s,
            FigureUnit::Seconds,
            "n D - unloaded time, Lazowska et al. 1984, ch. 5",
        );
        values
    }
}

/// Predicts the mean response time of a loop of calls.
pub(super) fn calls(s: &Situation<'_>, calls: &CallLoop<'_>) -> Result<PredictedFigure, String> {
    let totals = total_calls(s, calls)?;
    let mut assumptions = s.assumptions();
    let times = CallTimes::from_seconds(s, calls, &totals, &mut assumptions)?;
    let (served, variation) = (&times.served, times.served.variation());
    let chance = error_interval::of_waits(times.made, times.load, variation);
    uncovered::few_calls(times.waiting_s / served.mean_s, chance)?;
    let draws = times.made * f64::from(s.part.replicas);
    let spread_s = error_interval::of_draws(served.variance_s2, draws);
    uncovered::few_draws(variation, spread_s / served.mean_s, times.made)?;
    times.covered(s, calls, totals.longest)?;
    let mut values = times.values(s);
    lossy(s, times.loss, &mut values, &mut assumptions);
    let parts = [
        ("service", times.service_s),
        ("waiting", times.waiting_s + times.shared_s),
    ];
    let value = served.mean_s + times.waiting_s;
    Ok(PredictedFigure {
        quantity: PredictedQuantity::Response,
        value,
        interval: error_interval::of_turns(value, times.waiting_s, chance, spread_s),
        limit: largest(&times.spent, &parts),
        values: values.0,
        assumptions,
        moved: None,
    })
}

/// The longest time for which a call keeps one link or processor busy, s.
fn busy_s(s: &Situation<'_>, request: u64, response: u64) -> Option<f64> {
    let mut busiest = 0.0_f64;
    for (path, bytes) in [(&s.there, request), (&s.back, response)] {
        let packets = s.packets(bytes);
        for hop in &path.hops {
            let last = hop.serialisation_s(packets.last_bytes)?;
            let full = if packets.full > 0 {
                hop.serialisation_s(packets.full_bytes)?
            } else {
                0.0
            };
            busiest = busiest.max(count_to_f64(packets.full) * full + last);
        }
    }
    let copies = |at: fn(&PathModel) -> &stackline_core::network::NetworkInterface,
                  path: &PathModel,
                  bytes: u64| {
        let packets = s.packets(bytes);
        count_to_f64(packets.full) * copy_s(at(path), packets.full_bytes)
            + copy_s(at(path), packets.last_bytes)
    };
    let initiator = copies(|path| &path.sender, &s.there, request)
        + copies(|path| &path.receiver, &s.back, response);
    let responder = copies(|path| &path.receiver, &s.there, request)
        + copies(|path| &path.sender, &s.back, response);
    Some(busiest.max(initiator).max(responder))
}

/// The mean wait of a call for earlier ones, s, when calls have intended moments, and the share of the time in which
/// one is in progress.
fn waiting_s(
    s: &Situation<'_>,
    calls: &CallLoop<'_>,
    served: &ServedCalls,
    said: &mut Vec<String>,
) -> Result<(f64, f64), String> {
    let Some((argument, interval_s)) = calls
        .arrival
        .and_then(|argument| Some((argument, s.wait_s(argument).transpose()?)))
    else {
        return Ok((0.0, 0.0));
    };
    let interval_s = interval_s?;
    let pass_s = served.mean_s * count_to_f64(calls.calls.len().max(1) as u64);
    if pass_s >= interval_s {
        return Err(
            "calls are made faster than they are answered: response times keep growing throughout the run"
                .to_string(),
        );
    }
    let drawn = s.drawn(argument);
    if drawn.is_none_or(|drawn| drawn.range().0 >= served.longest_s) {
        return Ok((0.0, 0.0));
    }
    match drawn {
        Some(Distribution::Exponential(_)) if calls.calls.len() == 1 => {
            said.push(
                "calls arrive at random (exponential intervals) and wait for earlier calls"
                    .to_string(),
            );
            let wait_s = random_arrivals_wait_s(served.mean_s, served.variance_s2, interval_s)
                .filter(|wait_s| wait_s.is_finite())
                .ok_or(
                    "service times have no finite variance, so the wait for earlier calls has no finite mean",
                )?;
            Ok((wait_s, pass_s / interval_s))
        }
        Some(other) => Err(alloc::format!(
            "calls with intervals of {other} sometimes wait for earlier ones, and no closed-form formula gives the delay"
        )),
        None => Ok((0.0, 0.0)),
    }
}

/// Predicts the throughput of a unit in each direction, in turn.
pub(super) fn exchange(
    s: &Situation<'_>,
    there: SizeArgument,
    back: SizeArgument,
    waits: &[DelayArgument],
) -> Result<PredictedFigure, String> {
    let (there, back) = (s.size(there)?, s.size(back)?);
    let out = message(s, &s.there, &s.back, there, None).ok_or(STUCK)?;
    let spent = out.plus(message(s, &s.back, &s.there, back, None).ok_or(STUCK)?);
    let waits_s = s.waits_s(waits)?;
    let turn_s = spent.total_s + waits_s;
    if turn_s <= 0.0 {
        return Err("nothing on the path takes time".to_string());
    }
    let alone = s.packets(there).full + s.packets(back).full == 0;
    uncovered::sizes_of_turns(s, turn_s)?;
    uncovered::jitter_of_turns(s, turn_s, alone)?;
    uncovered::messages(s, [there, back])?;
    let loss = 1.0
        - (1.0 - loss_of(&s.there, &s.packets(there), None))
            * (1.0 - loss_of(&s.back, &s.packets(back), None));
    let (mut values, mut assumptions) = (values(s, &spent), s.assumptions());
    values.add(
        "one turn",
        turn_s,
        FigureUnit::Seconds,
        "there, waits, back",
    );
    let made = made(s, turn_s, 1.0);
    uncovered::turns(s, turn_s, loss, false, made)?;
    uncovered::frames_of_turns(s, turn_s, there.max(back))?;
    uncovered::opening_of_turns(s, there.max(back))?;
    let busy_s = busy_s(s, there, back).ok_or(STUCK)?;
    uncovered::pairs_that_meet(s, f64::from(s.part.replicas) * busy_s / turn_s, true)?;
    lossy(s, loss, &mut values, &mut assumptions);
    let value = f64::from(s.part.replicas) * 8.0 * count_to_f64(there + back) / turn_s;
    let moved = Some((value * turn_s / 8.0, turn_s));
    let limit = largest(&spent, &[("pace", waits_s)]);
    // The throughput has the same relative error as the time of a turn.
    let variance_s2 = variance_s2(s, waits);
    let spread = error_interval::of_draws(variance_s2, made) / turn_s;
    uncovered::few_draws(libm::sqrt(variance_s2) / turn_s, spread, made)?;
    let interval = error_interval::of_turns(value, 0.0, 0.0, value * spread);
    Ok(PredictedFigure {
        quantity: PredictedQuantity::Throughput,
        value,
        interval,
        limit,
        values: values.0,
        assumptions,
        moved,
    })
}

/// Predicts the time of connect and disconnect in a loop of connections.
pub(super) fn connects(
    s: &Situation<'_>,
    arrival: Option<&DelayArgument>,
) -> Result<PredictedFigure, String> {
    let time_s = s.connect_s().ok_or(STUCK)?;
    let trips = count_to_f64(s.transport.connect.len() as u64);
    let propagation_s = trips * (s.there.delay_s() + s.back.delay_s());
    let spent = MessageTimeSplit {
        total_s: time_s,
        propagation_s,
        ..MessageTimeSplit::default()
    };
    if let Some(interval_s) = arrival
        .map(|argument| s.wait_s(argument))
        .transpose()?
        .flatten()
        && time_s >= interval_s
    {
        return Err(
            "connections are made faster than they open: connect times keep growing throughout the run"
                .to_string(),
        );
    }
    let (mut values, mut assumptions) = (values(s, &spent), s.assumptions());
    values.add(
        "round trips waited for",
        trips,
        FigureUnit::Count,
        "the stack's control exchanges",
    );
    assumptions.push(match s.part.stack.facts.form {
        ClosedForm::Udp => {
            "connecting takes a control datagram and its answer; so does disconnecting".to_string()
        }
        ClosedForm::Quic => {
            "connecting takes one round trip; disconnecting does not wait".to_string()
        }
        _ => {
            "connecting waits for SYN and SYN/ACK; disconnecting (close) does not wait".to_string()
        }
    });
    let (there, back) = s.transport.connect.first().copied().unwrap_or_default();
    let loss = 1.0
        - libm::pow(
            (1.0 - s.there.loss_of(there, None)) * (1.0 - s.back.loss_of(back, None)),
            trips,
        );
    let made = made(s, time_s, 1.0);
    uncovered::turns(s, time_s, loss, true, made)?;
    uncovered::connections(s, time_s, uncovered::CONNECTIONS_ALONE)?;
    uncovered::jitter_of_turns(s, time_s, s.transport.stream)?;
    lossy(s, loss, &mut values, &mut assumptions);
    let limit = largest(&spent, &[]);
    let jitter_s2 = jitter_variance_s2(s) * trips;
    let spread_s = error_interval::of_draws(jitter_s2, made);
    let interval = error_interval::of_turns(time_s, 0.0, 0.0, spread_s);
    Ok(PredictedFigure {
        quantity: PredictedQuantity::Connect,
        value: time_s,
        interval,
        limit,
        values: values.0,
        assumptions,
        moved: None,
    })
}

/// The intermediate values that all turns have.
fn values(s: &Situation<'_>, spent: &MessageTimeSplit) -> IntermediateValues {
    let mut values = IntermediateValues::new();
    let rtt_s = s.round_trip_s(&s.there, &s.back, s.transport.ack_bytes);
    values.add(
        "round trip time",
        rtt_s,
        FigureUnit::Seconds,
        "an empty packet in each direction",
    );
    values.add(
        "propagation",
        spent.propagation_s,
        FigureUnit::Seconds,
        "total of the links' delays, in both directions",
    );
    values.add(
        "serialisation",
        spent.serialisation_s(),
        FigureUnit::Seconds,
        HOPS,
    );
    let there = |time: f64| Some(time).filter(|time| *time > 0.0);
    values.add(
        "copying",
        there(spent.copying_s),
        FigureUnit::Seconds,
        "Zwaenepoel 1985, section 2",
    );
    values.add(
        "waiting for the window",
        there(spent.window_s),
        FigureUnit::Seconds,
        "RFC 5681 section 3.1, round by round",
    );
    values
}

/// The name of the largest part of the time, which is the limit.
fn largest(spent: &MessageTimeSplit, others: &[(&'static str, f64)]) -> &'static str {
    let mut all = vec![
        ("propagation", spent.propagation_s),
        ("rate", spent.serialisation_s()),
        ("host", spent.copying_s),
        ("window", spent.window_s),
    ];
    all.extend_from_slice(others);
    all.into_iter()
        .reduce(|most, next| if next.1 > most.1 { next } else { most })
        .map_or("rate", |(name, _)| name)
}

/// Notes that turns with a loss are not included in the figure.
fn lossy(s: &Situation<'_>, loss: f64, values: &mut IntermediateValues, said: &mut Vec<String>) {
    if loss <= 0.0 {
        return;
    }
    values.add(
        "turns with a loss",
        loss,
        FigureUnit::Share,
        "1 - product of (1 - p) over a turn's packets",
    );
    said.push(if s.transport.stream {
        "the figure applies to turns without loss: it excludes timeouts after a loss".to_string()
    } else {
        "a lost datagram means a lost call, which the response time excludes".to_string()
    });
}
