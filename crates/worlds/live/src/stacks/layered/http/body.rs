//! Bodies of requests and responses: data units that go out as hyper takes them, and data units that come in.

use super::driver::HttpDriver;
use super::grpc::{self, GrpcMessages};
use crate::buffers::LiveThreadBuffers;
use crate::error::{self, Error, Result};
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A body that is sent.
pub(crate) struct OutgoingBody(Arc<Mutex<OutgoingUnits>>);

/// The largest piece of a body whose way is watched, in bytes: a frame of HTTP/2, of which the library takes no more than windows let out.
const WATCHED_PIECE: usize = 16 << 10;

/// What of a body is to be sent.
#[derive(Default)]
struct OutgoingUnits {
    pieces: VecDeque<Bytes>,
    trailers: Option<HeaderMap>,
    /// Whether nothing is added any more.
    ended: bool,
    waker: Option<Waker>,
    /// Who waits until the library asks for more, where the library runs beside it.
    taken: Option<Waker>,
    /// Whether the library has left the body.
    is_left: bool,
}

impl OutgoingUnits {
    fn is_over(&self) -> bool {
        self.ended && self.pieces.is_empty() && self.trailers.is_none()
    }
}

impl OutgoingBody {
    /// A body that is known as a whole.
    pub(crate) fn whole(pieces: Vec<Bytes>, trailers: Option<HeaderMap>) -> Self {
        Self(Arc::new(Mutex::new(OutgoingUnits {
            pieces: pieces.into(),
            trailers,
            ended: true,
            ..OutgoingUnits::default()
        })))
    }

    /// A data unit as a body, and what becomes of it.
    pub(crate) fn watched(unit: &Bytes) -> (Self, SentBody) {
        let starts = (0..unit.len()).step_by(WATCHED_PIECE);
        let pieces = starts.map(|at| unit.slice(at..unit.len().min(at + WATCHED_PIECE)));
        let body = Self::whole(pieces.collect(), None);
        let sent = body.watch();
        (body, sent)
    }

    /// What becomes of the body.
    pub(super) fn watch(&self) -> SentBody {
        SentBody(Arc::clone(&self.0))
    }

    /// A body whose units are pushed one after the other.
    pub(crate) fn streamed() -> (Self, BodySender) {
        let units = Arc::<Mutex<OutgoingUnits>>::default();
        (Self(Arc::clone(&units)), BodySender(units))
    }
}

impl Drop for OutgoingBody {
    fn drop(&mut self) {
        let mut units = locked(&self.0);
        units.is_left = true;
        if let Some(taken) = units.taken.take() {
            taken.wake();
        }
    }
}

fn locked(units: &Mutex<OutgoingUnits>) -> MutexGuard<'_, OutgoingUnits> {
    units.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut units = locked(&self.0);
        if let Some(piece) = units.pieces.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        if !units.ended {
            units.waker = Some(context.waker().clone());
            if let Some(taken) = units.taken.take() {
                taken.wake();
            }
            return Poll::Pending;
        }
        Poll::Ready(units.trailers.take().map(|t| Ok(Frame::trailers(t))))
    }

    fn is_end_stream(&self) -> bool {
        locked(&self.0).is_over()
    }

    fn size_hint(&self) -> SizeHint {
        let units = locked(&self.0);
        if units.ended {
            SizeHint::with_exact(units.pieces.iter().map(|piece| piece.len() as u64).sum())
        } else {
            SizeHint::default()
        }
    }
}

/// A body that was known as a whole, on its way.
pub(crate) struct SentBody(Arc<Mutex<OutgoingUnits>>);

impl SentBody {
    /// Whether the library has taken all of it.
    pub(super) fn is_taken(&self) -> bool {
        locked(&self.0).is_over()
    }

    /// Waits until the library has let go of the body. Returns whether all of it went out: a server can end a request without reading it
    /// (RFC 9113, 8.1).
    pub(crate) fn is_whole(&self, driver: &mut HttpDriver) -> Result<bool> {
        driver.until(|context| {
            let mut units = locked(&self.0);
            if units.is_over() || units.is_left {
                return Poll::Ready(units.is_over());
            }
            units.taken = Some(context.waker().clone());
            Poll::Pending
        })
    }
}

/// The end of a streamed body that units are pushed into.
pub(crate) struct BodySender(Arc<Mutex<OutgoingUnits>>);

impl BodySender {
    /// Sends a data unit: returns when windows and socket have taken it. The library asks for more only when there is room behind it.
    pub(crate) fn send(&self, pieces: Vec<Bytes>, driver: &mut HttpDriver) -> Result<()> {
        self.push(pieces);
        let is_shared = driver.is_shared();
        driver.until(|context| self.poll_taken(is_shared.then_some(context)))?;
        driver.flush()
    }

    /// As `send`, unless `answer` is ready before: then returns that.
    pub(crate) fn send_unless<F: Future + ?Sized>(
        &self,
        pieces: Vec<Bytes>,
        mut answer: Pin<&mut F>,
        driver: &mut HttpDriver,
    ) -> Result<Option<F::Output>> {
        self.push(pieces);
        let is_shared = driver.is_shared();
        let early = driver.until(|context| match answer.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending => self.poll_taken(is_shared.then_some(context)).map(|()| None),
        })?;
        if early.is_none() {
            driver.flush()?;
        }
        Ok(early)
    }

    fn push(&self, pieces: Vec<Bytes>) {
        let mut units = locked(&self.0);
        units.pieces.extend(pieces);
        if let Some(waker) = units.waker.take() {
            waker.wake();
        }
    }

    /// Whether everything is taken; `context` is woken when it may be.
    fn poll_taken(&self, context: Option<&mut Context<'_>>) -> Poll<()> {
        let mut units = locked(&self.0);
        if units.pieces.is_empty() && units.waker.is_some() {
            return Poll::Ready(());
        }
        units.taken = context.map(|context| context.waker().clone());
        Poll::Pending
    }

    /// Ends the body.
    pub(crate) fn end(self, trailers: Option<HeaderMap>, driver: &mut HttpDriver) -> Result<()> {
        let mut units = locked(&self.0);
        units.ended = true;
        units.trailers = trailers;
        if let Some(waker) = units.waker.take() {
            waker.wake();
        }
        drop(units);
        driver.flush()
    }
}

/// A body that is received.
pub(crate) struct IncomingBody {
    body: Incoming,
    /// Takes the units out of gRPC's messages.
    messages: Option<GrpcMessages>,
    /// How many bytes were received that belong to later units.
    ahead: u64,
    ended: bool,
    trailers: Option<HeaderMap>,
}

impl IncomingBody {
    /// `ahead` bytes of data units came in an exchange before this one.
    pub(crate) fn new(body: Incoming, is_grpc: bool, ahead: u64) -> Self {
        Self {
            body,
            messages: is_grpc.then(GrpcMessages::default),
            ahead,
            ended: false,
            trailers: None,
        }
    }

    /// Receives data units of `bytes` bytes, `times` times. Returns how many came before the body ended.
    pub(crate) fn units(
        &mut self,
        bytes: usize,
        times: u64,
        driver: &mut HttpDriver,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<u64> {
        let wanted = (bytes as u64).saturating_mul(times);
        while self.ahead < wanted && !self.ended {
            self.more(driver, buffers)?;
        }
        if self.ahead >= wanted {
            self.ahead -= wanted;
            return Ok(times);
        }
        let rest = std::mem::take(&mut self.ahead);
        if rest.is_multiple_of(bytes as u64) {
            Ok(rest / bytes as u64)
        } else {
            Err(Error::measurement(format!(
                "the body ended in the middle of a data unit: {rest} of {bytes} B had come"
            )))
        }
    }

    /// Receives the end of the body, and with gRPC the status. Returns how many bytes came before that belong to no unit.
    pub(crate) fn end(
        &mut self,
        driver: &mut HttpDriver,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<u64> {
        while !self.ended {
            self.more(driver, buffers)?;
        }
        Ok(std::mem::take(&mut self.ahead))
    }

    /// What follows the body, once it has ended.
    pub(crate) const fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_ref()
    }

    /// The status that a server of gRPC sends behind its answer.
    pub(crate) fn check_status(&self) -> Result<()> {
        match (&self.messages, &self.trailers) {
            (Some(_), trailers) => grpc::check_status(trailers.as_ref()),
            (None, _) => Ok(()),
        }
    }

    /// Receives some more. Returns how many bytes came, none at the end of the body.
    pub(crate) fn receive(
        &mut self,
        driver: &mut HttpDriver,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<Option<u64>> {
        while self.ahead == 0 && !self.ended {
            self.more(driver, buffers)?;
        }
        Ok(Some(std::mem::take(&mut self.ahead)).filter(|came| *came > 0))
    }

    fn more(&mut self, driver: &mut HttpDriver, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let body = &mut self.body;
        let frame = driver.until(|context| Pin::new(&mut *body).poll_frame(context))?;
        let Some(frame) = frame else {
            self.ended = true;
            return Ok(());
        };
        let frame = frame.map_err(|e| driver.failure(&e))?;
        match frame.into_data() {
            Ok(data) => {
                let mut stored = Ok(());
                let mut store = |unit: &[u8]| {
                    self.ahead += unit.len() as u64;
                    if stored.is_ok() {
                        stored = buffers.store(unit);
                    }
                };
                match &mut self.messages {
                    None => store(&data),
                    Some(messages) => messages.take_units(&data, store)?,
                }
                stored.map_err(|e| error::io_error("writing the destination", &e))
            }
            Err(frame) => {
                self.trailers = frame.into_trailers().ok();
                Ok(())
            }
        }
    }
}
