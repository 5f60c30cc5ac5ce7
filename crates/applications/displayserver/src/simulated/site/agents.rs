//! The agent of the display's host, which takes requests, queues them for the display and sends answers back; and the tasks that receive
//! from the carriers (connection, calls or serial line) between the hosts.

use super::super::programs::{KEPT, SimulatedDisplayPayload, bytes};
use super::super::request_events::DisplayRequestPoint;
use super::super::trial_script::SimulatedDisplayRequest;
use super::{DisplaySite, DisplaySiteProgram, DisplaySiteRoute, LocalAgent};
use stackline_core::error::{Error, Result};
use stackline_core::time::{Duration, Instant};
use stackline_sim::messages::MessagePort;
use std::future::Future;
use std::rc::Rc;

impl DisplaySite {
    /// Starts the tasks that receive messages from the carriers at both hosts, and those that end the simulation if a carrier breaks.
    pub(super) fn start_carriers(self: &Rc<Self>) {
        match &self.route {
            DisplaySiteRoute::Local | DisplaySiteRoute::Line(_) => {}
            DisplaySiteRoute::Stream(ports) => {
                let [near, far] = ports.clone();
                self.start_stream(near);
                self.spawn(|site| async move {
                    loop {
                        site.arrive(far.receive().await.requests());
                    }
                });
            }
            DisplaySiteRoute::Internet(ports, server) => {
                self.start_stream(ports[0].clone());
                self.start_internet(ports, server);
            }
            DisplaySiteRoute::Calls { there, back } => {
                let ([asks, asked], [asks_back, asked_back]) = (there.clone(), back.clone());
                self.spawn(|site| async move {
                    loop {
                        site.arrive(asked.asked().await.requests());
                    }
                });
                self.spawn(|site| async move {
                    loop {
                        let answers = asked_back.asked().await.answers();
                        asked_back.answer(1, SimulatedDisplayPayload::NOTHING);
                        site.spawn(|site| site.take_answers(answers));
                    }
                });
                for calls in [asks, asks_back] {
                    self.end_when(async move { calls.broken().await });
                }
            }
        }
    }

    /// Starts receiving answers from a connection at the client's host.
    fn start_stream(self: &Rc<Self>, near: MessagePort<SimulatedDisplayPayload>) {
        let port = near.clone();
        self.spawn(|site| async move {
            loop {
                let answers = near.receive().await.answers();
                site.spawn(|site| site.take_answers(answers));
            }
        });
        self.end_when(async move { port.broken().await });
    }

    /// Ends the simulation with an error when `broken` completes: a carrier has given up.
    pub(super) fn end_when(&self, broken: impl Future<Output = ()> + 'static) {
        self.context.spawn(async move {
            broken.await;
            Err(Error::measurement(
                "the connection to the simulated display was abandoned: data was not acknowledged in time",
            )
            .hint("possible causes: a timeout shorter than the round trip, a path that loses too many packets, or an \
                   `mtu` smaller than a packet"))
        });
    }

    /// Delivers requests to the display's host at `there`, when they have crossed the serial line.
    pub(super) fn cross_line(
        self: &Rc<Self>,
        there: Instant,
        requests: Vec<SimulatedDisplayRequest>,
    ) {
        self.spawn(|site| async move {
            site.context.sleep_until(there).await;
            site.arrive(requests);
            Ok(())
        });
    }

    /// Gives requests that have reached the display's host to the agent, or to the display if there is no agent.
    pub(super) fn arrive(&self, requests: Vec<SimulatedDisplayRequest>) {
        self.pass(DisplayRequestPoint::Arrive, &requests);
        match &self.local {
            Some(agent) => agent.came.give(requests),
            None => self.put_in_inbox(requests),
        }
    }

    /// The agent's loop for requests: takes what has arrived and queues it for the display. It stops reading when more than `KEPT` bytes
    /// wait.
    pub(super) async fn take_requests(self: Rc<Self>) -> Result<()> {
        let Some(agent) = &self.local else {
            return Ok(());
        };
        loop {
            let requests = agent.came.next().await;
            let of_bytes = self.of_bytes(DisplaySiteProgram::LocalAgent, bytes(&requests));
            self.message(DisplaySiteProgram::LocalAgent, of_bytes).await;
            self.pass(DisplayRequestPoint::LocalAgent, &requests);
            self.put_in_inbox(requests);
            if self.waiting.get() <= KEPT {
                self.agent_goes_on();
            } else if !agent.is_full.replace(true)
                && let DisplaySiteRoute::Stream(ports) = &self.route
            {
                ports[1].set_reading(false);
            }
        }
    }

    /// Lets the sender continue: answers its call, or asks the internet server for the next block. A connection needs neither.
    fn agent_goes_on(self: &Rc<Self>) {
        match &self.route {
            DisplaySiteRoute::Calls { there, .. } => {
                there[1].answer(1, SimulatedDisplayPayload::NOTHING);
            }
            DisplaySiteRoute::Internet(ports, server) => self.ask_for_block(ports, server),
            _ => {}
        }
    }

    /// Resumes reading if the agent had stopped and no more than `KEPT` bytes wait. The display calls it after taking a message.
    pub(super) fn look_for_room(self: &Rc<Self>, agent: &LocalAgent) {
        if self.waiting.get() > KEPT || !agent.is_full.replace(false) {
            return;
        }
        if let DisplaySiteRoute::Stream(ports) = &self.route {
            ports[1].set_reading(true);
        }
        self.agent_goes_on();
    }

    /// The agent's loop for answers: sends them back one after another. For a terminal they come byte by byte, as if they were typed.
    pub(super) async fn hand_answers_back(self: Rc<Self>) -> Result<()> {
        let Some(agent) = &self.local else {
            return Ok(());
        };
        loop {
            let answers = agent.answers.next().await;
            self.message(DisplaySiteProgram::LocalAgent, Duration::ZERO)
                .await;
            let length = answers.len();
            let payload = SimulatedDisplayPayload::Answers(answers);
            match &self.route {
                DisplaySiteRoute::Local => {}
                DisplaySiteRoute::Stream(ports) => {
                    ports[1].put(length as u64, payload);
                }
                DisplaySiteRoute::Calls { back, .. } => {
                    back[0].ask(length as u64, payload).await;
                }
                DisplaySiteRoute::Internet(ports, server) => match &server.calls {
                    Some(calls) => {
                        calls.writes[0].ask(length as u64, payload).await;
                    }
                    None => self.cross_back(&ports[1], payload.answers()),
                },
                DisplaySiteRoute::Line(line) => {
                    let (_, there) = line.borrow_mut().put(1, self.now(), length);
                    self.spawn(|site| async move {
                        site.context.sleep_until(there).await;
                        site.take_answers(payload.answers()).await
                    });
                }
            }
        }
    }
}
