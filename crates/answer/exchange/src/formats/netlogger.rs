//! NetLogger's lines of `name=value`, in both forms (ULM and BP).

use super::format::{Importer, read_whole_log, take};
use crate::netlogger::{NetLoggerForm, read, recognise};
use stackline_core::error::Result;
use stackline_core::trace_index::TraceImport;
use stackline_runs::events::{ImportLog, Intake};

pub(crate) const ULM: Importer = Importer {
    name: "ulm",
    recognises: |_, first| recognise(first) == Some(NetLoggerForm::Ulm),
    import: |log, into, shared| import(NetLoggerForm::Ulm, "ulm", shared.contents, log, into),
};

pub(crate) const BP: Importer = Importer {
    name: "bp",
    recognises: |_, first| recognise(first) == Some(NetLoggerForm::Bp),
    import: |log, into, shared| import(NetLoggerForm::Bp, "bp", shared.contents, log, into),
};

fn import(
    form: NetLoggerForm,
    name: &str,
    contents: bool,
    mut log: ImportLog<'_>,
    into: &mut Intake,
) -> Result<TraceImport> {
    let bytes = read_whole_log(&mut log)?;
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    let import = take(
        name,
        &log,
        bytes.len() as u64,
        read(&bytes, form, contents),
        into,
    )?;
    Ok(TraceImport { lines, ..import })
}
