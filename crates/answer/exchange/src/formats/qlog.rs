//! qlog, the log of a QUIC stack.

use super::format::{Importer, read_whole_log, take, unread};
use crate::qlog;

pub(crate) const FROM: Importer = Importer {
    name: "qlog",
    recognises: |name, first| {
        let says = |what: &[u8]| first.windows(what.len()).any(|some| some == what);
        says(b"\"qlog_version\"")
            || says(b"\"file_schema\"")
            || name.ends_with(".qlog")
            || name.ends_with(".sqlog")
    },
    import: |mut log, into, shared| {
        let bytes = read_whole_log(&mut log)?;
        let read =
            qlog::read(&bytes, log.host, shared.contents).map_err(|cause| unread(&log, &cause))?;
        shared.connections.extend(read.connections);
        take("qlog", &log, bytes.len() as u64, read.imported, into)
    },
};
