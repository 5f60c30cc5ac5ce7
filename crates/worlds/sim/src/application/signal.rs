//! How programs of a simulated application wait for one another: signals, and mailboxes of what one leaves for another.

use crate::run_state::SimRunState;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// What one program waits for and others say; a copy is the same. What is said while nobody waits is kept, once.
#[derive(Clone, Debug)]
pub struct Signal {
    shared: Rc<SimRunState>,
    state: Rc<SignalState>,
}

#[derive(Debug, Default)]
struct SignalState {
    rung: Cell<bool>,
    waiter: Cell<Option<u32>>,
}

impl Signal {
    pub(crate) fn new(shared: &Rc<SimRunState>) -> Self {
        Self {
            shared: Rc::clone(shared),
            state: Rc::default(),
        }
    }

    /// The program that waits for it goes on once the present one waits.
    pub fn ring(&self) {
        self.state.rung.set(true);
        if let Some(task) = self.state.waiter.take() {
            self.shared.tasks.wake(task);
        }
    }

    /// The program that waits for it goes on now, until it waits again.
    pub fn call(&self) {
        self.state.rung.set(true);
        if let Some(task) = self.state.waiter.take() {
            self.shared.tasks.resume(task);
        }
    }

    /// What was said before does not count.
    pub fn clear(&self) {
        self.state.rung.set(false);
    }

    /// Waits for it.
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

/// What is left for one program, in its order.
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

    /// Leaves something; a program that waits for it goes on once the present one waits.
    pub fn put(&self, item: T) {
        self.items.borrow_mut().push_back(item);
        self.filled.ring();
    }

    /// Leaves something; a program that waits for it goes on now.
    pub fn give(&self, item: T) {
        self.items.borrow_mut().push_back(item);
        self.filled.call();
    }

    /// The next thing, once it is there.
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
