//! Accepts PUP connections: all share one socket, and are distinguished by the address they come from and the socket number they were
//! given.
//!
//! A new connection takes no established connection's place before it has answered from the address that it claims.

use super::{LATE, Pup, PupStreamShared, PupUdpSocket, options, random};
use crate::message_stream::address;
use stackline_core::time::Instant as Moment;
use stackline_proto::papers::pup::packet::HEADER;
use stackline_proto::papers::pup::{PupConnection, PupPacket, PupPacketKind, PupPort};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// The limit on established connections, and the same limit on those that have not answered.
const MOST: usize = 256;
/// How long an unanswered connection is kept.
const ANSWERS: Duration = Duration::from_secs(5);
/// The limit on connections that were not accepted yet.
const BACKLOG: usize = 64;
/// The code in an Error packet, after the header of the packet that it is about: no such port.
const NO_SUCH_PORT: [u8; 2] = [0, 2];

/// Accepts connections.
#[derive(Debug)]
pub struct PupListener {
    local: SocketAddr,
    came: Mutex<Receiver<Pup>>,
    /// The thread ends when this is dropped.
    alive: Arc<()>,
}

impl PupListener {
    /// Listens on that address.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn bind(at: &str) -> io::Result<Self> {
        let socket = UdpSocket::bind(address(at)?)?;
        let local = socket.local_addr()?;
        let line = Arc::new(PupUdpSocket {
            socket,
            begun: Instant::now(),
        });
        let (to, came) = sync_channel(BACKLOG);
        let alive = Arc::new(());
        let mut office = PupConnectionTable {
            line,
            to,
            known: HashMap::new(),
            alive: Arc::downgrade(&alive),
        };
        thread::spawn(move || office.serve());
        Ok(Self {
            local,
            came: Mutex::new(came),
            alive,
        })
    }

    /// Waits for the next connection.
    ///
    /// # Errors
    /// If its socket failed.
    pub fn accept(&self) -> io::Result<Pup> {
        let came = self.came.lock().unwrap_or_else(PoisonError::into_inner);
        debug_assert!(Arc::strong_count(&self.alive) == 1, "a listener is one");
        came.recv()
            .map_err(|_| io::Error::other("the socket failed"))
    }

    /// The address on which it listens.
    #[must_use]
    pub const fn local(&self) -> SocketAddr {
        self.local
    }
}

/// A connection of a listener, and whether its other end has answered.
struct PupListenerConnection {
    shared: Arc<PupStreamShared>,
    since: Instant,
    is_there: bool,
    due: Option<Moment>,
}

/// All connections of a socket, by the address they come from and their own socket's number.
struct PupConnectionTable {
    line: Arc<PupUdpSocket>,
    to: SyncSender<Pup>,
    known: HashMap<(SocketAddr, u32), PupListenerConnection>,
    alive: Weak<()>,
}

impl PupConnectionTable {
    fn serve(&mut self) {
        let mut piece = [0; 2048];
        // Established connections continue without a listener until the last of them is over.
        while self.alive.strong_count() > 0 || !self.known.is_empty() {
            let due = self.known.values().filter_map(|known| known.due).min();
            match self.line.hear(&mut piece, due) {
                Ok(Some((count, from))) => {
                    if let Ok(packet) = PupPacket::read(&piece[..count]) {
                        self.came(from, &packet);
                    }
                }
                Ok(None) => {}
                Err(_) => thread::sleep(LATE),
            }
            self.look();
        }
    }

    fn came(&mut self, from: SocketAddr, packet: &PupPacket<'_>) {
        if packet.kind == PupPacketKind::Rfc {
            return self.asked(from, packet);
        }
        let key = (from, packet.to.socket);
        let Some(known) = self.known.get_mut(&key) else {
            // No such connection, which an end that was forgotten learns this way too.
            if !matches!(
                packet.kind,
                PupPacketKind::Error | PupPacketKind::Abort | PupPacketKind::EndReply
            ) {
                let quoted = packet.bytes(false);
                self.say(
                    from,
                    packet,
                    PupPacketKind::Error,
                    &[&quoted[..HEADER], &NO_SUCH_PORT].concat(),
                );
            }
            return;
        };
        known.due = known.shared.turn(Some(packet));
        if !known.is_there && packet.kind != PupPacketKind::Abort {
            known.is_there = true;
            if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
                self.to.try_send(Pup::new(Arc::clone(&known.shared), false))
            {
                known
                    .shared
                    .connection()
                    .abort("too many clients are connected");
                known.due = known.shared.turn(None);
            }
        }
    }

    /// Handles a request for a connection, which may be a repeated one.
    fn asked(&mut self, from: SocketAddr, packet: &PupPacket<'_>) {
        let before = self
            .known
            .iter_mut()
            .find(|((of, _), known)| *of == from && known.shared.connection().id() == packet.id);
        if let Some((_, known)) = before {
            known.due = known.shared.turn(Some(packet));
            return;
        }
        // When there are too many, the oldest unanswered connection gives way; established ones keep their place.
        let answered = self.known.values().filter(|known| known.is_there).count();
        if self.known.len() - answered >= MOST {
            let oldest = self.oldest_stranger();
            oldest.map(|key| self.known.remove(&key));
        }
        if answered >= MOST {
            return self.say(
                from,
                packet,
                PupPacketKind::Abort,
                b"\0\0too many clients are connected",
            );
        }
        let Ok(socket) = random() else { return };
        let own = PupPort {
            socket,
            ..packet.to
        };
        let Some(connection) = PupConnection::accept(self.line.now(), options(), own, packet)
        else {
            return;
        };
        let shared = PupStreamShared::new(&self.line, from, connection);
        let due = shared.turn(None);
        self.known.insert(
            (from, socket),
            PupListenerConnection {
                shared,
                since: Instant::now(),
                is_there: false,
                due,
            },
        );
    }

    /// The oldest unanswered connection of the address with the most of them, so that a flood from one address does not drive out others.
    fn oldest_stranger(&self) -> Option<(SocketAddr, u32)> {
        let strangers = || self.known.iter().filter(|(_, known)| !known.is_there);
        let mut asked: HashMap<SocketAddr, usize> = HashMap::new();
        strangers().for_each(|((from, _), _)| *asked.entry(*from).or_default() += 1);
        let oldest =
            strangers().max_by_key(|((from, _), known)| (asked[from], Reverse(known.since)));
        oldest.map(|(key, _)| *key)
    }

    /// Answers a packet that belongs to no connection.
    fn say(&self, to: SocketAddr, packet: &PupPacket<'_>, kind: PupPacketKind, data: &[u8]) {
        let answer = PupPacket {
            kind,
            id: packet.id,
            to: packet.from,
            from: packet.to,
            data,
        };
        let _ = self.line.socket.send_to(&answer.bytes(true), to);
    }

    /// Runs the timers that are due, and removes connections that are over.
    fn look(&mut self) {
        let now = self.line.now();
        self.known.retain(|_, known| {
            if !known.is_there && known.since.elapsed() > ANSWERS {
                return false;
            }
            // A reader or writer may have set a timer in the meantime.
            let deadline = known.shared.connection().deadline();
            if deadline.is_none_or(|at| at <= now) || known.due.is_none() {
                known.due = known.shared.turn(None);
            } else {
                known.due = deadline;
            }
            known.due.is_some()
        });
    }
}
