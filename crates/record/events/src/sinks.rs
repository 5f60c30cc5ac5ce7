//! Files that a recorder writes into: the binary form and the text form.
//!
//! Both are written by the thread that drains, the text form is also made there: emitting an event costs a thread the same
//! whatever the sink is. Every batch is written at once, so what was drained outlives the process, though not a machine that
//! loses power. A batch that does not fit on the disk is taken back to its last whole record.
//!
//! A file is one process's by a lock, which belongs to every copy of the descriptor: it is given back in so many words, and a
//! process that was forked off lets go of its copies.

use crate::event_log::{self, EventLog};
use crate::sink::EventSink;
use crate::sys;
use crate::text;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Descriptors of all files that are open here.
static OPEN: Mutex<Vec<RawFd>> = Mutex::new(Vec::new());

/// The list, which nobody changes while it is held.
pub(crate) fn lock_open_files() -> MutexGuard<'static, Vec<RawFd>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// In a process that was forked off: its copies lead nowhere from now on, so that what they locked is free when the parent
/// ends.
pub(crate) fn detach_open_files(open: &mut Vec<RawFd>) {
    if let Ok(nowhere) = File::options().write(true).open("/dev/null") {
        open.drain(..).for_each(|file| sys::lead_to(file, &nowhere));
    }
}

/// A file to the end of which batches are added, whole ones only.
#[derive(Debug)]
struct EventBatchFile {
    file: File,
    length: u64,
    /// Which process opened it.
    process: u32,
}

impl EventBatchFile {
    /// Opens or makes it, for this process alone.
    fn open(path: &Path) -> io::Result<Self> {
        // Held, so that a fork finds either no file or one on the list.
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

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)?;
        self.length = length;
        Ok(())
    }

    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        append(&mut self.file, self.length, bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }
}

/// For this process alone. A device or a pipe takes each batch whole, and others may write to it as they like.
fn lock(file: &File) -> io::Result<()> {
    if !file.metadata()?.is_file() {
        return Ok(());
    }
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let cause = "another process is writing its events there; hint: put %p in the name to give each process its own file";
            Err(io::Error::new(io::ErrorKind::ResourceBusy, cause))
        }
        // A file system without locks is no reason to record nothing.
        Err(TryLockError::Error(_)) | Ok(()) => Ok(()),
    }
}

/// Adds bytes to the end of a file of that length, all of them or none: what a full disk took of them is cut off again.
///
/// # Errors
/// When they cannot be written.
pub fn append(file: &mut File, length: u64, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes).inspect_err(|_| {
        // What cannot be cut (a pipe, a device) has a reader who sees the end of the batch missing.
        let _ = file.set_len(length);
    })
}

impl Drop for EventBatchFile {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            let descriptor = self.file.as_raw_fd();
            lock_open_files().retain(|open| *open != descriptor);
            // Where there are no locks there is none to give back.
            drop(self.file.unlock());
        }
    }
}

/// Keeps the binary form.
#[derive(Debug)]
pub struct EventLogFile(EventBatchFile);

impl EventLogFile {
    /// Into that file, behind what is in it. A record at its end that was cut off when a process was killed is taken away.
    ///
    /// # Errors
    /// When it cannot be written, another process writes it, or it holds something else.
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

/// Keeps the text form of 1996.
#[derive(Debug)]
pub struct EventTextFile {
    file: EventBatchFile,
    batch: Vec<u8>,
    lines: text::Lines,
    /// The event log defines its host and names only once.
    names: event_log::EventLogNames,
}

impl EventTextFile {
    /// Into that file, behind what is in it. A line at its end that was cut off is ended.
    ///
    /// # Errors
    /// When it cannot be written or another process writes it.
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
