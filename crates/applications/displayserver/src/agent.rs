//! The display's agent on sockets: clients connect to it, it connects to the display for each, and again where that was lost.

use crate::address::Address;
use crate::listener::Listener;
use crate::server::{
    HELLO, MOST_CLIENTS, MOST_STRANGERS, PATIENCE, UNREAD, hear_out, is_slow, too_many, unread,
};
use crate::stream::Stream;
use crate::threads::in_thread;
use stackline_display::agent::Agent;
use stackline_display::machine::Ends;
use stackline_display::protocol::{self, Answer};
use stackline_display::symbols::{Limits, Refusal};
use stackline_guard::attempts::Attempts;
use stackline_guard::deadline::Deadline;
use stackline_guard::pool::{Place, Pool};
use std::io::{ErrorKind, Read, Write};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A display that ends the connection so often before it takes a client does not want it.
const REFUSALS: u32 = 3;
/// Bytes that are read at once.
const PIECE: usize = 16 << 10;
/// How often it is looked whether the display is there again.
const AGAIN: Duration = Duration::from_millis(100);
/// How often a client that waits with it for the display is told that the agent is there.
const WAITS: Duration = Duration::from_secs(3);
/// How often a client that has sent all it may is looked at.
const FULL: Duration = Duration::from_millis(5);

/// What the threads of a client share.
struct Shared {
    agent: Agent,
    /// To the display, while there is one, and its connection.
    display: Option<(Sender<Vec<u8>>, Stream)>,
    /// There was one: until then nothing is read behind what says who the client is, so that the first one gets it as it is.
    is_begun: bool,
    /// The client is gone.
    is_over: bool,
}

/// How an agent serves its clients.
#[derive(Clone, Debug)]
pub struct Service {
    /// Where their display is.
    pub display: Address,
    /// What each may have.
    pub limits: Limits,
    /// How long a display that is lost is waited for.
    pub patience: Duration,
    /// What clients have to know, but for programs of this user at a unix socket; with an empty one all may come.
    pub secret: Vec<u8>,
}

/// Serves clients for ever.
pub fn serve(listener: &Listener, service: &Service, say: fn(&str)) {
    let (strangers, clients) = (Pool::new(MOST_STRANGERS), Pool::new(MOST_CLIENTS));
    let attempts = Arc::new(Attempts::default());
    loop {
        let Ok(client) = listener.accept() else {
            // No descriptors, or the like: it may be better in a while.
            thread::sleep(AGAIN);
            continue;
        };
        let Ok(ends) = client.again() else { continue };
        let place = strangers.enter_or_replace(move || ends.end());
        let (service, clients, attempts) =
            (service.clone(), Arc::clone(&clients), Arc::clone(&attempts));
        in_thread(move || {
            if let Err(why) = one(client, service, place, &clients, &attempts) {
                say(&format!("a client was disconnected: {why}"));
            }
        });
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One client, until it goes or its display stays away.
fn one(
    mut client: Stream,
    service: Service,
    place: Place,
    clients: &Arc<Pool>,
    attempts: &Attempts,
) -> Result<(), String> {
    let Service {
        display,
        limits,
        patience,
        secret,
    } = service;
    let lost = |error: std::io::Error| format!("a client is lost: {error}");
    let secret = if client.is_same_user() {
        Vec::new()
    } else {
        secret
    };
    let mut agent = Agent::new(limits, secret);
    match greet(&mut client, &mut agent) {
        Ok(true) => drop(place),
        Ok(false) if place.is_lost() => {
            return Err("others came while it did not say who it is".into());
        }
        Ok(false) => return Ok(()),
        Err(why) => {
            if why == Ends::Stranger {
                hear_out(&mut client, attempts.failed(Instant::now()));
            }
            client.end();
            return Err(why.words());
        }
    }
    let Some(_place) = clients.enter() else {
        too_many(&mut client);
        return Err(format!("there are {MOST_CLIENTS} already"));
    };
    let shared = Arc::new(Mutex::new(Shared {
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

/// Whether a client says who it is in time. Of what it sends behind that nothing is read here: its display gets it.
fn greet(client: &mut Stream, agent: &mut Agent) -> Result<bool, Ends> {
    let (deadline, mut hello, mut piece) = (
        Deadline::within(HELLO),
        Vec::new(),
        [0; protocol::LONGEST_HELLO],
    );
    while !agent.is_known().0 {
        let Some(rest) = deadline.rest() else {
            return Ok(false);
        };
        // Its head says how long it is.
        let missing = protocol::needed(&hello)
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

/// Takes what the client sends.
fn take(mut client: Stream, shared: &Mutex<Shared>) -> Result<(), Ends> {
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
                // Where it is lost, the picture that is given again has it.
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

/// Bytes that may be taken from a client, once there are any; nothing where it is over.
fn room(shared: &Mutex<Shared>, client: &Stream) -> Option<usize> {
    loop {
        let (room, is_begun, is_over) = {
            let shared = lock(shared);
            (shared.agent.room(), shared.is_begun, shared.is_over)
        };
        // Who goes is seen where it is read, once it is.
        if is_over || (!is_begun && client.is_gone()) {
            return None;
        }
        if is_begun && room > 0 {
            return Some(room);
        }
        // The display is not there yet, or has said nothing for a whole credit: it is no hurry.
        thread::sleep(FULL);
    }
}

/// A word of the agent's own, between the display's answers, which pass whole.
fn tell(client: &mut Stream, answer: &Answer) {
    let mut word = Vec::new();
    answer.put(&mut word);
    // Who is gone is seen where it is read.
    let _ = client.write_all(&word);
}

/// Keeps the display: connects, gives it the picture, brings the client its answers; again where it is lost.
fn keep(
    shared: &Arc<Mutex<Shared>>,
    display: &Address,
    client: &mut Stream,
    patience: Duration,
) -> Result<(), String> {
    let (mut since, mut told, mut refused) = (Instant::now(), Instant::now(), 0);
    loop {
        let stream = loop {
            if lock(shared).is_over {
                return Ok(());
            }
            match display.connect() {
                Ok(stream) => break stream,
                Err(error) if since.elapsed() >= patience => {
                    tell(
                        client,
                        &Answer::Refused {
                            request: 0,
                            why: Refusal::NoDisplay as u8,
                        },
                    );
                    return Err(format!(
                        "{}; it was waited for {} s",
                        error.message,
                        patience.as_secs()
                    ));
                }
                Err(_) if told.elapsed() >= WAITS && lock(shared).agent.is_known().0 => {
                    told = Instant::now();
                    tell(client, &Answer::Credit(0));
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
                "the display at {display} does not take a client: its secret or its version may be wrong"
            ));
        }
        // A display that takes nobody is not asked again and again without a pause.
        if begun.elapsed() < AGAIN {
            thread::sleep(AGAIN);
        } else {
            since = Instant::now();
        }
        if since.elapsed() >= patience {
            return Err(format!("the display at {display} ends every connection"));
        }
    }
}

/// One connection to the display, until it ends.
fn answers(
    shared: &Arc<Mutex<Shared>>,
    mut stream: Stream,
    client: &mut Stream,
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
        let back = back.map_err(|why| format!("what answers is no display: {}", why.words()))?;
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
