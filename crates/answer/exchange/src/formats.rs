//! The formats of events, for import and export; each is one file with one or two table entries.
//!
//! To add one: a file under `formats/` with an [`Importer`] or an [`Exporter`], an entry in [`FROM`] or [`TO`], and for an output format
//! a flag of its name on the command line of `export`.

mod capture;
mod event_log;
mod format;
mod jaeger;
mod netlogger;
mod otlp;
mod perfetto;
mod qlog;
mod selection;
mod text;
mod unsupported;

pub use capture::{CaptureImport, read_captures};
pub use format::{Exported, Exporter, ImportContext, Importer, LOOKED_AT};
pub use selection::ExportSelection;
pub use unsupported::find_unsupported;

/// All formats that are read; the first one that recognises a log reads it.
pub const FROM: &[Importer] = &[
    event_log::FROM,
    capture::FROM,
    qlog::FROM,
    otlp::FROM,
    jaeger::FROM,
    netlogger::ULM,
    netlogger::BP,
    text::FROM,
];

/// All formats that are written.
pub const TO: &[Exporter] = &[
    text::TO,
    event_log::TO,
    otlp::PROTOBUF,
    otlp::JSON,
    perfetto::TO,
    qlog::TO,
];
