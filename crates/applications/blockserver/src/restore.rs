//! Reads a set, or a part of it, with all checksums compared: into a file, into a directory if one was loaded, or only to check it.

use crate::block_source::{FolderFile, files_of_index, index_bytes};
use crate::client::{BlockClient, OpenSet};
use crate::range_read::range_while;
use crate::tile;
use stackline_blocks::pyramid::Tile;
use stackline_core::error::{Error, Result};
use stackline_runs::{write_file, write_file_by};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The part of a set that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetPart {
    /// The whole set; a directory that was loaded is restored.
    Whole,
    /// The blocks from one number to another, both included.
    Blocks(u64, u64),
    /// One tile of a picture.
    Tile(Tile),
}

/// Reads parts of an open set.
pub struct SetReader<'r> {
    client: &'r BlockClient,
    set: &'r OpenSet,
    /// Called with the bytes of each block that came.
    came: &'r dyn Fn(u64),
    /// Whether to continue.
    goes_on: &'r dyn Fn() -> bool,
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetRead {
    /// The number of blocks.
    pub blocks: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// Where they were written, if they were.
    pub at: Option<PathBuf>,
}

impl<'r> SetReader<'r> {
    /// A reader that calls `came` with the bytes of each block, and continues while `goes_on` returns true.
    #[must_use]
    pub fn new(
        client: &'r BlockClient,
        set: &'r OpenSet,
        came: &'r dyn Fn(u64),
        goes_on: &'r dyn Fn() -> bool,
    ) -> Self {
        Self {
            client,
            set,
            came,
            goes_on,
        }
    }

    /// The numbers of the blocks of a part.
    ///
    /// # Errors
    /// If the set does not have them.
    pub fn numbers(&self, part: SetPart) -> Result<Range<u64>> {
        let blocks = self.set.about.blocks();
        match part {
            SetPart::Tile(tile) => {
                tile::find_tile_block(&self.set.about, tile).map(|number| number..number + 1)
            }
            SetPart::Blocks(first, last) if last < blocks => Ok(first..last + 1),
            SetPart::Blocks(_, last) => {
                let name = &self.set.about.name;
                let error = Error::input(format!("the set {name} has no block {last}"));
                Err(error.hint(format!("its blocks are 0..{}", blocks - 1)))
            }
            SetPart::Whole => Ok(0..blocks),
        }
    }

    /// Bytes of these blocks together.
    #[must_use]
    pub fn bytes_of(&self, numbers: &Range<u64>) -> u64 {
        self.bytes_before(numbers.end) - self.bytes_before(numbers.start)
    }

    /// Reads a part into a file, or into a directory if one was loaded. Without `output` nothing is written.
    ///
    /// # Errors
    /// If blocks cannot be read, or the output cannot be written.
    pub fn save(&self, part: SetPart, output: Option<&Path>) -> Result<SetRead> {
        let numbers = self.numbers(part)?;
        let (blocks, bytes) = (numbers.end - numbers.start, self.bytes_of(&numbers));
        let at = match output {
            None => {
                self.read(numbers, |_, _| Ok(()))?;
                None
            }
            Some(path) => Some(self.save_at(part, numbers, path)?),
        };
        Ok(SetRead { blocks, bytes, at })
    }

    /// Writes a part to `path`. Returns the path that was written.
    fn save_at(&self, part: SetPart, numbers: Range<u64>, path: &Path) -> Result<PathBuf> {
        if let SetPart::Tile(_) = part {
            let mut pixels = Vec::new();
            self.read(numbers, |_, data| {
                pixels = data;
                Ok(())
            })?;
            write_file(path, tile::png_of(&self.set.about, &pixels)?)?;
            return Ok(path.to_owned());
        }
        // If the index cannot be read, all blocks are read, so that the error names every block that cannot be read.
        let index = match part {
            SetPart::Whole => self
                .index()
                .or_else(|error| self.read(numbers.clone(), |_, _| Ok(())).and(Err(error)))?,
            _ => None,
        };
        if let Some(index) = index {
            self.directory(path, &index, numbers)?;
            return Ok(path.to_owned());
        }
        let path = match path.is_dir() {
            true => path.join(&self.set.about.name),
            false => path.to_owned(),
        };
        let bytes = self.bytes_of(&numbers);
        self.file(&path, numbers, bytes)?;
        Ok(path)
    }

    /// Bytes of all blocks before that one.
    fn bytes_before(&self, number: u64) -> u64 {
        self.set
            .about
            .bytes
            .min(number.saturating_mul(self.set.about.block_size.into()))
    }

    fn read(
        &self,
        numbers: Range<u64>,
        mut take: impl FnMut(u64, Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        range_while(
            self.client,
            self.set,
            numbers,
            self.goes_on,
            |number, data| {
                (self.came)(data.len() as u64);
                take(number, data)
            },
        )
    }

    /// Writes blocks into a file at their positions, in the order in which they come; the first of `numbers` is at the beginning.
    fn file(&self, path: &Path, numbers: Range<u64>, bytes: u64) -> Result<()> {
        let before = self.bytes_before(numbers.start);
        write_file_by(path, |file| {
            let failed = |error: std::io::Error| unwritten(path, &error);
            // A device does not take a length.
            if file.metadata().is_ok_and(|metadata| metadata.is_file()) {
                file.set_len(bytes).map_err(failed)?;
            }
            self.read(numbers, |number, data| {
                file.write_all_at(&data, self.bytes_before(number) - before)
                    .map_err(failed)
            })
        })
    }

    /// The index of the set if it is a directory, otherwise `None`.
    fn index(&self) -> Result<Option<Vec<u8>>> {
        if self.set.about.picture.is_some() {
            return Ok(None);
        }
        let first = self.some(0..1)?;
        let Some(length) = index_bytes(&first).filter(|length| *length <= self.set.about.bytes)
        else {
            return Ok(None);
        };
        let mut index = self.some(0..length.div_ceil(self.set.about.block_size.into()))?;
        index.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        Ok(Some(index))
    }

    /// Reads a few blocks into memory, without calling `came`.
    fn some(&self, numbers: Range<u64>) -> Result<Vec<u8>> {
        let (bytes, before) = (self.bytes_of(&numbers), self.bytes_before(numbers.start));
        let mut all = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
        range_while(
            self.client,
            self.set,
            numbers,
            self.goes_on,
            |number, data| {
                let at = (self.bytes_before(number) - before) as usize;
                all[at..at + data.len()].copy_from_slice(&data);
                Ok(())
            },
        )?;
        Ok(all)
    }

    /// Restores a directory completely or not at all: it is built beside its final place and then renamed.
    fn directory(&self, path: &Path, index: &[u8], numbers: Range<u64>) -> Result<()> {
        let parts = files_of_index(index, self.set.about.bytes)?;
        let failed = |error: std::io::Error| unwritten(path, &error);
        let is_empty = fs::read_dir(path).map(|mut entries| entries.next().is_none());
        if path.symlink_metadata().is_ok() && !is_empty.unwrap_or(false) {
            let error = Error::input(format!(
                "{} already exists and is not an empty directory",
                path.display()
            ));
            return Err(error.hint("name a new or empty directory with -o"));
        }
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        // Beside its final place: a rename does not cross file systems.
        let making = tempfile::Builder::new()
            .prefix(".blocks-")
            .tempdir_in(parent)
            .map_err(failed)?;
        let mut parts = FolderFileWriter::make(making.path(), parts).map_err(failed)?;
        self.read(numbers, |number, data| {
            parts.put(self.bytes_before(number), &data).map_err(failed)
        })?;
        drop(parts);
        fs::set_permissions(making.path(), Permissions::from_mode(0o755)).map_err(failed)?;
        // It replaces an empty directory (rename(2)).
        fs::rename(making.path(), path).map_err(failed)?;
        // Nothing is left under the old name to be removed.
        let _ = making.keep();
        Ok(())
    }
}

/// Writes the files of a directory while their blocks come.
struct FolderFileWriter {
    root: PathBuf,
    parts: Vec<FolderFile>,
    /// The file that was written last, with its index.
    open: Option<(usize, File)>,
}

impl FolderFileWriter {
    /// Creates all files with their final sizes, and the directories that they are in.
    fn make(root: &Path, parts: Vec<FolderFile>) -> std::io::Result<Self> {
        for part in &parts {
            let path = root.join(&part.path);
            if part.is_directory {
                fs::create_dir_all(&path)?;
                continue;
            }
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&path)?;
            file.set_len(part.bytes)?;
            if part.executable {
                // Who may read it may execute it: so the umask counts for both.
                let mode = file.metadata()?.permissions().mode();
                file.set_permissions(Permissions::from_mode(mode | (mode & 0o444) >> 2))?;
            }
        }
        Ok(Self {
            root: root.into(),
            parts,
            open: None,
        })
    }

    /// Writes bytes of the set, from its byte `at` on, into the files to which they belong.
    fn put(&mut self, mut at: u64, mut data: &[u8]) -> std::io::Result<()> {
        let mut which = self
            .parts
            .partition_point(|part| part.at + part.bytes <= at);
        while let Some(part) = self.parts.get(which).filter(|_| !data.is_empty()) {
            if at < part.at {
                // These bytes belong to the index.
                let skipped = usize::try_from(part.at - at)
                    .unwrap_or(usize::MAX)
                    .min(data.len());
                (at, data) = (at + skipped as u64, &data[skipped..]);
                continue;
            }
            let count = usize::try_from(part.at + part.bytes - at)
                .unwrap_or(usize::MAX)
                .min(data.len());
            if count > 0 {
                if self.open.as_ref().is_none_or(|(open, _)| *open != which) {
                    let path = self.root.join(&part.path);
                    self.open = Some((which, OpenOptions::new().write(true).open(path)?));
                }
                if let Some((_, file)) = &self.open {
                    file.write_all_at(&data[..count], at - part.at)?;
                }
            }
            (at, data, which) = (at + count as u64, &data[count..], which + 1);
        }
        Ok(())
    }
}

fn unwritten(path: &Path, error: &std::io::Error) -> Error {
    match error.kind() {
        // Blocks come in any order, so the output has to be seekable.
        ErrorKind::NotSeekable => Error::input(format!(
            "cannot write to {} at arbitrary positions",
            path.display()
        ))
        .hint("name a file with -o, not a pipe"),
        _ => stackline_runs::unwritten(path.display(), error),
    }
}
