//! NetLogger's lines of `name=value`, in both forms.

use super::format::{Importer, take, whole};
use crate::exit::Result;
use stackline_core::trace::Import;
use stackline_exchange::netlogger::{Form, read, recognise};
use stackline_runs::events::{Intake, Log};

pub(super) const ULM: Importer = Importer {
    name: "ulm",
    recognises: |_, first| recognise(first) == Some(Form::Ulm),
    import: |log, into, shared| import((Form::Ulm, "ulm"), shared.contents, log, into),
};

pub(super) const BP: Importer = Importer {
    name: "bp",
    recognises: |_, first| recognise(first) == Some(Form::Bp),
    import: |log, into, shared| import((Form::Bp, "bp"), shared.contents, log, into),
};

fn import(
    (form, name): (Form, &str),
    contents: bool,
    mut log: Log<'_>,
    into: &mut Intake,
) -> Result<Import> {
    let bytes = whole(&mut log)?;
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    let import = take(
        name,
        &log,
        bytes.len() as u64,
        read(&bytes, form, contents),
        into,
    )?;
    Ok(Import { lines, ..import })
}
