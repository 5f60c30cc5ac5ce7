//! Programs that are stopped at their calls, where the kernel's trace events are not to be had: the command that each is started by,
//! and what it reports. Reports of several programs are kept apart: each may have process numbers of its own.

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

/// The hidden command of this program that does it.
const COMMAND: &str = "ptrace";

fn own() -> Result<PathBuf> {
    std::env::current_exe().map_err(|error| {
        Error::environment(format!("cannot find the path of this program: {error}"))
    })
}

/// What a message and its answer take a program, elapsed ns of each batch: as it is, or `stopped` at its calls.
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

/// What is reported of one program.
#[derive(Debug)]
pub(crate) struct PtraceSource {
    reader: PtraceRecordReader,
    path: PathBuf,
    /// Added to all its numbers.
    base: u32,
    begun: bool,
    /// What it sends and receives is reported too.
    contents: bool,
}

/// What a call sent or received of a connection's stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StreamPiece {
    pub(crate) at_ns: u64,
    pub(crate) socket: u64,
    pub(crate) what: StreamChange,
}

/// What happened to a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StreamChange {
    /// It is used for the first time at this end: this one and the other.
    Begins([SocketAddr; 2]),
    /// These bytes were sent, or received.
    Passes { sent: bool, bytes: Vec<u8> },
    /// So many that are not known.
    PassesUnread { sent: bool, bytes: u64 },
    /// The other end sends no more.
    Ends,
}

/// What it comes to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PtraceEvent {
    Socket(SocketEvent),
    Thread(ThreadEvent),
    /// What was sent or received of a stream, where contents are wanted.
    Stream(StreamPiece),
    Lost(u64),
    Absent(String),
}

impl PtraceSource {
    /// Of the program of that number; its pipe is made in a directory of the trace's own.
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

    /// What was reported since the last time.
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
        // The first is of the program's first thread, which this process began.
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

    /// What a record says of a socket or a thread, beside what passed in a stream.
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

/// What passed in which stream, by a record.
fn stream_change(what: &PtraceChange) -> Option<(u64, StreamChange)> {
    Some(match what {
        PtraceChange::Opened {
            socket,
            local,
            remote,
        } => (*socket, StreamChange::Begins([*local, *remote])),
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
