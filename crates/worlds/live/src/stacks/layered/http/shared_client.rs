//! One connection of HTTP/2 for several pairs of clients: the first that connects opens it, the others join, and it is closed when the last
//! has left. A pair joins a connection once.

use super::driver::SharedHttpHandle;
use super::opening::{Http2Sender, OpenedHttp};
use crate::cancel::LiveCancelFlags;
use crate::error::{Error, Result};
use crate::stacks::endpoint_runtime::EndpointRuntime;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

fn locked<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens connections that are driven by a runtime.
pub(crate) trait SharedHttpOpener: Send + 'static {
    /// Whether a pair that has left a connection gets another one while the others are still on it. Otherwise it waits until they have left,
    /// as the other end of a run does.
    const REPLACES: bool;
    /// Opens one.
    fn open(
        &mut self,
        runtime: &EndpointRuntime,
        flags: &Arc<LiveCancelFlags>,
    ) -> Result<OpenedHttp<Http2Sender>>;
}

/// That a pair uses a connection: it leaves when this is dropped, if it has not left before.
pub(crate) struct SharedHttpUse(Option<Box<dyn FnOnce() + Send>>);

impl SharedHttpUse {
    pub(crate) fn leave(&mut self) {
        if let Some(leaves) = self.0.take() {
            leaves();
        }
    }
}

impl Drop for SharedHttpUse {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A connection of the initiator, and the pairs on it.
struct SharedHttpConnection {
    handle: SharedHttpHandle,
    /// `None` once the last pair has left: then the connection ends.
    sender: Option<Http2Sender>,
    is_over_tls: bool,
    below: BTreeMap<String, String>,
    /// How many pairs use it.
    users: u32,
    /// The pairs that have joined it, by number, though they may have left.
    joined: u128,
}

struct SharedHttpState<O> {
    opener: O,
    current: Option<SharedHttpConnection>,
    /// How many connections were opened.
    opened: u64,
}

impl<O> SharedHttpState<O> {
    /// Lets a pair join the connection; `None` if it cannot any more.
    fn join(
        &mut self,
        member: u16,
        runtime: &EndpointRuntime,
        flags: &Arc<LiveCancelFlags>,
    ) -> Option<OpenedHttp<Http2Sender>> {
        let place = 1_u128.checked_shl(u32::from(member)).unwrap_or(0);
        let open = self.current.as_mut()?;
        if open.handle.has_ended() || open.joined & place != 0 {
            return None;
        }
        let sender = open.sender.clone()?;
        open.users += 1;
        open.joined |= place;
        Some(OpenedHttp {
            driver: open.handle.driver(runtime, flags),
            sender,
            is_over_tls: open.is_over_tls,
            below: open.below.clone(),
        })
    }

    /// A pair leaves the connection that was opened as that one.
    fn leave(&mut self, opened: u64) {
        if self.opened != opened {
            return;
        }
        if let Some(open) = &mut self.current {
            open.users -= 1;
            if open.users == 0 {
                open.sender = None;
            }
        }
    }
}

/// The connection of a group of clients.
pub(crate) struct SharedHttpClient<O> {
    runtime: EndpointRuntime,
    /// Held by the pair that opens the connection for all.
    state: Arc<Mutex<SharedHttpState<O>>>,
    /// Those of the job, once there is a connection.
    flags: OnceLock<Arc<LiveCancelFlags>>,
}

impl<O: SharedHttpOpener> SharedHttpClient<O> {
    pub(crate) fn new(opener: O) -> Result<Self> {
        Ok(Self {
            runtime: EndpointRuntime::new()?,
            state: Arc::new(Mutex::new(SharedHttpState {
                opener,
                current: None,
                opened: 0,
            })),
            flags: OnceLock::new(),
        })
    }

    /// Asks what opens the connections.
    pub(crate) fn ask_opener<T>(&self, ask: impl FnOnce(&O) -> T) -> T {
        ask(&locked(&self.state).opener)
    }

    /// The connection for the pair with that number: the one that is open, or a new one when it has ended.
    ///
    /// # Errors
    /// As the opener, or when the job was ended.
    pub(crate) fn connect(
        &self,
        member: u16,
        flags: &Arc<LiveCancelFlags>,
    ) -> Result<(OpenedHttp<Http2Sender>, SharedHttpUse)> {
        loop {
            flags.interrupted()?;
            let mut state = locked(&self.state);
            if let Some(joined) = state.join(member, &self.runtime, flags) {
                let (opened, shared) = (state.opened, Arc::clone(&self.state));
                let usage = SharedHttpUse(Some(Box::new(move || locked(&shared).leave(opened))));
                return Ok((joined, usage));
            }
            let current = state
                .current
                .as_ref()
                .filter(|open| !O::REPLACES && !open.handle.has_ended());
            if let Some(open) = current {
                // It ends when those who use it have left.
                let ended = open.handle.ended();
                drop(state);
                self.runtime.run(flags, ended)?;
                continue;
            }
            self.open(&mut state, flags)?;
            let _ = self.flags.set(Arc::clone(flags));
        }
    }

    /// Opens a connection that nobody has joined yet.
    fn open(&self, state: &mut SharedHttpState<O>, flags: &Arc<LiveCancelFlags>) -> Result<()> {
        let opened = state.opener.open(&self.runtime, flags)?;
        let Some(handle) = opened.driver.handle() else {
            return Err(Error::measurement(
                "a connection is not shared: this is a bug",
            ));
        };
        state.opened += 1;
        state.current = Some(SharedHttpConnection {
            handle,
            sender: Some(opened.sender),
            is_over_tls: opened.is_over_tls,
            below: opened.below,
            users: 0,
            joined: 0,
        });
        Ok(())
    }
}

impl<O> Drop for SharedHttpClient<O> {
    fn drop(&mut self) {
        let mut state = locked(&self.state);
        if let Some(open) = state.current.take() {
            drop(open.sender);
            self.runtime.leave(self.flags.get(), open.handle.ended());
        }
    }
}
