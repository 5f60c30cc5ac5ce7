//! A directory as one set: first an index, then the bytes of all files, in the order of their paths.
//!
//! The index begins with a line `stackline directory 1 BYTES` of 43 bytes (BYTES in 20 digits: the bytes of the rest of the index). Then
//! follows a line of JSON for each file: `{"path":"a/b","bytes":7,"executable":false}`. The path of an empty directory ends with `/`. Paths
//! are relative and never lead out of the directory. Links, owners and times are not kept.

use super::source_files::{shorter, unread};
use crate::load::BlockSource;
use serde::{Deserialize, Serialize};
use stackline_core::error::{Error, Result};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// The beginning of the first line.
const FIRST: &str = "stackline directory 1 ";
/// The longest file name (`NAME_MAX`), bytes.
const LONGEST_NAME: usize = 255;
/// Bytes of the first line.
const FIRST_LINE: usize = FIRST.len() + 20 + 1;
/// The largest index, bytes: enough for some ten million files.
const LONGEST: u64 = 1 << 30;

/// One line of the index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FolderIndexLine {
    path: String,
    bytes: u64,
    executable: bool,
}

/// A file in a set that is a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderFile {
    /// Its path in the directory.
    pub path: PathBuf,
    /// The offset of its first byte in the set.
    pub at: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Whether it is executable.
    pub executable: bool,
    /// Whether it is an empty directory.
    pub is_directory: bool,
}

/// The length of the whole index, bytes, which the first bytes of a set state; `None` if the set is not a directory.
#[must_use]
pub fn index_bytes(first: &[u8]) -> Option<u64> {
    let line = std::str::from_utf8(first.get(..FIRST_LINE)?).ok()?;
    let length: u64 = line.strip_prefix(FIRST)?.strip_suffix('\n')?.parse().ok()?;
    (length <= LONGEST).then_some(length + FIRST_LINE as u64)
}

/// The files of a set, from its index and its size in bytes.
///
/// # Errors
/// If the index is damaged, or a path leads out of the directory.
pub fn files_of_index(index: &[u8], bytes: u64) -> Result<Vec<FolderFile>> {
    let damaged =
        |what: &str| Error::measurement(format!("the directory index is damaged: {what}"));
    let text = index
        .get(FIRST_LINE..)
        .and_then(|rest| std::str::from_utf8(rest).ok());
    let mut at = index.len() as u64;
    let mut parts = Vec::new();
    for line in text.ok_or_else(|| damaged("it is not text"))?.lines() {
        let line: FolderIndexLine =
            serde_json::from_str(line).map_err(|error| damaged(&error.to_string()))?;
        // Anybody may have loaded the set: its paths must not lead elsewhere.
        let path = Path::new(&line.path);
        let plain = path
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if line.path.is_empty() || !plain {
            return Err(damaged(&format!("{} escapes the directory", line.path)));
        }
        if line
            .path
            .split('/')
            .any(|name| name.len() > LONGEST_NAME || name.contains('\0'))
        {
            return Err(damaged(&format!("{} is not a valid file name", line.path)));
        }
        let (is_directory, executable, bytes) =
            (line.path.ends_with('/'), line.executable, line.bytes);
        parts.push(FolderFile {
            path: path.into(),
            at,
            bytes,
            executable,
            is_directory,
        });
        at = at
            .checked_add(bytes)
            .ok_or_else(|| damaged("its sizes overflow"))?;
    }
    if at != bytes {
        return Err(damaged(
            "the sizes of its files do not add up to the size of the set",
        ));
    }
    let mut sorted: Vec<&FolderFile> = parts.iter().collect();
    // Paths are ordered by components: what is in a directory comes right behind it.
    sorted.sort_by(|a, b| a.path.cmp(&b.path));
    for two in sorted.windows(2) {
        let (first, second) = (&two[0].path, &two[1].path);
        if first == second {
            return Err(damaged(&format!("{} occurs twice", first.display())));
        }
        if second.starts_with(first) && !two[0].is_directory {
            return Err(damaged(&format!(
                "{} is both a file and a directory",
                first.display()
            )));
        }
    }
    Ok(parts)
}

/// A directory that is being loaded.
pub(crate) struct Folder {
    index: Vec<u8>,
    /// For each file its offset in the set, its length in bytes, and its path on this machine.
    files: Vec<(u64, u64, PathBuf)>,
    bytes: u64,
    block: u32,
    /// The file that was read last, with its index.
    open: Option<(usize, File)>,
}

impl Folder {
    /// Opens several files and directories with their contents; a single directory becomes the set itself. Also returns a note about what
    /// is left out.
    pub(crate) fn open(names: &[String], block: u32) -> Result<(Self, Option<String>)> {
        let mut found = FolderContents::default();
        for name in names {
            let path = Path::new(name);
            if path
                .metadata()
                .map_err(|error| unread(path, &error))?
                .is_dir()
            {
                let inside = if names.len() == 1 {
                    PathBuf::new()
                } else {
                    last(path)?
                };
                found.directory(path, &inside)?;
            } else {
                found.file(path, &last(path)?)?;
            }
        }
        found.files.sort_by(|a, b| a.0.path.cmp(&b.0.path));
        if let Some(pair) = found
            .files
            .windows(2)
            .find(|pair| pair[0].0.path == pair[1].0.path)
        {
            let message = format!("two sources have the name {}", pair[0].0.path);
            return Err(Error::input(message)
                .hint("load them as two sets, or load the directory that contains both"));
        }
        let note = match found.left_out {
            0 => None,
            1 => Some("note: 1 link or special file was skipped".to_owned()),
            count => Some(format!(
                "note: {count} links and special files were skipped"
            )),
        };
        Ok((Self::new(found.files, block)?, note))
    }

    fn new(found: Vec<(FolderIndexLine, PathBuf)>, block: u32) -> Result<Self> {
        let mut lines = String::new();
        for (line, _) in &found {
            lines +=
                &serde_json::to_string(line).map_err(|error| Error::input(error.to_string()))?;
            lines.push('\n');
        }
        if lines.len() as u64 > LONGEST {
            return Err(Error::input("a set cannot hold this many files")
                .hint("load its parts as separate sets"));
        }
        let index = format!("{FIRST}{:020}\n{lines}", lines.len()).into_bytes();
        let mut bytes = index.len() as u64;
        let mut files = Vec::new();
        for (line, path) in found {
            files.push((bytes, line.bytes, path));
            bytes += line.bytes;
        }
        Ok(Self {
            index,
            files,
            bytes,
            block,
            open: None,
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads from the set's byte `at` on, from the index or one file. Returns how many bytes.
    fn read(&mut self, at: u64, into: &mut [u8]) -> Result<usize> {
        if let Some(rest) = self
            .index
            .get(usize::try_from(at).unwrap_or(usize::MAX)..)
            .filter(|rest| !rest.is_empty())
        {
            let count = rest.len().min(into.len());
            into[..count].copy_from_slice(&rest[..count]);
            return Ok(count);
        }
        let which = self
            .files
            .partition_point(|(begins, bytes, _)| begins + bytes <= at);
        // `block` asks for no byte beyond the last file.
        let (begins, bytes, path) = &self.files[which];
        let count = usize::try_from(begins + bytes - at)
            .unwrap_or(usize::MAX)
            .min(into.len());
        if self.open.as_ref().is_none_or(|(open, _)| *open != which) {
            self.open = Some((
                which,
                File::open(path).map_err(|error| unread(path, &error))?,
            ));
        }
        let Some((_, file)) = &self.open else {
            return Err(shorter(path));
        };
        file.read_exact_at(&mut into[..count], at - begins)
            .map_err(|error| unread(path, &error))?;
        Ok(count)
    }
}

impl BlockSource for Folder {
    fn block(&mut self, number: u64, into: &mut Vec<u8>) -> Result<()> {
        let mut at = number * u64::from(self.block);
        into.resize(
            usize::try_from(self.bytes.saturating_sub(at).min(self.block.into())).unwrap_or(0),
            0,
        );
        let mut done = 0;
        while done < into.len() {
            let count = self.read(at, &mut into[done..])?;
            (done, at) = (done + count, at + count as u64);
        }
        Ok(())
    }
}

/// The last component of a source's path: its name among several sources.
fn last(path: &Path) -> Result<PathBuf> {
    let name = path
        .canonicalize()
        .ok()
        .and_then(|path| path.file_name().map(PathBuf::from));
    name.ok_or_else(|| Error::input(format!("{} has no name", path.display())))
}

#[derive(Default)]
struct FolderContents {
    files: Vec<(FolderIndexLine, PathBuf)>,
    left_out: u64,
}

impl FolderContents {
    fn directory(&mut self, path: &Path, inside: &Path) -> Result<()> {
        let mut entries = fs::read_dir(path).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
        let entries = entries.as_mut().map_err(|error| unread(path, error))?;
        if entries.is_empty() && inside != Path::new("") {
            let line = FolderIndexLine {
                path: text(inside)? + "/",
                bytes: 0,
                executable: false,
            };
            self.files.push((line, path.into()));
        }
        for entry in entries.iter() {
            let (path, inside) = (entry.path(), inside.join(entry.file_name()));
            let kind = entry.file_type().map_err(|error| unread(&path, &error))?;
            if kind.is_dir() {
                self.directory(&path, &inside)?;
            } else if kind.is_file() {
                self.file(&path, &inside)?;
            } else {
                self.left_out += 1;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, inside: &Path) -> Result<()> {
        let metadata = path.metadata().map_err(|error| unread(path, &error))?;
        if !metadata.is_file() {
            return Err(Error::input(format!(
                "{} is not a file or directory",
                path.display()
            )));
        }
        let executable = metadata.permissions().mode() & 0o100 != 0;
        self.files.push((
            FolderIndexLine {
                path: text(inside)?,
                bytes: metadata.len(),
                executable,
            },
            path.into(),
        ));
        Ok(())
    }
}

fn text(path: &Path) -> Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        let message = format!(
            "the name {} is not UTF-8 and cannot be stored",
            path.display()
        );
        Error::input(message).hint("rename it, or load an archive of the directory")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &Path) -> Vec<String> {
        vec![path.to_str().unwrap().to_owned()]
    }

    fn whole(folder: &mut Folder) -> Vec<u8> {
        let mut all = Vec::new();
        for number in 0..folder.bytes.div_ceil(folder.block.into()) {
            let mut block = Vec::new();
            folder.block(number, &mut block).unwrap();
            all.extend(block);
        }
        all
    }

    #[test]
    fn an_index_says_where_each_file_is() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir_all(at("b/empty")).unwrap();
        fs::write(at("b/long"), vec![7; 3000]).unwrap();
        fs::write(at("a"), "first").unwrap();
        fs::write(at("z"), "").unwrap();
        std::os::unix::fs::symlink("a", at("link")).unwrap();
        let (mut folder, note) = Folder::open(&names(directory.path()), 512).unwrap();
        assert!(note.unwrap().contains("1 link"));
        let all = whole(&mut folder);
        let index = index_bytes(&all).unwrap();
        let parts = files_of_index(&all[..index as usize], all.len() as u64).unwrap();
        let shown: Vec<_> = parts
            .iter()
            .map(|part| (part.path.to_str().unwrap(), part.bytes, part.is_directory))
            .collect();
        assert_eq!(
            shown,
            [
                ("a", 5, false),
                ("b/empty/", 0, true),
                ("b/long", 3000, false),
                ("z", 0, false)
            ]
        );
        assert_eq!(&all[parts[0].at as usize..][..5], b"first");
        assert_eq!(all[parts[2].at as usize..], [7; 3000]);
    }

    #[test]
    fn an_index_that_leads_elsewhere_is_refused() {
        for path in ["../x", "/etc/x", "a/../../x", "", "a/./../../x"] {
            let line = serde_json::to_string(&FolderIndexLine {
                path: path.into(),
                bytes: 0,
                executable: false,
            })
            .unwrap()
                + "\n";
            let index = format!("{FIRST}{:020}\n{line}", line.len());
            assert_eq!(index_bytes(index.as_bytes()), Some(index.len() as u64));
            assert!(
                files_of_index(index.as_bytes(), index.len() as u64).is_err(),
                "{path}"
            );
        }
        assert_eq!(
            index_bytes(b"stackline directory 1 99999999999999999999\n"),
            None
        );
        assert_eq!(index_bytes(b"stackline directory 1 12"), None);
    }

    #[test]
    fn sizes_that_are_not_those_of_the_set_are_refused() {
        let line = "{\"path\":\"a\",\"bytes\":5,\"executable\":false}\n";
        let index = format!("{FIRST}{:020}\n{line}", line.len());
        let size = index.len() as u64;
        assert!(files_of_index(index.as_bytes(), size + 5).is_ok());
        assert!(files_of_index(index.as_bytes(), size + 4).is_err());
    }
}
