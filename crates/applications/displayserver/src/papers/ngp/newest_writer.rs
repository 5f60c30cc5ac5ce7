//! A client's end that would rather have the newest picture seen than every one (`display::ngp::NgpRequestQueue`): what is written waits here, and a
//! thread sends it as the connection takes it. It reads nothing.

use stackline_display::ngp::{Near, NgpRequestQueue};
use std::io::{self, ErrorKind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Bytes that leave together, and those that the kernel keeps: what it has no newer change can take the place of.
const PIECE: usize = 1 << 10;
/// See `PIECE`.
pub(super) const KERNEL: usize = 4 << 10;
/// Bytes that wait at most: more than a display lets a client have on its way.
const MOST: usize = 4 << 20;
/// How long what waits may take to leave when the client is done.
const DRAINS: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
struct NgpNewestState {
    waiting: NgpRequestQueue,
    /// Why nothing leaves any more.
    lost: Option<(ErrorKind, String)>,
    /// A piece is leaving.
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

/// What is written to a connection; the last who has it ends the thread, once what waits has left.
#[derive(Debug)]
pub(super) struct NgpNewestWriter(Arc<NgpNewestQueue>);

impl NgpNewestWriter {
    /// Of a connection that is there: `sends` has something put into frames, and writes those.
    pub(super) fn of(
        sends: impl Fn(&mut dyn FnMut(&mut Near)) -> io::Result<()> + Send + 'static,
    ) -> Self {
        let queue = Arc::new(NgpNewestQueue::default());
        let works = Arc::clone(&queue);
        thread::spawn(move || work(&works, sends));
        Self(queue)
    }

    /// These wait behind the others, which they may take the place of.
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

    /// Waits until everything has left, as long as that may take.
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

/// Sends what waits until that is over.
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
