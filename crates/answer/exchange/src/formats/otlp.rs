//! OpenTelemetry spans (OTLP): reads and writes protobuf and JSON.

use super::format::{Exporter, Importer, read_whole_log, take, unread, unwritten};
use super::selection::ExportSelection;
use crate::otlp::{self, messages::TracesData};
use stackline_core::error::Result;
use std::path::Path;

/// Names that occur only in OTLP/JSON: of the whole message, or of its parts, which some exporters write alone.
const MARKS: [&[u8]; 5] = [
    b"\"resourceSpans\"",
    b"\"resource_spans\"",
    b"\"scopeSpans\"",
    b"\"instrumentationLibrarySpans\"",
    b"\"startTimeUnixNano\"",
];

/// JSON is recognised by its names; protobuf has no mark, so the file's name decides.
pub(crate) const FROM: Importer = Importer {
    name: "otlp",
    recognises: |name, first| {
        let begins = first.trim_ascii_start();
        let is_json = matches!(begins.first(), Some(b'{' | b'['));
        let says = |what: &[u8]| first.windows(what.len()).any(|some| some == what);
        is_json && MARKS.iter().any(|mark| says(mark)) || name.ends_with(".otlp")
    },
    import: |mut log, into, shared| {
        let bytes = read_whole_log(&mut log)?;
        let read = otlp::read(&bytes, shared.contents).map_err(|cause| unread(&log, &cause))?;
        take("otlp", &log, bytes.len() as u64, read, into)
    },
};

pub(crate) const PROTOBUF: Exporter = Exporter {
    name: "otlp",
    export: |run, chosen, to| {
        let (data, count) = spans(run, chosen)?;
        to.write_all(&otlp::protobuf(&data)).map_err(unwritten)?;
        Ok(count.into())
    },
};

pub(crate) const JSON: Exporter = Exporter {
    name: "otlp_json",
    export: |run, chosen, to| {
        let (data, count) = spans(run, chosen)?;
        let text = otlp::json(&data).map_err(unwritten)?;
        writeln!(to, "{text}").map_err(unwritten)?;
        Ok(count.into())
    },
};

/// The lifelines as spans, and the number of events on them.
fn spans(run: &Path, chosen: &ExportSelection) -> Result<(TracesData, u64)> {
    let loaded = chosen.loaded(run)?;
    let data = otlp::spans(&loaded.lifelines, &loaded.events);
    Ok((
        data,
        loaded
            .lifelines
            .lines
            .iter()
            .map(|line| u64::from(line.count))
            .sum(),
    ))
}
