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

    /// Carries requests out; why the connection ends, where it does.
    fn carry_out(&mut self, server: &Server, requests: &[u8]) -> Option<String> {
        let mut display = self.display.lock().unwrap_or_else(PoisonError::into_inner);
        let done = display.receive(self.id, requests, &mut server.watch());
        self.out.extend(display.output(self.id));
        let full = (self.out.len() > MOST_WAITING).then(|| "it does not take its answers".to_owned());
        done.err().map(|why| why.words()).or(full)
    }

    /// A reply with as many of its answers as there is room for.
    fn answers(&mut self, room: usize) -> Vec<u8> {
        let taken = room.saturating_sub(1).min(self.out.len());
        let mut reply = vec![ALL];
        reply.extend(self.out.drain(..taken));
        reply[0] = if self.out.is_empty() { ALL } else { MORE };
        reply
    }
}

/// Serves clients there from now on, in a thread of its own. The address.
///
/// # Errors
/// When nothing can listen there.
pub fn serve(server: &Server, at: &str, say: fn(&str)) -> Result<SocketAddr> {
    let failed = |why: String| {
        Error::environment(format!("nothing can listen at ikp:{at}: {why}"))
            .hint("another program may have it: choose another address, `--listen`")
    };
    let address = address(at).map_err(|error| failed(error.to_string()))?;
    let mut messages = ikp::Server::bind(address, &Options::default()).map_err(|error| failed(error.to_string()))?;
    let local = messages.local().map_err(|error| failed(error.to_string()))?;
    let mut clients = Clients { server: server.clone(), known: HashMap::new(), say };
    thread::spawn(move || {
        let mut looked = Instant::now();
        loop {
            match messages.receive_within(LOOK) {
                Ok(Some(request)) => clients.answer(request, Instant::now()),
                Ok(None) => {}
                Err(_) => thread::sleep(Duration::from_millis(100)),
            }
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                clients.drop_silent(looked);
            }
        }
    });
    Ok(local)
}

/// The clients of this display, by address and number.
struct Clients {
    server: Server,
    known: HashMap<(SocketAddr, u32), Known>,
    say: fn(&str),
}

impl Clients {
    /// Forgets who has been silent for too long. Who has not said who he is keeps his place no longer than over a stream.
    fn drop_silent(&mut self, now: Instant) {
        let server = &self.server;
        self.known.retain(|_, known| {
            let most = if known.is_known() { IDLE } else { HELLO };
            let stays = now.saturating_duration_since(known.heard) < most;
            if !stays {
                server.leave(known.id);
            }
            stays
        });
    }

    /// Carries a message out and replies.
    fn answer(&mut self, request: ikp::Request<'_>, now: Instant) {
        let key = (request.client(), request.number());
        let known = match self.known.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => match self.server.enter() {
                Some((id, display)) => place.insert(Known { id, display, out: Vec::new(), heard: now }),
                None => {
                    let _ = request.reply(&[&[ENDS], b"there are too many clients already".as_slice()].concat());
                    return;
                }
            },
        };
        // One that says nothing of himself is not there for longer by saying it often.
        if known.is_known() {
            known.heard = now;
        }
        let (what, requests) =
            request.message().split_first().map_or((REQUESTS, &[][..]), |(what, rest)| (*what, rest));
        let why = if what == GOODBYE { None } else { known.carry_out(&self.server, requests) };
        let mut reply = match &why {
            Some(why) => [&[ENDS], why.as_bytes()].concat(),
            None if what == GOODBYE => vec![ALL],
            None => known.answers(request.room()),
        };
        reply.truncate(request.room());
        // Once it hears that it has gone, its place is free.
        if (what == GOODBYE || why.is_some())
            && let Some(known) = self.known.remove(&key)
        {
            self.server.leave(known.id);
        }
        let _ = request.reply(&reply);
        if let Some(why) = &why {
            (self.say)(&format!("a client was sent away: {why}"));
        }
    }
}

#[cfg(test)]
mod tests;
