//! What is in an archive: which files of a run, their sizes and digests.

use crate::events::EVENT_LOG_EXTENSION;
use crate::run_directory_writer::is_being_written;
use crate::sha256::{DigestReader, sha256};
use crate::{Error, RunStatus, files};
use serde::{Deserialize, Serialize};
use stackline_guard::directory::Directory;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

/// The form of archives that this version writes, and the newest that it reads.
pub(super) const FORMAT: u32 = 1;
/// Most bytes of all files of an archive together.
pub(super) const LARGEST_CONTENTS: u64 = 256 << 30;
/// The longest name of a run in an archive, in bytes.
const LONGEST_RUN_NAME: usize = 128;
/// The longest name of a file in an archive, in bytes.
const LONGEST_FILE_NAME: usize = 255;

/// Files of a run that an archive takes, besides those in directories. The page is left out, because `report` makes it
/// again.
const FILES: [&str; 9] = [
    files::ENVIRONMENT,
    files::FINDINGS,
    files::INPUTS,
    files::NOTE,
    files::PLAN,
    files::RESULTS,
    files::SPECIFICATION,
    files::STATUS,
    files::TAGS,
];

/// Directories of a run, with the extensions of files that an archive takes from them.
const DIRECTORIES: [(&str, &[&str]); 2] = [
    (files::EVENTS, &["parquet", EVENT_LOG_EXTENSION]),
    (files::CAPTURES, &["pcapng"]),
];

/// One file of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedFile {
    /// Its name in the run's directory: `plan.json`, `events/khons.parquet`.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// The SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
}

/// The content of `archive.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveContents {
    /// The form of the archive.
    pub archive: u32,
    /// The version of stackline that wrote the run.
    pub stackline: String,
    /// The name of the run's directory.
    pub run: String,
    /// The SHA-256 of the lines that `sha256sum` prints of the files, in this order.
    pub digest: String,
    /// The files, ordered by name.
    pub files: Vec<ArchivedFile>,
}

impl ArchiveContents {
    /// The size of all files together.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let sizes = self.files.iter().map(|file| file.bytes);
        sizes.fold(0, u64::saturating_add)
    }

    /// Checks what another program claims: names, order, sizes, number, digest. `Err` says what is wrong.
    pub(super) fn check(&self) -> Result<(), String> {
        if !is_run_name(&self.run) {
            return Err("the name of its run is not the name of a directory".to_owned());
        }
        if self.files.len() > files::MOST_FILES {
            return Err(format!("it lists more than {} files", files::MOST_FILES));
        }
        if let Some(file) = self.files.iter().find(|file| !is_file_name(&file.name)) {
            return Err(format!(
                "it lists {:?}, which does not belong to a run",
                file.name
            ));
        }
        let names = self.files.iter().map(|file| &file.name);
        if !names.is_sorted_by(|one, next| one < next) {
            return Err("its list of files is not in order, or names one twice".to_owned());
        }
        if self.files.iter().all(|file| file.name != files::STATUS) {
            return Err(format!("it has no {}", files::STATUS));
        }
        if self.bytes() > LARGEST_CONTENTS {
            return Err("its files are larger than 256 GiB".to_owned());
        }
        if self.digest != digest_of(&self.files) {
            return Err("its digest is not that of its list of files".to_owned());
        }
        Ok(())
    }
}

/// The digest over a list of files.
fn digest_of(files: &[ArchivedFile]) -> String {
    let lines = files
        .iter()
        .map(|file| format!("{}  {}\n", file.sha256, file.name));
    sha256(&lines.collect::<String>())
}

/// Whether an archived run may have that name.
pub(super) fn is_run_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=LONGEST_RUN_NAME).contains(&name.len())
        && !name.starts_with(['.', '-'])
        && name.bytes().all(plain)
}

/// Whether an archive may have a file of that name, given relative to the run's directory.
fn is_file_name(name: &str) -> bool {
    let Some((directory, file)) = name.split_once('/') else {
        return FILES.contains(&name) || name == files::JOURNAL;
    };
    name.len() <= LONGEST_FILE_NAME && is_kept_in(directory, file)
}

/// Whether an archive takes a file from that directory of a run.
fn is_kept_in(directory: &str, file: &str) -> bool {
    let plain = !file.starts_with('.') && !file.contains(['/', '\0']);
    let extension = Path::new(file).extension().and_then(OsStr::to_str);
    let taken = DIRECTORIES.iter().find(|(name, _)| *name == directory);
    plain
        && (format!("{directory}/{file}") == files::INDEX
            || taken.is_some_and(|(_, taken)| extension.is_some_and(|it| taken.contains(&it))))
}

/// What an archive of a run contains.
///
/// # Errors
/// When the run is being written, has no status, or a file of it cannot be read.
pub fn contents_of(run: &Path) -> Result<ArchiveContents, Error> {
    if is_being_written(run) {
        return Err(Error::input(
            format!("the run at {} is still being written", run.display()),
            "wait until the command that writes it has finished, then try again",
        ));
    }
    let status = RunStatus::read(run)?;
    let directory = Directory::open(run).map_err(|cause| Error::reading(run, &cause))?;
    let mut listed = Vec::new();
    for name in names_in(run, &directory)? {
        let (bytes, sha256) =
            summed(&directory, &name).map_err(|cause| Error::reading(&run.join(&name), &cause))?;
        listed.push(ArchivedFile {
            name,
            bytes,
            sha256,
        });
    }
    let own = run.file_name().and_then(|name| name.to_str());
    Ok(ArchiveContents {
        archive: FORMAT,
        stackline: status.stackline,
        run: own
            .filter(|name| is_run_name(name))
            .unwrap_or("run")
            .to_owned(),
        digest: digest_of(&listed),
        files: listed,
    })
}

/// The size and digest of a file.
fn summed(directory: &Directory, name: &str) -> io::Result<(u64, String)> {
    let mut reader = DigestReader::new(opened(directory, name)?);
    io::copy(&mut reader, &mut io::sink())?;
    let sum = reader.sum();
    Ok((sum.bytes(), sum.finish()))
}

/// Opens a file of the run.
pub(super) fn opened(directory: &Directory, name: &str) -> io::Result<File> {
    directory.open_file(Path::new(name))
}

/// The names of the files that an archive of the run takes, in order. The journal is needed only where the results were
/// not written.
fn names_in(run: &Path, directory: &Directory) -> Result<Vec<String>, Error> {
    let mut names: Vec<String> = FILES
        .iter()
        .filter(|name| files::is_there(&run.join(name)))
        .map(|name| (*name).to_owned())
        .collect();
    if !names.iter().any(|name| name == files::RESULTS)
        && files::is_there(&run.join(files::JOURNAL))
    {
        names.push(files::JOURNAL.to_owned());
    }
    for (below, _) in DIRECTORIES {
        let found = match directory.names(Path::new(below), files::MOST_FILES) {
            Err(cause) if cause.kind() == ErrorKind::NotFound => continue,
            found => found.map_err(|cause| Error::reading(&run.join(below), &cause))?,
        };
        let found = found.into_iter().filter_map(|name| name.into_string().ok());
        let kept = found.filter(|name| is_kept_in(below, name));
        names.extend(kept.map(|name| format!("{below}/{name}")));
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_runs_are_named() {
        for name in [
            "plan.json",
            "runs.jsonl",
            "events/index.json",
            "events/a%2F.parquet",
            "captures/n.1.1.pcapng",
        ] {
            assert!(is_file_name(name), "{name}");
        }
        for name in [
            "",
            "..",
            "report.html",
            "archive.json",
            "/etc/passwd",
            "events/../plan.json",
            "events/a/b.parquet",
            "events/.a.parquet",
            "events/x.sh",
            "captures/index.json",
            "plan.json/x",
        ] {
            assert!(!is_file_name(name), "{name}");
        }
        assert!(!is_file_name(&format!(
            "events/{}.parquet",
            "x".repeat(300)
        )));
        assert!(is_run_name("20260101-120000-wan"));
        for name in ["", ".", "..", ".x", "-x", "a/b", "a b", "ä"] {
            assert!(!is_run_name(name), "{name}");
        }
        assert!(!is_run_name(&"x".repeat(200)));
    }
}
