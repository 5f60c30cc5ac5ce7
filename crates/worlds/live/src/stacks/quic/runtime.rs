//! The runtime that quinn needs, of one thread: the endpoint's, while it is in an operation.

use crate::cancel::LiveCancelFlags;
use crate::error::{Error, Result};
use quinn::Endpoint;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::time;

/// How often an operation that waits looks whether the job was ended.
const LOOK: Duration = Duration::from_millis(100);
/// How long, after the last operation, closing connections may take.
const FAREWELL: Duration = Duration::from_millis(500);

/// Drives the connections of one side of a pair.
#[derive(Clone)]
pub(super) struct QuicRuntime(Arc<Runtime>);

impl QuicRuntime {
    pub(super) fn new() -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|e| Error::environment(format!("cannot set up QUIC: {e}")))?;
        Ok(Self(Arc::new(runtime)))
    }

    /// Calls what expects to be within a runtime.
    pub(super) fn within<T>(&self, call: impl FnOnce() -> T) -> T {
        let _guard = self.0.enter();
        call()
    }

    /// Adds a future that operations drive beside their own.
    pub(super) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        drop(self.0.spawn(future));
    }

    /// Drives everything until `future` is ready.
    ///
    /// # Errors
    /// When the job was ended.
    pub(super) fn run<F: Future>(&self, flags: &LiveCancelFlags, future: F) -> Result<F::Output> {
        self.0.block_on(async {
            let mut future = pin!(future);
            let mut look = pin!(time::sleep(LOOK));
            std::future::poll_fn(|context| {
                if let Poll::Ready(value) = future.as_mut().poll(context) {
                    return Poll::Ready(Ok(value));
                }
                while look.as_mut().poll(context).is_ready() {
                    if flags.ended() {
                        return Poll::Ready(Err(Error::interrupted()));
                    }
                    look.as_mut().reset(time::Instant::now() + LOOK);
                }
                Poll::Pending
            })
            .await
        })
    }

    /// Sends what may be sent now.
    pub(super) fn push(&self) {
        self.0.block_on(async {
            // The first turn lets the connection make its packets, the second lets it see what they changed.
            for _ in 0..2 {
                tokio::task::yield_now().await;
            }
        });
    }

    /// Ends the connections of a socket.
    pub(super) fn leave(&self, endpoint: &Endpoint) {
        self.0.block_on(async {
            let _ = time::timeout(FAREWELL, endpoint.wait_idle()).await;
        });
    }
}
