//! The context of a program of a simulated application: time, its host's processor, other programs.

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

/// The context of a program. Clones refer to the same simulation.
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

    /// The present virtual time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.shared.now()
    }

    /// Starts a program. It runs until it waits, before the program that starts it continues. An error of the program
    /// ends the simulation.
    pub fn spawn(&self, program: impl Future<Output = Result<()>> + 'static) {
        self.shared.tasks.spawn(Box::pin(program));
    }

    /// Waits until a moment. If that is not in the future, the program continues after everything that is already due
    /// at this instant.
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

    /// Waits for that time.
    pub async fn sleep(&self, time: Duration) {
        self.sleep_until(self.now() + time).await;
    }

    /// Has a host's processor work for that time, for the host's program with that number: switching from one program
    /// to another may take time. Work that takes no time ends after everything that is already due at this instant.
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

    /// What went through all ports, and what processors have been used for, until now.
    pub async fn usage(&self) -> UsageTotals {
        let look = self.shared.look();
        poll_fn(|_| look.usage.take().map_or(Poll::Pending, Poll::Ready)).await
    }

    /// Makes a signal between programs.
    #[must_use]
    pub fn signal(&self) -> Signal {
        Signal::new(&self.shared)
    }

    /// Makes an empty mailbox.
    #[must_use]
    pub fn mailbox<T>(&self) -> Mailbox<T> {
        Mailbox::new(&self.shared)
    }
}
