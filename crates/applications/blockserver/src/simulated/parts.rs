//! The parts of a simulated site and the connections between them: who is where, who is busy until when. A part that is on
//! the same host as another is reached at once.

use super::{BlockScene, ServerOutcome, SimulatedServer};
use crate::server::UNSENT;
use stackline_blocks::client::BlockClientMachine;
use stackline_blocks::limits;
use stackline_blocks::master::{Actions, Master, stamp_master_out};
use stackline_blocks::placement::BlockPlacementPolicy;
use stackline_blocks::send_window::{BlockSendWindow, RoundTrips};
use stackline_blocks::server::{DiskExtent, DiskServerMachine, Woken, Write};
use stackline_blocks::wire::block_parts::PART;
use stackline_blocks::wire::handshake::BlockPeerRole;
use stackline_blocks::wire::master_messages::{
    BlockMapEntry, Commit, CommittedBlock, Create, DiskOwnerRecord, Join, OpenSetRequest, Reserve,
};
use stackline_blocks::wire::message::Message;
use stackline_blocks::wire::server_messages::{BlockHead, DiskInfo, ServerBlockRequests};
use stackline_core::error::{Error, Result};
use stackline_core::plan::Stack;
use stackline_core::procedure::PairSide;
use stackline_core::random::Generator;
use stackline_core::stack::OptionValue;
use stackline_core::time::{Duration, Instant};
use stackline_net::{NodeIndex, Tap};
use stackline_sim::SimDatagram;
use stackline_sim::messages::{MessageNetwork, TcpFacts};
use std::collections::{BTreeMap, VecDeque};

/// What travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SimulatedBlockPayload {
    Message(Message),
    Block(BlockHead),
    /// The end of a block whose rest is not sent.
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

/// What comes later.
#[derive(Clone, Debug)]
pub(super) enum BlockSiteTask {
    /// A list is sent.
    List { set: usize, begun: Instant },
    /// What was sent on the same host comes.
    Local(SimulatedBlockPayload, u32, PairSide),
    /// The master has translated a list.
    Translate { came: Instant, message: Message },
    /// The master sends something on.
    Forward { server: usize, message: Message },
    /// A server has understood a list.
    Parse {
        server: usize,
        came: Instant,
        list: ServerBlockRequests,
    },
    /// A server's processor has done what this follows.
    Computed { server: usize, task: Box<Self> },
    /// A block has come from its disk.
    Read {
        server: usize,
        disk: u16,
        spot: DiskExtent,
    },
    /// A block goes to the transport.
    Hand { server: usize, head: BlockHead },
    /// A block is in memory and in the write queue, and its disk's thread reads on.
    ReadDone {
        server: usize,
        disk: u16,
        spot: DiskExtent,
    },
    /// The application reads on.
    Reads { connection: u32, side: PairSide },
    /// Counters are looked at.
    Look,
    /// It is looked whether a server's connection has room.
    Room(usize),
}

/// How two parts reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockSiteRoute {
    Connection(u32),
    /// On the same host; the number only tells it from others.
    Local(u32),
}

/// Numbers of ways on one host begin here.
const LOCAL: u32 = 1 << 31;
/// The master's connections: of the client, and of the first server.
const CLIENT: u64 = 1;
const FIRST_SERVER: u64 = 100;
/// Bytes of a simulated disk.
const CAPACITY: u64 = 1 << 50;

/// A server's processor: one thing at a time.
#[derive(Default)]
struct DiskServerProcessor {
    busy: bool,
    urgent: VecDeque<(Duration, BlockSiteTask)>,
    others: VecDeque<(Duration, BlockSiteTask)>,
}

struct DiskServerWrite {
    unit: Option<u64>,
    /// Of a block in parts, how many bytes of its data were handed over.
    rest: Option<(BlockHead, u64)>,
    /// Whether the transport has taken what was handed over last.
    is_taken: bool,
}

impl DiskServerWrite {
    const fn all(unit: Option<u64>) -> Self {
        Self {
            unit,
            rest: None,
            is_taken: false,
        }
    }
}

pub(super) struct BlockSiteParts<T: Tap<SimDatagram>> {
    pub(super) world: MessageNetwork<SimulatedBlockPayload, T>,
    pub(super) client: BlockClientMachine,
    pub(super) servers: Vec<DiskServerMachine<()>>,
    /// The numbers of the scene's sets.
    pub(super) sets: Vec<u32>,
    master: Master,
    client_master: BlockSiteRoute,
    server_master: Vec<BlockSiteRoute>,
    client_server: Vec<BlockSiteRoute>,
    master_free: Instant,
    processors: Vec<DiskServerProcessor>,
    /// Until when the application is at a block, by connection.
    taking: BTreeMap<u32, Instant>,
    disks_free: Vec<Vec<bool>>,
    writing: Vec<Option<DiskServerWrite>>,
    /// What servers' connections hold, and whether it is looked again; none where they have buffers of a fixed size.
    flights: Option<Vec<(BlockSendWindow, bool)>>,
    generator: Generator,
    tasks: BTreeMap<u64, BlockSiteTask>,
    next_task: u64,
}

impl<T: Tap<SimDatagram>> BlockSiteParts<T> {
    pub(super) fn new(scene: &BlockScene<'_>, tap: T) -> Result<Self> {
        let node = |name: &str| {
            let at = scene
                .network
                .hosts
                .iter()
                .position(|host| host.name == name);
            let at = at.ok_or_else(|| {
                Error::input(format!(
                    "the network {} has no host {name}",
                    scene.network.name
                ))
                .hint("master, servers and client are hosts of the network")
            })?;
            Ok::<NodeIndex, Error>(NodeIndex(u32::try_from(at).unwrap_or(u32::MAX)))
        };
        let mut world = MessageNetwork::new(scene.network, scene.seed, tap, true);
        let mut local = LOCAL;
        let stack = as_live(scene.stack);
        let mut way = |world: &mut MessageNetwork<SimulatedBlockPayload, T>,
                       from: NodeIndex,
                       to: NodeIndex| {
            if from == to {
                local += 1;
                Ok(BlockSiteRoute::Local(local))
            } else {
                world
                    .connect(from, to, [&stack; 2])
                    .map(BlockSiteRoute::Connection)
            }
        };
        let (master_node, client_node) = (node(&scene.master)?, node(&scene.client)?);
        let client_master = way(&mut world, client_node, master_node)?;
        let (mut server_master, mut client_server) = (Vec::new(), Vec::new());
        for server in &scene.servers {
            let at = node(&server.host)?;
            server_master.push(way(&mut world, at, master_node)?);
            client_server.push(way(&mut world, client_node, at)?);
        }
        let mut client = BlockClientMachine::new(1);
        let mut master = Master::default();
        let sets = set_up(scene, &mut master, &mut client)?;
        let servers = scene.servers.iter().enumerate().map(|(at, server)| {
            let mut machine =
                DiskServerMachine::new(at as u16, server.disks.len() as u16, server.cache);
            let _ = machine.attach(u128::from(CLIENT), at as u64, None);
            machine
        });
        Ok(Self {
            world,
            client,
            servers: servers.collect(),
            sets,
            master,
            client_master,
            server_master,
            client_server,
            master_free: Instant(0),
            processors: scene
                .servers
                .iter()
                .map(|_| DiskServerProcessor::default())
                .collect(),
            taking: BTreeMap::new(),
            disks_free: scene
                .servers
                .iter()
                .map(|server| vec![true; server.disks.len()])
                .collect(),
            writing: scene.servers.iter().map(|_| None).collect(),
            flights: looks_for_room(scene.stack)
                .then(|| vec![(BlockSendWindow::new(0), false); scene.servers.len()]),
            generator: scene.seed.child("disks").generator(),
            tasks: BTreeMap::new(),
            next_task: 0,
        })
    }

    /// How many connections have to come about.
    pub(super) fn connections(&self) -> usize {
        let ways = self
            .server_master
            .iter()
            .chain(&self.client_server)
            .chain([&self.client_master]);
        ways.filter(|way| matches!(way, BlockSiteRoute::Connection(_)))
            .count()
    }

    // --- time ---

    pub(super) fn at(&mut self, at: Instant, task: BlockSiteTask) {
        self.next_task += 1;
        self.tasks.insert(self.next_task, task);
        self.world.set_timer(at, self.next_task);
    }

    pub(super) fn take_task(&mut self, token: u64) -> Option<BlockSiteTask> {
        self.tasks.remove(&token)
    }

    /// When the master has done something more.
    pub(super) fn master_busy(&mut self, now: Instant, takes: Duration) -> Instant {
        self.master_free = self.master_free.max(now) + takes;
        self.master_free
    }

    /// A server's processor is to do something that takes so long, and `task` follows. What hands a block to the transport
    /// goes before what else waits: a thread that has slept is preferred to one that has computed.
    pub(super) fn compute(
        &mut self,
        server: usize,
        now: Instant,
        takes: Duration,
        urgent: bool,
        task: BlockSiteTask,
    ) {
        let processor = &mut self.processors[server];
        let waiting = if urgent {
            &mut processor.urgent
        } else {
            &mut processor.others
        };
        waiting.push_back((takes, task));
        if !processor.busy {
            self.compute_next(server, now);
        }
    }

    /// What the processor does next, if anything waits for it.
    pub(super) fn compute_next(&mut self, server: usize, now: Instant) {
        let processor = &mut self.processors[server];
        let next = processor
            .urgent
            .pop_front()
            .or_else(|| processor.others.pop_front());
        processor.busy = next.is_some();
        if let Some((takes, task)) = next {
            self.at(
                now + takes,
                BlockSiteTask::Computed {
                    server,
                    task: Box::new(task),
                },
            );
        }
    }

    // --- ways ---

    fn send(&mut self, way: BlockSiteRoute, side: PairSide, travels: SimulatedBlockPayload) {
        match way {
            BlockSiteRoute::Connection(connection) => {
                let bytes = travels.bytes();
                self.world.send(connection, side, bytes, travels);
            }
            BlockSiteRoute::Local(number) => {
                let now = self.world.now();
                self.at(now, BlockSiteTask::Local(travels, number, side.other()));
            }
        }
    }

    pub(super) fn send_to_master(&mut self, message: Message) {
        self.send(
            self.client_master,
            PairSide::Initiator,
            SimulatedBlockPayload::Message(message),
        );
    }

    pub(super) fn send_to_server(&mut self, server: usize, message: Message) {
        self.send(
            self.server_master[server],
            PairSide::Responder,
            SimulatedBlockPayload::Message(message),
        );
    }

    /// Sends the client a message of a server.
    pub(super) fn send_to_client(&mut self, server: usize, message: Message) {
        let travels = SimulatedBlockPayload::Message(message);
        self.hand(
            server,
            travels.bytes(),
            Some(travels),
            DiskServerWrite::all(None),
        );
    }

    /// Hands over bytes to the client, and what they are where they end it.
    fn hand(
        &mut self,
        server: usize,
        bytes: u64,
        ends: Option<SimulatedBlockPayload>,
        writing: DiskServerWrite,
    ) {
        let way = self.client_server[server];
        if let Some((flight, _)) = self
            .flights
            .as_mut()
            .and_then(|flights| flights.get_mut(server))
        {
            flight.handed(bytes);
        }
        self.writing[server] = matches!(way, BlockSiteRoute::Connection(_)).then_some(writing);
        match (way, ends) {
            (BlockSiteRoute::Connection(connection), Some(travels)) => {
                self.world
                    .send(connection, PairSide::Responder, bytes, travels);
            }
            (BlockSiteRoute::Connection(connection), None) => {
                self.world.send_part(connection, PairSide::Responder, bytes)
            }
            (BlockSiteRoute::Local(_), Some(travels)) => {
                self.send(way, PairSide::Responder, travels)
            }
            (BlockSiteRoute::Local(_), None) => {}
        }
    }

    /// Sends the client a block, or the first part of one.
    pub(super) fn begin_block(&mut self, server: usize, head: BlockHead) {
        let bytes = before_data(&head);
        let is_in_parts = self.flights.is_some()
            && matches!(self.client_server[server], BlockSiteRoute::Connection(_));
        if is_in_parts {
            self.part(server, head, (0, bytes));
        } else {
            let (unit, bytes) = (head.unit, bytes + u64::from(head.length));
            self.hand(
                server,
                bytes,
                Some(SimulatedBlockPayload::Block(head)),
                DiskServerWrite::all(Some(unit)),
            );
        }
    }

    /// Hands over the next part of a block of which `done` bytes were, behind so many bytes.
    fn part(&mut self, server: usize, head: BlockHead, (done, before): (u64, u64)) {
        let left = u64::from(head.length) - done;
        let most = self
            .flights
            .as_ref()
            .and_then(|flights| flights[server].0.part())
            .unwrap_or(u64::MAX / 2);
        // As live.
        let length = if left < most + most / 2 { left } else { most };
        let bytes = before + if length > 0 { PART as u64 } else { 0 } + length;
        let unit = Some(head.unit);
        if length == left {
            self.hand(
                server,
                bytes,
                Some(SimulatedBlockPayload::Block(head)),
                DiskServerWrite::all(unit),
            );
        } else {
            let rest = Some((head, done + length));
            self.hand(
                server,
                bytes,
                None,
                DiskServerWrite {
                    unit,
                    rest,
                    is_taken: false,
                },
            );
        }
    }

    /// Hands over the next part of the block that is under way, or says that it ends where it is superseded. Whether there is one.
    pub(super) fn go_on(&mut self, server: usize) -> bool {
        let Some(DiskServerWrite {
            rest: Some((head, done)),
            ..
        }) = self.writing[server].take()
        else {
            return false;
        };
        if self.servers[server].is_superseded(server as u64, head.unit) {
            self.servers[server].cut(server as u64, head.unit);
            self.hand(
                server,
                SimulatedBlockPayload::Cut.bytes(),
                Some(SimulatedBlockPayload::Cut),
                DiskServerWrite::all(None),
            );
        } else {
            self.part(server, head, (done, 0));
        }
        true
    }

    /// Whose blocks go over a connection.
    pub(super) fn server_of(&self, connection: u32) -> Option<usize> {
        self.client_server
            .iter()
            .position(|way| *way == BlockSiteRoute::Connection(connection))
    }

    /// Whose lists come over a connection, or on one host.
    pub(super) fn control_of(&self, connection: u32) -> Option<usize> {
        let ways = [
            BlockSiteRoute::Connection(connection),
            BlockSiteRoute::Local(connection),
        ];
        self.server_master.iter().position(|way| ways.contains(way))
    }

    pub(super) fn set_index(&self, set: u32) -> Option<usize> {
        self.sets.iter().position(|known| *known == set)
    }

    // --- the master ---

    /// A list that came at `came` is translated now, and sent on after `forward`.
    pub(super) fn translate(
        &mut self,
        came: Instant,
        now: Instant,
        message: Message,
        forward: Duration,
    ) {
        let actions = self.master.handle(came, CLIENT, message);
        for (connection, mut message) in actions.sends {
            stamp_master_out(&mut message, now);
            match connection.checked_sub(FIRST_SERVER) {
                Some(server) => self.at(
                    now + forward,
                    BlockSiteTask::Forward {
                        server: server as usize,
                        message,
                    },
                ),
                None => self.send(
                    self.client_master,
                    PairSide::Responder,
                    SimulatedBlockPayload::Message(message),
                ),
            }
        }
    }

    // --- the application ---

    /// The application is at a block of a connection for so long, after those that came before, and reads none meanwhile.
    pub(super) fn take(&mut self, now: Instant, connection: u32, side: PairSide, takes: Duration) {
        let until = self
            .taking
            .get(&connection)
            .map_or(now, |until| now.max(*until))
            + takes;
        self.taking.insert(connection, until);
        self.world.set_reading(connection, side, false);
        self.at(until, BlockSiteTask::Reads { connection, side });
    }

    /// The application reads on, unless a later block holds it.
    pub(super) fn read_on(&mut self, now: Instant, connection: u32, side: PairSide) {
        if self
            .taking
            .get(&connection)
            .is_none_or(|until| *until <= now)
        {
            self.world.set_reading(connection, side, true);
        }
    }

    // --- servers ---

    pub(super) fn disk_is_free(&self, server: usize, disk: u16) -> bool {
        self.disks_free[server]
            .get(usize::from(disk))
            .is_some_and(|free| *free)
    }

    pub(super) fn set_disk_free(&mut self, server: usize, disk: u16) {
        if let Some(free) = self.disks_free[server].get_mut(usize::from(disk)) {
            *free = true;
        }
    }

    /// What a read takes, drawn; the disk is not free until then.
    pub(super) fn disk_takes(
        &mut self,
        scene: &BlockScene<'_>,
        server: usize,
        disk: u16,
    ) -> Duration {
        let at = usize::from(disk);
        self.disks_free[server][at] = false;
        Duration::from_seconds(scene.servers[server].disks[at].draw(&mut self.generator))
    }

    /// Whether a server's connection takes another block now. If not, it is told when one does, or when it is to look again.
    pub(super) fn may_begin(&mut self, now: Instant, server: usize) -> bool {
        let is_under_way = match &self.writing[server] {
            Some(DiskServerWrite {
                rest: Some(_),
                is_taken: true,
                ..
            }) => true,
            Some(_) => return false,
            None => false,
        };
        let (Some(flights), BlockSiteRoute::Connection(connection)) =
            (&mut self.flights, self.client_server[server])
        else {
            return true;
        };
        if !is_under_way && self.servers[server].to_write(server as u64) == 0 {
            flights[server].0.idle();
            return true;
        }
        let (flight, looks_again) = &mut flights[server];
        if !flight.may_begin()
            && let Some(facts) = self.world.facts(connection, PairSide::Responder)
        {
            let trips = RoundTrips {
                usual: facts.rtt,
                least: facts.least_rtt,
                deviation: facts.rtt_deviation,
            };
            flight.look(now, facts.bytes_acked, trips);
        }
        let may_begin = flight.may_begin();
        let look_at = (!may_begin && !*looks_again).then(|| now + flight.look_again());
        *looks_again |= !may_begin;
        if may_begin && self.world.has_room(connection, PairSide::Responder) {
            return true;
        }
        if !is_under_way {
            self.servers[server].waits_for_room(now, server as u64);
        }
        match look_at {
            Some(at) => self.at(at, BlockSiteTask::Room(server)),
            None if may_begin => self.world.wait_for_room(connection, PairSide::Responder),
            None => {}
        }
        false
    }

    /// It was looked whether there is room.
    pub(super) fn looks(&mut self, server: usize) {
        if let Some((_, looks_again)) = self
            .flights
            .as_mut()
            .and_then(|flights| flights.get_mut(server))
        {
            *looks_again = false;
        }
    }

    /// Nothing else of the server is written until the transport has taken this block.
    pub(super) fn begin_writing(&mut self, server: usize, unit: u64) {
        self.writing[server] = Some(DiskServerWrite::all(Some(unit)));
    }

    pub(super) fn next_write(
        &mut self,
        now: Instant,
        server: usize,
        woken: &mut Woken,
    ) -> Option<Write<()>> {
        self.servers[server].next_write(now, server as u64, woken)
    }

    /// The transport has taken what the server wrote.
    pub(super) fn sent(&mut self, now: Instant, server: usize) {
        match &mut self.writing[server] {
            Some(DiskServerWrite {
                rest: Some(_),
                is_taken,
                ..
            }) => *is_taken = true,
            writing => {
                if let Some(DiskServerWrite {
                    unit: Some(unit), ..
                }) = writing.take()
                {
                    self.servers[server].write_done(now, server as u64, unit);
                }
            }
        }
    }

    /// What both ends of each server's connection know of themselves, servers' ends first.
    pub(super) fn ends(&self) -> Vec<(usize, PairSide, TcpFacts)> {
        let of = |side: PairSide| {
            self.client_server
                .iter()
                .enumerate()
                .filter_map(move |(server, way)| match way {
                    BlockSiteRoute::Connection(connection) => {
                        Some((server, side, self.world.facts(*connection, side)?))
                    }
                    BlockSiteRoute::Local(_) => None,
                })
        };
        of(PairSide::Responder)
            .chain(of(PairSide::Initiator))
            .collect()
    }

    /// What is known of each server.
    pub(super) fn server_outcomes(&self, scene: &BlockScene<'_>) -> Vec<ServerOutcome> {
        let of = |(server, way): (&SimulatedServer, &BlockSiteRoute)| {
            let connection = if let BlockSiteRoute::Connection(connection) = way {
                Some(*connection)
            } else {
                None
            };
            let facts =
                connection.and_then(|connection| self.world.facts(connection, PairSide::Responder));
            ServerOutcome {
                host: server.host.clone(),
                connection,
                sent_again: facts.map_or(0, |facts| facts.retransmits),
            }
        };
        scene
            .servers
            .iter()
            .zip(&self.client_server)
            .map(of)
            .collect()
    }
}

/// A disk for each block, in turn.
fn places(given: &[u32], blocks: &[u64]) -> Vec<u32> {
    let place = |block: &u64| {
        given
            .get((*block % given.len().max(1) as u64) as usize)
            .copied()
            .unwrap_or(0)
    };
    blocks.iter().map(place).collect()
}

/// Whether a block begins only where little waits to leave; a send buffer of a fixed size is tried instead.
fn looks_for_room(stack: &Stack) -> bool {
    stack.number("send_buffer").is_none()
}

/// What the live parts ask of their sockets: messages leave at once, and little waits to leave unless a send buffer is given.
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

/// Servers join and sets are placed before time begins; the numbers of the sets.
fn set_up(
    scene: &BlockScene<'_>,
    master: &mut Master,
    client: &mut BlockClientMachine,
) -> Result<Vec<u32>> {
    let start = Instant(0);
    let refused = |actions: &Actions| -> Result<()> {
        let words = actions.sends.iter().find_map(|(_, message)| match message {
            Message::Refused(refused) => Some(refused.words.clone()),
            _ => None,
        });
        words.map_or(Ok(()), |words| Err(Error::input(words)))
    };
    for (at, server) in scene.servers.iter().enumerate() {
        let disk = |number| DiskInfo {
            identity: (at as u128 + 1) << 16 | number as u128,
            path: String::new(),
            capacity: CAPACITY,
            used: 0,
            up: true,
            writable: true,
            damaged: 0,
        };
        let disks = (0..server.disks.len()).map(disk).collect();
        let connection = FIRST_SERVER + at as u64;
        let _ = master.connected(connection, BlockPeerRole::Server, 0);
        let name = format!("{}-{at}", server.host);
        let kept = server
            .disks
            .iter()
            .map(|_| DiskOwnerRecord {
                master: 0,
                used: 0,
                last_set: 0,
            })
            .collect();
        let join = Join {
            name,
            address: String::new(),
            disks,
            kept,
            adopt: false,
        };
        refused(&master.handle(start, connection, join.into()))?;
    }
    let loader = 2;
    let _ = master.connected(loader, BlockPeerRole::Loader, 0);
    let _ = master.connected(CLIENT, BlockPeerRole::Client, u128::from(CLIENT));
    let mut sets = Vec::new();
    for (about, _) in &scene.sets {
        refused(
            &master.handle(
                start,
                loader,
                Create {
                    request: 1,
                    about: about.clone(),
                }
                .into(),
            ),
        )?;
        let set = master
            .set(&about.name)
            .ok_or_else(|| Error::input("a set could not be made"))?;
        let mut first = 0;
        while first < about.blocks() {
            let last = (first + limits::LONGEST_BATCH as u64).min(about.blocks());
            let blocks: Vec<u64> = (first..last).collect();
            let given = if about.placement == BlockPlacementPolicy::Given {
                places(&scene.given, &blocks)
            } else {
                Vec::new()
            };
            let reserve = Reserve {
                request: 2,
                set,
                blocks,
                given,
            };
            let actions = master.handle(start, loader, reserve.into());
            refused(&actions)?;
            let rows = actions
                .sends
                .into_iter()
                .find_map(|(_, message)| match message {
                    Message::Reserved(reserved) => Some(reserved.rows),
                    _ => None,
                });
            let rows: Vec<BlockMapEntry> = rows.unwrap_or_default();
            let blocks = (first..last)
                .zip(rows)
                .map(|(number, row)| CommittedBlock { number, row })
                .collect();
            let seal = last == about.blocks();
            refused(
                &master.handle(
                    start,
                    loader,
                    Commit {
                        request: 3,
                        set,
                        blocks,
                        seal,
                    }
                    .into(),
                ),
            )?;
            first = last;
        }
        refused(
            &master.handle(
                start,
                CLIENT,
                OpenSetRequest {
                    request: 4,
                    name: about.name.clone(),
                }
                .into(),
            ),
        )?;
        client.opened(set, about.clone());
        sets.push(set);
    }
    Ok(sets)
}
