//! Master, disk servers and one client in virtual time: the same machines as live, over simulated `tcp`, with disks that
//! take as long as is said, and with what processors of 1995 took where that is said.
//!
//! Sets are there from the beginning; loading is not simulated. All hosts have the right time.

mod event_export;
mod parts;
mod usage;

pub use event_export::{emit_scene_events, event_table};
pub use usage::{BlockSiteUsage, ConnectionUse, PortUse};

use parts::{BlockSiteParts, BlockSiteTask, SimulatedBlockPayload};
use stackline_blocks::client::BlockArrival;
use stackline_blocks::demand::{Asker, BlockListSchedule, Demand};
use stackline_blocks::server::{Woken, Write};
use stackline_blocks::session_record::{BlockSessionRecord, SentListRecord};
use stackline_blocks::set::BlockSet;
use stackline_blocks::wire::message::Message;
use stackline_core::distribution::Distribution;
use stackline_core::error::{Error, Result};
use stackline_core::network::Network;
use stackline_core::plan::Stack;
use stackline_core::procedure::PairSide;
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_net::{PortCounters, Tap};
use stackline_sim::SimDatagram;
use stackline_sim::messages::{Happening, MessageTrace};
use usage::{EVERY, Watcher};

/// A disk server.
#[derive(Clone, Debug)]
pub struct SimulatedServer {
    /// Its host.
    pub host: String,
    /// Of each disk, what a read takes, s.
    pub disks: Vec<Distribution>,
    /// Bytes of blocks that are kept in memory.
    pub cache: u64,
}

/// What processors take. Of the paper's hosts: Tierney et al. 1996, sections 4.2.3 and 4.3.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockProcessingCosts {
    /// The master, to translate a list.
    pub translate: Duration,
    /// The master, to send it on.
    pub forward: Duration,
    /// A server, to understand a list and look in its memory.
    pub parse: Duration,
    /// A server's processor, to keep a block that was read and to enter it in the write queue.
    pub enter: Duration,
    /// A server's processor, to hand a block to the transport.
    pub hand: Duration,
    /// The application, to take a block, for each server's connection by itself.
    pub receive: Duration,
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct BlockScene<'n> {
    /// The network.
    pub network: &'n Network,
    /// The master's host.
    pub master: String,
    /// The client's host.
    pub client: String,
    /// The servers.
    pub servers: Vec<SimulatedServer>,
    /// `tcp` and its options, of all connections.
    pub stack: &'n Stack,
    /// What processors take.
    pub costs: BlockProcessingCosts,
    /// The sets, each with what is asked of it.
    pub sets: Vec<(BlockSet, Demand)>,
    /// Where the blocks of sets are put whose placement is given: a disk for each in turn.
    pub given: Vec<u32>,
    /// When lists are sent.
    pub schedule: BlockListSchedule,
    /// Blocks that the application keeps, and most blocks of a list.
    pub keeps: usize,
    /// See `keeps`.
    pub most: usize,
    /// Whether a newer list discards the older one.
    pub supersedes: bool,
    /// Whether all histories are kept.
    pub histories: bool,
    /// The seed.
    pub seed: Seed,
}

/// What is known of a server at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOutcome {
    /// Its host.
    pub host: String,
    /// The connection that its blocks went over; none where the client is on its host.
    pub connection: Option<u32>,
    /// Segments that it sent again.
    pub sent_again: u64,
}

/// What came of it.
#[derive(Debug)]
pub struct BlockSceneOutcome {
    /// The session's record.
    pub record: BlockSessionRecord,
    /// When the last list was over.
    pub end: Instant,
    /// What connections did.
    pub traced: Vec<MessageTrace>,
    /// Of each server.
    pub servers: Vec<ServerOutcome>,
    /// What went through each direction of each link.
    pub counters: Vec<PortCounters>,
    /// Blocks that came and were not wanted any more, and their bytes.
    pub unwanted: (u64, u64),
    /// What ports and connections did, interval by interval, where histories are kept.
    pub watched: BlockSiteUsage,
}

/// How long it is waited for connections.
const CONNECTING: Instant = Instant(60_000_000_000);

/// Carries it out. `tap` receives every event of the network, and is given back.
///
/// # Errors
/// When a host, path or option is not there, or nothing can be asked for.
pub fn carry_out<T: Tap<SimDatagram>>(
    scene: &BlockScene<'_>,
    tap: T,
) -> Result<(BlockSceneOutcome, T)> {
    let mut site = BlockSite {
        parts: BlockSiteParts::new(scene, tap)?,
        scene,
        record: BlockSessionRecord::new(scene.histories),
        askers: Vec::new(),
        watcher: Watcher::default(),
    };
    site.wait_for_connections()?;
    let begun = site.parts.world.now();
    if scene.histories {
        site.parts.at(begun, BlockSiteTask::Look);
    }
    for (index, (set, demand)) in scene.sets.iter().enumerate() {
        if matches!(demand, Demand::Viewer(_)) && set.picture.is_none() {
            return Err(Error::input(format!(
                "the set {} has no picture that could be viewed",
                set.name
            )));
        }
        let seed = scene.seed.child("viewer").index(index as u64);
        let asker = Asker::new(
            set,
            demand.clone(),
            scene.schedule,
            scene.keeps,
            scene.most,
            seed,
        );
        site.askers.push(asker);
        site.parts
            .at(begun, BlockSiteTask::List { set: index, begun });
    }
    // What the last list asked for may come as long as that of any other.
    let end = begun + scene.schedule.duration;
    while let Some((now, happening)) = site.parts.world.next(end)? {
        site.happened(now, happening)?;
    }
    if scene.histories {
        site.look(end);
    }
    let BlockSite {
        mut parts,
        mut record,
        watcher,
        ..
    } = site;
    parts
        .client
        .finish()
        .into_iter()
        .for_each(|tally| record.ended(tally));
    let traced = parts.world.take_traced();
    let servers = parts.server_outcomes(scene);
    let (counters, unwanted) = (parts.world.counters(), parts.client.unwanted());
    let watched = watcher.seen;
    Ok((
        BlockSceneOutcome {
            record,
            end,
            traced,
            servers,
            counters,
            unwanted,
            watched,
        },
        parts.world.into_tap(),
    ))
}

struct BlockSite<'s, T: Tap<SimDatagram>> {
    parts: BlockSiteParts<T>,
    scene: &'s BlockScene<'s>,
    record: BlockSessionRecord,
    askers: Vec<Asker>,
    watcher: Watcher,
}

impl<T: Tap<SimDatagram>> BlockSite<'_, T> {
    fn wait_for_connections(&mut self) -> Result<()> {
        let mut missing = self.parts.connections();
        while missing > 0 {
            match self.parts.world.next(CONNECTING)? {
                Some((_, Happening::Connected(_))) => missing -= 1,
                Some(_) => {}
                None => {
                    return Err(Error::measurement(
                        "not all connections came about within a minute",
                    ));
                }
            }
        }
        Ok(())
    }

    fn happened(
        &mut self,
        now: Instant,
        happening: Happening<SimulatedBlockPayload>,
    ) -> Result<()> {
        match happening {
            // The disk servers' costs are theirs, and they speak over connections alone.
            Happening::Connected(_)
            | Happening::Worked(_)
            | Happening::Asked(..)
            | Happening::Answered(..) => {}
            Happening::Broken(_) => return Err(Error::measurement("a connection was given up")),
            Happening::Timer(token) => {
                if let Some(task) = self.parts.take_task(token) {
                    self.carry_out(now, task);
                }
            }
            Happening::Arrived {
                connection,
                side,
                message,
            } => self.arrived(now, connection, side, message),
            Happening::Room { connection, .. } => {
                if let Some(server) = self.parts.server_of(connection) {
                    self.write(now, server);
                }
            }
            Happening::Sent { connection, side } => {
                if side == PairSide::Responder
                    && let Some(server) = self.parts.server_of(connection)
                {
                    self.parts.sent(now, server);
                    self.write(now, server);
                }
            }
        }
        Ok(())
    }

    fn arrived(
        &mut self,
        now: Instant,
        connection: u32,
        side: PairSide,
        travels: SimulatedBlockPayload,
    ) {
        let costs = self.scene.costs;
        match travels {
            // At the master.
            SimulatedBlockPayload::Message(message @ Message::List(_)) => {
                let done = self.parts.master_busy(now, costs.translate);
                self.parts
                    .at(done, BlockSiteTask::Translate { came: now, message });
            }
            // At a server.
            SimulatedBlockPayload::Message(Message::Requests(list)) => {
                if let Some(server) = self.parts.control_of(connection) {
                    self.parts.compute(
                        server,
                        now,
                        costs.parse,
                        false,
                        BlockSiteTask::Parse {
                            server,
                            came: now,
                            list,
                        },
                    );
                }
            }
            // At the client.
            SimulatedBlockPayload::Message(Message::Flushed(flushed)) => {
                self.record.flushed(&flushed)
            }
            SimulatedBlockPayload::Message(Message::Missing(missing)) => {
                self.parts.client.missing(&missing);
            }
            // What came of a block whose rest is not sent is dropped.
            SimulatedBlockPayload::Message(_) | SimulatedBlockPayload::Cut => {}
            SimulatedBlockPayload::Block(head) => {
                let wanted = self.parts.client.arrived(now, &head) == BlockArrival::Wanted;
                self.record.came(&head, now, wanted);
                let set = self.parts.set_index(head.set);
                if let Some(asker) = set.and_then(|set| self.askers.get_mut(set)) {
                    asker.came(head.number);
                }
                if costs.receive > Duration::ZERO {
                    self.parts.take(now, connection, side, costs.receive);
                }
            }
        }
    }

    fn carry_out(&mut self, now: Instant, task: BlockSiteTask) {
        match task {
            BlockSiteTask::List { set, begun } => self.list(now, set, begun),
            BlockSiteTask::Local(travels, connection, side) => {
                self.arrived(now, connection, side, travels)
            }
            BlockSiteTask::Translate { came, message } => {
                self.parts
                    .translate(came, now, message, self.scene.costs.forward)
            }
            BlockSiteTask::Forward { server, message } => {
                self.parts.send_to_server(server, message)
            }
            BlockSiteTask::Parse { server, came, list } => {
                let woken = self.parts.servers[server]
                    .requests(now, came, list)
                    .unwrap_or_default();
                self.woken(now, server, &woken);
            }
            BlockSiteTask::ReadDone { server, disk, spot } => {
                self.parts.set_disk_free(server, disk);
                let woken = self.parts.servers[server].read_done(now, spot, Ok(()));
                self.woken(now, server, &woken);
                self.read(now, server, disk);
            }
            BlockSiteTask::Computed { server, task } => {
                self.carry_out(now, *task);
                self.parts.compute_next(server, now);
            }
            BlockSiteTask::Read { server, disk, spot } => {
                let task = BlockSiteTask::ReadDone { server, disk, spot };
                self.parts
                    .compute(server, now, self.scene.costs.enter, false, task);
            }
            BlockSiteTask::Hand { server, head } => {
                self.parts.begin_block(server, head);
                self.write(now, server);
            }
            BlockSiteTask::Reads { connection, side } => self.parts.read_on(now, connection, side),
            BlockSiteTask::Room(server) => {
                self.parts.looks(server);
                self.write(now, server);
            }
            BlockSiteTask::Look => {
                self.look(now);
                self.parts.at(now + EVERY, BlockSiteTask::Look);
            }
        }
    }

    fn look(&mut self, now: Instant) {
        self.watcher
            .look(now, self.parts.world.counters(), self.parts.ends());
    }

    fn list(&mut self, now: Instant, index: usize, begun: Instant) {
        let Some(asker) = self.askers.get_mut(index) else {
            return;
        };
        let blocks = asker.list();
        if let Some(next) = asker.next_at() {
            self.parts
                .at(begun + next, BlockSiteTask::List { set: index, begun });
        }
        let set = self.parts.sets[index];
        let numbers = blocks.clone();
        let (list, before) =
            self.parts
                .client
                .request(now, set, blocks, self.scene.supersedes, true);
        if let Some(tally) = before {
            self.record.over(tally);
        }
        let sent = SentListRecord {
            at: now,
            set,
            serial: list.serial,
            blocks: numbers,
        };
        self.record.sent(list.first_unit, sent);
        self.parts.send_to_master(list.into());
    }

    fn woken(&mut self, now: Instant, server: usize, woken: &Woken) {
        for disk in &woken.disks {
            self.read(now, server, *disk);
        }
        if !woken.connections.is_empty() {
            self.write(now, server);
        }
    }

    fn read(&mut self, now: Instant, server: usize, disk: u16) {
        if !self.parts.disk_is_free(server, disk) {
            return;
        }
        let mut woken = Woken::default();
        if let Some(read) = self.parts.servers[server].next_read(now, disk, &mut woken) {
            let done = now + self.parts.disk_takes(self.scene, server, disk);
            self.parts.at(
                done,
                BlockSiteTask::Read {
                    server,
                    disk,
                    spot: read.spot,
                },
            );
        }
        if !woken.connections.is_empty() {
            self.write(now, server);
        }
    }

    fn write(&mut self, now: Instant, server: usize) {
        while self.parts.may_begin(now, server) {
            if self.parts.go_on(server) {
                continue;
            }
            let mut woken = Woken::default();
            let write = self.parts.next_write(now, server, &mut woken);
            for disk in woken.disks {
                self.read(now, server, disk);
            }
            let Some(write) = write else { return };
            match write {
                Write::Words(words) => self.parts.send_to_client(server, words),
                Write::Block(head, ()) => {
                    self.parts.begin_writing(server, head.unit);
                    self.parts.compute(
                        server,
                        now,
                        self.scene.costs.hand,
                        true,
                        BlockSiteTask::Hand { server, head },
                    );
                    return;
                }
            }
        }
    }
}
