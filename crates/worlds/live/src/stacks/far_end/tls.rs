//! TLS 1.2 and 1.3 to a far end, by rustls: the handshake as part of connecting, and the certificate checked against those that this host
//! trusts.

use super::request_sending::RequestSending;
use super::socket::FarEndSocket;
use super::tls_refusal::refused;
use crate::error::{Error, Result};
use crate::stacks::certificate::{
    AcceptedCertificate, handshake_round_trips, session_handshake, session_settings,
    session_version,
};
use crate::stacks::handshake_counts::{HandshakeCounts, handshake_outcome};
use crate::stacks::layered::wire::{LayeredSocket, TlsSession};
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use stackline_core::plan::Stack;
use stackline_events::scope::{self, ConnectionStep};
use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Sessions that one connection, and those beside it, keep to resume.
const OWN_SESSIONS: usize = 8;

/// Whose certificates are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TlsTrust {
    /// Those that an authority vouches for which this host trusts, if they have the server's name.
    Authorities,
    /// Anyone's.
    Anyone,
}

impl TlsTrust {
    /// What the option `insecure` says.
    pub(super) fn in_options(stack: &Stack) -> Self {
        if stack.flag("insecure") {
            Self::Anyone
        } else {
            Self::Authorities
        }
    }
}

/// How a protocol uses TLS.
#[derive(Clone, Copy)]
pub(super) struct TlsForm {
    /// The name of the protocol within TLS (ALPN, RFC 7301), if it is asked for.
    pub(super) protocol: Option<&'static str>,
    /// Whether the handshake comes before anything else.
    pub(super) is_first: bool,
    /// Whether the option `tls` asks for it.
    pub(super) is_option: bool,
    /// The name of the stack, for hints.
    pub(super) name: &'static str,
    /// How addresses of the same protocol without TLS begin, if that is another scheme.
    pub(super) plain: Option<&'static str>,
}

/// What the connections of one pair have in common: sessions are resumed among them, as browsers do.
#[derive(Clone)]
pub(super) struct FarEndTlsClient {
    config: Arc<ClientConfig>,
    host: ServerName<'static>,
    form: TlsForm,
    /// How its connections shook hands.
    counts: Arc<HandshakeCounts>,
}

impl FarEndTlsClient {
    /// A client of the server with that name.
    pub(super) fn new(host: &str, trust: TlsTrust, form: TlsForm) -> Result<Self> {
        let name = ServerName::try_from(host.to_string()).map_err(|_| {
            Error::input(format!(
                "`{host}` is not a name that a certificate can have"
            ))
        })?;
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|e| Error::environment(format!("TLS is not available: {e}")))?;
        let mut config = if trust == TlsTrust::Anyone {
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AcceptedCertificate::any(provider)))
                .with_no_client_auth()
        } else {
            builder
                .with_root_certificates(trusted()?)
                .with_no_client_auth()
        };
        let protocols = form.protocol.into_iter();
        config.alpn_protocols = protocols.map(|name| name.as_bytes().to_vec()).collect();
        Ok(Self {
            config: Arc::new(config),
            host: name,
            form,
            counts: Arc::default(),
        })
    }

    /// A client that resumes its own sessions alone, not those of other connections.
    pub(super) fn with_own_sessions(&self) -> Self {
        let mut config = self.config();
        config.resumption = Resumption::in_memory_sessions(OWN_SESSIONS);
        Self {
            config: Arc::new(config),
            ..self.clone()
        }
    }

    /// A client that offers these protocols (ALPN), the preferred one first.
    pub(super) fn offering(&self, protocols: &[&str]) -> Self {
        let mut config = self.config();
        let names = protocols.iter().map(|name| name.as_bytes().to_vec());
        config.alpn_protocols = names.collect();
        Self {
            config: Arc::new(config),
            ..self.clone()
        }
    }

    /// Whether the handshake comes before anything else.
    pub(super) const fn is_first(&self) -> bool {
        self.form.is_first
    }

    /// How often the handshakes of a client came about how, by name; nothing without TLS.
    pub(super) fn counts(client: Option<&Self>) -> BTreeMap<String, u64> {
        client
            .map(|client| client.counts.by_name())
            .unwrap_or_default()
    }

    /// The settings, for QUIC.
    pub(super) fn config(&self) -> ClientConfig {
        (*self.config).clone()
    }

    /// Shakes hands over the socket of a library that speaks HTTP/2.
    pub(super) fn open_session(
        &self,
        socket: LayeredSocket,
        server: SocketAddr,
    ) -> Result<TlsSession> {
        let session = self.shake_hands_over(socket, server)?;
        if session.protocol() == Some(b"h2") {
            return Ok(session);
        }
        Err(
            Error::measurement(format!("the web server at {server} does not speak HTTP/2"))
                .hint("`version = http1` is what every web server speaks"),
        )
    }

    /// Shakes hands over the socket of a library.
    pub(super) fn shake_hands_over(
        &self,
        socket: LayeredSocket,
        server: SocketAddr,
    ) -> Result<TlsSession> {
        let connection = ClientConnection::new(Arc::clone(&self.config), self.host.clone());
        let connection = connection.map_err(|e| Error::measurement(format!("TLS failed: {e}")))?;
        let shared = Arc::clone(socket.shared());
        let session = TlsSession::open(connection.into(), socket, &self.counts);
        session.map_err(|error| {
            let cause = error
                .get_ref()
                .and_then(|e| e.downcast_ref::<rustls::Error>());
            match cause {
                Some(cause) => refused(server, self.form, cause),
                None if error.kind() == io::ErrorKind::WouldBlock => Error::measurement(format!(
                    "the server at {server} does not answer within the TLS handshake"
                )),
                None => shared.failure("the TLS handshake", &error),
            }
        })
    }

    /// Shakes hands over a new connection.
    pub(super) fn shake_hands(&self, socket: &mut FarEndSocket) -> Result<FarEndTls> {
        let connection = ClientConnection::new(Arc::clone(&self.config), self.host.clone());
        let mut tls = FarEndTls {
            connection: connection.map_err(|e| Error::measurement(format!("TLS failed: {e}")))?,
            form: self.form,
            truncated: false,
        };
        while tls.connection.is_handshaking() {
            tls.flush(socket)?;
            if tls.connection.is_handshaking() && !tls.read_handshake(socket)? {
                let message = format!(
                    "the server at {} {} the connection within the TLS handshake",
                    socket.server(),
                    socket.left()
                );
                return Err(self.form.suspect_plain(Error::measurement(message)));
            }
        }
        tls.flush(socket)?;
        self.counts.add(handshake_outcome(&tls.connection));
        scope::connection_step(|| ConnectionStep::Tls {
            version: session_version(&tls.connection),
            handshake: session_handshake(&tls.connection),
        });
        Ok(tls)
    }
}

impl TlsForm {
    /// An error with the hint that the server may speak the protocol without TLS.
    pub(super) fn suspect_plain(self, error: Error) -> Error {
        match self.plain {
            Some(plain) => error.hint(format!(
                "is this its port for TLS? `{plain}://` is without TLS"
            )),
            None => error,
        }
    }
}

/// The settings of a client that believes the servers whose certificates this host trusts.
pub(crate) fn trusting_client() -> Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::environment(format!("TLS is not available: {e}")))?;
    Ok(builder
        .with_root_certificates(trusted()?)
        .with_no_client_auth())
}

/// The certificates that this host trusts, read once.
fn trusted() -> Result<Arc<RootCertStore>> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let named = env::var_os("SSL_CERT_FILE").filter(|name| !name.is_empty());
    if let Some(file) = &named {
        // Where it cannot be read, the library has certificates of other places, or none.
        File::open(file).map_err(|e| {
            let file = file.to_string_lossy();
            let message = format!("SSL_CERT_FILE names {file}, which cannot be read: {e}");
            Error::environment(message).hint("name a file of certificates in PEM, or unset it")
        })?;
    }
    let roots = ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    });
    if let (Some(file), true) = (&named, roots.is_empty()) {
        let file = file.to_string_lossy();
        let message = format!("SSL_CERT_FILE names {file}, which has no certificate in PEM");
        return Err(Error::environment(message).hint(
            "name a file of certificates in PEM (`-----BEGIN CERTIFICATE-----`), or unset it",
        ));
    }
    if roots.is_empty() {
        return Err(Error::environment("this host has no certificates that it trusts").hint(
            "install ca-certificates, name a file with SSL_CERT_FILE, or believe any certificate with the option `insecure`",
        ));
    }
    Ok(Arc::clone(roots))
}

/// An open TLS session.
pub(super) struct FarEndTls {
    connection: ClientConnection,
    form: TlsForm,
    truncated: bool,
}

impl FarEndTls {
    /// Sends all parts. False if the server takes nothing more.
    pub(super) fn send(&mut self, socket: &mut FarEndSocket, parts: &[&[u8]]) -> Result<bool> {
        for part in parts {
            let mut rest = *part;
            while !rest.is_empty() {
                let taken = self.connection.writer().write(rest);
                rest =
                    &rest[taken.map_err(|e| Error::measurement(format!("TLS failed: {e}")))?..];
                // Its buffer is bounded.
                if !rest.is_empty() && !self.flush(socket)? {
                    return Ok(false);
                }
            }
        }
        self.flush(socket)
    }

    /// Sends what is behind the first `done` bytes of the parts, which it counts, until something of an answer comes.
    pub(super) fn send_until_answer(
        &mut self,
        socket: &mut FarEndSocket,
        parts: &[&[u8]],
        done: &mut usize,
    ) -> Result<RequestSending> {
        let mut before = 0;
        for part in parts {
            while *done < before + part.len() {
                let taken = self.connection.writer().write(&part[*done - before..]);
                *done += taken.map_err(|e| Error::measurement(format!("TLS failed: {e}")))?;
                // Its buffer is bounded.
                if *done < before + part.len() {
                    let sending = self.flush_until_answer(socket)?;
                    if sending != RequestSending::Whole {
                        return Ok(sending);
                    }
                }
            }
            before += part.len();
        }
        self.flush_until_answer(socket)
    }

    /// Receives into `room`; 0 when the server has ended its stream.
    pub(super) fn receive(&mut self, socket: &mut FarEndSocket, room: &mut [u8]) -> Result<usize> {
        loop {
            match self.connection.reader().read(room) {
                Ok(got) => return Ok(got),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The end of the connection without a closing alert.
                Err(_) => {
                    self.truncated = true;
                    return Ok(0);
                }
            }
            if !self.read(socket)? {
                // What is decrypted was read; the library knows whether the end was announced.
                self.truncated = self.connection.reader().read(room).is_err();
                return Ok(0);
            }
            self.flush(socket)?;
        }
    }

    /// The same within the handshake, where silence may come from a server that waits for more of another protocol.
    fn read_handshake(&mut self, socket: &mut FarEndSocket) -> Result<bool> {
        let got = self.read(socket);
        got.map_err(|error| match socket.was_silent() {
            true => self.form.suspect_plain(error),
            false => error,
        })
    }

    /// Receives and handles more of what the server says; false when it has closed the connection.
    fn read(&mut self, socket: &mut FarEndSocket) -> Result<bool> {
        let server = socket.server();
        let mut through = TlsSocket {
            socket,
            failed: None,
        };
        let got = self.connection.read_tls(&mut through);
        let got = got.map_err(|e| {
            through
                .failed
                .unwrap_or_else(|| Error::measurement(format!("TLS failed: {e}")))
        })?;
        if let Err(error) = self.connection.process_new_packets() {
            // The alert that says why we leave.
            let _ = self.flush(socket);
            return Err(refused(server, self.form, &error));
        }
        Ok(got > 0)
    }

    /// Sends what waits to be sent. False if the server takes nothing more.
    fn flush(&mut self, socket: &mut FarEndSocket) -> Result<bool> {
        while self.connection.wants_write() {
            let mut through = TlsSocket {
                socket,
                failed: None,
            };
            let sent = self.connection.write_tls(&mut through);
            match (sent, through.failed) {
                (Ok(_), _) => {}
                (Err(_), Some(error)) => return Err(error),
                (Err(error), None) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Ok(false);
                }
                (Err(error), None) => {
                    return Err(Error::measurement(format!("TLS failed: {error}")));
                }
            }
        }
        Ok(true)
    }

    /// Sends what waits to be sent, until something of an answer comes.
    fn flush_until_answer(&mut self, socket: &mut FarEndSocket) -> Result<RequestSending> {
        let mut waited = Duration::ZERO;
        while self.connection.wants_write() {
            let mut through = TlsSocketAtOnce {
                socket,
                failed: None,
            };
            let sent = self.connection.write_tls(&mut through);
            match (sent, through.failed) {
                (Ok(_), _) => waited = Duration::ZERO,
                (Err(_), Some(error)) => return Err(error),
                (Err(error), None) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Ok(RequestSending::Cut);
                }
                (Err(error), None) if error.kind() == io::ErrorKind::WouldBlock => {
                    if socket.awaits_room_or_input(&mut waited)? && self.has_answer(socket)? {
                        return Ok(RequestSending::Answered);
                    }
                }
                (Err(error), None) => {
                    return Err(Error::measurement(format!("TLS failed: {error}")));
                }
            }
        }
        Ok(RequestSending::Whole)
    }

    /// Handles what has come, and says whether it has bytes for the client or is the end; tickets of TLS 1.3 are neither.
    fn has_answer(&mut self, socket: &mut FarEndSocket) -> Result<bool> {
        if !self.read(socket)? {
            return Ok(true);
        }
        let state = self.connection.process_new_packets();
        let state = state.map_err(|e| refused(socket.server(), self.form, &e))?;
        Ok(state.plaintext_bytes_to_read() > 0 || state.peer_has_closed())
    }

    /// Whether the connection ended without the alert that says so.
    pub(super) const fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// Says that nothing more comes. Whether the server hears it does not matter any more.
    pub(super) fn close(&mut self, socket: &mut FarEndSocket) {
        self.connection.send_close_notify();
        let _ = self.flush(socket);
    }

    /// The round trips that the handshake took.
    pub(super) fn round_trips(&self) -> u32 {
        handshake_round_trips(&self.connection)
    }

    /// The version and the cipher.
    pub(super) fn settings(&self) -> BTreeMap<String, String> {
        session_settings(&self.connection)
    }
}

/// A socket as rustls reads and writes it; an error of ours is kept beside the one that it sees.
struct TlsSocket<'s> {
    socket: &'s mut FarEndSocket,
    failed: Option<Error>,
}

impl TlsSocket<'_> {
    fn keep<T>(&mut self, result: Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            self.failed = Some(error);
            io::Error::other("the socket failed")
        })
    }
}

impl Read for TlsSocket<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let got = self.socket.receive(room);
        self.keep(got)
    }
}

impl Write for TlsSocket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.socket.send(bytes);
        match self.keep(sent)? {
            true => Ok(bytes.len()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The same socket for writing what the kernel takes at once.
struct TlsSocketAtOnce<'s> {
    socket: &'s mut FarEndSocket,
    failed: Option<Error>,
}

impl Write for TlsSocketAtOnce<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.socket.try_send(bytes) {
            Ok(Some(0)) => Err(io::ErrorKind::BrokenPipe.into()),
            Ok(Some(sent)) => Ok(sent),
            Ok(None) => Err(io::ErrorKind::WouldBlock.into()),
            Err(error) => {
                self.failed = Some(error);
                Err(io::Error::other("the socket failed"))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::certificate::RunCertificate;
    use crate::stacks::contract::LiveConnectParameters;
    use rustls::version::TLS13;
    use rustls::{ServerConnection, Stream};
    use socket2::Socket;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::thread;

    const FORM: TlsForm = TlsForm {
        protocol: None,
        is_first: true,
        is_option: false,
        name: "https",
        plain: None,
    };

    /// A client's socket, and the server's end of its connection.
    fn connected() -> (FarEndSocket, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let parameters = LiveConnectParameters {
            stack: Stack::plain("https"),
            token: [0; 16],
            carries_data: true,
            replica: 0,
            bind: Ipv4Addr::LOCALHOST.into(),
            member: None,
            foreign: Arc::default(),
        };
        let socket = FarEndSocket::over(Socket::from(socket), parameters);
        (socket, listener.accept().unwrap().0)
    }

    #[test]
    fn an_end_that_the_server_does_not_announce_is_a_truncated_one() {
        for announces in [true, false] {
            let (mut socket, mut peer) = connected();
            let config = RunCertificate::new().unwrap().server(&[&TLS13]).unwrap();
            let server = thread::spawn(move || {
                let mut tls = ServerConnection::new(Arc::new(config)).unwrap();
                Stream::new(&mut tls, &mut peer).write_all(b"half").unwrap();
                if announces {
                    tls.send_close_notify();
                    tls.write_tls(&mut peer).unwrap();
                }
            });
            let client = FarEndTlsClient::new("localhost", TlsTrust::Anyone, FORM).unwrap();
            let mut tls = client.shake_hands(&mut socket).unwrap();
            let (mut come, mut room) = (Vec::new(), [0; 64]);
            loop {
                let got = tls.receive(&mut socket, &mut room).unwrap();
                if got == 0 {
                    break;
                }
                come.extend_from_slice(&room[..got]);
            }
            server.join().unwrap();
            assert_eq!(come, b"half");
            assert_eq!(tls.is_truncated(), !announces);
        }
    }
}
