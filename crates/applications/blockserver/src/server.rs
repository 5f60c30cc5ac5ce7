//! A disk server at work: a thread reads each disk (several where depth is asked for), each client has one, one talks to
//! the master. All decisions are the machine's (`stackline_blocks::server`).

mod attached_client;
mod damage;
mod master_link;
mod outgoing;
mod wake_bell;

use crate::buffer::{BlockBuffer, BlockBufferPool};
use crate::connection::{
    self, BlockConnectionEnd, BlockMessageReceiver, BlockMessageSender, Incoming,
};
use crate::connection_slots::{BlockConnectionLimits, BlockConnectionSlots, KnownConnectionSlot};
use crate::disk::BlockDisk;
use crate::notices::Rarely;
use damage::DiskDamage;
use stackline_blocks::limits;
use stackline_blocks::server::{DiskExtent, DiskServerCounts, DiskServerMachine, Woken};
use stackline_blocks::wire::handshake::{BlockPeerRole, BlockWriteKey};
use stackline_blocks::wire::master_messages::{BlockRequestRefused, DiskChanged};
use stackline_blocks::wire::message::{Message, Why};
use stackline_blocks::wire::server_messages::{StoreBlockRequest, Synced};
use stackline_core::distribution::Distribution;
use stackline_core::error::{Error, Result};
use stackline_core::random::Seed;
use stackline_core::time::Instant;
use stackline_guard::connection_slots::{ConnectionSlot, ConnectionSlotPool};
use stackline_guard::serve::{self, ConnectionService};
use stackline_guard::stop::StopSwitch;
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;
use wake_bell::Bell;

/// How often a server looks after its disks.
const LOOK: Duration = Duration::from_millis(500);
/// How long a server waits before it tries its master again: first, and at most.
const AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(800));
/// While clients that read nothing take the room of others: how often it is looked for one that gives way, and after what time without a
/// byte one is idle.
const CROWDED: Duration = Duration::from_millis(500);
/// See [`CROWDED`].
const IDLE: stackline_core::time::Duration = stackline_core::time::Duration(2_000_000_000);
/// How often a master hears that its server is still there.
const HEARTBEAT: Duration = Duration::from_millis(limits::HEARTBEAT_MS.0);
/// Stack of each thread.
const STACK: usize = 256 << 10;

/// How a server is to be.
#[derive(Clone, Debug)]
pub struct DiskServerOptions {
    /// Its name; the same after it was started again.
    pub name: String,
    /// Where it listens.
    pub listen: SocketAddr,
    /// Its master.
    pub master: String,
    /// The key that writes need.
    pub key: BlockWriteKey,
    /// Bytes of blocks that are kept in memory.
    pub cache: u64,
    /// Reads at once at each disk.
    pub depth: usize,
    /// Bytes of the send buffer of each client's connection; without them it grows as the system lets it, and no block begins
    /// while [`UNSENT`] have not left.
    pub send_buffer: Option<usize>,
    /// What a read takes at least, s: a slower disk than there is.
    pub read_time: Option<Distribution>,
    /// Whether disks of other masters are taken over: what those have on them is lost.
    pub adopt: bool,
    /// How many connections it takes.
    pub places: BlockConnectionLimits,
    /// Hears what happens that somebody should know.
    pub say: fn(&str),
}

/// No block, and no part of one, begins while so many bytes have not left a client's connection: with the part that begins then they
/// are what can no longer be discarded, 64 KiB with parts of 48 KiB.
pub const UNSENT: u32 = 16 << 10;

/// A block in memory; its buffer goes back to the pool with the last who needs it.
#[derive(Debug)]
pub(crate) struct PooledBlock {
    buffer: BlockBuffer,
    pool: Weak<BlockBufferPool>,
}

impl PooledBlock {
    pub(crate) fn data(&self) -> &[u8] {
        self.buffer.data()
    }
}

impl Drop for PooledBlock {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.give(std::mem::take(&mut self.buffer));
        }
    }
}

type SharedPooledBlock = Arc<PooledBlock>;

struct DiskServerState {
    machine: DiskServerMachine<SharedPooledBlock>,
    /// What wakes the threads of connections.
    bells: BTreeMap<u64, Arc<Bell>>,
}

struct ServedDisk {
    disk: BlockDisk,
    /// Whether it was there, and could be written, when it was last looked at.
    is_up: AtomicBool,
    is_writable: AtomicBool,
    wake: Condvar,
    damage: Mutex<DiskDamage>,
}

impl ServedDisk {
    fn new(disk: BlockDisk) -> Self {
        // The machine takes a disk as there until the opposite is reported.
        let is_writable = AtomicBool::new(disk.is_writable());
        Self {
            disk,
            is_up: AtomicBool::new(true),
            is_writable,
            wake: Condvar::new(),
            damage: Mutex::default(),
        }
    }

    fn damage(&self) -> MutexGuard<'_, DiskDamage> {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct DiskServerShared {
    state: Mutex<DiskServerState>,
    disks: Vec<ServedDisk>,
    pool: Arc<BlockBufferPool>,
    id: AtomicU16,
    next: AtomicU64,
    stop: StopSwitch,
    places: BlockConnectionSlots,
    /// Clients that gave way, and lists that were refused at a bound.
    closed: Rarely,
    refused: Rarely,
    /// What has come of messages that are not whole.
    incoming: Arc<Incoming>,
    /// Whether disks of other masters are still to be taken over.
    adopts: AtomicBool,
    /// Whether a master has taken it, and its disks name that master.
    has_joined: Mutex<bool>,
    first_join: Condvar,
    /// Threads that no client has.
    own_threads: usize,
    options: DiskServerOptions,
}

/// A server that runs.
#[derive(Clone)]
pub struct RunningDiskServer {
    shared: Arc<DiskServerShared>,
    address: SocketAddr,
}

/// The present, as events are stamped with it.
pub(crate) fn now() -> Instant {
    Instant(stackline_events::clock::now_ns())
}

/// Starts a server with those disks.
///
/// # Errors
/// When it cannot listen.
pub fn start(options: DiskServerOptions, disks: Vec<BlockDisk>) -> Result<RunningDiskServer> {
    let listener = serve::listen_at(options.listen)?;
    let failed =
        |error: std::io::Error| Error::environment(format!("cannot start the server: {error}"));
    let address = listener.local_addr().map_err(failed)?;
    let machine = DiskServerMachine::new(0, disks.len() as u16, options.cache);
    let depth = options.depth.max(1);
    // Disks, and those that accept and talk to the master.
    let own_threads = disks.len() * depth + 2;
    let shared = Arc::new(DiskServerShared {
        state: Mutex::new(DiskServerState {
            machine,
            bells: BTreeMap::new(),
        }),
        disks: disks.into_iter().map(ServedDisk::new).collect(),
        pool: Arc::default(),
        id: AtomicU16::new(0),
        next: AtomicU64::new(1),
        stop: StopSwitch::new().map_err(failed)?,
        places: BlockConnectionSlots::new(format!("the server {}", options.name), options.places),
        closed: Rarely::default(),
        refused: Rarely::default(),
        incoming: Arc::default(),
        adopts: AtomicBool::new(options.adopt),
        has_joined: Mutex::new(false),
        first_join: Condvar::new(),
        own_threads,
        options,
    });
    for disk in 0..shared.disks.len() {
        for _ in 0..depth {
            spawn(&shared, "disk", move |shared| shared.read_disk(disk)).map_err(failed)?;
        }
    }
    spawn(&shared, "master", move |shared| {
        shared.talk_to_master(address)
    })
    .map_err(failed)?;
    spawn(&shared, "accept", move |shared| {
        let next = || serve::accept_tcp(&listener, &shared.stop);
        serve::serve_connections(shared, &shared.stop, next);
    })
    .map_err(failed)?;
    Ok(RunningDiskServer { shared, address })
}

fn spawn(
    shared: &Arc<DiskServerShared>,
    name: &str,
    work: impl FnOnce(&Arc<DiskServerShared>) + Send + 'static,
) -> std::io::Result<thread::JoinHandle<()>> {
    let shared = Arc::clone(shared);
    thread_of(name).spawn(move || work(&shared))
}

fn thread_of(name: &str) -> thread::Builder {
    thread::Builder::new().name(name.into()).stack_size(STACK)
}

impl RunningDiskServer {
    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// How often what happened.
    #[must_use]
    pub fn counts(&self) -> DiskServerCounts {
        self.shared.state().machine.counts()
    }

    /// Whether all of its threads have gone after [`RunningDiskServer::stop`].
    #[must_use]
    pub fn is_over(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }

    /// Ends it: its threads go, its connections are closed.
    pub fn stop(&self) {
        self.shared.stop.stop();
        let state = self.shared.state();
        state.bells.values().for_each(|bell| bell.wake());
        drop(state);
        self.shared
            .disks
            .iter()
            .for_each(|slot| slot.wake.notify_all());
    }
}

impl ConnectionService for DiskServerShared {
    type Connection = TcpStream;

    fn thread(&self) -> thread::Builder {
        thread_of("client")
    }

    fn strangers(&self) -> &Arc<ConnectionSlotPool> {
        self.places.strangers()
    }

    fn end_of(&self, stream: &TcpStream) -> std::io::Result<impl FnOnce() + Send + 'static> {
        self.places.end_of_stranger(stream)
    }

    fn has_room(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) <= self.own_threads + self.options.places.threads()
    }

    fn serve(self: Arc<Self>, stream: TcpStream, place: ConnectionSlot) {
        self.client(stream, place);
    }
}

impl DiskServerShared {
    fn state(&self) -> MutexGuard<'_, DiskServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_stopped()
    }

    fn wake(&self, state: &DiskServerState, woken: &Woken) {
        for disk in &woken.disks {
            if let Some(slot) = self.disks.get(usize::from(*disk)) {
                slot.wake.notify_all();
            }
        }
        for connection in &woken.connections {
            if let Some(bell) = state.bells.get(connection) {
                bell.ring();
            }
        }
    }

    // --- disks ---

    fn read_disk(&self, disk: usize) {
        let slot = &self.disks[disk];
        let mut generator = Seed::root(disk as u64).child("disk").generator();
        let mut state = self.state();
        while !self.is_stopped() {
            let mut woken = Woken::default();
            let read = state.machine.next_read(now(), disk as u16, &mut woken);
            self.wake(&state, &woken);
            let Some(read) = read else {
                state = if state.machine.is_crowded() {
                    self.make_way(&state);
                    slot.wake
                        .wait_timeout(state, CROWDED)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                } else {
                    slot.wake
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner)
                };
                continue;
            };
            drop(state);
            let mut buffer = self.pool.take();
            let begun = std::time::Instant::now();
            let result = slot.disk.read(&read.spot, read.checksum, &mut buffer);
            if let Some(time) = &self.options.read_time {
                let takes = Duration::from_secs_f64(time.draw(&mut generator));
                thread::sleep(takes.saturating_sub(begun.elapsed()));
            }
            if result == Err(Why::Corrupt) {
                self.found_damaged(slot, &read.spot);
            }
            let held = result.map(|()| {
                Arc::new(PooledBlock {
                    buffer,
                    pool: Arc::downgrade(&self.pool),
                })
            });
            state = self.state();
            let woken = state.machine.read_done(now(), read.spot, held);
            self.wake(&state, &woken);
        }
    }

    /// Blocks for clients that read nothing take all the room that others need: the one that has taken nothing for longest gives way.
    fn make_way(&self, state: &DiskServerState) {
        let waiting = state
            .bells
            .iter()
            .filter(|(connection, _)| state.machine.has_waiting(**connection));
        let idlest = waiting
            .map(|(_, bell)| bell)
            .min_by_key(|bell| bell.moved());
        if idlest.is_some_and(|bell| now().since(bell.moved()) >= IDLE && bell.end())
            && let Some(count) = self.closed.happened(std::time::Instant::now())
        {
            let words = "clients disconnected because they did not read while others waited for buffer space";
            (self.options.say)(&format!("{words}: {count}"));
        }
    }

    /// A copy is not what was written: said once of each.
    fn found_damaged(&self, slot: &ServedDisk, spot: &DiskExtent) {
        let words = slot.damage().found(spot.offset, std::time::Instant::now());
        if let Some(more) = words {
            let path = &slot.disk.about().path;
            let others = if more > 0 {
                format!("; {more} more since the last report")
            } else {
                String::new()
            };
            (self.options.say)(&format!(
                "disk {path}: the block at byte {} ({} bytes) differs from what was written{others}",
                spot.offset, spot.length
            ));
        }
    }

    /// What is reported to a master of each disk.
    fn damaged(&self) -> Vec<u64> {
        self.disks
            .iter()
            .map(|slot| slot.damage().count())
            .collect()
    }

    /// Disks that are gone, or there again.
    fn look_after_disks(&self) -> Vec<DiskChanged> {
        let mut changed = Vec::new();
        for (at, slot) in self.disks.iter().enumerate() {
            let (up, writable) = (slot.disk.is_there(), slot.disk.is_writable());
            let was_writable = slot.is_writable.swap(writable, Ordering::Relaxed);
            if was_writable && !writable {
                let path = &slot.disk.about().path;
                (self.options.say)(&format!(
                    "disk {path} is now read-only: no more blocks will be placed on it"
                ));
            }
            if up != slot.is_up.swap(up, Ordering::Relaxed) {
                let mut state = self.state();
                let woken = state.machine.set_disk(at as u16, up);
                self.wake(&state, &woken);
                (self.options.say)(&format!(
                    "disk {} is {}",
                    slot.disk.about().path,
                    if up { "available again" } else { "gone" }
                ));
                changed.push(DiskChanged {
                    disk: at as u16,
                    up,
                    writable,
                });
            } else if writable != was_writable {
                changed.push(DiskChanged {
                    disk: at as u16,
                    up,
                    writable,
                });
            }
        }
        changed
    }

    // --- clients ---

    fn client(self: &Arc<Self>, stream: TcpStream, place: ConnectionSlot) {
        let accepted = connection::accept_connection(
            stream,
            Some(&self.options.key),
            self.options.send_buffer,
        );
        let Ok((role, (mut receiver, mut sender))) = accepted else {
            return;
        };
        let seat = match self.places.known(role, sender.stream()) {
            Ok(seat) => seat,
            Err(words) => return connection::send_away(sender.stream(), &words),
        };
        drop(place);
        match role {
            BlockPeerRole::Data => {
                receiver.bound(limits::LONGEST_REQUEST, &self.incoming);
                if self.options.send_buffer.is_none() && sender.wake_below(UNSENT).is_err() {
                    return;
                }
                self.data(receiver, sender, seat);
            }
            BlockPeerRole::Writer => {
                let _ = self.write_blocks(&mut receiver, &mut sender);
            }
            _ => {
                let words = "this is a disk server; the master is elsewhere".to_owned();
                let _ = sender.message(
                    &BlockRequestRefused {
                        request: 0,
                        why: Why::Malformed as u8,
                        words,
                    }
                    .into(),
                );
            }
        }
    }

    // --- loaders ---

    fn write_blocks(
        &self,
        receiver: &mut BlockMessageReceiver,
        sender: &mut BlockMessageSender,
    ) -> Result<(), BlockConnectionEnd> {
        self.wait_for_first_join();
        let mut buffer = BlockBuffer::default();
        let mut written = vec![false; self.disks.len()];
        loop {
            match receiver.message()? {
                Message::Store(store) => {
                    receiver
                        .data(&mut buffer.pages(store.length as usize)[..store.length as usize])?;
                    match self.store(&store, &mut buffer) {
                        Ok(()) => written[usize::from(store.disk)] = true,
                        Err(why) => sender.message(&refused(store.request, why))?,
                    }
                }
                Message::Sync(sync) => {
                    let mut touched = self
                        .disks
                        .iter()
                        .zip(&mut written)
                        .filter(|(_, written)| **written);
                    let synced = touched.try_for_each(|(slot, written)| {
                        *written = false;
                        slot.disk.sync(sync.set)
                    });
                    match synced {
                        Ok(()) => sender.message(
                            &Synced {
                                request: sync.request,
                            }
                            .into(),
                        )?,
                        Err(why) => sender.message(&refused(sync.request, why))?,
                    }
                }
                _ => {
                    return Err(BlockConnectionEnd::Broken(
                        "that message is not allowed here".into(),
                    ));
                }
            }
        }
    }

    fn store(&self, store: &StoreBlockRequest, buffer: &mut BlockBuffer) -> Result<(), Why> {
        let slot = self.disks.get(usize::from(store.disk)).ok_or(Why::Disk)?;
        if crc32fast::hash(buffer.data()) != store.checksum {
            return Err(Why::Corrupt);
        }
        let spot = DiskExtent {
            disk: store.disk,
            offset: store.offset,
            length: store.length,
        };
        slot.disk.write(&spot, buffer)?;
        slot.damage().mended(spot.offset);
        self.state().machine.stored(spot);
        Ok(())
    }
}

fn refused(request: u32, why: Why) -> Message {
    BlockRequestRefused {
        request,
        why: why as u8,
        words: why.words().to_owned(),
    }
    .into()
}
