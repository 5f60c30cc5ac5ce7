//! Checks a host's interface, clock and processor costs.

use super::figures::{delay, number, positive_rate};
use crate::check::evaluate::{LONGEST, fixed};
use crate::diagnostic::{Diagnostic, DiagnosticReport};
use crate::tree::{ClockItem, ClockKind, NodeItem, SpecValue};
use alloc::format;
use alloc::vec::Vec;
use stackline_core::network::{ClockModel, NetworkHost, NetworkInterface, Outage, ProgramCosts};
use stackline_core::plan::ProcessorShare;
use stackline_core::time::Duration;

/// Largest share of processors, in per cent: 64 processors.
const MOST_SHARE: f64 = 6400.0;
const MOST_FRAMES: u64 = 1 << 24;
/// Largest ratio between the fastest and the slowest processor.
const CPU_RANGE: f64 = 1e6;
/// Largest drift of a clock, ppm; a good clock has 1, a bad one 100.
const MOST_PPM: f64 = 100_000.0;

/// All hosts that a statement declares.
pub(super) fn resolve(item: &NodeItem, report: &mut DiagnosticReport) -> Vec<NetworkHost> {
    let (interface, clock) = (interface(item, report), clock(&item.clock, report));
    let work = work(item, report);
    let share = item
        .share
        .as_ref()
        .and_then(|value| report.keep(processor_share(value)));
    let down = item
        .down
        .as_ref()
        .and_then(|(from, to, _)| report.keep(outage(from, to.as_ref())));
    let host = |name: &crate::tree::Word| NetworkHost {
        name: name.text.clone(),
        interface: interface.clone(),
        clock: clock.clone(),
        down,
        share,
        fake: item.fake.map(|(fake, _)| fake),
        work: work.clone(),
        routes: super::static_routes::resolve(&item.routes),
    };
    item.names.iter().map(host).collect()
}

/// A share of a processor in per cent, from 1 to 64 processors.
pub(crate) fn processor_share(value: &SpecValue) -> Result<ProcessorShare, Diagnostic> {
    let percent = number(value);
    if (1.0..=MOST_SHARE).contains(&percent) {
        return Ok(ProcessorShare((percent * 10.0) as u32));
    }
    let message = format!("a processor share must be between 1% and {MOST_SHARE}%");
    Err(
        Diagnostic::error(value.span, message, format!("this is {percent}%"))
            .hint("`share 50%` is half a processor, `share 200%` is two"),
    )
}

fn outage(from: &SpecValue, to: Option<&SpecValue>) -> Result<Outage, Diagnostic> {
    let begins = delay(from, "the time when a host goes down")?;
    let ends = to
        .map(|to| delay(to, "the time when a host comes back up"))
        .transpose()?;
    if let (Some(ends), Some(to)) = (ends.filter(|ends| *ends <= begins), to) {
        let diagnostic = Diagnostic::error(
            to.span,
            "the host would come back up before it goes down",
            format!("{} s", ends.seconds()),
        );
        return Err(diagnostic.hint("for example `down from 5 s to 20 s`"));
    }
    Ok(Outage {
        from: begins,
        to: ends,
    })
}

fn interface(item: &NodeItem, report: &mut DiagnosticReport) -> NetworkInterface {
    let frames = item.buffer_frames.as_ref();
    let frames = frames.and_then(|value| {
        report.keep(fixed(
            value,
            "the number of frames in a buffer",
            1,
            MOST_FRAMES,
        ))
    });
    let per_packet = item.copy_per_packet.as_ref();
    let per_byte = item.copy_per_byte.as_ref();
    if let Some(value) = per_byte {
        report.keep(delay(value, "the time to copy a byte"));
    }
    let copies = item.copy.filter(|_| item.interface_copies.is_none());
    if let (Some(value), None) = (&item.cpu, copies.or(item.work)) {
        let diagnostic = Diagnostic::warning(
            value.span,
            "this processor has a speed but nothing to do",
            "no effect",
        );
        report.push(diagnostic.hint("specify its work per packet, as in `copy 100 us per packet`"));
    }
    own_processor(item, report);
    NetworkInterface {
        buffer_frames: frames.and_then(|frames| u32::try_from(frames).ok()),
        single_buffered: item.single_buffered.is_some(),
        busy_waiting: item.busy_waiting.is_some(),
        interface_copies: item.interface_copies.is_some(),
        copy_per_packet: per_packet
            .and_then(|value| report.keep(delay(value, "the time to copy a packet")))
            .unwrap_or_default(),
        copy_ns_per_byte: per_byte.map_or(0.0, |value| number(value) * 1e9),
        cpu_speed: item
            .cpu
            .as_ref()
            .and_then(|value| report.keep(speed(value))),
        pace_bit_s: item.pace.as_ref().and_then(|value| {
            let hint = "omit `pace` if the host may send as fast as its link";
            report.keep(positive_rate(
                value,
                "the pace of a host",
                "nothing would ever be sent",
                hint,
            ))
        }),
    }
}

/// An interface that copies by itself needs a cost of copying, and excludes a busy-waiting processor.
fn own_processor(item: &NodeItem, report: &mut DiagnosticReport) {
    let Some(span) = item.interface_copies else {
        return;
    };
    if item.busy_waiting.is_some() {
        let message = "a processor with `busy_waiting` cannot leave the copying to the interface";
        let diagnostic = Diagnostic::error(span, message, "the interface copies by itself");
        report.push(diagnostic.hint("omit `busy_waiting` or `interface_copies`"));
    }
    if item.copy.is_none() {
        let diagnostic = Diagnostic::error(
            span,
            "this interface would copy instantaneously",
            "no copying time is given",
        );
        report.push(
            diagnostic
                .hint("specify the copying time, as in `copy 2 ms per packet; interface_copies;`"),
        );
    }
}

/// What programs cost its processor.
fn work(item: &NodeItem, report: &mut DiagnosticReport) -> ProgramCosts {
    let mut time =
        |value: Option<&SpecValue>, what| value.and_then(|value| report.keep(delay(value, what)));
    let per_operation = time(item.work_per_operation.as_ref(), "the time per operation");
    let per_message = time(item.work_per_message.as_ref(), "the time per message");
    let per_switch = time(item.work_per_switch.as_ref(), "the time per switch");
    let per_byte = item
        .work_per_byte
        .as_ref()
        .filter(|value| time(Some(*value), "the time per byte").is_some());
    let polls = time(item.polls.as_ref(), "the polling interval");
    if let (Some(Duration::ZERO), Some(value)) = (polls, &item.polls) {
        let diagnostic = Diagnostic::error(
            value.span,
            "a program that polls continuously does not need `polls`",
            "this is zero",
        );
        report.push(diagnostic.hint("omit it, or specify an interval, as in `polls 200 ms`"));
    }
    if let (Some((_, span)), None) = (item.priority, item.work) {
        let diagnostic = Diagnostic::warning(
            span,
            "priorities have no effect on programs that take no time",
            "no effect",
        );
        report.push(
            diagnostic
                .hint("specify their costs, as in `work 1 ms per operation, 2 ms per message`"),
        );
    }
    ProgramCosts {
        per_operation: per_operation.unwrap_or_default(),
        ns_per_byte: per_byte.map_or(0.0, |value| number(value) * 1e9),
        per_message: per_message.unwrap_or_default(),
        per_switch: per_switch.unwrap_or_default(),
        polls,
        first: item.priority.map(|(first, _)| first),
    }
}

fn speed(value: &SpecValue) -> Result<f64, Diagnostic> {
    let speed = number(value);
    if (1.0 / CPU_RANGE..=CPU_RANGE).contains(&speed) {
        return Ok(speed);
    }
    let message = "the speed of a processor must be a factor from 1e-6 to 1e6";
    Err(
        Diagnostic::error(value.span, message, format!("this is {speed}"))
            .hint("`cpu 2` is twice as fast"),
    )
}

fn clock(items: &[ClockItem], report: &mut DiagnosticReport) -> ClockModel {
    let mut clock = ClockModel::default();
    let (mut offset, mut drift) = (false, false);
    for item in items {
        let twice = match &item.kind {
            ClockKind::Offset => {
                clock.offset_ns = report.keep(signed(item)).unwrap_or_default();
                core::mem::replace(&mut offset, true)
            }
            ClockKind::Drift => {
                clock.drift_ppm = report.keep(ppm(item)).unwrap_or_default();
                core::mem::replace(&mut drift, true)
            }
            ClockKind::Step(at) => step(item, at, &mut clock.steps, report),
        };
        if twice {
            let diagnostic = Diagnostic::error(
                item.span,
                "this clock setting is given twice",
                "already given",
            );
            report.push(
                diagnostic
                    .hint("to set a clock more than once, give times: `clock ahead 1 s at 10 s`"),
            );
        }
    }
    clock.steps.sort_unstable_by_key(|(at, _)| *at);
    clock
}

/// Adds a step of the clock; true when there is already one at that time.
fn step(
    item: &ClockItem,
    at: &SpecValue,
    steps: &mut Vec<(Duration, i64)>,
    report: &mut DiagnosticReport,
) -> bool {
    let seconds = number(at);
    if seconds > LONGEST {
        let message = format!("a clock can only be set within the first {LONGEST} seconds");
        report.push(Diagnostic::error(at.span, message, "too late"));
    }
    let at = Duration::from_seconds(seconds);
    let twice = steps.iter().any(|(other, _)| *other == at);
    if let Some(by) = report.keep(signed(item)) {
        steps.push((at, by));
    }
    twice
}

/// A time with a sign, in ns.
fn signed(item: &ClockItem) -> Result<i64, Diagnostic> {
    let seconds = number(&item.value);
    if seconds > LONGEST {
        let message = format!("a clock can be off by at most {LONGEST} seconds");
        return Err(Diagnostic::error(item.value.span, message, "too much"));
    }
    let ns = i64::try_from(Duration::from_seconds(seconds).0).unwrap_or(i64::MAX);
    Ok(if item.negative { -ns } else { ns })
}

fn ppm(item: &ClockItem) -> Result<f64, Diagnostic> {
    let ppm = number(&item.value);
    if ppm > MOST_PPM {
        let message = format!("a clock can drift by at most {MOST_PPM} ppm");
        return Err(Diagnostic::error(item.value.span, message, "too much")
            .hint("a poor quartz clock drifts by 100 ppm"));
    }
    Ok(if item.negative { -ppm } else { ppm })
}
