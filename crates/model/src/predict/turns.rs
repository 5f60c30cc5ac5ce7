//! What goes in turns: calls, a unit there and one back, connections. Their time is the way there, what is done there,
//! and the way back.

use super::situation::{Situation, Values, loss_of};
use crate::path::Path;
use crate::prediction::{Answer, Quantity, Unit};
use crate::response::{copy_s, message_s, random_arrivals_wait_s};
use crate::start::{Transfer, send};
use crate::{pipe, real};
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use stackline_core::catalogue::ClosedForm;
use stackline_core::distribution::Distribution;
use stackline_core::program::{DelayArgument, SizeArgument};

const HOPS: &str = "store and forward, packets following one another";

/// A loop of calls.
pub(super) struct Calls<'s> {
    pub(super) calls: &'s [(SizeArgument, SizeArgument)],
    pub(super) arrival: Option<&'s DelayArgument>,
    pub(super) service: &'s [DelayArgument],
    pub(super) fresh: bool,
}

/// Where the time of a message goes.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    total_s: f64,
    propagation_s: f64,
    copying_s: f64,
    window_s: f64,
}

impl Spent {
    fn plus(self, other: Self) -> Self {
        Self {
            total_s: self.total_s + other.total_s,
            propagation_s: self.propagation_s + other.propagation_s,
            copying_s: self.copying_s + other.copying_s,
            window_s: self.window_s + other.window_s,
        }
    }

    fn over(self, n: f64) -> Self {
        Self {
            total_s: self.total_s / n,
            propagation_s: self.propagation_s / n,
            copying_s: self.copying_s / n,
            window_s: self.window_s / n,
        }
    }

    fn serialisation_s(&self) -> f64 {
        (self.total_s - self.propagation_s - self.copying_s - self.window_s).max(0.0)
    }
}

/// One message over a path, with the round trips it waits when it is larger than the window.
fn message(s: &Situation<'_>, path: &Path, acks: &Path, bytes: u64, fresh: bool) -> Option<Spent> {
    let packets = s.packets(bytes);
    let through = message_s(path, &packets)?;
    let copies = |bytes| copy_s(&path.sender, bytes) + copy_s(&path.receiver, bytes);
    let copying_s = real(packets.full) * copies(packets.full_bytes) + copies(packets.last_bytes);
    let (segment, header) = (s.transport.segment_bytes, s.transport.header_bytes);
    let first = if fresh { Some(real(s.transport.initial_segments.saturating_mul(segment))) } else { None };
    let window = [first, s.transport.window_bytes].into_iter().flatten().reduce(f64::min);
    let mut window_s = 0.0;
    if let Some(window) = window.filter(|window| s.transport.stream && real(bytes) > *window) {
        let hop = path.bottleneck(segment + header);
        let rate = hop.and_then(|hop| Some(8.0 * real(segment) / hop.serialisation_s(segment + header)?));
        let transfer = Transfer {
            bytes,
            segment_bytes: 1,
            initial_segments: bytes_of(window),
            rate_bit_s: rate,
            rtt_s: s.round_trip_s(path, acks, segment + header)?,
            window_bytes: s.transport.window_bytes,
        };
        // What it takes longer than without waiting.
        window_s = (send(&transfer)?.time_s - rate.map_or(0.0, |rate| 8.0 * real(bytes) / rate)).max(0.0);
    }
    let total_s = through + window_s;
    Some(Spent { total_s, propagation_s: path.delay_s(), copying_s: copying_s.min(through), window_s })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float to int casts saturate")]
fn bytes_of(window: f64) -> u64 {
    (window as u64).max(1)
}

const STUCK: &str = "nothing gets through a link of rate zero";

/// A loop of calls: the mean response time.
pub(super) fn calls(s: &Situation<'_>, calls: &Calls<'_>) -> Result<Answer, String> {
    let (mut spent, mut met) = (Spent::default(), 1.0);
    for (request, response) in calls.calls {
        let (request, response) = (s.size(*request)?, s.size(*response)?);
        let there = message(s, &s.there, &s.back, request, calls.fresh).ok_or(STUCK)?;
        let back = message(s, &s.back, &s.there, response, calls.fresh).ok_or(STUCK)?;
        spent = spent.plus(there).plus(back);
        met *=
            (1.0 - loss_of(&s.there, &s.packets(request), None)) * (1.0 - loss_of(&s.back, &s.packets(response), None));
    }
    let n = real(calls.calls.len().max(1) as u64);
    let spent = spent.over(n);
    let service_s = s.waits_s(calls.service)? / n;
    let served_s = spent.total_s + service_s;
    let mut assumptions = s.assumptions();
    let waiting_s = waiting_s(s, calls, served_s, &mut assumptions)?;
    let loss = 1.0 - libm::pow(met, 1.0 / n);
    let mut values = values(s, &spent);
    values.add("service", Some(service_s).filter(|t| *t > 0.0), Unit::Seconds, "mean of what the responder waits");
    values.add(
        "waiting for earlier calls",
        Some(waiting_s).filter(|t| *t > 0.0),
        Unit::Seconds,
        "Pollaczek and Khinchine, M/D/1",
    );
    lossy(s, loss, &mut values, &mut assumptions);
    loaded(s, &mut values, &mut assumptions);
    let parts = [("service", service_s), ("waiting", waiting_s)];
    Ok(Answer {
        quantity: Quantity::Response,
        value: served_s + waiting_s,
        limit: largest(&spent, &parts),
        values: values.0,
        assumptions,
        moved: None,
    })
}

/// How long a call waits for those before it, when calls have intended moments.
fn waiting_s(s: &Situation<'_>, calls: &Calls<'_>, served_s: f64, said: &mut Vec<String>) -> Result<f64, String> {
    let Some(argument) = calls.arrival else { return Ok(0.0) };
    let Some(interval_s) = s.wait_s(argument)? else { return Ok(0.0) };
    let pass_s = served_s * real(calls.calls.len().max(1) as u64);
    let drawn = match argument {
        DelayArgument::Drawn(distribution) => Some(distribution),
        DelayArgument::Timing(index) => s.part.data.timings.get(*index),
    };
    if pass_s >= interval_s {
        return Err(
            "calls are intended faster than they are answered: response times grow as long as it runs".to_string()
        );
    }
    match drawn {
        Some(Distribution::Exponential(_)) if calls.calls.len() == 1 => {
            said.push("calls come at random (exponential) and wait for those before them".to_string());
            random_arrivals_wait_s(served_s, interval_s).ok_or_else(|| STUCK.to_string())
        }
        Some(Distribution::Constant(_)) | None => Ok(0.0),
        Some(other) => {
            said.push(alloc::format!(
                "with intervals of {other} a call that waits for the one before is not in the form"
            ));
            Ok(0.0)
        }
    }
}

/// A unit there and one back, in turn: the throughput of both.
pub(super) fn exchange(
    s: &Situation<'_>,
    there: SizeArgument,
    back: SizeArgument,
    waits: &[DelayArgument],
) -> Result<Answer, String> {
    let (there, back) = (s.size(there)?, s.size(back)?);
    let out = message(s, &s.there, &s.back, there, false).ok_or(STUCK)?;
    let spent = out.plus(message(s, &s.back, &s.there, back, false).ok_or(STUCK)?);
    let waits_s = s.waits_s(waits)?;
    let turn_s = spent.total_s + waits_s;
    if turn_s <= 0.0 {
        return Err("nothing on the way takes time".to_string());
    }
    let loss =
        1.0 - (1.0 - loss_of(&s.there, &s.packets(there), None)) * (1.0 - loss_of(&s.back, &s.packets(back), None));
    let (mut values, mut assumptions) = (values(s, &spent), s.assumptions());
    values.add("one turn", turn_s, Unit::Seconds, "there, waits, back");
    lossy(s, loss, &mut values, &mut assumptions);
    loaded(s, &mut values, &mut assumptions);
    let value = f64::from(s.part.replicas) * 8.0 * real(there + back) / turn_s;
    let moved = Some((value * turn_s / 8.0, turn_s));
    let limit = largest(&spent, &[("pace", waits_s)]);
    Ok(Answer { quantity: Quantity::Throughput, value, limit, values: values.0, assumptions, moved })
}

/// A loop of connections: the time of connect and disconnect.
pub(super) fn connects(s: &Situation<'_>, arrival: Option<&DelayArgument>) -> Result<Answer, String> {
    let time_s = s.connect_s().ok_or(STUCK)?;
    let trips = real(s.transport.connect.len() as u64);
    let propagation_s = trips * (s.there.delay_s() + s.back.delay_s());
    let spent = Spent { total_s: time_s, propagation_s, ..Spent::default() };
    if let Some(interval_s) = arrival.map(|argument| s.wait_s(argument)).transpose()?.flatten()
        && time_s >= interval_s
    {
        return Err("connections are intended faster than they open: connect times grow as long as it runs".to_string());
    }
    let (mut values, mut assumptions) = (values(s, &spent), s.assumptions());
    values.add("round trips waited for", trips, Unit::Count, "the stack's control exchanges");
    assumptions.push(match s.part.stack.facts.form {
        ClosedForm::Udp => "a control datagram and its answer to connect, the same to disconnect".to_string(),
        ClosedForm::Quic => "connecting waits one round trip; disconnecting waits for nothing".to_string(),
        _ => "connecting waits for SYN and SYN/ACK; disconnecting (close) waits for nothing".to_string(),
    });
    let (there, back) = s.transport.connect.first().copied().unwrap_or_default();
    let loss = 1.0 - libm::pow((1.0 - s.there.loss_of(there, None)) * (1.0 - s.back.loss_of(back, None)), trips);
    lossy(s, loss, &mut values, &mut assumptions);
    loaded(s, &mut values, &mut assumptions);
    let limit = largest(&spent, &[]);
    Ok(Answer { quantity: Quantity::Connect, value: time_s, limit, values: values.0, assumptions, moved: None })
}

fn values(s: &Situation<'_>, spent: &Spent) -> Values {
    let mut values = Values::new();
    let rtt_s = s.round_trip_s(&s.there, &s.back, s.transport.ack_bytes);
    values.add("round trip time", rtt_s, Unit::Seconds, "a bare packet there and back");
    values.add("propagation", spent.propagation_s, Unit::Seconds, "sum of the links' delays, there and back");
    values.add("serialisation", spent.serialisation_s(), Unit::Seconds, HOPS);
    let there = |time: f64| Some(time).filter(|time| *time > 0.0);
    values.add("copying", there(spent.copying_s), Unit::Seconds, "Zwaenepoel 1985, section 2");
    values.add("waiting for the window", there(spent.window_s), Unit::Seconds, "RFC 5681 section 3.1, round by round");
    values
}

/// What is largest is what binds.
fn largest(spent: &Spent, others: &[(&'static str, f64)]) -> &'static str {
    let mut all = vec![
        ("propagation", spent.propagation_s),
        ("rate", spent.serialisation_s()),
        ("host", spent.copying_s),
        ("window", spent.window_s),
    ];
    all.extend_from_slice(others);
    all.into_iter().reduce(|most, next| if next.1 > most.1 { next } else { most }).map_or("rate", |(name, _)| name)
}

fn lossy(s: &Situation<'_>, loss: f64, values: &mut Values, said: &mut Vec<String>) {
    if loss <= 0.0 {
        return;
    }
    values.add("turns that meet a loss", loss, Unit::Share, "1 - product of (1 - p) over its packets");
    said.push(if s.transport.stream {
        "the timeouts after a loss are not in the figure: it is of turns that meet none".to_string()
    } else {
        "a lost datagram ends in a lost call and is in no response time".to_string()
    });
}

/// Bulk transfers on the same way fill its queues.
fn loaded(s: &Situation<'_>, values: &mut Values, said: &mut Vec<String>) {
    if !s.there.hops.iter().chain(&s.back.hops).any(|hop| s.load.carries(hop)) {
        return;
    }
    let packet = s.transport.segment_bytes + s.transport.header_bytes;
    // A queue grows where packets come faster than they leave: at the bottleneck.
    let full = |path: &Path| match path.bottleneck(packet).filter(|hop| s.load.carries(hop)) {
        None => Some(0.0),
        Some(hop) => pipe::queueing_delay_s(hop.queue_bytes?, hop.rate_bit_s?),
    };
    let wait_s = full(&s.there).zip(full(&s.back)).map(|(there, back)| there + back);
    values.add(
        "wait when the queues are full",
        wait_s,
        Unit::Seconds,
        "8 B / rate at the bottleneck, where bulk transfers go over it",
    );
    said.push("the figure is with empty queues; transfers at the same time fill them".to_string());
}
