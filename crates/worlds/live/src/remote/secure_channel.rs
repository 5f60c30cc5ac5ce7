//! A TLS 1.3 connection between a coordinator and an agent that share a secret.
//!
//! Each side proves that it knows the secret by an HMAC over key material that TLS exports for this connection alone (RFC 8446, 7.5; RFC
//! 9266 binds other protocols to a connection in this way). A machine in the middle has two connections with different material, so it can
//! use neither proof. The agent's TLS key is generated at each start and identifies nobody. The coordinator sends its proof first, so a
//! stranger who connects to an agent gets nothing to test guesses on. A program that takes an agent's place can test guesses on a
//! coordinator's proof, so the key of the HMAC is derived slowly, and a secret has to be random.

use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use ring::{hmac, pbkdf2};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::{
    ClientConfig, ClientConnection, Connection, DigitallySignedStruct, ServerConfig,
    ServerConnection, SignatureScheme, version::TLS13,
};
use stackline_guard::deadline::Deadline;
use stackline_guard::secret::Secret;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::num::NonZeroU32;
use std::sync::Arc;

/// The label of the exported key material (RFC 8446, 7.5).
const LABEL: &[u8] = b"EXPORTER-stackline-agent";
/// Length of an HMAC-SHA256, bytes.
const PROOF: usize = 32;

/// The agent's answer to a right proof; its own proof follows.
const ACCEPTED: u8 = b'+';
/// The agent's answer to a wrong proof.
const WRONG_SECRET: u8 = b'-';
/// The agent's answer to a right proof if it already serves as many coordinators as it can.
const BUSY: u8 = b'!';

/// Iterations of PBKDF2: how many HMACs it takes to test one guess of the secret.
const ITERATIONS: NonZeroU32 = NonZeroU32::new(100_000).unwrap();

/// The HMAC key of the proofs, derived from the secret by PBKDF2.
#[derive(Clone)]
pub(super) struct ChannelKey(hmac::Key);

impl ChannelKey {
    pub(super) fn derive(secret: &Secret) -> Self {
        let mut key = [0; PROOF];
        let salt = b"stackline agent";
        pbkdf2::derive(
            pbkdf2::PBKDF2_HMAC_SHA256,
            ITERATIONS,
            salt,
            secret.bytes(),
            &mut key,
        );
        Self(hmac::Key::new(hmac::HMAC_SHA256, &key))
    }
}

/// A TLS connection; once returned by [`connect`] or [`ProvenCoordinator::welcome`], both ends have proved that they know the secret.
pub(super) struct SecureChannel {
    pub(super) tls: Connection,
    pub(super) socket: TcpStream,
}

/// Why a coordinator got no secure channel.
#[derive(Debug)]
pub(super) enum NoChannel {
    /// The agent has another secret.
    WrongSecret,
    /// The agent already serves as many coordinators as it can.
    Busy,
    /// The agent answered something else or nothing, for this reason of the kernel or of TLS.
    Failed(io::Error),
}

impl From<io::Error> for NoChannel {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

/// The TLS configuration of an agent that listens, with a new Ed25519 key as a raw public key (no certificate).
pub(super) fn server_keys() -> io::Result<Arc<ServerConfig>> {
    let failed = |_| io::Error::other("cannot get random bytes from this host");
    let generated = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(failed)?;
    let key = PrivatePkcs8KeyDer::from(generated.as_ref().to_vec());
    let key = rustls::crypto::ring::sign::any_eddsa_type(&key).map_err(io::Error::other)?;
    let public = key
        .public_key()
        .ok_or_else(|| io::Error::other("the key has no public part"))?;
    let certified = CertifiedKey::new(vec![CertificateDer::from(public.to_vec())], key);
    let resolver = AlwaysResolvesServerRawPublicKeys::new(Arc::new(certified));
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver));
    // No session tickets: a connection is never resumed, because the proofs belong to one connection.
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// The coordinator's side: TLS handshake, own proof, the agent's answer and proof, all before the deadline.
pub(super) fn connect(
    socket: TcpStream,
    key: &ChannelKey,
    deadline: Deadline,
) -> Result<SecureChannel, NoChannel> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyPublicKey(
            provider().signature_verification_algorithms,
        )))
        .with_no_client_auth();
    let name = ServerName::try_from("agent").map_err(io::Error::other)?;
    let tls = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    let mut channel = SecureChannel {
        tls: tls.into(),
        socket,
    };
    channel.shake_hands(deadline)?;
    let proof = channel.proof_of("coordinator", key)?;
    channel.send(proof.as_ref(), deadline)?;
    match channel.receive::<1>(deadline)? {
        [ACCEPTED] => {}
        [WRONG_SECRET] => return Err(NoChannel::WrongSecret),
        [BUSY] => return Err(NoChannel::Busy),
        _ => return Err(io::Error::from(ErrorKind::InvalidData).into()),
    }
    let shown = channel.receive::<PROOF>(deadline)?;
    if channel.is_proof("agent", key, &shown)? {
        Ok(channel)
    } else {
        Err(NoChannel::WrongSecret)
    }
}

/// A connection whose coordinator has proved that it knows the secret and waits for the agent's answer.
pub(super) struct ProvenCoordinator(SecureChannel);

/// The agent's side, up to the coordinator's proof. If the proof is wrong, the inner result is `Err` with the channel, which the caller
/// answers by [`refuse`].
pub(super) fn accept(
    socket: TcpStream,
    keys: &Arc<ServerConfig>,
    key: &ChannelKey,
    deadline: Deadline,
) -> io::Result<Result<ProvenCoordinator, SecureChannel>> {
    let tls = ServerConnection::new(Arc::clone(keys)).map_err(io::Error::other)?;
    let mut channel = SecureChannel {
        tls: tls.into(),
        socket,
    };
    channel.shake_hands(deadline)?;
    let shown = channel.receive::<PROOF>(deadline)?;
    if channel.is_proof("coordinator", key, &shown)? {
        Ok(Ok(ProvenCoordinator(channel)))
    } else {
        Ok(Err(channel))
    }
}

/// Answers that the coordinator's secret is wrong.
pub(super) fn refuse(mut channel: SecureChannel, deadline: Deadline) -> io::Result<()> {
    channel.send(&[WRONG_SECRET], deadline)
}

impl ProvenCoordinator {
    /// Accepts the coordinator and sends the agent's own proof.
    pub(super) fn welcome(self, key: &ChannelKey, deadline: Deadline) -> io::Result<SecureChannel> {
        let Self(mut channel) = self;
        let proof = channel.proof_of("agent", key)?;
        channel.send(&[&[ACCEPTED], proof.as_ref()].concat(), deadline)?;
        Ok(channel)
    }

    /// Answers that the agent is busy.
    pub(super) fn turn_away(self, deadline: Deadline) -> io::Result<()> {
        let Self(mut channel) = self;
        channel.send(&[BUSY], deadline)
    }
}

impl SecureChannel {
    fn shake_hands(&mut self, deadline: Deadline) -> io::Result<()> {
        let mut socket = SocketWithin(&self.socket, deadline);
        while self.tls.is_handshaking() {
            self.tls.complete_io(&mut socket)?;
        }
        Ok(())
    }

    fn send(&mut self, bytes: &[u8], deadline: Deadline) -> io::Result<()> {
        let mut socket = SocketWithin(&self.socket, deadline);
        self.tls.writer().write_all(bytes)?;
        while self.tls.wants_write() {
            self.tls.write_tls(&mut socket)?;
        }
        Ok(())
    }

    /// The next `N` bytes.
    fn receive<const N: usize>(&mut self, deadline: Deadline) -> io::Result<[u8; N]> {
        let mut socket = SocketWithin(&self.socket, deadline);
        let (mut bytes, mut got) = ([0; N], 0);
        while got < N {
            match self.tls.reader().read(&mut bytes[got..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(more) => got += more,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.tls.complete_io(&mut socket)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(bytes)
    }

    /// The key material that TLS exports on this connection for one of its sides, `coordinator` or `agent`.
    fn exported(&self, side: &str) -> io::Result<[u8; PROOF]> {
        self.tls
            .export_keying_material([0; PROOF], LABEL, Some(side.as_bytes()))
            .map_err(io::Error::other)
    }

    fn proof_of(&self, side: &str, key: &ChannelKey) -> io::Result<hmac::Tag> {
        Ok(hmac::sign(&key.0, &self.exported(side)?))
    }

    /// Whether `shown` is the proof of `side`; compared in constant time.
    fn is_proof(&self, side: &str, key: &ChannelKey, shown: &[u8]) -> io::Result<bool> {
        Ok(hmac::verify(&key.0, &self.exported(side)?, shown).is_ok())
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A socket whose reads and writes fail once a deadline has passed.
struct SocketWithin<'s>(&'s TcpStream, Deadline);

impl Read for SocketWithin<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.set_read_timeout(Some(self.1.timeout()?))?;
        self.0.read(buffer)
    }
}

impl Write for SocketWithin<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0.set_write_timeout(Some(self.1.timeout()?))?;
        self.0.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Accepts any public key whose private key the other side has: the proofs, not the key, show who the other side is.
#[derive(Debug)]
struct AnyPublicKey(WebPkiSupportedAlgorithms);

impl ServerCertVerifier for AnyPublicKey {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        public_key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let key = SubjectPublicKeyInfoDer::from(public_key.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;
    use std::time::Duration;

    fn key(text: &str) -> ChannelKey {
        ChannelKey::derive(&Secret::new(text.into()).unwrap())
    }

    fn soon() -> Deadline {
        Deadline::within(Duration::from_secs(5))
    }

    /// A coordinator and an agent with a secret each: what either has at the end.
    fn meet(
        of_coordinator: &'static str,
        of_agent: &'static str,
    ) -> (Result<SecureChannel, NoChannel>, Option<SecureChannel>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let agent = thread::spawn(move || {
            let (socket, _) = listener.accept().unwrap();
            let key = key(of_agent);
            match accept(socket, &server_keys().unwrap(), &key, soon()).unwrap() {
                Ok(coordinator) => Some(coordinator.welcome(&key, soon()).unwrap()),
                Err(channel) => {
                    refuse(channel, soon()).unwrap();
                    None
                }
            }
        });
        let socket = TcpStream::connect(address).unwrap();
        let connected = connect(socket, &key(of_coordinator), soon());
        (connected, agent.join().unwrap())
    }

    #[test]
    fn both_sides_know_the_secret() {
        let (coordinator, agent) = meet("a shared secret", "a shared secret");
        let (mut coordinator, mut agent) = (coordinator.ok().unwrap(), agent.unwrap());
        coordinator.send(b"there", soon()).unwrap();
        agent.send(b"here!", soon()).unwrap();
        assert_eq!(&agent.receive::<5>(soon()).unwrap(), b"there");
        assert_eq!(&coordinator.receive::<5>(soon()).unwrap(), b"here!");
    }

    #[test]
    fn another_secret_is_refused() {
        let (coordinator, agent) = meet("a shared secret", "another secret");
        assert!(matches!(coordinator, Err(NoChannel::WrongSecret)));
        assert!(agent.is_none());
    }

    #[test]
    fn an_agent_that_does_not_know_the_secret_is_found_out() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // It lets everybody in, and shows a proof of its own secret.
        let impostor = thread::spawn(move || {
            let (socket, _) = listener.accept().unwrap();
            let keys = server_keys().unwrap();
            let other = key("another secret");
            let Err(channel) = accept(socket, &keys, &other, soon()).unwrap() else {
                panic!("its secret differs")
            };
            drop(ProvenCoordinator(channel).welcome(&other, soon()));
        });
        let socket = TcpStream::connect(address).unwrap();
        let connected = connect(socket, &key("a shared secret"), soon());
        assert!(matches!(connected, Err(NoChannel::WrongSecret)));
        impostor.join().unwrap();
    }

    #[test]
    fn each_connection_has_a_proof_of_its_own() {
        let of = || {
            let (coordinator, _agent) = meet("a shared secret", "a shared secret");
            let channel = coordinator.ok().unwrap();
            let proof = |side| channel.proof_of(side, &key("a shared secret")).unwrap();
            [proof("coordinator"), proof("agent")].map(|tag| tag.as_ref().to_vec())
        };
        let ([one, other], [again, _]) = (of(), of());
        assert!(one != other && one != again);
    }

    #[test]
    fn one_that_sends_a_byte_now_and_then_is_not_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut slow = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        let feeding = thread::spawn(move || {
            // A ClientHello of 508 bytes that never gets anywhere.
            let begins = [22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3];
            for byte in begins.into_iter().chain(std::iter::repeat(0)) {
                if slow.write_all(&[byte]).is_err() {
                    return;
                }
                thread::sleep(Duration::from_millis(20));
            }
        });
        let keys = server_keys().unwrap();
        let deadline = Deadline::within(Duration::from_millis(300));
        let refused = accept(socket, &keys, &key("a shared secret"), deadline)
            .err()
            .unwrap();
        assert!(
            matches!(refused.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock),
            "{refused}"
        );
        feeding.join().unwrap();
    }
}
