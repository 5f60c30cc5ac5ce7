//! The display's program: one request after another, drawn piece by piece, then answered.

use super::super::programs::{PIECE, SimulatedDisplayPayload};
use super::super::request_events::DisplayRequestPoint;
use super::super::scene::DisplaySceneClass;
use super::super::trial_script::SimulatedDisplayRequest;
use super::{DisplaySite, DisplaySiteProgram, DisplaySiteRoute, DisplaySiteTask};
use stackline_core::error::Result;
use stackline_core::network::WorkKind;
use stackline_core::time::{Duration, Instant};

impl DisplaySite<'_> {
    // --- the display ---

    /// A message for the display, from a client that waits until it is carried out.
    pub(super) fn display_has(&mut self, jobs: Vec<SimulatedDisplayRequest>) -> Result<()> {
        self.program.inbox.push_back(jobs);
        self.display();
        Ok(())
    }

    pub(super) fn display(&mut self) {
        if self.program.is_busy {
            return;
        }
        let Some(jobs) = self.program.inbox.pop_front() else {
            return;
        };
        self.program.is_busy = true;
        self.program.jobs.extend(jobs);
        self.agent_has_room();
        // What an agent has taken is there already.
        let message = if self.local.is_none() {
            self.message(1)
        } else {
            Duration::ZERO
        };
        self.work(
            DisplaySiteProgram::Display,
            WorkKind::Messages,
            message,
            DisplaySiteTask::Read,
        );
    }

    pub(super) fn next_job(&mut self) -> Result<()> {
        if let Some(number) = self.program.jobs.front().map(|job| job.number) {
            self.pass_at(self.now(), DisplayRequestPoint::Parse, number..=number);
            let takes = self.scaled(self.scene.drawing.request);
            self.work(
                DisplaySiteProgram::Display,
                WorkKind::Operations,
                takes,
                DisplaySiteTask::Stored,
            );
            return Ok(());
        }
        self.program.is_busy = false;
        if self.local.is_none() {
            let reply = std::mem::take(&mut self.program.reply);
            match self.way {
                DisplaySiteRoute::Calls(calls, _) => {
                    self.world.borrow_mut().answer(
                        calls,
                        reply.len().max(1) as u64,
                        SimulatedDisplayPayload::Answers(reply),
                    );
                }
                _ => {
                    self.client.receive(&reply)?;
                    self.handed_over()?;
                }
            }
        }
        self.display();
        Ok(())
    }

    pub(super) fn stored(&mut self) -> Result<()> {
        let now = self.now();
        let Some(job) = self.program.jobs.front().cloned() else {
            return Ok(());
        };
        self.program.carry_out(now, &job.bytes)?;
        self.pass_at(now, DisplayRequestPoint::Store, job.number..=job.number);
        let answer = if job.wants {
            self.scene.drawing.answer
        } else {
            0.0
        };
        self.program.to_draw = self.scaled(job.draw.unwrap_or(0.0) + answer);
        self.program.to_answer = self.scaled(answer);
        if self.program.to_draw <= self.program.to_answer {
            self.rendered(now, &job);
        }
        self.draw()
    }

    /// A piece is drawn.
    pub(super) fn drawn(&mut self, piece: Duration) -> Result<()> {
        let (before, answer) = (self.program.to_draw, self.program.to_answer);
        let left = Duration(before.0.saturating_sub(piece.0));
        self.program.to_draw = left;
        if before > answer
            && left <= answer
            && let Some(job) = self.program.jobs.front().cloned()
        {
            // The piece ends with what is of the answer.
            let of_answer = answer.0 - left.0;
            self.rendered(Instant(self.now().0 - of_answer), &job);
        }
        self.draw()
    }

    /// What a request changes is drawn, and with it what those before it changed that were not drawn by themselves.
    fn rendered(&mut self, at: Instant, job: &SimulatedDisplayRequest) {
        if job.wants || job.draw.is_some() {
            self.pass_at(
                at,
                DisplayRequestPoint::Render,
                self.program.drawn + 1..=job.number,
            );
            self.program.drawn = job.number;
        }
    }

    /// Draws the next piece; after the last one the answer goes.
    pub(super) fn draw(&mut self) -> Result<()> {
        let piece = self.program.to_draw.min(PIECE);
        if piece > Duration::ZERO {
            self.work(
                DisplaySiteProgram::Display,
                WorkKind::Operations,
                piece,
                DisplaySiteTask::Drawn(piece),
            );
            return Ok(());
        }
        let Some(job) = self.program.jobs.pop_front() else {
            return Ok(());
        };
        if job.timed {
            self.client.taken.push(self.scaled(job.draw.unwrap_or(0.0)));
        }
        let output = std::mem::take(&mut self.program.output);
        match &mut self.local {
            None => self.program.reply.extend(output),
            Some(agent) if self.scene.class == DisplaySceneClass::Terminal => {
                agent
                    .answers
                    .extend(output.into_iter().map(|byte| vec![byte]));
                self.answers_go();
            }
            Some(agent) => {
                agent.answers.extend((!output.is_empty()).then_some(output));
                self.answers_go();
            }
        }
        self.next_job()
    }
}
