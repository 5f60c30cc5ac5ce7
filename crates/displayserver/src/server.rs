//! The server: a thread a client moves its bytes to the machine and the machine's to it; whoever looks on reads the windows.
//!
//! A client that does not read its answers for five seconds loses its connection, and what it had.

use crate::address::{Listener, Stream};
use stackline_display::machine::{ClientId, Display, Step, Watch};
use stackline_display::protocol::Input;
use stackline_display::symbols::Limits;
use stackline_events::event;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes read at once.
const PIECE: usize = 64 << 10;
/// How long a client may not read.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long one may take to say who it is.
const HELLO: Duration = Duration::from_secs(10);
/// Clients at once, at most.
const MOST_CLIENTS: usize = 64;

/// A display that is served.
#[derive(Clone, Debug)]
pub struct Server {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    begun: Instant,
}

#[derive(Debug)]
struct State {
    display: Display,
    /// The writing side of each client. Taking an answer from the machine and writing it are one step for whoever does it.
    writers: BTreeMap<ClientId, Arc<Mutex<Stream>>>,
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
        let state = State { display: Display::new(limits, token), writers: BTreeMap::new() };
        Self { inner: Arc::new(Inner { state: Mutex::new(state), begun: Instant::now() }) }
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a client to its end; why it was sent away, where it was.
    fn client(&self, mut stream: Stream) -> Option<String> {
        let writer = stream.again().and_then(|writer| writer.write_within(PATIENCE).map(|()| writer)).ok()?;
        let writer = Arc::new(Mutex::new(writer));
        let id = {
            let mut state = self.state();
            if state.writers.len() >= MOST_CLIENTS {
                return Some(format!("a client was sent away: there are {MOST_CLIENTS} already"));
            }
            let id = state.display.connect();
            state.writers.insert(id, Arc::clone(&writer));
            id
        };
        let why = self.serve(id, &mut stream, &writer);
        stream.end();
        let mut state = self.state();
        state.display.disconnect(id);
        state.writers.remove(&id);
        why.map(|why| format!("a client was sent away: {why}"))
    }

    fn serve(&self, id: ClientId, stream: &mut Stream, writer: &Mutex<Stream>) -> Option<String> {
        let mut piece = vec![0; PIECE];
        let mut is_first = stream.read_within(Some(HELLO)).is_ok();
        loop {
            let count = match stream.read(&mut piece) {
                Ok(0) => return None,
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) if is_first => return Some("it said nothing".to_owned()),
                Err(_) => return None,
            };
            if std::mem::take(&mut is_first) {
                stream.read_within(None).ok()?;
            }
            let mut watch = Events { begun: self.inner.begun, is_on: stackline_events::recorder::on() };
            let received = self.state().display.receive(id, piece.get(..count)?, &mut watch);
            // What was asked before is answered all the same.
            if self.answers(id, writer).is_err() {
                return Some(format!("it did not read its answers for {} s", PATIENCE.as_secs()));
            }
            if let Err(why) = received {
                return Some(why.words());
            }
        }
    }

    /// Writes what the machine has for a client.
    fn answers(&self, id: ClientId, writer: &Mutex<Stream>) -> std::io::Result<()> {
        let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        let out = self.state().display.output(id);
        if out.is_empty() { Ok(()) } else { writer.write_all(&out) }
    }

    /// A key or the pointer, from whoever looks on.
    pub fn input(&self, client: ClientId, window: u32, input: Input) {
        let writer = {
            let mut state = self.state();
            state.display.input(client, window, input);
            state.writers.get(&client).cloned()
        };
        if let Some(writer) = writer.filter(|writer| self.answers(client, writer).is_err()) {
            writer.lock().unwrap_or_else(PoisonError::into_inner).end();
        }
    }

    /// Does something with the display as it is now.
    pub fn with<T>(&self, look: impl FnOnce(&mut Display) -> T) -> T {
        look(&mut self.state().display)
    }
}
