//! What one line of a log says of a request, and how a request is written in one.

/// What a log says of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessLogEntry {
    /// When, ns since 1970, and how long the moment is that this names.
    pub at_ns: u64,
    /// See `at_ns`.
    pub resolution_ns: u64,
    /// Whether that is its end; else it is its beginning or its end.
    pub is_end: bool,
    /// What was asked.
    pub method: String,
    /// See `method`; with its query where the log has that.
    pub path: String,
    /// What was answered.
    pub status: String,
    /// How long it took, as the server says.
    pub took_ns: Option<u64>,
    /// How long servers behind it took, one after the other.
    pub upstream_ns: Option<u64>,
    /// How long it took where that is a number without a unit, as if it were of seconds.
    pub number_ns: Option<u64>,
    /// How important it is, where that is said.
    pub level: String,
    /// All of it.
    pub line: String,
}

/// `GET /a HTTP/1.1`.
pub(super) fn asked(request: &str) -> Option<(String, String)> {
    let mut parts = request.split(' ');
    let (method, path) = (parts.next()?, parts.next()?);
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    is_method.then(|| (method.to_owned(), path.to_owned()))
}
