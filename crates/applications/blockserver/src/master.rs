//! Runs the master: two threads per connection, one to receive and one to send, and one thread that stores changes. All decisions are made
//! by the state machine in `stackline_blocks::master`.

mod outbox;

use crate::connection::{self, BlockConnectionEnd, Incoming};
use crate::connection_slots::{BlockConnectionLimits, BlockConnectionSlots};
use crate::master_store::MasterStore;
use crate::notices::Rarely;
use crate::server::now;
use outbox::Outbox;
use stackline_blocks::limits;
use stackline_blocks::master::{Actions, Master, MasterChange};
use stackline_blocks::wire::handshake::{BlockPeerRole, BlockWriteKey};
use stackline_blocks::wire::master_messages::BlockRequestRefused;
use stackline_blocks::wire::message::{Message, Why};
use stackline_core::error::{Error, Result};
use stackline_guard::connection_slots::{ConnectionSlot, ConnectionSlotPool};
use stackline_guard::files;
use stackline_guard::serve::{self, ConnectionService};
use stackline_guard::stop::StopSwitch;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// A server that has said nothing for this long is considered down: its machine hangs or cannot be reached.
const SILENCE: Duration = Duration::from_millis(limits::HEARTBEAT_MS.1);
/// Stack size of each thread, bytes.
const STACK: usize = 256 << 10;

/// The options of a master.
#[derive(Clone, Debug)]
pub struct BlockMasterOptions {
    /// The address on which it listens.
    pub listen: SocketAddr,
    /// The key that writing needs; without one nothing can be written.
    pub key: Option<BlockWriteKey>,
    /// The limits on connections.
    pub places: BlockConnectionLimits,
    /// Called with notices for the operator.
    pub say: fn(&str),
}

/// Actions of the state machine whose messages have been charged to their receivers' outboxes.
struct MasterJob {
    changes: Vec<MasterChange>,
    sends: Vec<(Arc<Outbox>, u64, Message)>,
    closes: Vec<u64>,
    /// The outbox of the requester, and the bytes of the changes, which were charged to it.
    of: Option<(Arc<Outbox>, u64)>,
}

/// The state that is guarded by one lock.
struct MasterServiceState {
    machine: Master,
    outboxes: BTreeMap<u64, Arc<Outbox>>,
    /// The number of jobs whose changes are being stored.
    being_stored: usize,
    /// Why the master ended by itself.
    failure: Option<Error>,
}

struct MasterServiceShared {
    state: Mutex<MasterServiceState>,
    options: BlockMasterOptions,
    jobs: mpsc::Sender<MasterJob>,
    next: AtomicU64,
    stop: StopSwitch,
    places: BlockConnectionSlots,
    /// Bytes that wait for all clients together.
    waiting: Arc<AtomicU64>,
    /// The largest value that `waiting` has had.
    most: AtomicU64,
    /// Clients that were disconnected because they did not read.
    closed: Rarely,
    /// The memory of incomplete messages of all read-only clients.
    incoming: Arc<Incoming>,
}

/// A running master.
#[derive(Clone)]
pub struct RunningMaster {
    shared: Arc<MasterServiceShared>,
    address: SocketAddr,
}

impl std::fmt::Debug for RunningMaster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Starts a master that stores its state in the directory `data`.
///
/// # Errors
/// If it cannot listen, or its stored state cannot be read.
pub fn start(options: BlockMasterOptions, data: &Path) -> Result<RunningMaster> {
    let failed =
        |error: std::io::Error| Error::environment(format!("cannot start the master: {error}"));
    std::fs::create_dir_all(data).map_err(|error| {
        Error::environment(format!(
            "cannot create the directory {}: {error}",
            data.display()
        ))
        .hint("choose another directory for the master's data with --data DIRECTORY")
    })?;
    let path = data.join("master.redb");
    let store = MasterStore::open(&path)?;
    let made = files::sync_name(&path).and_then(|()| files::sync_name(data));
    made.map_err(failed)?;
    let mut machine = Master::default();
    store.recall(&path, |change| machine.remember(change))?;
    let listener = serve::listen_at(options.listen)?;
    let address = listener.local_addr().map_err(failed)?;
    let (jobs, waiting) = mpsc::channel();
    let state = Mutex::new(MasterServiceState {
        machine,
        outboxes: BTreeMap::new(),
        being_stored: 0,
        failure: None,
    });
    let shared = Arc::new(MasterServiceShared {
        state,
        jobs,
        next: AtomicU64::new(1),
        stop: StopSwitch::new().map_err(failed)?,
        places: BlockConnectionSlots::new("the master".into(), options.places),
        waiting: Arc::default(),
        most: AtomicU64::new(0),
        closed: Rarely::default(),
        incoming: Arc::default(),
        options,
    });
    let remembering = Arc::clone(&shared);
    spawn("remember", move || remembering.remember(&store, &waiting)).map_err(failed)?;
    let accepting = Arc::clone(&shared);
    spawn("accept", move || {
        let next = || serve::accept_tcp(&listener, &accepting.stop);
        serve::serve_connections(&accepting, &accepting.stop, next);
    })
    .map_err(failed)?;
    Ok(RunningMaster { shared, address })
}

fn spawn(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> std::io::Result<thread::JoinHandle<()>> {
    thread_of(name).spawn(work)
}

fn thread_of(name: &str) -> thread::Builder {
    thread::Builder::new().name(name.into()).stack_size(STACK)
}

impl RunningMaster {
    /// The address on which it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether all of its threads have gone after [`RunningMaster::stop`].
    #[must_use]
    pub fn is_over(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }

    /// Why it ended by itself, if it did: its changes cannot be stored.
    #[must_use]
    pub fn failure(&self) -> Option<Error> {
        self.shared.state().failure.clone()
    }

    /// The most bytes that have waited for all clients at the same time.
    #[must_use]
    pub fn most_waiting(&self) -> u64 {
        self.shared.most.load(Ordering::Relaxed)
    }

    /// Stops the master: its connections are closed and its threads end.
    pub fn stop(&self) {
        self.shared.stop.stop();
        for outbox in self.shared.state().outboxes.values() {
            outbox.end(None);
        }
        let _ = self.shared.jobs.send(MasterJob {
            changes: Vec::new(),
            sends: Vec::new(),
            closes: Vec::new(),
            of: None,
        });
    }
}

impl ConnectionService for MasterServiceShared {
    type Connection = TcpStream;

    fn thread(&self) -> thread::Builder {
        thread_of("client")
    }

    fn strangers(&self) -> &Arc<ConnectionSlotPool> {
        self.places.strangers()
    }

    fn end_of(&self, stream: &TcpStream) -> std::io::Result<impl FnOnce() + Send + 'static> {
        self.places.end_of_stranger(stream)
    }

    fn has_room(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) <= self.options.places.threads()
    }

    fn serve(self: Arc<Self>, stream: TcpStream, place: ConnectionSlot) {
        self.client(stream, place);
    }
}

impl MasterServiceShared {
    fn state(&self) -> MutexGuard<'_, MasterServiceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn client(self: &Arc<Self>, stream: TcpStream, place: ConnectionSlot) {
        let Ok((role, (mut receiver, sender))) =
            connection::accept_connection(stream, self.options.key.as_ref(), None)
        else {
            return;
        };
        let mut seat = match self.places.known(role, sender.stream()) {
            Ok(seat) => seat,
            Err(words) => return connection::send_away(sender.stream(), &words),
        };
        drop(place);
        if role == BlockPeerRole::Client {
            receiver.bound(limits::LONGEST_QUESTION, &self.incoming);
        }
        let (Ok(session), Ok(stream)) = (
            crate::key::generate_identity(),
            receiver.stream().try_clone(),
        ) else {
            return;
        };
        let peer = receiver.stream().peer_addr().ok();
        let connection = self.next.fetch_add(1, Ordering::Relaxed);
        let outbox = Outbox::new(
            stream,
            (role != BlockPeerRole::Server).then(|| Arc::clone(&self.waiting)),
        );
        {
            let mut state = self.state();
            if let Err(why) = state.machine.connected(connection, role, session) {
                return connection::send_away(sender.stream(), why.words());
            }
            state.outboxes.insert(connection, Arc::clone(&outbox));
        }
        let sending = Arc::clone(&outbox);
        if spawn("send", move || sending.send(sender)).is_ok() {
            if role == BlockPeerRole::Server {
                // If the timeout cannot be set, a server that hangs is just waited for.
                let _ = receiver.stream().set_read_timeout(Some(SILENCE));
            }
            self.hear(connection, &mut receiver, &outbox, || seat.touch(), peer);
        }
        let mut state = self.state();
        state.outboxes.remove(&connection);
        let actions = state.machine.disconnected(connection);
        self.carry_out(&mut state, actions, None);
        drop(state);
        outbox.close();
    }

    /// Handles the messages of a connection until it ends.
    fn hear(
        &self,
        connection: u64,
        receiver: &mut connection::BlockMessageReceiver,
        outbox: &Arc<Outbox>,
        mut touch: impl FnMut(),
        peer: Option<SocketAddr>,
    ) {
        // A client that does not take its answers cannot make further requests.
        while outbox.wait_below(limits::ANSWERS) {
            let mut message = match receiver.message() {
                Ok(message) => message,
                Err(ended) => {
                    let state = self.state();
                    if let (BlockConnectionEnd::Silent, Some(name)) =
                        (ended, state.machine.server_name(connection))
                    {
                        (self.options.say)(&format!(
                            "the server {name} no longer answers: it is considered down"
                        ));
                    }
                    return;
                }
            };
            touch();
            complete_address(&mut message, peer);
            let mut state = match message {
                Message::List(_) => self.when_servers_have_room(),
                _ => self.state(),
            };
            let actions = state.machine.handle(now(), connection, message);
            self.carry_out(&mut state, actions, Some(outbox));
        }
    }

    /// The state, once no server has too many lists waiting: a client that requests more than servers take has to wait.
    fn when_servers_have_room(&self) -> MutexGuard<'_, MasterServiceState> {
        loop {
            let state = self.state();
            let servers = state
                .machine
                .connections_of_servers()
                .filter_map(|server| state.outboxes.get(&server));
            let Some(full) = servers
                .into_iter()
                .find(|outbox| outbox.bytes() >= limits::LISTS)
                .map(Arc::clone)
            else {
                return state;
            };
            drop(state);
            full.wait_below(limits::LISTS);
        }
    }

    /// Carries out actions: changes are stored before any message is sent. A message that shows which blocks are written also waits for
    /// changes that are being stored, so that it mentions no block that the master would not know after a crash.
    fn carry_out(
        &self,
        state: &mut MasterServiceState,
        actions: Actions,
        asked: Option<&Arc<Outbox>>,
    ) {
        actions
            .notes
            .iter()
            .for_each(|note| (self.options.say)(note));
        let waits = !actions.changes.is_empty()
            || (state.being_stored > 0 && reveals_written_blocks(&actions));
        let job = self.charged(state, actions, asked);
        if waits {
            state.being_stored += 1;
            // The queue stays bounded: each job is charged to the requester's outbox.
            let _ = self.jobs.send(job);
        } else {
            state.deliver(job);
        }
    }

    /// Charges messages to their receivers, and changes to the requester. Disconnects receivers for which too much waits.
    fn charged(
        &self,
        state: &mut MasterServiceState,
        actions: Actions,
        asked: Option<&Arc<Outbox>>,
    ) -> MasterJob {
        let Actions {
            changes,
            sends,
            closes,
            ..
        } = actions;
        let charge = |(connection, message): (u64, Message)| {
            let outbox = state.outboxes.get(&connection)?;
            let bytes = message.weight();
            outbox.charge(bytes);
            if outbox.bytes() > limits::MOST_WAITING {
                outbox.end(None);
                self.report_closed();
            }
            Some((Arc::clone(outbox), bytes, message))
        };
        let sends = sends.into_iter().filter_map(charge).collect();
        let of = asked.filter(|_| !changes.is_empty()).map(|outbox| {
            let bytes = changes.iter().map(MasterChange::weight).sum();
            outbox.charge(bytes);
            (Arc::clone(outbox), bytes)
        });
        let waiting = self.waiting.load(Ordering::Relaxed);
        self.most.fetch_max(waiting, Ordering::Relaxed);
        if waiting > limits::ALL_ANSWERS {
            self.let_go(state);
        }
        MasterJob {
            changes,
            sends,
            closes,
            of,
        }
    }

    /// Disconnects the client for which the most bytes wait, because too much waits for all.
    fn let_go(&self, state: &MasterServiceState) {
        let servers: Vec<u64> = state.machine.connections_of_servers().collect();
        let clients = state
            .outboxes
            .iter()
            .filter(|(connection, _)| !servers.contains(connection));
        if let Some((_, outbox)) = clients.max_by_key(|(_, outbox)| outbox.bytes()) {
            outbox.end(None);
            self.report_closed();
        }
    }

    fn report_closed(&self) {
        if let Some(count) = self.closed.happened(std::time::Instant::now()) {
            (self.options.say)(&format!(
                "connections closed because their peers left too much data unread: {count}"
            ));
        }
    }

    fn remember(&self, store: &MasterStore, waiting: &Receiver<MasterJob>) {
        while let Ok(first) = waiting.recv() {
            if self.stop.is_stopped() {
                return;
            }
            // All waiting jobs are stored in one transaction.
            let mut all = vec![first];
            all.extend(waiting.try_iter());
            let changes: Vec<MasterChange> = all
                .iter_mut()
                .flat_map(|job| std::mem::take(&mut job.changes))
                .collect();
            let remembered = store.remember(&changes);
            let mut state = self.state();
            state.being_stored -= all.len();
            drop(changes);
            for mut job in all {
                if let Err(error) = &remembered {
                    refuse(&mut job, &error.message);
                }
                state.deliver(job);
            }
            if let Err(error) = remembered {
                // The state in memory is ahead of the stored one, so the master ends; when it is restarted, it continues from the stored
                // state.
                (self.options.say)(&error.message);
                state.failure = Some(error);
                self.stop.stop();
                state.outboxes.values().for_each(|outbox| outbox.close());
                state.outboxes.clear();
                drop(state);
                return;
            }
        }
    }
}

/// Whether a message shows which blocks are written.
fn reveals_written_blocks(actions: &Actions) -> bool {
    let reveals = |message: &Message| {
        matches!(
            message,
            Message::Mapped(_) | Message::Inventory(_) | Message::Created(_)
        )
    };
    actions.sends.iter().any(|(_, message)| reveals(message))
}

/// Replaces the answers of a job whose changes could not be stored by refusals.
fn refuse(job: &mut MasterJob, words: &str) {
    for (_, _, message) in &mut job.sends {
        let request = match message {
            Message::Done(done) => done.request,
            Message::Created(created) => created.request,
            Message::Reserved(reserved) => reserved.request,
            Message::Mapped(mapped) => mapped.request,
            Message::Inventory(inventory) => inventory.request,
            _ => continue,
        };
        *message = BlockRequestRefused {
            request,
            why: Why::Memory as u8,
            words: words.to_owned(),
        }
        .into();
    }
}

impl MasterServiceState {
    fn deliver(&mut self, job: MasterJob) {
        job.sends
            .into_iter()
            .for_each(|(outbox, charged, message)| outbox.put(charged, message));
        for connection in job.closes {
            if let Some(outbox) = self.outboxes.remove(&connection) {
                outbox.close();
            }
        }
        if let Some((outbox, bytes)) = job.of {
            outbox.discharge(bytes);
        }
    }
}

/// If a joining server listens on all addresses, its address becomes the one from which it connects.
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
