//! What the two hellos of a handshake say in clear: what a client offers, and what a server chooses of it.

use crate::conversation::records::RecordFieldReader;

/// A ServerHello with these as its random number asks for another ClientHello (RFC 8446, 4.1.3).
pub(super) const RETRY: [u8; 8] = [0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11];

/// What a ClientHello offers.
#[derive(Clone, Debug, Default)]
pub(super) struct TlsClientOffer {
    pub(super) name: String,
    pub(super) session: Vec<u8>,
    /// A session's ticket, or a key both sides know.
    pub(super) ticket: bool,
    pub(super) early: bool,
}

impl TlsClientOffer {
    /// What a ClientHello offers, as far as it is there.
    pub(super) fn read(hello: &[u8]) -> Option<Self> {
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

/// What a ServerHello chooses.
pub(super) struct ServerHello<'b> {
    pub(super) version: usize,
    pub(super) random: [u8; 32],
    pub(super) suite: u16,
    pub(super) session: &'b [u8],
    pub(super) key_known: bool,
    pub(super) retry: bool,
}

impl<'b> ServerHello<'b> {
    pub(super) fn read(body: &'b [u8]) -> Option<Self> {
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
