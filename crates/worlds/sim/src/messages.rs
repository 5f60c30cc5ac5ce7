//! Whole messages between programs of a simulated application ([`crate::application`]): over connections of `tcp`, PUP and blasts, and as V's
//! messages.

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

/// What a connection did, where it is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageTrace {
    /// When.
    pub at: Instant,
    /// Which connection.
    pub connection: u32,
    /// The side that sends.
    pub side: PairSide,
    /// What.
    pub event: TcpConnectionEvent,
}

/// What all connections did.
pub(crate) type Traces = Rc<RefCell<Vec<MessageTrace>>>;
