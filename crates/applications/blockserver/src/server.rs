//! Runs a disk server: one or more threads read each disk, one thread serves each client, one talks to the master. All decisions are made
//! by the state machine in `stackline_blocks::server`.

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

/// How often the server checks whether its disks are there.
const LOOK: Duration = Duration::from_millis(500);
/// How long the server waits before it tries its master again: at first, and at most (it doubles).
const AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(800));
/// While blocks for clients that do not read take the room of others: how often a client is looked for that has to give way.
const CROWDED: Duration = Duration::from_millis(500);
/// After what time without a byte taken such a client may be disconnected (ns).
const IDLE: stackline_core::time::Duration = stackline_core::time::Duration(2_000_000_000);
/// How often the server tells the master that it is alive.
const HEARTBEAT: Duration = Duration::from_millis(limits::HEARTBEAT_MS.0);
/// Stack size of each thread, bytes.
const STACK: usize = 256 << 10;

/// The options of a disk server.
#[derive(Clone, Debug)]
pub struct DiskServerOptions {
    /// The server's name, which stays the same when it is restarted.
    pub name: String,
    /// The address on which it listens.
    pub listen: SocketAddr,
    /// The address of its master.
    pub master: String,
    /// The key that writing needs.
    pub key: BlockWriteKey,
    /// Bytes of blocks that are cached in memory.
    pub cache: u64,
    /// The number of reads at the same time on each disk.
    pub depth: usize,
    /// Bytes of the send buffer of each client's connection. Without it the system adapts the buffer, and no block begins while [`UNSENT`]
    /// bytes have not left.
    pub send_buffer: Option<usize>,
    /// The shortest time that a read takes, s: emulates a slower disk.
    pub read_time: Option<Distribution>,
    /// Whether disks of other masters are taken over; their blocks are lost.
    pub adopt: bool,
    /// The limits on connections.
    pub places: BlockConnectionLimits,
    /// Called with notices for the operator.
    pub say: fn(&str),
}

/// No block, and no part of one, begins while this many bytes of a client's connection have not left. With one part of 48 KiB that then
/// begins, 64 KiB can no longer be discarded.
pub const UNSENT: u32 = 16 << 10;

/// A block in memory. Its buffer goes back to the pool when nobody needs it any more.
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

/// The state that is guarded by one lock.
struct DiskServerState {
    machine: DiskServerMachine<SharedPooledBlock>,
    /// By connection: what wakes its thread.
    bells: BTreeMap<u64, Arc<Bell>>,
}

/// A disk of the server.
struct ServedDisk {
    disk: BlockDisk,
    /// Whether the disk was there when it was last checked.
    is_up: AtomicBool,
    /// Whether the disk could be written when it was last checked.
    is_writable: AtomicBool,
    /// Wakes the threads that read the disk.
    wake: Condvar,
    damage: Mutex<DiskDamage>,
}

impl ServedDisk {
    fn new(disk: BlockDisk) -> Self {
        // The state machine considers a disk as there until something else is reported.
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
    /// The number that the master gave the server.
    id: AtomicU16,
    /// The number of the next connection.
    next: AtomicU64,
    stop: StopSwitch,
    places: BlockConnectionSlots,
    /// Clients that were disconnected because others needed the room.
    closed: Rarely,
    /// Lists that were refused because of a limit.
    refused: Rarely,
    /// The memory of incomplete messages of all read-only clients.
    incoming: Arc<Incoming>,
    /// Whether disks of other masters are still to be taken over: only until the first join.
    adopts: AtomicBool,
    /// Whether a master has accepted the server, and its disks store that master.
    has_joined: Mutex<bool>,
    first_join: Condvar,
    /// The number of threads that do not belong to a client.
    own_threads: usize,
    options: DiskServerOptions,
}

/// A running server.
#[derive(Clone)]
pub struct RunningDiskServer {
    shared: Arc<DiskServerShared>,
    address: SocketAddr,
}

/// The current time of the clock that stamps events.
pub(crate) fn now() -> Instant {
    Instant(stackline_events::clock::now_ns())
}

/// Starts a server with these disks.
///
/// # Errors
/// If it cannot listen.
pub fn start(options: DiskServerOptions, disks: Vec<BlockDisk>) -> Result<RunningDiskServer> {
    let listener = serve::listen_at(options.listen)?;
    let failed =
        |error: std::io::Error| Error::environment(format!("cannot start the server: {error}"));
    let address = listener.local_addr().map_err(failed)?;
    let machine = DiskServerMachine::new(0, disks.len() as u16, options.cache);
    let depth = options.depth.max(1);
    // The threads of the disks, and those that accept connections and talk to the master.
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
    /// The address on which it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The counts since the server was started.
    #[must_use]
    pub fn counts(&self) -> DiskServerCounts {
        self.shared.state().machine.counts()
    }

    /// Whether all of its threads have gone after [`RunningDiskServer::stop`].
    #[must_use]
    pub fn is_over(&self) -> bool {
        // Each of its threads holds a share.
        Arc::strong_count(&self.shared) == 1
    }

    /// Stops the server: its connections are closed and its threads end.
    pub fn stop(&self) {
        self.shared.stop.stop();
        // Locked after the switch: a thread that did not see it is waiting by now.
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
        // Each thread holds a share of this.
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

    /// The work of a thread that reads a disk.
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
                // The real read is a part of the given time.
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

    /// Disconnects the client that has taken nothing for the longest time, if blocks that clients do not read take all the room that others
    /// need.
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

    /// Records and reports a damaged copy, once each.
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

    /// The number of damaged copies on each disk, for the master.
    fn damaged(&self) -> Vec<u64> {
        self.disks
            .iter()
            .map(|slot| slot.damage().count())
            .collect()
    }

    /// Checks all disks, and returns those that are gone, there again, or no longer writable.
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
        // It has a seat of its own now: another stranger may have this place.
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
                        // `store` has checked that this disk exists.
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
                        slot.disk.sync(sync.set)?;
                        *written = false;
                        Ok(())
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
