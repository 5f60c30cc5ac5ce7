//! Connections from a client to disk servers. The data of blocks comes over the connection, or beside it as datagrams or blasts.

use super::event::{BlockClientEvent, lock};
use super::{BlockClientOptions, BlockClientShared, STACK};
use crate::blast_transport::Landing;
use crate::connection::{self, BlockConnectionEnd, BlockMessageReceiver, BlockMessageSender};
use crate::reassembly::BlockReassembly;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use stackline_blocks::wire::handshake::BlockPeerRole;
use stackline_blocks::wire::master_messages::ServerInfo;
use stackline_blocks::wire::message::{BlockDataTransport, Message, Why};
use stackline_blocks::wire::server_messages::{Attach, BlockHead};
use stackline_core::error::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::io::IoSliceMut;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver as Heads, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often a thread that receives datagrams or blasts checks whether it should end.
const LOOK: Duration = Duration::from_millis(100);
/// The limit on blocks whose heads have come before their data.
const HEADS: usize = 64;
/// The size of the socket buffer for datagrams unless the options say otherwise, bytes.
const ROOM: usize = 4 << 20;

/// How long opening a set waits for its servers to answer, all at the same time.
pub(super) const REACHING: Duration = Duration::from_secs(2);
/// How often a server that does not answer is tried, and the pause between tries. A server that hangs longer counts as down at the master,
/// and is tried again when the master reports it as up.
const TRIES: (u32, Duration) = (3, Duration::from_secs(2));
/// How long a server may take to answer an attach.
const ATTACHING: Duration = Duration::from_secs(5);
/// A server that the master considers down and from which nothing has come here for this long is considered lost. The time is shorter than
/// the silence after which the master considers it down.
const SILENT: Duration = Duration::from_secs(4);

/// The servers that are being connected to; the flag says whether the attempt was reported as failed.
#[derive(Default)]
pub(super) struct Reaching {
    servers: Mutex<BTreeMap<u16, bool>>,
    changed: Condvar,
}

/// A connection to a disk server.
pub(super) struct DiskServerLink {
    sender: Mutex<BlockMessageSender>,
    stream: TcpStream,
    name: String,
    /// When something last came from the server.
    heard: Arc<Mutex<Instant>>,
}

impl DiskServerLink {
    /// Sends a message to the server. An error is ignored: the thread that receives from the server notices that it is lost.
    pub(super) fn send(&self, message: &Message) {
        let _ = lock(&self.sender).message(message);
    }

    pub(super) fn is_silent(&self) -> bool {
        lock(&self.heard).elapsed() >= SILENT
    }

    pub(super) fn close(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Attaches the session to a server. Returns whether blocks come in parts.
fn attach_to(
    server: &ServerInfo,
    attach: Attach,
    receiver: &mut BlockMessageReceiver,
    sender: &mut BlockMessageSender,
) -> Result<bool> {
    let failed = |error: std::io::Error| Error::environment(format!("{}: {error}", server.address));
    receiver
        .stream()
        .set_read_timeout(Some(ATTACHING))
        .map_err(failed)?;
    sender.message(&attach.into()).map_err(failed)?;
    let parts = match receiver.message() {
        Ok(Message::Attached(attached)) => attached.parts,
        Ok(other) => return Err(super::refusal(&other)),
        Err(BlockConnectionEnd::Silent) => {
            return Err(connection::silent_peer_error(&server.address));
        }
        Err(ended) => return Err(Error::environment(format!("{}: {ended}", server.address))),
    };
    receiver.stream().set_read_timeout(None).map_err(failed)?;
    Ok(parts)
}

impl BlockClientShared {
    /// Connects to those of the servers that are up, all at the same time, and waits up to `patience` for them. Attempts that take longer
    /// continue, and these servers are reported as gone in the meantime.
    pub(super) fn reach(
        self: &Arc<Self>,
        servers: &[ServerInfo],
        session: u128,
        patience: Duration,
    ) {
        let until = Instant::now() + patience;
        let linked: BTreeSet<u16> = lock(&self.links).keys().copied().collect();
        let mut tried = BTreeMap::new();
        for server in servers
            .iter()
            .filter(|server| server.up && !linked.contains(&server.id))
        {
            if lock(&self.reaching.servers).contains_key(&server.id) {
                continue;
            }
            // With no patience nobody waits, so the server's coming has to be reported.
            lock(&self.reaching.servers).insert(server.id, patience.is_zero());
            let (shared, trying) = (Arc::clone(self), server.clone());
            let spawned = thread::Builder::new()
                .name("reach".into())
                .stack_size(STACK)
                .spawn(move || shared.keep_reaching(&trying, session));
            match spawned {
                Ok(_) => drop(tried.insert(server.id, &server.name)),
                Err(error) => self.unreached(server, &format!("cannot start a thread: {error}")),
            }
        }
        let mut reaching = lock(&self.reaching.servers);
        loop {
            let late: Vec<u16> = tried
                .keys()
                .copied()
                .filter(|id| reaching.get(id).is_some_and(|is_reported| !is_reported))
                .collect();
            let left = until.saturating_duration_since(Instant::now());
            if late.is_empty() {
                return;
            }
            if left.is_zero() {
                for id in late {
                    reaching.insert(id, true);
                    let words = format!("it did not answer within {} s", REACHING.as_secs());
                    self.is_away(id, tried[&id], words);
                }
                return;
            }
            reaching = self
                .reaching
                .changed
                .wait_timeout(reaching, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn keep_reaching(self: &Arc<Self>, server: &ServerInfo, session: u128) {
        for tries in 1..=TRIES.0 {
            let words = match self.link(server, session) {
                Ok(()) => {
                    lock(&self.known).away.remove(&server.id);
                    self.comes(server.id);
                    let was_reported = lock(&self.reaching.servers).remove(&server.id);
                    if was_reported == Some(true) {
                        self.report_event(BlockClientEvent::ServerCame {
                            name: server.name.clone(),
                        });
                    }
                    self.reaching.changed.notify_all();
                    return;
                }
                Err(error) => error.message,
            };
            let is_reported = lock(&self.reaching.servers).insert(server.id, true) == Some(true);
            match is_reported {
                true => drop(lock(&self.known).away.insert(server.id, words)),
                false => self.is_away(server.id, &server.name, words),
            }
            self.reaching.changed.notify_all();
            if tries < TRIES.0 && !self.closed.load(Ordering::SeqCst) {
                thread::sleep(TRIES.1);
            }
            if self.closed.load(Ordering::SeqCst) {
                break;
            }
        }
        lock(&self.reaching.servers).remove(&server.id);
    }

    fn unreached(&self, server: &ServerInfo, words: &str) {
        lock(&self.reaching.servers).remove(&server.id);
        self.is_away(server.id, &server.name, words.to_owned());
    }

    /// Records and reports that a server cannot be reached.
    fn is_away(&self, id: u16, name: &str, words: String) {
        lock(&self.known).away.insert(id, words.clone());
        self.report_event(BlockClientEvent::ServerGone {
            name: name.to_owned(),
            words,
        });
    }

    /// Handles that a server is there again: its copies may be requested again.
    pub(super) fn comes(&self, id: u16) {
        lock(&self.known).failed.retain(|_, failed| {
            failed.retain(|(server, _)| *server != id);
            !failed.is_empty()
        });
    }

    /// Connects to a server, unless it is connected.
    fn link(self: &Arc<Self>, server: &ServerInfo, session: u128) -> Result<()> {
        if lock(&self.links).contains_key(&server.id) {
            return Ok(());
        }
        let options = &self.options;
        let (mut receiver, mut sender) = connection::connect(
            &server.address,
            BlockPeerRole::Data,
            None,
            options.receive_buffer,
        )?;
        let failed =
            |error: std::io::Error| Error::environment(format!("{}: {error}", server.address));
        let local = receiver.stream().local_addr().map_err(failed)?;
        let peer = receiver.stream().peer_addr().map_err(failed)?;
        let apart = BlockSideReceiver::open(options, local.ip(), session).map_err(failed)?;
        let port = apart.port().map_err(failed)?;
        let attach = Attach {
            session,
            transport: options.transport as u8,
            port,
            age: options.age.unwrap_or(0),
            pace: options.pace.unwrap_or(0),
        };
        let parts = attach_to(server, attach, &mut receiver, &mut sender)?;
        let stream = receiver.stream().try_clone().map_err(failed)?;
        let heard = Arc::new(Mutex::new(Instant::now()));
        let hears = Arc::clone(&heard);
        let link = DiskServerLink {
            sender: Mutex::new(sender),
            stream,
            name: server.name.clone(),
            heard,
        };
        lock(&self.links).insert(server.id, link);
        let (shared, id) = (Arc::clone(self), server.id);
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            thread::Builder::new()
                .name(name.into())
                .stack_size(STACK)
                .spawn(work)
                .map_err(failed)
        };
        let beside = Arc::clone(self);
        let data = match apart {
            BlockSideReceiver::Nothing => BlockDataPath::Here { parts },
            BlockSideReceiver::Datagrams(socket) => {
                let hears = Arc::clone(&hears);
                spawn(
                    "datagrams",
                    Box::new(move || beside.hear_datagrams(id, &socket, peer, &hears)),
                )?;
                BlockDataPath::Here { parts }
            }
            BlockSideReceiver::Blasts(landing) => {
                let (heads, come) = sync_channel(HEADS);
                spawn(
                    "blasts",
                    Box::new(move || beside.hear_blasts(id, landing, &come)),
                )?;
                BlockDataPath::Beside(heads)
            }
        };
        spawn(
            "blocks",
            Box::new(move || shared.hear_server(id, receiver, &data, &hears)),
        )
        .map(drop)
    }

    fn hear_server(
        self: &Arc<Self>,
        id: u16,
        mut receiver: BlockMessageReceiver,
        data: &BlockDataPath,
        hears: &Mutex<Instant>,
    ) {
        let mut scratch = Vec::new();
        let ended = loop {
            let message = receiver.message();
            if message.is_ok() {
                *lock(hears) = Instant::now();
            }
            match message {
                Ok(Message::BlockHead(head)) => {
                    let parts = match data {
                        BlockDataPath::Here { parts } => *parts,
                        BlockDataPath::Beside(heads) if heads.send(head).is_ok() => continue,
                        BlockDataPath::Beside(_) => {
                            break BlockConnectionEnd::Broken("its blasts were interrupted".into());
                        }
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
                    let came = if parts {
                        receiver.parts(into)
                    } else {
                        receiver.data(into).map(|()| true)
                    };
                    match came {
                        Ok(true) => self.came(head, own),
                        // The server reports it as discarded.
                        Ok(false) => {}
                        Err(ended) => break ended,
                    }
                }
                Ok(Message::Refused(refused)) if refused.request == 0 => {
                    break BlockConnectionEnd::Broken(refused.words);
                }
                Ok(Message::Flushed(flushed)) => {
                    self.report_event(BlockClientEvent::Flushed(flushed))
                }
                Ok(Message::Failed(failed)) => {
                    let disk = self.disk_of(failed.set, failed.number, id);
                    self.try_elsewhere(
                        failed.set,
                        failed.number,
                        (id, disk),
                        Why::from_number(failed.why),
                    );
                }
                Ok(_) => {}
                Err(ended) => break ended,
            }
        };
        self.server_gone(id, &ended);
    }

    fn disk_of(&self, set: u32, number: u64, server: u16) -> u16 {
        let known = lock(&self.known);
        let row = known
            .rows
            .get(&set)
            .and_then(|rows| rows.get(number as usize));
        let place = row.and_then(|row| row.places.iter().find(|place| place.server == server));
        place.map_or(0, |place| place.disk)
    }

    /// Handles the end of a connection to a server.
    fn server_gone(self: &Arc<Self>, id: u16, ended: &BlockConnectionEnd) {
        let Some(link) = lock(&self.links).remove(&id) else {
            return;
        };
        if self.closed.load(Ordering::SeqCst) {
            return;
        }
        let words = if link.is_silent() {
            "it no longer answers".to_owned()
        } else {
            ended.to_string()
        };
        self.is_away(id, &link.name, words);
        self.ask_others(id);
    }

    /// Requests outstanding blocks of a server that cannot send them from other copies, or reports them as failed.
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

    /// Whether the link to a server, or the whole client, is closed.
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

    fn take_blasts(
        self: &Arc<Self>,
        id: u16,
        landing: Landing,
        heads: &Heads<BlockHead>,
    ) -> std::io::Result<()> {
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

    fn hear_datagrams(
        self: &Arc<Self>,
        id: u16,
        socket: &UdpSocket,
        server: SocketAddr,
        hears: &Mutex<Instant>,
    ) {
        let mut reassembly =
            BlockReassembly::new(self.options.transport == BlockDataTransport::Rtp);
        if self.options.discard {
            reassembly = reassembly.discarding();
        }
        let mut memory = vec![0; 1 << 16];
        let mut control = nix::cmsg_space!(i32);
        while !self.closed.load(Ordering::Relaxed) {
            let mut parts = [IoSliceMut::new(&mut memory)];
            let received = recvmsg::<SockaddrStorage>(
                socket.as_raw_fd(),
                &mut parts,
                Some(&mut control),
                MsgFlags::empty(),
            );
            let (bytes, size) = match received {
                Ok(received) => {
                    let from = received.address.as_ref().and_then(ip);
                    if from != Some(server.ip()) {
                        continue;
                    }
                    let size = received
                        .cmsgs()
                        .ok()
                        .into_iter()
                        .flatten()
                        .find_map(|message| match message {
                            ControlMessageOwned::UdpGroSegments(size) => usize::try_from(size).ok(),
                            _ => None,
                        });
                    (received.bytes, size)
                }
                // Nothing came within the timeout: continue as long as the server is linked.
                Err(nix::errno::Errno::EAGAIN) if lock(&self.links).contains_key(&id) => continue,
                Err(nix::errno::Errno::EINTR) => continue,
                Err(_) => return,
            };
            for datagram in memory[..bytes].chunks(size.unwrap_or(bytes).max(1)) {
                if let Some((head, data)) = reassembly.datagram(datagram) {
                    *lock(hears) = Instant::now();
                    self.came(head, data);
                }
            }
        }
    }
}

/// Where the data of a block comes, whose head comes over the connection.
enum BlockDataPath {
    /// After the head, on the same connection.
    Here { parts: bool },
    /// Beside the connection: the thread that receives the data gets the head.
    Beside(SyncSender<BlockHead>),
}

/// The receiving end of what carries data beside the connection.
enum BlockSideReceiver {
    Nothing,
    Datagrams(UdpSocket),
    Blasts(Box<Landing>),
}

impl BlockSideReceiver {
    /// Opens what the transport needs beside the connection.
    fn open(options: &BlockClientOptions, local: IpAddr, session: u128) -> std::io::Result<Self> {
        Ok(match options.transport {
            BlockDataTransport::Tcp => Self::Nothing,
            BlockDataTransport::Udp | BlockDataTransport::Rtp => {
                Self::Datagrams(socket(local, options.receive_buffer)?)
            }
            BlockDataTransport::Blast => Self::Blasts(Landing::open(local, session)?.into()),
        })
    }

    fn port(&self) -> std::io::Result<u16> {
        match self {
            Self::Nothing => Ok(0),
            Self::Datagrams(socket) => Ok(socket.local_addr()?.port()),
            Self::Blasts(landing) => landing.port(),
        }
    }
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let four = address
        .as_sockaddr_in()
        .map(|address| IpAddr::V4(address.ip()));
    four.or_else(|| {
        address
            .as_sockaddr_in6()
            .map(|address| IpAddr::V6(address.ip()))
    })
}

fn socket(at: IpAddr, room: Option<usize>) -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind((at, 0))?;
    socket.set_read_timeout(Some(LOOK))?;
    let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(room.unwrap_or(ROOM));
    setsockopt(&socket, sockopt::UdpGroSegment, &true)?;
    Ok(socket)
}
