//! The V-System's internet server (sections 2.3 and 9.2 of the paper): programs that speak only V's messages reach TCP and PUP streams
//! through it, by V's I/O protocol (`proto::papers::vio`). A client creates an instance, whose name, `HOST:PORT` or `pup:HOST:PORT`,
//! selects the protocol. The V-server is the same with a program's pipes instead of a stream, which may be polled only now and then.
//!
//! The server is one thread; each instance has a thread that reads its stream and one that writes it. As in V, the reader sends the server
//! a message when something has come for a request that waits.

mod instance_ends;

pub use instance_ends::Serves;

use crate::address::DisplayAddress;
use crate::delayed_refusals::DelayedDisplayRefusals;
use crate::message_stream::address;
use instance_ends::InternetInstanceEnds;
use stackline_core::error::Result;
use stackline_guard::serve::cannot_listen;
use stackline_proto::papers::vio::{BLOCK, VioBlockTurn, VioInstance, VioReply, VioRequest};
use stackline_transfer::ikp::{self, IkpClientSegments, IkpTransferOptions, Ticket};
use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// The limit on instances.
const MOST: usize = 64;
/// The limit on bytes that wait to be read.
const WAITING: usize = 64 << 10;
/// The limit on blocks that wait to be written.
const BLOCKS: usize = 64;
/// A waiting read request is answered after this time even if nothing has come.
const LATER: Duration = Duration::from_millis(250);
/// An instance that was not used for this long is released.
const IDLE: Duration = Duration::from_secs(600);
/// The same for an instance of a program, whose client reads all the time.
const PROGRAM_IDLE: Duration = Duration::from_secs(10);
/// How long writing the rest may take after an instance is released.
const GRACE: Duration = Duration::from_secs(2);
/// The number of clients that the message protocol remembers: at least three per instance.
const CLIENTS: usize = 16_384;

/// Bytes that came over a stream.
#[derive(Debug, Default)]
struct InternetStreamInput {
    bytes: VecDeque<u8>,
    ended: Option<String>,
    /// Whether a request waits for them.
    is_wanted: bool,
    /// Whether nobody reads them any more.
    is_over: bool,
}

/// How to end an instance's stream or program: set while it is connected.
type InternetInstanceEnding = Mutex<Option<Box<dyn FnOnce() + Send>>>;

#[derive(Default)]
struct InternetInstanceShared {
    came: Mutex<InternetStreamInput>,
    room: Condvar,
    ending: InternetInstanceEnding,
}

impl InternetInstanceShared {
    fn came(&self) -> MutexGuard<'_, InternetStreamInput> {
        self.came.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the stream or program, unless that was done.
    fn end(&self) {
        let ending = self
            .ending
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(end) = ending {
            end();
        }
    }
}

/// An instance: one stream or program.
struct InternetInstance {
    machine: VioInstance,
    shared: Arc<InternetInstanceShared>,
    to: SyncSender<Vec<u8>>,
    /// The waiting request, and since when it waits.
    waits: Option<(Ticket, Instant)>,
    heard: Instant,
    /// Whether the client has released it.
    is_released: bool,
}

struct InternetServerState {
    messages: ikp::IkpUdpServer,
    place: InternetServerContext,
    known: HashMap<u64, InternetInstance>,
    late: DelayedDisplayRefusals,
}

/// The server's address, secret, and kind.
struct InternetServerContext {
    local: SocketAddr,
    secret: Vec<u8>,
    serves: Serves,
    begun: Begun,
}

/// All instances that still exist.
type Begun = Arc<Mutex<Vec<Weak<InternetInstanceShared>>>>;

/// A running server.
pub struct RunningInternetServer {
    local: SocketAddr,
    begun: Begun,
}

impl RunningInternetServer {
    /// The address on which it listens.
    #[must_use]
    pub const fn local(&self) -> SocketAddr {
        self.local
    }

    /// Ends the streams and programs of all instances, before this program ends.
    pub fn end(&self) {
        let begun = std::mem::take(&mut *self.begun.lock().unwrap_or_else(PoisonError::into_inner));
        begun
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|shared| shared.end());
    }
}

/// Serves in threads of its own.
///
/// # Errors
/// If nothing can listen there.
pub fn serve(at: &str, secret: Vec<u8>, serves: Serves) -> Result<RunningInternetServer> {
    let failed = |why: String| {
        cannot_listen(
            &format_args!("ikp:{at}"),
            &why,
            "another program may be using it: choose another address with `--listen`",
        )
    };
    let bound = address(at).map_err(|error| failed(error.to_string()))?;
    let options = IkpTransferOptions {
        clients: CLIENTS,
        strangers_give_way: true,
        ..IkpTransferOptions::default()
    };
    let messages =
        ikp::IkpUdpServer::bind(bound, &options).map_err(|error| failed(error.to_string()))?;
    let local = messages
        .local()
        .map_err(|error| failed(error.to_string()))?;
    let begun = Arc::default();
    let place = InternetServerContext {
        local,
        secret,
        serves,
        begun: Arc::clone(&begun),
    };
    let mut office = InternetServerState {
        messages,
        place,
        known: HashMap::new(),
        late: DelayedDisplayRefusals::default(),
    };
    thread::spawn(move || office.serve());
    Ok(RunningInternetServer { local, begun })
}

/// How a request is answered.
enum InternetServerAnswer {
    Now(Vec<u8>),
    /// Later, because the secret was wrong.
    Stranger(Vec<u8>),
    /// When something has come for that instance.
    Waits(u64),
}

impl InternetServerState {
    fn serve(&mut self) {
        let mut looked = Instant::now();
        loop {
            let Self {
                messages,
                known,
                place,
                late,
            } = self;
            let mut wanted = None;
            late.answer(messages, Instant::now());
            match messages.receive_within(late.pause(Instant::now(), LATER)) {
                Ok(Some(mut request)) => {
                    let room = request.room();
                    let is_known = is_known(known, place, request.message());
                    if is_known {
                        request.known();
                    }
                    match answer(known, is_known, place, request.message(), room) {
                        InternetServerAnswer::Now(mut reply) => {
                            reply.truncate(room);
                            let _ = request.reply(&reply);
                        }
                        InternetServerAnswer::Stranger(mut reply) => {
                            reply.truncate(room);
                            late.refuse(request.later(), reply, Instant::now());
                        }
                        InternetServerAnswer::Waits(instance) => {
                            wanted = Some((instance, request.later()))
                        }
                    }
                }
                Ok(None) => {}
                Err(_) => thread::sleep(Duration::from_millis(100)),
            }
            if let Some((instance, ticket)) = wanted {
                self.wait(instance, ticket);
            }
            self.answer_waiting();
            if looked.elapsed() >= LATER {
                looked = Instant::now();
                self.look();
            }
        }
    }

    /// Lets a request wait. If another one waits for the same instance, that one is answered to ask again.
    fn wait(&mut self, instance: u64, ticket: Ticket) {
        let Some(known) = self.known.get_mut(&instance) else {
            return;
        };
        if let Some((before, _)) = known.waits.replace((ticket, Instant::now()))
            && let Some(request) = self.messages.again(before)
        {
            let _ = request.reply(&VioReply::Later.bytes());
        }
    }

    /// Answers requests for which something has come, and removes released instances.
    fn answer_waiting(&mut self) {
        let Self {
            messages, known, ..
        } = self;
        known.retain(|_, one| {
            let has = {
                let mut came = one.shared.came();
                let has = !came.bytes.is_empty() || came.ended.is_some() || one.is_released;
                came.is_wanted = one.waits.is_some() && !has;
                came.is_over |= one.is_released;
                has
            };
            if has
                && let Some((ticket, _)) = one.waits.take()
                && let Some(request) = messages.again(ticket)
            {
                let reply = if one.is_released {
                    VioReply::Ended(b"").bytes()
                } else {
                    next_block(one, request.room())
                };
                let _ = request.reply(&reply);
            }
            if one.is_released {
                one.shared.room.notify_all();
                // A peer that takes nothing does not keep the instance alive.
                let shared = Arc::clone(&one.shared);
                thread::spawn(move || {
                    thread::sleep(GRACE);
                    shared.end();
                });
            }
            !one.is_released
        });
    }

    /// Answers requests that have waited long enough, and releases instances that were not used for long.
    fn look(&mut self) {
        let Self {
            messages,
            known,
            place,
            ..
        } = self;
        let idle = if matches!(place.serves, Serves::Streams) {
            IDLE
        } else {
            PROGRAM_IDLE
        };
        for one in known.values_mut() {
            if one
                .waits
                .as_ref()
                .is_some_and(|(_, since)| since.elapsed() >= LATER)
                && let Some((ticket, _)) = one.waits.take()
                && let Some(request) = messages.again(ticket)
            {
                let _ = request.reply(&VioReply::Later.bytes());
            }
            one.is_released |= one.heard.elapsed() >= idle;
        }
    }
}

/// Whether a request has the secret, or the number of an instance, which only its client knows.
fn is_known(
    known: &HashMap<u64, InternetInstance>,
    place: &InternetServerContext,
    message: &[u8],
) -> bool {
    match VioRequest::read(message) {
        // Compared in constant time.
        Some(VioRequest::Create { secret, .. }) => {
            let differs = secret
                .iter()
                .zip(&place.secret)
                .fold(0, |all, (one, other)| all | (one ^ other));
            secret.len() == place.secret.len() && differs == 0
        }
        Some(
            VioRequest::Read(instance, _)
            | VioRequest::Write(instance, ..)
            | VioRequest::Release(instance)
            | VioRequest::Look(instance),
        ) => known.contains_key(&instance),
        None => false,
    }
}

/// Carries out a request.
fn answer(
    known: &mut HashMap<u64, InternetInstance>,
    is_known: bool,
    place: &InternetServerContext,
    message: &[u8],
    room: usize,
) -> InternetServerAnswer {
    let refused = |why: &str| InternetServerAnswer::Now(VioReply::Refused(why.as_bytes()).bytes());
    let Some(request) = VioRequest::read(message) else {
        return refused("the request is not valid");
    };
    if let VioRequest::Create { name, .. } = request {
        if !is_known {
            return InternetServerAnswer::Stranger(
                VioReply::Refused(b"the secret does not match").bytes(),
            );
        }
        return InternetServerAnswer::Now(create(known, place, name));
    }
    let (VioRequest::Read(instance, _)
    | VioRequest::Write(instance, ..)
    | VioRequest::Release(instance)
    | VioRequest::Look(instance)) = request
    else {
        return refused("the request is not valid");
    };
    let Some(one) = known.get_mut(&instance) else {
        return refused("unknown instance");
    };
    if !matches!(request, VioRequest::Look(_)) {
        one.heard = Instant::now();
    }
    match request {
        VioRequest::Read(_, block) => match one.machine.reads(block) {
            VioBlockTurn::Again => {
                InternetServerAnswer::Now(VioReply::Done(one.machine.last()).bytes())
            }
            VioBlockTurn::Other => refused("the block is out of sequence"),
            VioBlockTurn::Next => {
                let came = one.shared.came();
                let has = !came.bytes.is_empty() || came.ended.is_some();
                drop(came);
                if has {
                    InternetServerAnswer::Now(next_block(one, room))
                } else {
                    InternetServerAnswer::Waits(instance)
                }
            }
        },
        VioRequest::Write(_, block, bytes) => InternetServerAnswer::Now(write(one, block, bytes)),
        VioRequest::Release(_) => {
            one.is_released = true;
            InternetServerAnswer::Now(VioReply::Done(b"").bytes())
        }
        _ => InternetServerAnswer::Now(VioReply::Done(b"").bytes()),
    }
}

/// The next block of what has come, or the end of the stream.
fn next_block(one: &mut InternetInstance, room: usize) -> Vec<u8> {
    let mut came = one.shared.came();
    if came.bytes.is_empty() {
        return match &came.ended {
            Some(why) => VioReply::Ended(why.as_bytes()).bytes(),
            None => VioReply::Later.bytes(),
        };
    }
    let count = came.bytes.len().min(BLOCK).min(room.saturating_sub(1));
    let block: Vec<u8> = came.bytes.drain(..count).collect();
    drop(came);
    one.shared.room.notify_all();
    let reply = VioReply::Done(&block).bytes();
    one.machine.read(block);
    reply
}

fn write(one: &mut InternetInstance, block: u32, bytes: &[u8]) -> Vec<u8> {
    match one.machine.writes(block) {
        VioBlockTurn::Again => VioReply::Done(b"").bytes(),
        VioBlockTurn::Other => VioReply::Refused(b"the block is out of sequence").bytes(),
        VioBlockTurn::Next => match one.to.try_send(bytes.to_vec()) {
            Ok(()) => {
                one.machine.wrote();
                VioReply::Done(b"").bytes()
            }
            Err(TrySendError::Full(_)) => VioReply::Later.bytes(),
            Err(TrySendError::Disconnected(_)) => {
                let why = one
                    .shared
                    .came()
                    .ended
                    .clone()
                    .unwrap_or_else(|| "the connection ended".into());
                VioReply::Ended(why.as_bytes()).bytes()
            }
        },
    }
}

/// Creates an instance, and begins to connect it.
fn create(
    known: &mut HashMap<u64, InternetInstance>,
    place: &InternetServerContext,
    name: &[u8],
) -> Vec<u8> {
    let refused = |why: &str| VioReply::Refused(why.as_bytes()).bytes();
    if known.len() >= MOST {
        return refused("too many instances are running");
    }
    let named = str::from_utf8(name)
        .ok()
        .and_then(|name| DisplayAddress::parse(name).ok());
    let to = named.filter(|to| to.scheme().is_behind_server());
    if to.is_none() && matches!(place.serves, Serves::Streams) {
        return refused("name a stream as HOST:PORT or pup:HOST:PORT");
    }
    let Ok(instance) = getrandom::u64() else {
        return refused("cannot get random numbers from the system");
    };
    let shared = Arc::new(InternetInstanceShared::default());
    let mut begun = place.begun.lock().unwrap_or_else(PoisonError::into_inner);
    begun.retain(|shared| shared.strong_count() > 0);
    begun.push(Arc::downgrade(&shared));
    drop(begun);
    let (blocks, written) = sync_channel(BLOCKS);
    let (reads, serves, local) = (Arc::clone(&shared), place.serves.clone(), place.local);
    thread::spawn(move || {
        let reader = InternetInstanceReader {
            shared: reads,
            server: ikp::IkpUdpClient::connect(local, &IkpTransferOptions::default()).ok(),
            instance,
        };
        reader.carry(instance_ends::connect(&serves, to.as_ref()), written);
    });
    let (machine, heard) = (VioInstance::default(), Instant::now());
    known.insert(
        instance,
        InternetInstance {
            machine,
            shared,
            to: blocks,
            waits: None,
            heard,
            is_released: false,
        },
    );
    VioReply::Created(instance, BLOCK as u16).bytes()
}

/// The reader of an instance, which notifies the server when something has come.
struct InternetInstanceReader {
    shared: Arc<InternetInstanceShared>,
    server: Option<ikp::IkpUdpClient>,
    instance: u64,
}

impl InternetInstanceReader {
    /// Reads until the end, while another thread writes; then ends both.
    fn carry(mut self, connected: Result<InternetInstanceEnds>, written: Receiver<Vec<u8>>) {
        let InternetInstanceEnds {
            mut reads,
            writes,
            end,
        } = match connected {
            Ok(ends) => ends,
            Err(error) => return self.ended(error.message),
        };
        *self
            .shared
            .ending
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(end);
        let shared = Arc::clone(&self.shared);
        thread::spawn(move || {
            write_all(writes, &written);
            shared.end();
        });
        let mut piece = [0; 16 << 10];
        loop {
            match reads.read(&mut piece) {
                Ok(0) => return self.ended(String::new()),
                Ok(count) if !self.has(&piece[..count]) => return,
                Ok(_) => {}
                Err(error) => return self.ended(error.to_string()),
            }
        }
    }

    /// Stores bytes that have come. Returns false if nobody reads them any more.
    fn has(&mut self, bytes: &[u8]) -> bool {
        let mut came = self.shared.came();
        while came.bytes.len() >= WAITING && !came.is_over {
            came = self
                .shared
                .room
                .wait(came)
                .unwrap_or_else(PoisonError::into_inner);
        }
        came.bytes.extend(bytes);
        let goes_on = !came.is_over;
        drop(came);
        self.look();
        goes_on
    }

    fn ended(&mut self, why: String) {
        self.shared.came().ended.get_or_insert(why);
        self.look();
    }

    /// Notifies the server if a request waits.
    fn look(&mut self) {
        let wanted = std::mem::take(&mut self.shared.came().is_wanted);
        if let (true, Some(server)) = (wanted, &mut self.server) {
            let _ = server.send(
                &VioRequest::Look(self.instance).bytes(),
                IkpClientSegments::none(),
                &mut [0; 64],
            );
        }
    }
}

/// Writes blocks until there are no more.
fn write_all(mut writes: Box<dyn Write + Send>, written: &Receiver<Vec<u8>>) {
    while let Ok(block) = written.recv() {
        if writes.write_all(&block).is_err() {
            break;
        }
    }
}
