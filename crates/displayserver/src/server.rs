//! The server: a thread a client moves its bytes to the machine and the machine's to it; whoever looks on reads the windows.
//!
//! A client that does not read its answers for five seconds loses its connection, and what it had.

use crate::listener::Listener;
use crate::stream::Stream;
use stackline_display::machine::{ClientId, Display, Step, Watch};
use stackline_display::protocol::{Answer, Input};
use stackline_display::symbols::{Limits, Refusal};
use stackline_events::event;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes read at once.
const PIECE: usize = 64 << 10;
/// How long a client may not read.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes that the kernel keeps of what a client does not read, before that is noticed.
pub(crate) const UNREAD: usize = 64 << 10;
/// How long one may take to say who it is.
pub(crate) const HELLO: Duration = Duration::from_secs(10);
/// Clients at once, at most.
const MOST_CLIENTS: usize = 64;

/// A display that is served.
#[derive(Clone, Debug)]
pub struct Server {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    clients: Mutex<Clients>,
    limits: Limits,
    token: Vec<u8>,
    begun: Instant,
}

/// Each client has a display of its own, so that what one draws keeps no other waiting.
#[derive(Debug, Default)]
struct Clients {
    last: u64,
    displays: BTreeMap<ClientId, Arc<Mutex<Display>>>,
    /// Wakes the thread that writes a client's input, so that nobody who looks on waits for it.
    wakers: BTreeMap<ClientId, SyncSender<()>>,
}

/// Tells the time, and records an event for each step of a request where that is wanted (`STACKLINE_EVENTS`).
struct Events {
    begun: Instant,
    is_on: bool,
}

impl Watch for Events {
    fn now(&mut self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn hears(&self) -> bool {
        self.is_on
    }

    fn passed(&mut self, step: Step, client: ClientId, request: u32) {
        let unit = unit(client.0, request);
        match step {
            Step::Parsed => event!("DISPLAY_PARSE", unit),
            Step::Stored => event!("DISPLAY_STORE", unit),
            Step::Rendered => event!("DISPLAY_RENDER", unit),
        }
    }
}

/// What a request is called in events, at both ends.
pub(crate) fn unit(client: u64, request: u32) -> i64 {
    (client << 32 | u64::from(request)) as i64 & i64::MAX
}

impl Server {
    /// Without clients yet.
    #[must_use]
    pub fn new(limits: Limits, token: Vec<u8>) -> Self {
        let clients = Mutex::new(Clients::default());
        Self { inner: Arc::new(Inner { clients, limits, token, begun: Instant::now() }) }
    }

    /// Takes clients that come there from now on, in threads of its own. `say` is told who is sent away, and why.
    pub fn listen(&self, listener: Listener, say: fn(&str)) {
        let server = self.clone();
        thread::spawn(move || {
            loop {
                match listener.accept() {
                    Ok(stream) => {
                        let server = server.clone();
                        thread::spawn(move || {
                            if let Some(why) = server.client(stream) {
                                say(&why);
                            }
                        });
                    }
                    // No descriptors, or the like: it may be better in a while.
                    Err(_) => thread::sleep(Duration::from_millis(100)),
                }
            }
        });
    }

    fn clients(&self) -> MutexGuard<'_, Clients> {
        self.inner.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client has come: its number and its display; nothing where there are as many as may be.
    pub(crate) fn enter(&self) -> Option<(ClientId, Arc<Mutex<Display>>)> {
        let mut clients = self.clients();
        if clients.displays.len() >= MOST_CLIENTS {
            return None;
        }
        let mut display = Display::new(self.inner.limits, self.inner.token.clone()).after(clients.last);
        let id = display.connect();
        clients.last = id.0;
        let display = Arc::new(Mutex::new(display));
        clients.displays.insert(id, Arc::clone(&display));
        Some((id, display))
    }

    /// A client has gone, and all it had.
    pub(crate) fn leave(&self, id: ClientId) {
        let mut clients = self.clients();
        clients.displays.remove(&id);
        clients.wakers.remove(&id);
    }

    /// What tells the time of requests, and records their steps.
    pub(crate) fn watch(&self) -> impl Watch {
        Events { begun: self.inner.begun, is_on: stackline_events::recorder::on() }
    }

    /// Serves a client to its end; why it was sent away, where it was.
    fn client(&self, mut stream: Stream) -> Option<String> {
        stream.keeps(UNREAD);
        let writer = stream.again().and_then(|writer| writer.write_within(PATIENCE).map(|()| writer)).ok()?;
        let writer = Mutex::new(writer);
        let (waker, woken) = sync_channel(1);
        let Some((id, display)) = self.enter() else {
            sent_away(&mut stream);
            return Some(format!("a client was sent away: there are {MOST_CLIENTS} already"));
        };
        self.clients().wakers.insert(id, waker);
        let served = &Served { id, display: &display, writer: &writer, begun: self.inner.begun };
        let why = thread::scope(|scope| {
            // Writes input that came; it ends when its waker goes.
            scope.spawn(move || {
                while woken.recv().is_ok() {
                    if served.answers().is_err() {
                        return served.end();
                    }
                }
            });
            let why = served.serve(&mut stream);
            stream.end();
            self.leave(id);
            why
        });
        why.map(|why| format!("a client was sent away: {why}"))
    }

    /// A key or the pointer, from whoever looks on.
    pub fn input(&self, client: ClientId, window: u32, input: Input) {
        let (display, waker) = {
            let clients = self.clients();
            let Some(display) = clients.displays.get(&client).cloned() else { return };
            (display, clients.wakers.get(&client).cloned())
        };
        display.lock().unwrap_or_else(PoisonError::into_inner).input(client, window, input);
        // One that is woken already writes this too.
        let _ = waker.map(|waker| waker.try_send(()));
    }

    /// The display of each client.
    #[must_use]
    pub fn displays(&self) -> Vec<(ClientId, Arc<Mutex<Display>>)> {
        self.clients().displays.iter().map(|(id, display)| (*id, Arc::clone(display))).collect()
    }

    /// Does something with the display of the client that came last, as it is now.
    pub fn last<T>(&self, look: impl FnOnce(ClientId, &mut Display) -> T) -> Option<T> {
        let (id, display) = self.displays().pop()?;
        let mut display = display.lock().unwrap_or_else(PoisonError::into_inner);
        Some(look(id, &mut display))
    }
}

/// A client is told that there are too many, once it has said who it is: what it sent and nobody read would take the word with it.
pub(crate) fn sent_away(stream: &mut Stream) {
    let _ = stream.read_within(Some(PATIENCE)).and_then(|()| stream.read(&mut [0; 1024]));
    let mut out = Vec::new();
    Answer::Refused { request: 0, why: Refusal::TooMany as u8 }.put(&mut out);
    let _ = stream.write_all(&out);
    stream.end();
}

/// Whether who is written to has not read for as long as it may.
pub(crate) fn is_slow(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Why such a client is sent away.
pub(crate) fn unread() -> String {
    format!("it did not read its answers for {} s", PATIENCE.as_secs())
}

/// A client at work: its display, and the writing side of its connection.
struct Served<'s> {
    id: ClientId,
    display: &'s Mutex<Display>,
    writer: &'s Mutex<Stream>,
    begun: Instant,
}

impl Served<'_> {
    fn display(&self) -> MutexGuard<'_, Display> {
        self.display.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> MutexGuard<'_, Stream> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.writer().end();
    }

    fn serve(&self, stream: &mut Stream) -> Option<String> {
        let mut piece = vec![0; PIECE];
        let (begun, mut is_known) = (Instant::now(), false);
        loop {
            if !is_known {
                // However slowly it says who it is.
                let Some(rest) = HELLO.checked_sub(begun.elapsed()).filter(|rest| !rest.is_zero()) else {
                    return Some(format!("it did not say who it is within {} s", HELLO.as_secs()));
                };
                stream.read_within(Some(rest)).ok()?;
            }
            let count = match stream.read(&mut piece) {
                Ok(0) => return None,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if !is_known && matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::InvalidData => return Some(error.to_string()),
                Err(_) => return None,
            };
            let mut watch = Events { begun: self.begun, is_on: stackline_events::recorder::on() };
            let received = self.display().receive(self.id, piece.get(..count)?, &mut watch);
            // What was asked before is answered all the same.
            if let Err(error) = self.answers() {
                return is_slow(&error).then(unread);
            }
            if let Err(why) = received {
                return Some(why.words());
            }
            if !is_known && self.display().is_known(self.id) {
                is_known = true;
                stream.read_within(None).ok()?;
            }
        }
    }

    /// Writes what the machine has for a client. Taking an answer and writing it are one step for whoever does it.
    fn answers(&self) -> std::io::Result<()> {
        let mut writer = self.writer();
        let out = self.display().output(self.id);
        let mut rest = out.as_slice();
        while !rest.is_empty() {
            let begun = Instant::now();
            let count = writer.write(rest)?;
            rest = &rest[count..];
            // The kernel took some before nobody read.
            if count == 0 || (!rest.is_empty() && begun.elapsed() >= PATIENCE) {
                return Err(ErrorKind::TimedOut.into());
            }
        }
        Ok(())
    }
}
