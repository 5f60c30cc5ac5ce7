//! Drives the futures of an HTTP library on the thread of an endpoint: polls them until none can go on, then waits in `poll(2)` for the
//! socket. There is no executor of threads and no queue between an operation and its system call.
//!
//! The futures of a connection that several pairs share run in a runtime of one thread, which is that of whoever waits.

use crate::cancel::LiveCancelFlags;
use crate::error::{self, Error, Result};
use crate::stacks::contract::connection_vanished;
use crate::stacks::endpoint_runtime::EndpointRuntime;
use crate::stacks::layered::socket::SharedSocket;
use crate::stacks::layered::wire::LayeredWire;
use crate::stacks::server_patience::ServerPatience;
use hyper::rt::Executor;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use stackline_events::scope;
use std::error::Error as _;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time;

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
pub(crate) struct HttpDriver {
    shared: Arc<SharedSocket>,
    tasks: Vec<Task>,
    spawned: Spawned,
    woken: Arc<Woken>,
    waker: Waker,
    /// What drives the futures instead, where several pairs share the connection.
    runtime: Option<SharedHttpRuntime>,
    /// How long to wait for a server of others; for an end of ours, as long as the job goes on.
    patience: Option<ServerPatience>,
    /// Why the connection has failed, if it has.
    fault: Arc<Mutex<Option<hyper::Error>>>,
}

/// What a server does that is waited for.
const fn silent() -> &'static str {
    "received everything and does not answer"
}

/// How often a pair that shares the connection with others looks whether it has waited for too long.
const SHARED_LOOK: Duration = Duration::from_millis(100);

/// How long the library may take, after the end of a connection, to say what became of its exchanges.
const AFTER_THE_END: Duration = Duration::from_millis(100);

/// The runtime of a connection that several pairs share, as one of them uses it.
#[derive(Clone)]
struct SharedHttpRuntime {
    runtime: EndpointRuntime,
    /// Those of the pair's job: another one may have opened the connection.
    flags: Arc<LiveCancelFlags>,
    /// Whether the connection has ended.
    ended: watch::Sender<bool>,
}

impl SharedHttpRuntime {
    /// Drives everything until `future` is ready, or a server was waited for too long.
    fn run<F: Future>(
        &self,
        shared: &SharedSocket,
        patience: Option<&ServerPatience>,
        future: F,
    ) -> Result<F::Output> {
        let flags = &*self.flags;
        let acknowledged = || shared.acknowledged();
        let Some(patience) = patience else {
            return self.runtime.run(flags, future);
        };
        patience.check_limit(flags, acknowledged)?;
        let check = |waited| {
            flags.interrupted()?;
            patience.check_limit(flags, acknowledged)?;
            patience.check_silence(waited, silent)
        };
        let look = patience.slice().min(SHARED_LOOK);
        self.runtime.run_checked(look, check, future)
    }

    /// Drives the connection until `wanted` is ready; `None` if it has ended before.
    fn until_end<T>(
        &self,
        shared: &SharedSocket,
        patience: Option<&ServerPatience>,
        mut wanted: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<Option<T>> {
        let mut ended = self.ended.subscribe();
        self.run(shared, patience, async move {
            let mut end = pin!(ended.wait_for(|ended| *ended));
            let ready = std::future::poll_fn(|context| match wanted(context) {
                Poll::Ready(value) => Poll::Ready(Some(value)),
                Poll::Pending => end.as_mut().poll(context).map(|_| None),
            });
            match ready.await {
                Some(value) => Some(value),
                // What became of an exchange is known a little after the end of its connection.
                None => time::timeout(AFTER_THE_END, std::future::poll_fn(wanted))
                    .await
                    .ok(),
            }
        })
    }
}

/// A connection that several pairs share, as each of them has it. It does not keep the runtime, in which futures may hold it.
#[derive(Clone)]
pub(super) struct SharedHttpHandle {
    shared: Arc<SharedSocket>,
    ended: watch::Sender<bool>,
    fault: Arc<Mutex<Option<hyper::Error>>>,
}

impl SharedHttpHandle {
    /// The driver of another pair, with the flags of its job.
    pub(super) fn driver(
        &self,
        runtime: &EndpointRuntime,
        flags: &Arc<LiveCancelFlags>,
    ) -> HttpDriver {
        HttpDriver {
            runtime: Some(SharedHttpRuntime {
                runtime: runtime.clone(),
                flags: Arc::clone(flags),
                ended: self.ended.clone(),
            }),
            fault: Arc::clone(&self.fault),
            ..HttpDriver::over(&self.shared)
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Ready when the connection has ended.
    pub(super) fn ended(&self) -> impl Future<Output = ()> + use<> {
        let mut ended = self.ended.subscribe();
        async move {
            // An error says that nobody is left who could end it.
            let _ = ended.wait_for(|ended| *ended).await;
        }
    }
}

/// Takes the futures that a library spawns.
#[derive(Clone)]
pub(crate) enum HttpExecutor {
    Own(Spawned),
    Shared(Handle),
}

impl<F> Executor<F> for HttpExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        match self {
            Self::Own(spawned) => spawned.add(Box::pin(future)),
            Self::Shared(runtime) => drop(runtime.spawn(future)),
        }
    }
}

/// Futures that a library has spawned.
#[derive(Clone, Default)]
pub(crate) struct Spawned(Arc<Mutex<Vec<Task>>>);

impl Spawned {
    fn take(&self) -> Vec<Task> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, task: Task) {
        let mut spawned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        spawned.push(task);
    }
}

impl HttpDriver {
    /// For the connection over that socket, which does not block from now on.
    pub(crate) fn new(shared: &Arc<SharedSocket>) -> Result<Self> {
        let driver = Self::without_blocking(shared)?;
        shared.is_waited_for.store(true, Ordering::Relaxed);
        Ok(driver)
    }

    fn without_blocking(shared: &Arc<SharedSocket>) -> Result<Self> {
        shared
            .socket
            .set_nonblocking(true)
            .map_err(|e| error::io_error("O_NONBLOCK", &e))?;
        Ok(Self::over(shared))
    }

    fn over(shared: &Arc<SharedSocket>) -> Self {
        let woken = Arc::<Woken>::default();
        Self {
            shared: Arc::clone(shared),
            tasks: Vec::new(),
            spawned: Spawned::default(),
            waker: Waker::from(Arc::clone(&woken)),
            woken,
            runtime: None,
            patience: None,
            fault: Arc::default(),
        }
    }

    /// For the connection over that socket, which several pairs share: that runtime drives it.
    pub(crate) fn in_runtime(
        shared: &Arc<SharedSocket>,
        runtime: &EndpointRuntime,
    ) -> Result<Self> {
        let mut driver = Self::without_blocking(shared)?;
        // Whoever waits drives it, so no thread knows how many bytes have passed.
        scope::end_byte_count();
        driver.runtime = Some(SharedHttpRuntime {
            runtime: runtime.clone(),
            flags: Arc::clone(&shared.flags),
            ended: watch::Sender::new(false),
        });
        Ok(driver)
    }

    /// What several pairs share of the connection; `None` where the pair has it alone.
    pub(super) fn handle(&self) -> Option<SharedHttpHandle> {
        Some(SharedHttpHandle {
            shared: Arc::clone(&self.shared),
            ended: self.runtime.as_ref()?.ended.clone(),
            fault: Arc::clone(&self.fault),
        })
    }

    /// Whether several pairs share the connection, so that futures have to be woken by what they wait for.
    pub(super) const fn is_shared(&self) -> bool {
        self.runtime.is_some()
    }

    /// Lets a response come that nobody waits for.
    pub(super) fn leave_to_runtime(&self, response: impl Future + Send + 'static) {
        if let Some(shared) = &self.runtime {
            shared.runtime.spawn(async move {
                let _ = response.await;
            });
        }
    }

    pub(crate) const fn shared(&self) -> &Arc<SharedSocket> {
        &self.shared
    }

    /// Ends waits in which a server is silent for too long, and answers that do not end.
    pub(crate) fn limit(&mut self, patience: ServerPatience) {
        self.patience = Some(patience);
    }

    /// What the library spawns its futures on.
    pub(crate) fn executor(&self) -> HttpExecutor {
        match &self.runtime {
            None => HttpExecutor::Own(self.spawned.clone()),
            Some(shared) => HttpExecutor::Shared(shared.runtime.handle()),
        }
    }

    /// Adds the future of the connection itself.
    pub(crate) fn adopt<F>(&mut self, connection: F)
    where
        F: Future<Output = hyper::Result<()>> + Send + 'static,
    {
        let fault = Arc::clone(&self.fault);
        let kept = async move {
            if let Err(error) = connection.await {
                let mut fault = fault.lock().unwrap_or_else(PoisonError::into_inner);
                fault.get_or_insert(error);
            }
        };
        match &self.runtime {
            None => self.tasks.push(Box::pin(kept)),
            Some(shared) => shared.runtime.spawn(kept),
        }
    }

    /// Drives the connection until `wanted` is ready.
    ///
    /// # Errors
    /// When the connection has ended before, or the job was ended.
    pub(crate) fn until<T>(
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
    pub(crate) fn until_end<T>(
        &mut self,
        mut wanted: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<Option<T>> {
        if let Some(shared) = &self.runtime {
            return shared.until_end(&self.shared, self.patience.as_ref(), wanted);
        }
        let mut is_ready = |woken: &Woken, waker: &Waker| {
            woken.0.store(false, Ordering::Relaxed);
            match wanted(&mut Context::from_waker(waker)) {
                Poll::Ready(value) => Some(value),
                Poll::Pending => None,
            }
        };
        // Perhaps it has come already: then the connection is not asked, which would be a system call.
        if let Some(value) = is_ready(&self.woken, &self.waker) {
            return Ok(Some(value));
        }
        self.look_again();
        loop {
            if let Some(patience) = &self.patience {
                patience.check_limit(&self.shared.flags, || self.shared.acknowledged())?;
            }
            let ended = self.turn();
            if let Some(value) = is_ready(&self.woken, &self.waker) {
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
    pub(crate) fn until_alone<T>(
        &self,
        mut wanted: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Result<T> {
        if let Some(shared) = &self.runtime {
            let wanted = std::future::poll_fn(wanted);
            return shared.run(&self.shared, self.patience.as_ref(), wanted);
        }
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
    pub(crate) fn flush(&mut self) -> Result<()> {
        if let Some(shared) = &self.runtime {
            shared.runtime.push();
            return Ok(());
        }
        self.look_again();
        while !self.turn() && self.shared.awaits_room.load(Ordering::Relaxed) {
            self.wait()?;
        }
        Ok(())
    }

    /// Has the next turn read, though the last operation found nothing: the peer may have enlarged a window since.
    fn look_again(&self) {
        self.shared.awaits_input.store(false, Ordering::Relaxed);
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
            ..
        } = &*self.shared;
        let mut wanted = PollFlags::empty();
        wanted.set(PollFlags::POLLIN, awaits_input.load(Ordering::Relaxed));
        wanted.set(PollFlags::POLLOUT, awaits_room.load(Ordering::Relaxed));
        if wanted.is_empty() {
            return Err(Error::measurement(
                "the HTTP library waits for something other than its connection",
            ));
        }
        if !wanted.contains(PollFlags::POLLOUT) {
            scope::wait_with_room();
        }
        let mut watched = [PollFd::new(socket.as_fd(), wanted)];
        let begun = Instant::now();
        let slice = match &self.patience {
            None => PollTimeout::NONE,
            Some(patience) => PollTimeout::try_from(patience.slice()).unwrap_or(PollTimeout::MAX),
        };
        let ready = loop {
            match (poll(&mut watched, slice), &self.patience) {
                (Ok(0), Some(patience)) => {
                    patience.check_limit(flags, || self.shared.acknowledged())?;
                    patience.check_silence(begun.elapsed(), silent)?;
                }
                (ready, _) => break ready,
            }
        };
        match ready {
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

    /// Drives the connection until its peer has ended it.
    ///
    /// # Errors
    /// When it has failed, or the job was ended.
    pub(crate) fn until_closed(&mut self) -> Result<()> {
        let never = self.until_end(|_| Poll::<()>::Pending)?;
        debug_assert!(never.is_none());
        self.check_end()
    }

    /// Whether a connection that has ended did so in order: closed by its peer, however abruptly.
    ///
    /// # Errors
    /// Why it has failed.
    pub(crate) fn check_end(&self) -> Result<()> {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        match &*fault {
            Some(error) if !is_close(error) => Err(self.describe(error)),
            _ => Ok(()),
        }
    }

    /// Whether the connection has failed for another reason than that its peer has closed it or what `is_right` takes for right.
    pub(crate) fn has_failed(&self, is_right: impl Fn(&hyper::Error) -> bool) -> bool {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        fault
            .as_ref()
            .is_some_and(|fault| !is_close(fault) && !is_right(fault))
    }

    /// The error when the connection has ended before what was to come.
    pub(crate) fn end_of_connection(&self) -> Error {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        match &*fault {
            Some(error) => self.describe(error),
            None => connection_vanished("before the exchange had ended"),
        }
    }

    /// The error of the library.
    pub(crate) fn failure(&self, error: &hyper::Error) -> Error {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        match &*fault {
            // What an exchange was cancelled for is the fault of the connection.
            Some(fault) if error.is_canceled() || error.is_closed() => self.describe(fault),
            _ => self.describe(error),
        }
    }

    fn describe(&self, error: &hyper::Error) -> Error {
        let flags = self.runtime.as_ref().map(|shared| &shared.flags);
        if flags.unwrap_or(&self.shared.flags).ended() {
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
        let causes = causes.concat();
        match &self.patience {
            None => Error::measurement(format!("HTTP failed: {error}{causes}")),
            Some(patience) => Error::measurement(format!(
                "the server at {} does not speak HTTP/2: {error}{causes}",
                patience.server()
            ))
            .hint("`version = http1` is what every web server speaks"),
        }
    }
}

/// Whether an error says that the peer has closed or reset the connection.
fn is_close(error: &hyper::Error) -> bool {
    let mut cause = error.source();
    while let Some(below) = cause {
        if let Some(error) = below.downcast_ref::<io::Error>() {
            return matches!(
                error.kind(),
                io::ErrorKind::BrokenPipe
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::NotConnected
                    | io::ErrorKind::UnexpectedEof
            );
        }
        cause = below.source();
    }
    error.is_incomplete_message() || error.is_canceled() || error.is_closed()
}

/// Most bytes that are received at a time: room for them is zeroed first, as only the library's own code may leave it as it is.
const READ_BYTES: usize = 256 << 10;

/// The wire as hyper reads and writes it.
pub(crate) struct HttpWire {
    wire: LayeredWire,
    /// What wakes whoever reads or writes, where a runtime drives the connection.
    readiness: Option<TcpStream>,
    /// Says that the connection has ended, where several pairs share it: the library keeps the wire until then.
    _end: Option<ConnectionEnd>,
}

/// Says that a connection has ended when it is dropped.
struct ConnectionEnd(watch::Sender<bool>);

impl Drop for ConnectionEnd {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}

impl HttpWire {
    /// The wire of a connection that this drives.
    pub(crate) fn new(wire: LayeredWire, driver: &HttpDriver) -> Result<Self> {
        let watch = |shared: &SharedHttpRuntime| {
            let socket = wire.shared().socket.try_clone()?;
            shared.runtime.within(|| TcpStream::from_std(socket.into()))
        };
        let readiness = driver.runtime.as_ref().map(watch).transpose();
        let readiness = readiness.map_err(|e| error::io_error("epoll_ctl", &e))?;
        let end = driver
            .runtime
            .as_ref()
            .map(|shared| ConnectionEnd(shared.ended.clone()));
        Ok(Self {
            wire,
            readiness,
            _end: end,
        })
    }

    /// Tries what cannot be done at once again when the socket is ready; the driver polls it again where no runtime does.
    fn poll_io<T>(
        &mut self,
        context: &mut Context<'_>,
        interest: Interest,
        mut attempt: impl FnMut(&mut LayeredWire) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        let Some(readiness) = &self.readiness else {
            return poll_of(attempt(&mut self.wire));
        };
        loop {
            let ready = if interest == Interest::READABLE {
                readiness.poll_read_ready(context)
            } else {
                readiness.poll_write_ready(context)
            };
            ready!(ready)?;
            // What would block is no longer ready.
            let done = readiness.try_io(interest, || attempt(&mut self.wire));
            if let Poll::Ready(done) = poll_of(done) {
                return Poll::Ready(done);
            }
        }
    }
}

fn poll_of<T>(done: io::Result<T>) -> Poll<io::Result<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
        done => Poll::Ready(done),
    }
}

impl AsyncRead for HttpWire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let most = into.remaining().min(READ_BYTES);
        let room = into.initialize_unfilled_to(most);
        let got = self.poll_io(context, Interest::READABLE, |wire| wire.read(room));
        got.map_ok(|bytes| into.advance(bytes))
    }
}

impl AsyncWrite for HttpWire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_io(context, Interest::WRITABLE, |wire| wire.write(bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_io(context, Interest::WRITABLE, |wire| {
            wire.write_vectored(slices)
        })
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_io(context, Interest::WRITABLE, Write::flush)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_io(context, Interest::WRITABLE, LayeredWire::finish)
    }
}
