//! The port: one side of a connection as a program of a simulated application uses it.

use super::connections::MessageConnection;
use crate::application::{Mailbox, Signal};
use crate::run_state::SimRunState;
use stackline_core::procedure::PairSide;
use stackline_proto::tcp::TcpFacts;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

/// What has happened at one side of a connection.
pub(super) struct PortState<M> {
    pub(super) arrived: Mailbox<M>,
    /// The connection is open. Known only at the side that opened it, as is `broken`.
    connected: Cell<bool>,
    connecting: Signal,
    pub(super) broken: Signal,
    /// The number of writes.
    handed: Cell<u64>,
    /// The number of writes that the send buffer has accepted wholly.
    taken: Cell<u64>,
    taking: Signal,
    /// The signal to ring when there is room.
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

/// One side of a connection. Clones are the same side. At most one program may wait for each kind of event.
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

    /// Whether the connection is open; known at the side that opened it.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.state.connected.get()
    }

    /// Waits until the connection is open, at the side that opened it.
    pub async fn connected(&self) {
        while !self.is_connected() {
            self.state.connecting.wait().await;
        }
    }

    /// Waits until the connection is broken, at the side that opened it.
    pub async fn broken(&self) {
        self.state.broken.wait().await;
    }

    /// Writes a message and waits until the send buffer has accepted all of it. `bytes` is its length on the
    /// connection, at least 1.
    pub async fn send(&self, bytes: u64, message: M) {
        let number = self.put(bytes, message);
        self.taken(number).await;
    }

    /// Writes a message like [`MessagePort::send`], without waiting. Returns the number of the write, for
    /// [`MessagePort::taken`].
    pub fn put(&self, bytes: u64, message: M) -> u64 {
        self.hand(bytes, Some(message))
    }

    /// Writes the next bytes of a message, at least 1. The message itself is given with its last bytes; the other side
    /// reads the bytes as they arrive. Returns the number of the write, for [`MessagePort::taken`].
    pub fn put_part(&self, bytes: u64) -> u64 {
        self.hand(bytes, None)
    }

    fn hand(&self, bytes: u64, message: Option<M>) -> u64 {
        let number = self.state.handed.get() + 1;
        self.state.handed.set(number);
        self.connection.put(self.side, bytes, message);
        number
    }

    /// Waits until the send buffer has accepted all of the write with that number.
    pub async fn taken(&self, number: u64) {
        while self.state.taken.get() < number {
            self.state.taking.wait().await;
        }
    }

    /// Whether the send buffer has enough room that a waiting writer would be woken.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.connection.has_room(self.side)
    }

    /// Rings a signal when there is room to begin another message.
    pub fn ring_for_room(&self, signal: &Signal) {
        *self.state.room.borrow_mut() = Some(signal.clone());
        self.connection.ask_for_room(self.side);
    }

    /// Waits for the next whole message.
    pub async fn receive(&self) -> M {
        self.state.arrived.next().await
    }

    /// Sets whether the program reads, as it does at first. Messages that it has already read from the connection
    /// arrive in any case.
    pub fn set_reading(&self, reads: bool) {
        self.connection.set_reading(self.side, reads);
    }

    /// Makes the program read at least that many bytes at once, if they are there, and find its messages in them.
    /// Otherwise it reads each message by itself, as far as it has arrived.
    pub fn set_piece(&self, bytes: u64) {
        self.connection.set_piece(self.side, bytes);
    }

    /// The facts about this side of a `tcp` connection; `None` for other protocols.
    #[must_use]
    pub fn facts(&self) -> Option<TcpFacts> {
        self.connection.facts(self.side)
    }
}
