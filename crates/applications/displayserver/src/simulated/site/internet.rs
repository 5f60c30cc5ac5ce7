//! The internet server of the display's side: the stream from the client's host ends here, and the display's agent reads and writes it in
//! blocks. On the display's own host that is one more program; on another one each block crosses the network once more, by V's messages.

use super::super::programs::{KEPT, SimulatedDisplayPayload, bytes};
use super::super::request_events::DisplayRequestPoint;
use super::super::trial_script::SimulatedDisplayRequest;
use super::{DisplaySite, DisplaySiteProgram, DisplaySiteTask};
use stackline_core::network::WorkKind;
use stackline_core::procedure::PairSide;
use stackline_core::time::Duration;
use stackline_proto::vio::BLOCK;
use std::collections::VecDeque;

/// What the agent sends to ask for a block (V's messages have 32 bytes).
const ASKS: u64 = 32;

/// The internet server.
#[derive(Debug)]
pub(super) struct Internet {
    /// The client's stream.
    pub(super) connection: u32,
    /// Calls of the display's agent to another host: for blocks, and with them. None where it is on the same host.
    pub(super) calls: Option<(u32, u32)>,
    came: VecDeque<Vec<SimulatedDisplayRequest>>,
    is_busy: bool,
    /// What was taken out of the stream and not read as a block.
    blocks: VecDeque<SimulatedDisplayRequest>,
    /// The agent waits for a block.
    pub(super) is_asked: bool,
    is_full: bool,
}

impl Internet {
    pub(super) fn new(connection: u32, calls: Option<(u32, u32)>) -> Self {
        let (came, blocks) = (VecDeque::new(), VecDeque::new());
        // On another host it is asked for each block; here the agent waits.
        Self {
            connection,
            calls,
            came,
            is_busy: false,
            blocks,
            is_asked: calls.is_none(),
            is_full: false,
        }
    }
}

impl DisplaySite<'_> {
    /// Requests have come over the stream.
    pub(super) fn internet_has(&mut self, jobs: Vec<SimulatedDisplayRequest>) {
        self.pass(DisplayRequestPoint::ArriveBetween, &jobs);
        let Some(internet) = &mut self.internet else {
            return;
        };
        internet.came.push_back(jobs);
        self.internet_takes();
    }

    fn internet_takes(&mut self) {
        let Some(internet) = self.internet.as_mut().filter(|internet| !internet.is_busy) else {
            return;
        };
        if let Some(jobs) = internet.came.pop_front() {
            internet.is_busy = true;
            let takes = self.crossing(bytes(&jobs));
            self.work(
                DisplaySiteProgram::Internet,
                WorkKind::Messages,
                takes,
                DisplaySiteTask::Crossed(jobs),
            );
        }
    }

    /// What the server takes for so many bytes either way.
    fn crossing(&self, bytes: usize) -> Duration {
        let costs = self.costs[DisplaySiteProgram::Internet.host()].as_ref();
        costs.map_or(Duration::ZERO, |costs| {
            costs.message() + costs.bytes(bytes as u64)
        })
    }

    /// They can be read as blocks.
    pub(super) fn crossed(&mut self, jobs: Vec<SimulatedDisplayRequest>) {
        self.pass(DisplayRequestPoint::Internet, &jobs);
        if let Some(internet) = &mut self.internet {
            internet.is_busy = false;
            internet.blocks.extend(jobs);
            let full = waiting(&internet.blocks) > KEPT;
            if full && !internet.is_full {
                internet.is_full = true;
                let connection = internet.connection;
                self.world
                    .borrow_mut()
                    .set_reading(connection, PairSide::Responder, false);
            }
        }
        self.give_block();
        self.internet_takes();
    }

    /// The agent asks for a block, or brings answers.
    pub(super) fn internet_asked(&mut self, calls: u32, answers: Vec<u8>) {
        let Some(internet) = &mut self.internet else {
            return;
        };
        if internet.calls.is_some_and(|(reads, _)| reads == calls) {
            internet.is_asked = true;
            return self.give_block();
        }
        self.world
            .borrow_mut()
            .answer(calls, 1, SimulatedDisplayPayload::Answers(Vec::new()));
        self.answers_cross(answers);
    }

    /// Gives the agent a block where it waits for one.
    pub(super) fn give_block(&mut self) {
        let Some(internet) = self
            .internet
            .as_mut()
            .filter(|internet| internet.is_asked && !internet.blocks.is_empty())
        else {
            return;
        };
        internet.is_asked = false;
        let most = internet.calls.map_or(u64::MAX, |(reads, _)| {
            self.world.borrow_mut().room_of(reads)
        }) as usize;
        let mut block: Vec<SimulatedDisplayRequest> =
            internet.blocks.pop_front().into_iter().collect();
        while let Some(next) = internet.blocks.front()
            && bytes(&block) + next.length() <= most.min(BLOCK)
        {
            block.extend(internet.blocks.pop_front());
        }
        let has_room = internet.is_full && waiting(&internet.blocks) <= KEPT / 2;
        internet.is_full &= !has_room;
        let (connection, calls) = (internet.connection, internet.calls);
        match calls {
            Some((reads, _)) => self.world.borrow_mut().answer(
                reads,
                bytes(&block) as u64,
                SimulatedDisplayPayload::Requests(block),
            ),
            None => self.arrived(block),
        }
        if has_room {
            self.world
                .borrow_mut()
                .set_reading(connection, PairSide::Responder, true);
        }
    }

    /// The agent asks for the next block.
    pub(super) fn ask_block(&mut self) {
        match self.internet.as_mut().map(|internet| internet.calls) {
            Some(Some((reads, _))) => self.world.borrow_mut().ask(
                reads,
                ASKS,
                SimulatedDisplayPayload::Answers(Vec::new()),
            ),
            Some(None) => {
                if let Some(internet) = &mut self.internet {
                    internet.is_asked = true;
                }
                self.give_block();
            }
            None => {}
        }
    }

    /// The server takes answers to send them to the client's host.
    pub(super) fn answers_cross(&mut self, answers: Vec<u8>) {
        let takes = self.crossing(answers.len());
        self.work(
            DisplaySiteProgram::Internet,
            WorkKind::Messages,
            takes,
            DisplaySiteTask::AnswersCrossed(answers),
        );
    }

    pub(super) fn answers_crossed(&mut self, answers: Vec<u8>) {
        if let Some(internet) = &self.internet {
            let connection = internet.connection;
            self.world.borrow_mut().send(
                connection,
                PairSide::Responder,
                answers.len() as u64,
                SimulatedDisplayPayload::Answers(answers),
            );
        }
    }
}

fn waiting(blocks: &VecDeque<SimulatedDisplayRequest>) -> usize {
    blocks.iter().map(SimulatedDisplayRequest::length).sum()
}
