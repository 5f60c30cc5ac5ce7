//! The beginning of a connection, and a verdict on whether it is of a protocol.

/// The first bytes of both sides, and the responder's port.
#[derive(Clone, Copy, Debug)]
pub struct ConversationOpening<'b> {
    /// The first bytes of the initiator.
    pub there: &'b [u8],
    /// The first bytes of the responder.
    pub back: &'b [u8],
    /// The port of the responder.
    pub port: u16,
}

/// Whether a connection speaks a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolVerdict {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// More bytes are needed to tell.
    Perhaps,
}

impl ProtocolVerdict {
    /// Compares the bytes so far with the `beginning` that the protocol requires.
    #[must_use]
    pub fn begins(bytes: &[u8], beginning: &[u8]) -> Self {
        let known = bytes.len().min(beginning.len());
        match (
            bytes[..known] == beginning[..known],
            known == beginning.len(),
        ) {
            (false, _) => Self::No,
            (true, true) => Self::Yes,
            (true, false) => Self::Perhaps,
        }
    }
}
