//! stackline's text format: lines `KEYWORD; host; seconds; nanoseconds; data; ...`

use super::format::{Exporter, Importer};
use stackline_runs::events::{export_text, import_text};

/// The last importer to be tried: it accepts any file, and counts lines that it cannot read.
pub(crate) const FROM: Importer = Importer {
    name: "text",
    recognises: |_, _| true,
    import: |log, into, _| Ok(import_text(log, into)?),
};

pub(crate) const TO: Exporter = Exporter {
    name: "text",
    export: |run, chosen, to| Ok(export_text(chosen.merged(run)?, to)?.into()),
};
