//! A queue for each of the pairs that share a connection: what arrives is handed in by the pair's number, and each pair takes its end once.

use crate::error::{Error, Result};
use std::sync::{Mutex, PoisonError};
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Most arrivals that wait until the pair's procedure gets there.
const WAITING: usize = 64;

/// The queues of so many pairs: where arrivals are handed in, by number, and what the pairs take.
pub(super) fn pair_queues<T>(pairs: usize) -> (Vec<Sender<T>>, PairReceivers<T>) {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..pairs).map(|_| mpsc::channel(WAITING)).unzip();
    let receivers = Mutex::new(receivers.into_iter().map(Some).collect());
    (senders, PairReceivers(receivers))
}

/// The ends of the queues that no pair has taken yet.
pub(super) struct PairReceivers<T>(Mutex<Vec<Option<Receiver<T>>>>);

impl<T> PairReceivers<T> {
    /// The end of that pair; `None` if it was taken before, or there is no such pair.
    pub(super) fn take(&self, pair: usize) -> Option<Receiver<T>> {
        let mut receivers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        receivers.get_mut(pair)?.take()
    }

    /// The end of a pair that begins to listen.
    pub(super) fn of_listener(&self, pair: u16) -> Result<Receiver<T>> {
        self.take(usize::from(pair))
            .ok_or_else(|| Error::measurement("a pair of a group listens twice: this is a bug"))
    }
}
