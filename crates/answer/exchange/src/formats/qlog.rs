//! qlog, the log of a QUIC stack.

use super::format::{Exporter, Importer, read_whole_log, take, unread, unwritten};
use crate::qlog;
use stackline_core::error::Error;

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

pub(crate) const TO: Exporter = Exporter {
    name: "qlog",
    export: |run, chosen, to| {
        let loaded = chosen.loaded(run)?;
        let document = qlog::document(&loaded.events, &loaded.index);
        if document.events == 0 {
            return Err(Error::input("the run has no events of QUIC")
                .hint("qlog is the log of `quic` and `http3`: record them with `run --trace`"));
        }
        serde_json::to_writer(&mut *to, &document.json).map_err(unwritten)?;
        writeln!(to).map_err(unwritten)?;
        Ok(document.events.into())
    },
};
