//! The V-System's internet server (sections 2.3 and 9.2 of the paper): programs that speak V's messages alone reach streams of TCP and PUP
//! through it, by V's I/O protocol (`proto::vio`). Who creates an instance chooses the protocol by its name, `HOST:PORT` or `pup:HOST:PORT`.
//!
//! The server is one thread; each instance has one that reads its stream and one that writes it. As V's processes do, a reader tells the
//! server by a message that something has come for a request that waits.

use crate::address::{Address, Stream};
use crate::message_stream::address;
use stackline_core::error::{Error, Result};
use stackline_proto::vio::{BLOCK, Instance, Reply, Request, Turn};
use stackline_transfer::ikp::{self, Options, Segments, Ticket};
use std::collections::{HashMap, VecDeque};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Instances at once.
const MOST: usize = 64;
/// Bytes that wait to be read; blocks that wait to be written.
const WAITING: usize = 64 << 10;
const BLOCKS: usize = 64;
/// A request that waits is answered by then, if only that there is nothing.
const LATER: Duration = Duration::from_millis(250);
/// An instance of which nothing was heard for so long is released.
const IDLE: Duration = Duration::from_secs(600);

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

#[derive(Debug, Default)]
struct Shared {
    came: Mutex<Came>,
    room: Condvar,
}

impl Shared {
    fn came(&self) -> MutexGuard<'_, Came> {
        self.came.lock().unwrap_or_else(PoisonError::into_inner)
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
    local: SocketAddr,
    secret: Vec<u8>,
    known: HashMap<u64, Known>,
}

/// Serves from now on, in threads of its own. Where.
///
/// # Errors
/// When nothing can listen there.
pub fn serve(at: &str, secret: Vec<u8>) -> Result<SocketAddr> {
    let failed = |why: String| {
        Error::environment(format!("nothing can listen at ikp:{at}: {why}"))
            .hint("another program may have it: choose another address")
    };
    let bound = address(at).map_err(|error| failed(error.to_string()))?;
    let messages = ikp::Server::bind(bound, &Options::default()).map_err(|error| failed(error.to_string()))?;
    let local = messages.local().map_err(|error| failed(error.to_string()))?;
    let mut office = Office { messages, local, secret, known: HashMap::new() };
    thread::spawn(move || office.serve());
    Ok(local)
}

/// What is done with a request.
enum Answer {
    Now(Vec<u8>),
    /// Once something has come for that instance.
    Waits(u64),
}

impl Office {
    fn serve(&mut self) {
        let mut looked = Instant::now();
        loop {
            let Self { messages, known, secret, local } = self;
            let mut wanted = None;
            match messages.receive_within(LATER) {
                Ok(Some(request)) => {
                    let room = request.room();
                    match answer(known, secret, *local, request.message(), room) {
                        Answer::Now(mut reply) => {
                            reply.truncate(room);
                            let _ = request.reply(&reply);
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
        let Some(known) = self.known.get_mut(&instance) else { return };
        if let Some((before, _)) = known.waits.replace((ticket, Instant::now()))
            && let Some(request) = self.messages.again(before)
        {
            let _ = request.reply(&Reply::Later.bytes());
        }
    }

    /// Answers requests for which something has come; instances that are released go.
    fn answer_waiting(&mut self) {
        let Self { messages, known, .. } = self;
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
                let reply = if one.is_released { Reply::Ended(b"").bytes() } else { next_block(one, request.room()) };
                let _ = request.reply(&reply);
            }
            if one.is_released {
                one.shared.room.notify_all();
            }
            !one.is_released
        });
    }

    /// What waited long enough is told so; who was not heard of for long is released.
    fn look(&mut self) {
        let Self { messages, known, .. } = self;
        for one in known.values_mut() {
            if one.waits.as_ref().is_some_and(|(_, since)| since.elapsed() >= LATER)
                && let Some((ticket, _)) = one.waits.take()
                && let Some(request) = messages.again(ticket)
            {
                let _ = request.reply(&Reply::Later.bytes());
            }
            one.is_released |= one.heard.elapsed() >= IDLE;
        }
    }
}

/// Carries a request out.
fn answer(known: &mut HashMap<u64, Known>, secret: &[u8], local: SocketAddr, message: &[u8], room: usize) -> Answer {
    let refused = |why: &str| Answer::Now(Reply::Refused(why.as_bytes()).bytes());
    let Some(request) = Request::read(message) else { return refused("that is no request") };
    if let Request::Create { secret: said, name } = request {
        if !said.is_empty() && said.len() == secret.len() || secret.is_empty() {
            let differs = said.iter().zip(secret).fold(0, |all, (one, other)| all | (one ^ other));
            if differs == 0 {
                return Answer::Now(create(known, local, name));
            }
        }
        return refused("the secret is another");
    }
    let (Request::Read(instance, _)
    | Request::Write(instance, ..)
    | Request::Release(instance)
    | Request::Look(instance)) = request
    else {
        return refused("that is no request");
    };
    let Some(one) = known.get_mut(&instance) else { return refused("there is no such instance") };
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
                if has { Answer::Now(next_block(one, room)) } else { Answer::Waits(instance) }
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
                let why = one.shared.came().ended.clone().unwrap_or_else(|| "the connection ended".into());
                Reply::Ended(why.as_bytes()).bytes()
            }
        },
    }
}

/// A new instance, whose stream is being connected.
fn create(known: &mut HashMap<u64, Known>, local: SocketAddr, name: &[u8]) -> Vec<u8> {
    let refused = |why: &str| Reply::Refused(why.as_bytes()).bytes();
    if known.len() >= MOST {
        return refused("there are too many instances already");
    }
    let named = str::from_utf8(name).ok().and_then(|name| Address::of(name).ok());
    let Some(to @ (Address::Tcp(_) | Address::Pup(_))) = named else {
        return refused("streams are named HOST:PORT or pup:HOST:PORT");
    };
    let Ok(instance) = getrandom::u64() else { return refused("there are no random numbers") };
    let shared = Arc::new(Shared::default());
    let (blocks, written) = sync_channel(BLOCKS);
    let reads = Arc::clone(&shared);
    thread::spawn(move || stream(&to, &reads, written, local, instance));
    let (machine, heard) = (Instance::default(), Instant::now());
    known.insert(instance, Known { machine, shared, to: blocks, waits: None, heard, is_released: false });
    Reply::Created(instance, BLOCK as u16).bytes()
}

/// The stream of an instance: connected, written by a thread of its own, which ends it, and read until it ends.
fn stream(to: &Address, shared: &Arc<Shared>, written: Receiver<Vec<u8>>, server: SocketAddr, instance: u64) {
    let end = |why: String| {
        shared.came().ended.get_or_insert(why);
    };
    let mut tell = ikp::Client::connect(server, &Options::default()).ok();
    let mut look = || {
        let wanted = std::mem::take(&mut shared.came().is_wanted);
        if let (true, Some(tell)) = (wanted, &mut tell) {
            let _ = tell.send(&Request::Look(instance).bytes(), Segments::none(), &mut [0; 64]);
        }
    };
    let (mut reads, writes) = match to.connect().and_then(|stream| {
        let again = stream.again().map_err(|error| Error::environment(error.to_string()))?;
        Ok((stream, again))
    }) {
        Ok(both) => both,
        Err(error) => {
            end(error.message);
            return look();
        }
    };
    thread::spawn(move || write_all(writes, &written));
    let mut piece = [0; 16 << 10];
    loop {
        match reads.read(&mut piece) {
            Ok(0) => end(String::new()),
            Ok(count) => {
                let mut came = shared.came();
                while came.bytes.len() >= WAITING && !came.is_over {
                    came = shared.room.wait(came).unwrap_or_else(PoisonError::into_inner);
                }
                came.bytes.extend(&piece[..count]);
                if came.is_over {
                    break;
                }
            }
            Err(error) => end(error.to_string()),
        }
        look();
        if shared.came().ended.is_some() {
            break;
        }
    }
}

/// Writes blocks until nobody writes any more; what was written before is there then.
fn write_all(mut stream: Stream, written: &Receiver<Vec<u8>>) {
    while let Ok(block) = written.recv() {
        if stream.write_all(&block).is_err() {
            break;
        }
    }
    stream.end();
}
