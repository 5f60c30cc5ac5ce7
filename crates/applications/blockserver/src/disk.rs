//! A disk: a file of blocks in a directory, a plain file, or a block device. Its first page says which master owns it.
//!
//! Blocks are written only when that page names the master that allocates the space. How far the disk is used is written together with the
//! blocks, before they are acknowledged, and made durable by the same sync. A disk that cannot be written can still be read.
//!
//! Peers name places as offsets, which are checked against the size of this one file: they cannot reach anything else.

mod page;

use crate::buffer::BlockBuffer;
use nix::fcntl::OFlag;
use page::{DiskPageContent, Page};
use stackline_blocks::server::DiskExtent;
use stackline_blocks::wire::master_messages::DiskOwnerRecord;
use stackline_blocks::wire::message::Why;
use stackline_blocks::wire::server_messages::DiskInfo as About;
use stackline_core::error::{Error, Result};
use stackline_guard::files;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes before the first block.
const FIRST: u64 = stackline_blocks::master::ALIGNMENT;
/// The name of the file in a directory.
const NAME: &str = "stackline.blocks";

/// A disk of a server.
#[derive(Debug)]
pub struct BlockDisk {
    /// `None` if the disk was not there when its server was started.
    files: Option<BlockDiskFiles>,
    path: PathBuf,
    file_path: PathBuf,
    /// The content of the first page; identity 0 if the disk was not there.
    page: Mutex<Page>,
    /// Bytes that the disk may take.
    capacity: u64,
    /// Whether the page names a master and the disk can be written.
    is_ready: AtomicBool,
    /// Whether it can only be read.
    is_read_only: AtomicBool,
    /// The end of the written blocks, bytes, which the page may not say yet.
    stored: AtomicU64,
}

#[derive(Debug)]
struct BlockDiskFiles {
    /// The file that is read and written, possibly with direct I/O.
    data: File,
    /// The file that holds the lock, so that no other server can use the disk; the first page is written through it.
    locked: File,
}

fn cannot_be_used(path: &Path, error: &io::Error) -> Error {
    let error = Error::environment(format!("cannot use the disk {}: {error}", path.display()));
    error.hint("use a directory, a file or a block device that this user may write to")
}

fn cannot_be_a_disk(path: &Path) -> Error {
    let error = Error::input(format!(
        "{} is not a directory, file or block device",
        path.display()
    ));
    error.hint("name one with --disk PATH")
}

fn is_taken(path: &Path) -> Error {
    let error = Error::input(format!(
        "another server is using the disk {}",
        path.display()
    ));
    error.hint("give each server its own disks")
}

impl BlockDisk {
    /// Opens a disk, or initialises it if it is an empty file. `direct`: bypass the page cache. `size`: bytes that it may take; `None`: the
    /// device's size, or all free space.
    ///
    /// # Errors
    /// If it cannot be opened, or holds something else.
    pub fn open(path: &Path, direct: bool, size: Option<u64>) -> Result<Self> {
        let failed = |error: io::Error| cannot_be_used(path, &error);
        let metadata = fs::metadata(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                failed(error).hint("create it first: a directory, or an empty file")
            }
            _ => failed(error),
        })?;
        let file_path = if metadata.is_dir() {
            path.join(NAME)
        } else {
            path.to_owned()
        };
        let is_device = metadata.file_type().is_block_device();
        if !metadata.is_dir() && !metadata.is_file() && !is_device {
            return Err(cannot_be_a_disk(path));
        }
        let open = |is_writable: bool, flags: OFlag| {
            let create = metadata.is_dir() && is_writable && flags.is_empty();
            let mut options = OpenOptions::new();
            options
                .read(true)
                .write(is_writable)
                .create(create)
                .truncate(false)
                .custom_flags(flags.bits());
            options.open(&file_path)
        };
        let (plain, is_writable) = match open(true, OFlag::empty()) {
            Ok(file) => (file, true),
            Err(error) if is_refusal_to_write(&error) => (
                open(false, OFlag::empty()).map_err(|_| failed(error))?,
                false,
            ),
            Err(error) => return Err(failed(error)),
        };
        // Before the page is read: another server may be about to write it.
        plain.try_lock().map_err(|_| is_taken(path))?;
        let page = first_page(&plain, &file_path, is_device, is_writable)?;
        let capacity = match size {
            Some(size) => size,
            None if is_device => device_size(&plain).map_err(failed)?,
            // What the file has taken already is not free, but its own.
            None => free(path).map_err(failed)? + allocated(&plain).map_err(failed)?,
        };
        // For blocks only: the first page is not aligned, as direct I/O requires.
        let data = if direct {
            open(is_writable, OFlag::O_DIRECT).map_err(|error| {
                let error = Error::environment(format!(
                    "{} does not support direct reads: {error}",
                    file_path.display()
                ));
                error.hint("omit --direct, or name a disk on another file system")
            })?
        } else {
            plain.try_clone().map_err(failed)?
        };
        let files = Some(BlockDiskFiles {
            data,
            locked: plain,
        });
        Ok(Self::with(
            files,
            path,
            &file_path,
            page,
            capacity,
            is_writable,
        ))
    }

    fn with(
        files: Option<BlockDiskFiles>,
        path: &Path,
        file_path: &Path,
        page: Page,
        capacity: u64,
        writable: bool,
    ) -> Self {
        Self {
            files,
            path: path.to_owned(),
            file_path: file_path.to_owned(),
            capacity,
            is_ready: AtomicBool::new(writable && page.kept.master != 0),
            is_read_only: AtomicBool::new(!writable),
            stored: AtomicU64::new(page.kept.used),
            page: Mutex::new(page),
        }
    }

    /// A disk that is not there: it keeps its number among the disks of a server, which serves the others without it.
    #[must_use]
    pub fn missing(path: &Path) -> Self {
        let nobody = Page {
            identity: 0,
            kept: DiskOwnerRecord {
                master: 0,
                used: FIRST,
                last_set: 0,
            },
        };
        Self::with(None, path, path, nobody, 0, false)
    }

    fn page(&self) -> MutexGuard<'_, Page> {
        self.page.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The description for the master.
    #[must_use]
    pub fn about(&self) -> About {
        let mut path = self.path.display().to_string();
        path.truncate(path.floor_char_boundary(200));
        let (identity, up, writable) = (self.page().identity, self.is_there(), self.is_writable());
        About {
            identity,
            path,
            capacity: self.capacity,
            used: 0,
            up,
            writable,
            damaged: 0,
        }
    }

    /// The owner record from the first page.
    #[must_use]
    pub fn kept(&self) -> DiskOwnerRecord {
        self.page().kept.clone()
    }

    /// Whether it can be written, as far as is known.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.files.is_some() && !self.is_read_only.load(Ordering::Relaxed)
    }

    /// Makes it the disk of that master; the first page says so when this returns. Returns whether it was another master's and held blocks.
    ///
    /// # Errors
    /// The system's error; the disk is then read-only.
    pub fn belong_to(&self, master: u128) -> io::Result<bool> {
        let Some(files) = self.files.as_ref().filter(|_| self.is_writable()) else {
            return Ok(false);
        };
        let mut page = self.page();
        let before = page.kept.clone();
        let was_anothers = before.master != 0 && before.master != master && before.used > FIRST;
        if before.master != master {
            // How far another master uses it, or an unknown owner uses a device, does not matter to this master.
            let used = if before.master == 0 && before.used <= self.capacity {
                before.used
            } else {
                FIRST
            };
            let new = Page {
                identity: page.identity,
                kept: DiskOwnerRecord {
                    master,
                    used,
                    last_set: 0,
                },
            };
            // Durable before the first block: a crash must not leave blocks of an unknown owner.
            let written = files
                .locked
                .write_all_at(&new.bytes(), 0)
                .and_then(|()| files.locked.sync_data());
            if let Err(error) = written {
                self.is_read_only.store(true, Ordering::Relaxed);
                return Err(error);
            }
            self.stored.store(used, Ordering::Relaxed);
            *page = new;
        }
        self.is_ready.store(true, Ordering::Relaxed);
        Ok(was_anothers)
    }

    /// Whether a place lies within the disk.
    #[must_use]
    pub const fn holds(&self, spot: &DiskExtent) -> bool {
        spot.offset >= FIRST && spot.offset.saturating_add(spot.length as u64) <= self.capacity
    }

    /// Whether its file is still there, and the same that was opened.
    #[must_use]
    pub fn is_there(&self) -> bool {
        let Some(files) = &self.files else {
            return false;
        };
        // A file stays open here when its name, or its file system, goes.
        let (now, then) = (fs::metadata(&self.file_path), files.locked.metadata());
        matches!((now, then), (Ok(now), Ok(then)) if (now.dev(), now.ino()) == (then.dev(), then.ino()))
    }

    /// Reads a block and compares its checksum.
    ///
    /// # Errors
    /// [`Why::Disk`] if it cannot be read, [`Why::Corrupt`] if it differs from what was written, [`Why::NoBlock`] for a place outside.
    pub fn read(
        &self,
        spot: &DiskExtent,
        checksum: u32,
        buffer: &mut BlockBuffer,
    ) -> Result<(), Why> {
        let files = self.files.as_ref().ok_or(Why::Disk)?;
        if !self.holds(spot) {
            return Err(Why::NoBlock);
        }
        let wanted = spot.length as usize;
        let mut done = 0;
        let pages = buffer.pages(wanted);
        while done < wanted {
            match files
                .data
                .read_at(&mut pages[done..], spot.offset + done as u64)
            {
                Ok(0) => return Err(Why::Corrupt),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(Why::Disk),
            }
        }
        if crc32fast::hash(&pages[..wanted]) == checksum {
            Ok(())
        } else {
            Err(Why::Corrupt)
        }
    }

    /// Writes a block; [`BlockDisk::sync`] makes it durable.
    ///
    /// # Errors
    /// [`Why::Full`], [`Why::Disk`], [`Why::NoBlock`] for a place outside, or [`Why::Foreign`] if the disk has no master yet.
    pub fn write(&self, spot: &DiskExtent, buffer: &mut BlockBuffer) -> Result<(), Why> {
        let files = self
            .files
            .as_ref()
            .filter(|_| self.is_writable())
            .ok_or(Why::Disk)?;
        if !self.holds(spot) {
            return Err(Why::NoBlock);
        }
        if !self.is_ready.load(Ordering::Relaxed) {
            return Err(Why::Foreign);
        }
        // Direct writes need whole pages; places are rounded up to pages too.
        let pages = buffer.pages(spot.length as usize);
        files
            .data
            .write_all_at(pages, spot.offset)
            .map_err(|error| match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Why::Full,
                _ => self.failed(&error),
            })?;
        self.stored
            .fetch_max(spot.offset + u64::from(spot.length), Ordering::Relaxed);
        Ok(())
    }

    /// Notes a failed write: if the error shows that the file cannot be written, the disk becomes read-only.
    fn failed(&self, error: &io::Error) -> Why {
        if is_refusal_to_write(error) {
            self.is_read_only.store(true, Ordering::Relaxed);
        }
        Why::Disk
    }

    /// Makes what was written durable, and first records on the page how far the disk is used and that it holds blocks of that set.
    ///
    /// # Errors
    /// [`Why::Disk`], also if the file was deleted: nobody could open it again.
    pub fn sync(&self, set: u32) -> Result<(), Why> {
        let files = self.files.as_ref().ok_or(Why::Disk)?;
        let stored = self.stored.load(Ordering::Relaxed);
        {
            // The page is written before the data is synced, so that one sync covers both.
            let mut page = self.page();
            let kept = DiskOwnerRecord {
                used: stored.max(page.kept.used),
                last_set: set.max(page.kept.last_set),
                ..page.kept
            };
            if kept != page.kept {
                let new = Page {
                    identity: page.identity,
                    kept,
                };
                files
                    .locked
                    .write_all_at(&new.bytes(), 0)
                    .map_err(|error| self.failed(&error))?;
                *page = new;
            }
        }
        files
            .data
            .sync_data()
            .map_err(|error| self.failed(&error))?;
        // A file without a name still takes writes, and then loses them.
        if self.is_there() {
            Ok(())
        } else {
            Err(Why::Disk)
        }
    }
}

/// Reads the first page of a disk; an empty disk gets one.
fn first_page(file: &File, path: &Path, is_device: bool, is_writable: bool) -> Result<Page> {
    let failed = |error: io::Error| Error::environment(format!("disk {}: {error}", path.display()));
    let mut bytes = [0; page::LENGTH];
    read_up_to(file, &mut bytes).map_err(failed)?;
    match page::parse_page(&bytes) {
        DiskPageContent::Page(page) => Ok(page),
        // How far a device is used is unknown for a page of this version.
        DiskPageContent::Old(identity) => {
            let used = if is_device {
                u64::MAX
            } else {
                file.metadata().map_err(failed)?.len()
            };
            Ok(Page {
                identity,
                kept: DiskOwnerRecord {
                    master: 0,
                    used,
                    last_set: 0,
                },
            })
        }
        DiskPageContent::Nothing if is_writable => new_page(file, path).map_err(failed),
        DiskPageContent::Nothing => Err(Error::environment(format!(
            "{} is empty and read-only",
            path.display()
        ))
        .hint("a new disk must be writable by this user")),
        DiskPageContent::Damaged => Err(Error::environment(format!(
            "the first page of the disk {} is damaged",
            path.display()
        ))
        .hint("restore its first 68 bytes from a copy; nothing was written")),
        DiskPageContent::Newer(version) => Err(Error::environment(format!(
            "the disk {} has version {version}, which this program does not support",
            path.display()
        ))
        .hint("serve it with the newer stackline that created it; nothing was written")),
        DiskPageContent::Other => {
            let error = Error::input(format!(
                "{} holds something other than blocks",
                path.display()
            ));
            Err(error.hint(if is_device {
                "a new disk must begin with zeros: `wipefs` shows what is on it; nothing was written"
            } else {
                "name an empty file, or a directory; nothing was written"
            }))
        }
    }
}

/// Writes the first page of a new disk, which has no master yet.
fn new_page(file: &File, path: &Path) -> io::Result<Page> {
    let page = Page {
        identity: crate::key::generate_identity()?,
        kept: DiskOwnerRecord {
            master: 0,
            used: FIRST,
            last_set: 0,
        },
    };
    let mut bytes = vec![0; FIRST as usize];
    bytes[..page::LENGTH].copy_from_slice(&page.bytes());
    file.write_all_at(&bytes, 0)?;
    file.sync_all()?;
    // Its name has to last, too.
    files::sync_name(path)?;
    Ok(page)
}

/// Whether the error says that a file cannot be written, though it may be readable.
fn is_refusal_to_write(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
    )
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
    let directory = if path.is_dir() {
        path
    } else {
        path.parent().unwrap_or(Path::new("/"))
    };
    let directory = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    let free = nix::sys::statvfs::statvfs(directory)?;
    Ok(free.blocks_available() * free.fragment_size())
}

fn allocated(file: &File) -> io::Result<u64> {
    // The unit of stat(2), whatever the file system's block size.
    Ok(file.metadata()?.blocks() * 512)
}

fn device_size(file: &File) -> io::Result<u64> {
    use std::io::Seek;
    // The metadata of a device has no size.
    let mut file = file.try_clone()?;
    file.seek(io::SeekFrom::End(0))
}

#[cfg(test)]
mod tests;
