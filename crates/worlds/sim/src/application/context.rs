//! What a program of a simulated application has around it: the time, its host's processor, other programs.

use super::signal::{Mailbox, Signal};
use crate::error::Result;
use crate::run_state::SimRunState;
use crate::usage::UsageTotals;
use stackline_core::network::WorkKind;
use stackline_core::time::{Duration, Instant};
use stackline_net::NodeIndex;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::Poll;

/// What a program has around it; a copy is the same.
#[derive(Clone, Debug)]
pub struct ProgramContext {
    shared: Rc<SimRunState>,
}

impl ProgramContext {
    pub(super) fn new(shared: &Rc<SimRunState>) -> Self {
        Self {
            shared: Rc::clone(shared),
        }
    }

    /// The present.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.shared.now()
    }

    /// Starts a program: it runs until it waits, before the one that starts it goes on. Its error ends the simulation.
    pub fn spawn(&self, program: impl Future<Output = Result<()>> + 'static) {
        self.shared.tasks.spawn(Box::pin(program));
    }

    /// Waits until a moment. One that is no later than now comes after what was to happen now before.
    pub async fn sleep_until(&self, moment: Instant) {
        let moment = moment.max(self.now());
        let mut is_set = false;
        poll_fn(|_| {
            if is_set && self.now() >= moment {
                return Poll::Ready(());
            }
            if !is_set {
                self.shared.set_alarm(self.shared.tasks.running(), moment);
                is_set = true;
            }
            Poll::Pending
        })
        .await;
    }

    /// Waits for so long.
    pub async fn sleep(&self, time: Duration) {
        self.sleep_until(self.now() + time).await;
    }

    /// Has a host's processor work for so long, for a program of it by its number: going from one to another may take time. What takes no
    /// time comes after what was to happen now before.
    pub async fn work(&self, host: NodeIndex, program: u32, kind: WorkKind, takes: Duration) {
        if takes == Duration::ZERO {
            return self.sleep(takes).await;
        }
        let task = self.shared.tasks.running();
        let ticket = self
            .shared
            .want(host.0 as usize, program, kind, takes, task);
        poll_fn(|_| {
            if ticket.done.get() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// What went through all ports, and what processors have been spent on, by now.
    pub async fn usage(&self) -> UsageTotals {
        let look = self.shared.look();
        poll_fn(|_| look.usage.take().map_or(Poll::Pending, Poll::Ready)).await
    }

    /// A signal between programs.
    #[must_use]
    pub fn signal(&self) -> Signal {
        Signal::new(&self.shared)
    }

    /// An empty mailbox of a program.
    #[must_use]
    pub fn mailbox<T>(&self) -> Mailbox<T> {
        Mailbox::new(&self.shared)
    }
}
