//! Cryptography that costs nothing and protects nothing: handshakes with as many messages of about the same sizes as
//! TLS 1.3 has with this certificate, packets with room for a tag, everything in the clear.
//!
//! For large simulations: what QUIC does depends on the sizes of packets, not on what is in them. The network model loses
//! packets and never changes them, so there is nothing to detect.

use bytes::BytesMut;
use quinn_proto::crypto::{
    AeadKey, ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey,
    HmacKey, KeyPair, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};
use std::any::Any;
use std::sync::Arc;

/// Bytes of an AEAD's tag and of a sample of the header's protection, as AES-GCM has them.
const TAG: usize = 16;

/// A message of the handshake: its kind, and the bytes that it has with rustls, without transport parameters.
#[derive(Clone, Copy)]
struct NullMessage {
    kind: u8,
    bytes: usize,
}

const CLIENT_HELLO: NullMessage = NullMessage {
    kind: 1,
    bytes: 175,
};
const SERVER_HELLO: NullMessage = NullMessage { kind: 2, bytes: 90 };
/// EncryptedExtensions, Certificate, CertificateVerify, Finished.
const SERVER_FLIGHT: NullMessage = NullMessage {
    kind: 3,
    bytes: 390,
};
const FINISHED: NullMessage = NullMessage { kind: 4, bytes: 52 };

/// Bytes before the transport parameters: kind (1), length of the whole message (2), length of the parameters (2).
const HEAD: usize = 5;

/// Stands for every key and every configuration: it does nothing, and adds a tag of zeros.
#[derive(Clone, Copy, Debug)]
pub(super) struct Null;

fn keys() -> Keys {
    let header = || Box::new(Null) as Box<dyn HeaderKey>;
    Keys {
        header: KeyPair {
            local: header(),
            remote: header(),
        },
        packet: packet_keys(),
    }
}

fn packet_keys() -> KeyPair<Box<dyn PacketKey>> {
    KeyPair {
        local: Box::new(Null),
        remote: Box::new(Null),
    }
}

impl PacketKey for Null {
    fn encrypt(&self, _: u64, _: &mut [u8], _: usize) {}

    fn decrypt(&self, _: u64, _: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        payload.truncate(payload.len().checked_sub(TAG).ok_or(CryptoError)?);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for Null {
    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        TAG
    }
}

/// Signs stateless reset tokens, with real handshakes as well. What it signs is a connection id, which depends on the seed only.
impl HmacKey for Null {
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for byte in data {
            state = (state ^ u64::from(*byte))
                .wrapping_mul(0xff51_afd7_ed55_8ccd)
                .rotate_left(29);
        }
        for chunk in signature.chunks_mut(8) {
            state = (state ^ (state >> 32)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
            chunk.copy_from_slice(&state.to_le_bytes()[..chunk.len()]);
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut right = vec![0; signature.len()];
        self.sign(data, &mut right);
        if right == signature {
            Ok(())
        } else {
            Err(CryptoError)
        }
    }
}

/// For the tokens that validate an address; the simulated responder never asks for one.
impl HandshakeTokenKey for Null {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Self)
    }
}

impl AeadKey for Null {
    fn seal(&self, data: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        data.resize(data.len() + TAG, 0);
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        let length = data.len().checked_sub(TAG).ok_or(CryptoError)?;
        Ok(&mut data[..length])
    }
}

impl ClientConfig for Null {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(NullQuicHandshake::new(Side::Client, params)))
    }
}

impl ServerConfig for Null {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; TAG]
    }

    fn start_session(self: Arc<Self>, _: u32, params: &TransportParameters) -> Box<dyn Session> {
        Box::new(NullQuicHandshake::new(Side::Server, params))
    }
}

/// What a side of the handshake does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NullHandshakeStep {
    /// The client sends its hello.
    Hello,
    /// The client waits for the server's hello, the server for the client's.
    AwaitHello,
    /// The server sends its hello; the client takes the keys that follow from it.
    Answer,
    /// The server sends the rest of its flight.
    Flight,
    /// The client waits for the server's flight.
    AwaitFlight,
    /// The client sends the last message.
    Finish,
    /// The server waits for the client's last message.
    AwaitFinished,
    Done,
}

/// A handshake without cryptography.
struct NullQuicHandshake {
    side: Side,
    step: NullHandshakeStep,
    /// The own transport parameters, encoded.
    own: Vec<u8>,
    /// The peer's transport parameters.
    peer: Option<TransportParameters>,
    /// Bytes received that do not yet make up a whole message.
    came: Vec<u8>,
}

impl NullQuicHandshake {
    fn new(side: Side, params: &TransportParameters) -> Self {
        let mut own = Vec::new();
        params.write(&mut own);
        let step = if side.is_client() {
            NullHandshakeStep::Hello
        } else {
            NullHandshakeStep::AwaitHello
        };
        Self {
            side,
            step,
            own,
            peer: None,
            came: Vec::new(),
        }
    }

    fn put(&self, message: NullMessage, with_params: bool, into: &mut Vec<u8>) {
        let NullMessage { kind, bytes } = message;
        let own: &[u8] = if with_params { &self.own } else { &[] };
        let end = into.len() + bytes.max(HEAD) + own.len();
        into.push(kind);
        into.extend_from_slice(&((bytes.max(HEAD) + own.len()) as u16).to_be_bytes());
        into.extend_from_slice(&(own.len() as u16).to_be_bytes());
        into.extend_from_slice(own);
        into.resize(end, 0);
    }

    /// Takes the next whole message: its kind and its transport parameters.
    fn take(&mut self) -> Option<(u8, Vec<u8>)> {
        let &[kind, a, b, c, d, ..] = self.came.as_slice() else {
            return None;
        };
        let (whole, own) = (
            usize::from(u16::from_be_bytes([a, b])),
            usize::from(u16::from_be_bytes([c, d])),
        );
        if self.came.len() < whole || whole < HEAD + own {
            return None;
        }
        let message: Vec<u8> = self.came.drain(..whole).collect();
        Some((kind, message[HEAD..HEAD + own].to_vec()))
    }

    fn learn(&mut self, params: &[u8]) -> Result<(), TransportError> {
        let unreadable = |_| violation("unreadable transport parameters");
        self.peer = Some(TransportParameters::read(self.side, &mut &*params).map_err(unreadable)?);
        Ok(())
    }
}

fn violation(reason: &str) -> TransportError {
    TransportError {
        code: TransportErrorCode::PROTOCOL_VIOLATION,
        frame: None,
        reason: reason.to_string(),
    }
}

impl Session for NullQuicHandshake {
    fn initial_keys(&self, _: &ConnectionId, _: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.side.is_client().then_some(false)
    }

    fn is_handshaking(&self) -> bool {
        self.step != NullHandshakeStep::Done
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.came.extend_from_slice(buf);
        while let Some((kind, params)) = self.take() {
            self.step = match (self.step, kind) {
                (NullHandshakeStep::AwaitHello, kind)
                    if kind == CLIENT_HELLO.kind && self.side.is_server() =>
                {
                    self.learn(&params)?;
                    NullHandshakeStep::Answer
                }
                (NullHandshakeStep::AwaitHello, kind)
                    if kind == SERVER_HELLO.kind && self.side.is_client() =>
                {
                    NullHandshakeStep::Answer
                }
                (NullHandshakeStep::AwaitFlight, kind) if kind == SERVER_FLIGHT.kind => {
                    self.learn(&params)?;
                    NullHandshakeStep::Finish
                }
                (NullHandshakeStep::AwaitFinished, kind) if kind == FINISHED.kind => {
                    NullHandshakeStep::Done
                }
                _ => return Err(violation("unexpected handshake message")),
            };
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let (message, next) = match (self.step, self.side.is_client()) {
            (NullHandshakeStep::Hello, _) => {
                self.put(CLIENT_HELLO, true, buf);
                self.step = NullHandshakeStep::AwaitHello;
                return None;
            }
            (NullHandshakeStep::Answer, true) => (None, NullHandshakeStep::AwaitFlight),
            (NullHandshakeStep::Answer, false) => {
                (Some((SERVER_HELLO, false)), NullHandshakeStep::Flight)
            }
            (NullHandshakeStep::Flight, _) => (
                Some((SERVER_FLIGHT, true)),
                NullHandshakeStep::AwaitFinished,
            ),
            (NullHandshakeStep::Finish, _) => (Some((FINISHED, false)), NullHandshakeStep::Done),
            _ => return None,
        };
        if let Some((message, with_params)) = message {
            self.put(message, with_params, buf);
        }
        self.step = next;
        Some(keys())
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(packet_keys())
    }

    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}
