//! Sinks that write files, in the binary form and in the text form.
//!
//! Both are written by the draining thread, which also formats the text, so emitting an event costs the same whatever
//! the sink is. Every batch is written at once: what was drained is kept if the process dies, though not if the
//! machine loses power. A batch that does not fit on the disk is cut off after its last whole record.
//!
//! A file is locked by one process. The lock belongs to every copy of the descriptor, so it is released explicitly,
//! and a forked process redirects its copies.

use crate::event_log::{self, EventLog};
use crate::sink::EventSink;
use crate::sys;
use crate::text;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The descriptors of all files that this process has open here.
static OPEN: Mutex<Vec<RawFd>> = Mutex::new(Vec::new());

/// Locks the list of open descriptors.
pub(crate) fn lock_open_files() -> MutexGuard<'static, Vec<RawFd>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Called in a forked process: redirects its copies of the descriptors to `/dev/null`, so that the locks on the files
/// are released when the parent ends.
pub(crate) fn detach_open_files(open: &mut Vec<RawFd>) {
    if let Ok(nowhere) = File::options().write(true).open("/dev/null") {
        open.drain(..).for_each(|file| sys::lead_to(file, &nowhere));
    }
}

/// A file to which whole batches are appended.
#[derive(Debug)]
struct EventBatchFile {
    file: File,
    /// Length of the file after the last batch, in bytes.
    length: u64,
    /// The process that opened it.
    process: u32,
}

impl EventBatchFile {
    /// Opens or creates the file, and locks it for this process.
    fn open(path: &Path) -> io::Result<Self> {
        // The lock is held meanwhile, so that a fork finds either no file or one that is on the list.
        let mut open = lock_open_files();
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(path)?;
        lock(&file)?;
        let length = file.seek(SeekFrom::End(0))?;
        open.push(file.as_raw_fd());
        Ok(Self {
            file,
            length,
            process: std::process::id(),
        })
    }

    /// Cuts the file to a length.
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)?;
        self.length = length;
        Ok(())
    }

    /// Appends a batch.
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        append(&mut self.file, self.length, bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }
}

/// Locks the file for this process. A device or a pipe is not locked: it takes each batch as a whole, and others may
/// write to it.
fn lock(file: &File) -> io::Result<()> {
    if !file.metadata()?.is_file() {
        return Ok(());
    }
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let cause = "another process is writing its events there; hint: put %p in the name to give each process its own file";
            Err(io::Error::new(io::ErrorKind::ResourceBusy, cause))
        }
        // On a file system without locks events are recorded all the same.
        Err(TryLockError::Error(_)) | Ok(()) => Ok(()),
    }
}

/// Appends bytes to a file of that length, all of them or none: on failure, for instance on a full disk, the part that
/// was written is cut off.
///
/// # Errors
/// When they cannot be written.
pub fn append(file: &mut File, length: u64, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes).inspect_err(|_| {
        // A pipe or a device cannot be cut; its reader sees that the end of the batch is missing. So an error here is
        // ignored.
        let _ = file.set_len(length);
    })
}

impl Drop for EventBatchFile {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            let descriptor = self.file.as_raw_fd();
            lock_open_files().retain(|open| *open != descriptor);
            // On a file system without locks this fails, which does no harm.
            drop(self.file.unlock());
        }
    }
}

/// A sink that writes the binary form.
#[derive(Debug)]
pub struct EventLogFile(EventBatchFile);

impl EventLogFile {
    /// Opens a file and appends to it. A truncated record at its end, left by a killed process, is removed.
    ///
    /// # Errors
    /// When it cannot be written, another process is writing it, or it holds other data.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = EventBatchFile::open(path)?;
        if file.length > 0 {
            file.file.rewind()?;
            match event_log::measure_whole_records(&file.file)? {
                Some(whole) => file.cut(whole)?,
                None => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "the file already exists and does not contain events",
                    ));
                }
            }
        }
        Ok(Self(file))
    }
}

impl EventSink for EventLogFile {
    fn take(&mut self, event_log: &EventLog) -> io::Result<()> {
        self.0.add(event_log.bytes())
    }
}

/// A sink that writes the text form of 1996.
#[derive(Debug)]
pub struct EventTextFile {
    /// Buffer for the lines of a batch.
    file: EventBatchFile,
    batch: Vec<u8>,
    lines: text::Lines,
    /// The names defined so far: a recorder's event logs define the host and each name only once.
    names: event_log::EventLogNames,
}

impl EventTextFile {
    /// Opens a file and appends to it. A line without a line break at its end is ended.
    ///
    /// # Errors
    /// When it cannot be written or another process is writing it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = EventBatchFile::open(path)?;
        if file.length > 0 && file.file.metadata()?.is_file() {
            let mut last = [0];
            file.file.seek(SeekFrom::Start(file.length - 1))?;
            file.file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.add(b"\n")?;
            }
        }
        Ok(Self {
            file,
            batch: Vec::new(),
            lines: text::Lines::default(),
            names: event_log::EventLogNames::default(),
        })
    }
}

impl EventSink for EventTextFile {
    fn take(&mut self, event_log: &EventLog) -> io::Result<()> {
        let (batch, lines) = (&mut self.batch, &mut self.lines);
        batch.clear();
        event_log.each(&mut self.names, |keyword, host, at_ns, values| {
            lines.write(batch, keyword, host, at_ns, values)
        });
        self.file.add(batch)
    }
}
