//! PUP byte streams (`proto::papers::pup`) in UDP datagrams: connecting and listening. Each socket has a thread that receives packets and
//! runs timers; a thread that reads or writes sends what is due immediately.

mod listener;
pub(crate) mod scheme;

pub use listener::PupListener;

use crate::message_stream::address;
use crate::transport::DisplayTransport;
use stackline_core::time::Instant as Moment;
use stackline_proto::papers::pup::{
    PupConnection, PupOptions, PupPacket, PupPort, PupReceived, PupState,
};
use std::cell::Cell;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The PUP port to which connections are requested.
const LISTENS: PupPort = PupPort {
    network: 0,
    host: 0,
    socket: 7085,
};
/// How late a timer may fire that was set while the thread was waiting.
const LATE: Duration = Duration::from_millis(20);
/// How long a client waits for its last bytes to be acknowledged.
const LINGER: Duration = Duration::from_secs(1);
/// How long a client waits for its connection.
const OPENS: Duration = Duration::from_secs(10);
/// After this silence an end is probed: an end that waits for an answer would not notice otherwise that the peer is gone.
const IDLE: Duration = Duration::from_secs(5);

fn options() -> PupOptions {
    let idle = u64::try_from(IDLE.as_nanos()).unwrap_or(u64::MAX);
    PupOptions {
        idle: Some(stackline_core::time::Duration(idle)),
        ..PupOptions::default()
    }
}

fn random() -> io::Result<u32> {
    getrandom::u32().map_err(|error| io::Error::other(error.to_string()))
}

/// A UDP socket and its clock.
#[derive(Debug)]
struct PupUdpSocket {
    socket: UdpSocket,
    begun: Instant,
}

impl PupUdpSocket {
    fn now(&self) -> Moment {
        Moment(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Waits for the next datagram, until the moment given plus [`LATE`].
    fn hear(
        &self,
        into: &mut [u8],
        deadline: Option<Moment>,
    ) -> io::Result<Option<(usize, SocketAddr)>> {
        let until = deadline.map_or(LATE, |at| {
            Duration::from_nanos(at.since(self.now()).0).min(LATE)
        });
        self.socket
            .set_read_timeout(Some(until.max(Duration::from_micros(100))))?;
        match self.socket.recv_from(into) {
            Ok(heard) => Ok(Some(heard)),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// A connection with its socket.
#[derive(Debug)]
struct PupStreamShared {
    line: Arc<PupUdpSocket>,
    to: SocketAddr,
    connection: Mutex<PupConnection>,
    changed: Condvar,
    /// Whether this end has stopped reading and writing.
    is_ended: AtomicBool,
}

impl PupStreamShared {
    fn new(line: &Arc<PupUdpSocket>, to: SocketAddr, connection: PupConnection) -> Arc<Self> {
        let (connection, changed) = (Mutex::new(connection), Condvar::new());
        Arc::new(Self {
            line: Arc::clone(line),
            to,
            connection,
            changed,
            is_ended: AtomicBool::new(false),
        })
    }

    fn connection(&self) -> MutexGuard<'_, PupConnection> {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the packets that are due.
    fn flush(&self, connection: &mut PupConnection) {
        while let Some(packet) = connection.poll(self.line.now()) {
            // A packet that does not fit into the send buffer is retransmitted later.
            let _ = self.line.socket.send_to(&packet, self.to);
        }
    }

    /// Handles a packet, or the passage of time. Returns when the next timer fires; `None` when the connection is over.
    fn turn(&self, packet: Option<&PupPacket<'_>>) -> Option<Moment> {
        let mut connection = self.connection();
        if let Some(packet) = packet {
            connection.handle(self.line.now(), packet);
        }
        self.flush(&mut connection);
        self.changed.notify_all();
        if connection.is_closed() {
            return None;
        }
        Some(connection.deadline().unwrap_or(Moment(u64::MAX)))
    }

    fn end(&self) {
        self.is_ended.store(true, Ordering::Relaxed);
        let mut connection = self.connection();
        connection.end();
        self.flush(&mut connection);
        self.changed.notify_all();
    }

    /// Waits for a change; an error if it takes too long.
    fn wait<'c>(
        &self,
        connection: MutexGuard<'c, PupConnection>,
        since: Instant,
        patience: Option<Duration>,
    ) -> io::Result<MutexGuard<'c, PupConnection>> {
        let rest = patience.map(|patience| patience.saturating_sub(since.elapsed()));
        if rest.is_some_and(|rest| rest.is_zero()) {
            return Err(ErrorKind::TimedOut.into());
        }
        let waited = self.changed.wait_timeout(connection, rest.unwrap_or(IDLE));
        Ok(waited.unwrap_or_else(PoisonError::into_inner).0)
    }
}

/// Closes the connection when its last user drops it.
#[derive(Debug)]
struct PupStreamUser {
    shared: Arc<PupStreamShared>,
    /// Whether closing waits for the last bytes, because the program may end right after it.
    lingers: bool,
}

impl Drop for PupStreamUser {
    fn drop(&mut self) {
        self.shared.end();
        let begun = Instant::now();
        let mut connection = self.shared.connection();
        while self.lingers && !connection.is_closed() {
            match self.shared.wait(connection, begun, Some(LINGER)) {
                Ok(again) => connection = again,
                Err(_) => return,
            }
        }
    }
}

/// A handle of a connection, for reading or writing.
#[derive(Debug)]
pub struct Pup {
    user: Arc<PupStreamUser>,
    read_within: Cell<Option<Duration>>,
    write_within: Cell<Option<Duration>>,
}

/// What a stream delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PupStreamInput {
    /// This many bytes; 0 at the end of the stream.
    Data(usize),
    /// A mark.
    Mark(u8),
    /// An interrupt, which overtakes all bytes.
    Interrupt(u16),
}

impl Pup {
    fn new(shared: Arc<PupStreamShared>, lingers: bool) -> Self {
        let user = Arc::new(PupStreamUser { shared, lingers });
        Self {
            user,
            read_within: Cell::new(None),
            write_within: Cell::new(None),
        }
    }

    /// Connects to the listener at that address.
    ///
    /// # Errors
    /// The kernel's error, or that nobody answers.
    pub fn connect(to: &str) -> io::Result<Self> {
        let to = address(to)?;
        let socket = UdpSocket::bind(if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
        socket.connect(to)?;
        let line = Arc::new(PupUdpSocket {
            socket,
            begun: Instant::now(),
        });
        let own = PupPort {
            socket: random()?,
            ..LISTENS
        };
        let connection = PupConnection::connect(line.now(), options(), random()?, own, LISTENS);
        let shared = PupStreamShared::new(&line, to, connection);
        let driven = Arc::clone(&shared);
        thread::spawn(move || drive(&driven));
        let begun = Instant::now();
        let mut connection = shared.connection();
        while *connection.state() == PupState::Opening {
            if begun.elapsed() >= OPENS {
                connection.abort("the caller gave up");
                shared.flush(&mut connection);
                return Err(ErrorKind::TimedOut.into());
            }
            connection = match shared.wait(connection, begun, Some(OPENS)) {
                Ok(again) => again,
                Err(_) => shared.connection(),
            };
        }
        if let PupState::Closed(why) = connection.state() {
            return Err(io::Error::other(
                why.clone()
                    .unwrap_or_else(|| "it exited immediately".into()),
            ));
        }
        drop(connection);
        Ok(Self::new(shared, true))
    }

    /// A second handle of the same connection.
    #[must_use]
    pub fn again(&self) -> Self {
        Self {
            user: Arc::clone(&self.user),
            read_within: self.read_within.clone(),
            write_within: self.write_within.clone(),
        }
    }

    /// Waits for the next input; interrupts come before all bytes.
    ///
    /// # Errors
    /// If nothing came in time, or the connection broke.
    pub fn next(&self, into: &mut [u8]) -> io::Result<PupStreamInput> {
        let (shared, begun) = (&self.user.shared, Instant::now());
        let mut connection = shared.connection();
        loop {
            if let Some(code) = connection.take_interrupt() {
                return Ok(PupStreamInput::Interrupt(code));
            }
            if shared.is_ended.load(Ordering::Relaxed) {
                return Ok(PupStreamInput::Data(0));
            }
            match connection.receive(into.len()) {
                PupReceived::Data(data) => {
                    into[..data.len()].copy_from_slice(&data);
                    shared.flush(&mut connection);
                    return Ok(PupStreamInput::Data(data.len()));
                }
                PupReceived::Mark(kind) => return Ok(PupStreamInput::Mark(kind)),
                PupReceived::End => {
                    return match connection.state() {
                        PupState::Closed(Some(why)) => Err(io::Error::other(why.clone())),
                        _ => Ok(PupStreamInput::Data(0)),
                    };
                }
                PupReceived::Nothing => {
                    connection = shared.wait(connection, begun, self.read_within.get())?
                }
            }
        }
    }

    /// An interrupt that has come, if any, without waiting.
    #[must_use]
    pub fn interrupted(&self) -> Option<u16> {
        self.user.shared.connection().take_interrupt()
    }

    /// Sends a mark after everything that was written, or an interrupt that overtakes it.
    pub fn say(&self, mark: Option<u8>, interrupt: Option<u16>) {
        let mut connection = self.user.shared.connection();
        interrupt
            .into_iter()
            .for_each(|code| connection.interrupt(code));
        mark.into_iter().for_each(|kind| connection.mark(kind));
        self.user.shared.flush(&mut connection);
    }
}

impl DisplayTransport for Pup {
    fn second_handle(&self) -> io::Result<Self> {
        Ok(self.again())
    }

    fn read_within(&self, patience: Option<Duration>) -> io::Result<()> {
        self.read_within.set(patience);
        Ok(())
    }

    fn write_within(&self, patience: Duration) -> io::Result<()> {
        self.write_within.set(Some(patience));
        Ok(())
    }

    fn end(&self) {
        self.user.shared.end();
    }

    fn finish(&self) -> io::Result<()> {
        self.end();
        let shared = &self.user.shared;
        let mut connection = shared.connection();
        loop {
            match connection.state() {
                PupState::Closed(Some(why)) => return Err(io::Error::other(why.clone())),
                PupState::Closed(None) | PupState::Dallying => return Ok(()),
                _ => connection = shared.wait(connection, Instant::now(), Some(IDLE))?,
            }
        }
    }

    fn is_gone(&self) -> bool {
        let shared = &self.user.shared;
        let is_ended = shared.is_ended.load(Ordering::Relaxed);
        is_ended
            || matches!(
                shared.connection().state(),
                PupState::Dallying | PupState::Closed(_)
            )
    }
}

impl Read for Pup {
    /// Only the bytes; marks and interrupts are returned by [`Pup::next`].
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if let PupStreamInput::Data(count) = self.next(into)? {
                return Ok(count);
            }
        }
    }
}

impl Write for Pup {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (shared, begun) = (&self.user.shared, Instant::now());
        let mut connection = shared.connection();
        loop {
            if shared.is_ended.load(Ordering::Relaxed)
                || matches!(connection.state(), PupState::Dallying)
                || connection.is_closed()
            {
                return Err(ErrorKind::BrokenPipe.into());
            }
            let count = connection.send(bytes);
            if count > 0 || bytes.is_empty() {
                shared.flush(&mut connection);
                return Ok(count);
            }
            connection = shared.wait(connection, begun, self.write_within.get())?;
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Receives the packets of one connection until it is over.
fn drive(shared: &PupStreamShared) {
    let mut piece = [0; 2048];
    let mut due = shared.turn(None);
    while due.is_some() {
        due = match shared.line.hear(&mut piece, due) {
            Ok(Some((count, from))) if from == shared.to => {
                match PupPacket::read(&piece[..count]) {
                    Ok(packet) => shared.turn(Some(&packet)),
                    // A malformed packet is ignored; it will be retransmitted.
                    Err(_) => shared.turn(None),
                }
            }
            // The port is closed there. An established connection does not trust that, and probes.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                let mut connection = shared.connection();
                if *connection.state() == PupState::Opening {
                    connection.abort("nothing is listening there");
                }
                drop(connection);
                shared.turn(None)
            }
            Ok(_) => shared.turn(None),
            Err(_) => {
                shared.connection().abort("the socket failed");
                shared.turn(None)
            }
        };
    }
}
