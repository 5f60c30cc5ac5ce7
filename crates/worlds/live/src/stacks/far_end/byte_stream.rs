//! The bytes of a connection to a far end, with or without TLS: out as they are, in through a buffer, and a new connection where the
//! server has closed the old one after an answer, as it may.

use super::request_sending::{RequestSending, send_until_answer};
use super::socket::FarEndSocket;
use super::tls::{FarEndTls, FarEndTlsClient};
use crate::cancel::LiveCancelFlags;
use crate::clock;
use crate::error::{Error, Result};
use crate::stacks::contract::LiveConnectParameters;
use stackline_core::run_record::TransportRecord;
use stackline_endpoint::ConnectionOpening;
use stackline_events::scope::{self, ConnectionStep};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How long a server may be silent while a connection is opened: less than what the coordinator allows an agent before a run.
pub(super) const OPENING: Duration = Duration::from_secs(20);
/// Bytes that are received at a time.
const READ_BYTES: usize = 128 << 10;
/// How an alert of TLS begins: its type, and the first byte of the version.
const TLS_ALERT: [u8; 2] = [21, 3];
/// The bytes of an alert with its head.
const LONGEST_ALERT: u64 = 7;

/// A connection to a far end.
pub(super) struct FarEndStream {
    socket: FarEndSocket,
    tls: Option<FarEndTls>,
    /// What opening it took, of TCP and of TLS where that comes first.
    opening: ConnectionOpening,
    client: Option<FarEndTlsClient>,
    /// Received bytes; those before `at` are used up, those from `end` on are room.
    bytes: Vec<u8>,
    at: usize,
    end: usize,
}

impl FarEndStream {
    /// Connects to the first server that answers, which is then the only one, and shakes hands with it if it is a client of TLS that
    /// begins so.
    pub(super) fn connect(
        parameters: &LiveConnectParameters,
        servers: &mut Vec<SocketAddr>,
        client: Option<FarEndTlsClient>,
        flags: &Arc<LiveCancelFlags>,
    ) -> Result<Self> {
        let begun = clock::now();
        let mut stream = Self::new(FarEndSocket::connect(parameters, servers, flags)?, client);
        let connected = clock::now();
        stream.within(OPENING, Self::begin)?;
        stream.opening = ConnectionOpening {
            transport: connected - begun,
            tls_round_trip: stream.tls.as_ref().map(|tls| {
                let took = clock::now() - connected;
                stackline_core::time::Duration(took.0 / u64::from(tls.round_trips()))
            }),
        };
        Ok(stream)
    }

    fn new(socket: FarEndSocket, client: Option<FarEndTlsClient>) -> Self {
        Self {
            socket,
            tls: None,
            opening: ConnectionOpening::default(),
            client,
            bytes: vec![0; READ_BYTES],
            at: 0,
            end: 0,
        }
    }

    /// A stream over any connected socket.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn over(socket: socket2::Socket, parameters: LiveConnectParameters) -> Self {
        Self::new(FarEndSocket::over(socket, parameters), None)
    }

    /// A stream without TLS over a socket beside that of another one. `spare` is the memory of an earlier one.
    pub(super) fn over_socket(socket: FarEndSocket, spare: Option<Self>) -> Self {
        match spare {
            None => Self::new(socket, None),
            Some(stream) => Self {
                socket,
                tls: None,
                opening: ConnectionOpening::default(),
                client: None,
                bytes: stream.bytes,
                at: 0,
                end: 0,
            },
        }
    }

    /// Does `step`, in which the server may be silent for so long at most, if that is less than the option `timeout`.
    pub(super) fn within<T>(
        &mut self,
        silence: Duration,
        step: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let usual = self.socket.patience().allow_silence(silence);
        if usual < silence {
            self.socket.patience().allow_silence(usual);
        }
        let done = step(self);
        self.socket.patience().allow_silence(usual);
        done
    }

    /// What opening it took.
    pub(super) const fn opening(&self) -> ConnectionOpening {
        self.opening
    }

    pub(super) const fn socket(&self) -> &FarEndSocket {
        &self.socket
    }

    /// Begins a new connection: with a handshake, if TLS comes first.
    fn begin(&mut self) -> Result<()> {
        self.tls = match &self.client {
            Some(client) if client.is_first() => {
                scope::connection_step(|| ConnectionStep::Tcp);
                Some(client.shake_hands(&mut self.socket)?)
            }
            _ => None,
        };
        Ok(())
    }

    /// Whether this is to become a connection of TLS that it is not yet.
    pub(super) const fn wants_tls(&self) -> bool {
        self.client.is_some() && self.tls.is_none()
    }

    /// Becomes a connection of TLS, which the server awaits now.
    pub(super) fn start_tls(&mut self) -> Result<()> {
        if self.at < self.end {
            // Whoever stands between may have put it there, to be taken for the server's later (as in CVE-2021-23222).
            let message = format!(
                "the server at {} sent more before its TLS handshake",
                self.server()
            );
            return Err(Error::measurement(message));
        }
        if let Some(client) = &self.client {
            self.tls = Some(client.shake_hands(&mut self.socket)?);
        }
        Ok(())
    }

    /// Lets this connection, and those beside it, resume their own sessions alone.
    pub(super) fn keep_own_sessions(&mut self) {
        self.client = self.client.as_ref().map(FarEndTlsClient::with_own_sessions);
    }

    /// Becomes a connection of TLS if that one is, and resumes its session (RFC 4217, 10.2).
    pub(super) fn start_tls_as(&mut self, other: &Self) -> Result<()> {
        if other.tls.is_some() {
            self.client.clone_from(&other.client);
        }
        self.start_tls()
    }

    /// Whether the first that came is an alert of TLS (RFC 8446, 5.1) although this client speaks none.
    pub(super) fn received_tls(&self) -> bool {
        let first = self.bytes[..self.bytes.len().min(self.socket.places().1 as usize)].get(..2);
        self.tls.is_none()
            && self.socket.places().1 <= LONGEST_ALERT
            && first == Some(&TLS_ALERT[..])
    }

    /// Whether the server left without a word, and without TLS.
    pub(super) fn was_left_at_once(&self) -> bool {
        self.tls.is_none() && self.socket.places().1 == 0 && !self.socket.was_silent()
    }

    /// Replaces the connection, which the server has closed after an answer.
    pub(super) fn reconnect(&mut self) -> Result<()> {
        self.socket.reconnect()?;
        (self.at, self.end) = (0, 0);
        self.begin()
    }

    /// Sends the parts, one behind the other, in one system call if the kernel takes them at once. False if the server takes nothing more:
    /// it may have said why.
    pub(super) fn send_parts<const N: usize>(&mut self, parts: [&[u8]; N]) -> Result<bool> {
        match &mut self.tls {
            None => self.socket.send_parts(parts),
            Some(tls) => tls.send(&mut self.socket, &parts),
        }
    }

    /// Sends what is behind the first `done` bytes of the parts, which it counts, until something of an answer comes.
    pub(super) fn send_until_answer<const N: usize>(
        &mut self,
        parts: [&[u8]; N],
        done: &mut usize,
    ) -> Result<RequestSending> {
        match &mut self.tls {
            None => send_until_answer(&mut self.socket, parts, done),
            Some(tls) => tls.send_until_answer(&mut self.socket, &parts, done),
        }
    }

    /// Sends all of it. False if the server takes nothing more.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<bool> {
        match &mut self.tls {
            None => self.socket.send(bytes),
            Some(tls) => tls.send(&mut self.socket, &[bytes]),
        }
    }

    /// Received bytes that are not used yet.
    pub(super) fn unused(&self) -> &[u8] {
        &self.bytes[self.at..self.end]
    }

    /// Uses up so many of them.
    pub(super) fn take(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.end);
    }

    /// Receives more bytes behind the unused ones; false when the server has ended its stream. `most` is how many unused bytes there may
    /// be; beyond, `what` of the server is too long.
    pub(super) fn receive_more(&mut self, most: usize, what: &str) -> Result<bool> {
        if self.at == self.end {
            (self.at, self.end) = (0, 0);
        } else if self.end == self.bytes.len() {
            self.bytes.copy_within(self.at..self.end, 0);
            (self.at, self.end) = (0, self.end - self.at);
        }
        if self.end - self.at >= most || self.end == self.bytes.len() {
            let message = format!("{what} from {} is longer than {most} B", self.server());
            return Err(Error::measurement(message));
        }
        let room = &mut self.bytes[self.end..];
        let got = match &mut self.tls {
            None => self.socket.receive(room)?,
            Some(tls) => tls.receive(&mut self.socket, room)?,
        };
        self.end += got;
        Ok(got > 0)
    }

    /// Receives until at least `bytes` bytes are unused, at most 128 KiB.
    pub(super) fn require(&mut self, bytes: usize, what: &str) -> Result<()> {
        while self.unused().len() < bytes {
            if !self.receive_more(bytes, what)? {
                return Err(self.cut_short(what));
            }
        }
        Ok(())
    }

    /// Receives until a line (that ends with CR LF) is complete. Returns its length without its end; its bytes are not used up.
    pub(super) fn require_line(&mut self, longest: usize, what: &str) -> Result<usize> {
        let mut seen = 0;
        loop {
            let unused = self.unused();
            if let Some(end) = unused[seen..].windows(2).position(|two| two == b"\r\n") {
                return Ok(seen + end);
            }
            seen = unused.len().saturating_sub(1);
            if !self.receive_more(longest, what)? {
                return Err(self.cut_short(what));
            }
        }
    }

    /// Receives what has come already, without waiting. False when nothing has.
    pub(super) fn receive_waiting(&mut self) -> Result<bool> {
        if !self.socket.has_waiting()? {
            return Ok(false);
        }
        self.receive_more(self.bytes.len(), "what")
    }

    /// Drops the next `bytes` bytes of `what`, receiving them as needed.
    pub(super) fn skip(&mut self, bytes: u64, what: &str) -> Result<()> {
        let mut left = bytes;
        loop {
            let here = left.min(self.unused().len() as u64);
            self.take(here as usize);
            left -= here;
            if left == 0 {
                return Ok(());
            }
            if !self.receive_more(READ_BYTES, what)? {
                return Err(self.cut_short(what));
            }
        }
    }

    /// The error when the server ends its stream within something.
    pub(super) fn cut_short(&self, what: &str) -> Error {
        let (server, left) = (self.server(), self.socket.left());
        let message = format!("the server at {server} {left} the connection within {what}");
        Error::measurement(message)
    }

    /// The error of receiving what the server sends when others make it; `hint` is for silence.
    pub(super) fn unasked(&self, error: Error, hint: impl FnOnce() -> String) -> Error {
        if self.socket.was_silent() {
            error.hint(hint())
        } else {
            error
        }
    }

    /// Whether a stream of TLS ended without saying so, so that what came may not be all (RFC 9112, 9.8).
    pub(super) fn is_truncated(&self) -> bool {
        self.socket.left() == "reset" || self.tls.as_ref().is_some_and(FarEndTls::is_truncated)
    }

    /// Closes the connection; over TLS that is said before.
    pub(super) fn close(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.close(&mut self.socket);
        }
    }

    /// Whether it is one of TLS.
    pub(super) const fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Says that nothing more is sent, and waits until the server ends its stream: it has received everything.
    pub(super) fn finish_sending(&mut self) -> Result<()> {
        self.socket.end_sending()?;
        loop {
            let here = self.unused().len();
            self.take(here);
            if !self.receive_more(READ_BYTES, "what")? {
                return Ok(());
            }
        }
    }

    pub(super) const fn server(&self) -> SocketAddr {
        self.socket.server()
    }

    pub(super) fn transport(&self) -> Option<TransportRecord> {
        self.socket.transport()
    }

    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = self.socket.settings();
        settings.extend(
            self.tls
                .as_ref()
                .map(FarEndTls::settings)
                .unwrap_or_default(),
        );
        settings
    }

    pub(super) const fn places(&self) -> (u64, u64) {
        self.socket.places()
    }

    pub(super) fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        self.socket.addresses()
    }

    pub(super) fn notes(&self) -> Vec<String> {
        self.socket.notes()
    }
}
