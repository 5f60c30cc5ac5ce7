//! The display's agent on sockets: clients connect to it, it connects to the display for each, and again where that was lost.

use crate::address::Address;
use crate::listener::Listener;
use crate::server::{HELLO, PATIENCE, UNREAD, is_slow, sent_away, unread};
use crate::stream::Stream;
use stackline_display::agent::Agent;
use stackline_display::machine::Ends;
use stackline_display::protocol::Answer;
use stackline_display::symbols::{Limits, Refusal};
use std::io::{Read, Write};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Clients at once.
const MOST_CLIENTS: usize = 64;
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
    /// What clients have to know; empty where all may connect.
    pub secret: Vec<u8>,
}

/// Serves clients for ever.
pub fn serve(listener: &Listener, service: &Service, say: fn(&str)) {
    let clients = Arc::new(());
    loop {
        let Ok(mut client) = listener.accept() else {
            // No descriptors, or the like: it may be better in a while.
            thread::sleep(AGAIN);
            continue;
        };
        if Arc::strong_count(&clients) > MOST_CLIENTS {
            thread::spawn(move || sent_away(&mut client));
            say(&format!("a client was sent away: there are {MOST_CLIENTS} already"));
            continue;
        }
        let (service, counted) = (service.clone(), Arc::clone(&clients));
        thread::spawn(move || {
            if let Err(why) = one(client, service) {
                say(&format!("a client was sent away: {why}"));
            }
            drop(counted);
        });
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One client, until it goes or its display stays away.
fn one(client: Stream, Service { display, limits, patience, secret }: Service) -> Result<(), String> {
    let lost = |error: std::io::Error| format!("a client is lost: {error}");
    let shared = Shared { agent: Agent::new(limits, secret), display: None, is_over: false };
    let shared = Arc::new(Mutex::new(shared));
    let (reader, mut back) = (client.again().map_err(lost)?, client.again().map_err(lost)?);
    client.keeps(UNREAD);
    back.write_within(PATIENCE).map_err(lost)?;
    let taken = Arc::clone(&shared);
    let reading = thread::spawn(move || take(reader, &taken));
    let done = keep(&shared, &display, &mut back, patience);
    client.end();
    let took = reading.join().unwrap_or(Ok(()));
    done.and(took.map_err(|why| why.words()))
}

/// Takes what the client sends.
fn take(mut client: Stream, shared: &Mutex<Shared>) -> Result<(), Ends> {
    let mut piece = vec![0; PIECE];
    let mut ended = Ok(());
    let (begun, mut said_hello) = (Instant::now(), false);
    loop {
        if !said_hello {
            // However slowly it says who it is.
            let Some(rest) = HELLO.checked_sub(begun.elapsed()).filter(|rest| !rest.is_zero()) else { break };
            let _ = client.read_within(Some(rest));
        }
        let Some(room) = room(shared) else { break };
        let most = room.min(PIECE);
        let Ok(count @ 1..) = client.read(&mut piece[..most]) else { break };
        let mut shared = lock(shared);
        match shared.agent.from_client(&piece[..count]) {
            Ok(bytes) => {
                // Where it is lost, the picture that is given again has it.
                let _ = shared.display.as_ref().map(|(display, _)| display.send(bytes));
                if !said_hello && shared.agent.is_known().0 {
                    said_hello = true;
                    let _ = client.read_within(None);
                }
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
fn room(shared: &Mutex<Shared>) -> Option<usize> {
    loop {
        let (room, is_over) = {
            let shared = lock(shared);
            (shared.agent.room(), shared.is_over)
        };
        if is_over || room > 0 {
            return (!is_over).then_some(room);
        }
        // The display has said nothing for a whole credit: it is no hurry.
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
fn keep(shared: &Arc<Mutex<Shared>>, display: &Address, client: &mut Stream, patience: Duration) -> Result<(), String> {
    let (mut since, mut told, mut refused) = (Instant::now(), Instant::now(), 0);
    loop {
        let stream = loop {
            if lock(shared).is_over {
                return Ok(());
            }
            match display.connect() {
                Ok(stream) => break stream,
                Err(error) if since.elapsed() >= patience => {
                    tell(client, &Answer::Refused { request: 0, why: Refusal::NoDisplay as u8 });
                    return Err(format!("{}; it was waited for {} s", error.message, patience.as_secs()));
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
fn answers(shared: &Arc<Mutex<Shared>>, mut stream: Stream, client: &mut Stream) -> Result<(), String> {
    let (Ok(mut out), Ok(ended), Ok(kept)) = (stream.again(), stream.again(), stream.again()) else { return Ok(()) };
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
            return if is_slow(&error) { Err(unread()) } else { Ok(()) };
        }
    }
    Ok(())
}
