//! stackline's binary format, as its client libraries write it.

use super::format::{Exported, Exporter, Importer};
use stackline_runs::events::{begins_event_log, export_event_log, import_event_log};

pub(crate) const FROM: Importer = Importer {
    name: "tape",
    recognises: |_, first| begins_event_log(first),
    import: |log, into, _| Ok(import_event_log(log, into)?),
};

pub(crate) const TO: Exporter = Exporter {
    name: "tape",
    export: |run, chosen, to| {
        let written = export_event_log(chosen.merged(run)?, to)?;
        Ok(Exported {
            events: written.events,
            left_out: written.left_out(),
        })
    },
};
