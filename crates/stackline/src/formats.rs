//! The formats events come in and go out in: each is one file with a table row or two.
//!
//! To add one: a file under `formats/` with an [`Importer`] or an [`Exporter`], a line in [`FROM`] or [`TO`], and for what goes out
//! a flag of its own in `flags::Export` that [`Exporter::flag`] finds.

mod capture;
mod format;
mod otlp;
mod perfetto;
mod qlog;
mod tape;
mod text;

pub(crate) use format::{Exporter, Importer, LOOKED_AT, Shared};

/// Every format that is read; the first that recognises a log reads it.
pub(crate) const FROM: &[Importer] = &[tape::FROM, capture::FROM, qlog::FROM, otlp::FROM, text::FROM];

/// Every format that is written.
pub(crate) const TO: &[Exporter] = &[text::TO, tape::TO, otlp::PROTOBUF, otlp::JSON, perfetto::TO];
