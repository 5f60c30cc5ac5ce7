//! The site of a simulation: the programs of master, disk servers and client, which wait for messages, disks, processors and room in their
//! connections. Parts on the same host reach each other without delay.

mod client;
mod disk_server;
mod master;

use super::scene::{BlockProcessingCosts, BlockScene, ServerOutcome};
use super::set_up::{CLIENT, FIRST_SERVER, set_up};
use super::usage::BlockSiteUsage;
use super::usage::{ConnectionFacts, ConnectionWatch};
use crate::server::UNSENT;
use disk_server::DiskServerSite;
use stackline_blocks::client::BlockClientMachine;
use stackline_blocks::demand::Asker;
use stackline_blocks::master::Master;
use stackline_blocks::session_record::BlockSessionRecord;
use stackline_blocks::wire::block_parts::PART;
use stackline_blocks::wire::message::Message;
use stackline_blocks::wire::server_messages::BlockHead;
use stackline_core::error::{Error, Result};
use stackline_core::plan::Stack;
use stackline_core::procedure::PairSide;
use stackline_core::random::Generator;
use stackline_core::stack::OptionValue;
use stackline_core::time::Instant;
use stackline_net::{NodeIndex, Tap};
use stackline_sim::SimDatagram;
use stackline_sim::application::{Mailbox, ProgramContext, Simulation};
use stackline_sim::messages::MessagePort;
use stackline_sim::usage::{UsageTotals, UsageWatch};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

/// What travels between parts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SimulatedBlockPayload {
    Message(Message),
    Block(BlockHead),
    /// The mark that the rest of a block is not sent.
    Cut,
}

impl SimulatedBlockPayload {
    /// Bytes on a connection.
    fn bytes(&self) -> u64 {
        match self {
            Self::Message(message) => message.bytes().len() as u64,
            Self::Block(head) => before_data(head) + u64::from(head.length),
            Self::Cut => PART as u64,
        }
    }
}

/// Bytes of the message before a block's data.
fn before_data(head: &BlockHead) -> u64 {
    Message::from(head.clone()).bytes().len() as u64
}

/// How two parts reach each other; the first of each pair is the side that opens the connection.
enum BlockSiteRoute {
    Connection([MessagePort<SimulatedBlockPayload>; 2]),
    /// Both are on the same host.
    Local([Mailbox<SimulatedBlockPayload>; 2]),
}

impl BlockSiteRoute {
    fn new<T: Tap<SimDatagram>>(
        simulation: &mut Simulation<'_, T>,
        from: NodeIndex,
        to: NodeIndex,
        stack: &Stack,
    ) -> Result<Rc<Self>> {
        if from == to {
            let context = simulation.context();
            let mailboxes = [context.mailbox(), context.mailbox()];
            return Ok(Rc::new(Self::Local(mailboxes)));
        }
        let ports = simulation.connect(from, to, [stack; 2])?;
        Ok(Rc::new(Self::Connection(ports)))
    }

    /// The port of a side, if there is a connection.
    fn port(&self, side: PairSide) -> Option<&MessagePort<SimulatedBlockPayload>> {
        match self {
            Self::Connection(ports) => Some(&ports[side.index()]),
            Self::Local(_) => None,
        }
    }

    /// Waits for the next message to a side.
    async fn receive(&self, side: PairSide) -> SimulatedBlockPayload {
        match self {
            Self::Connection(ports) => ports[side.index()].receive().await,
            Self::Local(mailboxes) => mailboxes[side.index()].next().await,
        }
    }
}

/// The outcome of all parts.
pub(super) struct BlockSiteFinish {
    pub(super) record: BlockSessionRecord,
    pub(super) servers: Vec<ServerOutcome>,
    pub(super) unwanted: (u64, u64),
    pub(super) usage: BlockSiteUsage,
}

/// All parts of a simulation.
pub(super) struct BlockSite {
    context: ProgramContext,
    costs: BlockProcessingCosts,
    supersedes: bool,
    client: RefCell<BlockClientMachine>,
    record: RefCell<BlockSessionRecord>,
    askers: RefCell<Vec<Asker>>,
    /// The numbers of the scene's sets.
    sets: Vec<u32>,
    master: RefCell<Master>,
    master_free: Cell<Instant>,
    /// From the client to the master.
    control: Rc<BlockSiteRoute>,
    servers: Vec<DiskServerSite>,
    generator: RefCell<Generator>,
    watch: RefCell<(UsageWatch, ConnectionWatch)>,
}

impl BlockSite {
    /// All parts of a scene, whose connections are being opened.
    ///
    /// # Errors
    /// If a host, path or option does not exist, or a set cannot be placed.
    pub(super) fn new<T: Tap<SimDatagram>>(
        scene: &BlockScene<'_>,
        simulation: &mut Simulation<'_, T>,
    ) -> Result<Rc<Self>> {
        let stack = as_live(scene.stack);
        let (master_node, client_node) = (node(scene, &scene.master)?, node(scene, &scene.client)?);
        let control = BlockSiteRoute::new(simulation, client_node, master_node, &stack)?;
        let mut servers = Vec::new();
        for (number, server) in (0..).zip(&scene.servers) {
            let at = node(scene, &server.host)?;
            let lists = BlockSiteRoute::new(simulation, at, master_node, &stack)?;
            let blocks = BlockSiteRoute::new(simulation, client_node, at, &stack)?;
            let in_parts = looks_for_room(scene.stack);
            let context = simulation.context();
            servers.push(DiskServerSite::new(
                &context,
                number,
                server,
                [lists, blocks],
                in_parts,
            ));
        }
        let mut client = BlockClientMachine::new(1);
        let mut master = Master::default();
        let sets = set_up(scene, &mut master, &mut client)?;
        Ok(Rc::new(Self {
            context: simulation.context(),
            costs: scene.costs,
            supersedes: scene.supersedes,
            client: RefCell::new(client),
            record: RefCell::new(BlockSessionRecord::new(scene.histories)),
            askers: RefCell::default(),
            sets,
            master: RefCell::new(master),
            master_free: Cell::new(Instant(0)),
            control,
            servers,
            generator: RefCell::new(scene.seed.child("disks").generator()),
            watch: RefCell::default(),
        }))
    }

    /// Starts a program.
    fn spawn<F: Future<Output = Result<()>> + 'static>(
        self: &Rc<Self>,
        program: impl FnOnce(Rc<Self>) -> F,
    ) {
        self.context.spawn(program(Rc::clone(self)));
    }

    /// Whether all connections are established.
    pub(super) fn is_connected(&self) -> bool {
        self.routes()
            .filter_map(|route| route.port(PairSide::Initiator))
            .all(MessagePort::is_connected)
    }

    fn routes(&self) -> impl Iterator<Item = &Rc<BlockSiteRoute>> {
        let of_servers = self
            .servers
            .iter()
            .flat_map(|server| [&server.lists, &server.blocks]);
        of_servers.chain([&self.control])
    }

    /// Starts all programs, once the connections are established. `askers` generate the lists.
    pub(super) fn start(self: &Rc<Self>, askers: Vec<Asker>, histories: bool) {
        for route in self.routes() {
            if let Some(port) = route.port(PairSide::Initiator).cloned() {
                self.spawn(|_| async move {
                    port.broken().await;
                    Err(Error::measurement("a connection was abandoned"))
                });
            }
        }
        self.spawn(Self::serve_lists);
        self.spawn(Self::hear_master);
        for number in 0..self.servers.len() {
            self.spawn(|site| site.take_lists(number));
            self.spawn(|site| site.write_to_client(number));
            self.spawn(|site| site.take_blocks(number));
        }
        if histories {
            let begun = self.context.now();
            self.watch.borrow_mut().0 = UsageWatch::from(begun);
            self.spawn(|site| site.watch_usage(begun));
        }
        let sets = askers.len();
        *self.askers.borrow_mut() = askers;
        for set in 0..sets {
            self.spawn(|site| site.ask_for_lists(set));
        }
    }

    /// Sends a message over a route; on the same host it arrives at once.
    fn put(&self, route: &Rc<BlockSiteRoute>, side: PairSide, payload: SimulatedBlockPayload) {
        if let Some(port) = route.port(side) {
            port.put(payload.bytes(), payload);
            return;
        }
        let (context, route) = (self.context.clone(), Rc::clone(route));
        self.context.spawn(async move {
            context.sleep_until(context.now()).await;
            if let BlockSiteRoute::Local(mailboxes) = &*route {
                mailboxes[side.other().index()].put(payload);
            }
            Ok(())
        });
    }

    // --- what is watched ---

    async fn watch_usage(self: Rc<Self>, begun: Instant) -> Result<()> {
        let mut next = begun;
        loop {
            self.context.sleep_until(next).await;
            let usage = self.context.usage().await;
            self.look(usage, next > begun);
            next += UsageWatch::EVERY;
        }
    }
}

impl BlockSite {
    /// Records the use of ports and connections at this moment.
    pub(super) fn look(&self, usage: UsageTotals, counts: bool) {
        let now = self.context.now();
        let facts = [PairSide::Responder, PairSide::Initiator].map(|side| self.facts(side));
        let mut watch = self.watch.borrow_mut();
        // The processing costs of blocks do not use the simulated hosts' processors.
        let usage = UsageTotals {
            processors: Vec::new(),
            ..usage
        };
        watch.0.look(now, usage, counts);
        watch.1.look(now, facts.concat());
    }

    /// The statistics of that side of each server's connection.
    fn facts(&self, side: PairSide) -> Vec<ConnectionFacts> {
        let of = |(server, site): (usize, &DiskServerSite)| {
            let facts = site.blocks.port(side)?.facts()?;
            Some(ConnectionFacts {
                server,
                side,
                facts,
            })
        };
        self.servers.iter().enumerate().filter_map(of).collect()
    }

    /// The outcome of all parts.
    pub(super) fn finish(&self) -> BlockSiteFinish {
        let mut record = self.record.borrow_mut();
        let mut client = self.client.borrow_mut();
        client
            .finish()
            .into_iter()
            .for_each(|tally| record.ended(tally));
        let (usage, connections) = self.watch.take();
        let servers = self.servers.iter().map(DiskServerSite::outcome);
        BlockSiteFinish {
            record: std::mem::replace(&mut *record, BlockSessionRecord::new(false)),
            servers: servers.collect(),
            unwanted: client.unwanted(),
            usage: BlockSiteUsage {
                intervals: usage.into_intervals(),
                connections: connections.seen,
            },
        }
    }
}

/// The index of a host in the network.
fn node(scene: &BlockScene<'_>, name: &str) -> Result<NodeIndex> {
    let hosts = &scene.network.hosts;
    let at = hosts.iter().position(|host| host.name == name);
    let at = at.ok_or_else(|| {
        let network = &scene.network.name;
        Error::input(format!("the network {network} has no host {name}"))
            .hint("the master, servers and client must be hosts of the network")
    })?;
    Ok(NodeIndex(u32::try_from(at).unwrap_or(u32::MAX)))
}

/// Whether a block begins only while little waits to leave. With a send buffer of fixed size, that buffer is the limit instead.
fn looks_for_room(stack: &Stack) -> bool {
    stack.number("send_buffer").is_none()
}

/// The options that the live programs set on their sockets: no Nagle delay, and little waiting to leave unless a send buffer is given.
fn as_live(stack: &Stack) -> Stack {
    let mut stack = stack.clone();
    stack.options.insert("nodelay".into(), OptionValue::Set);
    if looks_for_room(&stack) {
        stack.options.insert(
            "notsent_lowat".into(),
            OptionValue::Number(2 * u64::from(UNSENT)),
        );
    }
    stack
}
