//! The streams of a test of iperf3: one thread each, which sends or receives until the test ends, and counts.

use crate::iperf3_messages::Iperf3Parameters;
use socket2::{Domain, SockRef, Socket, Type};
use stackline_os::tcp_info::TcpInfo;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Bytes of a block of TCP and of a datagram, unless the client says.
const BLOCK: u64 = 128 << 10;
const DATAGRAM: u64 = 1460;
/// Bits a second of a UDP stream, unless the client says.
const UDP_RATE: u64 = 1 << 20;
/// How long a call on a stream waits before it looks whether the test has ended.
const SLICE: Duration = Duration::from_millis(100);
/// What a client sends to open a stream of UDP, and what it is answered, as iperf3 since 3.11 does on machines of little endian.
const UDP_REPLY: u32 = 0x3938_3736;
/// Weight of one difference of transit times in the jitter (RFC 3550, A.8).
const JITTER_WEIGHT: f64 = 1.0 / 16.0;

/// What the server does on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamDirection {
    Receive,
    Send,
}

/// What a stream has moved.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamTally {
    pub(super) bytes: u64,
    /// -1 if this end does not send, or does not know.
    pub(super) retransmits: i64,
    pub(super) jitter_s: f64,
    pub(super) missing: i64,
    pub(super) packets: i64,
    pub(super) congestion: Option<String>,
}

/// The streams of a test, in the order in which the client opened them.
pub(super) enum TestStreams {
    Tcp(Vec<TcpStream>),
    Udp(Vec<UdpSocket>),
}

/// Streams on which something is going on.
pub(super) struct RunningStreams {
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<StreamTally>>,
}

impl TestStreams {
    /// Starts a thread for each.
    pub(super) fn start(
        self,
        directions: &[StreamDirection],
        asked: &Iperf3Parameters,
    ) -> io::Result<RunningStreams> {
        let ended = Arc::<AtomicBool>::default();
        let spawn = |work: Box<dyn FnOnce() -> StreamTally + Send>| {
            thread::Builder::new()
                .name("iperf3-stream".into())
                .spawn(work)
        };
        let mut threads = Vec::new();
        match self {
            Self::Tcp(streams) => {
                for (stream, direction) in streams.into_iter().zip(directions.iter().copied()) {
                    let (ended, asked) = (Arc::clone(&ended), asked.clone());
                    threads.push(spawn(Box::new(move || {
                        run_tcp(stream, direction, &asked, &ended)
                    }))?);
                }
            }
            Self::Udp(sockets) => {
                for (socket, direction) in sockets.into_iter().zip(directions.iter().copied()) {
                    let (ended, asked) = (Arc::clone(&ended), asked.clone());
                    threads.push(spawn(Box::new(move || {
                        run_udp(&socket, direction, &asked, &ended)
                    }))?);
                }
            }
        }
        Ok(RunningStreams { ended, threads })
    }
}

impl RunningStreams {
    /// Ends them and returns what each has moved.
    pub(super) fn end(self) -> Vec<StreamTally> {
        self.ended.store(true, Ordering::Relaxed);
        let tally = |thread: JoinHandle<StreamTally>| thread.join().unwrap_or_default();
        self.threads.into_iter().map(tally).collect()
    }
}

/// Whether a call only has to be made again.
fn is_wait(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

fn run_tcp(
    mut stream: TcpStream,
    direction: StreamDirection,
    asked: &Iperf3Parameters,
    ended: &AtomicBool,
) -> StreamTally {
    let _ = stream.set_read_timeout(Some(SLICE));
    let _ = stream.set_write_timeout(Some(SLICE));
    let mut tally = StreamTally {
        retransmits: -1,
        ..StreamTally::default()
    };
    match direction {
        StreamDirection::Receive => tally.bytes = receive_tcp(&mut stream, ended),
        StreamDirection::Send => {
            tally.bytes = send_tcp(&mut stream, asked, ended);
            let info = TcpInfo::read(stream.as_fd());
            tally.retransmits = info.map_or(-1, |info| i64::from(info.total_retransmits));
        }
    }
    tally.congestion = SockRef::from(&stream).tcp_congestion().ok().map(|name| {
        let name = String::from_utf8_lossy(&name);
        name.trim_end_matches('\0').to_owned()
    });
    let _ = stream.shutdown(Shutdown::Both);
    tally
}

/// Receives until the test ends. What has come before counts, even if it is looked at after the end.
fn receive_tcp(stream: &mut TcpStream, ended: &AtomicBool) -> u64 {
    let (mut room, mut received) = (vec![0; BLOCK as usize], 0);
    loop {
        match stream.read(&mut room) {
            Ok(0) => return received,
            Ok(bytes) => received += bytes as u64,
            Err(error) if is_wait(&error) && !ended.load(Ordering::Relaxed) => {}
            Err(_) => return received,
        }
        if ended.load(Ordering::Relaxed) {
            let _ = stream.set_nonblocking(true);
        }
    }
}

fn send_tcp(stream: &mut TcpStream, asked: &Iperf3Parameters, ended: &AtomicBool) -> u64 {
    let block = if asked.len == 0 { BLOCK } else { asked.len };
    let (most, pace) = (bytes_asked(asked, block), Pace::new(asked.bandwidth));
    let (room, mut sent) = (vec![0; block as usize], 0);
    while !ended.load(Ordering::Relaxed) && sent < most {
        if !pace.permits(sent) {
            continue;
        }
        match stream.write(&room) {
            Ok(bytes) => sent += bytes as u64,
            Err(error) if is_wait(&error) => {}
            Err(_) => break,
        }
    }
    sent
}

/// Bytes that a sender sends at most.
fn bytes_asked(asked: &Iperf3Parameters, block: u64) -> u64 {
    match (asked.num, asked.blockcount) {
        (0, 0) => u64::MAX,
        (0, blocks) => blocks.saturating_mul(block),
        (bytes, _) => bytes,
    }
}

/// A rate that a sender keeps to.
struct Pace {
    bit_s: u64,
    begun: Instant,
}

impl Pace {
    /// A rate of 0 is none.
    fn new(bit_s: u64) -> Self {
        Self {
            bit_s,
            begun: Instant::now(),
        }
    }

    /// Whether more may be sent after so many bytes; waits a moment if not.
    fn permits(&self, sent: u64) -> bool {
        let due = self.begun.elapsed().as_secs_f64() * self.bit_s as f64 / 8.0;
        let is_due = self.bit_s == 0 || sent as f64 <= due;
        if !is_due {
            thread::sleep(Duration::from_millis(1));
        }
        is_due
    }
}

/// Where streams of UDP come from: all from one port, and each is connected to its client then.
pub(super) struct UdpStreams {
    at: SocketAddr,
    next: UdpSocket,
}

impl UdpStreams {
    pub(super) fn bind(at: SocketAddr) -> io::Result<Self> {
        let next = shared_port(at)?;
        Ok(Self { at, next })
    }

    /// The streams of a client, each after its first datagram.
    pub(super) fn accept(mut self, streams: usize, within: Duration) -> io::Result<Vec<UdpSocket>> {
        let mut accepted = Vec::new();
        for _ in 0..streams {
            self.next.set_read_timeout(Some(within))?;
            let mut room = [0; 64];
            let (_, from) = self.next.recv_from(&mut room)?;
            self.next.connect(from)?;
            let stream = std::mem::replace(&mut self.next, shared_port(self.at)?);
            stream.send(&UDP_REPLY.to_le_bytes())?;
            accepted.push(stream);
        }
        Ok(accepted)
    }
}

/// A socket of UDP at a port that others of this server have, too.
fn shared_port(at: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(at), Type::DGRAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&at.into())?;
    Ok(socket.into())
}

fn run_udp(
    socket: &UdpSocket,
    direction: StreamDirection,
    asked: &Iperf3Parameters,
    ended: &AtomicBool,
) -> StreamTally {
    let _ = socket.set_read_timeout(Some(SLICE));
    let _ = socket.set_write_timeout(Some(SLICE));
    let counter = if asked.udp_counters_64bit > 0 { 8 } else { 4 };
    let mut tally = StreamTally {
        retransmits: -1,
        ..StreamTally::default()
    };
    match direction {
        StreamDirection::Receive => receive_udp(socket, counter, ended, &mut tally),
        StreamDirection::Send => send_udp(socket, counter, asked, ended, &mut tally),
    }
    tally
}

fn send_udp(
    socket: &UdpSocket,
    counter: usize,
    asked: &Iperf3Parameters,
    ended: &AtomicBool,
    tally: &mut StreamTally,
) {
    let length = if asked.len == 0 { DATAGRAM } else { asked.len };
    let mut datagram = vec![0; (length as usize).max(8 + counter)];
    let length = datagram.len() as u64;
    let rate = if asked.bandwidth == 0 {
        UDP_RATE
    } else {
        asked.bandwidth
    };
    let (most, pace) = (bytes_asked(asked, length), Pace::new(rate));
    while !ended.load(Ordering::Relaxed) && tally.bytes < most {
        if !pace.permits(tally.bytes) {
            continue;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default();
        let number = (tally.packets + 1) as u64;
        datagram[..4].copy_from_slice(&(now.as_secs() as u32).to_be_bytes());
        datagram[4..8].copy_from_slice(&now.subsec_micros().to_be_bytes());
        datagram[8..8 + counter].copy_from_slice(&number.to_be_bytes()[8 - counter..]);
        if socket.send(&datagram).is_ok() {
            tally.packets += 1;
            tally.bytes += length;
        }
    }
}

fn receive_udp(socket: &UdpSocket, counter: usize, ended: &AtomicBool, tally: &mut StreamTally) {
    let mut room = vec![0; 1 << 16];
    let (mut came, mut transit) = (0_i64, None);
    while !ended.load(Ordering::Relaxed) {
        let Ok(bytes) = socket.recv(&mut room) else {
            continue;
        };
        if bytes < 8 + counter {
            continue;
        }
        let number_of = |range: std::ops::Range<usize>| {
            room[range]
                .iter()
                .fold(0_u64, |value, byte| value << 8 | u64::from(*byte))
        };
        let sent = number_of(0..4) as f64 + number_of(4..8) as f64 * 1e-6;
        let number = number_of(8..8 + counter).min(i64::MAX as u64) as i64;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let this = now.unwrap_or_default().as_secs_f64() - sent;
        let change = transit
            .replace(this)
            .map_or(0.0, |before: f64| (this - before).abs());
        tally.jitter_s += (change - tally.jitter_s) * JITTER_WEIGHT;
        tally.bytes += bytes as u64;
        came += 1;
        tally.packets = tally.packets.max(number);
    }
    tally.missing = (tally.packets - came).max(0);
}
