//! The display server: a thread per client moves bytes between its connection and the display's state machine; viewers read the windows.
//!
//! A client that does not read its answers for five seconds loses its connection and everything it had. A connection whose greeting is not
//! complete has a slot among strangers, of whom the idlest gives way; one that knows the secret has a slot among clients.

use crate::listener::{DisplayListener, serve_streams};
use crate::stream::DisplayStream;
use stackline_display::budget::DisplayMemoryBudget;
use stackline_display::machine::{
    ClientId, DisplayEndReason, DisplayMachine, DisplayRequestStep, DisplayStepObserver,
};
use stackline_display::protocol::{DisplayAnswer, DisplayInput};
use stackline_display::symbols::{DisplayClientLimits, DisplayRefusal};
use stackline_events::catalogue::rows::{DisplayParse, DisplayRender, DisplayStore};
use stackline_guard::attempts::Attempts;
use stackline_guard::connection_slots::{ConnectionSlot, ConnectionSlotPool};
use stackline_guard::deadline::Deadline;
use stackline_guard::timed_stream::hear_out;
use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that are read at a time.
const PIECE: usize = 64 << 10;
/// How long a client may not read its answers.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes that the kernel buffers for a client that does not read, before the server notices.
pub(crate) const UNREAD: usize = 64 << 10;
/// How long a client may take to complete its greeting.
pub(crate) const HELLO: Duration = Duration::from_secs(10);
/// The limit on clients.
pub(crate) const MOST_CLIENTS: usize = 64;
/// The limit on connections whose greeting is not complete: when there are more, the idlest gives way.
pub(crate) const MOST_STRANGERS: usize = 64;
/// The limit on input events that wait for a client's thread.
const MOST_INPUTS: usize = 256;
/// How long a client may take to read why it is disconnected.
const LAST: Duration = Duration::from_secs(1);

/// A display server; clones share it.
#[derive(Clone, Debug)]
pub struct DisplayServer {
    inner: Arc<DisplayServerInner>,
}

#[derive(Debug)]
struct DisplayServerInner {
    clients: Mutex<DisplayServerClients>,
    limits: DisplayClientLimits,
    budget: DisplayMemoryBudget,
    token: Vec<u8>,
    begun: Instant,
    strangers: Arc<ConnectionSlotPool>,
    attempts: Attempts,
}

/// The clients. Each has a display of its own, so that one client's drawing delays no other.
#[derive(Debug, Default)]
struct DisplayServerClients {
    last: u64,
    known: BTreeMap<ClientId, KnownDisplayClient>,
}

/// A client whose greeting is complete.
#[derive(Debug)]
struct KnownDisplayClient {
    display: Arc<Mutex<DisplayMachine>>,
    inputs: Arc<Mutex<Inputs>>,
    /// Wakes the client's attending thread, which handles input, draws and writes, so that no viewer waits for that.
    waker: SyncSender<()>,
}

/// Input that waits for the attending thread.
#[derive(Debug, Default)]
struct Inputs {
    events: VecDeque<(u32, DisplayInput)>,
    dropped: u32,
}

/// What an attending thread waits for.
pub(crate) struct Attends {
    id: ClientId,
    woken: Receiver<()>,
    inputs: Arc<Mutex<Inputs>>,
}

impl Attends {
    /// Waits for something to do. Returns false when the client has gone.
    pub(crate) fn woken(&self) -> bool {
        self.woken.recv().is_ok()
    }
}

/// Supplies the time, and records an event for each step of a request if events are recorded (`STACKLINE_EVENTS`).
struct DisplayEventRecorder {
    begun: Instant,
    is_on: bool,
}

impl DisplayStepObserver for DisplayEventRecorder {
    fn now(&mut self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn hears(&self) -> bool {
        self.is_on
    }

    fn passed(&mut self, step: DisplayRequestStep, client: ClientId, request: u32) {
        let unit = unit(client.0, request).into();
        match step {
            DisplayRequestStep::Parsed => DisplayParse { unit }.emit(),
            DisplayRequestStep::Stored => DisplayStore { unit }.emit(),
            DisplayRequestStep::Rendered => DisplayRender { unit }.emit(),
        }
    }
}

/// The unit of a request in events, the same at both ends: the client's number and the request's.
pub(crate) fn unit(client: u64, request: u32) -> i64 {
    (client << 32 | u64::from(request)) as i64 & i64::MAX
}

impl DisplayServer {
    /// A server without clients. Clients have to send the secret `token`, except programs of this user on a unix socket; if it is empty,
    /// all are accepted.
    #[must_use]
    pub fn new(limits: DisplayClientLimits, token: Vec<u8>) -> Self {
        Self::within(limits, token, DisplayMemoryBudget::default())
    }

    /// A server whose clients together take no more memory than `budget`.
    #[must_use]
    pub fn within(
        limits: DisplayClientLimits,
        token: Vec<u8>,
        budget: DisplayMemoryBudget,
    ) -> Self {
        let (strangers, attempts) = (ConnectionSlotPool::new(MOST_STRANGERS), Attempts::default());
        let (clients, begun) = (Mutex::default(), Instant::now());
        Self {
            inner: Arc::new(DisplayServerInner {
                clients,
                limits,
                budget,
                token,
                begun,
                strangers,
                attempts,
            }),
        }
    }

    /// Accepts clients from that listener, in threads of its own. `say` is called with the reason when a client is disconnected.
    pub fn listen(&self, listener: DisplayListener, say: fn(&str)) {
        let (server, strangers) = (self.clone(), Arc::clone(&self.inner.strangers));
        thread::spawn(move || {
            serve_streams(&listener, strangers, move |stream, place| {
                if let Some(why) = server.client(stream, place) {
                    say(&why);
                }
            });
        });
    }

    fn clients(&self) -> MutexGuard<'_, DisplayServerClients> {
        self.inner
            .clients
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates the display of a new connection, which nobody else sees until it is admitted. Returns its client number and display.
    pub(crate) fn newcomer(&self, is_same_user: bool) -> (ClientId, Arc<Mutex<DisplayMachine>>) {
        let mut clients = self.clients();
        let token = if is_same_user {
            Vec::new()
        } else {
            self.inner.token.clone()
        };
        let display =
            DisplayMachine::new(self.inner.limits, token).within(self.inner.budget.clone());
        let mut display = display.after(clients.last);
        let id = display.connect();
        clients.last = id.0;
        (id, Arc::new(Mutex::new(display)))
    }

    /// Makes a connection whose greeting is complete a client; `None` if the limit on clients is reached.
    pub(crate) fn admit(
        &self,
        id: ClientId,
        display: &Arc<Mutex<DisplayMachine>>,
    ) -> Option<Attends> {
        let mut clients = self.clients();
        if clients.known.len() >= MOST_CLIENTS {
            return None;
        }
        let (waker, woken) = sync_channel(1);
        let (display, inputs) = (Arc::clone(display), Arc::default());
        clients.known.insert(
            id,
            KnownDisplayClient {
                display,
                inputs: Arc::clone(&inputs),
                waker,
            },
        );
        Some(Attends { id, woken, inputs })
    }

    /// Removes a client and its display.
    pub(crate) fn leave(&self, id: ClientId) {
        self.clients().known.remove(&id);
    }

    /// The observer that supplies the time to displays and records steps.
    pub(crate) fn watch(&self) -> impl DisplayStepObserver {
        DisplayEventRecorder {
            begun: self.inner.begun,
            is_on: stackline_events::recorder::is_recording(),
        }
    }

    /// Handles a client's waiting input, and draws its changes; called by the client's attending thread.
    pub(crate) fn attend(&self, attends: &Attends, display: &Mutex<DisplayMachine>) {
        let Inputs { events, dropped } = std::mem::take(
            &mut *attends
                .inputs
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        let mut display = display.lock().unwrap_or_else(PoisonError::into_inner);
        for (window, input) in events {
            display.input(attends.id, window, input);
        }
        display.missed(attends.id, dropped);
        if display.is_damaged(attends.id) {
            display.draw_all(attends.id);
        }
    }

    /// Serves a client until it ends. Returns why it was disconnected, if it was.
    fn client(&self, mut stream: DisplayStream, place: ConnectionSlot) -> Option<String> {
        stream.keeps(UNREAD);
        let writer = stream
            .again()
            .and_then(|writer| writer.write_within(PATIENCE).map(|()| writer))
            .ok()?;
        let writer = Mutex::new(writer);
        let (id, display) = self.newcomer(stream.is_same_user());
        let served = &ServedDisplayClient {
            id,
            display: &display,
            writer: &writer,
            begun: self.inner.begun,
        };
        let sent_away = |why: String| Some(format!("a client was disconnected: {why}"));
        match served.greet(&mut stream) {
            Greeted::Known => {}
            Greeted::Gone if place.is_lost() => {
                return sent_away("newer connections arrived before it authenticated".into());
            }
            Greeted::Gone => return None,
            Greeted::Ends(why) => {
                if why == DisplayEndReason::Stranger {
                    hear_out(&mut stream, self.inner.attempts.failed(Instant::now()));
                }
                stream.end();
                return sent_away(why.words());
            }
            Greeted::Slow => {
                return sent_away(format!(
                    "it did not authenticate within {} s",
                    HELLO.as_secs()
                ));
            }
        }
        drop(place);
        let Some(attends) = self.admit(id, &display) else {
            too_many(&mut stream);
            return sent_away(format!("{MOST_CLIENTS} clients are already connected"));
        };
        let why = thread::scope(|scope| {
            let (display, end) = (&display, EndsAttending(self, id));
            // Writes input events and draws changes; it ends when the client's waker is dropped.
            let attending = thread::Builder::new().spawn_scoped(scope, move || {
                while attends.woken() {
                    self.attend(&attends, display);
                    if served.answers().is_err() {
                        return served.end();
                    }
                }
            });
            let why = match attending {
                Ok(_) => served.serve(&mut stream),
                Err(_) => Some("this machine cannot start a thread for it".into()),
            };
            stream.end();
            drop(end);
            why
        });
        why.and_then(sent_away)
    }

    /// Passes a viewer's input to a client.
    pub fn input(&self, client: ClientId, window: u32, input: DisplayInput) {
        let clients = self.clients();
        let Some(known) = clients.known.get(&client) else {
            return;
        };
        let mut inputs = known.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        if inputs.events.len() < MOST_INPUTS {
            inputs.events.push_back((window, input));
        } else {
            inputs.dropped = inputs.dropped.saturating_add(1);
        }
        drop(inputs);
        // If the channel is full, the thread is awake already and will see this input too.
        let _ = known.waker.try_send(());
    }

    /// Asks a client's attending thread to draw its changes, for a viewer.
    pub(crate) fn wants(&self, client: ClientId) {
        let clients = self.clients();
        let _ = clients
            .known
            .get(&client)
            .map(|known| known.waker.try_send(()));
    }

    /// The clients and their displays.
    #[must_use]
    pub fn displays(&self) -> Vec<(ClientId, Arc<Mutex<DisplayMachine>>)> {
        self.clients()
            .known
            .iter()
            .map(|(id, known)| (*id, Arc::clone(&known.display)))
            .collect()
    }

    /// Calls a function with the display of the newest client.
    pub fn last<T>(&self, look: impl FnOnce(ClientId, &mut DisplayMachine) -> T) -> Option<T> {
        let (id, display) = self.displays().pop()?;
        let mut display = display.lock().unwrap_or_else(PoisonError::into_inner);
        Some(look(id, &mut display))
    }
}

/// Removes a client on drop, which also ends its attending thread.
struct EndsAttending<'s>(&'s DisplayServer, ClientId);

impl Drop for EndsAttending<'_> {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}

/// The outcome of a greeting.
enum Greeted {
    /// The client knows the secret.
    Known,
    /// The connection ended, or had to give way.
    Gone,
    /// The greeting was not complete in time.
    Slow,
    /// What the client sent ends the connection.
    Ends(DisplayEndReason),
}

/// Reports to a client that the display has too many clients, and closes the connection.
pub(crate) fn too_many(stream: &mut DisplayStream) {
    let mut out = Vec::new();
    DisplayAnswer::Refused {
        request: 0,
        why: DisplayRefusal::TooMany as u8,
    }
    .put(&mut out);
    let _ = stream.write_all(&out);
    // Closing with unread bytes would reset the connection, and the answer would be lost.
    stream.ends_writing();
    hear_out(stream, LAST);
    stream.end();
}

/// Whether a write failed because the peer has not read for too long.
pub(crate) fn is_slow(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// The reason with which such a client is disconnected.
pub(crate) fn unread() -> String {
    format!("it did not read its answers for {} s", PATIENCE.as_secs())
}

/// A client that is being served: its display, and the writing side of its connection.
struct ServedDisplayClient<'s> {
    id: ClientId,
    display: &'s Mutex<DisplayMachine>,
    writer: &'s Mutex<DisplayStream>,
    begun: Instant,
}

impl ServedDisplayClient<'_> {
    fn display(&self) -> MutexGuard<'_, DisplayMachine> {
        self.display.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> MutexGuard<'_, DisplayStream> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.writer().end();
    }

    /// Reads until the greeting is complete, within one time limit however slowly its bytes come.
    fn greet(&self, stream: &mut DisplayStream) -> Greeted {
        let deadline = Deadline::within(HELLO);
        let mut piece = [0; 4096];
        loop {
            let Some(rest) = deadline.rest() else {
                return Greeted::Slow;
            };
            let count = match stream
                .read_within(Some(rest))
                .and_then(|()| stream.read(&mut piece))
            {
                Ok(count @ 1..) => count,
                Err(error) if is_slow(&error) || error.kind() == ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => return Greeted::Gone,
            };
            if let Err(why) = self.receives(&piece[..count]) {
                return Greeted::Ends(why);
            }
            if self.display().is_known(self.id) {
                return if stream.read_within(None).is_ok() {
                    Greeted::Known
                } else {
                    Greeted::Gone
                };
            }
        }
    }

    fn receives(&self, bytes: &[u8]) -> Result<(), DisplayEndReason> {
        let mut watch = DisplayEventRecorder {
            begun: self.begun,
            is_on: stackline_events::recorder::is_recording(),
        };
        self.display().receive(self.id, bytes, &mut watch)
    }

    fn serve(&self, stream: &mut DisplayStream) -> Option<String> {
        let mut piece = vec![0; PIECE];
        loop {
            // Earlier requests are answered even if the connection is about to end.
            if let Err(error) = self.answers() {
                return is_slow(&error).then(unread);
            }
            let count = match stream.read(&mut piece) {
                Ok(0) => return None,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    return Some(error.to_string());
                }
                Err(_) => return None,
            };
            if let Err(why) = self.receives(piece.get(..count)?) {
                let _ = self.answers();
                return Some(why.words());
            }
        }
    }

    /// Writes the display's output to the client. The lock covers taking and writing, so that answers keep their order.
    fn answers(&self) -> std::io::Result<()> {
        let mut writer = self.writer();
        let out = self.display().output(self.id);
        let mut rest = out.as_slice();
        while !rest.is_empty() {
            let begun = Instant::now();
            let count = writer.write(rest)?;
            rest = &rest[count..];
            // The kernel took some bytes before the peer stopped reading.
            if count == 0 || (!rest.is_empty() && begun.elapsed() >= PATIENCE) {
                return Err(ErrorKind::TimedOut.into());
            }
        }
        Ok(())
    }
}
