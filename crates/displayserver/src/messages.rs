//! A display by V's messages (`ikp`, over UDP): a client sends its requests in messages and is blocked until each is carried out; the reply
//! brings the answers there are. Class B of the paper, live.

use crate::message_stream::{ALL, ENDS, GOODBYE, MORE, REQUESTS, address};
use crate::server::{HELLO, Server};
use stackline_core::error::{Error, Result};
use stackline_display::machine::{ClientId, Display};
use stackline_transfer::ikp::{self, Options};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A client that has said nothing for so long is gone.
const IDLE: Duration = Duration::from_secs(600);
/// How often it is looked for those.
const LOOK: Duration = Duration::from_secs(1);
/// Answers that wait for a client that takes fewer than it asks for.
const MOST_WAITING: usize = 1 << 20;

/// A client of this display.
struct Known {
    id: ClientId,
    display: Arc<Mutex<Display>>,
    out: Vec<u8>,
    heard: Instant,
}

impl Known {
    /// Whether it has said who it is.
    fn is_known(&self) -> bool {
        self.display.lock().unwrap_or_else(PoisonError::into_inner).is_known(self.id)
    }
}

/// Serves clients there from now on, in a thread of its own. The address.
///
/// # Errors
/// When nothing can listen there.
pub fn serve(server: &Server, at: &str, say: fn(&str)) -> Result<SocketAddr> {
    let failed = |why: String| {
        Error::environment(format!("nothing can listen at ikp:{at}: {why}"))
            .hint("another program may have it: choose another address")
    };
    let address = address(at).map_err(|error| failed(error.to_string()))?;
    let mut messages = ikp::Server::bind(address, &Options::default()).map_err(|error| failed(error.to_string()))?;
    let local = messages.local().map_err(|error| failed(error.to_string()))?;
    let server = server.clone();
    thread::spawn(move || {
        let mut clients = HashMap::new();
        let mut looked = Instant::now();
        loop {
            match messages.receive_within(LOOK) {
                Ok(Some(request)) => answer(&server, &mut clients, request, say),
                Ok(None) => {}
                Err(_) => thread::sleep(Duration::from_millis(100)),
            }
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                clients.retain(|_, known: &mut Known| {
                    // Who has not said who he is keeps his place no longer than over a stream.
                    let stays = known.heard.elapsed() < if known.is_known() { IDLE } else { HELLO };
                    if !stays {
                        server.leave(known.id);
                    }
                    stays
                });
            }
        }
    });
    Ok(local)
}

/// Carries a message out and replies.
fn answer(server: &Server, clients: &mut HashMap<(SocketAddr, u32), Known>, request: ikp::Request<'_>, say: fn(&str)) {
    let key = (request.client(), request.number());
    let known = match clients.entry(key) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(place) => match server.enter() {
            Some((id, display)) => place.insert(Known { id, display, out: Vec::new(), heard: Instant::now() }),
            None => {
                let _ = request.reply(&[&[ENDS], b"there are too many clients already".as_slice()].concat());
                return;
            }
        },
    };
    // One that says nothing of himself is not there for longer by saying it often.
    if known.is_known() {
        known.heard = Instant::now();
    }
    let (what, requests) = request.message().split_first().map_or((REQUESTS, &[][..]), |(what, rest)| (*what, rest));
    let mut reply = vec![ALL];
    let mut ends = what == GOODBYE;
    if !ends {
        let mut display = known.display.lock().unwrap_or_else(PoisonError::into_inner);
        let done = display.receive(known.id, requests, &mut server.watch());
        known.out.extend(display.output(known.id));
        let full = (known.out.len() > MOST_WAITING).then(|| "it does not take its answers".to_owned());
        if let Some(why) = done.err().map(|why| why.words()).or(full) {
            say(&format!("a client was sent away: {why}"));
            (reply[0], ends) = (ENDS, true);
            reply.extend(why.into_bytes());
        }
    }
    if !ends {
        let room = request.room().saturating_sub(1).min(known.out.len());
        reply.extend(known.out.drain(..room));
        reply[0] = if known.out.is_empty() { ALL } else { MORE };
    }
    reply.truncate(request.room());
    let _ = request.reply(&reply);
    if ends && let Some(known) = clients.remove(&key) {
        server.leave(known.id);
    }
}
