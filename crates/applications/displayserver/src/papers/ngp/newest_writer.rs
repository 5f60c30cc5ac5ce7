//! The writer of a client that prefers the newest picture to every single one (`display::ngp::NgpRequestQueue`): requests wait here, and a
//! thread sends them as fast as the connection takes them.

use stackline_display::ngp::{Near, NgpRequestQueue};
use std::io::{self, ErrorKind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Bytes that are sent at a time.
const PIECE: usize = 1 << 10;
/// The kernel's send buffer, bytes. It is small because newer changes cannot replace what is in it.
pub(super) const KERNEL: usize = 4 << 10;
/// The limit on waiting bytes: more than a display lets a client have under way.
const MOST: usize = 4 << 20;
/// How long the rest may take when the client is done.
const DRAINS: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
struct NgpNewestState {
    waiting: NgpRequestQueue,
    /// Why nothing can be sent any more.
    lost: Option<(ErrorKind, String)>,
    /// Whether a piece is being sent.
    is_leaving: bool,
    is_ended: bool,
}

impl NgpNewestState {
    fn is_idle(&self) -> bool {
        self.lost.is_some() || (self.waiting.is_empty() && !self.is_leaving)
    }
}

#[derive(Debug, Default)]
struct NgpNewestQueue {
    state: Mutex<NgpNewestState>,
    changed: Condvar,
}

impl NgpNewestQueue {
    fn state(&self) -> MutexGuard<'_, NgpNewestState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'q>(&self, state: MutexGuard<'q, NgpNewestState>) -> MutexGuard<'q, NgpNewestState> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handle for writing; dropping the last one ends the thread after the rest is sent.
#[derive(Debug)]
pub(super) struct NgpNewestWriter(Arc<NgpNewestQueue>);

impl NgpNewestWriter {
    /// A writer for a connection; `sends` encodes requests and writes the frames.
    pub(super) fn start(
        sends: impl Fn(&mut dyn FnMut(&mut Near)) -> io::Result<()> + Send + 'static,
    ) -> Self {
        let queue = Arc::new(NgpNewestQueue::default());
        let works = Arc::clone(&queue);
        thread::spawn(move || work(&works, sends));
        Self(queue)
    }

    /// Adds requests, which may replace waiting ones.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.0.state();
        while state.waiting.bytes() > MOST && state.lost.is_none() {
            state = self.0.wait(state);
        }
        if let Some((kind, why)) = &state.lost {
            return Err(io::Error::new(*kind, why.clone()));
        }
        state.waiting.push(bytes);
        self.0.changed.notify_all();
        Ok(())
    }

    /// Waits until everything is sent, up to a time limit.
    pub(super) fn finish(&self) {
        let state = self.0.state();
        drop(
            self.0
                .changed
                .wait_timeout_while(state, DRAINS, |state| !state.is_idle()),
        );
    }
}

impl Drop for NgpNewestWriter {
    fn drop(&mut self) {
        self.finish();
        self.0.state().is_ended = true;
        self.0.changed.notify_all();
    }
}

/// Sends what waits until the writer ends.
fn work(queue: &NgpNewestQueue, sends: impl Fn(&mut dyn FnMut(&mut Near)) -> io::Result<()>) {
    let mut state = queue.state();
    while !state.is_ended && state.lost.is_none() {
        if state.waiting.is_empty() {
            state = queue.wait(state);
            continue;
        }
        state.is_leaving = true;
        drop(state);
        let sent = sends(&mut |near| near.send_waiting(&mut queue.state().waiting, PIECE));
        state = queue.state();
        state.is_leaving = false;
        state.lost = sent.err().map(|error| (error.kind(), error.to_string()));
        queue.changed.notify_all();
    }
}
