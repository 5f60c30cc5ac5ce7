//! A disk: a file of blocks in a directory, a plain file, or a block device. It begins with a page that says whose it is.
//!
//! Nothing outside of it can be named by anybody: places are offsets in this one file, checked against its size.

use crate::buffer::Buffer;
use nix::fcntl::OFlag;
use stackline_blocks::server::Spot;
use stackline_blocks::wire::data::Disk as About;
use stackline_blocks::wire::message::Why;
use stackline_core::error::{Error, Result};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The first bytes of a disk.
const MAGIC: &[u8; 16] = b"stackline blocks";
/// What precedes the blocks.
const FIRST: u64 = stackline_blocks::master::ALIGNMENT;
/// The file in a directory.
const NAME: &str = "stackline.blocks";

/// A disk.
#[derive(Debug)]
pub struct Disk {
    /// Nothing of a disk that was not there when its server started.
    files: Option<Files>,
    path: PathBuf,
    file_path: PathBuf,
    /// 0 of one that was not there.
    identity: u128,
    capacity: u64,
}

#[derive(Debug)]
struct Files {
    /// What is read and written.
    data: File,
    /// What holds the lock: another server cannot have the same disk.
    locked: File,
}

impl Disk {
    /// Opens a disk, or makes an empty file one. `direct`: past the system's page cache. `size`: bytes it may take; of
    /// a directory all that is free unless it is given.
    ///
    /// # Errors
    /// When it cannot be opened, or holds something else.
    pub fn open(path: &Path, direct: bool, size: Option<u64>) -> Result<Self> {
        let failed = |error: io::Error| {
            let error = Error::environment(format!("the disk {} cannot be used: {error}", path.display()));
            error.hint("a disk is a directory, a file or a block device that this user may write")
        };
        let metadata = fs::metadata(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => failed(error).hint("make it first: a directory, or an empty file"),
            _ => failed(error),
        })?;
        let file_path = if metadata.is_dir() { path.join(NAME) } else { path.to_owned() };
        let is_device = metadata.file_type().is_block_device();
        if !metadata.is_dir() && !metadata.is_file() && !is_device {
            let error = Error::input(format!("{} is no directory, file or block device", path.display()));
            return Err(error.hint("--disk PATH names one"));
        }
        let plain =
            OpenOptions::new().read(true).write(true).create(metadata.is_dir()).truncate(false).open(&file_path);
        let plain = plain.map_err(failed)?;
        plain.try_lock().map_err(|_| {
            let error = Error::input(format!("another server has the disk {}", path.display()));
            error.hint("each server has disks of its own")
        })?;
        let identity = identity(&plain, &file_path, is_device)?;
        let capacity = match size {
            Some(size) => size,
            None if is_device => device_size(&plain).map_err(failed)?,
            None => free(path).map_err(failed)? + allocated(&plain).map_err(failed)?,
        };
        let data = if direct {
            let opened =
                OpenOptions::new().read(true).write(true).custom_flags(OFlag::O_DIRECT.bits()).open(&file_path);
            opened.map_err(|error| {
                let error = Error::environment(format!("{} has no direct reads: {error}", file_path.display()));
                error.hint("leave --direct out, or name a disk on another file system")
            })?
        } else {
            plain.try_clone().map_err(failed)?
        };
        let files = Some(Files { data, locked: plain });
        Ok(Self { files, path: path.to_owned(), file_path, identity, capacity })
    }

    /// One that is not there: it keeps its place among the disks of a server, which serves the others without it.
    #[must_use]
    pub fn missing(path: &Path) -> Self {
        Self { files: None, path: path.to_owned(), file_path: path.to_owned(), identity: 0, capacity: 0 }
    }

    /// What the master is told of it.
    #[must_use]
    pub fn about(&self) -> About {
        let mut path = self.path.display().to_string();
        path.truncate(path.floor_char_boundary(200));
        About { identity: self.identity, path, capacity: self.capacity, used: 0, up: self.is_there(), damaged: 0 }
    }

    /// Whether a place may be there.
    #[must_use]
    pub const fn holds(&self, spot: &Spot) -> bool {
        spot.offset >= FIRST && spot.offset.saturating_add(spot.length as u64) <= self.capacity
    }

    /// Whether it is still there, and the one that was opened.
    #[must_use]
    pub fn is_there(&self) -> bool {
        let Some(files) = &self.files else { return false };
        let (now, then) = (fs::metadata(&self.file_path), files.locked.metadata());
        matches!((now, then), (Ok(now), Ok(then)) if (now.dev(), now.ino()) == (then.dev(), then.ino()))
    }

    /// Reads a block.
    ///
    /// # Errors
    /// [`Why::Disk`] when it cannot be read, [`Why::Corrupt`] when it is not what was written.
    pub fn read(&self, spot: &Spot, checksum: u32, buffer: &mut Buffer) -> Result<(), Why> {
        let files = self.files.as_ref().ok_or(Why::Disk)?;
        if !self.holds(spot) {
            return Err(Why::NoBlock);
        }
        let wanted = spot.length as usize;
        let mut done = 0;
        let pages = buffer.pages(wanted);
        while done < wanted {
            match files.data.read_at(&mut pages[done..], spot.offset + done as u64) {
                Ok(0) => return Err(Why::Corrupt),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Why::Disk),
            }
        }
        if crc32fast::hash(&pages[..wanted]) == checksum { Ok(()) } else { Err(Why::Corrupt) }
    }

    /// Writes a block; [`Disk::sync`] makes it last.
    ///
    /// # Errors
    /// [`Why::Full`] or [`Why::Disk`].
    pub fn write(&self, spot: &Spot, buffer: &mut Buffer) -> Result<(), Why> {
        let files = self.files.as_ref().ok_or(Why::Disk)?;
        if !self.holds(spot) {
            return Err(Why::NoBlock);
        }
        // Whole pages, as direct writes want them: the place is rounded up to pages too.
        let pages = buffer.pages(spot.length as usize);
        files.data.write_all_at(pages, spot.offset).map_err(|error| match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Why::Full,
            _ => Why::Disk,
        })
    }

    /// What was written outlasts the machine when this returns.
    ///
    /// # Errors
    /// [`Why::Disk`], also where the disk's name is gone: a file that nobody can open again keeps nothing.
    pub fn sync(&self) -> Result<(), Why> {
        let files = self.files.as_ref().ok_or(Why::Disk)?;
        files.data.sync_data().map_err(|_| Why::Disk)?;
        if self.is_there() { Ok(()) } else { Err(Why::Disk) }
    }
}

/// The identity of a disk; an empty one gets one.
fn identity(file: &File, path: &Path, is_device: bool) -> Result<u128> {
    let failed = |error: io::Error| Error::environment(format!("the disk {}: {error}", path.display()));
    let mut page = [0; 32];
    let filled = read_up_to(file, &mut page).map_err(failed)?;
    if filled == page.len() && page.starts_with(MAGIC) {
        return Ok(u128::from_be_bytes(page[16..].try_into().unwrap_or_default()));
    }
    if filled > 0 && page[..filled].iter().any(|byte| *byte != 0) {
        let error = Error::input(format!("{} holds something else than blocks", path.display()));
        return Err(error.hint(if is_device {
            "a new disk begins with zeros: `wipefs` shows what is on it; nothing was written"
        } else {
            "name an empty file, or a directory; nothing was written"
        }));
    }
    let identity = crate::key::number().map_err(failed)?;
    let mut page = vec![0; FIRST as usize];
    page[..16].copy_from_slice(MAGIC);
    page[16..32].copy_from_slice(&identity.to_be_bytes());
    file.write_all_at(&page, 0).and_then(|()| file.sync_all()).map_err(failed)?;
    Ok(identity)
}

fn read_up_to(file: &File, page: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < page.len() {
        match file.read_at(&mut page[filled..], filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

fn free(path: &Path) -> io::Result<u64> {
    let directory = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("/")) };
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let free = nix::sys::statvfs::statvfs(directory)?;
    Ok(free.blocks_available() * free.fragment_size())
}

fn allocated(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.blocks() * 512)
}

fn device_size(file: &File) -> io::Result<u64> {
    use std::io::Seek;
    let mut file = file.try_clone()?;
    file.seek(io::SeekFrom::End(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(offset: u64, length: u32) -> Spot {
        Spot { disk: 0, offset, length }
    }

    fn buffer(data: &[u8]) -> Buffer {
        let mut buffer = Buffer::default();
        buffer.pages(data.len())[..data.len()].copy_from_slice(data);
        buffer
    }

    #[test]
    fn blocks_come_back_and_damage_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        let disk = Disk::open(directory.path(), false, Some(1 << 20)).unwrap();
        let data: Vec<u8> = (0..5000).map(|n| n as u8).collect();
        disk.write(&spot(8192, 5000), &mut buffer(&data)).unwrap();
        let mut back = Buffer::default();
        disk.read(&spot(8192, 5000), crc32fast::hash(&data), &mut back).unwrap();
        assert_eq!(&back.pages(5000)[..5000], &data[..]);
        OpenOptions::new().write(true).open(directory.path().join(NAME)).unwrap().write_at(b"x", 8200).unwrap();
        assert_eq!(disk.read(&spot(8192, 5000), crc32fast::hash(&data), &mut back), Err(Why::Corrupt));
    }

    #[test]
    fn nothing_beside_the_blocks_can_be_read() {
        let directory = tempfile::tempdir().unwrap();
        let disk = Disk::open(directory.path(), false, Some(1 << 20)).unwrap();
        let mut buffer = Buffer::default();
        for place in [spot(0, 16), spot(4095, 1), spot(1 << 20, 1), spot(u64::MAX, 512), spot((1 << 20) - 1, 512)] {
            assert_eq!(disk.read(&place, 0, &mut buffer), Err(Why::NoBlock), "{place:?}");
            assert_eq!(disk.write(&place, &mut buffer), Err(Why::NoBlock), "{place:?}");
        }
    }

    #[test]
    fn a_disk_keeps_its_identity_and_has_one_server() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("disk");
        fs::write(&file, b"").unwrap();
        let first = Disk::open(&file, false, None).unwrap();
        let second = Disk::open(&file, false, None).unwrap_err();
        assert!(second.message.contains("another server"), "{second:?}");
        assert_ne!(first.identity, 0);
    }

    #[test]
    fn what_nobody_could_open_again_is_not_acknowledged() {
        let directory = tempfile::tempdir().unwrap();
        let disk = Disk::open(directory.path(), false, Some(1 << 20)).unwrap();
        disk.write(&spot(8192, 100), &mut buffer(&[1; 100])).unwrap();
        assert_eq!(disk.sync(), Ok(()));
        fs::remove_file(directory.path().join(NAME)).unwrap();
        disk.write(&spot(8192, 100), &mut buffer(&[2; 100])).unwrap();
        assert_eq!(disk.sync(), Err(Why::Disk));
        assert!(!disk.about().up && !disk.is_there());
    }

    #[test]
    fn what_holds_something_else_is_not_touched() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("letter");
        fs::write(&file, b"dear reader").unwrap();
        let error = Disk::open(&file, false, None).unwrap_err();
        assert!(error.message.contains("something else"), "{error:?}");
        assert_eq!(fs::read(&file).unwrap(), b"dear reader");
    }
}
