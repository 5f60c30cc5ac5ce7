//! `stackline archive`: writes a kept run as one file.

use crate::exit::{Exit, Result};
use crate::flags::ArchiveFlags;
use crate::output;
use stackline_core::units::{counted, format_size};
use stackline_runs::archive::{AddedRun, ArchiveContents, contents_of, write_archive};
use stackline_runs::{located, short_digest};
use std::fs;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// What follows the run's name in the name of its archive.
const EXTENSION: &str = ".stackline.tar.gz";

/// Writes the archive of a run; with `--json` only says what it would contain.
pub(crate) fn archive(flags: &ArchiveFlags) -> Result {
    let run = located(&flags.run)?;
    if flags.json {
        output::json(&contents_of(&run)?, true)?;
        return Ok(Exit::Done);
    }
    if flags.output.as_deref() == Some(Path::new("-")) {
        write_archive(&run, BufWriter::new(io::stdout().lock()))?;
        return Ok(Exit::Done);
    }
    let name = run.canonicalize().unwrap_or_else(|_| run.clone());
    let name = name.file_name().unwrap_or_default().display().to_string();
    let path = flags
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from(name + EXTENSION));
    let contents = output::file_by(&path, |file| Ok(write_archive(&run, BufWriter::new(file))?))?;
    output::print(&format!("{}\n", written_line(&path, &contents)))?;
    Ok(Exit::Done)
}

/// What became of an archive, as a line.
pub(crate) fn added_line(added: &AddedRun) -> String {
    let AddedRun {
        path,
        was_kept,
        contents,
    } = added;
    let name = path.file_name().unwrap_or_default().display().to_string();
    let digest = short_digest(&contents.digest);
    match was_kept {
        true => format!("{name} is kept already, the same to the last bit (digest {digest})"),
        false => format!(
            "added {name}, {}, digest {digest}",
            format_size(contents.bytes())
        ),
    }
}

/// What was written, as a line.
fn written_line(path: &Path, contents: &ArchiveContents) -> String {
    let size = fs::metadata(path).map_or(0, |about| about.len());
    format!(
        "wrote {}, {}: {} of {}, digest {}",
        path.display(),
        format_size(size),
        counted(contents.files.len() as u64, "file"),
        contents.run,
        short_digest(&contents.digest)
    )
}
