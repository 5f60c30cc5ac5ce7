//! A display over V's messages (`ikp`, over UDP): a client sends requests in messages and is blocked until they are carried out; the reply
//! contains the answers so far. This is class B of the paper, live.

use crate::delayed_refusals::DelayedDisplayRefusals;
use crate::message_stream::{ALL, ENDS, GOODBYE, MORE, REQUESTS, address};
use crate::server::DisplayServer;
use stackline_core::error::Result;
use stackline_display::machine::{ClientId, DisplayEndReason, DisplayMachine};
use stackline_guard::serve::{cannot_listen, in_thread};
use stackline_transfer::ikp::{self, IkpTransferOptions};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A client that has sent nothing for this long is removed.
const IDLE: Duration = Duration::from_secs(600);
/// How often to check for such clients.
const LOOK: Duration = Duration::from_secs(1);
/// The limit on bytes of answers for a client that does not fetch them.
const MOST_WAITING: usize = 1 << 20;

/// A client whose greeting is complete.
struct MessageDisplayClient {
    id: ClientId,
    display: Arc<Mutex<DisplayMachine>>,
    out: Vec<u8>,
    heard: Instant,
}

impl MessageDisplayClient {
    /// Carries out requests. On an error returns why the connection ends.
    fn carry_out(&mut self, server: &DisplayServer, requests: &[u8]) -> Result<(), String> {
        let mut display = self.display.lock().unwrap_or_else(PoisonError::into_inner);
        let done = display.receive(self.id, requests, &mut server.watch());
        self.out.extend(display.output(self.id));
        let full = (self.out.len() > MOST_WAITING)
            .then(|| "the client does not read the answers sent to it".to_owned());
        done.map_err(|why| why.words())
            .and_then(|()| full.map_or(Ok(()), Err))
    }

    /// A reply with as many answers as there is room for.
    fn answers(&mut self, room: usize) -> Vec<u8> {
        let taken = room.saturating_sub(1).min(self.out.len());
        let mut reply = vec![ALL];
        reply.extend(self.out.drain(..taken));
        reply[0] = if self.out.is_empty() { ALL } else { MORE };
        reply
    }
}

/// Serves clients at that address, in a thread of its own. Returns the address.
///
/// # Errors
/// If nothing can listen there.
pub fn serve(server: &DisplayServer, at: &str, say: fn(&str)) -> Result<SocketAddr> {
    let failed = |why: String| {
        cannot_listen(
            &format_args!("ikp:{at}"),
            &why,
            "another program may be using it: choose another address with `--listen`",
        )
    };
    let address = address(at).map_err(|error| failed(error.to_string()))?;
    let mut messages =
        ikp::IkpUdpServer::bind(address, &options()).map_err(|error| failed(error.to_string()))?;
    let local = messages
        .local()
        .map_err(|error| failed(error.to_string()))?;
    let mut clients = MessageDisplayClients {
        server: server.clone(),
        known: HashMap::new(),
        late: DelayedDisplayRefusals::default(),
        say,
    };
    thread::spawn(move || {
        let mut looked = Instant::now();
        loop {
            let now = Instant::now();
            clients.late.answer(&mut messages, now);
            match messages.receive_within(clients.late.pause(now, LOOK)) {
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

/// The clients, by their addresses and numbers.
struct MessageDisplayClients {
    server: DisplayServer,
    known: HashMap<(SocketAddr, u32), MessageDisplayClient>,
    late: DelayedDisplayRefusals,
    say: fn(&str),
}

impl MessageDisplayClients {
    /// Removes clients that have been silent for too long.
    fn drop_silent(&mut self, now: Instant) {
        let server = &self.server;
        self.known.retain(|_, known| {
            let stays = now.saturating_duration_since(known.heard) < IDLE;
            if !stays {
                server.leave(known.id);
            }
            stays
        });
    }

    /// Carries out the requests of a message, and replies.
    fn answer(&mut self, mut request: ikp::IkpRequest<'_>, now: Instant) {
        let key = (request.client(), request.number());
        let (what, requests) = request
            .message()
            .split_first()
            .map_or((REQUESTS, &[][..]), |(what, rest)| (*what, rest));
        if what == GOODBYE {
            // The slot is free before the client gets the reply.
            self.forget(&key);
            let _ = request.reply(&[ALL]);
            return;
        }
        let room = request.room();
        let answered = match self.known.get_mut(&key) {
            Some(known) => known.carry_out(&self.server, requests).map(|()| {
                known.heard = now;
                known.answers(room)
            }),
            None => match self.greeted(requests, now) {
                Ok(known) => {
                    let known = self.known.entry(key).or_insert(known);
                    Ok(known.answers(room))
                }
                Err(why) => Err(why),
            },
        };
        match answered {
            Ok(mut reply) => {
                reply.truncate(room);
                request.known();
                let _ = request.reply(&reply);
            }
            Err(why) => {
                (self.say)(&format!("a client was disconnected: {why}"));
                let mut reply = [&[ENDS], why.as_bytes()].concat();
                reply.truncate(room);
                // Answers to wrong secrets are delayed, one after the other.
                if why == DisplayEndReason::Stranger.words() {
                    self.late.refuse(request.later(), reply, now);
                } else {
                    self.forget(&key);
                    let _ = request.reply(&reply);
                }
            }
        }
    }

    /// Handles the first message of a client, which has to contain its greeting; otherwise nothing is kept.
    fn greeted(&self, requests: &[u8], now: Instant) -> Result<MessageDisplayClient, String> {
        let (id, display) = self.server.newcomer(false);
        let mut known = MessageDisplayClient {
            id,
            display,
            out: Vec::new(),
            heard: now,
        };
        known.carry_out(&self.server, requests)?;
        let is_known = known
            .display
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_known(id);
        if !is_known {
            return Err(DisplayEndReason::NotHello.words());
        }
        let attends = self.server.admit(id, &known.display);
        let attends = attends.ok_or("too many clients are connected")?;
        let (server, display) = (self.server.clone(), Arc::clone(&known.display));
        let is_there = in_thread(move || {
            while attends.woken() {
                server.attend(&attends, &display);
            }
        });
        if !is_there {
            self.server.leave(id);
            return Err("the display cannot start a thread for the client".into());
        }
        Ok(known)
    }

    fn forget(&mut self, key: &(SocketAddr, u32)) {
        if let Some(known) = self.known.remove(key) {
            self.server.leave(known.id);
        }
    }
}

/// Packets with forged source addresses must not keep clients out.
fn options() -> IkpTransferOptions {
    IkpTransferOptions {
        strangers_give_way: true,
        ..IkpTransferOptions::default()
    }
}

#[cfg(test)]
mod tests;
