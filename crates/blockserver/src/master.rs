//! The master at work: a thread that receives and one that sends for each connection, one that remembers. All decisions
//! are the machine's (`stackline_blocks::master`).

use crate::connection::{self, Ended, Sender};
use crate::server::now;
use crate::store::Store;
use stackline_blocks::limits;
use stackline_blocks::master::{Actions, Change, Master, stamp_master_out};
use stackline_blocks::wire::control::Refused;
use stackline_blocks::wire::greeting::{Key, Role};
use stackline_blocks::wire::message::{Message, Why};
use stackline_core::error::{Error, Result};
use std::collections::BTreeMap;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Messages that may wait for one connection; who does not take them is let go.
const WAITING: usize = 1024;
/// A server that has said nothing for so long is down: its machine hangs, or is not reached any more.
const SILENCE: Duration = Duration::from_millis(limits::HEARTBEAT_MS.1);
/// Stack of each thread.
const STACK: usize = 256 << 10;

/// How a master is to be.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The key that writes need, where there is one.
    pub key: Option<Key>,
    /// Hears what happens that somebody should know.
    pub say: fn(&str),
}

struct Outbox {
    queue: SyncSender<Message>,
    stream: TcpStream,
}

struct State {
    machine: Master,
    outboxes: BTreeMap<u64, Outbox>,
    /// Actions on their way to be remembered.
    on_their_way: usize,
    /// Why it ended by itself.
    failure: Option<Error>,
}

struct Shared {
    state: Mutex<State>,
    options: Options,
    jobs: mpsc::Sender<Actions>,
    next: AtomicU64,
    stopped: AtomicBool,
}

/// A master that runs.
#[derive(Clone)]
pub struct Running {
    shared: Arc<Shared>,
    address: SocketAddr,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Starts a master that remembers in that directory.
///
/// # Errors
/// When it cannot listen, or what it remembers cannot be read.
pub fn start(options: Options, data: &Path) -> Result<Running> {
    let failed = |error: std::io::Error| Error::environment(format!("the master cannot be started: {error}"));
    std::fs::create_dir_all(data).map_err(|error| {
        Error::environment(format!("the directory {} cannot be made: {error}", data.display()))
            .hint("--data DIRECTORY names another place for what the master remembers")
    })?;
    let path = data.join("master.redb");
    let store = Store::open(&path)?;
    let mut machine = Master::default();
    store.recall(&path, |change| machine.remember(change))?;
    let listener = TcpListener::bind(options.listen).map_err(|error| {
        Error::environment(format!("nothing can listen at {}: {error}", options.listen))
            .hint("is another master there? --listen HOST:PORT names another place")
    })?;
    let address = listener.local_addr().map_err(failed)?;
    let (jobs, waiting) = mpsc::channel();
    let state = Mutex::new(State { machine, outboxes: BTreeMap::new(), on_their_way: 0, failure: None });
    let shared = Arc::new(Shared { state, options, jobs, next: AtomicU64::new(1), stopped: AtomicBool::new(false) });
    let remembering = Arc::clone(&shared);
    spawn("remember", move || remembering.remember(&store, &waiting, address)).map_err(failed)?;
    let accepting = Arc::clone(&shared);
    spawn("accept", move || accepting.listen(&listener)).map_err(failed)?;
    Ok(Running { shared, address })
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name(name.into()).stack_size(STACK).spawn(work)
}

impl Running {
    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether all of its threads have gone after [`Running::stop`].
    #[must_use]
    pub fn is_over(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }

    /// Why it ended by itself, where it did: what it has to remember cannot be written.
    #[must_use]
    pub fn failure(&self) -> Option<Error> {
        self.shared.state().failure.clone()
    }

    /// Ends it: its connections are closed, its threads go.
    pub fn stop(&self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        for outbox in self.shared.state().outboxes.values() {
            let _ = outbox.stream.shutdown(Shutdown::Both);
        }
        let _ = TcpStream::connect(self.address);
        let _ = self.shared.jobs.send(Actions::default());
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listen(self: &Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming() {
            if self.stopped.load(Ordering::SeqCst) {
                return;
            }
            let Ok(stream) = stream else {
                thread::sleep(Duration::from_millis(10));
                continue;
            };
            if Arc::strong_count(self) > 2 * limits::MOST_SESSIONS {
                continue;
            }
            let shared = Arc::clone(self);
            let _ = spawn("client", move || shared.client(stream));
        }
    }

    fn client(self: &Arc<Self>, stream: TcpStream) {
        let Ok((role, (mut receiver, sender))) = connection::accept(stream, self.options.key.as_ref(), None) else {
            return;
        };
        let (Ok(session), Ok(stream)) = (crate::key::number(), receiver.stream().try_clone()) else { return };
        let peer = receiver.stream().peer_addr().ok();
        let connection = self.next.fetch_add(1, Ordering::Relaxed);
        let (queue, waiting) = mpsc::sync_channel(WAITING);
        if spawn("send", move || send(sender, &waiting)).is_err() {
            return;
        }
        {
            let mut state = self.state();
            if let Err(why) = state.machine.connected(connection, role, session) {
                let _ = queue.try_send(Refused { request: 0, why: why as u8, words: why.words().to_owned() }.into());
                return;
            }
            state.outboxes.insert(connection, Outbox { queue, stream });
        }
        if role == Role::Server {
            // Where the system knows no such bound, a server that hangs is one that waits.
            let _ = receiver.stream().set_read_timeout(Some(SILENCE));
        }
        loop {
            let mut message = match receiver.message() {
                Ok(message) => message,
                Err(ended) => {
                    let state = self.state();
                    if let (Ended::Silent, Some(name)) = (ended, state.machine.server_name(connection)) {
                        (self.options.say)(&format!("the server {name} says nothing any more: it counts as down"));
                    }
                    break;
                }
            };
            complete_address(&mut message, peer);
            let mut state = self.state();
            let actions = state.machine.handle(now(), connection, message);
            self.carry_out(&mut state, actions);
        }
        let mut state = self.state();
        state.outboxes.remove(&connection);
        let actions = state.machine.disconnected(connection);
        self.carry_out(&mut state, actions);
    }

    /// What has to be remembered is, before anything of it is sent. Nobody is told of blocks that a master killed now
    /// would not know.
    fn carry_out(&self, state: &mut State, actions: Actions) {
        let waits = !actions.changes.is_empty() || (state.on_their_way > 0 && tells_of_blocks(&actions));
        if waits {
            state.on_their_way += 1;
            // Never more than loaders wait for: each has a bounded number of questions on its way.
            let _ = self.jobs.send(actions);
        } else {
            state.deliver(actions);
        }
    }

    fn remember(&self, store: &Store, waiting: &Receiver<Actions>, address: SocketAddr) {
        while let Ok(first) = waiting.recv() {
            if self.stopped.load(Ordering::SeqCst) {
                return;
            }
            // All that waits is remembered at once.
            let mut all = vec![first];
            all.extend(waiting.try_iter());
            let changes: Vec<Change> =
                all.iter_mut().flat_map(|actions| std::mem::take(&mut actions.changes)).collect();
            let remembered = store.remember(&changes);
            let mut state = self.state();
            state.on_their_way -= all.len();
            for mut actions in all {
                if let Err(error) = &remembered {
                    refuse(&mut actions, &error.message);
                }
                state.deliver(actions);
            }
            if let Err(error) = remembered {
                // What it knows is no longer what it remembers: it ends, and knows the latter when it is started again.
                (self.options.say)(&error.message);
                state.failure = Some(error);
                self.stopped.store(true, Ordering::SeqCst);
                state.outboxes.clear();
                drop(state);
                let _ = TcpStream::connect(address);
                return;
            }
        }
    }
}

/// Whether somebody learns which blocks are written.
fn tells_of_blocks(actions: &Actions) -> bool {
    let tells = |message: &Message| matches!(message, Message::Mapped(_) | Message::Told(_) | Message::Created(_));
    actions.sends.iter().any(|(_, message)| tells(message))
}

/// What was not remembered is not done.
fn refuse(actions: &mut Actions, words: &str) {
    for (_, message) in &mut actions.sends {
        let request = match message {
            Message::Done(done) => done.request,
            Message::Created(created) => created.request,
            Message::Reserved(reserved) => reserved.request,
            Message::Mapped(mapped) => mapped.request,
            Message::Told(told) => told.request,
            _ => continue,
        };
        *message = Refused { request, why: Why::Full as u8, words: words.to_owned() }.into();
    }
}

impl State {
    fn deliver(&mut self, actions: Actions) {
        for (connection, message) in actions.sends {
            let Some(outbox) = self.outboxes.get(&connection) else { continue };
            if outbox.queue.try_send(message).is_err() {
                // It does not take what it asked for.
                let _ = outbox.stream.shutdown(Shutdown::Both);
            }
        }
        for connection in actions.closes {
            // The queue ends behind what is in it; then the sending thread closes.
            self.outboxes.remove(&connection);
        }
    }
}

fn send(mut sender: Sender, waiting: &Receiver<Message>) {
    let mut messages = Vec::new();
    while let Ok(first) = waiting.recv() {
        messages.push(first);
        messages.extend(waiting.try_iter().take(64));
        let at = now();
        messages.iter_mut().for_each(|message| stamp_master_out(message, at));
        if sender.messages(&messages).is_err() {
            break;
        }
        messages.clear();
    }
    let _ = sender.stream().shutdown(Shutdown::Both);
}

/// A server that listens everywhere is where it comes from.
fn complete_address(message: &mut Message, peer: Option<SocketAddr>) {
    if let Message::Join(join) = message
        && let (Ok(address), Some(peer)) = (join.address.parse::<SocketAddr>(), peer)
        && address.ip().is_unspecified()
    {
        let ip = match peer.ip() {
            IpAddr::V6(six) => six.to_ipv4_mapped().map_or(IpAddr::V6(six), IpAddr::V4),
            four => four,
        };
        join.address = SocketAddr::new(ip, address.port()).to_string();
    }
}
