//! A connection that is closed when its client takes nothing for too long.

use super::memory_limit::GatewayClient;
use stackline_guard::connection_slots::ConnectionSlot;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

/// A connection with a limit on stalled writes.
pub(super) struct Patient {
    stream: TcpStream,
    patience: Duration,
    /// The timer that runs while a write waits.
    stalled: Option<Pin<Box<Sleep>>>,
    client: GatewayClient,
    place: Arc<Mutex<ConnectionSlot>>,
    /// When activity was last noted for its slot.
    touched: Instant,
}

/// The shortest time between two notes of activity.
const TOUCH: Duration = Duration::from_millis(10);

impl Patient {
    pub(super) fn new(
        stream: TcpStream,
        patience: Duration,
        client: GatewayClient,
        place: Arc<Mutex<ConnectionSlot>>,
    ) -> Self {
        Self {
            stream,
            patience,
            stalled: None,
            client,
            place,
            touched: Instant::now(),
        }
    }

    /// Notes that bytes have passed.
    fn passes(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.touched) >= TOUCH {
            self.touched = now;
            self.place
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .touch();
        }
    }

    fn watched(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.passes();
            if self.stalled.take().is_some() {
                self.client.moves();
            }
            return written;
        }
        self.client.stalls();
        let until = Instant::now() + self.patience;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        match stalled.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the client is not reading",
            ))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let read = Pin::new(&mut this.stream).poll_read(context, to);
        if read.is_ready() {
            this.passes();
        }
        read
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.watched(context, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, parts);
        this.watched(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
