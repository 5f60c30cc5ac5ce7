//! What a piece of advice changes, as data: on a copy of the plan, so that whoever can run it sees what the advice is worth. It
//! decides nothing and runs nothing.

use crate::findings::kept_connection;
use crate::findings::measured::link_outages::{without_losses, without_outages};
use stackline_core::distribution::Distribution;
use stackline_core::network::{
    Discipline, ImpMachine, ImpSettings, Jitter, LinkQueue, LinkRate, Network, NetworkLink,
    NetworkSwitch,
};
use stackline_core::plan::{Measurement, Plan};
use stackline_core::procedure::{DelayArgument, OperationCall, PairSide, ProcedureStep};
use stackline_core::stack::OptionValue;
use stackline_core::time::Duration;

/// One change of a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanChange {
    /// An option of the stack of one part, by its place in the measurement.
    Option(usize, &'static str, OptionValue),
    /// An option of the stack of one part is left to the stack.
    Unset(usize, &'static str),
    /// One part has the stack `window` with so many packets on their way.
    Window(usize, u64),
    /// The queue at both ends of a link holds so many bytes.
    Queue(LinkEnds, u64),
    /// The queue at both ends of a link holds so many bytes, and drops nothing before it is full.
    DropTail(LinkEnds, u64),
    /// The queue at both ends of a link is `fq_codel`.
    FairQueue(LinkEnds),
    /// These links are twice as fast.
    Faster(Vec<LinkEnds>),
    /// These links are half as long.
    Nearer(Vec<LinkEnds>),
    /// A link between these nodes loses nothing, either way.
    NoLoss(LinkEnds),
    /// A link between these nodes carries something at all times, both ways.
    NoOutage(LinkEnds),
    /// Packets keep their order on a link, both ways, with the same delay on average.
    InOrder(LinkEnds),
    /// All links carry packets of at most so many bytes.
    Packets(u64),
    /// An IMP has room to put so many messages together.
    Reassembly(String, u32),
    /// An IMP lets so many messages be under way to another.
    ImpWindow(String, u32),
    /// An IMP is such a machine.
    Machine(String, ImpMachine),
    /// The IMPs at both ends of a line have so many channels.
    Channels(LinkEnds, u16),
    /// These hosts send at so many bit/s at most; one that has a slower pace keeps it.
    Pace(Vec<String>, f64),
    /// The processor of a host is twice as fast.
    Processor(String),
    /// One side of a part waits nowhere by itself.
    NoDelays(usize, PairSide),
    /// One part opens its connections once, before its clock starts.
    KeepConnection(usize),
    /// Nothing runs beside what is measured.
    NoLoad,
}

/// The two nodes that a link joins, in either order.
pub(crate) type LinkEnds = (String, String);

impl PlanChange {
    /// Nagle's algorithm is off.
    pub(crate) const fn nodelay(part: usize) -> Self {
        Self::Option(part, "nodelay", OptionValue::Set)
    }

    /// Whether its gain shows in the time of the whole and not in that of calls: the caller's own time lies between them.
    #[must_use]
    pub const fn is_between_calls(&self) -> bool {
        matches!(
            self,
            Self::NoDelays(_, PairSide::Initiator) | Self::KeepConnection(_)
        )
    }

    /// What of it the advice does not say, for the reader of what it came to.
    #[must_use]
    pub const fn how(&self) -> Option<&'static str> {
        match self {
            Self::Option(..)
            | Self::Unset(..)
            | Self::Window(..)
            | Self::Queue(..)
            | Self::DropTail(..)
            | Self::FairQueue(_)
            | Self::Packets(_)
            | Self::Reassembly(..)
            | Self::ImpWindow(..)
            | Self::Machine(..)
            | Self::Channels(..)
            | Self::KeepConnection(_)
            | Self::Pace(..) => None,
            Self::Faster(_) => Some("at twice the rate"),
            Self::Nearer(_) => Some("at half the distance"),
            Self::NoLoss(_) => Some("without its losses"),
            Self::NoOutage(_) => Some("without the outage"),
            Self::InOrder(_) => Some("at the same mean delay"),
            Self::Processor(_) => Some("at twice its speed"),
            Self::NoDelays(..) => Some("without that delay"),
            Self::NoLoad => Some("without the other traffic"),
        }
    }

    /// The measurement at that place with the change, alone in a plan of its own; `None` where there is nothing to change.
    #[must_use]
    pub fn applied(&self, plan: &Plan, measurement: usize) -> Option<Plan> {
        let mut changed = plan.clone();
        let measured = changed.measurements.get_mut(measurement)?;
        let across = measured.across.clone();
        match self {
            Self::Option(part, name, value) => {
                let stack = &mut measured.parts.get_mut(*part)?.stack;
                stack.options.insert((*name).to_owned(), value.clone());
            }
            Self::Unset(part, name) => {
                measured.parts.get_mut(*part)?.stack.options.remove(*name);
            }
            Self::Window(part, packets) => {
                let stack = &mut measured.parts.get_mut(*part)?.stack;
                stack.name = "window".to_owned();
                stack
                    .options
                    .insert("n".to_owned(), OptionValue::Number(*packets));
            }
            Self::NoDelays(part, side) => without_delays(measured, *part, *side)?,
            Self::KeepConnection(part) => {
                let procedure = &mut measured.parts.get_mut(*part)?.procedure;
                kept_connection::keep_connection(procedure)?;
            }
            Self::NoLoad => measured.parts.retain(|part| !part.background),
            _ => {
                let network = changed
                    .networks
                    .iter_mut()
                    .find(|network| Some(&network.name) == across.as_ref())?;
                self.to_network(network);
            }
        }
        (changed != *plan).then_some(changed)
    }

    fn to_network(&self, network: &mut Network) {
        match self {
            Self::Queue(ends, bytes) => limit_queue(network, ends, *bytes),
            Self::DropTail(ends, bytes) => drop_tail(network, ends, *bytes),
            Self::FairQueue(ends) => give_queue(network, ends, |queue| LinkQueue {
                discipline: fair(),
                ..queue
            }),
            Self::Faster(these) => each_of(network, these, |link| {
                if let LinkRate::Constant(rate) = &mut link.rate {
                    *rate *= 2.0;
                }
            }),
            Self::Nearer(these) => each_of(network, these, |link| {
                if link.delays.is_none() {
                    link.delay = Duration::from_seconds(link.delay.seconds() / 2.0);
                }
            }),
            Self::NoLoss(ends) => each_of(network, std::slice::from_ref(ends), without_losses),
            Self::InOrder(ends) => each_of(network, std::slice::from_ref(ends), in_order),
            Self::NoOutage(ends) => no_outage(network, ends),
            Self::Packets(bytes) => {
                network
                    .links
                    .iter_mut()
                    .for_each(|link| link.mtu_bytes = Some(link.mtu().min(*bytes)));
            }
            Self::Reassembly(name, messages) => {
                each_imp(network, &[name], |imp| imp.reassembly = Some(*messages));
            }
            Self::ImpWindow(name, messages) => {
                each_imp(network, &[name], |imp| imp.window = Some(*messages));
            }
            Self::Machine(name, machine) => {
                each_imp(network, &[name], |imp| imp.machine = *machine);
            }
            Self::Channels(ends, channels) => {
                each_imp(network, &[&ends.0, &ends.1], |imp| {
                    imp.channels = Some(*channels);
                    imp.buffers = imp
                        .buffers
                        .map(|buffers| buffers.max(2 * u32::from(*channels)));
                });
            }
            Self::Pace(hosts, rate) => {
                let paced = network
                    .hosts
                    .iter_mut()
                    .filter(|host| hosts.contains(&host.name));
                // A pace of its own may be a cause by itself, which this takes nothing of.
                paced.for_each(|host| {
                    let has = host.interface.pace_bit_s.unwrap_or(f64::INFINITY);
                    host.interface.pace_bit_s = Some(rate.min(has));
                });
            }
            Self::Processor(name) => {
                let hosts = network.hosts.iter_mut().filter(|host| host.name == *name);
                hosts.for_each(|host| {
                    host.interface.cpu_speed = Some(host.interface.cpu_speed.unwrap_or(1.0) * 2.0);
                });
            }
            Self::Option(..)
            | Self::Unset(..)
            | Self::Window(..)
            | Self::NoDelays(..)
            | Self::KeepConnection(_)
            | Self::NoLoad => {}
        }
    }
}

fn each_switch(network: &mut Network, names: &[&str], change: impl FnMut(&mut NetworkSwitch)) {
    network
        .switches
        .iter_mut()
        .filter(|switch| names.contains(&switch.name.as_str()))
        .for_each(change);
}

fn each_imp(network: &mut Network, names: &[&str], mut change: impl FnMut(&mut ImpSettings)) {
    each_switch(network, names, |switch| {
        switch.imp.iter_mut().for_each(&mut change)
    });
}

/// As the language has it without arguments.
fn fair() -> Discipline {
    let (target, interval) = (Duration::from_seconds(5e-3), Duration::from_seconds(0.1));
    Discipline::FqCoDel {
        target,
        interval,
        flows: 1024,
        quantum: 1514,
    }
}

fn each_of(network: &mut Network, these: &[LinkEnds], mut change: impl FnMut(&mut NetworkLink)) {
    let same = |link: &NetworkLink, (a, b): &LinkEnds| {
        link.ends == (a.clone(), b.clone()) || link.ends == (b.clone(), a.clone())
    };
    network
        .links
        .iter_mut()
        .filter(|link| these.iter().any(|ends| same(link, ends)))
        .for_each(&mut change);
}

/// The link between these nodes carries something at all times, and neither is down.
fn no_outage(network: &mut Network, ends: &LinkEnds) {
    each_of(network, std::slice::from_ref(ends), without_outages);
    let hosts = network.hosts.iter_mut();
    let here = hosts.filter(|host| [&ends.0, &ends.1].contains(&&host.name));
    here.for_each(|host| host.down = None);
}

/// What is added to the delay of each packet is added to that of the link, on average.
fn in_order(link: &mut NetworkLink) {
    let reorders = |jitter: &mut Jitter| jitter.reorder;
    let Some(jitter) = link.jitter.take_if(reorders) else {
        return;
    };
    let more = Duration::from_seconds(jitter.distribution.mean().unwrap_or(0.0).max(0.0));
    link.delay += more;
    for (_, delay) in link.delays.iter_mut().flat_map(|delays| &mut delays.steps) {
        *delay += more;
    }
}

/// The queue at both ends of a link holds so many bytes, and the switches there have room for them.
fn limit_queue(network: &mut Network, ends: &LinkEnds, bytes: u64) {
    give_queue(network, ends, |queue| LinkQueue {
        discipline: queue.discipline,
        ecn: queue.ecn,
        limit_bytes: Some(bytes),
        ..LinkQueue::default()
    });
    each_switch(network, &[&ends.0, &ends.1], |switch| {
        switch.buffer_bytes = switch.buffer_bytes.map(|has| has.max(bytes));
    });
}

/// The same, and nothing is dropped or marked before it is full.
fn drop_tail(network: &mut Network, ends: &LinkEnds, bytes: u64) {
    limit_queue(network, ends, bytes);
    give_queue(network, ends, |queue| LinkQueue {
        discipline: Discipline::DropTail,
        ecn: false,
        ..queue
    });
}

/// A link without a queue of its own has that of the switch it begins at.
fn give_queue(network: &mut Network, ends: &LinkEnds, to: impl Fn(LinkQueue) -> LinkQueue) {
    let of_switch = network
        .switches
        .iter()
        .find(|switch| switch.name == ends.0)
        .and_then(|switch| switch.queue.clone());
    each_of(network, std::slice::from_ref(ends), |link| {
        let has = link
            .queue
            .clone()
            .or_else(|| of_switch.clone())
            .unwrap_or_default();
        link.queue = Some(to(has));
    });
}

fn without_delays(measurement: &mut Measurement, part: usize, side: PairSide) -> Option<()> {
    let procedure = &mut measurement.parts.get_mut(part)?.procedure;
    no_delays(match side {
        PairSide::Initiator => &mut procedure.initiator,
        PairSide::Responder => &mut procedure.responder,
    });
    Some(())
}

fn no_delays(steps: &mut [ProcedureStep]) {
    for step in steps {
        match step {
            ProcedureStep::Call(OperationCall::Delay(delay)) => {
                *delay = DelayArgument::Drawn(Distribution::Constant(0.0))
            }
            ProcedureStep::Call(_) => {}
            ProcedureStep::Repeat(_, body) => no_delays(body),
        }
    }
}
