//! The internet server of the display's side: the stream from the client's host ends here, and the display's agent reads and writes it in
//! blocks. On the display's own host that is one more program; on another one each block crosses the network once more, by V's messages.

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

/// What the agent sends to ask for a block (V's messages have 32 bytes).
const ASKS: u64 = 32;

/// Calls of the display's agent to another host: for blocks, and with them.
pub(super) struct BlockCalls {
    pub(super) reads: Calls,
    pub(super) writes: Calls,
}

/// The internet server.
pub(super) struct InternetServer {
    /// None where it is on the display's host.
    pub(super) calls: Option<BlockCalls>,
    came: Mailbox<Vec<SimulatedDisplayRequest>>,
    /// What was taken out of the stream and not read as a block.
    blocks: RefCell<VecDeque<SimulatedDisplayRequest>>,
    /// The agent waits for a block.
    is_asked: Cell<bool>,
    is_full: Cell<bool>,
}

impl InternetServer {
    pub(super) fn new(context: &ProgramContext, calls: Option<BlockCalls>) -> Self {
        // On another host it is asked for each block; here the agent waits.
        let is_asked = Cell::new(calls.is_none());
        Self {
            calls,
            came: context.mailbox(),
            blocks: RefCell::default(),
            is_asked,
            is_full: Cell::new(false),
        }
    }

    /// Bytes that can be read as blocks.
    fn waiting(&self) -> usize {
        bytes(self.blocks.borrow().iter())
    }

    /// Takes a block of so many bytes at most.
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
    /// Starts the server's programs.
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

    /// The server takes requests out of the stream: then they can be read as blocks.
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

    /// So many bytes go through the server, either way.
    async fn cross(&self, bytes: usize) {
        let of_bytes = self.of_bytes(DisplaySiteProgram::Internet, bytes);
        self.message(DisplaySiteProgram::Internet, of_bytes).await;
    }

    /// Gives the agent a block where it waits for one.
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
            // It is on this host since it came before.
            (None, Some(agent)) => agent.came.give(block),
            (None, None) => {}
        }
        if server.is_full.get() && server.waiting() <= KEPT / 2 {
            server.is_full.set(false);
            ports[1].set_reading(true);
        }
    }

    /// The agent asks for the next block.
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

    /// The server takes answers and sends them to the client's host.
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
