//! Adds an archive to the kept runs. An archive may come from anybody: its list of files is checked first, and then each
//! entry has to be the next of that list.

use super::contents::{ArchiveContents, FORMAT, contents_of};
use crate::run_directory_writer::unused;
use crate::sha256::DigestReader;
use crate::{Error, RunFileAccess, RunStatus, files};
use flate2::read::GzDecoder;
use serde::Deserialize;
use stackline_core::units::format_size;
use stackline_guard::files::open_regular;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, BufReader, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tar::{Archive, Entries, Entry, EntryType};
use tempfile::TempDir;

/// The largest list of files, in bytes.
const LARGEST_LIST: u64 = 32 << 20;
/// The longest path of an entry, in bytes.
const LONGEST_PATH: u64 = 512;
/// Most bytes that one byte of a gzip file stands for: a match of 258 bytes takes two bits (RFC 1951, 3.2.5).
const MOST_EXPANSION: u64 = 1032;
/// The first bytes of a gzip file (RFC 1952, 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The beginning of the names of directories in which archives are unpacked.
pub(crate) const UNPACKING: &str = ".adding-";

/// What became of an archive.
#[derive(Clone, Debug)]
pub struct AddedRun {
    /// The directory of the run.
    pub path: PathBuf,
    /// Whether the same run, to the last bit, was kept there already; nothing was added then.
    pub was_kept: bool,
    /// What the archive contains.
    pub contents: ArchiveContents,
}

/// Whether a file begins as archives do.
#[must_use]
pub fn is_archive(path: &Path) -> bool {
    let mut begins = [0; 2];
    let read = open_regular(path).and_then(|mut file| file.read_exact(&mut begins));
    read.is_ok() && begins == GZIP
}

/// Unpacks an archive into a directory of its own below `root`, named as the run was, with a number appended where that
/// name is taken. The directory appears when all of it has been checked.
///
/// # Errors
/// When the archive cannot be read, is damaged or is not one; when there is no room for it.
pub fn add_archive(root: &Path, archive: &Path, access: RunFileAccess) -> Result<AddedRun, Error> {
    let unread = |cause: &io::Error| {
        let hint = "name a file that `stackline archive` wrote";
        Error::input(format!("cannot read {}", archive.display()), hint).because(cause)
    };
    let file = open_regular(archive).map_err(|cause| unread(&cause))?;
    let packed = file.metadata().map_err(|cause| unread(&cause))?.len();
    let unpacker = Unpacker { archive };
    let mut tar = Archive::new(GzDecoder::new(BufReader::new(file)));
    let entries = tar.entries().map_err(|cause| unpacker.damaged(&cause))?;
    let mut entries = entries.raw(true);
    let contents = unpacker.contents(&mut entries)?;
    if contents.bytes() / MOST_EXPANSION > packed {
        return Err(unpacker.wrong("its files cannot be as large as its list says"));
    }
    let kept = root.join(&contents.run);
    if contents_of(&kept).is_ok_and(|there| there.digest == contents.digest) {
        unpacker.unpack_files(&mut entries, &contents, None)?;
        return Ok(AddedRun {
            path: kept,
            was_kept: true,
            contents,
        });
    }
    files::make_root(root, access).map_err(|cause| Error::writing(root, &cause))?;
    has_room(root, contents.bytes())?;
    let unpacked = directory_in(root, access).map_err(|cause| Error::writing(root, &cause))?;
    unpacker.unpack_files(&mut entries, &contents, Some(unpacked.path()))?;
    RunStatus::read(unpacked.path())?.check(unpacked.path())?;
    let path = put_in_place(root, &contents.run, unpacked, access)?;
    Ok(AddedRun {
        path,
        was_kept: false,
        contents,
    })
}

/// A new directory for what is being unpacked; it is removed if that fails.
fn directory_in(root: &Path, access: RunFileAccess) -> io::Result<TempDir> {
    let directory = tempfile::Builder::new()
        .prefix(UNPACKING)
        .tempdir_in(root)?;
    if access == RunFileAccess::Shared {
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755))?;
    }
    Ok(directory)
}

/// Gives the unpacked run its name. A directory that exists is never replaced: the new one takes the place of an empty one
/// that was just made.
fn put_in_place(
    root: &Path,
    name: &str,
    unpacked: TempDir,
    access: RunFileAccess,
) -> Result<PathBuf, Error> {
    let path = unused(root, name, access)?;
    match fs::rename(unpacked.path(), &path) {
        Ok(()) => {
            // It has another name now, so there is nothing to remove.
            let _ = unpacked.keep();
            Ok(path)
        }
        Err(cause) => {
            let _ = fs::remove_dir(&path);
            Err(Error::writing(&path, &cause))
        }
    }
}

/// An error if the file system of `root` has less free space than this.
fn has_room(root: &Path, bytes: u64) -> Result<(), Error> {
    let Ok(about) = nix::sys::statvfs::statvfs(root) else {
        return Ok(());
    };
    let free = about
        .blocks_available()
        .saturating_mul(about.fragment_size());
    if free >= bytes {
        return Ok(());
    }
    let message = format!(
        "the archive takes {} under {}, where {} are free",
        format_size(bytes),
        root.display(),
        format_size(free)
    );
    Err(Error::new(
        message,
        "remove runs with `stackline runs prune`, or set STACKLINE_RUNS to a directory on another disk",
    ))
}

/// The part of `archive.json` that all forms have.
#[derive(Deserialize)]
struct ArchiveForm {
    archive: u32,
    stackline: String,
}

/// Reads the entries of one archive.
struct Unpacker<'a> {
    archive: &'a Path,
}

type TarEntries<'e> = Entries<'e, GzDecoder<BufReader<File>>>;
type TarEntry<'e> = Entry<'e, GzDecoder<BufReader<File>>>;

impl Unpacker<'_> {
    /// The error that the archive is not as it should be.
    fn wrong(&self, why: &str) -> Error {
        let hint = "get the file again from its source; `stackline archive RUN` makes one";
        Error::input(
            format!(
                "{} is not a sound archive of a run: {why}",
                self.archive.display()
            ),
            hint,
        )
    }

    /// The error that the archive cannot be decompressed, or ends too early.
    fn damaged(&self, cause: &io::Error) -> Error {
        self.wrong("it is damaged or was cut off").because(cause)
    }

    /// The list of files, which is the first entry.
    fn contents(&self, entries: &mut TarEntries<'_>) -> Result<ArchiveContents, Error> {
        let (path, entry) = self.next(entries)?;
        let path = String::from_utf8(path).unwrap_or_default();
        let Some((run, files::ARCHIVE)) = path.split_once('/') else {
            return Err(self.wrong("it does not begin with archive.json"));
        };
        let mut text = String::new();
        let mut entry = entry.take(LARGEST_LIST + 1);
        let read = entry.read_to_string(&mut text);
        read.map_err(|cause| self.damaged(&cause))?;
        if text.len() as u64 > LARGEST_LIST {
            return Err(self.wrong("its list of files is larger than 32 MiB"));
        }
        let unread =
            |cause: serde_json::Error| self.wrong("archive.json cannot be read").because(&cause);
        let form: ArchiveForm = serde_json::from_str(&text).map_err(unread)?;
        if form.archive != FORMAT {
            let ArchiveForm { archive, stackline } = form;
            let message = format!(
                "{} is an archive of form {archive}, written for a run of stackline {stackline:.40}; this version reads form {FORMAT}",
                self.archive.display()
            );
            return Err(Error::input(message, "use a newer version of stackline"));
        }
        let contents: ArchiveContents = serde_json::from_str(&text).map_err(unread)?;
        contents.check().map_err(|why| self.wrong(&why))?;
        if contents.run != run {
            return Err(self.wrong("its entries stand in a directory of another name than its run"));
        }
        Ok(contents)
    }

    /// Unpacks the files of the list, each of which has to be the next entry; without a directory they are only checked.
    fn unpack_files(
        &self,
        entries: &mut TarEntries<'_>,
        contents: &ArchiveContents,
        to: Option<&Path>,
    ) -> Result<(), Error> {
        for file in &contents.files {
            let (path, entry) = self.next(entries)?;
            if path != format!("{}/{}", contents.run, file.name).as_bytes() {
                let found = String::from_utf8_lossy(&path).into_owned();
                return Err(self.wrong(&format!("{found:?} stands where {} should", file.name)));
            }
            if entry.header().entry_size().ok() != Some(file.bytes) {
                return Err(self.wrong(&format!(
                    "{} has another size than its list says",
                    file.name
                )));
            }
            let mut from = DigestReader::new(entry);
            match to {
                Some(directory) => self.unpack(&mut from, &directory.join(&file.name))?,
                None => io::copy(&mut from, &mut io::sink())
                    .map(drop)
                    .map_err(|cause| self.damaged(&cause))?,
            }
            let sum = from.sum();
            if (sum.bytes(), sum.finish()) != (file.bytes, file.sha256.clone()) {
                return Err(self.wrong(&format!(
                    "the digest of {} differs from its list",
                    file.name
                )));
            }
        }
        match entries.next() {
            Some(Ok(_)) => return Err(self.wrong("it has more entries than its list")),
            Some(Err(cause)) => return Err(self.damaged(&cause)),
            None => {}
        }
        // That the run came in an archive, and in which: what runs again may not start programs unasked.
        let Some(directory) = to else { return Ok(()) };
        let list = directory.join(files::ARCHIVE);
        let text = serde_json::to_string_pretty(contents)
            .map_err(|cause| Error::writing(&list, &cause))?;
        crate::replace::replace_inside_with(&list, format!("{text}\n").as_bytes())
    }

    /// Copies an entry to a new file.
    fn unpack(&self, from: &mut impl Read, path: &Path) -> Result<(), Error> {
        let mut file = files::create_within(path).map_err(|cause| Error::writing(path, &cause))?;
        let mut bytes = vec![0; 1 << 16];
        loop {
            let read = match from.read(&mut bytes) {
                Ok(0) => break,
                Err(cause) if cause.kind() == ErrorKind::Interrupted => continue,
                Err(cause) => return Err(self.damaged(&cause)),
                Ok(read) => read,
            };
            io::Write::write_all(&mut file, &bytes[..read])
                .map_err(|cause| Error::write_failed(path, &cause))?;
        }
        file.sync_all()
            .map_err(|cause| Error::writing(path, &cause))
    }

    /// The next regular file and its path. Every other kind of entry is refused, except that a long path stands in an
    /// entry of its own before the file (GNU tar).
    fn next<'e>(&self, entries: &mut TarEntries<'e>) -> Result<(Vec<u8>, TarEntry<'e>), Error> {
        let mut long = None;
        loop {
            let entry = match entries.next() {
                None => return Err(self.wrong("it ends too early")),
                Some(Err(cause)) => return Err(self.damaged(&cause)),
                Some(Ok(entry)) => entry,
            };
            match entry.header().entry_type() {
                EntryType::Regular => {
                    let path = long.unwrap_or_else(|| entry.header().path_bytes().into_owned());
                    return Ok((path, entry));
                }
                EntryType::GNULongName if long.is_none() => {
                    let mut path = Vec::new();
                    let mut entry = entry.take(LONGEST_PATH + 1);
                    entry
                        .read_to_end(&mut path)
                        .map_err(|cause| self.damaged(&cause))?;
                    if path.len() as u64 > LONGEST_PATH {
                        return Err(self.wrong("the path of an entry is too long"));
                    }
                    path.truncate(
                        path.iter()
                            .position(|byte| *byte == 0)
                            .unwrap_or(path.len()),
                    );
                    long = Some(path);
                }
                _ => {
                    let path = entry.header().path_bytes();
                    let path = OsStr::from_bytes(&path).to_string_lossy().into_owned();
                    return Err(self.wrong(&format!("{path:?} is not a regular file")));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
