//! Messages from the master to a client: answers, missing blocks, changes of servers; and what happens when the master is lost.

use super::BlockClientShared;
use super::event::{BlockClientEvent, lock};
use super::server_links::DiskServerLink;
use crate::connection::BlockMessageReceiver;
use stackline_blocks::limits;
use stackline_blocks::wire::master_messages::{MissingBlocksNotice, ServerInfo};
use stackline_blocks::wire::message::{Message, Why};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl BlockClientShared {
    pub(super) fn hear_master(self: Arc<Self>, mut receiver: BlockMessageReceiver) {
        while let Ok(message) = receiver.message() {
            let request = match &message {
                Message::Opened(m) => m.request,
                Message::Mapped(m) => m.request,
                Message::Inventory(m) => m.request,
                Message::Created(m) => m.request,
                Message::Reserved(m) => m.request,
                Message::Done(m) => m.request,
                Message::Refused(m) if m.request == 0 => {
                    lock(&self.known).sent_away = Some(m.words.clone());
                    continue;
                }
                Message::Refused(m) => m.request,
                Message::Missing(missing) => {
                    self.missing(missing);
                    continue;
                }
                Message::Gone(gone) => {
                    self.forget(gone.set);
                    continue;
                }
                Message::Changed(changed) => {
                    self.changed(&changed.server);
                    continue;
                }
                _ => continue,
            };
            if let Some(waiting) = lock(&self.answers).remove(&request) {
                let _ = waiting.try_send(message);
            }
        }
        lock(&self.master).take();
        // Dropping the senders wakes every thread that waits for an answer.
        lock(&self.answers).clear();
        if !self.closed.load(Ordering::SeqCst) {
            self.report_event(BlockClientEvent::MasterGone);
            self.ask_again();
        }
    }

    /// Requests all outstanding blocks directly: lists that the master had may be lost with it. A block that comes twice counts once.
    pub(super) fn ask_again(&self) {
        let sets: Vec<u32> = lock(&self.known).rows.keys().copied().collect();
        for set in sets {
            let wanted: Vec<u64> = lock(&self.known)
                .machine
                .outstanding(set)
                .into_iter()
                .map(|(number, _)| number)
                .collect();
            for part in wanted.chunks(limits::LONGEST_LIST) {
                // A failure needs no report: the loss of the last server was reported.
                let _ = self.request(set, part.to_vec(), false, true);
            }
        }
    }

    /// Handles that a set was deleted: the client forgets its places, so that further lists go to the master, which reports each block.
    fn forget(&self, set: u32) {
        lock(&self.known).rows.remove(&set);
    }

    fn missing(&self, missing: &MissingBlocksNotice) {
        if Why::from_number(missing.why) == Why::NoSet {
            self.forget(missing.set);
        }
        let (gone, withdrawals) = {
            let mut known = lock(&self.known);
            (
                known.machine.missing(missing),
                known.withdrawals(missing.set),
            )
        };
        for number in gone {
            self.report_block_event(
                BlockClientEvent::Failed {
                    set: missing.set,
                    number,
                    why: Why::from_number(missing.why),
                },
                withdrawals,
            );
        }
    }

    fn changed(self: &Arc<Self>, server: &ServerInfo) {
        let session = {
            let mut known = lock(&self.known);
            known.servers.insert(server.id, server.clone());
            known.session
        };
        let silent = lock(&self.links)
            .get(&server.id)
            .map(DiskServerLink::is_silent);
        match (server.up, silent) {
            (true, None) => {
                self.comes(server.id);
                self.reach(std::slice::from_ref(server), session, Duration::ZERO);
            }
            // A list may have been sent there before either side knew that the server is down.
            (false, None) => self.ask_others(server.id),
            // The server says nothing here either: closing the link makes its receiving thread report it and request its blocks elsewhere.
            (false, Some(true)) => {
                if let Some(link) = lock(&self.links).get(&server.id) {
                    link.close();
                }
            }
            (true, Some(_)) | (false, Some(false)) => {}
        }
    }

    /// Whether lists of a set should bypass the master: a server that is up at the master cannot be reached from here, and the places of
    /// the set's blocks are known, so that other copies can be requested.
    pub(super) fn goes_around(&self, set: u32) -> bool {
        let links = lock(&self.links);
        let known = lock(&self.known);
        known.rows.contains_key(&set)
            && known
                .servers
                .values()
                .any(|one| one.up && !links.contains_key(&one.id))
    }
}
