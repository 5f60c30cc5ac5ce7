//! The server: a thread a client moves its bytes to the machine and the machine's to it; whoever looks on reads the windows.
//!
//! A client that does not read its answers for five seconds loses its connection, and what it had. Whoever has not said who it is has a place
//! among strangers, of whom the idlest gives way; whoever knows the secret has one among clients.

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
use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
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
/// Clients at once, at most, and those who have not said who they are: of more the idlest gives way.
pub(crate) const MOST_CLIENTS: usize = 64;
pub(crate) const MOST_STRANGERS: usize = 64;
/// Events of input that wait to be looked at.
const MOST_INPUTS: usize = 256;
/// How long a client may take to read why it is sent away.
const LAST: Duration = Duration::from_secs(1);

/// A display that is served.
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

/// Each client has a display of its own, so that what one draws keeps no other waiting.
#[derive(Debug, Default)]
struct DisplayServerClients {
    last: u64,
    known: BTreeMap<ClientId, KnownDisplayClient>,
}

/// A client that has said who it is.
#[derive(Debug)]
struct KnownDisplayClient {
    display: Arc<Mutex<DisplayMachine>>,
    inputs: Arc<Mutex<Inputs>>,
    /// Wakes the thread that looks for what input hits, draws, and writes, so that nobody who looks on waits for it.
    waker: SyncSender<()>,
}

/// Input that waits for that thread.
#[derive(Debug, Default)]
struct Inputs {
    events: VecDeque<(u32, DisplayInput)>,
    dropped: u32,
}

/// What that thread waits for.
pub(crate) struct Attends {
    id: ClientId,
    woken: Receiver<()>,
    inputs: Arc<Mutex<Inputs>>,
}

impl Attends {
    /// Waits for something to do; false where the client has gone.
    pub(crate) fn woken(&self) -> bool {
        self.woken.recv().is_ok()
    }
}

/// Tells the time, and records an event for each step of a request where that is wanted (`STACKLINE_EVENTS`).
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

/// What a request is called in events, at both ends.
pub(crate) fn unit(client: u64, request: u32) -> i64 {
    (client << 32 | u64::from(request)) as i64 & i64::MAX
}

impl DisplayServer {
    /// Without clients yet. Those have to know the secret, but for programs of this user at a unix socket; with an empty one all may come.
    #[must_use]
    pub fn new(limits: DisplayClientLimits, token: Vec<u8>) -> Self {
        Self::within(limits, token, DisplayMemoryBudget::default())
    }

    /// The same; all clients together take no more memory than that.
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

    /// Takes clients that come there from now on, in threads of its own. `say` gets who is refused, and why.
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

    /// Somebody has come, who may have to say the secret: the number, and a display that nobody else sees yet.
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

    /// Whoever has said who it is becomes a client; nothing where there are as many as may be.
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

    /// A client has gone, and all it had.
    pub(crate) fn leave(&self, id: ClientId) {
        self.clients().known.remove(&id);
    }

    /// What tells the time of requests, and records their steps.
    pub(crate) fn watch(&self) -> impl DisplayStepObserver {
        DisplayEventRecorder {
            begun: self.inner.begun,
            is_on: stackline_events::recorder::is_recording(),
        }
    }

    /// Looks what waiting input hits, and draws what is not drawn, in the client's own thread.
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

    /// Serves a client to its end; why it was sent away, where it was.
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
            // Writes input that came, and what is drawn; it ends when its waker goes.
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

    /// A key or the pointer, from whoever looks on.
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
        // One that is woken already sees this too.
        let _ = known.waker.try_send(());
    }

    /// Somebody wants to see what a client has not drawn yet: it is drawn in the client's own thread.
    pub(crate) fn wants(&self, client: ClientId) {
        let clients = self.clients();
        let _ = clients
            .known
            .get(&client)
            .map(|known| known.waker.try_send(()));
    }

    /// The display of each client.
    #[must_use]
    pub fn displays(&self) -> Vec<(ClientId, Arc<Mutex<DisplayMachine>>)> {
        self.clients()
            .known
            .iter()
            .map(|(id, known)| (*id, Arc::clone(&known.display)))
            .collect()
    }

    /// Does something with the display of the client that came last, as it is now.
    pub fn last<T>(&self, look: impl FnOnce(ClientId, &mut DisplayMachine) -> T) -> Option<T> {
        let (id, display) = self.displays().pop()?;
        let mut display = display.lock().unwrap_or_else(PoisonError::into_inner);
        Some(look(id, &mut display))
    }
}

/// A client leaves, however its thread ends: the thread that attends it ends with that.
struct EndsAttending<'s>(&'s DisplayServer, ClientId);

impl Drop for EndsAttending<'_> {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}

/// How the beginning of a connection went.
enum Greeted {
    /// It knows the secret.
    Known,
    /// It went, or had to.
    Gone,
    /// It did not say who it is in time.
    Slow,
    /// What it said ends the connection.
    Ends(DisplayEndReason),
}

/// A client gets the answer that there are too many.
pub(crate) fn too_many(stream: &mut DisplayStream) {
    let mut out = Vec::new();
    DisplayAnswer::Refused {
        request: 0,
        why: DisplayRefusal::TooMany as u8,
    }
    .put(&mut out);
    let _ = stream.write_all(&out);
    // What it sent and nobody read would take the word with it.
    stream.ends_writing();
    hear_out(stream, LAST);
    stream.end();
}

/// Reads what comes, and does nothing with it, until that is over or so much time has passed.
pub(crate) fn hear_out(stream: &mut DisplayStream, time: Duration) {
    let (deadline, mut piece) = (Deadline::within(time), [0; 4096]);
    while let Some(rest) = deadline.rest() {
        let read = stream
            .read_within(Some(rest))
            .and_then(|()| stream.read(&mut piece));
        if !matches!(read, Ok(1..)) {
            return;
        }
    }
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

    /// Reads until the client has said who it is, however slowly it does: all of that has one bound of time.
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
            // What was asked before is answered all the same.
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
