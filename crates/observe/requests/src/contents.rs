//! The sentences that say what `--keep-contents` keeps. They are stored in the run and printed when the run is made.

/// What is kept of requests that were traced or captured.
pub const OF_REQUESTS: &str = "contents are kept (--keep-contents): whole request names, up to 256 bytes each (HTTP targets with userinfo, queries and fragments, SQL statements with literals and passwords, first keys of Redis commands and scripts, login user names), and response texts. Headers, bodies, rows, bound values and error texts are not kept";

/// What is kept of logs that were imported.
pub const OF_LOGS: &str = "contents are kept (--keep-contents): whole request names (up to 256 bytes each), access-log lines (up to 4 KiB each), and unchanged span names, span attributes and qlog data, including headers, statements and error texts";
