//! The display's agent on sockets: clients connect to it; for each it connects to the display, and again if that connection is lost.

use crate::address::DisplayAddress;
use crate::listener::{DisplayListener, serve_streams};
use crate::server::{
    HELLO, MOST_CLIENTS, MOST_STRANGERS, PATIENCE, UNREAD, is_slow, too_many, unread,
};
use crate::stream::DisplayStream;
use stackline_display::agent::DisplayClientAgent;
use stackline_display::machine::DisplayEndReason;
use stackline_display::protocol::{self, DisplayAnswer};
use stackline_display::symbols::{DisplayClientLimits, DisplayRefusal};
use stackline_guard::attempts::Attempts;
use stackline_guard::connection_slots::{ConnectionSlot, ConnectionSlotPool};
use stackline_guard::deadline::Deadline;
use stackline_guard::timed_stream::hear_out;
use std::io::{ErrorKind, Read, Write};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// If the display ends the connection this often before it accepts the client, it does not want the client.
const REFUSALS: u32 = 3;
/// Bytes that are read at a time.
const PIECE: usize = 16 << 10;
/// The pause before connecting to the display again.
const AGAIN: Duration = Duration::from_millis(100);
/// How often a client that waits for the display gets a sign of life from the agent.
const WAITS: Duration = Duration::from_secs(3);
/// How often to check whether a client that has used its credit may send more.
const FULL: Duration = Duration::from_millis(5);

/// What the threads of a client share.
struct DisplayAgentShared {
    agent: DisplayClientAgent,
    /// While there is a display: the channel to its writer, and its connection.
    display: Option<(Sender<Vec<u8>>, DisplayStream)>,
    /// Whether there has been a display. Until then nothing after the greeting is read, so that the first display gets the requests
    /// unchanged.
    is_begun: bool,
    /// Whether the client is gone.
    is_over: bool,
}

/// The options of an agent.
#[derive(Clone, Debug)]
pub struct DisplayAgentOptions {
    /// The address of the display.
    pub display: DisplayAddress,
    /// The limits of each client.
    pub limits: DisplayClientLimits,
    /// How long to wait for a display that is lost.
    pub patience: Duration,
    /// The secret that clients have to send, except programs of this user on a unix socket; empty if none is needed.
    pub secret: Vec<u8>,
}

/// Serves clients forever.
pub fn serve(listener: &DisplayListener, service: &DisplayAgentOptions, say: fn(&str)) {
    let (clients, attempts) = (ConnectionSlotPool::new(MOST_CLIENTS), Attempts::default());
    let service = service.clone();
    let strangers = ConnectionSlotPool::new(MOST_STRANGERS);
    serve_streams(listener, strangers, move |client, place| {
        if let Err(why) = one(client, service.clone(), place, &clients, &attempts) {
            say(&format!("a client was disconnected: {why}"));
        }
    });
}

fn lock(shared: &Mutex<DisplayAgentShared>) -> MutexGuard<'_, DisplayAgentShared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves one client until it ends or its display stays away.
fn one(
    mut client: DisplayStream,
    service: DisplayAgentOptions,
    place: ConnectionSlot,
    clients: &Arc<ConnectionSlotPool>,
    attempts: &Attempts,
) -> Result<(), String> {
    let DisplayAgentOptions {
        display,
        limits,
        patience,
        secret,
    } = service;
    let lost = |error: std::io::Error| format!("connection lost: {error}");
    let secret = if client.is_same_user() {
        Vec::new()
    } else {
        secret
    };
    let mut agent = DisplayClientAgent::new(limits, secret);
    match greet(&mut client, &mut agent) {
        Ok(true) => drop(place),
        Ok(false) if place.is_lost() => {
            return Err("newer connections arrived before it authenticated".into());
        }
        Ok(false) => return Ok(()),
        Err(why) => {
            if why == DisplayEndReason::Stranger {
                hear_out(&mut client, attempts.failed(Instant::now()));
            }
            client.end();
            return Err(why.words());
        }
    }
    let Some(_place) = clients.enter() else {
        too_many(&mut client);
        return Err(format!("{MOST_CLIENTS} clients are already connected"));
    };
    let shared = Arc::new(Mutex::new(DisplayAgentShared {
        agent,
        display: None,
        is_begun: false,
        is_over: false,
    }));
    let (reader, mut back) = (client.again().map_err(lost)?, client.again().map_err(lost)?);
    client.keeps(UNREAD);
    back.write_within(PATIENCE).map_err(lost)?;
    let taken = Arc::clone(&shared);
    let reading = thread::Builder::new()
        .spawn(move || take(reader, &taken))
        .map_err(lost)?;
    let done = keep(&shared, &display, &mut back, patience);
    client.end();
    let took = reading.join().unwrap_or(Ok(()));
    done.and(took.map_err(|why| why.words()))
}

/// Reads a client's greeting. Returns whether it was complete in time. Nothing after it is read here: that is for the display.
fn greet(
    client: &mut DisplayStream,
    agent: &mut DisplayClientAgent,
) -> Result<bool, DisplayEndReason> {
    let (deadline, mut hello, mut piece) = (
        Deadline::within(HELLO),
        Vec::new(),
        [0; protocol::LONGEST_HELLO],
    );
    while !agent.is_known().0 {
        let Some(rest) = deadline.rest() else {
            return Ok(false);
        };
        // The header gives the length of the greeting.
        let missing = protocol::message_length(&hello)
            .saturating_sub(hello.len())
            .clamp(1, piece.len());
        match client
            .read_within(Some(rest))
            .and_then(|()| client.read(&mut piece[..missing]))
        {
            Ok(count @ 1..) => {
                hello.extend_from_slice(&piece[..count]);
                agent.from_client(&piece[..count])?;
            }
            Err(error) if is_slow(&error) || error.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return Ok(false),
        }
    }
    Ok(client.read_within(None).is_ok())
}

/// Reads what the client sends.
fn take(
    mut client: DisplayStream,
    shared: &Mutex<DisplayAgentShared>,
) -> Result<(), DisplayEndReason> {
    let mut piece = vec![0; PIECE];
    let mut ended = Ok(());
    while let Some(room) = room(shared, &client) {
        let most = room.min(PIECE);
        let Ok(count @ 1..) = client.read(&mut piece[..most]) else {
            break;
        };
        let mut shared = lock(shared);
        match shared.agent.from_client(&piece[..count]) {
            Ok(bytes) => {
                // If the display is lost, the bytes are part of the picture that the next display gets.
                let _ = shared
                    .display
                    .as_ref()
                    .map(|(display, _)| display.send(bytes));
            }
            Err(why) => {
                ended = Err(why);
                break;
            }
        }
    }
    let mut shared = lock(shared);
    shared.is_over = true;
    if let Some((_, display)) = shared.display.take() {
        display.end();
    }
    client.end();
    ended
}

/// Waits until bytes may be read from a client, and returns how many; `None` if it is gone.
fn room(shared: &Mutex<DisplayAgentShared>, client: &DisplayStream) -> Option<usize> {
    loop {
        let (room, is_begun, is_over) = {
            let shared = lock(shared);
            (shared.agent.room(), shared.is_begun, shared.is_over)
        };
        // Once the client is being read, its end is seen there.
        if is_over || (!is_begun && client.is_gone()) {
            return None;
        }
        if is_begun && room > 0 {
            return Some(room);
        }
        // The display is not there yet, or has granted no credit for a while: a short pause does not matter.
        thread::sleep(FULL);
    }
}

/// Writes an answer of the agent's own. The display's answers are always written whole, so it comes between two of them.
fn write_answer(client: &mut DisplayStream, answer: &DisplayAnswer) {
    let mut word = Vec::new();
    answer.put(&mut word);
    // The reading thread notices if the client is gone.
    let _ = client.write_all(&word);
}

/// Connects to the display, restores the picture there, and passes answers to the client; again whenever the display is lost.
fn keep(
    shared: &Arc<Mutex<DisplayAgentShared>>,
    display: &DisplayAddress,
    client: &mut DisplayStream,
    patience: Duration,
) -> Result<(), String> {
    let (mut since, mut last_sign, mut refused) = (Instant::now(), Instant::now(), 0);
    loop {
        let stream = loop {
            if lock(shared).is_over {
                return Ok(());
            }
            match display.connect() {
                Ok(stream) => break stream,
                Err(error) if since.elapsed() >= patience => {
                    write_answer(
                        client,
                        &DisplayAnswer::Refused {
                            request: 0,
                            why: DisplayRefusal::NoDisplay as u8,
                        },
                    );
                    return Err(format!(
                        "{}; waited {} s for it",
                        error.message,
                        patience.as_secs()
                    ));
                }
                Err(_) if last_sign.elapsed() >= WAITS && lock(shared).agent.is_known().0 => {
                    last_sign = Instant::now();
                    write_answer(client, &DisplayAnswer::Credit(0));
                }
                Err(_) => thread::sleep(AGAIN),
            }
        };
        let begun = Instant::now();
        answers(shared, stream, client)?;
        let (said_hello, is_known) = {
            let mut shared = lock(shared);
            shared.display = None;
            shared.agent.is_known()
        };
        refused += u32::from(said_hello && !is_known);
        if refused >= REFUSALS {
            return Err(format!(
                "the display at {display} does not accept clients: the secret or the version may be wrong"
            ));
        }
        // A display that accepts nobody is not tried again without a pause.
        if begun.elapsed() < AGAIN {
            thread::sleep(AGAIN);
        } else {
            since = Instant::now();
        }
        if since.elapsed() >= patience {
            return Err(format!("the display at {display} closes every connection"));
        }
    }
}

/// Handles one connection to the display until it ends.
fn answers(
    shared: &Arc<Mutex<DisplayAgentShared>>,
    mut stream: DisplayStream,
    client: &mut DisplayStream,
) -> Result<(), String> {
    let (Ok(mut out), Ok(ended), Ok(kept)) = (stream.again(), stream.again(), stream.again())
    else {
        return Ok(());
    };
    let (to, from) = mpsc::channel::<Vec<u8>>();
    thread::spawn(move || {
        while let Ok(bytes) = from.recv() {
            if out.write_all(&bytes).is_err() {
                break;
            }
        }
        // The client is gone, or the display.
        ended.end();
    });
    {
        let mut shared = lock(shared);
        if shared.is_over {
            return Ok(());
        }
        let picture = shared.agent.again();
        let _ = to.send(picture);
        shared.display = Some((to, kept));
        shared.is_begun = true;
    }
    let mut piece = vec![0; PIECE];
    while let Ok(count) = stream.read(&mut piece) {
        if count == 0 {
            break;
        }
        let back = lock(shared).agent.from_display(&piece[..count]);
        let back = back.map_err(|why| {
            format!(
                "the server at the display's address is not a display: {}",
                why.words()
            )
        })?;
        if let Err(error) = client.write_all(&back) {
            lock(shared).is_over = true;
            return if is_slow(&error) {
                Err(unread())
            } else {
                Ok(())
            };
        }
    }
    Ok(())
}
