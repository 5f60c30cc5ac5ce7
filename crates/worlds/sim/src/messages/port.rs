//! One side of a connection, as a program of a simulated application has it.

use super::connections::MessageConnection;
use crate::application::{Mailbox, Signal};
use crate::run_state::SimRunState;
use stackline_core::procedure::PairSide;
use stackline_proto::tcp::TcpFacts;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

/// What has happened to a side.
pub(super) struct PortState<M> {
    pub(super) arrived: Mailbox<M>,
    /// The connection is there, or broken; the first is known at the side that asked for it, and so is the second.
    connected: Cell<bool>,
    connecting: Signal,
    pub(super) broken: Signal,
    /// How often something was handed over, and taken.
    handed: Cell<u64>,
    taken: Cell<u64>,
    taking: Signal,
    /// What is rung when there is room.
    room: RefCell<Option<Signal>>,
}

impl<M> PortState<M> {
    pub(super) fn new(shared: &Rc<SimRunState>) -> Self {
        Self {
            arrived: Mailbox::new(shared),
            connected: Cell::new(false),
            connecting: Signal::new(shared),
            broken: Signal::new(shared),
            handed: Cell::new(0),
            taken: Cell::new(0),
            taking: Signal::new(shared),
            room: RefCell::new(None),
        }
    }

    pub(super) fn is_connected(&self) {
        self.connected.set(true);
        self.connecting.ring();
    }

    pub(super) fn is_taken(&self) {
        self.taken.set(self.taken.get() + 1);
        self.taking.ring();
    }

    pub(super) fn has_room(&self) {
        if let Some(room) = self.room.borrow_mut().take() {
            room.ring();
        }
    }
}

/// One side of a connection; a copy is the same. One program waits for each thing.
pub struct MessagePort<M> {
    connection: Rc<MessageConnection<M>>,
    side: PairSide,
    state: Rc<PortState<M>>,
}

impl<M> Clone for MessagePort<M> {
    fn clone(&self) -> Self {
        Self {
            connection: Rc::clone(&self.connection),
            side: self.side,
            state: Rc::clone(&self.state),
        }
    }
}

impl<M> fmt::Debug for MessagePort<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessagePort")
            .field("connection", &self.connection.number)
            .field("side", &self.side)
            .finish_non_exhaustive()
    }
}

impl<M: 'static> MessagePort<M> {
    pub(super) fn new(connection: Rc<MessageConnection<M>>, side: PairSide) -> Self {
        let state = connection.port(side);
        Self {
            connection,
            side,
            state,
        }
    }

    /// The connection's number among those of its simulation.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.connection.number
    }

    /// Whether the connection is there, at the side that asked for it.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.state.connected.get()
    }

    /// Waits until it is there, at the side that asked for it.
    pub async fn connected(&self) {
        while !self.is_connected() {
            self.state.connecting.wait().await;
        }
    }

    /// Waits until the connection is broken, at the side that asked for it.
    pub async fn broken(&self) {
        self.state.broken.wait().await;
    }

    /// Hands a message over and waits until the send buffer has taken all of it. `bytes` is what it takes on the connection, at least 1.
    pub async fn send(&self, bytes: u64, message: M) {
        let number = self.put(bytes, message);
        self.taken(number).await;
    }

    /// The same as [`MessagePort::send`], and nothing is waited for; which one it is, for [`MessagePort::taken`].
    pub fn put(&self, bytes: u64, message: M) -> u64 {
        self.hand(bytes, Some(message))
    }

    /// Hands over the next bytes of a message, at least 1: what the message is, is said with its last ones, and the other side reads them as they
    /// come. Which one it is, for [`MessagePort::taken`].
    pub fn put_part(&self, bytes: u64) -> u64 {
        self.hand(bytes, None)
    }

    fn hand(&self, bytes: u64, message: Option<M>) -> u64 {
        let number = self.state.handed.get() + 1;
        self.state.handed.set(number);
        self.connection.put(self.side, bytes, message);
        number
    }

    /// Waits until the send buffer has taken all of what was handed over as that one.
    pub async fn taken(&self, number: u64) {
        while self.state.taken.get() < number {
            self.state.taking.wait().await;
        }
    }

    /// Whether the send buffer has enough room that a writer would be woken.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.connection.has_room(self.side)
    }

    /// Rings a signal when there is room to begin another message.
    pub fn ring_for_room(&self, signal: &Signal) {
        *self.state.room.borrow_mut() = Some(signal.clone());
        self.connection.ask_for_room(self.side);
    }

    /// The next message, when it has come whole.
    pub async fn receive(&self) -> M {
        self.state.arrived.next().await
    }

    /// Whether the program reads, as it does at first. What it has read already comes also where it does not.
    pub fn set_reading(&self, reads: bool) {
        self.connection.set_reading(self.side, reads);
    }

    /// The program reads so many bytes at once, where they are there, and finds its messages in them; else it reads each message by itself, as
    /// far as it has come.
    pub fn set_piece(&self, bytes: u64) {
        self.connection.set_piece(self.side, bytes);
    }

    /// What this side's connection of `tcp` knows of itself.
    #[must_use]
    pub fn facts(&self) -> Option<TcpFacts> {
        self.connection.facts(self.side)
    }
}
