//! What `--keep-contents` keeps, in words: it stands in the run and is said when the run is made.

/// Of requests that were traced or captured.
pub const OF_REQUESTS: &str = "contents are kept (--keep-contents): names of requests whole, up to 256 bytes each, which are targets of \
    HTTP with users, queries and fragments, statements of SQL with literals and passwords, first keys of Redis and those of its \
    scripts, users of logins, texts that answer them. Headers, bodies, rows, bound values and texts of errors are not kept";

/// Of logs that were imported.
pub const OF_LOGS: &str = "contents are kept (--keep-contents): beside whole names of requests, up to 256 bytes each, names and attributes \
    of spans and data of qlog as they are, with headers, statements and texts of errors, and lines of access logs up to 4 KiB each";
