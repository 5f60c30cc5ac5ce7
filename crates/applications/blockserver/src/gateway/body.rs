//! The bodies of answers: a block, a range of blocks in order, or a list of blocks as they come. Blocks are requested a little ahead of
//! what the client takes, so a slow client holds a bounded number of them, and one that goes wants no more.

use super::block_requests::{
    GatewayBlock, GatewayBlockFailure, GatewayBlockOutcome, GatewayBlockWaiter, GatewayListEvent,
};
use super::fault::GatewayFault;
use super::limits;
use super::session::GatewayOpenSet;
use super::viewers::Viewers;
use bytes::{BufMut, Bytes, BytesMut};
use hyper::body::{Frame, SizeHint};
use stackline_blocks::wire::message::Why;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tokio::sync::{mpsc, oneshot};

/// The number in the record that ends a list; no list may request a block of that number.
pub(super) const END: u64 = u64::MAX;

/// The body of an answer.
pub(super) enum GatewayBody {
    /// All bytes at once; empty after they are taken.
    Whole(Bytes),
    /// A range of a set.
    Range(Box<GatewayRangeBody>),
    /// A list of blocks.
    List(Box<GatewayListBody>),
}

impl hyper::body::Body for GatewayBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let bytes = match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => None,
            Self::Whole(bytes) => Some(Ok(std::mem::take(bytes))),
            Self::Range(range) => ready!(range.poll(context)),
            Self::List(list) => ready!(list.poll(context)).map(Ok),
        };
        Poll::Ready(bytes.map(|bytes| bytes.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Range(range) => range.left == 0,
            Self::List(list) => list.ended,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Range(range) => SizeHint::with_exact(range.left),
            Self::List(_) => SizeHint::default(),
        }
    }
}

/// A range of the bytes of a set.
pub(super) struct GatewayRangeBody {
    open: GatewayOpenSet,
    /// The next block to request.
    next: u64,
    /// The block after the last one.
    end: u64,
    waiting: VecDeque<(u64, oneshot::Receiver<GatewayBlockOutcome>)>,
    ready: VecDeque<Bytes>,
    /// Bytes of the next block before the range begins.
    skip: u64,
    /// Bytes of the range that are still to be sent.
    left: u64,
}

/// The blocks that were awaited before an answer began: their number, and the time of the slowest in ns.
pub(super) struct Waited {
    pub(super) blocks: u64,
    pub(super) slowest: u64,
}

impl GatewayRangeBody {
    /// Requests the first blocks of a range. Both ends are included and lie within the set.
    pub(super) fn begin(open: &GatewayOpenSet, first: u64, last: u64) -> Self {
        let size = u64::from(open.set.about.block_size);
        let (next, end) = (first / size, last / size + 1);
        let (waiting, ready) = (VecDeque::new(), VecDeque::new());
        let (skip, left) = (first % size, last - first + 1);
        let mut range = Self {
            open: open.clone(),
            next,
            end,
            waiting,
            ready,
            skip,
            left,
        };
        range.ask();
        range
    }

    fn ask(&mut self) {
        let set = &self.open.set;
        let (ahead, have) = (
            limits::count_blocks_ahead(set.about.block_size),
            self.waiting.len() + self.ready.len(),
        );
        // Requests go out in halves of the window: a list costs the master and the servers more than a block in it.
        if have > ahead / 2 || self.next == self.end {
            return;
        }
        let last = self.end.min(self.next + (ahead - have) as u64);
        let waiting = &mut self.waiting;
        let blocks = (self.next..last).map(|number| {
            let (to, from) = oneshot::channel();
            waiting.push_back((number, from));
            (
                number,
                set.about.length(number),
                GatewayBlockWaiter::One(to),
            )
        });
        self.open.session.desk().want(set.id, blocks);
        self.next = last;
    }

    /// Waits for the blocks that were requested first: when they have come, the answer is a success.
    pub(super) async fn first(
        &mut self,
        entered: u64,
    ) -> Result<Waited, (u64, GatewayBlockFailure)> {
        let mut waited = Waited {
            blocks: 0,
            slowest: 0,
        };
        while let Some((number, from)) = self.waiting.pop_front() {
            let gone = |_| {
                Err(GatewayBlockFailure::Words(
                    "the gateway is shutting down".into(),
                ))
            };
            let came = from
                .await
                .unwrap_or_else(gone)
                .map_err(|failure| (number, failure))?;
            waited.blocks += 1;
            waited.slowest = waited.slowest.max(came.at.saturating_sub(entered));
            self.ready.push_back(came.data);
        }
        Ok(waited)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        if self.ready.is_empty()
            && let Some((number, from)) = self.waiting.front_mut()
        {
            let number = *number;
            let outcome = ready!(Pin::new(from).poll(context));
            self.waiting.pop_front();
            match outcome {
                Ok(Ok(came)) => self.ready.push_back(came.data),
                Ok(Err(failure)) => {
                    let fault = GatewayFault::of_block(&self.open.set.about.name, number, &failure);
                    return Poll::Ready(Some(Err(io::Error::other(fault.words))));
                }
                Err(_) => {
                    return Poll::Ready(Some(Err(io::Error::other(
                        "the gateway is shutting down",
                    ))));
                }
            }
        }
        let Some(mut data) = self.ready.pop_front() else {
            return Poll::Ready(Some(Err(io::Error::other("a range ends too early"))));
        };
        // Only after a block has left the window is there room for more.
        self.ask();
        // Only the first block has bytes before the range: afterwards this is 0.
        let skip = std::mem::take(&mut self.skip).min(data.len() as u64);
        let count = (data.len() as u64 - skip).min(self.left);
        self.left -= count;
        data = data.slice(skip as usize..(skip + count) as usize);
        Poll::Ready(Some(Ok(data)))
    }
}

/// The viewer that a list belongs to: a newer list of the same viewer and set ends it.
pub(super) struct GatewayListViewer {
    pub(super) viewers: Arc<Viewers>,
    pub(super) name: String,
}

/// A list of blocks as they come. Each is preceded by 16 bytes in network byte order: its number (8), a status (4), the number of bytes
/// that follow (4). Status 200: the block follows; other statuses are HTTP's, and words follow. The last record has the number 2^64-1:
/// status 200 if every block was answered, 409 if a newer list superseded this one.
pub(super) struct GatewayListBody {
    open: GatewayOpenSet,
    rest: VecDeque<u64>,
    outstanding: usize,
    to: mpsc::UnboundedSender<GatewayListEvent>,
    from: mpsc::UnboundedReceiver<GatewayListEvent>,
    over: Arc<AtomicBool>,
    viewer: Option<GatewayListViewer>,
    /// The bytes that follow the record's head that was sent last.
    data: Bytes,
    ended: bool,
}

impl GatewayListBody {
    /// Requests the first blocks of a list, whose most important blocks come first.
    pub(super) fn begin(
        open: &GatewayOpenSet,
        numbers: Vec<u64>,
        viewer: Option<GatewayListViewer>,
    ) -> Self {
        let (to, from) = mpsc::unbounded_channel();
        let over = Arc::new(AtomicBool::new(false));
        if let Some(GatewayListViewer { viewers, name }) = &viewer {
            viewers.begin(&open.set.about.name, name, &over, &to);
        }
        let (rest, data) = (numbers.into(), Bytes::new());
        Self {
            open: open.clone(),
            rest,
            outstanding: 0,
            to,
            from,
            over,
            viewer,
            data,
            ended: false,
        }
    }

    fn ask(&mut self) {
        let set = &self.open.set;
        let ahead = limits::count_blocks_ahead(set.about.block_size);
        if self.outstanding > ahead / 2 || self.rest.is_empty() {
            return;
        }
        let count = self.rest.len().min(ahead - self.outstanding);
        // A block that the set does not have counts as well: its event takes it off again.
        self.outstanding += count;
        let (to, over) = (&self.to, &self.over);
        let blocks = self.rest.drain(..count).filter_map(|number| {
            let length = set.about.length(number);
            if length == 0 {
                let _ = to.send(GatewayListEvent::Block(
                    number,
                    Err(GatewayBlockFailure::Why(Why::NoBlock)),
                ));
                return None;
            }
            Some((
                number,
                length,
                GatewayBlockWaiter::Among(to.clone(), Arc::clone(over)),
            ))
        });
        self.open.session.desk().want(set.id, blocks);
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.ended {
            return Poll::Ready(None);
        }
        if !self.data.is_empty() {
            return Poll::Ready(Some(std::mem::take(&mut self.data)));
        }
        loop {
            if self.over.load(Ordering::SeqCst) {
                return Poll::Ready(Some(self.end(409)));
            }
            self.ask();
            if self.outstanding == 0 {
                return Poll::Ready(Some(self.end(200)));
            }
            // The body itself holds a sender, so the channel does not end.
            let Some(event) = ready!(self.from.poll_recv(context)) else {
                return Poll::Ready(None);
            };
            if let GatewayListEvent::Block(number, outcome) = event {
                self.outstanding -= 1;
                return Poll::Ready(Some(self.record(number, outcome)));
            }
        }
    }

    fn record(&mut self, number: u64, outcome: GatewayBlockOutcome) -> Bytes {
        let status = match outcome {
            Ok(GatewayBlock { data, .. }) => {
                self.data = data;
                200
            }
            Err(failure) => {
                let fault = GatewayFault::of_block(&self.open.set.about.name, number, &failure);
                self.data = fault.words.into();
                fault.status.as_u16()
            }
        };
        record(number, status, self.data.len())
    }

    fn end(&mut self, status: u16) -> Bytes {
        self.ended = true;
        record(END, status, 0)
    }
}

impl Drop for GatewayListBody {
    fn drop(&mut self) {
        if let Some(GatewayListViewer { viewers, name }) = &self.viewer {
            viewers.end(&self.open.set.about.name, name, &self.over);
        }
    }
}

fn record(number: u64, status: u16, length: usize) -> Bytes {
    let mut head = BytesMut::with_capacity(16);
    head.put_u64(number);
    head.put_u32(status.into());
    head.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    head.freeze()
}
