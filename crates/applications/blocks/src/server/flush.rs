//! Discarding: a newer list discards what older ones of the same session and set left in the read and write queues. A block that is being
//! read is still read, into the cache; what a transport has begun is not recalled (Tierney et al. 1996, section 4.3.1). A block whose data
//! is sent in parts is cut off after the part that has begun.

use super::session::{BlockBeingWritten, ListHead, ReadyBlock, WantedBlock};
use super::{DiskServerMachine, Woken};
use crate::wire::message::Message;
use crate::wire::server_messages::{Discarded, Flushed, NOT_READ, ServerBlockRequests};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::take;
use stackline_core::time::Instant;

/// The discarded blocks, by list.
#[derive(Default)]
struct DiscardedByList {
    /// By serial number: the list and its discarded blocks.
    by_list: BTreeMap<u64, (Option<Arc<ListHead>>, Vec<Discarded>)>,
    /// How many of them were not read yet.
    unread: usize,
}

impl DiscardedByList {
    /// Adds a block that was to be read, or is being read since `start`. Returns false, so that `retain` drops it from its queue.
    fn unread(&mut self, wanted: &WantedBlock, start: Option<Instant>) -> bool {
        self.add(wanted, [start, None, None]);
        self.unread += 1;
        false
    }

    /// Adds a block that was to be written. `since` is given if it was next and waited for room in the transport.
    fn unwritten<B>(&mut self, ready: &ReadyBlock<B>, since: Option<Instant>) {
        self.add(
            &ready.wanted,
            [Some(ready.start_read), Some(ready.end_read), since],
        );
    }

    /// Adds a block with its times: reading began, reading ended, writing began. They become microseconds after its list came.
    fn add(&mut self, wanted: &WantedBlock, passed: [Option<Instant>; 3]) {
        let list = &wanted.list;
        let after =
            |at: Instant| u32::try_from(at.since(list.server_in).0 / 1000).unwrap_or(NOT_READ - 1);
        let [start_read, end_read, start_write] = passed.map(|at| at.map_or(NOT_READ, after));
        let notes = self.by_list.entry(list.serial).or_default();
        notes.0 = Some(Arc::clone(list));
        notes.1.push(Discarded {
            index: wanted.entry.index,
            start_read,
            end_read,
            start_write,
        });
    }

    /// Appends a report to `words` for each list that asked for one.
    fn append_reports(self, server: u16, set: u32, at: Instant, words: &mut VecDeque<Message>) {
        let reports = self.by_list.into_values().filter_map(|(list, blocks)| {
            let list = list.filter(|list| list.report)?;
            let (serial, first_unit, stamps) = (list.serial, list.first_unit, list.stamps);
            let server_in = list.server_in.0;
            Some(Flushed {
                set,
                serial,
                first_unit,
                server,
                stamps,
                server_in,
                at: at.0,
                blocks,
            })
        });
        words.extend(reports.map(Into::into));
    }
}

impl<B: Clone> DiskServerMachine<B> {
    /// Discards what lists older than `newer` left. Lists newer than it may have come earlier, by another way: they are not touched.
    pub(super) fn flush(&mut self, now: Instant, newer: &ServerBlockRequests, woken: &mut Woken) {
        let (session, set) = (newer.session, newer.set);
        let older = |list: &ListHead| list.set == set && list.serial < newer.serial;
        let Some(state) = self.sessions.get_mut(&session) else {
            return;
        };
        let mut notes = DiscardedByList::default();
        for queue in state.to_read.values_mut() {
            queue.retain(|wanted| !older(&wanted.list) || notes.unread(wanted, None));
        }
        let (mut freed, mut waits) = (0, state.waits);
        state.to_write.retain(|ready| {
            let stays = !older(&ready.wanted.list);
            let since = waits.take().map(|since| since.max(ready.end_read));
            if !stays {
                notes.unwritten(ready, since);
                freed += u64::from(ready.wanted.entry.length);
            }
            stays
        });
        state.write_bytes -= freed;
        self.waiting -= freed;
        for reading in self.reading.values_mut() {
            let started = Some(reading.started);
            reading.wanted.retain(|(whose, wanted)| {
                *whose != session || !older(&wanted.list) || notes.unread(wanted, started)
            });
        }
        state.pending -= notes.unread;
        for writing in state
            .writing
            .iter_mut()
            .filter(|writing| older(&writing.ready.wanted.list))
        {
            writing.superseded.get_or_insert(now);
            let number = writing.ready.wanted.entry.number;
            writing.asked_again = newer.entries.iter().any(|entry| entry.number == number);
        }
        self.counts.flushed += notes
            .by_list
            .values()
            .map(|(_, blocks)| blocks.len() as u64)
            .sum::<u64>();
        notes.append_reports(self.id, set, now, &mut state.words);
        if !state.words.is_empty()
            && let Some((connection, _)) = state.attached
        {
            woken.connection(connection);
        }
        // Sessions whose reading stopped because of a full write queue may be read for again.
        for (disk, queue) in &state.to_read {
            if !queue.is_empty()
                && let Some(at) = self.disks.get_mut(disk)
                && !at.turn.contains(&session)
            {
                at.turn.push_back(session);
                woken.disk(*disk);
            }
        }
        self.go_on(woken);
    }

    /// Handles that the transport had no room. Of the blocks that [`DiskServerMachine::next_write`] returned, at most `under_way` (a unit)
    /// has been begun. The others go back to the front of the write queue, where a newer list can discard them; those that one has
    /// superseded meanwhile are discarded.
    pub fn not_begun(&mut self, connection: u64, under_way: Option<u64>) {
        let session = self.by_connection.get(&connection).copied();
        let Some(state) = session.and_then(|session| self.sessions.get_mut(&session)) else {
            return;
        };
        let (begun, rest) = take(&mut state.writing)
            .into_iter()
            .partition(|one| Some(one.ready.unit()) == under_way);
        state.writing = begun;
        let rest: VecDeque<BlockBeingWritten<B>> = rest;
        for BlockBeingWritten {
            ready,
            start: _,
            before,
            superseded,
            asked_again: _,
        } in rest.into_iter().rev()
        {
            self.counts.written -= 1;
            if let Some(before) = before {
                state.written.push_front(before);
            }
            let Some(at) = superseded else {
                state.write_bytes += u64::from(ready.wanted.entry.length);
                self.waiting += u64::from(ready.wanted.entry.length);
                state.to_write.push_front(ready);
                continue;
            };
            self.counts.flushed += 1;
            let mut notes = DiscardedByList::default();
            notes.unwritten(&ready, None);
            notes.append_reports(self.id, ready.wanted.list.set, at, &mut state.words);
        }
    }

    /// Whether the rest of a block that has been begun is useless: a newer list superseded it and does not ask for it again.
    #[must_use]
    pub fn is_superseded(&self, connection: u64, unit: u64) -> bool {
        let state = self
            .by_connection
            .get(&connection)
            .and_then(|session| self.sessions.get(session));
        let writing = state.and_then(|state| {
            state
                .writing
                .iter()
                .find(|writing| writing.ready.unit() == unit)
        });
        writing.is_some_and(|writing| writing.superseded.is_some() && !writing.asked_again)
    }

    /// Records that the rest of a superseded block is not sent: it counts as discarded at the moment when the newer list came.
    pub fn cut(&mut self, connection: u64, unit: u64) {
        let session = self.by_connection.get(&connection).copied();
        let Some(state) = session.and_then(|session| self.sessions.get_mut(&session)) else {
            return;
        };
        let Some(at) = state
            .writing
            .iter()
            .position(|writing| writing.ready.unit() == unit)
        else {
            return;
        };
        let Some(BlockBeingWritten {
            ready,
            start,
            before,
            superseded,
            ..
        }) = state.writing.remove(at)
        else {
            return;
        };
        // The client drops what it has of the block, and with it the end of writing that its head reported: that is reported again.
        if let Some(before) = before {
            state.written.push_front(before);
        }
        self.counts.written -= 1;
        self.counts.flushed += 1;
        let mut notes = DiscardedByList::default();
        notes.unwritten(&ready, Some(start));
        notes.append_reports(
            self.id,
            ready.wanted.list.set,
            superseded.unwrap_or(start),
            &mut state.words,
        );
    }
}
