//! The block client that all requests share, and the sets it has open.
//!
//! If the master is lost, each request tries to reach it first. Open sets are read without it only while it cannot be reached, since a
//! master that is back may have deleted them. Open sets belong to one session with one master, and set numbers are never used again, so
//! what is read never comes from another set of the same name.

use super::block_requests::{Desk, GatewayBlock, GatewayBlockFailure};
use super::fault::GatewayFault;
use super::limits::{self, Patience};
use super::memory_limit::Room;
use crate::client::{BlockClient, BlockClientEvent, BlockClientOptions, OpenSet};
use stackline_blocks::wire::master_messages::{ServerInfo, SetInfo};
use stackline_blocks::wire::message::Why;
use stackline_core::error::{Error, Result as Done};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Stack size of each thread, bytes.
const STACK: usize = 256 << 10;
/// How often to check which requests have waited for too long.
const LOOK: Duration = Duration::from_millis(250);

/// What the threads of a session share with its users.
struct GatewaySessionInner {
    client: BlockClient,
    desk: Arc<Desk>,
    /// Whether a new session has to begin when the master is needed.
    stale: AtomicBool,
}

/// A session with a master. It ends when nobody uses it any more.
pub(super) struct GatewaySession {
    inner: Arc<GatewaySessionInner>,
    sets: Mutex<BTreeMap<String, Arc<OpenSet>>>,
}

impl Drop for GatewaySession {
    fn drop(&mut self) {
        self.inner.desk.end();
    }
}

impl GatewaySession {
    fn start(master: &str, patience: Patience, room: &Arc<Room>) -> Done<Self> {
        let client = BlockClient::connect(master, BlockClientOptions::default())?;
        let inner = Arc::new(GatewaySessionInner {
            client,
            desk: Desk::new(Arc::clone(room)),
            stale: AtomicBool::new(false),
        });
        let (asking, taking) = (Arc::clone(&inner), Arc::clone(&inner));
        let session = Self {
            inner,
            sets: Mutex::default(),
        };
        spawn("ask", move || asking.ask())?;
        spawn("take", move || taking.take(patience.block))?;
        Ok(session)
    }

    pub(super) fn desk(&self) -> &Desk {
        &self.inner.desk
    }

    fn is_stale(&self) -> bool {
        // The connection may have ended a moment before this is reported.
        self.inner.stale.load(Ordering::Relaxed) || !self.inner.client.has_master()
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<String, Arc<OpenSet>>> {
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, name: &str) -> Option<Arc<OpenSet>> {
        self.open().get(name).cloned()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Done<()> {
    let spawned = thread::Builder::new()
        .name(name.into())
        .stack_size(STACK)
        .spawn(work);
    spawned
        .map(drop)
        .map_err(|error| Error::environment(format!("cannot start a thread: {error}")))
}

impl GatewaySessionInner {
    /// Requests what is wanted; blocks that are wanted at the same time go into one list. The lists never supersede, as they serve many
    /// users.
    fn ask(&self) {
        while let Some(lists) = self.desk.next() {
            for (set, numbers) in lists {
                let Err(error) = self.client.request(set, numbers.clone(), false) else {
                    continue;
                };
                for number in numbers {
                    self.desk.failed(
                        set,
                        number,
                        GatewayBlockFailure::Words(error.message.clone()),
                    );
                }
            }
        }
    }

    fn take(&self, patience: Duration) {
        let mut looked = Instant::now();
        while !self.desk.is_over() {
            match self.client.next(Some(LOOK)) {
                Some(BlockClientEvent::Block(block)) => self.desk.came(*block),
                Some(BlockClientEvent::Failed { set, number, why }) => {
                    self.desk.failed(set, number, GatewayBlockFailure::Why(why))
                }
                Some(BlockClientEvent::MasterGone) => self.stale.store(true, Ordering::Relaxed),
                Some(
                    BlockClientEvent::Flushed(_)
                    | BlockClientEvent::ServerGone { .. }
                    | BlockClientEvent::ServerCame { .. },
                )
                | None => {}
            }
            if looked.elapsed() >= LOOK {
                self.desk.close_stalled();
                looked = Instant::now();
                if self.desk.give_up(patience) {
                    // The master may be silent although the connection still exists.
                    self.stale.store(true, Ordering::Relaxed);
                }
                // Lists that do not supersede count as one endless list: its tally is not needed, and must not overflow.
                drop(self.client.finish());
            }
        }
    }
}

/// A set that can be read, with its session.
#[derive(Clone)]
pub(super) struct GatewayOpenSet {
    pub(super) session: Arc<GatewaySession>,
    pub(super) set: Arc<OpenSet>,
}

/// Starts and keeps the sessions of a gateway.
pub(super) struct GatewaySessions {
    master: String,
    patience: Patience,
    room: Arc<Room>,
    current: Arc<Mutex<Option<Arc<GatewaySession>>>>,
    /// Since when connecting to the master is being tried.
    trying: Arc<Mutex<Option<Instant>>>,
    /// Why the master could not be reached, and when.
    connecting: Arc<tokio::sync::Mutex<Option<(Instant, GatewayFault)>>>,
    opening: tokio::sync::Mutex<()>,
    questions: Arc<Semaphore>,
}

impl GatewaySessions {
    pub(super) fn new(master: String, patience: Patience, room: Arc<Room>) -> Self {
        let questions = Arc::new(Semaphore::new(limits::QUESTIONS));
        let (current, trying, connecting, opening) = Default::default();
        Self {
            master,
            patience,
            room,
            current,
            trying,
            connecting,
            opening,
            questions,
        }
    }

    fn current(&self) -> Option<Arc<GatewaySession>> {
        lock(&self.current).clone()
    }

    /// Runs blocking work in another thread. If it takes too long, its result is given up, though its thread continues.
    async fn elsewhere<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Done<T> + Send + 'static,
    ) -> Result<T, GatewayFault> {
        let questions = Arc::clone(&self.questions);
        let asked = async {
            let permit = questions.acquire_owned().await;
            let work = move || {
                let done = work();
                drop(permit);
                done
            };
            tokio::task::spawn_blocking(work).await
        };
        match tokio::time::timeout(limits::ANSWER, asked).await {
            Ok(Ok(done)) => done.map_err(GatewayFault::from),
            Ok(Err(_)) => Err(GatewayFault::unavailable("the gateway is shutting down")),
            Err(_) => Err(GatewayFault::unavailable(format!(
                "the master {} does not answer",
                self.master
            ))),
        }
    }

    /// A session whose master is connected.
    pub(super) async fn fresh(&self) -> Result<Arc<GatewaySession>, GatewayFault> {
        let usable = || self.current().filter(|session| !session.is_stale());
        if let Some(session) = usable() {
            return Ok(session);
        }
        let mut before = Arc::clone(&self.connecting).lock_owned().await;
        if let Some(session) = usable() {
            return Ok(session);
        }
        if let Some((at, fault)) = &*before
            && at.elapsed() < limits::REST
        {
            return Err(fault.clone());
        }
        let (master, patience, room) = (self.master.clone(), self.patience, Arc::clone(&self.room));
        let (current, trying) = (Arc::clone(&self.current), Arc::clone(&self.trying));
        let begun = Instant::now();
        // Connecting continues, and its result is used, even if nobody waits any more.
        let work = move || {
            *lock(&trying) = Some(begun);
            let result = GatewaySession::start(&master, patience, &room).map(Arc::new);
            *before = match &result {
                Ok(session) => {
                    *lock(&current) = Some(Arc::clone(session));
                    None
                }
                // A master that refuses at once may be back at any moment; one that does not answer is left alone for a while.
                Err(error) if begun.elapsed() > limits::BRIEF => Some((
                    Instant::now(),
                    GatewayFault::unavailable(error.message.clone()),
                )),
                Err(_) => None,
            };
            *lock(&trying) = None;
            result
        };
        self.elsewhere(work)
            .await
            .map_err(|fault| GatewayFault::unavailable(fault.words))
    }

    /// The session to read from: one whose master is connected, or the one before if the master cannot be reached.
    async fn session(&self) -> Result<Arc<GatewaySession>, GatewayFault> {
        let before = match self.current() {
            Some(session) if !session.is_stale() => return Ok(session),
            Some(before) => before,
            None => return self.fresh().await,
        };
        if lock(&self.trying).is_some_and(|since| since.elapsed() > limits::BRIEF) {
            // The master is silent: not every request should wait for it.
            return Ok(before);
        }
        match tokio::time::timeout(limits::BRIEF, self.fresh()).await {
            Ok(Ok(session)) => Ok(session),
            Ok(Err(_)) | Err(_) => Ok(before),
        }
    }

    fn is_open(&self, name: &str) -> bool {
        self.current()
            .is_some_and(|session| session.find(name).is_some())
    }

    /// Opens a set by name, unless it is open.
    pub(super) async fn open(&self, name: &str) -> Result<GatewayOpenSet, GatewayFault> {
        let session = self.session().await?;
        if let Some(set) = session.find(name) {
            return Ok(GatewayOpenSet { session, set });
        }
        // One after the other, so that the second request finds the set open.
        let _alone = self.opening.lock().await;
        let mut session = self.fresh().await?;
        if let Some(set) = session.find(name) {
            return Ok(GatewayOpenSet { session, set });
        }
        if session.open().len() >= limits::SETS {
            session.inner.stale.store(true, Ordering::Relaxed);
            session = self.fresh().await?;
        }
        let (inner, asked) = (Arc::clone(&session.inner), name.to_owned());
        let set = self.elsewhere(move || inner.client.open(&asked)).await?;
        if let Some(fault) = set.about.fault() {
            return Err(GatewayFault::new(
                hyper::StatusCode::BAD_GATEWAY,
                format!("the master's description of the set {name} is invalid: {fault}"),
            ));
        }
        let set = Arc::new(set);
        session.open().insert(name.to_owned(), Arc::clone(&set));
        Ok(GatewayOpenSet { session, set })
    }

    /// Forgets an open set that may have been loaded again under its name.
    fn forget(&self, open: &GatewayOpenSet) {
        let mut sets = open.session.open();
        if sets
            .get(&open.set.about.name)
            .is_some_and(|known| known.id == open.set.id)
        {
            sets.remove(&open.set.about.name);
        }
    }

    /// The checksum of a block as the master knows it; `None` if the master cannot be asked. The set may be opened anew for this.
    pub(super) async fn checksum(
        &self,
        open: &mut GatewayOpenSet,
        number: u64,
    ) -> Result<Option<u32>, GatewayFault> {
        for again in [true, false] {
            let (inner, set) = (Arc::clone(&open.session.inner), open.set.id);
            match self
                .elsewhere(move || inner.client.map(set, number, 1))
                .await
            {
                Ok(rows) => match rows.first().filter(|row| !row.places.is_empty()) {
                    Some(row) => return Ok(Some(row.checksum)),
                    None => {
                        return Err(GatewayFault::of_block(
                            &open.set.about.name,
                            number,
                            &GatewayBlockFailure::Why(Why::NoBlock),
                        ));
                    }
                },
                Err(fault) if fault.status == hyper::StatusCode::NOT_FOUND && again => {
                    self.forget(open);
                    *open = self.open(&open.set.about.name).await?;
                }
                Err(fault) if fault.status == hyper::StatusCode::NOT_FOUND => return Err(fault),
                Err(_) => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The set as it is at the master: if it was loaded again under its name, it is opened anew.
    pub(super) async fn open_now(&self, name: &str) -> Result<GatewayOpenSet, GatewayFault> {
        let mut open = self.open(name).await?;
        match self.checksum(&mut open, 0).await {
            // Only its first block may be missing; the set itself is there.
            Err(fault) if !self.is_open(name) => Err(fault),
            _ => Ok(open),
        }
    }

    /// Whether it makes sense to request a failed block again, with the set opened anew.
    pub(super) async fn mend(&self, open: &GatewayOpenSet, failure: &GatewayBlockFailure) -> bool {
        match failure {
            GatewayBlockFailure::Why(Why::NoSet | Why::NoSession) => self.forget(open),
            GatewayBlockFailure::Why(Why::NoServer) | GatewayBlockFailure::Words(_)
                if open.session.is_stale() => {}
            // Not for this request, which has waited long enough, but for later ones, in case the master was lost silently.
            GatewayBlockFailure::Late => {
                let _ = self.fresh().await;
                return false;
            }
            _ => return false,
        }
        self.fresh().await.is_ok()
    }

    /// Reads a block of an open set; opens the set anew if that may help.
    pub(super) async fn block(
        &self,
        open: &mut GatewayOpenSet,
        number: u64,
    ) -> Result<GatewayBlock, GatewayFault> {
        let name = open.set.about.name.clone();
        let mut again = true;
        loop {
            let length = open.set.about.length(number);
            let failure = if length == 0 {
                GatewayBlockFailure::Why(Why::NoBlock)
            } else {
                match open.session.desk().one(open.set.id, number, length).await {
                    Ok(Ok(came)) => return Ok(came),
                    Ok(Err(failure)) => failure,
                    Err(_) => GatewayBlockFailure::Words("the gateway is shutting down".into()),
                }
            };
            if !again || !self.mend(open, &failure).await {
                return Err(GatewayFault::of_block(&name, number, &failure));
            }
            again = false;
            *open = self.open(&name).await?;
        }
    }

    /// All sets and servers of the master.
    pub(super) async fn list(&self) -> Result<(Vec<SetInfo>, Vec<ServerInfo>), GatewayFault> {
        let session = self.fresh().await?;
        self.elsewhere(move || session.inner.client.list()).await
    }
}
