//! The source and the destination of the data units at one endpoint: memory, a large region of memory, or a file.
//!
//! This file never touches a socket: a stack takes the next bytes to send from here, and receives into room that it gets from here.

use crate::cancel::LiveCancelFlags;
use crate::error::Result;
use crate::files::AgentFileDirectory;
use stackline_core::plan::DataAccess;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// How many bytes are read from a socket at once if data units are smaller.
pub const READ_BYTES: usize = 128 << 10;
/// Most bytes that are read from a socket at once.
pub(crate) const READ_BYTES_MOST: usize = 1 << 20;
/// Size, in bytes, of the region that `VIRTUAL MEMORY` walks through: larger than a processor's caches, so that transfers miss them.
pub const REGION_BYTES: usize = 256 << 20;

/// Largest data unit of any stack, bytes.
pub(crate) const LARGEST_UNIT: usize = 1 << 30;

/// A source or destination of bytes.
#[derive(Debug)]
pub(crate) enum LiveBufferStorage {
    /// One buffer that every data unit uses from its beginning.
    Memory(Vec<u8>),
    /// A large buffer whose parts are used one after the other, round and round.
    Region {
        bytes: Vec<u8>,
        /// Offset of the next data unit in `bytes`.
        at: usize,
    },
    /// A file that data units are read from or written to.
    File {
        file: File,
        /// Length of a source file, bytes; 0 for a destination.
        length: u64,
        /// File offset of the next byte.
        at: u64,
        /// Buffer between the file and the socket.
        bytes: Vec<u8>,
    },
}

impl LiveBufferStorage {
    fn grow(bytes: &mut Vec<u8>, wanted: usize) {
        if bytes.len() < wanted {
            bytes.resize(wanted, 0);
        }
    }

    /// The next `bytes` bytes to send. A file shorter than the transfer is read again from its beginning.
    ///
    /// # Errors
    /// When the file cannot be read or has become empty, or `bytes` is more than any stack sends.
    #[inline]
    pub(crate) fn outgoing(&mut self, bytes: usize) -> io::Result<&mut [u8]> {
        if bytes > LARGEST_UNIT {
            return Err(too_large(bytes));
        }
        match self {
            Self::Memory(buffer) => {
                Self::grow(buffer, bytes);
                Ok(&mut buffer[..bytes])
            }
            Self::Region { bytes: buffer, at } => {
                Self::grow(buffer, bytes);
                if *at + bytes > buffer.len() {
                    *at = 0;
                }
                let from = *at;
                *at += bytes;
                Ok(&mut buffer[from..from + bytes])
            }
            Self::File {
                file,
                length,
                at,
                bytes: buffer,
            } => {
                Self::grow(buffer, bytes);
                let mut done = 0;
                while done < bytes {
                    let got = file.read_at(&mut buffer[done..bytes], *at)?;
                    if got == 0 && *at == 0 {
                        return Err(io::Error::new(
                            io::ErrorKind::UnexpectedEof,
                            "the source file became empty",
                        ));
                    }
                    done += got;
                    *at = if got == 0 || *at + got as u64 >= *length {
                        0
                    } else {
                        *at + got as u64
                    };
                }
                Ok(&mut buffer[..bytes])
            }
        }
    }

    /// For `sendfile`: the source file, its length, and the offset to read from, which the caller advances. `None` if the source is memory.
    #[inline]
    pub(crate) fn file(&mut self) -> Option<(BorrowedFd<'_>, u64, &mut u64)> {
        match self {
            Self::File {
                file, length, at, ..
            } => Some((File::as_fd(file), *length, at)),
            _ => None,
        }
    }

    /// Memory for a sender that goes round and round through it: at least `least` bytes, the length of a round, followed by `tail` bytes
    /// that repeat the beginning, so that a read near the end of a round stays contiguous. `None` if the source is a file, whose bytes
    /// have to be sent in order.
    pub(crate) fn round(&mut self, least: usize, tail: usize) -> Option<&mut [u8]> {
        let bytes = match self {
            Self::Memory(bytes) | Self::Region { bytes, .. } => bytes,
            Self::File { .. } => return None,
        };
        let round = bytes.len().max(least);
        if bytes.len() < least + tail {
            let filled = filled(round);
            bytes.clear();
            bytes.extend_from_slice(&filled);
            for at in 0..tail {
                bytes.push(filled[at % round]);
            }
        }
        Some(bytes)
    }

    /// Room for `wanted` arriving bytes.
    pub(crate) fn room(&mut self, wanted: usize) -> &mut [u8] {
        match self {
            Self::Memory(bytes) | Self::File { bytes, .. } => {
                Self::grow(bytes, wanted);
                &mut bytes[..wanted]
            }
            Self::Region { bytes, at } => {
                Self::grow(bytes, wanted);
                if *at + wanted > bytes.len() {
                    *at = 0;
                }
                &mut bytes[*at..*at + wanted]
            }
        }
    }
}

/// The error for a data unit beyond [`LARGEST_UNIT`]: a random distribution without a bound may draw any size.
#[cold]
fn too_large(bytes: usize) -> io::Error {
    let drawn = stackline_core::units::format_size(bytes as u64);
    let message = format!("a data unit of {drawn} was drawn, but the maximum is 1 GiB");
    io::Error::new(io::ErrorKind::OutOfMemory, message)
}

/// One thread's source, destination and flags.
#[derive(Debug)]
pub struct LiveThreadBuffers {
    /// What stops the thread.
    pub flags: Arc<LiveCancelFlags>,
    pub(crate) source: LiveBufferStorage,
    pub(crate) destination: LiveBufferStorage,
}

impl LiveThreadBuffers {
    /// Opens source and destination; `unit` is the data unit size, in bytes, that buffers are made for (they grow for a larger one).
    ///
    /// # Errors
    /// An error when a file cannot be opened.
    pub fn new(
        flags: Arc<LiveCancelFlags>,
        files: &AgentFileDirectory,
        source: &DataAccess,
        destination: &DataAccess,
        unit: usize,
    ) -> Result<Self> {
        let source = match source {
            DataAccess::Memory => LiveBufferStorage::Memory(filled(unit)),
            DataAccess::VirtualMemory => LiveBufferStorage::Region {
                bytes: filled(REGION_BYTES.max(unit)),
                at: 0,
            },
            DataAccess::File(name) => {
                let (file, length) = files.source(name)?;
                LiveBufferStorage::File {
                    file,
                    length,
                    at: 0,
                    bytes: vec![0; unit],
                }
            }
        };
        let room = unit.clamp(READ_BYTES, READ_BYTES_MOST);
        let destination = match destination {
            DataAccess::Memory => LiveBufferStorage::Memory(vec![0; room]),
            DataAccess::VirtualMemory => LiveBufferStorage::Region {
                bytes: vec![0; REGION_BYTES.max(room)],
                at: 0,
            },
            DataAccess::File(name) => LiveBufferStorage::File {
                file: files.destination(name)?,
                length: 0,
                at: 0,
                bytes: vec![0; room],
            },
        };
        Ok(Self {
            flags,
            source,
            destination,
        })
    }

    /// Whether every arriving byte has to be stored, because the destination is a file.
    #[inline]
    #[must_use]
    pub fn keeps(&self) -> bool {
        matches!(self.destination, LiveBufferStorage::File { .. })
    }

    /// Whether every data unit that is sent has the same bytes: they come from one buffer in memory.
    #[must_use]
    pub(crate) const fn repeats(&self) -> bool {
        matches!(self.source, LiveBufferStorage::Memory(_))
    }

    /// Takes arrived bytes that a library holds: a file and a region get them; in memory the library's own copy is where they arrived.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn store(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        if matches!(self.destination, LiveBufferStorage::Memory(_)) {
            return Ok(());
        }
        while !bytes.is_empty() {
            let room = self.room(bytes.len());
            let here = room.len().min(bytes.len());
            room[..here].copy_from_slice(&bytes[..here]);
            self.arrived(here)?;
            bytes = &bytes[here..];
        }
        Ok(())
    }

    /// Room for arriving bytes: `wanted` bytes, but at least 1 and at most 1 MiB (`READ_BYTES_MOST`).
    #[inline]
    pub fn room(&mut self, wanted: usize) -> &mut [u8] {
        self.destination.room(wanted.clamp(1, READ_BYTES_MOST))
    }

    /// Notes that `n` bytes arrived in the room given last: writes them to a destination file, or advances in a region.
    ///
    /// # Errors
    /// When the file cannot be written.
    #[inline]
    pub fn arrived(&mut self, n: usize) -> io::Result<()> {
        match &mut self.destination {
            LiveBufferStorage::Memory(_) => Ok(()),
            LiveBufferStorage::Region { at, .. } => {
                *at += n;
                Ok(())
            }
            LiveBufferStorage::File {
                file, at, bytes, ..
            } => {
                file.write_all_at(&bytes[..n], *at)?;
                *at += n as u64;
                Ok(())
            }
        }
    }

    /// Reads `bytes` bytes of the source and drops them: the operation `ReadFile`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read_file(&mut self, bytes: usize) -> io::Result<()> {
        self.source.outgoing(bytes).map(drop)
    }

    /// Writes `bytes` bytes to the destination: the operation `WriteFile`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_file(&mut self, bytes: usize) -> io::Result<()> {
        let mut left = bytes;
        while left > 0 {
            let n = self.room(left).len();
            self.arrived(n)?;
            left -= n;
        }
        Ok(())
    }
}

/// Pseudorandom bytes (a linear congruential generator), which do not compress; writing them makes the kernel allocate their pages.
fn filled(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut buffer = vec![0_u8; bytes.max(1)];
    for chunk in buffer.chunks_mut(8) {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        chunk.copy_from_slice(&state.to_le_bytes()[..chunk.len()]);
    }
    buffer
}
