//! The display's program: it carries out requests one after another, draws each in pieces, then answers it.

use super::super::programs::{PIECE, SimulatedDisplayPayload};
use super::super::request_events::DisplayRequestPoint;
use super::super::scene::DisplaySceneClass;
use super::super::trial_script::SimulatedDisplayRequest;
use super::{DisplaySite, DisplaySiteProgram, DisplaySiteRoute, LocalAgent};
use stackline_core::error::Result;
use stackline_core::network::WorkKind;
use stackline_core::time::{Duration, Instant};
use std::rc::Rc;

impl DisplaySite {
    /// The display's loop: takes a message and carries out its requests. Without an agent, it replies to the whole message at the end.
    pub(super) async fn draw_requests(self: Rc<Self>) -> Result<()> {
        loop {
            let requests = self.inbox.next().await;
            self.waiting
                .set(self.waiting.get() - super::bytes(&requests));
            match &self.local {
                // The agent has already paid for receiving the message.
                Some(agent) => {
                    self.look_for_room(agent);
                    self.work(
                        DisplaySiteProgram::Display,
                        WorkKind::Messages,
                        Duration::ZERO,
                    )
                    .await;
                }
                None => {
                    self.message(DisplaySiteProgram::Display, Duration::ZERO)
                        .await;
                }
            }
            let mut reply = Vec::new();
            for request in requests {
                let answers = self.draw_request(&request).await?;
                match &self.local {
                    Some(agent) => self.answer_by(agent, answers),
                    None => reply.extend(answers),
                }
            }
            if self.local.is_none() {
                self.reply(reply);
            }
        }
    }

    /// Carries out one request: parses and stores it, draws, and returns the bytes of its answers.
    async fn draw_request(&self, request: &SimulatedDisplayRequest) -> Result<Vec<u8>> {
        let number = request.number;
        self.pass_at(self.now(), DisplayRequestPoint::Parse, number..=number);
        self.operate(self.scaled(self.drawing.request)).await;
        let answers = self
            .program
            .borrow_mut()
            .carry_out(self.now(), &request.bytes)?;
        self.pass_at(self.now(), DisplayRequestPoint::Store, number..=number);
        let of_answer = if request.wants {
            self.drawing.answer
        } else {
            0.0
        };
        let drawing = request.draw.unwrap_or(0.0);
        self.draw(
            request,
            self.scaled(drawing + of_answer),
            self.scaled(of_answer),
        )
        .await;
        if request.timed {
            let taken = self.scaled(drawing);
            self.client.borrow_mut().taken.push(taken);
        }
        Ok(answers)
    }

    /// Occupies the display's processor for `takes`.
    async fn operate(&self, takes: Duration) {
        self.work(DisplaySiteProgram::Display, WorkKind::Operations, takes)
            .await;
    }

    /// Works for `left` in pieces of at most `PIECE`. The last `answer` of the time is
    /// for the answer: drawing ends before it.
    async fn draw(&self, request: &SimulatedDisplayRequest, mut left: Duration, answer: Duration) {
        if left <= answer {
            self.rendered(self.now(), request);
        }
        while left > Duration::ZERO {
            let piece = left.min(PIECE);
            self.operate(piece).await;
            let before = left;
            left = Duration(before.0 - piece.0);
            if before > answer && left <= answer {
                // The last part of this piece is already for the answer.
                let of_answer = answer.0 - left.0;
                self.rendered(Instant(self.now().0 - of_answer), request);
            }
        }
    }

    /// Records that a request is drawn at `at`, and with it all earlier requests that were not drawn by themselves.
    fn rendered(&self, at: Instant, request: &SimulatedDisplayRequest) {
        if request.wants || request.draw.is_some() {
            let mut program = self.program.borrow_mut();
            let requests = program.drawn + 1..=request.number;
            program.drawn = request.number;
            self.pass_at(at, DisplayRequestPoint::Render, requests);
        }
    }

    /// Gives answers to the agent; for a terminal, byte by byte.
    fn answer_by(&self, agent: &LocalAgent, answers: Vec<u8>) {
        if self.class == DisplaySceneClass::Terminal {
            for byte in answers {
                agent.answers.give(vec![byte]);
            }
        } else if !answers.is_empty() {
            agent.answers.give(answers);
        }
    }

    /// Replies to a client that waits until its message is carried out: over the call, or directly on the same host.
    fn reply(&self, reply: Vec<u8>) {
        match &self.route {
            DisplaySiteRoute::Calls { there, .. } => {
                let length = reply.len().max(1) as u64;
                there[1].answer(length, SimulatedDisplayPayload::Answers(reply));
            }
            _ => self.replies.put(reply),
        }
    }
}
