//! The V-System's internet server (sections 2.3 and 9.2 of the paper): programs that speak V's messages alone reach streams of TCP and PUP
//! through it, by V's I/O protocol (`proto::vio`). Who creates an instance chooses the protocol by its name, `HOST:PORT` or `pup:HOST:PORT`.
//! The V-server is the same with a program's pipes instead of a stream, into which it may look now and then only.
//!
//! The server is one thread; each instance has one that reads its stream and one that writes it. As V's processes do, a reader tells the
//! server by a message that something has come for a request that waits.

mod ends;

pub use ends::Serves;

use crate::address::Address;
use crate::late::Late;
use crate::message_stream::address;
use ends::Ends;
use stackline_core::error::{Error, Result};
use stackline_proto::vio::{BLOCK, Instance, Reply, Request, Turn};
use stackline_transfer::ikp::{self, Options, Segments, Ticket};
use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// Instances at once.
const MOST: usize = 64;
/// Bytes that wait to be read; blocks that wait to be written.
const WAITING: usize = 64 << 10;
const BLOCKS: usize = 64;
/// A request that waits is answered by then, if only that there is nothing.
const LATER: Duration = Duration::from_millis(250);
/// An instance of which nothing was heard for so long is released; one of a program, whose client reads all the time.
const IDLE: Duration = Duration::from_secs(600);
const PROGRAM_IDLE: Duration = Duration::from_secs(10);
/// How long what was written may take once an instance is released.
const GRACE: Duration = Duration::from_secs(2);
/// Clients that V's messages remember: three of each instance.
const CLIENTS: usize = 16_384;

/// What came over a stream.
#[derive(Debug, Default)]
struct Came {
    bytes: VecDeque<u8>,
    ended: Option<String>,
    /// A request waits for it.
    is_wanted: bool,
    /// Nobody reads it any more.
    is_over: bool,
}

/// How an instance ends, once it is connected and until it has.
type Ending = Mutex<Option<Box<dyn FnOnce() + Send>>>;

#[derive(Default)]
struct Shared {
    came: Mutex<Came>,
    room: Condvar,
    ending: Ending,
}

impl Shared {
    fn came(&self) -> MutexGuard<'_, Came> {
        self.came.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what it is connected with, unless that was done.
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

/// An instance.
struct Known {
    machine: Instance,
    shared: Arc<Shared>,
    to: SyncSender<Vec<u8>>,
    /// The request that waits, since when.
    waits: Option<(Ticket, Instant)>,
    heard: Instant,
    /// It is not used any more.
    is_released: bool,
}

struct Office {
    messages: ikp::Server,
    place: Place,
    known: HashMap<u64, Known>,
    late: Late,
}

/// Where it is asked, what lets clients in, and what instances are.
struct Place {
    local: SocketAddr,
    secret: Vec<u8>,
    serves: Serves,
    begun: Begun,
}

/// Instances that were begun, as long as they are.
type Begun = Arc<Mutex<Vec<Weak<Shared>>>>;

/// A server at work.
pub struct Served {
    local: SocketAddr,
    begun: Begun,
}

impl Served {
    /// Where it is asked.
    #[must_use]
    pub const fn local(&self) -> SocketAddr {
        self.local
    }

    /// Ends what instances are connected with, before the program ends.
    pub fn end(&self) {
        let begun = std::mem::take(&mut *self.begun.lock().unwrap_or_else(PoisonError::into_inner));
        begun
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|shared| shared.end());
    }
}

/// Serves from now on, in threads of its own.
///
/// # Errors
/// When nothing can listen there.
pub fn serve(at: &str, secret: Vec<u8>, serves: Serves) -> Result<Served> {
    let failed = |why: String| {
        Error::environment(format!("nothing can listen at ikp:{at}: {why}"))
            .hint("another program may have it: choose another address, `--listen`")
    };
    let bound = address(at).map_err(|error| failed(error.to_string()))?;
    let options = Options {
        clients: CLIENTS,
        strangers_give_way: true,
        ..Options::default()
    };
    let messages = ikp::Server::bind(bound, &options).map_err(|error| failed(error.to_string()))?;
    let local = messages
        .local()
        .map_err(|error| failed(error.to_string()))?;
    let begun = Arc::default();
    let place = Place {
        local,
        secret,
        serves,
        begun: Arc::clone(&begun),
    };
    let mut office = Office {
        messages,
        place,
        known: HashMap::new(),
        late: Late::default(),
    };
    thread::spawn(move || office.serve());
    Ok(Served { local, begun })
}

/// What is done with a request.
enum Answer {
    Now(Vec<u8>),
    /// It said a wrong secret: later.
    Stranger(Vec<u8>),
    /// Once something has come for that instance.
    Waits(u64),
}

impl Office {
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
                        Answer::Now(mut reply) => {
                            reply.truncate(room);
                            let _ = request.reply(&reply);
                        }
                        Answer::Stranger(mut reply) => {
                            reply.truncate(room);
                            late.refuse(request.later(), reply, Instant::now());
                        }
                        Answer::Waits(instance) => wanted = Some((instance, request.later())),
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

    /// A request waits; one that waited before is told to ask again.
    fn wait(&mut self, instance: u64, ticket: Ticket) {
        let Some(known) = self.known.get_mut(&instance) else {
            return;
        };
        if let Some((before, _)) = known.waits.replace((ticket, Instant::now()))
            && let Some(request) = self.messages.again(before)
        {
            let _ = request.reply(&Reply::Later.bytes());
        }
    }

    /// Answers requests for which something has come; instances that are released go.
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
                    Reply::Ended(b"").bytes()
                } else {
                    next_block(one, request.room())
                };
                let _ = request.reply(&reply);
            }
            if one.is_released {
                one.shared.room.notify_all();
                // Whoever takes nothing of what was written does not keep it.
                let shared = Arc::clone(&one.shared);
                thread::spawn(move || {
                    thread::sleep(GRACE);
                    shared.end();
                });
            }
            !one.is_released
        });
    }

    /// What waited long enough is told so; who was not heard of for long is released.
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
                let _ = request.reply(&Reply::Later.bytes());
            }
            one.is_released |= one.heard.elapsed() >= idle;
        }
    }
}

/// Whether a request says the secret, or the number of an instance, which only its client was told.
fn is_known(known: &HashMap<u64, Known>, place: &Place, message: &[u8]) -> bool {
    match Request::read(message) {
        // Compared in a time that does not depend on where they differ.
        Some(Request::Create { secret, .. }) => {
            let differs = secret
                .iter()
                .zip(&place.secret)
                .fold(0, |all, (one, other)| all | (one ^ other));
            secret.len() == place.secret.len() && differs == 0
        }
        Some(
            Request::Read(instance, _)
            | Request::Write(instance, ..)
            | Request::Release(instance)
            | Request::Look(instance),
        ) => known.contains_key(&instance),
        None => false,
    }
}

/// Carries a request out.
fn answer(
    known: &mut HashMap<u64, Known>,
    is_known: bool,
    place: &Place,
    message: &[u8],
    room: usize,
) -> Answer {
    let refused = |why: &str| Answer::Now(Reply::Refused(why.as_bytes()).bytes());
    let Some(request) = Request::read(message) else {
        return refused("that is no request");
    };
    if let Request::Create { name, .. } = request {
        if !is_known {
            return Answer::Stranger(Reply::Refused(b"the secret is another").bytes());
        }
        return Answer::Now(create(known, place, name));
    }
    let (Request::Read(instance, _)
    | Request::Write(instance, ..)
    | Request::Release(instance)
    | Request::Look(instance)) = request
    else {
        return refused("that is no request");
    };
    let Some(one) = known.get_mut(&instance) else {
        return refused("there is no such instance");
    };
    if !matches!(request, Request::Look(_)) {
        one.heard = Instant::now();
    }
    match request {
        Request::Read(_, block) => match one.machine.reads(block) {
            Turn::Again => Answer::Now(Reply::Done(one.machine.last()).bytes()),
            Turn::Other => refused("that block is not the next one"),
            Turn::Next => {
                let came = one.shared.came();
                let has = !came.bytes.is_empty() || came.ended.is_some();
                drop(came);
                if has {
                    Answer::Now(next_block(one, room))
                } else {
                    Answer::Waits(instance)
                }
            }
        },
        Request::Write(_, block, bytes) => Answer::Now(write(one, block, bytes)),
        Request::Release(_) => {
            one.is_released = true;
            Answer::Now(Reply::Done(b"").bytes())
        }
        _ => Answer::Now(Reply::Done(b"").bytes()),
    }
}

/// The next block of what has come, or that there is no more.
fn next_block(one: &mut Known, room: usize) -> Vec<u8> {
    let mut came = one.shared.came();
    if came.bytes.is_empty() {
        return match &came.ended {
            Some(why) => Reply::Ended(why.as_bytes()).bytes(),
            None => Reply::Later.bytes(),
        };
    }
    let count = came.bytes.len().min(BLOCK).min(room.saturating_sub(1));
    let block: Vec<u8> = came.bytes.drain(..count).collect();
    drop(came);
    one.shared.room.notify_all();
    let reply = Reply::Done(&block).bytes();
    one.machine.read(block);
    reply
}

fn write(one: &mut Known, block: u32, bytes: &[u8]) -> Vec<u8> {
    match one.machine.writes(block) {
        Turn::Again => Reply::Done(b"").bytes(),
        Turn::Other => Reply::Refused(b"that block is not the next one").bytes(),
        Turn::Next => match one.to.try_send(bytes.to_vec()) {
            Ok(()) => {
                one.machine.wrote();
                Reply::Done(b"").bytes()
            }
            Err(TrySendError::Full(_)) => Reply::Later.bytes(),
            Err(TrySendError::Disconnected(_)) => {
                let why = one
                    .shared
                    .came()
                    .ended
                    .clone()
                    .unwrap_or_else(|| "the connection ended".into());
                Reply::Ended(why.as_bytes()).bytes()
            }
        },
    }
}

/// A new instance, which is being connected.
fn create(known: &mut HashMap<u64, Known>, place: &Place, name: &[u8]) -> Vec<u8> {
    let refused = |why: &str| Reply::Refused(why.as_bytes()).bytes();
    if known.len() >= MOST {
        return refused("there are too many instances already");
    }
    let named = str::from_utf8(name)
        .ok()
        .and_then(|name| Address::of(name).ok());
    let to = named.filter(|to| matches!(to, Address::Tcp(_) | Address::Pup(_)));
    if to.is_none() && matches!(place.serves, Serves::Streams) {
        return refused("streams are named HOST:PORT or pup:HOST:PORT");
    }
    let Ok(instance) = getrandom::u64() else {
        return refused("there are no random numbers");
    };
    let shared = Arc::new(Shared::default());
    let mut begun = place.begun.lock().unwrap_or_else(PoisonError::into_inner);
    begun.retain(|shared| shared.strong_count() > 0);
    begun.push(Arc::downgrade(&shared));
    drop(begun);
    let (blocks, written) = sync_channel(BLOCKS);
    let (reads, serves, local) = (Arc::clone(&shared), place.serves.clone(), place.local);
    thread::spawn(move || {
        let tell = Tell {
            shared: reads,
            server: ikp::Client::connect(local, &Options::default()).ok(),
            instance,
        };
        tell.carry(ends::connect(&serves, to.as_ref()), written);
    });
    let (machine, heard) = (Instance::default(), Instant::now());
    known.insert(
        instance,
        Known {
            machine,
            shared,
            to: blocks,
            waits: None,
            heard,
            is_released: false,
        },
    );
    Reply::Created(instance, BLOCK as u16).bytes()
}

/// The reader of an instance, and how it tells the server that something has come.
struct Tell {
    shared: Arc<Shared>,
    server: Option<ikp::Client>,
    instance: u64,
}

impl Tell {
    /// Reads what comes until it ends; a thread of its own writes, and ends both.
    fn carry(mut self, connected: Result<Ends>, written: Receiver<Vec<u8>>) {
        let Ends {
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

    /// Bytes have come. False where nobody reads them any more.
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

    /// The server looks where a request waits.
    fn look(&mut self) {
        let wanted = std::mem::take(&mut self.shared.came().is_wanted);
        if let (true, Some(server)) = (wanted, &mut self.server) {
            let _ = server.send(
                &Request::Look(self.instance).bytes(),
                Segments::none(),
                &mut [0; 64],
            );
        }
    }
}

/// Writes blocks until nobody writes any more.
fn write_all(mut writes: Box<dyn Write + Send>, written: &Receiver<Vec<u8>>) {
    while let Ok(block) = written.recv() {
        if writes.write_all(&block).is_err() {
            break;
        }
    }
}
