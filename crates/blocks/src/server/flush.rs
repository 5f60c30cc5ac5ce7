//! A newer list discards what older ones of the same session and set left in the read and write queues. What is being read
//! is still read and kept in memory; what a transport has is not recalled (Tierney et al. 1996, section 4.3.1).

use super::session::{ListHead, Wanted};
use super::{Server, Woken};
use crate::wire::data::{Discarded, Flushed, NOT_READ};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use stackline_core::time::Instant;

/// What is discarded, by list.
#[derive(Default)]
struct Notes(BTreeMap<u64, (Option<Arc<ListHead>>, Vec<Discarded>)>);

impl Notes {
    /// `start` and `end`: when it was read, as far as it was.
    fn add(&mut self, wanted: &Wanted, start: Option<Instant>, end: Option<Instant>) {
        let list = &wanted.list;
        let after = |at: Instant| u32::try_from(at.since(list.server_in).0 / 1000).unwrap_or(NOT_READ - 1);
        let (start_read, end_read) = (start.map_or(NOT_READ, after), end.map_or(NOT_READ, after));
        let notes = self.0.entry(list.serial).or_default();
        notes.0 = Some(Arc::clone(list));
        notes.1.push(Discarded { index: wanted.entry.index, start_read, end_read });
    }
}

impl<B: Clone> Server<B> {
    pub(super) fn flush(&mut self, now: Instant, session: u128, set: u32, woken: &mut Woken) {
        let Some(state) = self.sessions.get_mut(&session) else { return };
        let mut notes = Notes::default();
        let mut discarded = 0_u64;
        for queue in state.to_read.values_mut() {
            queue.retain(|wanted| {
                let stays = wanted.list.set != set;
                if !stays {
                    notes.add(wanted, None, None);
                    state.pending -= 1;
                    discarded += 1;
                }
                stays
            });
        }
        let mut freed = 0;
        state.to_write.retain(|ready| {
            let stays = ready.wanted.list.set != set;
            if !stays {
                notes.add(&ready.wanted, Some(ready.start_read), Some(ready.end_read));
                freed += u64::from(ready.wanted.entry.length);
                discarded += 1;
            }
            stays
        });
        state.write_bytes -= freed;
        for reading in self.reading.values_mut() {
            let started = reading.started;
            reading.wanted.retain(|(whose, wanted)| {
                let stays = *whose != session || wanted.list.set != set;
                if !stays {
                    notes.add(wanted, Some(started), None);
                    state.pending -= 1;
                    discarded += 1;
                }
                stays
            });
        }
        self.counts.flushed += discarded;
        let id = self.id;
        let told = notes.0.into_values().filter_map(|(list, blocks)| {
            let list = list.filter(|list| list.report)?;
            Some(Flushed {
                set,
                serial: list.serial,
                first_unit: list.first_unit,
                server: id,
                stamps: list.stamps,
                server_in: list.server_in.0,
                at: now.0,
                blocks,
            })
        });
        state.words.extend(told.map(Into::into));
        if !state.words.is_empty()
            && let Some((connection, _)) = state.attached
        {
            woken.connection(connection);
        }
        // What was held back by a full write queue may be read again.
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
}
