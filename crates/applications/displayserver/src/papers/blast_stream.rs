//! Byte streams over blasts (Zwaenepoel 1985; `transfer`): each write is one blast, and returns when the other end has all of it. A
//! connection has two channels, one each way, so that neither end has to read before it can write; a thread takes what comes.
//!
//! ```text
//! to the listener, once each   way 1 (0 requests, 1 answers) | both ways' token 16
//! each blast after that        length 4 | bytes; none of them: the other end is there
//! ```

pub(crate) mod scheme;

use crate::message_stream::{address, failed as sentence};
use crate::transport::DisplayTransport;
use stackline_core::time::Duration as Time;
use stackline_guard::connection_slots::{ConnectionSlot, ConnectionSlotPool};
use stackline_guard::serve::{accept_each, in_thread};
use stackline_guard::stop::StopSwitch;
use stackline_transfer::{
    BlastChannel, BlastChannelListener, BlastChannelOptions, Error, Interrupt,
};
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// How long the other end may take to accept a blast (ns).
const PATIENCE: Time = Time(20_000_000_000);
/// After this silence an end sends an empty blast as a sign of life.
const IDLE: Duration = Duration::from_secs(20);
/// The largest blast, bytes.
const LONGEST: usize = 64 << 10;
/// The limit on bytes that wait to be read.
const WAITING: usize = 4 * LONGEST;
/// How long the two channels of a connection may take to be established.
const BOTH: Duration = Duration::from_secs(5);
/// The limit on channels that have not said which way they are, on connections with one channel, and on connections that are not accepted
/// yet. When there are more, the oldest gives way.
const MOST: usize = 64;

const REQUESTS: u8 = 0;
const ANSWERS: u8 = 1;
const TOKEN: usize = 16;
type BlastStreamToken = [u8; TOKEN];

/// The state of one channel of a connection: whether it should end, and its deadline for saying which way it is.
#[derive(Debug, Default)]
struct BlastStreamDirection {
    is_ended: AtomicBool,
    is_taken: AtomicBool,
    until: Mutex<Option<Instant>>,
}

impl BlastStreamDirection {
    fn lasts_until(&self, until: Option<Instant>) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// Whether it is, or was, part of a connection.
    fn is_taken(&self) -> bool {
        self.is_taken.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_ended.load(Ordering::Relaxed) || until.is_some_and(|until| Instant::now() >= until)
    }

    fn interrupt(self: &Arc<Self>) -> Interrupt {
        let direction = Arc::clone(self);
        Interrupt::new(move || direction.is_over())
    }
}

fn options(direction: &Arc<BlastStreamDirection>) -> BlastChannelOptions {
    let mut options = BlastChannelOptions {
        interrupt: Some(direction.interrupt()),
        ..BlastChannelOptions::default()
    };
    options.blast.patience = PATIENCE;
    options
}

fn failed(error: Error) -> io::Error {
    match error {
        Error::Io(_, error) => error,
        Error::Interrupted => ErrorKind::TimedOut.into(),
        other => sentence(ErrorKind::BrokenPipe, &other),
    }
}

/// Bytes that came and were not read.
#[derive(Debug, Default)]
struct BlastStreamInput {
    bytes: VecDeque<u8>,
    /// Set when no more comes, with the reason if that is an error.
    ended: Option<Option<String>>,
}

#[derive(Debug)]
struct BlastStreamShared {
    came: Mutex<BlastStreamInput>,
    changed: Condvar,
    /// The channel for writing, and when it was last used; `None` once it is closed.
    out: Mutex<(Option<BlastChannel>, Instant)>,
    is_ended: AtomicBool,
    /// The states of the reading and the writing channel, which end with the connection.
    directions: [Arc<BlastStreamDirection>; 2],
}

impl BlastStreamShared {
    fn came(&self) -> MutexGuard<'_, BlastStreamInput> {
        self.came.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a blast, and waits until the other end has it.
    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(channel), false) = (&mut out.0, self.is_ended.load(Ordering::Relaxed)) else {
            return Err(ErrorKind::BrokenPipe.into());
        };
        let length = u32::try_from(bytes.len()).unwrap_or(0).to_be_bytes();
        let sent = channel.send(&[&length, bytes].concat());
        out.1 = Instant::now();
        sent.map_err(failed)
    }

    /// Closes both ways. Everything that was written has arrived.
    fn end(&self) {
        if self.is_ended.swap(true, Ordering::Relaxed) {
            return;
        }
        self.changed.notify_all();
        self.directions[0].is_ended.store(true, Ordering::Relaxed);
        let channel = self
            .out
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .0
            .take();
        let _ = channel.map(BlastChannel::close);
        self.directions[1].is_ended.store(true, Ordering::Relaxed);
    }
}

/// Closes the connection when its last user drops it.
#[derive(Debug)]
struct BlastStreamUser(Arc<BlastStreamShared>);

impl Drop for BlastStreamUser {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A handle of a connection, for reading or writing.
#[derive(Debug)]
pub struct BlastStream {
    user: Arc<BlastStreamUser>,
    read_within: Cell<Option<Duration>>,
}

impl BlastStream {
    /// A connection of a reading and a writing channel.
    fn new(
        reads: (BlastChannel, Arc<BlastStreamDirection>),
        writes: (BlastChannel, Arc<BlastStreamDirection>),
    ) -> Self {
        let out = Mutex::new((Some(writes.0), Instant::now()));
        let (came, changed, is_ended) = (Mutex::default(), Condvar::new(), AtomicBool::new(false));
        let shared = Arc::new(BlastStreamShared {
            came,
            changed,
            out,
            is_ended,
            directions: [reads.1, writes.1],
        });
        let (taken, connection) = (Arc::downgrade(&shared), Arc::downgrade(&shared));
        thread::spawn(move || take(reads.0, &taken));
        thread::spawn(move || stay(&connection));
        Self {
            user: Arc::new(BlastStreamUser(shared)),
            read_within: Cell::new(None),
        }
    }

    /// Connects to the listener at that address.
    ///
    /// # Errors
    /// The kernel's error, or that nobody answers.
    pub fn connect(to: &str) -> io::Result<Self> {
        let to = address(to)?;
        let mut token = BlastStreamToken::default();
        getrandom::fill(&mut token).map_err(|error| io::Error::other(error.to_string()))?;
        let open = |which: u8| {
            let direction = Arc::new(BlastStreamDirection::default());
            let mut channel = BlastChannel::connect(to, &options(&direction)).map_err(failed)?;
            channel
                .send(&[&[which], &token[..]].concat())
                .map_err(failed)?;
            Ok::<_, io::Error>((channel, direction))
        };
        let (writes, reads) = (open(REQUESTS)?, open(ANSWERS)?);
        Ok(Self::new(reads, writes))
    }
}

impl DisplayTransport for BlastStream {
    fn second_handle(&self) -> io::Result<Self> {
        Ok(Self {
            user: Arc::clone(&self.user),
            read_within: self.read_within.clone(),
        })
    }

    fn read_within(&self, patience: Option<Duration>) -> io::Result<()> {
        self.read_within.set(patience);
        Ok(())
    }

    fn is_gone(&self) -> bool {
        self.user.0.is_ended.load(Ordering::Relaxed) || self.user.0.came().ended.is_some()
    }

    fn end(&self) {
        self.user.0.end();
    }
}

impl Read for BlastStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (shared, begun) = (&self.user.0, Instant::now());
        let mut came = shared.came();
        while came.bytes.is_empty() {
            if shared.is_ended.load(Ordering::Relaxed) {
                return Ok(0);
            }
            match &came.ended {
                Some(None) => return Ok(0),
                Some(Some(why)) => return Err(io::Error::other(why.clone())),
                None => {}
            }
            let rest = self
                .read_within
                .get()
                .map(|patience| patience.saturating_sub(begun.elapsed()));
            if rest.is_some_and(|rest| rest.is_zero()) {
                return Err(ErrorKind::TimedOut.into());
            }
            let waited = shared.changed.wait_timeout(came, rest.unwrap_or(IDLE));
            came = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let count = came.bytes.read(into)?;
        drop(came);
        shared.changed.notify_all();
        Ok(count)
    }
}

impl Write for BlastStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = bytes.get(..LONGEST).unwrap_or(bytes);
        if !piece.is_empty() {
            self.user.0.send(piece)?;
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Takes blasts until no more come, or nobody reads.
fn take(mut channel: BlastChannel, shared: &Weak<BlastStreamShared>) {
    loop {
        let taken = blast(&mut channel);
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let mut came = shared.came();
        match taken {
            Ok(Some(bytes)) => {
                while came.bytes.len() >= WAITING && !shared.is_ended.load(Ordering::Relaxed) {
                    came = shared
                        .changed
                        .wait(came)
                        .unwrap_or_else(PoisonError::into_inner);
                }
                came.bytes.extend(bytes);
            }
            Ok(None) => came.ended = Some(None),
            Err(error) => came.ended = Some(Some(error.to_string())),
        }
        let is_over = came.ended.is_some();
        drop(came);
        shared.changed.notify_all();
        if is_over {
            return;
        }
    }
}

/// The next blast; `None` at the end of the stream.
fn blast(channel: &mut BlastChannel) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match channel.receive_into(&mut length).map_err(failed)? {
        0 => return Ok(None),
        4 => {}
        _ => return Err(ErrorKind::UnexpectedEof.into()),
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > LONGEST {
        return Err(io::Error::new(
            ErrorKind::InvalidData,
            "a blast exceeds the maximum length",
        ));
    }
    let mut bytes = vec![0; length];
    match channel.receive_into(&mut bytes).map_err(failed)? {
        all if all == length => Ok(Some(bytes)),
        _ => Err(ErrorKind::UnexpectedEof.into()),
    }
}

/// Sends signs of life as long as the connection exists. If one is not accepted, the connection is lost.
fn stay(shared: &Weak<BlastStreamShared>) {
    loop {
        thread::sleep(Duration::from_secs(1));
        let Some(shared) = shared
            .upgrade()
            .filter(|shared| !shared.is_ended.load(Ordering::Relaxed))
        else {
            return;
        };
        let said = shared.out.lock().unwrap_or_else(PoisonError::into_inner).1;
        if said.elapsed() >= IDLE && shared.send(b"").is_err() {
            return shared.end();
        }
    }
}

/// Accepts connections.
#[derive(Debug)]
pub struct BlastStreamListener {
    local: SocketAddr,
    came: Mutex<Receiver<BlastStream>>,
    stop: StopSwitch,
}

/// Channels whose other half has not come yet, by the connection's token.
type BlastStreamHalves =
    Arc<Mutex<HashMap<BlastStreamToken, (u8, BlastChannel, Arc<BlastStreamDirection>, Instant)>>>;

impl BlastStreamListener {
    /// Listens on that address.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn bind(at: &str) -> io::Result<Self> {
        let stop = StopSwitch::new()?;
        let listener =
            BlastChannelListener::bind(address(at)?, &options(&Arc::default())).map_err(failed)?;
        let local = listener.local().map_err(failed)?;
        let (to, came) = sync_channel(MOST);
        let stops = stop.clone();
        thread::spawn(move || serve(listener, &stops, &to));
        Ok(Self {
            local,
            came: Mutex::new(came),
            stop,
        })
    }

    /// Waits for the next connection.
    ///
    /// # Errors
    /// If its socket failed.
    pub fn accept(&self) -> io::Result<BlastStream> {
        let came = self.came.lock().unwrap_or_else(PoisonError::into_inner);
        came.recv()
            .map_err(|_| io::Error::other("the socket failed"))
    }

    /// The address on which it listens.
    #[must_use]
    pub const fn local(&self) -> SocketAddr {
        self.local
    }
}

impl Drop for BlastStreamListener {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

/// Accepts channels until the listener is dropped. Each has a thread until it has said which way it is.
fn serve(mut listener: BlastChannelListener, stop: &StopSwitch, to: &SyncSender<BlastStream>) {
    let (halves, saying) = (BlastStreamHalves::default(), ConnectionSlotPool::new(MOST));
    let next = || {
        let (direction, over) = (Arc::new(BlastStreamDirection::default()), stop.clone());
        let own = Arc::clone(&direction);
        // Established connections outlive the listener.
        listener.interrupted_by(Interrupt::new(move || {
            own.is_over() || (over.is_stopped() && !own.is_taken())
        }));
        let channel = listener.accept().map_err(failed)?;
        Ok((channel, direction))
    };
    accept_each(stop, next, |(channel, direction)| {
        direction.lasts_until(Some(Instant::now() + BOTH));
        let ends = Arc::clone(&direction);
        let place = saying.enter_or_replace(move || ends.is_ended.store(true, Ordering::Relaxed));
        let (halves, to) = (Arc::clone(&halves), to.clone());
        in_thread(move || pair(channel, direction, place, &halves, &to));
    });
}

/// Reads which way a channel is; with the other channel it becomes a connection.
fn pair(
    mut channel: BlastChannel,
    direction: Arc<BlastStreamDirection>,
    place: ConnectionSlot,
    halves: &BlastStreamHalves,
    to: &SyncSender<BlastStream>,
) {
    let mut said = [0; 1 + TOKEN];
    if !channel
        .receive_into(&mut said)
        .is_ok_and(|count| count == said.len())
        || place.is_lost()
    {
        return;
    }
    drop(place);
    let Some((which @ REQUESTS..=ANSWERS, token)) = said
        .split_first()
        .and_then(|(which, token)| Some((*which, *token.first_chunk()?)))
    else {
        return;
    };
    let mut halves = halves.lock().unwrap_or_else(PoisonError::into_inner);
    halves.retain(|_, (.., since)| since.elapsed() < BOTH);
    let other = halves.remove(&token).filter(|(other, ..)| *other != which);
    let Some((_, other, other_direction, _)) = other else {
        let oldest = halves
            .iter()
            .min_by_key(|(_, (.., since))| *since)
            .map(|(token, _)| *token);
        if halves.len() >= MOST
            && let Some(oldest) = oldest
        {
            halves.remove(&oldest);
        }
        halves.insert(token, (which, channel, direction, Instant::now()));
        return;
    };
    drop(halves);
    for direction in [&direction, &other_direction] {
        direction.is_taken.store(true, Ordering::Relaxed);
        direction.lasts_until(None);
    }
    let (one, two) = ((channel, direction), (other, other_direction));
    let _ = to.try_send(if which == REQUESTS {
        BlastStream::new(one, two)
    } else {
        BlastStream::new(two, one)
    });
}
