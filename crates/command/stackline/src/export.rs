//! `stackline export`: a run's events in other formats.

use crate::exit::{Exit, Result};
use crate::flags;
use crate::output;
use stackline_analyze::lifelines::Id;
use stackline_analyze::loaded_run::incomplete;
use stackline_exchange::formats::{ExportSelection, Exported, Exporter, TO};
use stackline_runs::StoredRun;
use std::io::{BufWriter, ErrorKind, IsTerminal, Write, stdout};
use std::path::Path;

/// Writes a run's events to files or stdout.
pub(crate) fn export(flags: &flags::Export) -> Result {
    let run = StoredRun::open_events(&flags.run)?;
    incomplete(&run, "exported").iter().for_each(output::say);
    let units = flags.units.iter().map(|unit| Id::parse(unit));
    let chosen = ExportSelection {
        reference: flags.reference,
        from_s: flags.from,
        to_s: flags.to,
        units: units.collect(),
        took: flags.took.filter(),
    };
    for format in TO {
        match flags.destination(format.name) {
            None => {}
            Some(None) => to_stdout(format, &run.path, &chosen)?,
            Some(Some(file)) if file.as_os_str() == "-" => to_stdout(format, &run.path, &chosen)?,
            Some(Some(file)) => {
                let Exported { events, left_out } = to_file(format, &run.path, &chosen, file)?;
                output::say(&format_args!("{}: {events} events", file.display()));
                left_out.iter().for_each(output::say);
            }
        }
    }
    Ok(Exit::Done)
}

/// Writes to stdout. It is not an error if the reader closes the pipe early.
fn to_stdout(format: &Exporter, run: &Path, chosen: &ExportSelection) -> Result<()> {
    if stdout().is_terminal() {
        let mut text = Vec::new();
        let exported = (format.export)(run, chosen, &mut text)?;
        output::print_for_programs(&String::from_utf8_lossy(&text))?;
        exported.left_out.iter().for_each(output::say);
        return Ok(());
    }
    let mut out = ExportWriter {
        to: stdout().lock(),
        closed: false,
    };
    match (format.export)(run, chosen, &mut out) {
        Err(error) if !out.closed => Err(error),
        Err(_) => Ok(()),
        Ok(exported) => {
            exported.left_out.iter().for_each(output::say);
            Ok(())
        }
    }
}

/// A writer that remembers whether its reader has closed the pipe.
struct ExportWriter<W> {
    to: W,
    closed: bool,
}

impl<W: Write> Write for ExportWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let done = self.to.write(bytes);
        self.closed |= done
            .as_ref()
            .is_err_and(|error| error.kind() == ErrorKind::BrokenPipe);
        done
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

/// Writes to a file, completely or not at all.
fn to_file(
    format: &Exporter,
    run: &Path,
    chosen: &ExportSelection,
    path: &Path,
) -> Result<Exported> {
    output::file_by(path, |file| {
        let mut file = BufWriter::new(file);
        let exported = (format.export)(run, chosen, &mut file)?;
        file.flush()
            .map_err(|cause| output::unwritten(path.display(), &cause))?;
        Ok(exported)
    })
}
