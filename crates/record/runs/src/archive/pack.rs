//! Writes an archive.

use super::contents::{ArchiveContents, contents_of, opened};
use crate::sha256::DigestReader;
use crate::{Error, files};
use flate2::{Compression, GzBuilder};
use stackline_guard::directory::Directory;
use std::io::{self, Read, Write};
use std::path::Path;
use tar::{Builder, EntryType, Header};

/// How hard gzip tries: its usual level.
const LEVEL: u32 = 6;
/// The system in gzip's header: unknown, so that it is the same everywhere.
const ANY_SYSTEM: u8 = 255;

/// Writes an archive of the run, and returns what it contains. A run that changes meanwhile is refused.
///
/// # Errors
/// When the run cannot be read, is being written or changes, or the archive cannot be written.
pub fn write_archive(run: &Path, to: impl Write) -> Result<ArchiveContents, Error> {
    let contents = contents_of(run)?;
    let directory = Directory::open(run).map_err(|cause| Error::reading(run, &cause))?;
    let list =
        serde_json::to_string_pretty(&contents).map_err(|cause| Error::reading(run, &cause))?;
    let compressed = GzBuilder::new()
        .mtime(0)
        .operating_system(ANY_SYSTEM)
        .write(to, Compression::new(LEVEL));
    let mut archive = Builder::new(compressed);
    let unwritten = |cause: io::Error| {
        let hint = "choose a writable directory on a disk with free space";
        Error::new("cannot write the archive", hint).because(&cause)
    };
    let path = |name: &str| format!("{}/{name}", contents.run);
    let text = format!("{list}\n");
    append(
        &mut archive,
        &path(files::ARCHIVE),
        text.len() as u64,
        text.as_bytes(),
    )
    .map_err(unwritten)?;
    for file in &contents.files {
        let from = opened(&directory, &file.name)
            .map_err(|cause| Error::reading(&run.join(&file.name), &cause))?;
        let mut from = DigestReader::new(from.take(file.bytes));
        append(&mut archive, &path(&file.name), file.bytes, &mut from).map_err(unwritten)?;
        let sum = from.sum();
        if (sum.bytes(), sum.finish()) != (file.bytes, file.sha256.clone()) {
            return Err(Error::new(
                format!(
                    "{} changed while it was archived",
                    run.join(&file.name).display()
                ),
                "wait until nothing writes into the run, then try again",
            ));
        }
    }
    let compressed = archive.into_inner().map_err(unwritten)?;
    compressed
        .finish()
        .and_then(|mut to| to.flush())
        .map_err(unwritten)?;
    Ok(contents)
}

/// Appends an entry without time and owner.
fn append(
    archive: &mut Builder<impl Write>,
    path: &str,
    bytes: u64,
    from: impl Read,
) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(bytes);
    archive.append_data(&mut header, path, from)
}
