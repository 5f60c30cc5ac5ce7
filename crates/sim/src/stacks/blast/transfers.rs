//! The communication operations over a connection: what is sent is waited for until the peer has all of it, what arrives is
//! taken out of the stream.

use super::super::Bulk;
use super::super::end::Got;
use super::{BlastPair, End};
use crate::error::{Error, Result, vanished};
use crate::trace::{Coming, Leaving, Units};
use crate::world::{Desk, World};
use stackline_core::record::Transport;
use std::collections::BTreeMap;
use std::rc::Rc;

/// An open connection.
#[derive(Debug)]
pub(crate) struct Transfers {
    pair: Rc<BlastPair>,
    end: Rc<End>,
    desk: Rc<Desk>,
}

impl Drop for Transfers {
    fn drop(&mut self) {
        self.end.abandon(&self.desk.world);
    }
}

impl Transfers {
    fn new(pair: &Rc<BlastPair>, end: Rc<End>, desk: &Rc<Desk>) -> Self {
        desk.trace_streams();
        Self { pair: Rc::clone(pair), end, desk: Rc::clone(desk) }
    }

    /// Asks for a connection until it is accepted.
    pub(in crate::stacks) async fn connect(pair: &Rc<BlastPair>, desk: &Rc<Desk>) -> Result<Self> {
        let connection = Self::new(pair, pair.dial(&desk.world), desk);
        match desk.until("its connection to be answered", || connection.end.answered()).await? {
            true => Ok(connection),
            false => Err(connection.lost("before it was open")),
        }
    }

    /// Waits for one.
    pub(in crate::stacks) async fn accept(pair: &Rc<BlastPair>, desk: &Rc<Desk>) -> Result<Self> {
        let end = desk.until("a connection", || pair.accept()).await?;
        Ok(Self::new(pair, end, desk))
    }

    fn world(&self) -> &World {
        &self.desk.world
    }

    /// Why it goes no further.
    fn lost(&self, when: &str) -> Error {
        self.end.broken().map_or_else(|| vanished(when), |error| error)
    }

    /// Waits until the peer has everything.
    async fn acknowledged(&self) -> Result<()> {
        match self.desk.until("its data to be acknowledged", || self.end.is_sent()).await? {
            true => Ok(()),
            false => Err(self.lost("while data was on its way")),
        }
    }

    /// Takes at most `most` bytes; 0 at the end of the stream.
    async fn take(&self, most: u64, what: &'static str) -> Result<u64> {
        let step = || match self.end.take(most, self.world()) {
            Got::Nothing => None,
            got => Some(got),
        };
        match self.desk.until(what, step).await? {
            Got::Bytes(n) => Ok(n as u64),
            Got::Broken => Err(self.lost("while data was on its way")),
            Got::Nothing | Got::End => Ok(0),
        }
    }

    pub(in crate::stacks) async fn send(&self, bytes: u64, times: u64) -> Result<u64> {
        self.end.begin(bytes, times, self.world());
        let mut left = 0;
        let sent = || {
            if times > 1 && self.desk.job.flags.limit() {
                left += self.end.stop_short();
            }
            self.end.is_sent()
        };
        let done = self.desk.until("its data to be acknowledged", sent).await;
        let units = self.desk.trace_handed(&self.end.handed(), bytes);
        match done? {
            true => {
                self.desk.trace_all_left(&units, bytes);
                Ok(times - left)
            }
            false => Err(self.lost("while data was on its way")),
        }
    }

    pub(in crate::stacks) async fn receive(&self, bytes: u64, times: u64, what: Coming) -> Result<u64> {
        let wanted = bytes.saturating_mul(times);
        let mut have = 0;
        let mut coming = Units::new(&self.desk, bytes, times, what);
        while have < wanted {
            coming.are(have);
            let got = self.take(wanted - have, "data units").await?;
            if got == 0 {
                return if have.is_multiple_of(bytes) { Ok(have / bytes) } else { Err(vanished("inside a data unit")) };
            }
            have += got;
        }
        coming.are(have);
        Ok(times)
    }

    pub(in crate::stacks) async fn call(&self, request: u64, response: u64) -> Result<bool> {
        self.desk.trace_leaves(Leaving::Call, request);
        self.hand_over(request);
        if self.receive(response, 1, Coming::Response).await? == 1 {
            Ok(true)
        } else {
            Err(vanished("before the response came"))
        }
    }

    pub(in crate::stacks) fn reply(&self, bytes: u64) {
        self.desk.trace_leaves(Leaving::Reply, bytes);
        self.hand_over(bytes);
        self.desk.trace_left(Leaving::Reply, bytes);
    }

    fn hand_over(&self, bytes: u64) {
        self.end.hand_over(bytes, self.world());
        self.desk.trace_moved(bytes, 0);
    }

    pub(in crate::stacks) fn start_bulk(&self, way: Bulk) {
        if way == Bulk::Get {
            self.hand_over(1);
        }
    }

    pub(in crate::stacks) async fn await_start_bulk(&self, way: Bulk) -> Result<bool> {
        let what = "a bulk transfer to start";
        match way {
            Bulk::Get => {
                let got = self.take(1, what).await?;
                self.desk.trace_moved(0, got);
                Ok(got == 1)
            }
            Bulk::Put => self.desk.until(what, || self.end.has_come()).await,
        }
    }

    pub(in crate::stacks) async fn end_stream(&self) -> Result<()> {
        self.end.finish(self.world());
        if self.end.is_closed() { Ok(()) } else { self.acknowledged().await }
    }

    pub(in crate::stacks) async fn disconnect(self) -> Result<()> {
        self.end.close(self.world());
        self.closed().await
    }

    pub(in crate::stacks) async fn await_disconnect(&self) -> Result<()> {
        self.closed().await?;
        match self.end.has_come() {
            Some(true) => Err(Error::measurement("the peer sent data after the last data unit").into()),
            _ => Ok(()),
        }
    }

    async fn closed(&self) -> Result<()> {
        self.desk.until("the connection to be closed", || self.end.is_closed().then_some(())).await?;
        self.end.broken().map_or(Ok(()), |failure| Err(failure.into()))
    }

    pub(in crate::stacks) fn transport(&self) -> Transport {
        self.end.transport(self.world().now())
    }

    pub(in crate::stacks) fn settings(&self) -> BTreeMap<String, String> {
        self.pair.settings(&self.end.options())
    }
}
