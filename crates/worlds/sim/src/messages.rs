//! Whole messages between programs of a simulated application ([`crate::application`]): over connections of `tcp`, PUP
//! and blasts, and by V's message passing.

pub(crate) mod callers;
pub(crate) mod connections;

mod blasts;
mod calls;
mod message_end;
mod port;

pub use callers::CallPort;
pub use port::MessagePort;
/// What connections do and know of themselves.
pub use stackline_proto::tcp::{TcpConnectionEvent, TcpFacts};

use stackline_core::procedure::PairSide;
use stackline_core::time::Instant;
use std::cell::RefCell;
use std::rc::Rc;

/// An event of a connection that is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageTrace {
    /// When it happened.
    pub at: Instant,
    /// The number of the connection.
    pub connection: u32,
    /// The side whose end of the connection it is.
    pub side: PairSide,
    /// What happened.
    pub event: TcpConnectionEvent,
}

/// The events of all connections.
pub(crate) type Traces = Rc<RefCell<Vec<MessageTrace>>>;
