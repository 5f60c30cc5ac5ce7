//! The client application: it requests lists at fixed times, takes blocks as they come, and records what became of them.

use super::{BlockSite, SimulatedBlockPayload};
use stackline_blocks::client::BlockArrival;
use stackline_blocks::session_record::SentListRecord;
use stackline_blocks::wire::message::Message;
use stackline_blocks::wire::server_messages::BlockHead;
use stackline_core::error::Result;
use stackline_core::procedure::PairSide;
use stackline_core::time::Duration;
use std::rc::Rc;

impl BlockSite {
    /// Sends the lists of a set, one after the other.
    pub(super) async fn ask_for_lists(self: Rc<Self>, set: usize) -> Result<()> {
        let begun = self.context.now();
        let mut at = begun;
        loop {
            self.context.sleep_until(at).await;
            let (blocks, next) = {
                let asker = &mut self.askers.borrow_mut()[set];
                (asker.list(), asker.next_at())
            };
            self.ask_for(self.sets[set], blocks);
            let Some(next) = next else { return Ok(()) };
            at = begun + next;
        }
    }

    /// Sends a list.
    fn ask_for(&self, set: u32, blocks: Vec<u64>) {
        let (now, numbers) = (self.context.now(), blocks.clone());
        let mut client = self.client.borrow_mut();
        let (list, before) = client.request(now, set, blocks, self.supersedes, true);
        drop(client);
        let mut record = self.record.borrow_mut();
        if let Some(tally) = before {
            record.over(tally);
        }
        let sent = SentListRecord {
            at: now,
            set: list.set,
            serial: list.serial,
            blocks: numbers,
        };
        record.sent(list.first_unit, sent);
        drop(record);
        let payload = SimulatedBlockPayload::Message(list.into());
        self.put(&self.control, PairSide::Initiator, payload);
    }

    /// Takes the master's messages.
    pub(super) async fn hear_master(self: Rc<Self>) -> Result<()> {
        loop {
            if let SimulatedBlockPayload::Message(message) =
                self.control.receive(PairSide::Initiator).await
            {
                self.hear(&message);
            }
        }
    }

    /// Takes what comes from a server.
    pub(super) async fn take_blocks(self: Rc<Self>, server: usize) -> Result<()> {
        loop {
            match self.servers[server]
                .blocks
                .receive(PairSide::Initiator)
                .await
            {
                SimulatedBlockPayload::Message(message) => self.hear(&message),
                // The received part of a block whose rest is not sent is dropped.
                SimulatedBlockPayload::Cut => {}
                SimulatedBlockPayload::Block(head) => self.take_block(server, &head),
            }
        }
    }

    fn hear(&self, message: &Message) {
        match message {
            Message::Flushed(flushed) => self.record.borrow_mut().flushed(flushed),
            Message::Missing(missing) => {
                self.client.borrow_mut().missing(missing);
            }
            _ => {}
        }
    }

    fn take_block(self: &Rc<Self>, server: usize, head: &BlockHead) {
        let now = self.context.now();
        let wanted = self.client.borrow_mut().arrived(now, head) == BlockArrival::Wanted;
        self.record.borrow_mut().came(head, now, wanted);
        let set = self.sets.iter().position(|known| *known == head.set);
        let mut askers = self.askers.borrow_mut();
        if let Some(asker) = set.and_then(|set| askers.get_mut(set)) {
            asker.came(head.number);
        }
        drop(askers);
        if self.costs.receive > Duration::ZERO {
            self.hold_reading(server);
        }
    }

    /// Keeps the application busy with a block of a connection, after the blocks before it; meanwhile it reads no more from that
    /// connection.
    fn hold_reading(self: &Rc<Self>, server: usize) {
        let Some(port) = self.servers[server]
            .blocks
            .port(PairSide::Initiator)
            .cloned()
        else {
            return;
        };
        let taking = &self.servers[server].taking;
        let until = taking.get().max(self.context.now()) + self.costs.receive;
        taking.set(until);
        port.set_reading(false);
        self.spawn(|site| async move {
            site.context.sleep_until(until).await;
            // Another block may have made it busy again.
            if site.servers[server].taking.get() <= site.context.now() {
                port.set_reading(true);
            }
            Ok(())
        });
    }
}
