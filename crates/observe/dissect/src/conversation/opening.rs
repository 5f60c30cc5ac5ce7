//! How a connection begins, and whether that is a protocol. It knows none.

/// The first bytes of both sides, and the port of the side that was connected to.
#[derive(Clone, Copy, Debug)]
pub struct ConversationOpening<'b> {
    /// Of the initiator.
    pub there: &'b [u8],
    /// Of the responder.
    pub back: &'b [u8],
    /// Of the responder.
    pub port: u16,
}

/// Whether a connection speaks a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolVerdict {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// More bytes will tell.
    Perhaps,
}

impl ProtocolVerdict {
    /// By whether bytes begin with `beginning`, as far as there are any.
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
