//! Client sessions: a client with its open sets and predictions. C names a session by a number, so that a closed or invalid one gives an
//! error instead of a crash.

use stackline_blockserver::client::{
    BlockClient, BlockClientEvent, BlockClientOptions, OpenSet, ReceivedBlock,
};
use stackline_blockserver::prediction::BlockPrediction;
use stackline_core::error::{Error, Result};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a thread that waits for an event checks whether its session was closed.
const LOOK: Duration = Duration::from_millis(100);

/// A function that is given a list and returns the blocks that may be needed next.
pub type ClientPredictor = Box<dyn FnMut(&[u64]) -> Vec<u64> + Send>;

/// A client with its open sets and predictions.
pub struct BlockClientSession {
    client: BlockClient,
    /// The open sets, by their numbers.
    sets: Mutex<BTreeMap<u32, OpenSet>>,
    /// The prediction of each set that has one.
    predictions: Mutex<BTreeMap<u32, BlockPrediction<ClientPredictor>>>,
    closed: AtomicBool,
}

/// The open sessions, by their numbers.
static SESSIONS: Mutex<BTreeMap<u64, Arc<BlockClientSession>>> = Mutex::new(BTreeMap::new());
/// The number of the next session.
static NEXT: AtomicU64 = AtomicU64::new(1);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Connects to a master, and returns the number of the new session.
///
/// # Errors
/// As [`BlockClient::connect`].
pub fn connect(master: &str, options: BlockClientOptions) -> Result<u64> {
    let client = BlockClient::connect(master, options)?;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let (sets, predictions, closed) = (Mutex::default(), Mutex::default(), AtomicBool::new(false));
    lock(&SESSIONS).insert(
        number,
        Arc::new(BlockClientSession {
            client,
            sets,
            predictions,
            closed,
        }),
    );
    Ok(number)
}

/// The session of that number.
///
/// # Errors
/// If there is no such session.
pub fn find_session(number: u64) -> Result<Arc<BlockClientSession>> {
    lock(&SESSIONS)
        .get(&number)
        .map(Arc::clone)
        .ok_or_else(no_session)
}

/// Closes a session. A thread that waits for its blocks gets an error.
///
/// # Errors
/// If there is no such session.
pub fn close(number: u64) -> Result<()> {
    let session = lock(&SESSIONS).remove(&number).ok_or_else(no_session)?;
    session.closed.store(true, Ordering::Relaxed);
    Ok(())
}

fn no_session() -> Error {
    Error::input("unknown or closed client")
        .hint("pass the client that blockclient_connect returned")
}

impl BlockClientSession {
    /// The client of this session.
    pub const fn client(&self) -> &BlockClient {
        &self.client
    }

    /// Opens a set.
    ///
    /// # Errors
    /// As [`BlockClient::open`].
    pub fn open(&self, name: &str) -> Result<OpenSet> {
        let set = self.client.open(name)?;
        lock(&self.sets).insert(set.id, set.clone());
        Ok(set)
    }

    /// The open set with that number.
    ///
    /// # Errors
    /// If it is not open.
    pub fn set(&self, id: u32) -> Result<OpenSet> {
        let none =
            || Error::input(format!("the set {id} is not open")).hint("open it by name first");
        lock(&self.sets).get(&id).cloned().ok_or_else(none)
    }

    /// From here on the blocks that `predict` returns are requested after each list of the set; `None` ends this. `most` is the limit on
    /// blocks of a list.
    ///
    /// # Errors
    /// If the set is not open.
    pub fn predict(
        &self,
        set: u32,
        most: Option<usize>,
        predict: Option<ClientPredictor>,
    ) -> Result<()> {
        let open = self.set(set)?;
        let mut predictions = lock(&self.predictions);
        match predict {
            None => drop(predictions.remove(&set)),
            Some(predict) => {
                let mut prediction = BlockPrediction::new(&open, predict);
                prediction.most = most.unwrap_or(prediction.most);
                predictions.insert(set, prediction);
            }
        }
        Ok(())
    }

    /// Requests blocks. Lists of a set with a prediction have to supersede.
    ///
    /// # Errors
    /// As for [`BlockClient::request`]; also if the list of a set with a prediction does not supersede.
    pub fn request(&self, set: u32, blocks: Vec<u64>, supersedes: bool) -> Result<()> {
        let mut predictions = lock(&self.predictions);
        let Some(prediction) = predictions.get_mut(&set) else {
            drop(predictions);
            return self.client.request(set, blocks, supersedes).map(|_| ());
        };
        if !supersedes {
            return Err(Error::input(
                "a list for a set with a prediction must supersede the previous list",
            )
            .hint("remove the prediction, or request all blocks in one list"));
        }
        let (list, kept) = prediction.list(blocks);
        drop(predictions);
        kept.into_iter()
            .for_each(|block| self.client.give_back(block));
        self.client.request(set, list, true).map(|_| ())
    }

    /// The next event; `None` if none comes within the time.
    ///
    /// # Errors
    /// If the session was closed in the meantime.
    pub fn next(&self, within: Option<Duration>) -> Result<Option<BlockClientEvent>> {
        let until = within.map(|within| Instant::now() + within);
        loop {
            let left = until.map_or(LOOK, |until| {
                until.saturating_duration_since(Instant::now()).min(LOOK)
            });
            match self.client.next(Some(left)) {
                Some(BlockClientEvent::Block(block)) => {
                    if let Some(block) = self.wanted(block) {
                        return Ok(Some(BlockClientEvent::Block(block)));
                    }
                }
                Some(event) => return Ok(Some(event)),
                None if self.closed.load(Ordering::Relaxed) => return Err(no_session()),
                None if until.is_some_and(|until| until <= Instant::now()) => return Ok(None),
                None => {}
            }
        }
    }

    /// Passes a block to the prediction of its set, which keeps it if it was only predicted; otherwise returns it.
    fn wanted(&self, block: Box<ReceivedBlock>) -> Option<Box<ReceivedBlock>> {
        match lock(&self.predictions).get_mut(&block.head.set) {
            Some(prediction) => prediction.came(block),
            None => Some(block),
        }
    }
}
