//! Connections to disk servers: one that blocks come over, or beside which they come as datagrams.

use super::event::{Event, lock};
use super::{STACK, Shared};
use crate::blasts::Landing;
use crate::connection::{self, Ended, Receiver, Sender};
use crate::reassembly::Reassembly;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use stackline_blocks::wire::control::ServerInfo;
use stackline_blocks::wire::data::{Attach, BlockHead};
use stackline_blocks::wire::greeting::Role;
use stackline_blocks::wire::message::{Message, Transport, Why};
use stackline_core::error::{Error, Result};
use std::io::IoSliceMut;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver as Heads, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How often a thread that receives datagrams looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);
/// Blocks whose heads have come before their data, at most.
const HEADS: usize = 64;
/// Bytes asked for what has arrived and was not taken yet.
const ROOM: usize = 4 << 20;

/// A connection to a server.
pub(super) struct Link {
    sender: Mutex<Sender>,
    stream: TcpStream,
    name: String,
}

impl Link {
    /// Sends it a message; a server that is gone is noticed by whoever receives from it.
    pub(super) fn send(&self, message: &Message) {
        let _ = lock(&self.sender).message(message);
    }

    pub(super) fn close(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Shared {
    /// Connects to a server, unless that is done.
    pub(super) fn link(self: &Arc<Self>, server: &ServerInfo, session: u128) -> Result<()> {
        if lock(&self.links).contains_key(&server.id) {
            return Ok(());
        }
        let options = &self.options;
        let (mut receiver, mut sender) =
            connection::connect(&server.address, Role::Data, None, options.receive_buffer)?;
        let failed = |error: std::io::Error| Error::environment(format!("{}: {error}", server.address));
        let local = receiver.stream().local_addr().map_err(failed)?;
        let peer = receiver.stream().peer_addr().map_err(failed)?;
        let apart = match options.transport {
            Transport::Tcp => Apart::Nothing,
            Transport::Udp | Transport::Rtp => {
                Apart::Datagrams(socket(local.ip(), options.receive_buffer).map_err(failed)?)
            }
            Transport::Blast => Apart::Blasts(Landing::open(local.ip(), session).map_err(failed)?.into()),
        };
        let port = apart.port().map_err(failed)?;
        let (transport, age) = (options.transport as u8, options.age.unwrap_or(0));
        sender.message(&Attach { session, transport, port, age }.into()).map_err(failed)?;
        let parts = match receiver.message() {
            Ok(Message::Attached(attached)) => attached.parts,
            Ok(other) => return Err(super::refusal(&other)),
            Err(ended) => return Err(Error::environment(format!("{}: {ended}", server.address))),
        };
        let stream = receiver.stream().try_clone().map_err(failed)?;
        let link = Link { sender: Mutex::new(sender), stream, name: server.name.clone() };
        lock(&self.links).insert(server.id, link);
        let (shared, id) = (Arc::clone(self), server.id);
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().name(name.into()).stack_size(STACK).spawn(work).map_err(failed)
        };
        let beside = Arc::clone(self);
        let data = match apart {
            Apart::Nothing => Data::Here { parts },
            Apart::Datagrams(socket) => {
                spawn("datagrams", Box::new(move || beside.hear_datagrams(id, &socket, peer)))?;
                Data::Here { parts }
            }
            Apart::Blasts(landing) => {
                let (heads, come) = sync_channel(HEADS);
                spawn("blasts", Box::new(move || beside.hear_blasts(id, landing, &come)))?;
                Data::Beside(heads)
            }
        };
        spawn("blocks", Box::new(move || shared.hear_server(id, receiver, &data))).map(drop)
    }

    fn hear_server(self: &Arc<Self>, id: u16, mut receiver: Receiver, data: &Data) {
        let mut scratch = Vec::new();
        let ended = loop {
            match receiver.message() {
                Ok(Message::BlockHead(head)) => {
                    let parts = match data {
                        Data::Here { parts } => *parts,
                        Data::Beside(heads) if heads.send(head).is_ok() => continue,
                        Data::Beside(_) => break Ended::Broken("its blasts broke off".into()),
                    };
                    let length = head.length as usize;
                    let mut own = Vec::new();
                    let into = if self.options.discard {
                        scratch.resize(length, 0);
                        &mut scratch
                    } else {
                        own = vec![0; length];
                        &mut own
                    };
                    let came = if parts { receiver.parts(into) } else { receiver.data(into).map(|()| true) };
                    match came {
                        Ok(true) => self.came(head, own),
                        // It is told of as discarded.
                        Ok(false) => {}
                        Err(ended) => break ended,
                    }
                }
                Ok(Message::Flushed(flushed)) => self.tell(Event::Flushed(flushed)),
                Ok(Message::Failed(failed)) => {
                    let disk = self.disk_of(failed.set, failed.number, id);
                    self.try_elsewhere(failed.set, failed.number, (id, disk), Why::of(failed.why));
                }
                Ok(_) => {}
                Err(ended) => break ended,
            }
        };
        self.server_gone(id, &ended);
    }

    fn disk_of(&self, set: u32, number: u64, server: u16) -> u16 {
        let known = lock(&self.known);
        let row = known.rows.get(&set).and_then(|rows| rows.get(number as usize));
        let place = row.and_then(|row| row.places.iter().find(|place| place.server == server));
        place.map_or(0, |place| place.disk)
    }

    /// The connection to a server ended.
    fn server_gone(self: &Arc<Self>, id: u16, ended: &Ended) {
        let Some(link) = lock(&self.links).remove(&id) else { return };
        if self.closed.load(Ordering::SeqCst) {
            return;
        }
        self.tell(Event::ServerGone { name: link.name, words: ended.to_string() });
        self.ask_others(id);
    }

    /// What is wanted of a server that cannot send it is asked of replicas, or reported.
    pub(super) fn ask_others(&self, id: u16) {
        let wanted: Vec<(u32, u64, u16)> = {
            let known = lock(&self.known);
            let sets: Vec<u32> = known.rows.keys().copied().collect();
            let wanted = sets.iter().flat_map(|set| {
                let rows = &known.rows[set];
                let outstanding = known.machine.outstanding(*set);
                outstanding.into_iter().filter_map(move |(number, _)| {
                    let places = &rows.get(number as usize)?.places;
                    let place = places.iter().find(|place| place.server == id)?;
                    Some((*set, number, place.disk))
                })
            });
            wanted.collect()
        };
        for (set, number, disk) in wanted {
            self.try_elsewhere(set, number, (id, disk), Why::NoServer);
        }
    }

    /// Whether a server is gone, or this client is.
    fn is_over(&self, id: u16) -> bool {
        self.closed.load(Ordering::Relaxed) || !lock(&self.links).contains_key(&id)
    }

    fn hear_blasts(self: &Arc<Self>, id: u16, landing: Box<Landing>, heads: &Heads<BlockHead>) {
        let ended = self.take_blasts(id, *landing, heads);
        if ended.is_err()
            && let Some(link) = lock(&self.links).get(&id)
        {
            link.close();
        }
    }

    fn take_blasts(self: &Arc<Self>, id: u16, landing: Landing, heads: &Heads<BlockHead>) -> std::io::Result<()> {
        let shared = Arc::clone(self);
        let mut blasts = landing.accept(move || shared.is_over(id))?;
        let mut scratch = Vec::new();
        loop {
            match heads.recv_timeout(LOOK) {
                Ok(head) if self.options.discard => {
                    scratch.resize(head.length as usize, 0);
                    blasts.block(&mut scratch)?;
                    self.came(head, Vec::new());
                }
                Ok(head) => {
                    let mut data = vec![0; head.length as usize];
                    blasts.block(&mut data)?;
                    self.came(head, data);
                }
                Err(RecvTimeoutError::Timeout) if !self.is_over(id) => {}
                Err(_) => return Ok(()),
            }
        }
    }

    fn hear_datagrams(self: &Arc<Self>, id: u16, socket: &UdpSocket, server: SocketAddr) {
        let mut reassembly = Reassembly::new(self.options.transport == Transport::Rtp);
        if self.options.discard {
            reassembly = reassembly.discarding();
        }
        let mut memory = vec![0; 1 << 16];
        let mut control = nix::cmsg_space!(i32);
        while !self.closed.load(Ordering::Relaxed) {
            let mut parts = [IoSliceMut::new(&mut memory)];
            let received =
                recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty());
            let (bytes, size) = match received {
                Ok(received) => {
                    let from = received.address.as_ref().and_then(ip);
                    if from != Some(server.ip()) {
                        continue;
                    }
                    let size = received.cmsgs().ok().into_iter().flatten().find_map(|message| match message {
                        ControlMessageOwned::UdpGroSegments(size) => usize::try_from(size).ok(),
                        _ => None,
                    });
                    (received.bytes, size)
                }
                // Nothing for a while: is the server still there?
                Err(nix::errno::Errno::EAGAIN) if lock(&self.links).contains_key(&id) => continue,
                Err(nix::errno::Errno::EINTR) => continue,
                Err(_) => return,
            };
            for datagram in memory[..bytes].chunks(size.unwrap_or(bytes).max(1)) {
                if let Some((head, data)) = reassembly.datagram(datagram) {
                    self.came(head, data);
                }
            }
        }
    }
}

/// Where the data of blocks come whose heads come over the connection.
enum Data {
    /// Behind them.
    Here { parts: bool },
    /// Beside the connection, to whoever gets the heads.
    Beside(SyncSender<BlockHead>),
}

/// What data come over beside the connection.
enum Apart {
    Nothing,
    Datagrams(UdpSocket),
    Blasts(Box<Landing>),
}

impl Apart {
    fn port(&self) -> std::io::Result<u16> {
        match self {
            Self::Nothing => Ok(0),
            Self::Datagrams(socket) => Ok(socket.local_addr()?.port()),
            Self::Blasts(landing) => landing.port(),
        }
    }
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let four = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    four.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

fn socket(at: IpAddr, room: Option<usize>) -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind((at, 0))?;
    socket.set_read_timeout(Some(LOOK))?;
    let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(room.unwrap_or(ROOM));
    setsockopt(&socket, sockopt::UdpGroSegment, &true)?;
    Ok(socket)
}
