//! A request of a capture in the form in which access logs are matched with it.

/// A captured request, as its server's log would describe it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedRequest {
    /// The request's unit (its id in the run).
    pub unit: i64,
    /// The response's byte range: its stream, the offset of its first byte and its length in bytes.
    pub answer: (i64, u64, u64),
    /// The server's name, which is also that of its log.
    pub server: String,
    /// The port at which it was asked.
    pub port: u16,
    /// What was asked, unredacted: `GET /item/7?key=1`.
    pub name: String,
    /// The response's status.
    pub status: String,
    /// When the request arrived at the server and when the last byte of its response left it, ns, by the server's clock. Where the server
    /// was not captured, these are times of the capture that saw the request.
    pub at_ns: (u64, u64),
}
