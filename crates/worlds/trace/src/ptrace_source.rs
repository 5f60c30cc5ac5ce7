//! Observes stopped programs: programs that are stopped at their system calls with ptrace, where the kernel's trace events are not
//! available. It makes the command that starts each one, and turns its records into events. Each program has a pipe of its own, as
//! each may have process IDs of its own.

use crate::thread_directory::{THREAD_NUMBERS, own_thread};
use stackline_core::error::{Error, Result};
use stackline_guard::scratch::ScratchDirectory;
use stackline_monitor::observe::ptrace::record::{
    PtraceChange, PtraceRecord, PtraceRecordReader, bytes_of_hex,
};
use stackline_monitor::observe::sockets::{SocketChange, SocketEvent, TcpState, Transport};
use stackline_monitor::observe::threads::{ThreadChange, ThreadEvent};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The hidden command of this program that stops another one.
const COMMAND: &str = "ptrace";

/// The path of this program.
fn own() -> Result<PathBuf> {
    std::env::current_exe().map_err(|error| {
        Error::environment(format!("cannot find the path of this program: {error}"))
    })
}

/// Measures what a message and its answer cost a program, elapsed ns for each batch: `stopped` at its calls, or not.
pub(crate) fn measured(stopped: bool) -> Vec<f64> {
    let Ok(own) = own() else { return Vec::new() };
    let mut command = Command::new(&own);
    if stopped {
        command.args([COMMAND, "--"]).arg(&own);
    }
    let output = command
        .args([COMMAND, "--ping-pong"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let text = output
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// The records of one stopped program.
#[derive(Debug)]
pub(crate) struct PtraceSource {
    /// The reading end of the program's pipe.
    reader: PtraceRecordReader,
    /// The path of the pipe.
    path: PathBuf,
    /// Added to all its thread numbers, to keep them apart from those of other programs.
    base: u32,
    /// Whether a record has been read.
    begun: bool,
    /// Whether the bytes that it sends and receives are recorded too.
    contents: bool,
}

/// A change of a connection's stream: bytes that a call sent or received, its beginning or its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StreamPiece {
    pub(crate) at_ns: u64,
    pub(crate) socket: u64,
    pub(crate) what: StreamChange,
}

/// What happened to a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StreamChange {
    /// The connection is used for the first time at this end: its own address and the peer's, and whether this end accepted it.
    Begins([SocketAddr; 2], Option<bool>),
    /// These bytes were sent, or received.
    Passes { sent: bool, bytes: Vec<u8> },
    /// This many bytes were sent or received, whose contents are not known.
    PassesUnread { sent: bool, bytes: u64 },
    /// The other end sends nothing more.
    Ends,
}

/// What a record becomes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PtraceEvent {
    Socket(SocketEvent),
    Thread(ThreadEvent),
    /// A change of a stream, if contents are wanted.
    Stream(StreamPiece),
    Lost(u64),
    Absent(String),
}

impl PtraceSource {
    /// Creates the pipe for the program of that number, in a directory of the trace's own.
    pub(crate) fn create(
        directory: &ScratchDirectory,
        number: usize,
        contents: bool,
    ) -> Result<Self> {
        let path = directory.path().join(format!("calls.{number}"));
        let failed =
            |error| Error::environment(format!("{} cannot be created: {error}", path.display()));
        let reader = PtraceRecordReader::create(&path).map_err(failed)?;
        let number = u32::try_from(number + 1)
            .unwrap_or(0)
            .min(u32::MAX / THREAD_NUMBERS);
        Ok(Self {
            reader,
            path,
            base: number * THREAD_NUMBERS,
            begun: false,
            contents,
        })
    }

    /// The command that starts the program.
    pub(crate) fn command(&self, program: &[OsString]) -> Result<Vec<OsString>> {
        let words: [OsString; 4] = [
            own()?.into(),
            COMMAND.into(),
            "--to".into(),
            self.path.clone().into(),
        ];
        let contents = self.contents.then(|| "--contents".into());
        let words = words.into_iter().chain(contents).chain(["--".into()]);
        Ok(words.chain(program.iter().cloned()).collect())
    }

    /// Reads the records since the last call.
    pub(crate) fn drain(&mut self) -> std::io::Result<Vec<PtraceEvent>> {
        let mut records = Vec::new();
        let wrong = self.reader.drain(&mut records)?;
        let mut news: Vec<PtraceEvent> = records
            .into_iter()
            .flat_map(|record| self.news(record))
            .collect();
        news.extend((wrong > 0).then_some(PtraceEvent::Lost(wrong)));
        Ok(news)
    }

    /// The events of one record.
    fn news(&mut self, record: PtraceRecord) -> Vec<PtraceEvent> {
        let (at_ns, thread) = (record.at_ns, record.thread);
        let stream = stream_change(&record.what).filter(|_| self.contents);
        let stream = stream.map(|(socket, what)| {
            PtraceEvent::Stream(StreamPiece {
                at_ns,
                socket,
                what,
            })
        });
        let change = self.event(record);
        // The first record comes from the program's first thread, which this process started.
        let is_first = !std::mem::replace(&mut self.begun, true);
        let first = is_first.then(|| {
            PtraceEvent::Thread(ThreadEvent {
                at_ns,
                thread: own_thread(),
                what: ThreadChange::Forked {
                    child: self.base + thread % THREAD_NUMBERS,
                    is_process: Some(true),
                },
            })
        });
        first.into_iter().chain(stream).chain(change).collect()
    }

    /// The socket or thread event of a record.
    fn event(&self, record: PtraceRecord) -> Option<PtraceEvent> {
        let (at_ns, thread) = (record.at_ns, record.thread);
        let id = |thread: u32| self.base + thread % THREAD_NUMBERS;
        let event = |socket, what| {
            PtraceEvent::Socket(SocketEvent {
                at_ns,
                socket,
                thread: id(thread),
                in_interrupt: false,
                transport: Transport::Tcp,
                what,
            })
        };
        let of_thread = |thread: u32, what| {
            PtraceEvent::Thread(ThreadEvent {
                at_ns,
                thread,
                what,
            })
        };
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        Some(match record.what {
            PtraceChange::Opened {
                socket,
                local,
                remote,
                ..
            } => event(
                socket,
                SocketChange::State {
                    old: TcpState::Closed,
                    new: TcpState::Established,
                    local: Some(local),
                    remote: Some(remote),
                },
            ),
            PtraceChange::Sent { socket, bytes } => event(
                socket,
                SocketChange::Sent {
                    bytes: signed(bytes),
                    flags: 0,
                },
            ),
            PtraceChange::Received { socket, bytes } => event(
                socket,
                SocketChange::Received {
                    bytes: signed(bytes),
                    flags: 0,
                },
            ),
            PtraceChange::Contents { .. }
            | PtraceChange::Unread { .. }
            | PtraceChange::Ended { .. } => return None,
            PtraceChange::Began { child, is_process } => of_thread(
                id(thread),
                ThreadChange::Forked {
                    child: id(child),
                    is_process: Some(is_process),
                },
            ),
            PtraceChange::Executes { name } => {
                of_thread(id(thread), ThreadChange::Executes { name })
            }
            PtraceChange::Ends { last } => of_thread(id(thread), ThreadChange::Exits { last }),
            PtraceChange::Lost { count } => PtraceEvent::Lost(count),
            PtraceChange::Absent { why } => PtraceEvent::Absent(why),
        })
    }
}

/// The stream change of a record, with its socket.
fn stream_change(what: &PtraceChange) -> Option<(u64, StreamChange)> {
    Some(match what {
        PtraceChange::Opened {
            socket,
            local,
            remote,
            has_accepted,
        } => {
            let ends = [*local, *remote];
            (*socket, StreamChange::Begins(ends, *has_accepted))
        }
        PtraceChange::Contents { socket, sent, hex } => {
            let (sent, bytes) = (*sent, bytes_of_hex(hex));
            (*socket, StreamChange::Passes { sent, bytes })
        }
        PtraceChange::Unread {
            socket,
            sent,
            bytes,
        } => {
            let (sent, bytes) = (*sent, *bytes);
            (*socket, StreamChange::PassesUnread { sent, bytes })
        }
        PtraceChange::Ended { socket } => (*socket, StreamChange::Ends),
        _ => return None,
    })
}

impl Drop for PtraceSource {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_monitor::observe::ptrace::record::PtraceRecordWriter;

    #[test]
    fn programs_have_numbers_of_their_own() {
        let directory = stackline_guard::scratch::create_directory("test").unwrap();
        let mut sources = [
            PtraceSource::create(&directory, 0, false).unwrap(),
            PtraceSource::create(&directory, 1, false).unwrap(),
        ];
        let threads: Vec<Vec<u32>> = sources
            .iter_mut()
            .map(|source| {
                let mut writer = PtraceRecordWriter::open(&source.path, false).unwrap();
                writer.write(&PtraceRecord {
                    at_ns: 1,
                    thread: 2,
                    what: PtraceChange::Executes { name: "a".into() },
                });
                writer.write(&PtraceRecord {
                    at_ns: 2,
                    thread: 2,
                    what: PtraceChange::Began {
                        child: 3,
                        is_process: false,
                    },
                });
                let thread = |news: &PtraceEvent| match news {
                    PtraceEvent::Thread(ThreadEvent {
                        what: ThreadChange::Forked { child, .. },
                        ..
                    }) => Some(*child),
                    PtraceEvent::Thread(event) => Some(event.thread),
                    _ => None,
                };
                source.drain().unwrap().iter().filter_map(thread).collect()
            })
            .collect();
        let of = |base: u32| vec![base + 2, base + 2, base + 3];
        assert_eq!(threads, [of(THREAD_NUMBERS), of(2 * THREAD_NUMBERS)]);
        let path = sources[0].path.clone();
        drop(sources);
        assert!(!path.exists(), "no pipe is left");
    }
}
