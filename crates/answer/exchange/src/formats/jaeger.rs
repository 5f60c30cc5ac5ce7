//! Traces in the JSON that Jaeger's page downloads.

use super::format::{Importer, read_whole_log, take, unread};
use crate::jaeger;

pub(crate) const FROM: Importer = Importer {
    name: "jaeger",
    recognises: |_, first| {
        let says = |what: &[u8]| first.windows(what.len()).any(|some| some == what);
        first.trim_ascii_start().starts_with(b"{") && says(b"\"data\"") && says(b"\"traceID\"")
    },
    import: |mut log, into, shared| {
        let bytes = read_whole_log(&mut log)?;
        let read = jaeger::read(&bytes, shared.contents).map_err(|cause| unread(&log, &cause))?;
        take("jaeger", &log, bytes.len() as u64, read, into)
    },
};
