//! The data path: frames of real programs through the network model in real time, on one thread.
//!
//! ```text
//! wait     for frames, or until shortly before the next departure; then spin
//! receive  a batch from each ring or socket, in the order of the kernel's timestamps
//! forward  through the model, each at its own instant: a frame read late is late only if it was due already
//! send     what is due, in batches; record how late it was
//! ```
//! Nothing leaves before it is due. In steady state nothing is allocated. The network itself (`machine`) is `stackline_net`, as in the
//! simulated world; the data path makes none of its decisions. A train is one frame that stands for several segments of a flow, which the
//! kernel or a network card would cut later (segmentation offload).

pub(crate) mod buffer;
mod calibrate;
mod checksum;
mod clock;
mod completion;
pub(crate) mod frame;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod handle;
pub(crate) mod header;
mod ip_header;
mod machine;
mod moderation;
mod options;
mod port_sockets;
mod receive_batch;
mod report;
mod rings;
mod routed_frame;
mod router_frames;
mod run_loop;
#[cfg(test)]
pub(crate) mod sample_frames;
pub(crate) mod statistics;
mod transmit_queue;

pub use handle::Handle;
pub use machine::NetworkEventRecorder;
pub use options::EmulatorOptions;
pub use report::{
    EmulatedPortReport, EmulatedTrafficCount, EmulatorReport, EmulatorTimeSpread, LostFrameCounts,
    RoundTrip,
};

use crate::veth_port::{self, VethPort};
use clock::EmulatorTimeOrigin;
use frame::VnetFrame;
use handle::Restart;
use machine::EmulatedNetworkMachine;
use moderation::Moderation;
use receive_batch::{FROM_RING, ReceiveBatch};
use stackline_core::network::{Network, NetworkLink};
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_net::interfaces::InterfaceTable;
use stackline_net::{self as net, NetworkPacket, NodeIndex};
use stackline_os::clock::{SystemClock, read_clock};
use stackline_os::epoll::EpollWaiter;
use stackline_os::packet_socket;
use statistics::EmulatorStatistics;
use std::io;
use transmit_queue::TransmitQueue;

/// Most hosts for which the shortest path is computed; a larger network uses its shortest link instead.
const MOST_PAIRS: usize = 64;

/// Most ports whose receive rings are checked for frames before every wait by system call.
const FEW: usize = 16;

/// In `of_node`: the node has no queue.
const NONE: u32 = u32::MAX;

/// The data path of one network.
pub struct EmulatorEngine {
    /// The ports of the hosts.
    queues: Vec<TransmitQueue>,
    /// The index of each node's queue.
    of_node: Vec<u32>,
    /// The interfaces of the network's hosts, by which an address is looked up.
    interfaces: InterfaceTable,
    /// The network with all changes of links so far.
    plan: Network,
    seed: Seed,
    /// How many changes of links there were.
    changed: u64,
    machine: EmulatedNetworkMachine,
    /// Converts between the network's time and the system's clocks.
    origin: EmulatorTimeOrigin,
    /// The latest instant passed to the machine; later calls must not be before it.
    floor: Instant,
    /// Frames received in this round and not passed to the machine yet.
    arrivals: Vec<FrameArrival>,
    /// Indexes of the queues with frames to receive.
    ready: Vec<u32>,
    /// Indexes of the queues with frames to send.
    outgoing: Vec<u32>,
    /// Whether a socket was full, so that frames that are due have to be sent again.
    blocked: bool,
    /// Whether the rings in memory are checked for frames before the descriptors.
    rings_first: bool,
    /// Rounds since the descriptors were checked.
    rounds: u32,
    /// Whether the last round may have left frames unread.
    behind: bool,
    /// Decides when to leave frames unread for a moment.
    moderation: Moderation,
    waiter: EpollWaiter,
    handle: Handle,
    statistics: EmulatorStatistics,
    options: EmulatorOptions,
    /// The mechanisms of the kernel that are used.
    mechanisms: port_sockets::PortSocketFeatures,
    /// How late a frame may be without counting as overload.
    tolerable: Duration,
    round_trip: Option<RoundTrip>,
    /// Processor time of the thread at the network's instant zero, ns.
    processor: u64,
}

/// A received frame and its instant.
struct FrameArrival {
    at: Instant,
    /// Its place among those received together.
    number: u32,
    packet: NetworkPacket<VnetFrame>,
}

impl EmulatorEngine {
    /// The data path of a network with nothing in transit. The ports are those of the network's hosts; frames to hosts without a port are
    /// discarded.
    pub fn new(
        ports: Vec<VethPort>,
        network: &Network,
        seed: Seed,
        options: EmulatorOptions,
    ) -> io::Result<Self> {
        let waiter = EpollWaiter::new()?;
        let mut mechanisms = port_sockets::set_up(&ports, &waiter, &options)?;
        let (rings, description) = rings::open(&ports, mechanisms.header, &options);
        mechanisms.descriptions.push(description);
        for (token, port) in (0..).zip(&ports) {
            waiter.add(std::os::fd::AsFd::as_fd(&port.socket), token)?;
        }
        let machine = EmulatedNetworkMachine::new(network, seed, None);
        let tolerable = report::tolerable(shortest(&machine, network));
        let handle = Handle::new()?;
        let most = ports
            .iter()
            .map(|port| port.node.0 as usize + 1)
            .max()
            .unwrap_or(0);
        let mut of_node = vec![NONE; most];
        for (queue, port) in (0..).zip(&ports) {
            of_node[port.node.0 as usize] = queue;
        }
        let new = |(port, rings)| TransmitQueue::new(port, mechanisms.header, rings);
        let queues: Vec<TransmitQueue> = ports.into_iter().zip(rings).map(new).collect();
        let engine = Self {
            arrivals: Vec::with_capacity(FROM_RING * queues.len().max(1)),
            ready: Vec::with_capacity(queues.len()),
            outgoing: Vec::with_capacity(queues.len()),
            moderation: Moderation::new(options.pause, queues.len()),
            rings_first: queues.len() <= FEW && queues.iter().all(TransmitQueue::has_rings),
            queues,
            of_node,
            interfaces: InterfaceTable::new(network),
            plan: network.clone(),
            seed,
            changed: 0,
            machine,
            origin: EmulatorTimeOrigin::new(),
            floor: Instant(0),
            blocked: false,
            rounds: 0,
            behind: false,
            waiter,
            handle,
            statistics: EmulatorStatistics::new(tolerable)?,
            options,
            mechanisms,
            tolerable,
            round_trip: None,
            processor: read_clock(SystemClock::Thread),
        };
        engine.handle.set_report(engine.report());
        Ok(engine)
    }

    /// The handle for other threads.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Replaces the network by one with nothing in transit. Frames in transit or in sockets, and all counts, are discarded.
    fn restart(&mut self, restart: Restart, batch: &mut ReceiveBatch) -> io::Result<()> {
        self.seed = restart.seed;
        let machine = EmulatedNetworkMachine::new(&self.plan, restart.seed, restart.record);
        let ended = std::mem::replace(&mut self.machine, machine).end();
        self.handle.set_record_error(ended.err());
        self.arrivals.clear();
        self.outgoing.clear();
        self.blocked = false;
        for queue in &mut self.queues {
            queue.clear();
            queue.discard(batch);
            packet_socket::take_counts(queue.socket())?;
        }
        self.statistics.clear();
        self.moderation.clear();
        self.floor = Instant(0);
        self.origin = EmulatorTimeOrigin::new();
        self.machine.begin(self.origin.monotonic_ns());
        self.processor = read_clock(SystemClock::Thread);
        Ok(())
    }

    /// Changes a link from now on.
    fn change(&mut self, link: usize, new: NetworkLink) {
        self.changed += 1;
        self.machine.change(
            &self.plan,
            link,
            &new,
            self.seed.child("change").index(self.changed),
        );
        if let Some(place) = self.plan.links.get_mut(link) {
            *place = new;
        }
    }

    /// The report since the last restart.
    fn report(&self) -> EmulatorReport {
        let elapsed = self.origin.now().since(Instant(0));
        let lateness = self.statistics.lateness.spread();
        let late = report::LateFrames {
            frames: self.statistics.lateness.above(),
            of: lateness,
            tolerable: self.tolerable,
        };
        let waited = Some(self.statistics.waited.spread()).filter(|waited| waited.count > 0);
        let processor = Duration(read_clock(SystemClock::Thread).saturating_sub(self.processor));
        EmulatorReport {
            elapsed,
            cpu: processor.seconds() / elapsed.seconds().max(1e-9),
            received: self.statistics.received,
            sent: self.statistics.sent,
            foreign: self.statistics.foreign(self.machine.without_path()),
            ports: self.ports(),
            lateness,
            waited,
            lost: self.statistics.lost,
            overload: report::overload(self.statistics.lost, late),
            round_trip: self.round_trip,
            mechanisms: self.mechanisms.descriptions.clone(),
        }
    }

    /// The counters of each link's two ports.
    fn ports(&self) -> Vec<EmulatedPortReport> {
        let both = |link: &NetworkLink| {
            let (first, second) = link.ends.clone();
            [(first.clone(), second.clone()), (second, first)]
        };
        let port = |(ends, counters): ((String, String), &net::PortCounters)| EmulatedPortReport {
            ends,
            packets: counters.packets,
            bytes: counters.bytes,
            busy: counters.busy,
            spoilt: counters.spoilt,
            marked: counters.marked,
            duplicated: counters.duplicated,
            drops: counters
                .drops_by_reason()
                .map(|(reason, count)| (reason.to_string(), count))
                .collect(),
        };
        self.plan
            .links
            .iter()
            .flat_map(both)
            .zip(&self.machine.counters())
            .map(port)
            .collect()
    }

    /// The queue of the host with that address.
    #[inline]
    fn queue_of(&self, address: std::net::IpAddr) -> Option<u32> {
        let (host, interface) = veth_port::holder(address)?;
        let place = self.interfaces.position(host, interface)?;
        let node = self.interfaces.all()[place].node;
        let queue = *self.of_node.get(node.0 as usize)?;
        (queue != NONE).then_some(queue)
    }
}

impl Drop for EmulatorEngine {
    fn drop(&mut self) {
        self.handle.end(None);
    }
}

/// The shortest propagation delay between two hosts; in a large network that of its shortest link.
fn shortest(machine: &EmulatedNetworkMachine, plan: &Network) -> Duration {
    let hosts = plan.hosts.len();
    if hosts > MOST_PAIRS {
        return plan
            .links
            .iter()
            .map(NetworkLink::least_delay)
            .min()
            .unwrap_or_default();
    }
    let hosts = 0..hosts as u32;
    let pairs = hosts
        .clone()
        .flat_map(|from| hosts.clone().map(move |to| (from, to)))
        .filter(|(from, to)| from != to);
    pairs
        .filter_map(|(from, to)| machine.path(NodeIndex(from), NodeIndex(to)))
        .map(|path| path.delay)
        .min()
        .unwrap_or_default()
}
