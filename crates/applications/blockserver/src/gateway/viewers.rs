//! A viewer's new list supersedes the one before: blocks that only the old list waits for are not requested any more, and the old list
//! ends.

use super::block_requests::GatewayListEvent;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::UnboundedSender;

/// Sends a list its events.
type GatewayListSender = UnboundedSender<GatewayListEvent>;

/// A list that may be superseded.
#[derive(Clone)]
pub(super) struct GatewayRunningList {
    over: Arc<AtomicBool>,
    wake: GatewayListSender,
}

/// The newest list of each viewer of each set, by set and viewer.
#[derive(Default)]
pub(super) struct Viewers(Mutex<BTreeMap<(String, String), GatewayRunningList>>);

impl Viewers {
    fn lists(&self) -> MutexGuard<'_, BTreeMap<(String, String), GatewayRunningList>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a viewer's new list, and supersedes the one before.
    pub(super) fn begin(
        &self,
        set: &str,
        viewer: &str,
        over: &Arc<AtomicBool>,
        wake: &GatewayListSender,
    ) {
        let running = GatewayRunningList {
            over: Arc::clone(over),
            wake: wake.clone(),
        };
        if let Some(before) = self
            .lists()
            .insert((set.to_owned(), viewer.to_owned()), running)
        {
            before.over.store(true, Ordering::SeqCst);
            let _ = before.wake.send(GatewayListEvent::Superseded);
        }
    }

    /// Removes a list that has ended.
    pub(super) fn end(&self, set: &str, viewer: &str, over: &Arc<AtomicBool>) {
        let key = (set.to_owned(), viewer.to_owned());
        let mut lists = self.lists();
        if lists
            .get(&key)
            .is_some_and(|running| Arc::ptr_eq(&running.over, over))
        {
            lists.remove(&key);
        }
    }
}
