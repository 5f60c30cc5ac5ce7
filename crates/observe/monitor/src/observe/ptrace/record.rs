//! The records of a program that is stopped at its system calls: one line of JSON each, through a named pipe.
//!
//! A line is written whole or not at all; lines that did not fit are counted in the next one. The reader trusts only the form of a
//! line, not its contents.

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::Mode;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The size of the pipe, bytes.
const PIPE: i32 = 1 << 20;
/// The most bytes of a line: fewer than the kernel writes atomically (PIPE_BUF, 4,096).
const LINE: usize = 4000;

/// A record of something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PtraceRecord {
    /// When, on the clock of events, ns.
    pub at_ns: u64,
    /// The thread, in the numbers of the program's own PID namespace.
    pub thread: u32,
    /// What happened.
    pub what: PtraceChange,
}

/// What happened. A socket is identified by its inode number, which is unique while the machine is up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PtraceChange {
    /// A TCP connection is used for the first time.
    Opened {
        /// The socket.
        socket: u64,
        /// This end.
        local: SocketAddr,
        /// The other end.
        remote: SocketAddr,
        /// Whether this end accepted it; `None` if that is not known.
        has_accepted: Option<bool>,
    },
    /// A sending call has returned.
    Sent {
        /// The socket.
        socket: u64,
        /// The bytes that it sent.
        bytes: u64,
    },
    /// A receiving call has returned that took its bytes out of the socket.
    Received {
        /// The socket.
        socket: u64,
        /// The bytes that it received.
        bytes: u64,
    },
    /// The bytes that a call sent or received, if contents are wanted; large ones are split into several records.
    Contents {
        /// The socket.
        socket: u64,
        /// Whether it was sent.
        sent: bool,
        /// The bytes, two hexadecimal digits each.
        hex: String,
    },
    /// A number of sent or received bytes whose contents are not known.
    Unread {
        /// The socket.
        socket: u64,
        /// Whether they were sent.
        sent: bool,
        /// How many.
        bytes: u64,
    },
    /// The other end has ended its stream, and all of it was received.
    Ended {
        /// The socket.
        socket: u64,
    },
    /// The thread starts another thread, which is stopped at its calls too.
    Began {
        /// The new thread.
        child: u32,
        /// Whether it belongs to a new process.
        is_process: bool,
    },
    /// The thread executes another program.
    Executes {
        /// The program's name.
        name: String,
    },
    /// The thread ends.
    Ends {
        /// Whether its process ends with it.
        last: bool,
    },
    /// Records were lost.
    Lost {
        /// How many.
        count: u64,
    },
    /// Nothing is recorded, or not everything.
    Absent {
        /// Why.
        why: String,
    },
}

/// The most bytes of contents in one record: two digits each, they fit into a line.
const PIECE: usize = 1_800;

impl PtraceChange {
    /// The records of the bytes of a call: of its `bytes`, the `known` ones and how many more there were.
    pub(super) fn of_contents(socket: u64, sent: bool, known: &[u8], bytes: u64) -> Vec<Self> {
        let digits = |piece: &[u8]| {
            piece.iter().fold(String::new(), |mut hex, byte| {
                // Writing to a string cannot fail.
                let _ = write!(hex, "{byte:02x}");
                hex
            })
        };
        let pieces = known.chunks(PIECE).map(|piece| Self::Contents {
            socket,
            sent,
            hex: digits(piece),
        });
        let unread = bytes.saturating_sub(known.len() as u64);
        let rest = (unread > 0).then_some(Self::Unread {
            socket,
            sent,
            bytes: unread,
        });
        pieces.chain(rest).collect()
    }
}

/// Decodes hexadecimal digits, up to the first pair that is not valid.
#[must_use]
pub fn bytes_of_hex(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks_exact(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.map_while(byte).collect()
}

/// The writing end of the pipe.
#[derive(Debug)]
pub struct PtraceRecordWriter {
    pipe: File,
    /// Records that were lost since the last one that was written.
    lost: u64,
}

impl PtraceRecordWriter {
    /// Opens the pipe, whose other end must be open already. If the pipe is full, it waits (`waits`), or counts the record as lost.
    ///
    /// # Errors
    /// If the pipe does not exist, or has no reader.
    pub fn open(path: &Path, waits: bool) -> io::Result<Self> {
        let pipe = OpenOptions::new()
            .write(true)
            // Without waiting, so that a missing reader is an error.
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(path)?;
        if waits {
            fcntl(&pipe, FcntlArg::F_SETFL(OFlag::empty()))?;
        }
        Ok(Self { pipe, lost: 0 })
    }

    /// Writes a record, or counts it as lost.
    pub fn write(&mut self, record: &PtraceRecord) {
        if self.lost > 0 {
            let lost = PtraceRecord {
                what: PtraceChange::Lost { count: self.lost },
                ..record.clone()
            };
            if self.line(&lost) {
                self.lost = 0;
            }
        }
        if !self.line(record) {
            self.lost += 1;
        }
    }

    fn line(&mut self, record: &PtraceRecord) -> bool {
        let Ok(mut line) = serde_json::to_vec(record) else {
            return false;
        };
        line.push(b'\n');
        // A pipe takes a line this short whole or not at all.
        line.len() <= LINE
            && self
                .pipe
                .write(&line)
                .is_ok_and(|written| written == line.len())
    }
}

/// The reading end of the pipe.
#[derive(Debug)]
pub struct PtraceRecordReader {
    pipe: File,
    /// The bytes of an incomplete line.
    begun: Vec<u8>,
}

impl PtraceRecordReader {
    /// Creates a new pipe, for this user only.
    ///
    /// # Errors
    /// Where none can be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        nix::unistd::mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR)?;
        // It is opened for writing too, which keeps the pipe open while no other process has it open.
        let flags = OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let pipe = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags.bits())
            .open(path)?;
        // An error is ignored: users have a limit, and then the pipe keeps its size.
        let _ = fcntl(&pipe, FcntlArg::F_SETPIPE_SZ(PIPE));
        Ok(Self {
            pipe,
            begun: Vec::new(),
        })
    }

    /// Adds the records since the last call to `out`. Returns how many lines were not valid records.
    ///
    /// # Errors
    /// When the pipe cannot be read.
    pub fn drain(&mut self, out: &mut Vec<PtraceRecord>) -> io::Result<u64> {
        let (mut wrong, mut bytes) = (0, vec![0; 1 << 16]);
        loop {
            match self.pipe.read(&mut bytes) {
                Ok(0) => return Ok(wrong),
                Ok(count) => self.begun.extend_from_slice(&bytes[..count]),
                Err(error) if error.raw_os_error() == Some(Errno::EAGAIN as i32) => {
                    return Ok(wrong);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let whole = self
                .begun
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1);
            for line in self.begun[..whole]
                .split(|byte| *byte == b'\n')
                .filter(|line| !line.is_empty())
            {
                match serde_json::from_slice(line) {
                    Ok(record) => out.push(record),
                    Err(_) => wrong += 1,
                }
            }
            self.begun.drain(..whole);
            if self.begun.len() > LINE {
                self.begun.clear();
                wrong += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(at_ns: u64, what: PtraceChange) -> PtraceRecord {
        PtraceRecord {
            at_ns,
            thread: 7,
            what,
        }
    }

    #[test]
    fn contents_are_digits_in_pieces_and_back() {
        let bytes: Vec<u8> = (0..=255).cycle().take(PIECE + 9).collect();
        let records = PtraceChange::of_contents(5, true, &bytes, bytes.len() as u64 + 7);
        let mut back = Vec::new();
        for what in &records[..2] {
            let PtraceChange::Contents { hex, .. } = what else {
                panic!("{what:?}");
            };
            back.extend(bytes_of_hex(hex));
            assert!(serde_json::to_vec(&record(1, what.clone())).unwrap().len() < LINE);
        }
        assert_eq!(back, bytes);
        let rest = PtraceChange::Unread {
            socket: 5,
            sent: true,
            bytes: 7,
        };
        assert_eq!(records[2..], [rest]);
        assert!(bytes_of_hex("6x61").is_empty());
        assert_eq!(bytes_of_hex("61\u{e9}"), [0x61]);
    }

    #[test]
    fn what_is_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        assert!(PtraceRecordWriter::open(&path, false).is_err());
        let mut reader = PtraceRecordReader::create(&path).unwrap();
        let mut writer = PtraceRecordWriter::open(&path, false).unwrap();
        let all = [
            record(
                1,
                PtraceChange::Executes {
                    name: "a \"b\"\n".into(),
                },
            ),
            record(
                2,
                PtraceChange::Opened {
                    socket: 3,
                    local: "[::1]:80".parse().unwrap(),
                    remote: "10.0.0.1:9".parse().unwrap(),
                    has_accepted: Some(true),
                },
            ),
            record(
                3,
                PtraceChange::Sent {
                    socket: 3,
                    bytes: u64::MAX,
                },
            ),
            record(4, PtraceChange::Ends { last: true }),
        ];
        all.iter().for_each(|one| writer.write(one));
        let mut read = Vec::new();
        assert_eq!(reader.drain(&mut read).unwrap(), 0);
        assert_eq!(read, all);
    }

    #[test]
    fn what_finds_no_room_is_counted_and_what_is_no_record_too() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pipe");
        let mut reader = PtraceRecordReader::create(&path).unwrap();
        let mut writer = PtraceRecordWriter::open(&path, false).unwrap();
        let one = record(
            1,
            PtraceChange::Sent {
                socket: 1,
                bytes: 1,
            },
        );
        (0..100_000).for_each(|_| writer.write(&one));
        let mut read = Vec::new();
        reader.drain(&mut read).unwrap();
        let written = read.len() as u64;
        writer.write(&one);
        writer.write(&record(
            1,
            PtraceChange::Executes {
                name: "x".repeat(LINE),
            },
        ));
        writer.write(&one);
        writer.pipe.write_all(b"{}\n").unwrap();
        read.clear();
        assert_eq!(reader.drain(&mut read).unwrap(), 1);
        let lost = |what: &PtraceChange| {
            if let PtraceChange::Lost { count } = what {
                Some(*count)
            } else {
                None
            }
        };
        assert_eq!(
            read.iter()
                .filter_map(|record| lost(&record.what))
                .collect::<Vec<_>>(),
            [100_000 - written, 1]
        );
        assert_eq!(read.len(), 4);
    }
}
