//! Properties of the path between two hosts (rate, delay, MTU, bandwidth-delay product), and of links, as text.

use stackline_core::network::{
    DeliveryTrace, LinkQueue, LinkRate, Network, NetworkLink, StepSchedule,
};
use stackline_core::time::Duration;
use stackline_core::units;

/// The path from one host to another, as packets are forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPath {
    /// Index of the first host.
    pub from: usize,
    /// Index of the last host.
    pub to: usize,
    /// The directions of links in order: `2 i` from the first to the second end of link `i`, `2 i + 1` back. `None` if there is no path.
    pub ports: Option<Vec<u32>>,
}

/// The capacity of a path for a single packet stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PathCapacity {
    /// The number of links.
    pub(crate) hops: usize,
    /// The sum of the propagation delays.
    pub(crate) delay: Duration,
    /// The lowest rate, bit/s; `None` if all links are unlimited.
    pub(crate) rate_bit_s: Option<f64>,
    /// Largest packet that fits all links, in bytes.
    pub(crate) mtu: u64,
}

impl PathCapacity {
    /// The capacity of a path over these directions of links; links that the network lacks are left out.
    pub(crate) fn from_network(network: &Network, ports: &[u32]) -> Self {
        let links = || {
            ports
                .iter()
                .filter_map(|port| network.links.get(*port as usize / 2))
        };
        Self {
            hops: ports.len(),
            delay: links().fold(Duration::ZERO, |sum, link| sum + link.delay),
            rate_bit_s: links()
                .filter_map(NetworkLink::mean_bit_s)
                .min_by(f64::total_cmp),
            mtu: links().map(NetworkLink::mtu).min().unwrap_or(u64::MAX),
        }
    }

    /// The bandwidth-delay product in bytes: the lowest rate on the way there times the delays of both ways.
    pub(crate) fn bandwidth_delay_bytes(&self, back: &Self) -> Option<f64> {
        self.rate_bit_s
            .map(|rate| rate * (self.delay + back.delay).seconds() / 8.0)
    }
}

/// The mean rate of a link, bit/s; `None` if it is unlimited.
pub(crate) fn mean_rate(rate: &LinkRate) -> Option<f64> {
    match rate {
        LinkRate::Unlimited => None,
        LinkRate::Constant(bit_s) => Some(*bit_s),
        LinkRate::Schedule(schedule) => Some(schedule.mean(|bit_s| *bit_s)),
        LinkRate::Trace(trace) => {
            let period = f64::from(*trace.opportunities_ms.last()?) / 1e3;
            #[expect(
                clippy::cast_precision_loss,
                reason = "a trace has far fewer moments than 2^53"
            )]
            Some(trace.opportunities_ms.len() as f64 * 1504.0 * 8.0 / period)
        }
    }
}

/// A rate as text.
pub(crate) fn rate(rate: &LinkRate) -> String {
    match rate {
        LinkRate::Unlimited => "unlimited".to_owned(),
        LinkRate::Constant(bit_s) => units::format_rate(*bit_s),
        LinkRate::Schedule(_) => format!("~{}", units::format_rate(mean_rate(rate).unwrap_or(0.0))),
        LinkRate::Trace(trace) => format!(
            "~{} ({})",
            units::format_rate(mean_rate(rate).unwrap_or(0.0)),
            trace.file
        ),
    }
}

/// A link's delay as text.
pub(crate) fn delay(link: &NetworkLink) -> String {
    format!(
        "{}{}",
        if link.delays.is_some() { "~" } else { "" },
        link.delay
    )
}

/// The properties of a link that change in time, such as
/// `rate: 10.0 Mbit/s from 0 s on, 1.00 Mbit/s from 5.00 s on, repeating every 10.0 s`.
pub(crate) fn schedules(link: &NetworkLink) -> Vec<String> {
    let mut all = Vec::new();
    if let LinkRate::Schedule(rates) = &link.rate {
        all.push(format!(
            "rate: {}",
            steps(rates, |rate| units::format_rate(*rate))
        ));
    }
    if let LinkRate::Trace(trace) = &link.rate {
        all.push(format!("rate: {}", outage(trace)));
    }
    all.extend(
        link.delays
            .as_ref()
            .map(|delays| format!("delay: {}", steps(delays, Duration::to_string))),
    );
    if let stackline_core::network::LossModel::Schedule(losses) = &link.loss {
        let one = |step: &_| {
            Some(loss(step))
                .filter(|text| !text.is_empty())
                .unwrap_or_else(|| "none".to_owned())
        };
        all.push(format!("loss: {}", steps(losses, one)));
    }
    all
}

/// The length of a delivery trace, and its longest pause.
fn outage(trace: &DeliveryTrace) -> String {
    let moments = &trace.opportunities_ms;
    let pauses = std::iter::once(0)
        .chain(moments.iter().copied())
        .zip(moments);
    let longest = pauses
        .map(|(from, to)| (to - from, from))
        .max_by_key(|(pause, from)| (*pause, std::cmp::Reverse(*from)));
    let (pause, from) = longest.unwrap_or_default();
    let time = |ms: u32| Duration::from_seconds(f64::from(ms) / 1e3);
    let length = time(moments.last().copied().unwrap_or(0));
    format!(
        "{} repeats every {length}; its longest pause is {}, starting at {}",
        trace.file,
        time(pause),
        time(from)
    )
}

/// Most steps that are printed; the others are counted.
const MOST_STEPS: usize = 16;

fn steps<T>(schedule: &StepSchedule<T>, text: impl Fn(&T) -> String) -> String {
    let shown = schedule.steps.iter().take(MOST_STEPS);
    let mut said: Vec<String> = shown
        .map(|(from, value)| format!("{} from {from} on", text(value)))
        .collect();
    let left = schedule.steps.len().saturating_sub(MOST_STEPS);
    said.extend((left > 0).then(|| format!("and {left} more")));
    said.extend(
        schedule
            .period
            .map(|period| format!("repeating every {period}")),
    );
    said.join(", ")
}

/// The properties of a link that differ from before, such as `rate 2.00 Mbit/s`, `loss 1 %`.
#[must_use]
pub fn link_changes(now: &NetworkLink, was: &NetworkLink) -> Vec<String> {
    let lost = Some(loss(&now.loss))
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| "none".to_owned());
    let held = now
        .queue
        .as_ref()
        .map_or_else(|| "unlimited".to_owned(), queue);
    let all = [
        (now.rate != was.rate, format!("rate {}", rate(&now.rate))),
        (
            (now.delay, &now.delays) != (was.delay, &was.delays),
            format!("delay {}", delay(now)),
        ),
        (now.loss != was.loss, format!("loss {lost}")),
        (now.queue != was.queue, format!("queue {held}")),
    ];
    all.into_iter()
        .filter_map(|(differs, text)| differs.then_some(text))
        .collect()
}

/// A share in percent, without trailing zeros: `0.01 %`.
pub(crate) fn percent(share: f64) -> String {
    let hundredths = share * 100.0;
    let text = format!("{hundredths:.6}");
    format!(
        "{} %",
        if hundredths < 1e-6 && hundredths > 0.0 {
            "<0.000001"
        } else {
            trimmed(&text)
        }
    )
}

fn trimmed(text: &str) -> &str {
    text.trim_end_matches('0').trim_end_matches('.')
}

/// A loss model as text; empty if nothing is lost.
pub(crate) fn loss(loss: &stackline_core::network::LossModel) -> String {
    use stackline_core::network::LossModel;
    match loss {
        LossModel::None => String::new(),
        LossModel::Independent(share) => percent(*share),
        LossModel::BitErrors(probability) => format!("bit errors {probability:e}"),
        LossModel::GilbertElliott {
            to_bad,
            to_good,
            loss_good,
            loss_bad,
        } => format!(
            "Gilbert-Elliott {} / {}, lost {} / {}",
            percent(*to_bad),
            percent(*to_good),
            percent(*loss_good),
            percent(*loss_bad)
        ),
        LossModel::FourStates(chain) => {
            format!("four states, {} in the mean", percent(chain.mean_loss()))
        }
        LossModel::List(numbers) if numbers.len() <= 4 => {
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            format!("packets {}", numbers.join(", "))
        }
        LossModel::List(numbers) => format!("{} packets by number", numbers.len()),
        LossModel::Every(n) => format!("one packet in {n}"),
        LossModel::Schedule(_) => "changes".to_owned(),
    }
}

/// A queue as text: its limits, its discipline, whether it marks packets.
pub(crate) fn queue(queue: &LinkQueue) -> String {
    let bytes = queue.limit_bytes.map(units::format_size);
    let packets = queue
        .limit_packets
        .map(|packets| units::counted(packets, "packet"));
    let limits: Vec<String> = bytes.into_iter().chain(packets).collect();
    let limits = if limits.is_empty() {
        "unlimited".to_owned()
    } else {
        limits.join(", ")
    };
    let discipline = match queue.discipline {
        stackline_core::network::Discipline::Classes => classes(queue),
        _ => discipline(&queue.discipline),
    };
    format!(
        "{limits}{discipline}{}",
        if queue.ecn { ", marks (ECN)" } else { "" }
    )
}

fn discipline(discipline: &stackline_core::network::Discipline) -> String {
    use stackline_core::network::Discipline;
    match discipline {
        Discipline::DropTail => String::new(),
        Discipline::DropHead => ", drops the oldest".to_owned(),
        Discipline::Red {
            min_bytes,
            max_bytes,
            most,
            weight,
        } => format!(
            ", RED from {} to {}, max_p {}, weight {weight}",
            units::format_size(*min_bytes),
            units::format_size(*max_bytes),
            percent(*most)
        ),
        Discipline::CoDel { target, interval } => format!(", CoDel {target} in {interval}"),
        Discipline::Pie { target, update } => format!(", PIE {target}, every {update}"),
        Discipline::FqCoDel {
            target,
            interval,
            flows,
            quantum,
        } => {
            format!(", FQ-CoDel {target} in {interval}, {flows} queues, quantum {quantum} B")
        }
        Discipline::Classes => ", classes".to_owned(),
        Discipline::DualPi2(settings) => format!(
            ", DualPI2 {}, step {}, coupling {}",
            settings.target, settings.step, settings.coupling
        ),
    }
}

/// The classes of a queue as text: `, classes ef strict / default weight 1`.
fn classes(queue: &LinkQueue) -> String {
    let classes: Vec<String> = queue
        .classes
        .iter()
        .map(|class| format!("{} {}", class.name(), class.service.text()))
        .collect();
    format!(", classes {}", classes.join(" / "))
}

/// What a link does to packets by their rate or their order, such as `shaped to 10.0 Mbit/s, burst 32.0 KiB`.
pub(crate) fn traffic_control(link: &NetworkLink) -> Vec<String> {
    let bucket = |bucket: &stackline_core::network::TokenBucket| {
        format!(
            "{}, burst {}",
            units::format_rate(bucket.bit_s),
            units::format_size(bucket.burst_bytes)
        )
    };
    let shaped = link
        .shaper
        .as_ref()
        .map(|shaper| format!("shaped to {}", bucket(shaper)));
    let policed = link.policer.as_ref().map(|policer| {
        let beyond = policer.remark.map_or_else(
            || "drops".to_owned(),
            |dscp| format!("remarks {}", stackline_core::network::dscp_name(dscp)),
        );
        format!(
            "policed at {}, {beyond} what exceeds",
            bucket(&policer.bucket)
        )
    });
    let marked = link
        .dscp
        .map(|dscp| format!("sets DSCP {}", stackline_core::network::dscp_name(dscp)));
    let skipping = link.skipping.map(|skipping| {
        format!(
            "{} of packets skip the delay, gap {}",
            percent(skipping.share),
            skipping.gap
        )
    });
    [shaped, policed, marked, skipping]
        .into_iter()
        .flatten()
        .collect()
}

/// A jitter as text: its distribution, its correlation, whether packets may overtake.
pub(crate) fn jitter(jitter: &stackline_core::network::Jitter) -> String {
    let correlated = if jitter.correlation > 0.0 {
        format!(", correlation {}", percent(jitter.correlation))
    } else {
        String::new()
    };
    format!("jitter {} s{correlated}", jitter.distribution)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_core::network::{DeliveryTrace, LossModel};

    #[test]
    fn rates_that_change_have_a_mean() {
        let second = |s| Duration::from_seconds(s);
        let steps = vec![(second(0.0), 10e6), (second(1.0), 0.0), (second(3.0), 2e6)];
        let schedule = |period| {
            LinkRate::Schedule(StepSchedule {
                steps: steps.clone(),
                period,
            })
        };
        assert_eq!(mean_rate(&schedule(Some(second(4.0)))), Some(3e6));
        assert_eq!(
            mean_rate(&schedule(Some(second(2.0)))),
            Some(5e6),
            "what lies behind the period never comes"
        );
        assert_eq!(mean_rate(&schedule(None)), Some(2e6));
        let trace = DeliveryTrace {
            file: "up".into(),
            opportunities_ms: vec![1, 1, 2],
        };
        assert_eq!(
            mean_rate(&LinkRate::Trace(trace)),
            Some(3.0 * 1504.0 * 8.0 / 2e-3)
        );
    }

    #[test]
    fn shares_are_as_written() {
        assert_eq!(percent(0.0001), "0.01 %");
        assert_eq!(percent(0.5), "50 %");
        assert_eq!(percent(1e-12), "<0.000001 %");
        assert_eq!(loss(&LossModel::Independent(0.0)), "0 %");
    }
}
