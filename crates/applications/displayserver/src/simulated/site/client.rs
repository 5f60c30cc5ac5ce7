//! The programs of the client's host: the client, which carries out its script, and the agent, to which it writes through a pipe. They hand
//! requests to the transport and receive answers.

use super::super::programs::{SimulatedDisplayPayload, TTY, bytes};
use super::super::request_events::DisplayRequestPoint;
use super::super::trial_script::{Action, SimulatedDisplayRequest};
use super::{DisplaySite, DisplaySiteProgram, DisplaySiteRoute, RemoteAgent};
use stackline_core::error::Result;
use stackline_core::network::WorkKind;
use stackline_core::time::{Duration, Instant};
use std::collections::VecDeque;
use std::rc::Rc;

impl DisplaySite {
    /// The client's loop: carries out the actions of its script in order.
    pub(super) async fn carry_out(self: Rc<Self>, actions: VecDeque<Action>) -> Result<()> {
        let mut gathered = Vec::new();
        for action in actions {
            match action {
                Action::Request(request) => {
                    self.make(&request).await;
                    if bytes(&gathered) + request.length() > self.gathers {
                        // The request would not fit: it goes with the next ones.
                        self.hand_over(std::mem::take(&mut gathered)).await?;
                    }
                    self.client.borrow_mut().make(&request);
                    gathered.push(request);
                }
                Action::Hand => self.hand_over(std::mem::take(&mut gathered)).await?,
                Action::Await => {
                    self.hand_over(std::mem::take(&mut gathered)).await?;
                    self.await_answers().await;
                }
                Action::Begin => self.client.borrow_mut().begin(self.now()),
                Action::End => self.client.borrow_mut().end(self.now()),
            }
        }
        self.client.borrow_mut().is_over = true;
        Ok(())
    }

    /// Charges the client for making a request.
    async fn make(&self, request: &SimulatedDisplayRequest) {
        self.pass(DisplayRequestPoint::Call, std::slice::from_ref(request));
        let takes = self.costs[0].as_ref().map_or(Duration::ZERO, |costs| {
            costs.operation(request.length() as u64)
        });
        self.work(DisplaySiteProgram::Client, WorkKind::Operations, takes)
            .await;
    }

    /// Waits until every request that asks for an answer has been answered.
    async fn await_answers(&self) {
        while !self.client.borrow().is_answered() {
            self.answered.wait().await;
        }
        let completed = self.client.borrow_mut().completed();
        self.pass_at(self.now(), DisplayRequestPoint::Done, completed);
    }

    /// Hands requests to the transport, or to the agent's pipe if there is one, and waits until they are taken.
    async fn hand_over(self: &Rc<Self>, requests: Vec<SimulatedDisplayRequest>) -> Result<()> {
        if requests.is_empty() {
            return Ok(());
        }
        let Some(agent) = &self.remote else {
            self.message(DisplaySiteProgram::Client, Duration::ZERO)
                .await;
            return self.transport(DisplayRequestPoint::Send, requests).await;
        };
        let is_written = {
            let mut pipe = agent.pipe.borrow_mut();
            let written = pipe.write(requests);
            written
                .inspect(|requests| self.pass(DisplayRequestPoint::Send, requests))
                .is_some()
        };
        if is_written {
            agent.filled.call();
        } else {
            agent.emptied.wait().await;
        }
        Ok(())
    }

    /// The agent's loop: takes requests from the pipe and hands them to the transport. Over `ikp` an idle agent notices them at its next
    /// poll.
    pub(super) async fn forward_pipe(self: Rc<Self>) -> Result<()> {
        let Some(agent) = &self.remote else {
            return Ok(());
        };
        // A message of V takes as much of the pipe as fits into it; to a connection the agent forwards one write at a time (`most` of 0).
        let (polls, most) = match &self.route {
            DisplaySiteRoute::Calls { there, .. } => (true, there[0].room() as usize),
            _ => (false, 0),
        };
        loop {
            if agent.pipe.borrow().is_empty() {
                agent.filled.wait().await;
                if agent.pipe.borrow().is_empty() {
                    continue;
                }
                if polls {
                    self.look().await;
                }
            }
            self.message(DisplaySiteProgram::RemoteAgent, Duration::ZERO)
                .await;
            let taken = agent.pipe.borrow_mut().take(most);
            self.write_waiting(agent);
            self.transport(DisplayRequestPoint::RemoteAgent, taken)
                .await?;
        }
    }

    /// Writes the client's blocked requests if the pipe has room for them. The client then continues once the agent waits.
    fn write_waiting(&self, agent: &RemoteAgent) {
        if let Some(requests) = agent.pipe.borrow_mut().write_waiting() {
            self.pass(DisplayRequestPoint::Send, requests);
            agent.emptied.ring();
        }
    }

    /// Sends requests to the display's host, and waits until the transport has taken them or, with calls and on one host, until they are
    /// answered.
    async fn transport(
        self: &Rc<Self>,
        point: DisplayRequestPoint,
        requests: Vec<SimulatedDisplayRequest>,
    ) -> Result<()> {
        let length = bytes(&requests);
        self.pass(point, &requests);
        match &self.route {
            DisplaySiteRoute::Local => {
                self.put_in_inbox(requests);
                let reply = self.replies.next().await;
                self.client.borrow_mut().receive(&reply)?;
            }
            DisplaySiteRoute::Stream(ports) | DisplaySiteRoute::Internet(ports, _) => {
                let payload = SimulatedDisplayPayload::Requests(requests);
                ports[0].send(length as u64, payload).await;
            }
            DisplaySiteRoute::Calls { there, .. } => {
                let payload = SimulatedDisplayPayload::Requests(requests);
                let reply = there[0].ask(length as u64, payload).await.answers();
                self.client.borrow_mut().receive(&reply)?;
            }
            DisplaySiteRoute::Line(line) => {
                let ((left, there), kept) = {
                    let mut line = line.borrow_mut();
                    (line.put(0, self.now(), length), line.crossing_time(0, TTY))
                };
                self.cross_line(there, requests);
                // The driver buffers `TTY` bytes, so the writer continues when no more than that is still to be sent.
                let room = Instant(left.0.saturating_sub(kept.0));
                self.context.sleep_until(room).await;
            }
        }
        Ok(())
    }

    /// Charges the client, or its agent if there is one, for answers that have arrived, and handles them once they are noticed.
    pub(super) async fn take_answers(self: Rc<Self>, answers: Vec<u8>) -> Result<()> {
        let program = if self.remote.is_some() {
            DisplaySiteProgram::RemoteAgent
        } else {
            DisplaySiteProgram::Client
        };
        self.message(program, Duration::ZERO).await;
        if !matches!(self.route, DisplaySiteRoute::Calls { .. }) {
            self.look().await;
        }
        let mut client = self.client.borrow_mut();
        client.receive(&answers)?;
        if client.is_answered() {
            self.answered.ring();
        }
        Ok(())
    }
}
