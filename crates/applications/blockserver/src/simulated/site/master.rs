//! The simulated master: it translates one list after the other, and sends the servers their parts.

use super::{BlockSite, CLIENT, FIRST_SERVER, SimulatedBlockPayload};
use stackline_blocks::master::stamp_master_out;
use stackline_blocks::wire::message::Message;
use stackline_core::error::Result;
use stackline_core::procedure::PairSide;
use stackline_core::time::Instant;
use std::rc::Rc;

impl BlockSite {
    /// Takes lists as they come.
    pub(super) async fn serve_lists(self: Rc<Self>) -> Result<()> {
        loop {
            if let SimulatedBlockPayload::Message(list @ Message::List(_)) =
                self.control.receive(PairSide::Responder).await
            {
                let came = self.context.now();
                self.spawn(|site| site.translate(came, list));
            }
        }
    }

    /// Translates a list after those before it, and sends on the parts.
    async fn translate(self: Rc<Self>, came: Instant, list: Message) -> Result<()> {
        let done = self.master_free.get().max(came) + self.costs.translate;
        self.master_free.set(done);
        self.context.sleep_until(done).await;
        let actions = self.master.borrow_mut().handle(came, CLIENT, list);
        for (connection, mut message) in actions.sends {
            stamp_master_out(&mut message, done);
            let payload = SimulatedBlockPayload::Message(message);
            match connection.checked_sub(FIRST_SERVER) {
                Some(server) => self.spawn(|site| site.forward(server as usize, payload)),
                None => self.put(&self.control, PairSide::Responder, payload),
            }
        }
        Ok(())
    }

    /// Sends a server its part of a list.
    async fn forward(self: Rc<Self>, server: usize, payload: SimulatedBlockPayload) -> Result<()> {
        self.context.sleep(self.costs.forward).await;
        self.put(&self.servers[server].lists, PairSide::Responder, payload);
        Ok(())
    }
}
