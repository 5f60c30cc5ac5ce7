//! The communication operations over a byte stream. The same bytes go as in the live world: 16 of introduction, data units
//! one after the other without framing, one byte that starts a bulk transfer and one that confirms a put.

use super::Bulk;
use super::end::{Got, StreamEnd, Streams};
use crate::error::{Error, Result, vanished};
use crate::trace::{Coming, Leaving, Units};
use crate::world::{Desk, World};
use stackline_core::record::Transport;
use stackline_core::time::{Duration, Instant};
use std::collections::BTreeMap;
use std::mem;
use std::rc::Rc;

/// How much is asked of a receiving socket at once when units are smaller.
const READ_BYTES: u64 = 128 << 10;
/// How much at most.
const READ_BYTES_MOST: u64 = 1 << 20;
/// Bytes a connection begins with, in the live world its token.
const INTRODUCTION: u64 = 16;
/// How long a peer may take to answer the first time, and later (Linux gives up after six SYNs).
const PATIENCE: Duration = Duration(5_000_000_000);
const PATIENCE_LATER: Duration = Duration(127_000_000_000);

/// An open stream.
#[derive(Debug)]
pub(crate) struct Stream {
    end: StreamEnd,
    desk: Rc<Desk>,
    /// Bytes taken from the socket that belong to later data units.
    ahead: u64,
    ended: bool,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.end.abandon(&self.desk.world);
    }
}

impl Stream {
    fn new(end: StreamEnd, desk: &Rc<Desk>) -> Self {
        desk.trace_streams();
        Self { end, desk: Rc::clone(desk), ahead: 0, ended: false }
    }

    pub(super) async fn connect(pair: &impl Streams, desk: &Rc<Desk>) -> Result<Self> {
        let introduces = pair.introductions().of_next_dialled();
        let mut stream = Self::new(pair.dial(&desk.world)?, desk);
        let patience = if introduces { PATIENCE } else { PATIENCE_LATER };
        stream.established(desk.now() + patience).await?;
        if introduces {
            stream.put(INTRODUCTION).await?;
        }
        Ok(stream)
    }

    async fn established(&self, until: Instant) -> Result<()> {
        let answered = || self.end.answered();
        match self.desk.until_or("its connection to be answered", until, answered).await? {
            Some(true) => Ok(()),
            Some(false) => Err(unreachable("was refused").into()),
            None => Err(unreachable("was not answered").into()),
        }
    }

    pub(super) async fn accept(pair: &impl Streams, desk: &Rc<Desk>) -> Result<Self> {
        let introductions = pair.introductions();
        let introduces = introductions.of_next_accepted();
        let end = desk.until("a connection", || pair.accept()).await?;
        let mut stream = Self::new(end, desk);
        if introduces && !stream.take_exactly(INTRODUCTION).await? {
            return Err(vanished("before it had introduced itself"));
        }
        introductions.accepted.set(true);
        Ok(stream)
    }

    fn world(&self) -> &World {
        &self.desk.world
    }

    /// Puts bytes into the stream; waits for room.
    async fn put(&mut self, bytes: u64) -> Result<()> {
        let mut left = bytes as usize;
        let (end, world) = (&self.end, &self.desk.world);
        let step = || match end.send(left, world) {
            Some(n) => {
                left -= n;
                (left == 0).then_some(true)
            }
            None => Some(false),
        };
        let sent = self.desk.until("room in its send buffer", step).await?;
        self.desk.trace_moved(bytes, 0);
        if sent { Ok(()) } else { Err(vanished("while data was on its way")) }
    }

    /// Takes what is there, at most `most` bytes; 0 at the end of the stream.
    async fn take(&self, most: u64, what: &'static str) -> Result<u64> {
        let (end, world) = (&self.end, &self.desk.world);
        let step = || match end.receive(most.min(READ_BYTES_MOST) as usize, world) {
            Got::Nothing => None,
            got => Some(got),
        };
        match self.desk.until(what, step).await? {
            Got::Bytes(n) => Ok(n as u64),
            Got::Broken => Err(vanished("while data was on its way")),
            Got::Nothing | Got::End => Ok(0),
        }
    }

    async fn take_exactly(&mut self, bytes: u64) -> Result<bool> {
        let mut have = 0;
        while have < bytes {
            let got = self.take(bytes - have, "the introduction").await?;
            if got == 0 {
                return Ok(false);
            }
            have += got;
        }
        self.desk.trace_moved(0, bytes);
        Ok(true)
    }

    /// A single byte that is no data.
    async fn expect_byte(&mut self, what: &'static str) -> Result<bool> {
        self.desk.trace_moved(0, 1);
        if self.ahead > 0 {
            // It was taken with the data units before it.
            self.ahead -= 1;
            return Ok(true);
        }
        let got = self.take(1, what).await?;
        self.ended |= got == 0;
        Ok(got == 1)
    }

    /// Sends so many units; replies too, one at a time.
    pub(super) async fn send(&mut self, bytes: u64, times: u64, what: Leaving) -> Result<u64> {
        for done in 0..times {
            if times > 1 && self.desk.job.flags.limit() {
                return Ok(done);
            }
            self.desk.trace_leaves(what, bytes);
            self.put(bytes).await?;
            self.desk.trace_left(what, bytes);
        }
        Ok(times)
    }

    /// Takes so many units; calls and responses too, one at a time.
    pub(super) async fn receive(&mut self, bytes: u64, times: u64, what: Coming) -> Result<u64> {
        let wanted = bytes.saturating_mul(times);
        let at_once = bytes.max(READ_BYTES);
        let mut have = mem::take(&mut self.ahead);
        let mut coming = Units::new(&self.desk, bytes, times, what);
        while have < wanted {
            coming.are(have.min(wanted));
            let got = self.take(at_once, "data units").await?;
            if got == 0 {
                self.ended = true;
                let whole = have / bytes;
                return if have.is_multiple_of(bytes) { Ok(whole) } else { Err(vanished("inside a data unit")) };
            }
            have += got;
        }
        coming.are(wanted);
        self.ahead = have - wanted;
        Ok(times)
    }

    pub(super) async fn call(&mut self, request: u64, response: u64) -> Result<bool> {
        self.desk.trace_leaves(Leaving::Call, request);
        self.put(request).await?;
        if self.receive(response, 1, Coming::Response).await? == 1 {
            Ok(true)
        } else {
            Err(vanished("before the response came"))
        }
    }

    pub(super) async fn start_bulk(&mut self) -> Result<()> {
        self.put(1).await
    }

    pub(super) async fn await_start_bulk(&mut self) -> Result<bool> {
        Ok(!self.ended && self.expect_byte("a bulk transfer to start").await?)
    }

    pub(super) async fn stop_bulk(&mut self, way: Bulk) -> Result<()> {
        if way == Bulk::Put {
            self.end.push(self.world());
            if !self.expect_byte("the peer to confirm that everything has arrived").await? {
                return Err(vanished("before it confirmed that everything had arrived"));
            }
        }
        Ok(())
    }

    pub(super) async fn await_stop_bulk(&mut self, way: Bulk) -> Result<()> {
        match way {
            Bulk::Get => {
                self.end.push(self.world());
                Ok(())
            }
            Bulk::Put => self.put(1).await,
        }
    }

    pub(super) fn end_stream(&self) {
        self.end.close(self.world());
    }

    pub(super) async fn await_disconnect(&mut self) -> Result<()> {
        if self.ended {
            return Ok(());
        }
        let left = || Error::measurement("the peer sent data after the last data unit");
        if self.ahead > 0 {
            return Err(left().into());
        }
        let (end, world) = (&self.end, &self.desk.world);
        let step = || match end.receive(1, world) {
            Got::Nothing => None,
            got => Some(got),
        };
        match self.desk.until("the peer to disconnect", step).await? {
            Got::Bytes(_) => Err(left().into()),
            _ => Ok(()),
        }
    }

    pub(super) fn transport(&self) -> Transport {
        self.end.transport(self.desk.now())
    }

    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        self.end.settings(self.desk.now())
    }
}

fn unreachable(what: &str) -> Error {
    Error::measurement(format!("a connection {what}"))
        .hint("the network loses every packet, or takes seconds for a round trip")
}
