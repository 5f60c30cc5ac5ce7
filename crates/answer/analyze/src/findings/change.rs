//! Changes of a plan, as data: what a piece of advice would change. Each can be applied to a copy of the plan, which a caller then
//! simulates to see what the advice is worth. Nothing is decided or run here.

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
    /// Sets an option of one part's stack: index of the part in the measurement, name and value of the option.
    Option(usize, &'static str, OptionValue),
    /// Removes an option from one part's stack (index of the part, name), so that the stack's default holds.
    Unset(usize, &'static str),
    /// Gives one part (by index) the stack `window` with this many packets in flight.
    Window(usize, u64),
    /// Sets the capacity of the queues at both ends of a link, bytes.
    Queue(LinkEnds, u64),
    /// Sets the capacity of the queues at both ends of a link, bytes, and makes them drop only when they are full.
    DropTail(LinkEnds, u64),
    /// Makes the queues at both ends of a link `fq_codel`.
    FairQueue(LinkEnds),
    /// Doubles the rates of these links, where they are constant.
    Faster(Vec<LinkEnds>),
    /// Halves the propagation delays of these links, except delays that follow a schedule.
    Nearer(Vec<LinkEnds>),
    /// Removes losses from the links between these nodes, in both directions, except times in which a link loses everything.
    NoLoss(LinkEnds),
    /// Removes outages (rate 0, loss of everything, a host that is down) from the links between these nodes, in both directions.
    NoOutage(LinkEnds),
    /// Keeps packets in order on the links between these nodes, in both directions, with the same mean delay.
    InOrder(LinkEnds),
    /// Limits the MTU of all links of the network, bytes.
    Packets(u64),
    /// Sets how many messages the named IMP can reassemble at the same time.
    Reassembly(String, u32),
    /// Sets how many messages the named IMP lets be in flight to another IMP.
    ImpWindow(String, u32),
    /// Replaces the machine of the named IMP.
    Machine(String, ImpMachine),
    /// Sets the number of channels of the IMPs at both ends of a line; their buffers are raised to two per channel.
    Channels(LinkEnds, u16),
    /// Limits the sending rate of these hosts, bit/s; a host with a slower pace keeps that.
    Pace(Vec<String>, f64),
    /// Doubles the speed of the named host's processor.
    Processor(String),
    /// Sets all `Delay` operations in one side's procedure of a part (by index) to 0.
    NoDelays(usize, PairSide),
    /// Lets one part (by index) open its connections once, before its clock starts.
    KeepConnection(usize),
    /// Removes the background parts, whose traffic runs beside the measured parts.
    NoLoad,
}

/// The two nodes that a link joins, in either order.
pub(crate) type LinkEnds = (String, String);

impl PlanChange {
    /// The change that turns Nagle's algorithm off in the stack of a part (by index).
    pub(crate) const fn nodelay(part: usize) -> Self {
        Self::Option(part, "nodelay", OptionValue::Set)
    }

    /// Whether the gain shows in the elapsed time of the run but not in the response times of calls: the time saved lies between calls.
    #[must_use]
    pub const fn is_between_calls(&self) -> bool {
        matches!(
            self,
            Self::NoDelays(_, PairSide::Initiator) | Self::KeepConnection(_)
        )
    }

    /// How the change was made in the simulation, in words, where the text of the advice does not say it.
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

    /// A copy of the plan with the change applied to the measurement at that index; `None` if the measurement, part or network does not
    /// exist, or the plan has nothing to change.
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

    /// Applies a change that is about the network; changes of parts are left out.
    fn to_network(&self, network: &mut Network) {
        match self {
            Self::Queue(ends, bytes) => limit_queue(network, ends, *bytes),
            Self::DropTail(ends, bytes) => drop_tail(network, ends, *bytes),
            Self::FairQueue(ends) => give_queue(network, ends, |queue| LinkQueue {
                discipline: fair(),
                classes: Vec::new(),
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
                // A host's own slower pace may be a cause of its own: this change leaves it.
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

/// Applies `change` to the switches of these names.
fn each_switch(network: &mut Network, names: &[&str], change: impl FnMut(&mut NetworkSwitch)) {
    network
        .switches
        .iter_mut()
        .filter(|switch| names.contains(&switch.name.as_str()))
        .for_each(change);
}

/// Applies `change` to the IMP settings of the switches of these names.
fn each_imp(network: &mut Network, names: &[&str], mut change: impl FnMut(&mut ImpSettings)) {
    each_switch(network, names, |switch| {
        switch.imp.iter_mut().for_each(&mut change)
    });
}

/// The discipline `fq_codel` with the defaults of the specification language.
fn fair() -> Discipline {
    let (target, interval) = (Duration::from_seconds(5e-3), Duration::from_seconds(0.1));
    Discipline::FqCoDel {
        target,
        interval,
        flows: 1024,
        quantum: 1514,
    }
}

/// Applies `change` to each link that joins one of these pairs of nodes, in either direction.
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

/// Removes the outages of the links between these nodes, and the down times of both nodes.
fn no_outage(network: &mut Network, ends: &LinkEnds) {
    each_of(network, std::slice::from_ref(ends), without_outages);
    let hosts = network.hosts.iter_mut();
    let here = hosts.filter(|host| [&ends.0, &ends.1].contains(&&host.name));
    here.for_each(|host| host.down = None);
}

/// Removes jitter that reorders packets from a link, and adds its mean to the delay of the link.
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

/// Sets the capacity of the queues at both ends of a link, bytes, and raises the buffers of the switches there to at least that.
fn limit_queue(network: &mut Network, ends: &LinkEnds, bytes: u64) {
    give_queue(network, ends, |queue| LinkQueue {
        limit_bytes: Some(bytes),
        limit_packets: None,
        ..queue
    });
    each_switch(network, &[&ends.0, &ends.1], |switch| {
        switch.buffer_bytes = switch.buffer_bytes.map(|has| has.max(bytes));
    });
}

/// As [`limit_queue`], with queues that drop only when they are full and mark no packets (no ECN).
fn drop_tail(network: &mut Network, ends: &LinkEnds, bytes: u64) {
    limit_queue(network, ends, bytes);
    give_queue(network, ends, |queue| LinkQueue {
        discipline: Discipline::DropTail,
        ecn: false,
        classes: Vec::new(),
        ..queue
    });
}

/// Replaces the queue of a link by `to` of it. A link without a queue of its own begins with that of the switch `ends.0`, if it has one.
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

/// Sets the delays of one side's procedure to 0; `None` where there is no such part.
fn without_delays(measurement: &mut Measurement, part: usize, side: PairSide) -> Option<()> {
    let procedure = &mut measurement.parts.get_mut(part)?.procedure;
    no_delays(match side {
        PairSide::Initiator => &mut procedure.initiator,
        PairSide::Responder => &mut procedure.responder,
    });
    Some(())
}

/// Sets the `Delay` operations of these steps to 0, in repeats too.
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
