//! The runtime that libraries need, of one thread: the endpoint's, while it is in an operation. Endpoints that share a connection drive it
//! together: of those that wait, one drives it for all.

use crate::cancel::LiveCancelFlags;
use crate::error::{Error, Result};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time;

/// How often an operation that waits looks whether the job was ended.
const LOOK: Duration = Duration::from_millis(100);
/// How long, after everything was delivered, the last packets of connections may take.
const FAREWELL: Duration = Duration::from_millis(500);

/// Drives the connections of one side of a pair, or of several pairs that share them.
#[derive(Clone)]
pub(crate) struct EndpointRuntime {
    runtime: Arc<Runtime>,
    /// What delivers the rest of connections that the endpoint has left.
    closing: Arc<Mutex<JoinSet<()>>>,
}

impl EndpointRuntime {
    pub(crate) fn new() -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|e| Error::environment(format!("cannot set up a runtime: {e}")))?;
        Ok(Self {
            runtime: Arc::new(runtime),
            closing: Arc::default(),
        })
    }

    /// Calls what expects to be within a runtime.
    pub(crate) fn within<T>(&self, call: impl FnOnce() -> T) -> T {
        let _guard = self.runtime.enter();
        call()
    }

    /// What libraries spawn their futures on, which must not keep the runtime.
    pub(crate) fn handle(&self) -> Handle {
        self.runtime.handle().clone()
    }

    /// Adds a future that operations drive beside their own.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        drop(self.runtime.spawn(future));
    }

    /// The same, and how to end it.
    pub(crate) fn spawn_abortable(
        &self,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> AbortHandle {
        self.runtime.spawn(future).abort_handle()
    }

    /// Adds a future that delivers the rest of a connection: [`Self::leave`] waits for it.
    pub(crate) fn spawn_closing(&self, future: impl Future<Output = ()> + Send + 'static) {
        let mut closing = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that are done are forgotten.
        while closing.try_join_next().is_some() {}
        closing.spawn_on(future, self.runtime.handle());
    }

    /// Drives everything until `future` is ready.
    ///
    /// # Errors
    /// When the job was ended.
    pub(crate) fn run<F: Future>(&self, flags: &LiveCancelFlags, future: F) -> Result<F::Output> {
        self.run_checked(LOOK, |_| flags.interrupted(), future)
    }

    /// Drives everything until `future` is ready; meanwhile `check`, every `look`, gets how long that has taken.
    ///
    /// # Errors
    /// As `check`.
    pub(crate) fn run_checked<F: Future>(
        &self,
        look: Duration,
        mut check: impl FnMut(Duration) -> Result<()>,
        future: F,
    ) -> Result<F::Output> {
        self.runtime.block_on(async {
            let mut future = pin!(future);
            let mut next_look = pin!(time::sleep(look));
            let mut waited = Duration::ZERO;
            std::future::poll_fn(|context| {
                if let Poll::Ready(value) = future.as_mut().poll(context) {
                    return Poll::Ready(Ok(value));
                }
                while next_look.as_mut().poll(context).is_ready() {
                    waited += look;
                    check(waited)?;
                    next_look.as_mut().reset(time::Instant::now() + look);
                }
                Poll::Pending
            })
            .await
        })
    }

    /// Sends what may be sent now.
    pub(crate) fn push(&self) {
        self.runtime.block_on(async {
            // The first turn lets the connection make its packets, the second lets it see what they changed.
            for _ in 0..2 {
                tokio::task::yield_now().await;
            }
        });
    }

    /// Ends the connections of a socket: first everything is delivered, unless the job is ended or the peer is gone; then `idle` may take a
    /// moment.
    pub(crate) fn leave(&self, flags: Option<&Arc<LiveCancelFlags>>, idle: impl Future) {
        let mut closing = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut closing = std::mem::take(&mut *closing);
        if let Some(flags) = flags {
            let _ = self.run(flags, async {
                while closing.join_next().await.is_some() {}
            });
        }
        self.runtime.block_on(async {
            let _ = time::timeout(FAREWELL, idle).await;
        });
    }
}
