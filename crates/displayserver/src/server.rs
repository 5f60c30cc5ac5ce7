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
use std::sync::mpsc::{SyncSender, sync_channel};
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
        let state = State { display: Display::new(limits, token), wakers: BTreeMap::new() };
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
            if state.wakers.len() >= MOST_CLIENTS {
                return Some(format!("a client was sent away: there are {MOST_CLIENTS} already"));
            }
            let id = state.display.connect();
            let (waker, woken) = sync_channel(1);
            state.wakers.insert(id, waker);
            let (server, writer) = (self.clone(), Arc::clone(&writer));
            thread::spawn(move || {
                while woken.recv().is_ok() {
                    if server.answers(id, &writer).is_err() {
                        return writer.lock().unwrap_or_else(PoisonError::into_inner).end();
                    }
                }
            });
            id
        };
        let why = self.serve(id, &mut stream, &writer);
        stream.end();
        let mut state = self.state();
        state.display.disconnect(id);
        state.wakers.remove(&id);
        why.map(|why| format!("a client was sent away: {why}"))
    }

    fn serve(&self, id: ClientId, stream: &mut Stream, writer: &Mutex<Stream>) -> Option<String> {
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
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) if !is_known => continue,
                Err(_) => return None,
            };
            let mut watch = Events { begun: self.inner.begun, is_on: stackline_events::recorder::on() };
            let received = self.state().display.receive(id, piece.get(..count)?, &mut watch);
            // What was asked before is answered all the same.
            if self.answers(id, writer).is_err() {
                return Some(format!("it did not read its answers for {} s", PATIENCE.as_secs()));
            }
            if let Err(why) = received {
                return Some(why.words());
            }
            if !is_known && self.state().display.is_known(id) {
                is_known = true;
                stream.read_within(None).ok()?;
            }
        }
    }

    /// Writes what the machine has for a client. Taking an answer and writing it are one step for whoever does it.
    fn answers(&self, id: ClientId, writer: &Mutex<Stream>) -> std::io::Result<()> {
        let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        let out = self.state().display.output(id);
        if out.is_empty() { Ok(()) } else { writer.write_all(&out) }
    }

    /// A key or the pointer, from whoever looks on.
    pub fn input(&self, client: ClientId, window: u32, input: Input) {
        let mut state = self.state();
        state.display.input(client, window, input);
        if let Some(waker) = state.wakers.get(&client) {
            // One that is woken already writes this too.
            let _ = waker.try_send(());
        }
    }

    /// Does something with the display as it is now.
    pub fn with<T>(&self, look: impl FnOnce(&mut Display) -> T) -> T {
        look(&mut self.state().display)
    }
}
