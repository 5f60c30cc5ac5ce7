//! The communication operations over any byte-stream socket: TCP, MPTCP, Unix.
//!
//! Data units follow one another without framing, because both endpoints' programs know their sizes. One byte starts a bulk transfer, and
//! one byte confirms that a put has arrived. A half-closed stream says that no more data units come. The token, which shows a responder
//! that the connection belongs to the run, is sent first.

use super::tcp_record::is_in_transit;
use crate::buffers::{LiveThreadBuffers, READ_BYTES};
use crate::cancel::{self, LiveCancelFlags};
use crate::error::{self, Error, Result};
use crate::readiness::{self, SocketInputState};
use crate::stacks::contract::{LiveConnection, connection_vanished};
use nix::sys::sendfile::sendfile;
use stackline_core::catalogue::{OptionKind, OptionTable};
use stackline_core::plan::Stack;
use stackline_core::run_record::TransportRecord;
use stackline_endpoint::BulkDirection;
use stackline_events::scope;
use stackline_os::stream_socket::{self as socket, RecvFlags, SendFlags};
use stackline_proto::datagram::DatagramToken;
use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The option `threads`: one or a few threads drive all pairs of a side, instead of one thread per pair.
pub(super) const THREADS: OptionTable = OptionTable::new(
    "threads",
    OptionKind::Number(1, 1024),
    "one per pair, blocking in system calls",
    "each side drives all its pairs with this many threads, using epoll",
);

/// How arriving bytes are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receive {
    /// Sleep in the kernel until something arrives.
    Block,
    /// Call the kernel without blocking, again and again.
    Spin,
    /// Have the kernel drop the bytes without copying them.
    Truncate,
    /// Let other connections of the thread run until something arrives. The number is that of threads on this side.
    Share(u64),
}

impl Receive {
    /// From the options `receive` and `threads`.
    pub(crate) fn new(stack: &Stack) -> Self {
        match (stack.word("receive"), stack.number("threads")) {
            (Some("spin"), _) => Self::Spin,
            (Some("truncate"), _) => Self::Truncate,
            (_, Some(threads)) => Self::Share(threads),
            _ => Self::Block,
        }
    }

    /// Whether the thread may drive other connections too.
    const fn shares(self) -> bool {
        matches!(self, Self::Share(_))
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Spin => "spin",
            Self::Truncate => "truncate",
            Self::Share(_) => "epoll",
        }
    }
}

/// What differs between the stacks that share this file.
pub(crate) trait Flavour: Send {
    /// The transport's present state, if the kernel reports it.
    fn transport(&self, socket: &socket2::Socket) -> Option<TransportRecord>;
    /// The settings in force, by option name.
    fn settings(&self, socket: &socket2::Socket) -> BTreeMap<String, String>;
    /// Whether the stack has the option `zerocopy`.
    fn has_zerocopy(&self) -> bool;
    /// Makes the transport send at once what it holds back to fill a segment.
    fn push(&self, socket: &socket2::Socket);
}

/// An open stream.
pub(crate) struct LiveStream<F> {
    socket: socket2::Socket,
    flavour: F,
    receive: Receive,
    input: SocketInputState,
    /// How many bytes were received that belong to later data units.
    ahead: u64,
    /// Whether the peer has ended its stream.
    ended: bool,
    /// The state of zero-copy sends, if they are used.
    zerocopy: Option<Zerocopy>,
    /// The token, until it is sent with the first data unit.
    introduction: Option<DatagramToken>,
}

/// Counts of zero-copy sends (system calls with `MSG_ZEROCOPY`).
#[derive(Clone, Copy, Default)]
struct Zerocopy {
    /// Sends whose pages the kernel still holds.
    pending: u32,
    /// Completed sends for which the kernel copied the data after all.
    copied: u32,
    /// Completed sends.
    done: u32,
}

/// `MSG_ZEROCOPY`.
const ZEROCOPY: SendFlags = SendFlags::from_bits_retain(libc::MSG_ZEROCOPY as u32);
/// Most sends that may be pending.
const PENDING_MOST: u32 = 128;

impl<F: Flavour> LiveStream<F> {
    pub(crate) fn new(
        socket: socket2::Socket,
        flavour: F,
        receive: Receive,
        zerocopy: bool,
    ) -> Result<Self> {
        scope::begin_byte_count();
        if receive.shares() {
            socket
                .set_nonblocking(true)
                .map_err(|e| error::io_error("O_NONBLOCK", &e))?;
            readiness::watch(socket.as_fd())?;
        }
        Ok(Self {
            socket,
            flavour,
            receive,
            input: SocketInputState::default(),
            ahead: 0,
            ended: false,
            zerocopy: zerocopy.then(Zerocopy::default),
            introduction: None,
        })
    }

    /// Has the connection send the token with its first data unit, so that, as in an application, connecting and calling take no
    /// additional segment or system call.
    pub(crate) const fn introducing(mut self, token: DatagramToken) -> Self {
        self.introduction = Some(token);
        self
    }

    /// Sends the token by itself, if it was not sent: something other than a data unit in memory comes first.
    pub(crate) fn introduce(&mut self, buffers: &LiveThreadBuffers) -> Result<()> {
        let Some(token) = self.introduction.take() else {
            return Ok(());
        };
        send_all(&self.socket, &token, SendFlags::empty(), &buffers.flags)
    }

    /// Sends the token and the first data unit, in one system call if the kernel takes both.
    #[cold]
    fn send_first(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let Some(token) = self.introduction.take() else {
            return Ok(());
        };
        let unit = buffers
            .source
            .outgoing(bytes)
            .map_err(|e| error::io_error("reading the source", &e))?;
        let both = token.len() + unit.len();
        let sent = loop {
            match scope::sending(both, || socket::send_two(self.socket.as_fd(), &token, unit)) {
                Ok(sent) => break sent,
                Err(error) => not_sent("send", &self.socket, &error, &buffers.flags)?,
            }
        };
        let (of_token, of_unit) = (sent.min(token.len()), sent.saturating_sub(token.len()));
        send_all(
            &self.socket,
            &token[of_token..],
            SendFlags::empty(),
            &buffers.flags,
        )?;
        send_all(
            &self.socket,
            &unit[of_unit..],
            SendFlags::empty(),
            &buffers.flags,
        )
    }

    #[inline]
    fn send_unit(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<()> {
        if self.introduction.is_some() {
            if self.zerocopy.is_none() && buffers.source.file().is_none() {
                return self.send_first(bytes, buffers);
            }
            self.introduce(buffers)?;
        }
        if buffers.source.file().is_some() {
            return self.send_file(bytes, buffers);
        }
        let flags = if self.zerocopy.is_some() {
            ZEROCOPY
        } else {
            SendFlags::empty()
        };
        let unit = buffers
            .source
            .outgoing(bytes)
            .map_err(|e| error::io_error("reading the source", &e))?;
        // The common case: the kernel takes the whole unit at once.
        match send(&self.socket, unit, flags) {
            Ok(sent) if sent == bytes => {}
            Ok(sent) => send_all(&self.socket, &unit[sent..], flags, &buffers.flags)?,
            Err(error) => {
                not_sent("send", &self.socket, &error, &buffers.flags)?;
                send_all(&self.socket, unit, flags, &buffers.flags)?;
            }
        }
        self.note_zerocopy(buffers)
    }

    /// Sends a data unit from the source file by `sendfile`, and starts again at the file's beginning when it ends.
    fn send_file(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let flags = buffers.flags.clone();
        let mut left = bytes;
        while left > 0 {
            let Some((file, length, at)) = buffers.source.file() else {
                return Ok(());
            };
            let mut offset = i64::try_from(*at).unwrap_or(0);
            let most = left.min(usize::try_from(length - *at).unwrap_or(left));
            match scope::sending(most, || {
                sendfile(&self.socket, file, Some(&mut offset), most)
            }) {
                Ok(0) => {
                    return Err(Error::measurement(
                        "the source file shrank while it was being sent",
                    ));
                }
                Ok(n) => {
                    left -= n;
                    *at = if *at + n as u64 >= length {
                        0
                    } else {
                        *at + n as u64
                    };
                }
                Err(error) => not_sent("sendfile", &self.socket, &error.into(), &flags)?,
            }
        }
        Ok(())
    }

    /// Counts a zero-copy send; with too many pending, waits for completions.
    fn note_zerocopy(&mut self, buffers: &LiveThreadBuffers) -> Result<()> {
        let Some(state) = &mut self.zerocopy else {
            return Ok(());
        };
        state.pending += 1;
        if state.pending > PENDING_MOST {
            self.reap(PENDING_MOST / 2, buffers)
        } else {
            Ok(())
        }
    }

    /// Collects completions until at most `most` sends are pending.
    fn reap(&mut self, most: u32, buffers: &LiveThreadBuffers) -> Result<()> {
        let Some(state) = &mut self.zerocopy else {
            return Ok(());
        };
        while state.pending > most {
            match socket::zerocopy_completions(self.socket.as_fd()) {
                Ok(Some((n, copied))) => {
                    state.pending = state.pending.saturating_sub(n);
                    state.done += n;
                    state.copied += if copied { n } else { 0 };
                }
                Ok(None) => {
                    buffers.flags.interrupted()?;
                    std::thread::yield_now();
                }
                Err(error) => return Err(error::io_error("reading zero-copy completions", &error)),
            }
        }
        Ok(())
    }

    /// Waits for bytes and receives at most `most` of them; 0 at the end of the stream.
    #[inline]
    fn take(&mut self, most: usize, buffers: &mut LiveThreadBuffers) -> Result<usize> {
        let mut tries = 0_u32;
        loop {
            if self.receive.shares() {
                self.input.wait();
            }
            let fd = self.socket.as_fd();
            let got = scope::receiving(most, || match self.receive {
                Receive::Block | Receive::Share(_) => {
                    socket::receive(fd, buffers.room(most), RecvFlags::empty())
                }
                Receive::Spin => socket::receive(fd, buffers.room(most), RecvFlags::DONTWAIT),
                Receive::Truncate => socket::discard(fd, most, 0),
            });
            match got {
                Ok(n) => {
                    self.input.got(n, most);
                    buffers
                        .arrived(n)
                        .map_err(|e| error::io_error("writing the destination", &e))?;
                    return Ok(n);
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock if self.receive.shares() => self.nothing(buffers)?,
                    io::ErrorKind::WouldBlock => {
                        tries = tries.wrapping_add(1);
                        if tries.is_multiple_of(1024) {
                            buffers.flags.interrupted()?;
                        }
                        std::hint::spin_loop();
                    }
                    io::ErrorKind::Interrupted => buffers.flags.interrupted()?,
                    _ => return Err(broken("recv", &error)),
                },
            }
        }
    }

    /// Notes that nothing had arrived, so that the next receiving call waits.
    fn nothing(&mut self, buffers: &LiveThreadBuffers) -> Result<()> {
        self.input.nothing();
        buffers.flags.interrupted()
    }

    /// Receives the control byte `expected`. Returns false at the end of the stream.
    fn expect_byte(&mut self, expected: u8, buffers: &LiveThreadBuffers) -> Result<bool> {
        if self.ahead > 0 {
            // The byte was received together with the data units before it, and its value was not kept.
            self.ahead -= 1;
            return Ok(true);
        }
        let mut byte = [0_u8; 1];
        let flags = if self.receive == Receive::Spin {
            RecvFlags::DONTWAIT
        } else {
            RecvFlags::empty()
        };
        loop {
            if self.receive.shares() {
                self.input.wait();
            }
            match scope::receiving(1, || socket::receive(self.socket.as_fd(), &mut byte, flags)) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(false);
                }
                Ok(_) if byte[0] == expected => return Ok(true),
                Ok(_) => {
                    return Err(Error::measurement(
                        "the peer sent data where a control byte was expected",
                    ));
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => self.nothing(buffers)?,
                    io::ErrorKind::Interrupted => buffers.flags.interrupted()?,
                    _ => return Err(broken("recv", &error)),
                },
            }
        }
    }
}

/// The control byte that starts a bulk transfer.
pub(super) const START: u8 = b'S';
/// The control byte that confirms that a put has arrived.
pub(super) const CONFIRM: u8 = b'C';

/// How long to wait, before the clock starts, until nothing is in transit on a connection.
const REST: Duration = Duration::from_secs(10);
/// The first and the longest pause between two checks whether something is in transit; pauses double.
const LOOKS: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(1));

/// The sizes of a socket's buffers, by option name.
pub(super) fn buffer_settings(
    socket: &socket2::Socket,
) -> impl Iterator<Item = (String, String)> + use<> {
    [
        ("send_buffer", socket.send_buffer_size()),
        ("receive_buffer", socket.recv_buffer_size()),
    ]
    .into_iter()
    .filter_map(|(name, size)| Some((name.to_string(), format!("{} B", size.ok()?))))
}

/// Waits until nothing is in transit on a connection, so that the clock starts on a quiet one.
pub(super) fn wait_until_quiet(socket: &socket2::Socket, flags: &LiveCancelFlags) -> Result<()> {
    let (begun, mut pause) = (Instant::now(), LOOKS.0);
    while is_in_transit(socket.as_fd()) && begun.elapsed() < REST {
        flags.interrupted()?;
        cancel::pause(pause);
        pause = (pause * 2).min(LOOKS.1);
    }
    Ok(())
}

impl<F: Flavour> LiveConnection for LiveStream<F> {
    fn settle(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.introduce(buffers)?;
        wait_until_quiet(&self.socket, &buffers.flags)
    }

    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        for done in 0..times {
            if buffers.flags.limit() && times > 1 {
                return Ok(done);
            }
            if self.receive.shares() {
                readiness::take_turns();
            }
            self.send_unit(bytes, buffers)?;
        }
        Ok(times)
    }

    fn receive(
        &mut self,
        bytes: usize,
        times: u64,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<u64> {
        self.introduce(buffers)?;
        let wanted = (bytes as u64).saturating_mul(times);
        let at_once = bytes.max(READ_BYTES) as u64;
        let exact = buffers.keeps() || self.receive == Receive::Truncate;
        let mut have = self.ahead;
        while have < wanted {
            // A file must get no byte beyond the data units, and a truncating receive must not drop the control byte behind them: then
            // read exactly what is wanted, otherwise also what follows.
            let most = if exact {
                at_once.max(1 << 20).min(wanted - have)
            } else {
                at_once
            };
            let got = self.take(most as usize, buffers)?;
            if got == 0 {
                self.ended = true;
                self.ahead = 0;
                let whole = have / bytes as u64;
                return if have.is_multiple_of(bytes as u64) {
                    Ok(whole)
                } else {
                    Err(connection_vanished("in the middle of a data unit"))
                };
            }
            have += got as u64;
        }
        self.ahead = have - wanted;
        Ok(times)
    }

    fn start_bulk(&mut self, _: BulkDirection, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.introduce(buffers)?;
        send_all(&self.socket, &[START], SendFlags::empty(), &buffers.flags)
    }

    fn await_start_bulk(
        &mut self,
        _: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        Ok(!self.ended && self.expect_byte(START, buffers)?)
    }

    fn stop_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        self.introduce(buffers)?;
        if direction == BulkDirection::Put {
            self.flavour.push(&self.socket);
            if !self.expect_byte(CONFIRM, buffers)? {
                return Err(connection_vanished(
                    "before it confirmed that everything had arrived",
                ));
            }
            self.reap(0, buffers)?;
        }
        Ok(())
    }

    fn await_stop_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        match direction {
            BulkDirection::Get => {
                self.flavour.push(&self.socket);
                self.reap(0, buffers)
            }
            BulkDirection::Put => {
                send_all(&self.socket, &[CONFIRM], SendFlags::empty(), &buffers.flags)
            }
        }
    }

    fn end_stream(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.introduce(buffers)?;
        match self.socket.shutdown(Shutdown::Write) {
            // ENOTCONN: the peer has closed already and needs no notice.
            Err(error) if error.kind() != io::ErrorKind::NotConnected => {
                Err(broken("shutdown", &error))
            }
            _ => Ok(()),
        }
    }

    fn disconnect(mut self: Box<Self>, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.introduce(buffers)
    }

    fn await_disconnect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.introduce(buffers)?;
        if self.ended {
            return Ok(());
        }
        if self.ahead > 0 {
            return Err(Error::measurement(
                "the peer sent data after the last data unit",
            ));
        }
        if self.receive == Receive::Truncate {
            self.receive = Receive::Block;
        }
        let mut byte = [0_u8; 1];
        loop {
            if self.receive.shares() {
                self.input.wait();
            }
            match scope::receiving(1, || {
                socket::receive(self.socket.as_fd(), &mut byte, RecvFlags::empty())
            }) {
                Ok(0) => return Ok(()),
                Ok(_) => {
                    return Err(Error::measurement(
                        "the peer sent data after the last data unit",
                    ));
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => self.nothing(buffers)?,
                    io::ErrorKind::Interrupted => buffers.flags.interrupted()?,
                    io::ErrorKind::ConnectionReset => return Ok(()),
                    _ => return Err(broken("recv", &error)),
                },
            }
        }
    }

    fn transport(&self) -> Option<TransportRecord> {
        self.flavour.transport(&self.socket)
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = self.flavour.settings(&self.socket);
        let mut put = |name: &str, value: String| settings.insert(name.to_string(), value);
        put("receive", self.receive.name().to_string());
        if let Receive::Share(threads) = self.receive {
            put("threads", threads.to_string());
        }
        settings.extend(buffer_settings(&self.socket));
        if self.flavour.has_zerocopy() {
            settings.insert(
                "zerocopy".into(),
                if self.zerocopy.is_some() { "on" } else { "off" }.into(),
            );
        }
        settings
    }

    fn places(&self) -> Option<(u64, u64)> {
        let introduction = self
            .introduction
            .as_ref()
            .map_or(0, |token| token.len() as u64);
        scope::position()
            .map(|(sent, received)| (sent + introduction, received.saturating_sub(self.ahead)))
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        Some((
            self.socket.local_addr().ok()?.as_socket()?,
            self.socket.peer_addr().ok()?.as_socket()?,
        ))
    }

    fn notes(&self) -> Vec<String> {
        match &self.zerocopy {
            Some(state) if state.copied > 0 => {
                vec![format!(
                    "zerocopy: the kernel copied {} of {} sends",
                    state.copied, state.done
                )]
            }
            _ => Vec::new(),
        }
    }
}

#[inline]
fn send(socket: &socket2::Socket, bytes: &[u8], flags: SendFlags) -> io::Result<usize> {
    scope::sending(bytes.len(), || socket::send(socket.as_fd(), bytes, flags))
}

/// Sends all of it.
fn send_all(
    socket: &socket2::Socket,
    bytes: &[u8],
    flags: SendFlags,
    stop: &LiveCancelFlags,
) -> Result<()> {
    let mut sent = 0;
    while sent < bytes.len() {
        match send(socket, &bytes[sent..], flags) {
            Ok(n) => sent += n,
            Err(error) => not_sent("send", socket, &error, stop)?,
        }
    }
    Ok(())
}

/// Handles a call that sent nothing. If it was interrupted, checks the flags; if the socket was full, waits for room while other
/// connections of the thread run; then the caller tries again.
fn not_sent(
    what: &str,
    socket: &socket2::Socket,
    error: &io::Error,
    stop: &LiveCancelFlags,
) -> Result<()> {
    match error.kind() {
        io::ErrorKind::Interrupted => stop.interrupted(),
        io::ErrorKind::WouldBlock => {
            readiness::wait_for_room(socket.as_fd(), None)?;
            stop.interrupted()
        }
        _ => Err(broken(what, error)),
    }
}

/// The error for a failed system call; a broken connection is reported as the peer's.
fn broken(what: &str, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
            connection_vanished("while data was in flight")
        }
        _ => error::io_error(what, error),
    }
}
