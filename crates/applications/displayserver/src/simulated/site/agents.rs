//! The agents of both hosts, and what carries their messages.

use super::super::programs::{KEPT, SimulatedDisplayPayload, TTY, bytes};
use super::super::request_events::DisplayRequestPoint;
use super::super::trial_script::SimulatedDisplayRequest;
use super::{DisplaySite, DisplaySiteProgram, DisplaySiteRoute, DisplaySiteTask};
use stackline_core::error::Result;
use stackline_core::network::WorkKind;
use stackline_core::procedure::PairSide;
use stackline_core::time::{Duration, Instant};

impl DisplaySite<'_> {
    // --- the agent of the client's host ---

    /// It finds something in the pipe: at once, or when it looks next where it has nothing to wait for.
    pub(super) fn look(&mut self) {
        let Some(agent) = &mut self.remote else {
            return;
        };
        if agent.is_busy || agent.pipe.is_empty() {
            return;
        }
        agent.is_busy = true;
        let now = self.now();
        let polls = self.costs[0]
            .as_ref()
            .filter(|_| matches!(self.way, DisplaySiteRoute::Calls(..)));
        let seen = polls.map_or(now, |costs| costs.seen(now));
        match seen > now {
            true => self.at(seen, DisplaySiteTask::Look),
            false => self.work(
                DisplaySiteProgram::RemoteAgent,
                WorkKind::Messages,
                self.message(0),
                DisplaySiteTask::Taken,
            ),
        }
    }

    pub(super) fn taken(&mut self) -> Result<()> {
        // To a stream it hands on what was written at once; a message of V's takes all that there is.
        let most = if let DisplaySiteRoute::Calls(calls, _) = self.way {
            self.world.borrow_mut().room_of(calls) as usize
        } else {
            0
        };
        let taken = self
            .remote
            .as_mut()
            .map(|agent| agent.take(most))
            .unwrap_or_default();
        self.fill_pipe();
        self.transport(taken)?;
        self.client()
    }

    /// What it handed over is taken: it goes on where there is more, and looks only when there was nothing.
    pub(super) fn agent_handed_over(&mut self) {
        let Some(agent) = &mut self.remote else {
            return;
        };
        agent.is_busy = !agent.pipe.is_empty();
        if agent.is_busy {
            self.work(
                DisplaySiteProgram::RemoteAgent,
                WorkKind::Messages,
                self.message(0),
                DisplaySiteTask::Taken,
            );
        }
    }

    pub(super) fn transport(&mut self, jobs: Vec<SimulatedDisplayRequest>) -> Result<()> {
        let bytes = bytes(&jobs) as u64;
        self.pass(
            if self.remote.is_some() {
                DisplayRequestPoint::RemoteAgent
            } else {
                DisplayRequestPoint::Send
            },
            &jobs,
        );
        match self.way {
            DisplaySiteRoute::Local => return self.display_has(jobs),
            DisplaySiteRoute::Stream(connection) => self.world.borrow_mut().send(
                connection,
                PairSide::Initiator,
                bytes,
                SimulatedDisplayPayload::Requests(jobs),
            ),
            DisplaySiteRoute::Internet => {
                let connection = self
                    .internet
                    .as_ref()
                    .map_or(0, |internet| internet.connection);
                self.world.borrow_mut().send(
                    connection,
                    PairSide::Initiator,
                    bytes,
                    SimulatedDisplayPayload::Requests(jobs),
                );
            }
            DisplaySiteRoute::Calls(calls, _) => {
                self.world
                    .borrow_mut()
                    .ask(calls, bytes, SimulatedDisplayPayload::Requests(jobs))
            }
            DisplaySiteRoute::Line => {
                let now = self.now();
                let Some(line) = &mut self.serial else {
                    return Ok(());
                };
                let ((left, there), kept) = (line.put(0, now, bytes as usize), line.takes(0, TTY));
                self.at(there, DisplaySiteTask::Over(jobs));
                // The driver keeps so much.
                self.at(
                    Instant(left.0.saturating_sub(kept.0)).max(now),
                    DisplaySiteTask::Room,
                );
            }
        }
        Ok(())
    }

    // --- the agent of the display's host ---

    pub(super) fn arrived(&mut self, jobs: Vec<SimulatedDisplayRequest>) {
        // With an internet server on this host it had come before.
        if self
            .internet
            .as_ref()
            .is_none_or(|internet| internet.calls.is_some())
        {
            self.pass(DisplayRequestPoint::Arrive, &jobs);
        }
        if let Some(agent) = &mut self.local {
            agent.came.push_back(jobs);
            self.agent_takes();
        }
    }

    pub(super) fn agent_takes(&mut self) {
        let Some(agent) = self.local.as_mut().filter(|agent| !agent.is_busy) else {
            return;
        };
        if let Some(jobs) = agent.came.pop_front() {
            agent.is_busy = true;
            let of_bytes = self.costs[1]
                .as_ref()
                .map_or(Duration::ZERO, |costs| costs.bytes(bytes(&jobs) as u64));
            self.work(
                DisplaySiteProgram::LocalAgent,
                WorkKind::Messages,
                self.message(1) + of_bytes,
                DisplaySiteTask::Came(jobs),
            );
        }
    }

    pub(super) fn agent_has(&mut self, jobs: Vec<SimulatedDisplayRequest>) -> Result<()> {
        self.pass(DisplayRequestPoint::LocalAgent, &jobs);
        self.program.inbox.push_back(jobs);
        let full = self.program.waiting() > KEPT;
        if let Some(agent) = &mut self.local {
            agent.is_busy = false;
            if full && !agent.is_full {
                agent.is_full = true;
                if let DisplaySiteRoute::Stream(connection) = self.way {
                    self.world
                        .borrow_mut()
                        .set_reading(connection, PairSide::Responder, false);
                }
            }
        }
        if !full {
            self.agent_goes_on();
        }
        self.agent_takes();
        self.display();
        Ok(())
    }

    /// The agent takes more.
    pub(super) fn agent_goes_on(&mut self) {
        match self.way {
            DisplaySiteRoute::Calls(calls, _) => self.world.borrow_mut().answer(
                calls,
                1,
                SimulatedDisplayPayload::Answers(Vec::new()),
            ),
            DisplaySiteRoute::Internet => self.ask_block(),
            _ => {}
        }
    }

    /// There may be room at the agent again.
    pub(super) fn agent_has_room(&mut self) {
        let has_room = self.program.waiting() <= KEPT;
        let Some(agent) = self
            .local
            .as_mut()
            .filter(|agent| agent.is_full && has_room)
        else {
            return;
        };
        agent.is_full = false;
        if let DisplaySiteRoute::Stream(connection) = self.way {
            self.world
                .borrow_mut()
                .set_reading(connection, PairSide::Responder, true);
        }
        self.agent_goes_on();
    }

    /// Answers go on their way: a terminal's as if they were typed.
    pub(super) fn answers_go(&mut self) {
        let Some(agent) = &mut self.local else { return };
        if agent.answers_now {
            return;
        }
        if let Some(answers) = agent.answers.pop_front() {
            agent.answers_now = true;
            self.work(
                DisplaySiteProgram::LocalAgent,
                WorkKind::Messages,
                self.message(1),
                DisplaySiteTask::Answers(answers),
            );
        }
    }

    /// The agent is free for the next one.
    pub(super) fn answer_left(&mut self) {
        if let Some(agent) = &mut self.local {
            agent.answers_now = false;
        }
        self.answers_go();
    }

    pub(super) fn answer(&mut self, answers: Vec<u8>) -> Result<()> {
        let bytes = answers.len() as u64;
        match self.way {
            DisplaySiteRoute::Local => {}
            DisplaySiteRoute::Stream(connection) => {
                self.world.borrow_mut().send(
                    connection,
                    PairSide::Responder,
                    bytes,
                    SimulatedDisplayPayload::Answers(answers),
                );
                self.answer_left();
            }
            DisplaySiteRoute::Calls(_, back) => {
                self.world
                    .borrow_mut()
                    .ask(back, bytes, SimulatedDisplayPayload::Answers(answers))
            }
            DisplaySiteRoute::Internet => {
                match self.internet.as_ref().and_then(|internet| internet.calls) {
                    Some((_, writes)) => self.world.borrow_mut().ask(
                        writes,
                        bytes,
                        SimulatedDisplayPayload::Answers(answers),
                    ),
                    None => {
                        self.answers_cross(answers);
                        self.answer_left();
                    }
                }
            }
            DisplaySiteRoute::Line => {
                let now = self.now();
                let Some(line) = &mut self.serial else {
                    return Ok(());
                };
                let (_, there) = line.put(1, now, answers.len());
                self.at(there, DisplaySiteTask::OverBack(answers));
                self.answer_left();
            }
        }
        Ok(())
    }
}
