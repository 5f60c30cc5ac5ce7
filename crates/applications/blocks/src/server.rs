//! The state machine of a disk server: read queues, a memory cache, write queues. A newer list of the same session and set discards what
//! older lists left pending (Tierney et al. 1996, sections 2.1.3 and 4.3.1).
//!
//! It does no I/O. The caller asks what a disk should read next ([`DiskServerMachine::next_read`]) and what a connection should write next
//! ([`DiskServerMachine::next_write`]), and reports when that is done. Blocks are handles of type `B` (a reference to memory, or nothing at
//! all in virtual time): handles are cloned, block data is never copied here.
//!
//! Sessions take turns at a disk, so that one that asks for much does not delay the others. When [`limits::WRITE_QUEUE`] bytes wait for a
//! session whose client reads slowly, nothing more is read for it until the client has taken some.

mod cache;
mod flush;
mod session;

use crate::limits;
use crate::wire::message::{Message, Why};
use crate::wire::server_messages::{BlockFailedNotice, BlockHead, ServerBlockRequests};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use cache::Cache;
use session::{
    BlockBeingWritten, DiskServerSession, ListHead, ReadyBlock, WantedBlock, WrittenBlock,
};
use stackline_core::time::Instant;

/// The place of a block on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskExtent {
    /// The number of the disk.
    pub disk: u16,
    /// Bytes from the beginning of the disk.
    pub offset: u64,
    /// Bytes of the block.
    pub length: u32,
}

/// A read that a disk has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The place to read.
    pub spot: DiskExtent,
    /// The CRC-32 that the data should have.
    pub checksum: u32,
}

/// What a connection has to write.
#[derive(Debug)]
pub enum Write<B> {
    /// A message without data.
    Words(Message),
    /// A block's head and its data.
    Block(BlockHead, B),
}

/// Disks and connections that have something to do: the caller wakes the threads that wait for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Woken {
    /// Disks with something to read.
    pub disks: Vec<u16>,
    /// Connections with something to write.
    pub connections: Vec<u64>,
}

impl Woken {
    fn disk(&mut self, disk: u16) {
        if !self.disks.contains(&disk) {
            self.disks.push(disk);
        }
    }

    fn connection(&mut self, connection: u64) {
        if !self.connections.contains(&connection) {
            self.connections.push(connection);
        }
    }
}

/// Counts of a disk server since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskServerCounts {
    /// Blocks in the lists that were taken.
    pub requested: u64,
    /// Reads from disks that ended, also in failure.
    pub read: u64,
    /// Requests that the cache answered.
    pub cached: u64,
    /// Blocks handed to a transport, without those that were discarded or withdrawn again.
    pub written: u64,
    /// Blocks discarded by a newer list.
    pub flushed: u64,
    /// Blocks that were dropped because they waited too long.
    pub aged: u64,
    /// Blocks that could not be sent: their disk is gone or the read failed.
    pub failed: u64,
    /// Blocks of lists that were refused as a whole because a bound was exceeded.
    pub refused: u64,
}

/// A read that a disk was given and has not finished.
struct PendingDiskRead {
    started: Instant,
    /// The sessions that wait for it, and what each wants of it.
    wanted: Vec<(u128, WantedBlock)>,
}

/// The sessions that wait for one disk.
#[derive(Default)]
struct DiskReadQueue {
    /// Whether the disk is there.
    up: bool,
    /// The sessions with something to read from it, in the order of their turns.
    turn: VecDeque<u128>,
}

/// The state of a disk server.
pub struct DiskServerMachine<B> {
    /// The number that the master gave this server.
    id: u16,
    disks: BTreeMap<u16, DiskReadQueue>,
    sessions: BTreeMap<u128, DiskServerSession<B>>,
    /// The session of each connection.
    by_connection: BTreeMap<u64, u128>,
    /// Reads that are being done.
    reading: BTreeMap<DiskExtent, PendingDiskRead>,
    cache: Cache<B>,
    counts: DiskServerCounts,
    /// Bytes of blocks that wait to be written, of all sessions together.
    waiting: u64,
    /// Sessions and disks for which reading stopped because too much waits for all sessions together; the first to go on is in front.
    held_back: VecDeque<(u128, u16)>,
}

impl<B: Clone> DiskServerMachine<B> {
    /// A server with this number, `disks` disks, and `cache` bytes of cache.
    #[must_use]
    pub fn new(id: u16, disks: u16, cache: u64) -> Self {
        let disks = (0..disks)
            .map(|disk| {
                (
                    disk,
                    DiskReadQueue {
                        up: true,
                        turn: VecDeque::new(),
                    },
                )
            })
            .collect();
        Self {
            id,
            disks,
            sessions: BTreeMap::new(),
            by_connection: BTreeMap::new(),
            reading: BTreeMap::new(),
            cache: Cache::new(cache),
            counts: DiskServerCounts::default(),
            waiting: 0,
            held_back: VecDeque::new(),
        }
    }

    /// Sets the number that the master gave this server.
    pub const fn set_id(&mut self, id: u16) {
        self.id = id;
    }

    /// The counts since the server was started.
    #[must_use]
    pub const fn counts(&self) -> DiskServerCounts {
        self.counts
    }

    // --- sessions ---

    /// From here on the session's blocks go over that connection. Blocks that are still unsent `age_ns` after their list came are dropped.
    ///
    /// # Errors
    /// [`Why::Limit`] if there are too many sessions.
    pub fn attach(
        &mut self,
        session: u128,
        connection: u64,
        age_ns: Option<u64>,
    ) -> Result<Woken, Why> {
        let known = self.sessions.contains_key(&session);
        if !known && self.sessions.len() >= limits::MOST_SESSIONS {
            return Err(Why::Limit);
        }
        let state = self.sessions.entry(session).or_default();
        if let Some((before, _)) = state.attached.replace((connection, age_ns)) {
            self.by_connection.remove(&before);
        }
        self.by_connection.insert(connection, session);
        let mut woken = Woken::default();
        woken.connection(connection);
        Ok(woken)
    }

    /// Handles the end of a connection: its session is forgotten.
    pub fn detach(&mut self, connection: u64) -> Woken {
        let session = self.by_connection.remove(&connection);
        session.map_or_else(Woken::default, |session| self.forget(session))
    }

    /// Forgets a session and all that it wanted. Blocks that are being read for it still go into the cache.
    pub fn forget(&mut self, session: u128) -> Woken {
        if let Some(state) = self.sessions.remove(&session) {
            self.waiting -= state.write_bytes;
            if let Some((connection, _)) = state.attached {
                self.by_connection.remove(&connection);
            }
        }
        self.held_back.retain(|(whose, _)| *whose != session);
        for reading in self.reading.values_mut() {
            reading.wanted.retain(|(whose, _)| *whose != session);
        }
        for disk in self.disks.values_mut() {
            disk.turn.retain(|whose| *whose != session);
        }
        let mut woken = Woken::default();
        self.go_on(&mut woken);
        woken
    }

    // --- lists ---

    /// Takes a list that came at the moment `came`. A list that supersedes first discards what older ones left.
    ///
    /// # Errors
    /// [`Why::Limit`] if too much is pending for the session, or there are too many sessions or open sets; no block of the list is taken.
    pub fn requests(
        &mut self,
        now: Instant,
        came: Instant,
        list: ServerBlockRequests,
    ) -> Result<Woken, Why> {
        let known = self.sessions.contains_key(&list.session);
        if !known && self.sessions.len() >= limits::MOST_SESSIONS {
            return Err(Why::Limit);
        }
        let session = list.session;
        let state = self.sessions.entry(session).or_default();
        let open = state.newest.contains_key(&list.set);
        if !open && state.newest.len() >= limits::MOST_OPEN {
            return Err(Why::Limit);
        }
        if state
            .newest
            .get(&list.set)
            .is_some_and(|newest| list.serial < *newest)
        {
            // A newer list, which supersedes it, came earlier by another way.
            return Ok(Woken::default());
        }
        let mut woken = Woken::default();
        if list.supersedes {
            self.flush(now, &list, &mut woken);
        }
        let state = self.sessions.entry(session).or_default();
        let words: u64 = state.words.iter().map(Message::weight).sum();
        if state.pending + list.entries.len() > limits::MOST_REQUESTED_BLOCKS
            || words > limits::WORDS
        {
            self.counts.refused += list.entries.len() as u64;
            return Err(Why::Limit);
        }
        let newest = state.newest.entry(list.set).or_default();
        if list.supersedes {
            *newest = list.serial;
        }
        self.counts.requested += list.entries.len() as u64;
        let head = Arc::new(ListHead {
            set: list.set,
            serial: list.serial,
            first_unit: list.first_unit,
            report: list.report,
            stamps: list.stamps,
            server_in: came,
        });
        for entry in list.entries {
            self.want(
                now,
                session,
                WantedBlock {
                    list: Arc::clone(&head),
                    entry,
                },
                &mut woken,
            );
        }
        Ok(woken)
    }

    /// Queues one wanted block: for writing if the cache has it and there is room, else for reading from its disk.
    fn want(&mut self, now: Instant, session: u128, wanted: WantedBlock, woken: &mut Woken) {
        let Some(state) = self.sessions.get_mut(&session) else {
            return;
        };
        let disk = wanted.entry.disk;
        let room = state.has_room(wanted.entry.length, self.waiting);
        if room && let Some(block) = self.cache.get(&spot(&wanted)) {
            self.counts.cached += 1;
            self.waiting += state.push(ReadyBlock {
                wanted,
                block,
                cached: true,
                start_read: now,
                end_read: now,
            });
            if let Some((connection, _)) = state.attached {
                woken.connection(connection);
            }
            return;
        }
        let Some(at) = self.disks.get_mut(&disk).filter(|disk| disk.up) else {
            return self.fail(session, &wanted, Why::Disk, woken);
        };
        let queue = state.to_read.entry(disk).or_default();
        if queue.is_empty() && !at.turn.contains(&session) {
            at.turn.push_back(session);
        }
        queue.push_back(wanted);
        state.pending += 1;
        woken.disk(disk);
    }

    /// Reports to the client that a block cannot be sent.
    fn fail(&mut self, session: u128, wanted: &WantedBlock, why: Why, woken: &mut Woken) {
        self.counts.failed += 1;
        let Some(state) = self.sessions.get_mut(&session) else {
            return;
        };
        let (list, entry) = (&wanted.list, &wanted.entry);
        let failed = BlockFailedNotice {
            unit: list.first_unit.wrapping_add(entry.index.into()),
            set: list.set,
            number: entry.number,
            serial: list.serial,
            why: why as u8,
        };
        state.words.push_back(failed.into());
        if let Some((connection, _)) = state.attached {
            woken.connection(connection);
        }
    }

    // --- disks ---

    /// The next read of a disk. Blocks that have come into the cache meanwhile are not read; `woken` gets the connections that they wait
    /// for.
    pub fn next_read(&mut self, now: Instant, disk: u16, woken: &mut Woken) -> Option<Read> {
        loop {
            let at = self.disks.get_mut(&disk)?;
            let session = at.turn.pop_front()?;
            let Some(state) = self.sessions.get_mut(&session) else {
                continue;
            };
            if state.write_bytes >= limits::WRITE_QUEUE {
                // It gets a turn again once its client has taken something.
                continue;
            }
            let next = state
                .to_read
                .get(&disk)
                .and_then(VecDeque::front)
                .map(|wanted| wanted.entry.length);
            if next.is_some_and(|length| !state.has_room(length, self.waiting)) {
                self.held_back.push_back((session, disk));
                continue;
            }
            let Some(queue) = state.to_read.get_mut(&disk) else {
                continue;
            };
            let Some(wanted) = queue.pop_front() else {
                continue;
            };
            if !queue.is_empty() {
                at.turn.push_back(session);
            }
            let (spot, checksum) = (spot(&wanted), wanted.entry.checksum);
            if let Some(block) = self.cache.get(&spot) {
                self.counts.cached += 1;
                state.pending -= 1;
                self.waiting += state.push(ReadyBlock {
                    wanted,
                    block,
                    cached: true,
                    start_read: now,
                    end_read: now,
                });
                if let Some((connection, _)) = state.attached {
                    woken.connection(connection);
                }
                continue;
            }
            match self.reading.get_mut(&spot) {
                Some(reading) => reading.wanted.push((session, wanted)),
                None => {
                    self.reading.insert(
                        spot,
                        PendingDiskRead {
                            started: now,
                            wanted: [(session, wanted)].into(),
                        },
                    );
                    return Some(Read { spot, checksum });
                }
            }
        }
    }

    /// Handles the end of a read: its data, or why it failed.
    pub fn read_done(&mut self, now: Instant, spot: DiskExtent, result: Result<B, Why>) -> Woken {
        let mut woken = Woken::default();
        let Some(reading) = self.reading.remove(&spot) else {
            return woken;
        };
        self.counts.read += 1;
        if let Ok(block) = &result {
            self.cache.put(spot, block.clone());
        }
        for (session, wanted) in reading.wanted {
            let Some(state) = self.sessions.get_mut(&session) else {
                continue;
            };
            state.pending -= 1;
            match &result {
                Ok(block) => {
                    let (block, start_read) = (block.clone(), reading.started);
                    self.waiting += state.push(ReadyBlock {
                        wanted,
                        block,
                        cached: false,
                        start_read,
                        end_read: now,
                    });
                    if let Some((connection, _)) = state.attached {
                        woken.connection(connection);
                    }
                }
                Err(why) => self.fail(session, &wanted, *why, &mut woken),
            }
        }
        woken
    }

    /// Handles that a disk is gone or there again. What sessions still wanted from it fails.
    pub fn set_disk(&mut self, disk: u16, up: bool) -> Woken {
        let mut woken = Woken::default();
        if let Some(at) = self.disks.get_mut(&disk) {
            at.up = up;
            at.turn.clear();
        }
        self.held_back.retain(|(_, at)| *at != disk);
        let sessions: Vec<u128> = self.sessions.keys().copied().collect();
        for session in sessions {
            let Some(state) = self.sessions.get_mut(&session) else {
                continue;
            };
            let wanted = state.to_read.remove(&disk).unwrap_or_default();
            state.pending -= wanted.len();
            for wanted in wanted {
                self.fail(session, &wanted, Why::Disk, &mut woken);
            }
        }
        woken
    }

    /// Handles that a block was written to a disk: the cache drops what it had of that place.
    pub fn stored(&mut self, spot: DiskExtent) {
        self.cache.forget(&spot);
    }

    // --- connections ---

    /// The number of messages and blocks that wait for a connection.
    #[must_use]
    pub fn to_write(&self, connection: u64) -> usize {
        let state = self
            .by_connection
            .get(&connection)
            .and_then(|session| self.sessions.get(session));
        state.map_or(0, |state| state.words.len() + state.to_write.len())
    }

    /// What a connection has to write next. `woken` gets the disks that may go on reading because of it.
    pub fn next_write(
        &mut self,
        now: Instant,
        connection: u64,
        woken: &mut Woken,
    ) -> Option<Write<B>> {
        let session = *self.by_connection.get(&connection)?;
        let state = self.sessions.get_mut(&session)?;
        if let Some(words) = state.words.pop_front() {
            return Some(Write::Words(words));
        }
        let age = state.attached.and_then(|(_, age)| age);
        let before = state.write_bytes;
        let was_full = before >= limits::WRITE_QUEUE;
        let ready = loop {
            let Some(ready) = state.pop() else {
                state.waits = None;
                self.waiting -= before;
                self.go_on(woken);
                return None;
            };
            if age.is_none_or(|age| now.since(ready.wanted.list.server_in).0 <= age) {
                break ready;
            }
            self.counts.aged += 1;
        };
        if was_full && state.write_bytes < limits::WRITE_QUEUE {
            for (disk, queue) in &state.to_read {
                if !queue.is_empty()
                    && let Some(at) = self.disks.get_mut(disk)
                    && !at.turn.contains(&session)
                {
                    at.turn.push_back(session);
                    woken.disk(*disk);
                }
            }
        }
        self.counts.written += 1;
        self.waiting -= before - state.write_bytes;
        let before = state.written.pop_front();
        let start = state
            .waits
            .take()
            .map_or(now, |since| since.max(ready.end_read));
        let head = head(self.id, &ready, start, before);
        let block = ready.block.clone();
        state.writing.push_back(BlockBeingWritten {
            ready,
            start,
            before,
            superseded: None,
            asked_again: false,
        });
        self.go_on(woken);
        Some(Write::Block(head, block))
    }

    /// Handles that less waits to be written: a session that was held back gets a turn at its disk again.
    pub(super) fn go_on(&mut self, woken: &mut Woken) {
        while let Some((session, disk)) = self.held_back.pop_front() {
            let queue = self
                .sessions
                .get(&session)
                .and_then(|state| state.to_read.get(&disk));
            if queue.is_some_and(|queue| !queue.is_empty())
                && let Some(at) = self.disks.get_mut(&disk)
            {
                if !at.turn.contains(&session) {
                    at.turn.push_back(session);
                }
                return woken.disk(disk);
            }
        }
    }

    /// Bytes of blocks that wait to be written, of all sessions together.
    #[must_use]
    pub const fn waiting_bytes(&self) -> u64 {
        self.waiting
    }

    /// Whether reading is held back for a session for which nothing waits, because too much waits for others.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        let state = |session| self.sessions.get(session);
        self.held_back
            .iter()
            .any(|(session, _)| state(session).is_some_and(|state| state.write_bytes == 0))
    }

    /// Whether blocks wait to be written to a connection.
    #[must_use]
    pub fn has_waiting(&self, connection: u64) -> bool {
        let state = self
            .by_connection
            .get(&connection)
            .and_then(|session| self.sessions.get(session));
        state.is_some_and(|state| state.write_bytes > 0)
    }

    /// Records that the transport has no room for another block. The writing of the next block counts from this moment, though it can still
    /// be discarded or overtaken until [`DiskServerMachine::next_write`] returns it.
    pub fn waits_for_room(&mut self, now: Instant, connection: u64) {
        let session = self.by_connection.get(&connection).copied();
        if let Some(state) = session.and_then(|session| self.sessions.get_mut(&session)) {
            state.waits.get_or_insert(now);
        }
    }

    /// Records that the transport has taken a whole block that [`DiskServerMachine::next_write`] returned; `unit` is the block's unit. Of
    /// several blocks that it was given at the same moment and took together, only the last is reported to the client.
    pub fn write_done(&mut self, now: Instant, connection: u64, unit: u64) {
        let session = self.by_connection.get(&connection).copied();
        if let Some(state) = session.and_then(|session| self.sessions.get_mut(&session))
            && let Some(at) = state
                .writing
                .iter()
                .position(|writing| writing.ready.unit() == unit)
        {
            let start = state.writing[at].start;
            state.writing.remove(at);
            let together = state
                .written
                .back_mut()
                .filter(|last| (last.start, last.end) == (start, now));
            match together {
                Some(last) => last.unit = unit,
                None => state.written.push_back(WrittenBlock {
                    unit,
                    start,
                    end: now,
                }),
            }
        }
    }
}

/// The place of a wanted block.
const fn spot(wanted: &WantedBlock) -> DiskExtent {
    let entry = &wanted.entry;
    DiskExtent {
        disk: entry.disk,
        offset: entry.offset,
        length: entry.length,
    }
}

/// The head that precedes a block; `before` is an earlier block whose end of writing it reports.
fn head<B>(
    server: u16,
    ready: &ReadyBlock<B>,
    start: Instant,
    before: Option<WrittenBlock>,
) -> BlockHead {
    let (list, entry) = (&ready.wanted.list, &ready.wanted.entry);
    let (before, before_end_write) = before.map_or((0, 0), |before| (before.unit, before.end.0));
    BlockHead {
        unit: ready.unit(),
        set: list.set,
        number: entry.number,
        serial: list.serial,
        length: entry.length,
        checksum: entry.checksum,
        server,
        disk: entry.disk,
        cached: ready.cached,
        app_send: list.stamps[0],
        master_in: list.stamps[1],
        master_out: list.stamps[2],
        server_in: list.server_in.0,
        start_read: ready.start_read.0,
        end_read: ready.end_read.0,
        start_write: start.0,
        before,
        before_end_write,
    }
}

#[cfg(test)]
mod tests;
