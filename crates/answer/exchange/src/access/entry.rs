//! An entry of an access log, and how a request is written in it.

/// An entry of an access log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessLogEntry {
    /// The logged time, ns since 1970.
    pub at_ns: u64,
    /// The resolution of the logged time, ns: 1,000,000,000 for whole seconds.
    pub resolution_ns: u64,
    /// Whether this is the time when the request ended; otherwise it may be its start or its end.
    pub is_end: bool,
    /// The request's method.
    pub method: String,
    /// The request's path, with its query if the log has it.
    pub path: String,
    /// The response's status.
    pub status: String,
    /// How long the request took, as the server says, ns.
    pub took_ns: Option<u64>,
    /// How long the servers behind it took, summed up, ns.
    pub upstream_ns: Option<u64>,
    /// A duration that is logged without a unit, read as if it were in seconds, ns.
    pub number_ns: Option<u64>,
    /// The log level, if there is one.
    pub level: String,
    /// The whole line, or the name of a span.
    pub line: String,
}

/// Parses `GET /a HTTP/1.1` to method and path.
pub(super) fn asked(request: &str) -> Option<(String, String)> {
    let mut parts = request.split(' ');
    let (method, path) = (parts.next()?, parts.next()?);
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    is_method.then(|| (method.to_owned(), path.to_owned()))
}
