//! One end of a connection, of whichever stack: what the engine needs of it, and what `stream` needs of one that brings a byte
//! stream.
//!
//! A stack adds itself with a variant, and where its connections are byte streams with a pair that is [`Streams`]; nothing
//! here decides anything.

use super::{blast, ikp, quic, tcp};
use crate::error::Result;
use crate::world::World;
use stackline_core::record::Transport;
use stackline_core::time::Instant;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What there was to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Got {
    Bytes(usize),
    Nothing,
    /// The peer has closed its half.
    End,
    /// The connection was reset or given up.
    Broken,
}

/// Which connections begin with an introduction.
#[derive(Debug)]
pub(super) struct Introductions {
    /// Every one, else only the first.
    every: bool,
    /// Whether one was asked for and one accepted, introduction and all.
    pub(super) dialled: Cell<bool>,
    pub(super) accepted: Cell<bool>,
}

impl Introductions {
    pub(super) const fn new(every: bool) -> Self {
        Self { every, dialled: Cell::new(false), accepted: Cell::new(false) }
    }

    /// Whether the next connection asked for has one.
    pub(super) fn of_next_dialled(&self) -> bool {
        !self.dialled.replace(true) || self.every
    }

    /// Whether the next connection accepted has one.
    pub(super) const fn of_next_accepted(&self) -> bool {
        !self.accepted.get() || self.every
    }
}

/// What a pair of endpoints has between them, where that is byte streams.
pub(super) trait Streams {
    fn introductions(&self) -> &Introductions;
    /// Asks for the next connection.
    ///
    /// # Errors
    /// An [`Error`] when the stack takes none.
    fn dial(&self, world: &Rc<World>) -> Result<StreamEnd>;
    /// Takes the next connection that came about.
    fn accept(&self) -> Option<StreamEnd>;
}

/// One end of a connection, as the engine sees it.
#[derive(Clone, Debug)]
pub(crate) enum End {
    Tcp(Rc<tcp::End>),
    Quic(Rc<quic::End>),
    Blast(Rc<blast::End>),
    Ikp(Rc<ikp::End>),
}

/// The same call to the end of any stack.
macro_rules! of_any {
    ($end:expr, $name:ident => $call:expr) => {
        match $end {
            End::Tcp($name) => $call,
            End::Quic($name) => $call,
            End::Blast($name) => $call,
            End::Ikp($name) => $call,
        }
    };
}

impl End {
    /// It is off the list of those that may have something to send.
    pub(crate) fn untouch(&self) {
        of_any!(self, end => end.touched.set(false));
    }

    /// Sends what there is to send and sets the next timer.
    pub(crate) fn flush(&self, world: &World) {
        of_any!(self, end => end.flush(world));
    }

    /// Nobody needs it any more.
    pub(crate) fn is_over(&self) -> bool {
        of_any!(self, end => end.is_over())
    }

    /// Its pair's number.
    pub(crate) fn pair(&self) -> u32 {
        of_any!(self, end => end.pair())
    }
}

/// One end of a byte stream, as the application sees it.
#[derive(Clone, Debug)]
pub(crate) enum StreamEnd {
    Tcp(Rc<tcp::End>),
    Quic(Rc<quic::End>),
}

/// The same call to the end of any byte stream.
macro_rules! of_stream {
    ($end:expr, $name:ident => $call:expr) => {
        match $end {
            StreamEnd::Tcp($name) => $call,
            StreamEnd::Quic($name) => $call,
        }
    };
}

impl StreamEnd {
    /// Whether the connection came about; nothing while that is not known.
    pub(super) fn answered(&self) -> Option<bool> {
        of_stream!(self, end => end.answered())
    }

    /// Puts so many bytes into the send buffer as there is room for; `None` when the connection is broken.
    pub(super) fn send(&self, bytes: usize, world: &World) -> Option<usize> {
        of_stream!(self, end => end.send(bytes, world))
    }

    /// Takes at most so many bytes out of the receive buffer.
    pub(super) fn receive(&self, most: usize, world: &World) -> Got {
        of_stream!(self, end => end.receive(most, world))
    }

    /// Closes the own half.
    pub(super) fn close(&self, world: &World) {
        of_stream!(self, end => end.close(world));
    }

    /// The application lets go of it.
    pub(super) fn abandon(&self, world: &World) {
        of_stream!(self, end => end.abandon(world));
    }

    /// What is held back for company goes on at once.
    pub(super) fn push(&self, world: &World) {
        of_stream!(self, end => end.push(world));
    }

    pub(super) fn transport(&self, now: Instant) -> Transport {
        of_stream!(self, end => end.transport(now))
    }

    pub(super) fn settings(&self, now: Instant) -> BTreeMap<String, String> {
        of_stream!(self, end => end.settings(now))
    }
}
