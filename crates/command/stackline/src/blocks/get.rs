//! `blocks get`: reads a set back, each block checked, into a file, into a directory that was loaded, or into nothing.

use super::{folder, interruptible, progress_bar, tile};
use crate::exit::{Error, Exit, Result};
use crate::flags::BlocksGet;
use crate::output;
use crate::run::listen_for_ctrl_c;
use indicatif::ProgressBar;
use stackline_blockserver::client::{BlockClient, BlockClientOptions, OpenSet};
use stackline_blockserver::range_read::range_while;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A set that is read.
struct BlockSetReader {
    client: BlockClient,
    set: OpenSet,
    bar: ProgressBar,
    interrupted: Arc<AtomicBool>,
}

/// Reads a set, a part of it, or one tile.
pub(super) fn get(flags: &BlocksGet) -> Result {
    let interrupted = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&interrupted])?;
    let (master, name) = (flags.at.master.clone(), flags.set.clone());
    // A master that says nothing is not waited for by whoever wants to end it.
    let (client, set) = interruptible::run_interruptible(
        &interrupted,
        "the read was ended before it was done",
        move || {
            let client = BlockClient::connect(&master, BlockClientOptions::default())?;
            let set = client.open(&name)?;
            Ok((client, set))
        },
    )?;
    let bar = progress_bar::create_byte_bar(0, "");
    let reading = BlockSetReader {
        client,
        set,
        bar,
        interrupted,
    };
    let result = reading.get(flags);
    reading.bar.finish_and_clear();
    reading
        .client
        .notes()
        .iter()
        .for_each(|note| output::say(&format!("note: {note}")));
    output::print(&result?)?;
    Ok(Exit::Done)
}

impl BlockSetReader {
    fn get(&self, flags: &BlocksGet) -> Result<String> {
        let (name, blocks) = (&self.set.about.name, self.set.about.blocks());
        let numbers = match (flags.tile, flags.blocks) {
            (Some(which), _) => {
                tile::find_tile_block(&self.set.about, which).map(|number| number..number + 1)?
            }
            (None, Some((first, last))) if last < blocks => first..last + 1,
            (None, Some((_, last))) => {
                let error = Error::input(format!("the set {name} has no block {last}"));
                return Err(error.hint(format!("its blocks are 0..{}", blocks - 1)));
            }
            (None, None) => 0..blocks,
        };
        let bytes = self.bytes_before(numbers.end) - self.bytes_before(numbers.start);
        self.bar.set_length(bytes);
        self.bar.set_message(name.clone());
        let clock = progress_bar::start_clock();
        let count = numbers.end - numbers.start;
        let index = match flags.output.is_some() && flags.tile.is_none() && flags.blocks.is_none() {
            // Whoever cannot read the index is told of all blocks that cannot be read.
            true => self
                .index()
                .or_else(|error| self.read(numbers.clone(), |_, _| Ok(())).and(Err(error)))?,
            false => None,
        };
        let to = match (&flags.output, index) {
            (None, _) => {
                self.read(numbers, |_, _| Ok(()))?;
                String::new()
            }
            (Some(path), _) if flags.tile.is_some() => {
                let mut pixels = Vec::new();
                self.read(numbers, |_, data| {
                    pixels = data;
                    Ok(())
                })?;
                output::file(path, tile::encode_png(&self.set.about, &pixels)?)?;
                format!(" to {}", path.display())
            }
            (Some(path), Some(index)) => {
                self.directory(path, &index, numbers)?;
                format!(" to {}", path.display())
            }
            (Some(path), None) => {
                let path = if path.is_dir() {
                    path.join(name)
                } else {
                    path.clone()
                };
                self.file(&path, numbers, bytes)?;
                format!(" to {}", path.display())
            }
        };
        Ok(format!(
            "read {name}: {}{to}\n",
            progress_bar::describe_throughput(count, bytes, clock())
        ))
    }

    /// Bytes of the blocks before that one.
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
        let goes_on = || !self.interrupted.load(Ordering::Relaxed);
        range_while(&self.client, &self.set, numbers, goes_on, |number, data| {
            self.bar.inc(data.len() as u64);
            take(number, data)
        })
    }

    /// Writes blocks where they belong in a file, in whatever order they come; the first one at its beginning.
    fn file(&self, path: &Path, numbers: Range<u64>, bytes: u64) -> Result<()> {
        let before = self.bytes_before(numbers.start);
        output::file_by(path, |file| {
            let failed = |error: std::io::Error| unwritten(path, &error);
            if file.metadata().is_ok_and(|metadata| metadata.is_file()) {
                file.set_len(bytes).map_err(failed)?;
            }
            self.read(numbers, |number, data| {
                file.write_all_at(&data, self.bytes_before(number) - before)
                    .map_err(failed)
            })
        })
    }

    /// The index of a set that is a directory.
    fn index(&self) -> Result<Option<Vec<u8>>> {
        if self.set.about.picture.is_some() {
            return Ok(None);
        }
        let first = self.some(0..1)?;
        let Some(length) =
            folder::index_bytes(&first).filter(|length| *length <= self.set.about.bytes)
        else {
            return Ok(None);
        };
        let mut index = self.some(0..length.div_ceil(self.set.about.block_size.into()))?;
        index.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        Ok(Some(index))
    }

    /// A few blocks in memory; they are not counted.
    fn some(&self, numbers: Range<u64>) -> Result<Vec<u8>> {
        let bytes = self.bytes_before(numbers.end) - self.bytes_before(numbers.start);
        let before = self.bytes_before(numbers.start);
        let mut all = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
        let goes_on = || !self.interrupted.load(Ordering::Relaxed);
        range_while(&self.client, &self.set, numbers, goes_on, |number, data| {
            let at = (self.bytes_before(number) - before) as usize;
            all[at..at + data.len()].copy_from_slice(&data);
            Ok(())
        })?;
        Ok(all)
    }

    /// Makes a directory again, whole or not at all: beside its place, then moved there.
    fn directory(&self, path: &Path, index: &[u8], numbers: Range<u64>) -> Result<()> {
        let parts = folder::parts(index, self.set.about.bytes)?;
        let failed = |error: std::io::Error| unwritten(path, &error);
        let is_empty = fs::read_dir(path).map(|mut entries| entries.next().is_none());
        if path.symlink_metadata().is_ok() && !is_empty.unwrap_or(false) {
            let error = Error::input(format!(
                "{} is there already, and the set is a directory",
                path.display()
            ));
            return Err(error.hint("-o names a directory that is not there yet, or an empty one"));
        }
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
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
        fs::rename(making.path(), path).map_err(failed)?;
        let _ = making.keep();
        Ok(())
    }
}

/// The files of a directory while they are filled.
struct FolderFileWriter {
    root: PathBuf,
    parts: Vec<folder::FolderFile>,
    /// The file that was written last.
    open: Option<(usize, File)>,
}

impl FolderFileWriter {
    /// All files, as long as they will be, in directories of their own.
    fn make(root: &Path, parts: Vec<folder::FolderFile>) -> std::io::Result<Self> {
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

    /// Writes bytes of the set, from its byte `at` on, into the files that they are of.
    fn put(&mut self, mut at: u64, mut data: &[u8]) -> std::io::Result<()> {
        let mut which = self
            .parts
            .partition_point(|part| part.at + part.bytes <= at);
        while let Some(part) = self.parts.get(which).filter(|_| !data.is_empty()) {
            if at < part.at {
                // The index.
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
        // Blocks come in any order.
        ErrorKind::NotSeekable => {
            Error::input(format!("{} cannot be written at any place", path.display()))
                .hint("-o names a file, not a pipe")
        }
        _ => output::unwritten(path.display(), error),
    }
}
