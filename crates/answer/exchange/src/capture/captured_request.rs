//! A request of a capture, as what joins logs to it wants it.

/// A request as a log would tell of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedRequest {
    /// Its unit, and the stream of its answer, with where that begins and how long it is.
    pub unit: i64,
    /// See `unit`.
    pub answer: (i64, u64, u64),
    /// Whose log it would be.
    pub server: String,
    /// What was asked, with all that is in it, and what was answered.
    pub name: String,
    /// See `name`.
    pub status: String,
    /// When it was there and when its answer was gone, by the server's clock where the server was seen, ns.
    pub at_ns: (u64, u64),
}
