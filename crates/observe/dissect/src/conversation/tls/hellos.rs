//! Reads the two hellos of a handshake, which are not encrypted: what a client offers and what the server chooses.

use crate::conversation::records::RecordFieldReader;

/// A ServerHello whose random number begins with these bytes is a HelloRetryRequest (RFC 8446, 4.1.3).
pub(crate) const RETRY: [u8; 8] = [0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11];

/// What a ClientHello offers.
#[derive(Clone, Debug, Default)]
pub(crate) struct TlsClientOffer {
    /// The server's name; empty if there is none.
    pub(crate) name: String,
    /// The session id.
    pub(crate) session: Vec<u8>,
    /// Whether it offers a session ticket or a pre-shared key.
    pub(crate) ticket: bool,
    /// Whether it sends early data.
    pub(crate) early: bool,
    /// The protocols it would speak within TLS (ALPN, RFC 7301).
    pub(crate) protocols: Vec<Vec<u8>>,
}

impl TlsClientOffer {
    /// Reads a ClientHello, or as much of it as is there.
    pub(crate) fn read(hello: &[u8]) -> Option<Self> {
        let mut fields = RecordFieldReader(hello);
        fields.take(4 + 2 + 32)?;
        let mut offer = Self {
            session: fields.vector(1)?.to_vec(),
            ..Self::default()
        };
        let mut extensions = || {
            fields.vector(2)?;
            fields.vector(1)?;
            fields.vector(2)
        };
        let mut extensions = RecordFieldReader(extensions().unwrap_or_default());
        while let (Some(kind), Some(value)) = (extensions.number(2), extensions.vector(2)) {
            match kind {
                0 => offer.name = server_name(value).unwrap_or_default(),
                35 => offer.ticket |= !value.is_empty(),
                41 => offer.ticket = true,
                42 => offer.early = true,
                16 => offer.protocols = protocol_names(value),
                _ => {}
            }
        }
        Some(offer)
    }
}

/// The name in the extension `server_name` (RFC 6066, 3).
fn server_name(value: &[u8]) -> Option<String> {
    let mut names = RecordFieldReader(RecordFieldReader(value).vector(2)?);
    (names.number(1)? == 0)
        .then(|| names.vector(2).map(stackline_redact::printable))
        .flatten()
}

/// The names in the ALPN extension (RFC 7301, 3.1), which a client offers or a server chooses.
pub(crate) fn protocol_names(value: &[u8]) -> Vec<Vec<u8>> {
    let list = RecordFieldReader(value).vector(2).unwrap_or_default();
    let mut names = RecordFieldReader(list);
    std::iter::from_fn(|| names.vector(1).map(<[u8]>::to_vec)).collect()
}

/// The protocol that a server chooses in its EncryptedExtensions (RFC 8446, 4.3.1), if there is one.
pub(crate) fn chosen_protocol(body: &[u8]) -> Option<Vec<u8>> {
    let mut fields = RecordFieldReader(body);
    let is_wanted = fields.number(1)? == 8;
    let length = fields.number(3)?;
    let message = fields.take(length).filter(|_| is_wanted)?;
    let mut extensions = RecordFieldReader(RecordFieldReader(message).vector(2)?);
    while let (Some(kind), Some(value)) = (extensions.number(2), extensions.vector(2)) {
        if kind == 16 {
            return protocol_names(value).into_iter().next();
        }
    }
    None
}

/// What a ServerHello chooses.
pub(crate) struct ServerHello<'b> {
    /// The version number: 0x303 is TLS 1.2, 0x304 is TLS 1.3.
    pub(crate) version: usize,
    pub(crate) random: [u8; 32],
    pub(crate) suite: u16,
    pub(crate) session: &'b [u8],
    /// Whether it accepts a pre-shared key.
    pub(crate) key_known: bool,
    /// Whether it asks for another ClientHello.
    pub(crate) retry: bool,
}

impl<'b> ServerHello<'b> {
    /// Reads a ServerHello message.
    pub(crate) fn read(body: &'b [u8]) -> Option<Self> {
        let mut fields = RecordFieldReader(body);
        let (kind, length) = (fields.number(1)?, fields.number(3)?);
        let mut fields = RecordFieldReader(fields.take(length).filter(|_| kind == 2)?);
        let mut version = fields.number(2)?;
        let random: [u8; 32] = fields.take(32)?.try_into().ok()?;
        let retry = random.starts_with(&RETRY);
        let session = fields.vector(1)?;
        let suite = u16::try_from(fields.number(2)?).ok()?;
        fields.take(1)?;
        let mut extensions = RecordFieldReader(fields.vector(2).unwrap_or_default());
        let mut key_known = false;
        while let (Some(kind), Some(value)) = (extensions.number(2), extensions.vector(2)) {
            match kind {
                41 => key_known = true,
                43 => version = RecordFieldReader(value).number(2)?,
                _ => {}
            }
        }
        Some(Self {
            version,
            random,
            suite,
            session,
            key_known,
            retry,
        })
    }
}
