//! What an end of HTTP is to the layer above and to the byte stream below, whatever the version.

use alloc::vec::Vec;
use stackline_core::time::Instant;

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpRequestKind {
    /// A call: a body each way.
    Call,
    /// Data units in the response's body.
    Get,
    /// Data units in the request's body.
    Put,
    /// Data units in both bodies.
    Stream,
    /// Nothing: it lasts as long as its pair is on a connection that several pairs share.
    Join,
}

impl HttpRequestKind {
    /// The path in the request.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Call => "/call",
            Self::Get => "/get",
            Self::Put => "/put",
            Self::Stream => "/stream",
            Self::Join => "/join",
        }
    }

    /// The method of the request.
    #[must_use]
    pub const fn method(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Call | Self::Put | Self::Stream | Self::Join => "POST",
        }
    }
}

/// The head of a request or of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpHead {
    /// What the request is for; `None` in a response.
    pub request: Option<HttpRequestKind>,
    /// The pair of endpoints that a request names, where several share the connection.
    pub pair: Option<u32>,
    /// Bytes of the body where they are known before (content-length).
    pub length: Option<u64>,
    /// Whether no body follows.
    pub ends: bool,
}

/// What a piece of a byte stream means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpFrame {
    /// Bytes that only delimit, or the preface of HTTP/2 (RFC 9113, 3.4).
    Filler,
    /// SETTINGS with the initial window of streams, in bytes (RFC 9113, 6.5).
    Settings(u32),
    /// The acknowledgement of SETTINGS.
    SettingsAck,
    /// So many more bytes may be sent on a stream; 0 is the connection (RFC 9113, 6.9).
    WindowUpdate {
        /// The stream.
        stream: u32,
        /// The bytes.
        bytes: u32,
    },
    /// No more requests are made (RFC 9113, 6.8).
    GoAway,
    /// The head of a request or response.
    Head {
        /// Its stream.
        stream: u32,
        /// What it says.
        head: HttpHead,
    },
    /// Bytes of a body.
    Data {
        /// Its stream.
        stream: u32,
        /// How many.
        bytes: u64,
        /// Whether the body ends with them.
        ends: bool,
    },
}

/// A piece of a byte stream: its bytes on the wire, and what they mean together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpPiece {
    /// Bytes on the wire.
    pub wire_bytes: u64,
    /// What it means.
    pub frame: HttpFrame,
}

/// A request that has arrived at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpArrival {
    /// Its stream.
    pub stream: u32,
    /// What it is for.
    pub kind: HttpRequestKind,
}

/// Why data that is to be sent is not sent (RFC 9113, 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpWait {
    /// The window of its stream is used up.
    StreamWindow,
    /// The window of the connection is used up.
    ConnectionWindow,
}

/// One end of a connection.
pub trait HttpMachine {
    /// Makes a request. Returns its stream. `head.ends` says that it has no body.
    fn request(&mut self, head: HttpHead) -> u32;
    /// Answers a request with the head of a response.
    fn respond(&mut self, stream: u32, head: HttpHead, now: Instant);
    /// Adds a data unit of `bytes` bytes to the body that this end sends; with `ends` the body ends behind it.
    fn send(&mut self, stream: u32, bytes: u64, ends: bool);
    /// Ends the body that this end sends.
    fn end(&mut self, stream: u32);
    /// Makes no more requests.
    fn close(&mut self);
    /// A whole piece has come.
    fn handle(&mut self, frame: HttpFrame);
    /// The pieces of the next write, empty when there is nothing to write or a window is used up.
    fn poll(&mut self) -> Vec<HttpPiece>;
    /// The next request that names that pair, or of those that name none.
    fn accept(&mut self, pair: Option<u32>) -> Option<HttpArrival>;
    /// Whether the head of the response has come.
    fn has_head(&self, stream: u32) -> bool;
    /// Takes the bytes of the other end's body that have come, which makes room for more.
    fn take(&mut self, stream: u32) -> u64;
    /// Whether the other end's body has ended, and all of it was taken.
    fn is_ended(&self, stream: u32) -> bool;
    /// Whether all that is to be sent on that stream was polled.
    fn is_sent(&self, stream: u32) -> bool;
    /// What data of that stream waits for; `None` when it waits for nothing of HTTP.
    fn waits_for(&self, stream: u32) -> Option<HttpWait>;
    /// Whether pieces are read while nobody waits for one, as HTTP/2 reads what its windows allow.
    fn reads_ahead(&self) -> bool;
    /// Whether what both ends send when they connect has come.
    fn is_settled(&self) -> bool;
    /// Drops a stream whose exchange is over.
    fn forget(&mut self, stream: u32);
}
