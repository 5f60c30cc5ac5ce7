//! The list of protocols, and which of them a connection speaks: by its first bytes, never by a port alone. A new protocol takes
//! its file and its line in [`ALL`].

use super::Dissector;
use super::dns::Dns;
use super::http1::Http1;
use super::mysql::Mysql;
use super::postgres::Postgres;
use super::resp::Resp;
use super::tls::Tls;
use super::turns::Turns;
use stackline_events::unit::Direction;

/// The first bytes of both sides, and the port of the side that was connected to.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'b> {
    /// Of the initiator.
    pub there: &'b [u8],
    /// Of the responder.
    pub back: &'b [u8],
    /// Of the responder.
    pub port: u16,
}

/// Whether a connection speaks a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// More bytes will tell.
    Perhaps,
}

impl Verdict {
    /// By whether bytes begin with `beginning`, as far as there are any.
    #[must_use]
    pub fn begins(bytes: &[u8], beginning: &[u8]) -> Self {
        let known = bytes.len().min(beginning.len());
        match (bytes[..known] == beginning[..known], known == beginning.len()) {
            (false, _) => Self::No,
            (true, true) => Self::Yes,
            (true, false) => Self::Perhaps,
        }
    }
}

/// A protocol.
struct Protocol {
    recognise: fn(&Opening<'_>) -> Verdict,
    start: fn() -> Box<dyn Dissector>,
}

/// Every protocol, those that are recognised by more bytes first.
const ALL: &[Protocol] = &[
    Protocol { recognise: super::http1::recognise, start: || Box::new(Http1::default()) },
    Protocol { recognise: super::mysql::recognise, start: || Box::new(Mysql::default()) },
    Protocol { recognise: super::postgres::recognise, start: || Box::new(Postgres::default()) },
    Protocol { recognise: super::dns::recognise, start: || Box::new(Dns::default()) },
    Protocol { recognise: super::resp::recognise, start: || Box::new(Resp::default()) },
    Protocol { recognise: super::tls::recognise, start: || Box::new(Tls::default()) },
];

/// Bytes of each side after which it is decided.
pub const ENOUGH: usize = 64;

/// The dissector of a connection that begins so; `None` while more bytes are wanted. `ended`: none will come. What nothing is known
/// of goes by turns.
#[must_use]
pub fn recognise(opening: &Opening<'_>, ended: bool) -> Option<Box<dyn Dissector>> {
    let mut open = false;
    for protocol in ALL {
        match (protocol.recognise)(opening) {
            Verdict::Yes => return Some((protocol.start)()),
            Verdict::No => {}
            Verdict::Perhaps => open = true,
        }
    }
    let enough = opening.there.len() >= ENOUGH || opening.back.len() >= ENOUGH;
    let turned = !opening.there.is_empty() && !opening.back.is_empty();
    (!open || ended || enough || turned).then(by_turns)
}

/// The dissector of what nothing is known of.
#[must_use]
pub fn by_turns() -> Box<dyn Dissector> {
    Box::new(Turns::new("by turns", Direction::There))
}
