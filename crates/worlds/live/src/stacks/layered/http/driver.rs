//! Drives the futures of an HTTP library on the thread of an endpoint: polls them until none can go on, then waits in `poll(2)` for the
//! socket. There is no executor of threads and no queue between an operation and its system call.

use crate::error::{self, Error, Result};
use crate::stacks::contract::connection_vanished;
use crate::stacks::layered::socket::SharedSocket;
use crate::stacks::layered::wire::LayeredWire;
use hyper::rt::Executor;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::error::Error as _;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Whether a future has asked to be polled again.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The futures of one connection.
pub(super) struct HttpDriver {
    shared: Arc<SharedSocket>,
    tasks: Vec<Task>,
    spawned: Spawned,
    woken: Arc<Woken>,
    waker: Waker,
    /// Why the connection has failed, if it has.
    fault: Arc<Mutex<Option<hyper::Error>>>,
}

/// Takes the futures that a library spawns.
#[derive(Clone, Default)]
pub(super) struct Spawned(Arc<Mutex<Vec<Task>>>);

impl Spawned {
    fn take(&self) -> Vec<Task> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<F> Executor<F> for Spawned
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        let mut spawned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        spawned.push(Box::pin(future));
    }
}

impl HttpDriver {
    /// For the connection over that socket, which does not block from now on.
    pub(super) fn new(shared: &Arc<SharedSocket>) -> Result<Self> {
        shared
            .socket
            .set_nonblocking(true)
            .map_err(|e| error::io_error("O_NONBLOCK", &e))?;
        let woken = Arc::<Woken>::default();
        Ok(Self {
            shared: Arc::clone(shared),
            tasks: Vec::new(),
            spawned: Spawned::default(),
            waker: Waker::from(Arc::clone(&woken)),
            woken,
            fault: Arc::default(),
        })
    }

    pub(super) const fn shared(&self) -> &Arc<SharedSocket> {
        &self.shared
    }

    /// What the library spawns its futures on.
    pub(super) fn executor(&self) -> Spawned {
        self.spawned.clone()
    }

    /// Adds the future of the connection itself.
    pub(super) fn adopt<F>(&mut self, connection: F)
    where
        F: Future<Output = hyper::Result<()>> + Send + 'static,
    {
        let fault = Arc::clone(&self.fault);
        self.tasks.push(Box::pin(async move {
            if let Err(error) = connection.await {
                let mut fault = fault.lock().unwrap_or_else(PoisonError::into_inner);
                fault.get_or_insert(error);
            }
        }));
    }

    /// Drives the connection until `wanted` is ready.
    ///
    /// # Errors
    /// When the connection has ended before, or the job was ended.
    pub(super) fn until<T>(
        &mut self,
        wanted: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<T> {
        match self.until_end(wanted)? {
            Some(value) => Ok(value),
            None => Err(self.end_of_connection()),
        }
    }

    /// Drives the connection until `wanted` is ready; `None` if the connection has ended before.
    ///
    /// # Errors
    /// When the job was ended.
    pub(super) fn until_end<T>(
        &mut self,
        mut wanted: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<Option<T>> {
        loop {
            let ended = self.turn();
            self.woken.0.store(false, Ordering::Relaxed);
            if let Poll::Ready(value) = wanted(&mut Context::from_waker(&self.waker)) {
                return Ok(Some(value));
            }
            if self.woken.0.load(Ordering::Relaxed) {
                continue;
            }
            if ended {
                return Ok(None);
            }
            self.wait()?;
        }
    }

    /// Waits for a future that precedes those of the connection.
    ///
    /// # Errors
    /// When the job was ended.
    pub(super) fn until_alone<T>(
        &self,
        mut wanted: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<T> {
        loop {
            self.woken.0.store(false, Ordering::Relaxed);
            if let Poll::Ready(value) = wanted(&mut Context::from_waker(&self.waker)) {
                return Ok(value);
            }
            if !self.woken.0.load(Ordering::Relaxed) {
                self.wait()?;
            }
        }
    }

    /// Drives the connection until everything that can be sent is sent.
    pub(super) fn flush(&mut self) -> Result<()> {
        while !self.turn() && self.shared.awaits_room.load(Ordering::Relaxed) {
            self.wait()?;
        }
        Ok(())
    }

    /// Polls all futures until none asks to be polled again. Returns whether all have ended.
    fn turn(&mut self) -> bool {
        loop {
            self.woken.0.store(false, Ordering::Relaxed);
            self.tasks.extend(self.spawned.take());
            let mut context = Context::from_waker(&self.waker);
            self.tasks
                .retain_mut(|task| task.as_mut().poll(&mut context).is_pending());
            let spawned = self.spawned.take();
            if spawned.is_empty() && !self.woken.0.load(Ordering::Relaxed) {
                return self.tasks.is_empty();
            }
            self.tasks.extend(spawned);
        }
    }

    /// Waits until the socket can do what it could not do when it was tried last.
    fn wait(&self) -> Result<()> {
        let SharedSocket {
            socket,
            awaits_input,
            awaits_room,
            flags,
        } = &*self.shared;
        let mut wanted = PollFlags::empty();
        wanted.set(PollFlags::POLLIN, awaits_input.load(Ordering::Relaxed));
        wanted.set(PollFlags::POLLOUT, awaits_room.load(Ordering::Relaxed));
        if wanted.is_empty() {
            return Err(Error::measurement(
                "the HTTP library waits for something other than its connection",
            ));
        }
        let mut watched = [PollFd::new(socket.as_fd(), wanted)];
        match poll(&mut watched, PollTimeout::NONE) {
            Ok(_) => {
                let came = watched[0].revents().unwrap_or(wanted);
                if came != PollFlags::POLLOUT {
                    awaits_input.store(false, Ordering::Relaxed);
                }
                if came != PollFlags::POLLIN {
                    awaits_room.store(false, Ordering::Relaxed);
                }
                Ok(())
            }
            Err(Errno::EINTR) => flags.interrupted(),
            Err(error) => Err(error::io_error("poll", &error.into())),
        }
    }

    fn end_of_connection(&self) -> Error {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        match &*fault {
            Some(error) => self.failure(error),
            None => connection_vanished("before the exchange had ended"),
        }
    }

    /// The error of the library.
    pub(super) fn failure(&self, error: &hyper::Error) -> Error {
        if self.shared.flags.ended() {
            return Error::interrupted();
        }
        let mut causes = Vec::new();
        let mut cause = error.source();
        while let Some(below) = cause {
            if let Some(error) = below.downcast_ref::<io::Error>() {
                return self.shared.failure("HTTP", error);
            }
            causes.push(format!(": {below}"));
            cause = below.source();
        }
        if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
            return connection_vanished("before the exchange had ended");
        }
        Error::measurement(format!("HTTP failed: {error}{}", causes.concat()))
    }
}

/// The wire as hyper reads and writes it.
pub(super) struct HttpWire(pub(super) LayeredWire);

fn poll_of<T>(done: io::Result<T>) -> Poll<io::Result<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
        done => Poll::Ready(done),
    }
}

impl AsyncRead for HttpWire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let got = self.0.read(room.initialize_unfilled());
        poll_of(got.map(|bytes| room.advance(bytes)))
    }
}

impl AsyncWrite for HttpWire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        poll_of(self.0.write(bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        poll_of(self.0.write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        poll_of(self.0.flush())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        poll_of(self.0.finish())
    }
}
