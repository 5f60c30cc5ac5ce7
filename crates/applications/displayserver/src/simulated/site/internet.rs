//! The internet server on the display's side: the connection from the client's host ends here, and the display's agent reads and writes it
//! in blocks. The server is one more program on the display's host, or is on another host: then each block crosses the network again in V's
//! messages (remote calls).

use super::super::programs::{KEPT, SimulatedDisplayPayload, bytes};
use super::super::request_events::DisplayRequestPoint;
use super::super::trial_script::SimulatedDisplayRequest;
use super::{Calls, DisplaySite, DisplaySiteProgram, DisplaySiteRoute, Ports};
use stackline_core::error::Result;
use stackline_proto::papers::vio::BLOCK;
use stackline_sim::application::{Mailbox, ProgramContext};
use stackline_sim::messages::MessagePort;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Bytes of the agent's request for a block (a message of V has 32 bytes).
const ASKS: u64 = 32;

/// Calls of the display's agent to an internet server on another host: `reads` ask for a block of requests, `writes` bring answers.
pub(super) struct BlockCalls {
    pub(super) reads: Calls,
    pub(super) writes: Calls,
}

/// The internet server.
pub(super) struct InternetServer {
    /// The agent's calls to the server. None if the server is on the display's host.
    pub(super) calls: Option<BlockCalls>,
    /// Requests that have arrived by the connection and that the server has not taken yet.
    came: Mailbox<Vec<SimulatedDisplayRequest>>,
    /// Requests that the server has taken and that the agent has not read yet.
    blocks: RefCell<VecDeque<SimulatedDisplayRequest>>,
    /// Whether the agent waits for a block.
    is_asked: Cell<bool>,
    /// Whether the server has stopped reading the connection because more than `KEPT` bytes wait in `blocks`.
    is_full: Cell<bool>,
}

impl InternetServer {
    pub(super) fn new(context: &ProgramContext, calls: Option<BlockCalls>) -> Self {
        // On another host the agent asks for each block, also the first; on the same host it waits from the start.
        let is_asked = Cell::new(calls.is_none());
        Self {
            calls,
            came: context.mailbox(),
            blocks: RefCell::default(),
            is_asked,
            is_full: Cell::new(false),
        }
    }

    /// Bytes that the agent can read.
    fn waiting(&self) -> usize {
        bytes(self.blocks.borrow().iter())
    }

    /// Takes whole requests of at most `most` bytes together; a single one may be larger.
    fn take_block(&self, most: usize) -> Vec<SimulatedDisplayRequest> {
        let mut blocks = self.blocks.borrow_mut();
        let mut block: Vec<_> = blocks.pop_front().into_iter().collect();
        while let Some(next) = blocks.front()
            && bytes(&block) + next.length() <= most
        {
            block.extend(blocks.pop_front());
        }
        block
    }
}

impl DisplaySite {
    /// Starts the server's tasks.
    pub(super) fn start_internet(self: &Rc<Self>, ports: &Ports, server: &InternetServer) {
        let far = ports[1].clone();
        self.spawn(|site| async move {
            loop {
                let requests = far.receive().await.requests();
                site.pass(DisplayRequestPoint::ArriveBetween, &requests);
                if let DisplaySiteRoute::Internet(_, server) = &site.route {
                    server.came.put(requests);
                }
            }
        });
        self.spawn(Self::take_from_stream);
        let Some(BlockCalls { reads, writes }) = &server.calls else {
            return;
        };
        let (asked, written, far) = (reads[1].clone(), writes[1].clone(), ports[1].clone());
        self.spawn(|site| async move {
            loop {
                asked.asked().await;
                if let DisplaySiteRoute::Internet(ports, server) = &site.route {
                    server.is_asked.set(true);
                    site.give_block(ports, server);
                }
            }
        });
        self.spawn(|site| async move {
            loop {
                let answers = written.asked().await.answers();
                written.answer(1, SimulatedDisplayPayload::NOTHING);
                site.cross_back(&far, answers);
            }
        });
        for calls in [reads[0].clone(), writes[0].clone()] {
            self.end_when(async move { calls.broken().await });
        }
    }

    /// The server's loop: takes requests from the connection, so that the agent can read them.
    async fn take_from_stream(self: Rc<Self>) -> Result<()> {
        let DisplaySiteRoute::Internet(ports, server) = &self.route else {
            return Ok(());
        };
        loop {
            let requests = server.came.next().await;
            self.cross(bytes(&requests)).await;
            self.pass(DisplayRequestPoint::Internet, &requests);
            server.blocks.borrow_mut().extend(requests);
            if server.waiting() > KEPT && !server.is_full.replace(true) {
                ports[1].set_reading(false);
            }
            self.give_block(ports, server);
        }
    }

    /// Charges the server for passing on a message of this many bytes, in either direction.
    async fn cross(&self, bytes: usize) {
        let of_bytes = self.of_bytes(DisplaySiteProgram::Internet, bytes);
        self.message(DisplaySiteProgram::Internet, of_bytes).await;
    }

    /// Gives the agent a block if it waits for one and there is any. Resumes reading once half of `KEPT` is free.
    fn give_block(&self, ports: &Ports, server: &InternetServer) {
        if !server.is_asked.get() || server.blocks.borrow().is_empty() {
            return;
        }
        server.is_asked.set(false);
        let most = server
            .calls
            .as_ref()
            .map_or(BLOCK, |calls| BLOCK.min(calls.reads[1].room() as usize));
        let block = server.take_block(most);
        match (&server.calls, &self.local) {
            (Some(calls), _) => {
                let length = bytes(&block) as u64;
                calls.reads[1].answer(length, SimulatedDisplayPayload::Requests(block));
            }
            // Server and agent share the host, which the block has already reached: it does not pass `Arrive`.
            (None, Some(agent)) => agent.came.give(block),
            (None, None) => {}
        }
        if server.is_full.get() && server.waiting() <= KEPT / 2 {
            server.is_full.set(false);
            ports[1].set_reading(true);
        }
    }

    /// Asks the server for the next block on behalf of the agent.
    pub(super) fn ask_for_block(self: &Rc<Self>, ports: &Ports, server: &InternetServer) {
        let Some(calls) = &server.calls else {
            server.is_asked.set(true);
            return self.give_block(ports, server);
        };
        let asks = calls.reads[0].clone();
        self.spawn(|site| async move {
            let block = asks.ask(ASKS, SimulatedDisplayPayload::NOTHING).await;
            site.arrive(block.requests());
            Ok(())
        });
    }

    /// Passes answers through the server, which sends them to the client's host.
    pub(super) fn cross_back(
        self: &Rc<Self>,
        far: &MessagePort<SimulatedDisplayPayload>,
        answers: Vec<u8>,
    ) {
        let far = far.clone();
        self.spawn(|site| async move {
            let length = answers.len();
            site.cross(length).await;
            far.put(length as u64, SimulatedDisplayPayload::Answers(answers));
            Ok(())
        });
    }
}
