//! The client library: open a set, ask for lists of blocks, take blocks as they come with the time stamps of every hop.
//!
//! ```no_run
//! use stackline_blockserver::client::{BlockClient, BlockClientEvent, BlockClientOptions};
//! # fn main() -> stackline_core::error::Result<()> {
//! let client = BlockClient::connect("10.0.0.5:7480", BlockClientOptions::default())?;
//! let map = client.open("kansas")?;
//! client.request(map.id, vec![17, 18, 42], true)?;
//! while let Some(BlockClientEvent::Block(block)) = client.next(None) {
//!     println!("block {}: {} bytes", block.head.number, block.data.len());
//! }
//! # Ok(()) }
//! ```
//!
//! One thread receives from the master, and one from each server. Events wait in a bounded queue: an application that takes blocks slowly
//! slows down the servers, and nothing else. When the master is gone, lists go directly to the servers; when a server is gone, its blocks
//! are requested from other copies, or reported as failed.

mod event;
mod event_queue;
mod lists;
mod master_link;
mod server_links;

use crate::connection::{self, BlockMessageSender};
use crate::list_file;
use crate::server::now;
use event::lock;
pub use event::{BlockClientEvent, ReceivedBlock};
use event_queue::BlockEventQueue;
use server_links::DiskServerLink;
use stackline_blocks::client::{BlockArrival, Tally};
use stackline_blocks::limits;
use stackline_blocks::set::BlockSet;
use stackline_blocks::wire::handshake::{BlockPeerRole, BlockWriteKey};
use stackline_blocks::wire::master_messages::{
    Ask, BlockInventoryReply, BlockMapEntry, Commit, Create, Created, Delete, Map, OpenSetRequest,
    Reserve, ServerInfo, SetInfo,
};
use stackline_blocks::wire::message::{BlockDataTransport, Message, Why};
use stackline_blocks::wire::server_messages::BlockHead;
use stackline_core::error::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Shutdown;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How long the master may take for an answer.
const ANSWER: Duration = Duration::from_secs(30);
/// For sets of at most this many blocks the client fetches the places of all blocks, so that it can read them without the master.
const MAPPED: u64 = 1 << 18;
/// Stack size of each thread, bytes.
const STACK: usize = 256 << 10;

/// The options of a client.
#[derive(Clone, Debug)]
pub struct BlockClientOptions {
    /// The key, if sets are to be written.
    pub key: Option<BlockWriteKey>,
    /// How blocks travel from the servers.
    pub transport: BlockDataTransport,
    /// Blocks that were requested longer ago than this are dropped at the server, ns.
    pub age: Option<u64>,
    /// Bytes of the receive buffer of each connection; `None`: the system's default.
    pub receive_buffer: Option<usize>,
    /// Bytes per second at which the datagrams of each server leave, for UDP and RTP; `None`: as fast as possible.
    pub pace: Option<u64>,
    /// Whether the data of blocks is dropped on arrival.
    pub discard: bool,
    /// Whether the checksums of blocks are compared.
    pub check: bool,
    /// Whether servers report which blocks a newer list discards.
    pub report: bool,
    /// The unit of the first block; `None`: a random one, so that several clients have different units.
    pub first_unit: Option<u64>,
    /// A file to which all lists are written.
    pub capture: Option<PathBuf>,
}

impl Default for BlockClientOptions {
    fn default() -> Self {
        Self {
            key: None,
            transport: BlockDataTransport::Tcp,
            age: None,
            receive_buffer: None,
            pace: None,
            discard: false,
            check: true,
            report: false,
            first_unit: None,
            capture: None,
        }
    }
}

/// An open set.
#[derive(Clone, Debug)]
pub struct OpenSet {
    /// The set's number, which its master never uses for another set.
    pub id: u32,
    /// The identity of the master: with the number it identifies the data.
    pub master: u128,
    /// The set's description.
    pub about: BlockSet,
}

/// A list that was sent.
#[derive(Clone, Copy, Debug)]
pub struct SentList {
    /// The unit of its first block; the following blocks have the following units.
    pub first_unit: u64,
    /// Its serial number among all lists of the client.
    pub serial: u64,
    /// What became of the list that it superseded, if any.
    pub before: Option<Tally>,
}

/// What the client knows.
#[derive(Default)]
struct BlockClientState {
    machine: stackline_blocks::BlockClientMachine,
    /// The places of all blocks, for sets that are small enough.
    rows: BTreeMap<u32, Vec<BlockMapEntry>>,
    /// The copies (server, disk) of a block that failed.
    failed: BTreeMap<(u32, u64), BTreeSet<(u16, u16)>>,
    /// The session number that the master gave.
    session: u128,
    /// The servers, as the master described them.
    servers: BTreeMap<u16, ServerInfo>,
    /// Why servers that are up at the master cannot be reached from here.
    away: BTreeMap<u16, String>,
    /// By server and disk: blocks whose data was damaged.
    damaged: BTreeMap<(u16, u16), Damaged>,
    /// How often everything that was requested of a set was withdrawn.
    withdrawn: BTreeMap<u32, u64>,
    /// The master's words if it closed the connection with a reason.
    sent_away: Option<String>,
}

/// Damaged copies of one disk.
#[derive(Default)]
struct Damaged {
    blocks: BTreeSet<(u32, u64)>,
    /// The number of these blocks for which another copy was requested.
    covered: u64,
}

/// What the threads of a client share.
struct BlockClientShared {
    options: BlockClientOptions,
    known: Mutex<BlockClientState>,
    /// Sends to the master; `None` if the master is gone.
    master: Mutex<Option<BlockMessageSender>>,
    /// Where the answer to each pending request is delivered, by request number.
    answers: Mutex<BTreeMap<u32, SyncSender<Message>>>,
    /// The connections to disk servers, by their numbers.
    links: Mutex<BTreeMap<u16, DiskServerLink>>,
    reaching: server_links::Reaching,
    events: BlockEventQueue,
    next_request: AtomicU32,
    capture: Option<Mutex<list_file::BlockListWriter>>,
    closed: AtomicBool,
}

/// A client of the block server.
pub struct BlockClient {
    shared: Arc<BlockClientShared>,
}

impl std::fmt::Debug for BlockClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("options", &self.shared.options)
            .finish_non_exhaustive()
    }
}

impl BlockClient {
    /// Connects to a master: for reading and writing if the options have a key, otherwise for reading.
    ///
    /// # Errors
    /// As for [`connection::connect`].
    pub fn connect(master: &str, options: BlockClientOptions) -> Result<Self> {
        if options.pace.is_some()
            && !matches!(
                options.transport,
                BlockDataTransport::Udp | BlockDataTransport::Rtp
            )
        {
            return Err(Error::input("only datagrams can be paced")
                .hint("use the udp or rtp transport; tcp and blast pace themselves"));
        }
        let role = if options.key.is_some() {
            BlockPeerRole::Loader
        } else {
            BlockPeerRole::Client
        };
        let (receiver, sender) = connection::connect(master, role, options.key.as_ref(), None)?;
        // Units count on from here: multiples of 2^20 keep clients apart, and stay far below 2^64.
        let drawn = || (crate::key::generate_identity().unwrap_or(1) as u64 >> 24) << 20;
        let first_unit = options.first_unit.unwrap_or_else(drawn);
        let capture = options
            .capture
            .as_deref()
            .map(list_file::BlockListWriter::create)
            .transpose()?
            .map(Mutex::new);
        let machine = stackline_blocks::BlockClientMachine::new(first_unit);
        let known = BlockClientState {
            machine,
            ..BlockClientState::default()
        };
        let shared = Arc::new(BlockClientShared {
            options,
            known: Mutex::new(known),
            master: Mutex::new(Some(sender)),
            answers: Mutex::default(),
            links: Mutex::default(),
            reaching: server_links::Reaching::default(),
            events: BlockEventQueue::default(),
            next_request: AtomicU32::new(1),
            capture,
            closed: AtomicBool::new(false),
        });
        let listening = Arc::clone(&shared);
        thread::Builder::new()
            .name("master".into())
            .stack_size(STACK)
            .spawn(move || listening.hear_master(receiver))
            .map_err(|error| Error::environment(format!("cannot start a thread: {error}")))?;
        Ok(Self { shared })
    }

    /// Opens a set and connects to its servers that are up. A server that does not answer within two seconds is reported as gone; trying
    /// continues, and it is reported when it is reached.
    ///
    /// # Errors
    /// If there is no such set, or the master does not answer.
    pub fn open(&self, name: &str) -> Result<OpenSet> {
        let answer = self.shared.ask(|request| {
            OpenSetRequest {
                request,
                name: name.to_owned(),
            }
            .into()
        })?;
        let Message::Opened(opened) = answer else {
            return Err(refusal(&answer));
        };
        if let Some(fault) = opened.about.fault() {
            return Err(Error::environment(format!(
                "the master's description of the set {name} is invalid: {fault}"
            )));
        }
        {
            let mut known = lock(&self.shared.known);
            known.machine.opened(opened.set, opened.about.clone());
            known.session = opened.session;
            known.servers.extend(
                opened
                    .servers
                    .iter()
                    .map(|server| (server.id, server.clone())),
            );
        }
        self.shared
            .reach(&opened.servers, opened.session, server_links::REACHING);
        if opened.about.blocks() <= MAPPED {
            let rows = self.map(opened.set, 0, opened.about.blocks())?;
            lock(&self.shared.known).rows.insert(opened.set, rows);
        }
        Ok(OpenSet {
            id: opened.set,
            master: opened.master,
            about: opened.about,
        })
    }

    /// The places of `count` blocks from `first` on.
    ///
    /// # Errors
    /// If the master does not answer.
    pub fn map(&self, set: u32, first: u64, count: u64) -> Result<Vec<BlockMapEntry>> {
        let mut rows = Vec::new();
        while (rows.len() as u64) < count {
            let first = first + rows.len() as u64;
            let left = (count - rows.len() as u64).min(limits::LONGEST_BATCH as u64);
            let answer = self.shared.ask(|request| {
                Map {
                    request,
                    set,
                    first,
                    count: left as u32,
                }
                .into()
            })?;
            let Message::Mapped(mapped) = answer else {
                return Err(refusal(&answer));
            };
            // An empty answer would be asked for again without end.
            if mapped.rows.is_empty() {
                break;
            }
            rows.extend(mapped.rows);
        }
        Ok(rows)
    }

    /// Requests blocks. A list that supersedes discards what is pending of its set.
    ///
    /// # Errors
    /// If the set is not open, the list is too long, or neither the master nor a server can be reached.
    pub fn request(&self, set: u32, blocks: Vec<u64>, supersedes: bool) -> Result<SentList> {
        self.shared.request(set, blocks, supersedes, false)
    }

    /// Requests blocks directly from the servers, whose places of blocks are known, without the master.
    ///
    /// # Errors
    /// As for [`BlockClient::request`].
    pub fn request_directly(
        &self,
        set: u32,
        blocks: Vec<u64>,
        supersedes: bool,
    ) -> Result<SentList> {
        self.shared.request(set, blocks, supersedes, true)
    }

    /// Waits for the next event; `None` if none comes within the time.
    pub fn next(&self, within: Option<Duration>) -> Option<BlockClientEvent> {
        let until = within.map(|within| std::time::Instant::now() + within);
        loop {
            let left =
                until.map(|until| until.saturating_duration_since(std::time::Instant::now()));
            let (mut event, before) = self.shared.events.take(left)?;
            // It was withdrawn after the event had been queued.
            let is_old = |set: u32| lock(&self.shared.known).withdrawals(set) > before;
            match &mut event {
                BlockClientEvent::Block(block) => {
                    block.wanted = block.wanted && !is_old(block.head.set)
                }
                BlockClientEvent::Failed { set, .. } if is_old(*set) => continue,
                _ => {}
            }
            return Some(event);
        }
    }

    /// Puts a block back that was taken with [`BlockClient::next`], which will return it again.
    pub fn give_back(&self, block: Box<ReceivedBlock>) {
        let withdrawals = lock(&self.shared.known).withdrawals(block.head.set);
        self.shared
            .events
            .put_again(BlockClientEvent::Block(block), withdrawals);
    }

    /// Withdraws everything that was requested of a set: blocks that are not taken yet, or still come, are unwanted.
    ///
    /// # Errors
    /// As for [`BlockClient::request`].
    pub fn withdraw(&self, set: u32) -> Result<()> {
        self.shared.withdraw(set)
    }

    /// Notes for the user about servers that do not answer and disks with damaged blocks, a sentence each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let known = lock(&self.shared.known);
        let away = known
            .away
            .iter()
            .map(|(id, words)| format!("{}: {words}", known.server(*id)));
        let damaged = known.damaged.iter().map(|(place, damaged)| {
            let all = damaged.blocks.len() as u64;
            let blocks = |count: u64| {
                if count == 1 {
                    "1 block".to_owned()
                } else {
                    format!("{count} blocks")
                }
            };
            let holder = known.disk(place.0, place.1);
            match damaged.covered {
                0 if all == 1 => format!("{holder} holds a damaged block"),
                0 => format!("{holder} holds {all} damaged blocks"),
                covered => format!(
                    "{} came from another copy: {holder} holds damaged data",
                    blocks(covered)
                ),
            }
        });
        away.chain(damaged).collect()
    }

    /// The copies of a block that failed, each as words with server and disk.
    #[must_use]
    pub fn failed_copies(&self, set: u32, number: u64) -> Vec<String> {
        let known = lock(&self.shared.known);
        let places = known.failed.get(&(set, number)).into_iter().flatten();
        places
            .map(|(server, disk)| known.disk(*server, *disk))
            .collect()
    }

    /// The number of blocks of a set that are wanted and have not come.
    #[must_use]
    pub fn waiting(&self, set: u32) -> usize {
        lock(&self.shared.known).machine.waiting(set)
    }

    /// Ends the current lists of all sets, and returns what became of them.
    #[must_use]
    pub fn finish(&self) -> Vec<Tally> {
        lock(&self.shared.known).machine.finish()
    }

    /// All sets and servers of the master.
    ///
    /// # Errors
    /// If the master does not answer.
    pub fn list(&self) -> Result<(Vec<SetInfo>, Vec<ServerInfo>)> {
        match self.shared.ask(|request| Ask { request }.into())? {
            Message::Inventory(BlockInventoryReply { sets, servers, .. }) => Ok((sets, servers)),
            other => Err(refusal(&other)),
        }
    }

    /// Deletes a set.
    ///
    /// # Errors
    /// If there is no such set, or this client may not write.
    pub fn delete(&self, name: &str) -> Result<()> {
        self.shared.done(|request| {
            Delete {
                request,
                name: name.to_owned(),
            }
            .into()
        })
    }

    /// Whether the master is connected, as far as is known.
    pub(crate) fn has_master(&self) -> bool {
        lock(&self.shared.master).is_some()
    }

    pub(crate) fn create(&self, about: &BlockSet) -> Result<Created> {
        match self.shared.ask(|request| {
            Create {
                request,
                about: about.clone(),
            }
            .into()
        })? {
            Message::Created(created) => Ok(created),
            other => Err(refusal(&other)),
        }
    }

    pub(crate) fn reserve(
        &self,
        set: u32,
        blocks: &[u64],
        given: &[u32],
    ) -> Result<Vec<BlockMapEntry>> {
        let (blocks, given) = (blocks.to_vec(), given.to_vec());
        match self.shared.ask(|request| {
            Reserve {
                request,
                set,
                blocks,
                given,
            }
            .into()
        })? {
            Message::Reserved(reserved) => Ok(reserved.rows),
            other => Err(refusal(&other)),
        }
    }

    pub(crate) fn commit(&self, commit: impl FnOnce(u32) -> Commit) -> Result<()> {
        self.shared.done(|request| commit(request).into())
    }
}

impl Drop for BlockClient {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        self.shared.events.close();
        if let Some(master) = lock(&self.shared.master).take() {
            let _ = master.stream().shutdown(Shutdown::Both);
        }
        for link in lock(&self.shared.links).values() {
            link.close();
        }
    }
}

/// The error for a message that is not the expected answer, mostly a refusal.
pub(crate) fn refusal(message: &Message) -> Error {
    let Message::Refused(refused) = message else {
        return Error::environment("the answer does not match the request");
    };
    let words = refused.words.clone();
    match Why::from_number(refused.why) {
        Why::NoSet => Error::input(words).hint("`stackline blocks list` shows the existing sets"),
        Why::Busy => Error::input(words).hint("choose another name, or delete the old set first with `stackline blocks delete`"),
        Why::Key => Error::input(words).hint("writing needs a key: create one with `stackline blocks key`"),
        Why::Full => Error::environment(words)
            .hint("add a server or a disk: the space of deleted sets is not reused"),
        Why::Memory => Error::environment(words).hint(
            "free space on the disk that holds the master's --data, then restart the master: acknowledged data is kept",
        ),
        Why::NoBlock | Why::Malformed => Error::input(words),
        _ => Error::environment(words),
    }
}

fn not_open(set: u32) -> Error {
    Error::input(format!("the set {set} is not open"))
}

/// A hint for errors about a lost master.
pub(crate) const READ_ON: &str = "open sets can still be read";

fn master_gone(sent_away: Option<&String>) -> Error {
    match sent_away {
        Some(words) => {
            Error::environment(words.clone()).hint("try again, or close other clients first")
        }
        None => Error::environment("the master is gone").hint(READ_ON),
    }
}

impl BlockClientState {
    /// How often everything that was requested of a set was withdrawn. A thread that reports a block has to read this under the same lock
    /// as what it reports, so that a later withdrawal covers the report.
    fn withdrawals(&self, set: u32) -> u64 {
        self.withdrawn.get(&set).copied().unwrap_or(0)
    }

    /// `server s1 at 10.0.0.6:7490`.
    fn server(&self, id: u16) -> String {
        let info = self.servers.get(&id);
        info.map_or_else(
            || format!("server {id}"),
            |info| format!("server {} at {}", info.name, info.address),
        )
    }

    /// `server s1, disk /data/a`.
    fn disk(&self, server: u16, disk: u16) -> String {
        let info = self.servers.get(&server);
        let name = info.map_or_else(|| server.to_string(), |info| info.name.clone());
        let path = info
            .and_then(|info| info.disks.get(usize::from(disk)))
            .map(|disk| disk.path.clone());
        format!(
            "server {name}, disk {}",
            path.unwrap_or_else(|| disk.to_string())
        )
    }
}

impl BlockClientShared {
    /// Reports an event that belongs to no set.
    fn report_event(&self, event: BlockClientEvent) {
        self.events.put(event, 0);
    }

    /// Reports what became of a block; `withdrawals` is the set's count when that was learned.
    fn report_block_event(&self, event: BlockClientEvent, withdrawals: u64) {
        self.events.put(event, withdrawals);
    }

    // --- the master ---

    /// Sends a message to the master.
    fn send(&self, message: &Message) -> Result<()> {
        let mut master = lock(&self.master);
        let sent = master
            .as_mut()
            .is_some_and(|master| master.message(message).is_ok());
        if sent {
            return Ok(());
        }
        // The thread that receives from the master learns why, and wakes those who wait for answers.
        *master = None;
        drop(master);
        Err(self.gone())
    }

    /// Sends a request to the master and waits for its answer.
    fn ask(&self, question: impl FnOnce(u32) -> Message) -> Result<Message> {
        let request = self.next_request.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = mpsc::sync_channel(1);
        // Before the request leaves: the answer may come before `send` returns.
        lock(&self.answers).insert(request, answer);
        let result = self.send(&question(request)).and_then(|()| {
            answered.recv_timeout(ANSWER).map_err(|why| match why {
                RecvTimeoutError::Disconnected => self.gone(),
                RecvTimeoutError::Timeout => Error::environment("the master does not answer")
                    .hint("check with `stackline blocks list` that it is still running"),
            })
        });
        lock(&self.answers).remove(&request);
        result
    }

    fn gone(&self) -> Error {
        master_gone(lock(&self.known).sent_away.as_ref())
    }

    fn done(&self, question: impl FnOnce(u32) -> Message) -> Result<()> {
        match self.ask(question)? {
            Message::Done(_) => Ok(()),
            other => Err(refusal(&other)),
        }
    }
    // --- blocks ---

    /// Handles a block that has come: checks it, and reports it.
    fn came(&self, head: BlockHead, data: Vec<u8>) {
        let at = now();
        // What was dropped on arrival cannot be compared.
        if self.options.check && !self.options.discard && crc32fast::hash(&data) != head.checksum {
            return self.try_elsewhere(
                head.set,
                head.number,
                (head.server, head.disk),
                Why::Corrupt,
            );
        }
        let (arrival, withdrawals) = {
            let mut known = lock(&self.known);
            (
                known.machine.arrived(at, &head),
                known.withdrawals(head.set),
            )
        };
        let wanted = arrival == BlockArrival::Wanted;
        self.report_block_event(
            BlockClientEvent::Block(Box::new(ReceivedBlock {
                head,
                data,
                at,
                wanted,
            })),
            withdrawals,
        );
    }

    /// Handles that a copy of a block failed: requests another copy, or reports the block as failed.
    fn try_elsewhere(&self, set: u32, number: u64, place: (u16, u16), why: Why) {
        let (again, withdrawals) = {
            let mut known = lock(&self.known);
            let row = known
                .rows
                .get(&set)
                .and_then(|rows| rows.get(number as usize))
                .cloned();
            let failed = known.failed.entry((set, number)).or_default();
            failed.insert(place);
            let failed = &*failed;
            let others = row.into_iter().flat_map(|row| row.places);
            let mut others = others.filter(|place| !failed.contains(&(place.server, place.disk)));
            let has_others = others.next().is_some();
            let was_wanted = match has_others {
                true => known.machine.take_back(set, number),
                false => known.machine.drop_block(set, number, None),
            };
            // Nobody waits for it any more: neither another copy nor a report is needed.
            if !was_wanted {
                return;
            }
            if why == Why::Corrupt {
                let damaged = known.damaged.entry(place).or_default();
                damaged.covered += u64::from(damaged.blocks.insert((set, number)) && has_others);
            }
            (has_others, known.withdrawals(set))
        };
        // The lock is free again by now: a request takes it, too.
        if again && self.request(set, vec![number], false, true).is_ok() {
            return;
        }
        self.report_block_event(BlockClientEvent::Failed { set, number, why }, withdrawals);
    }
}
