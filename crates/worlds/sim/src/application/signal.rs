//! How programs of a simulated application wait for each other: signals, and mailboxes that one program fills for
//! another.

use crate::run_state::SimRunState;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// A signal that one program waits for and others ring. Clones are the same signal. Ringing while nobody waits is
/// remembered, once.
#[derive(Clone, Debug)]
pub struct Signal {
    shared: Rc<SimRunState>,
    state: Rc<SignalState>,
}

#[derive(Debug, Default)]
struct SignalState {
    /// The signal was rung and nobody has waited for it since.
    rung: Cell<bool>,
    /// The task that waits.
    waiter: Cell<Option<u32>>,
}

impl Signal {
    pub(crate) fn new(shared: &Rc<SimRunState>) -> Self {
        Self {
            shared: Rc::clone(shared),
            state: Rc::default(),
        }
    }

    /// Rings the signal: the waiting program continues once the present one waits.
    pub fn ring(&self) {
        self.state.rung.set(true);
        if let Some(task) = self.state.waiter.take() {
            self.shared.tasks.wake(task);
        }
    }

    /// Rings the signal and runs the waiting program at once, until it waits again.
    pub fn call(&self) {
        self.state.rung.set(true);
        if let Some(task) = self.state.waiter.take() {
            self.shared.tasks.resume(task);
        }
    }

    /// Forgets an earlier ring.
    pub fn clear(&self) {
        self.state.rung.set(false);
    }

    /// Waits until the signal is rung.
    pub async fn wait(&self) {
        poll_fn(|_| {
            if self.state.rung.take() {
                return Poll::Ready(());
            }
            self.state.waiter.set(Some(self.shared.tasks.running()));
            Poll::Pending
        })
        .await;
    }
}

/// Items that are left for one program, in order.
#[derive(Debug)]
pub struct Mailbox<T> {
    items: RefCell<VecDeque<T>>,
    filled: Signal,
}

impl<T> Mailbox<T> {
    pub(crate) fn new(shared: &Rc<SimRunState>) -> Self {
        Self {
            items: RefCell::new(VecDeque::new()),
            filled: Signal::new(shared),
        }
    }

    /// Leaves an item; a program that waits for it continues once the present one waits.
    pub fn put(&self, item: T) {
        self.items.borrow_mut().push_back(item);
        self.filled.ring();
    }

    /// Leaves an item and runs a program that waits for it at once.
    pub fn give(&self, item: T) {
        self.items.borrow_mut().push_back(item);
        self.filled.call();
    }

    /// Takes the next item; waits until there is one.
    pub async fn next(&self) -> T {
        loop {
            let item = self.items.borrow_mut().pop_front();
            if let Some(item) = item {
                return item;
            }
            self.filled.wait().await;
        }
    }
}
