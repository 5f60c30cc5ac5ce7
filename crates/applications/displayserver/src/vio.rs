//! A stream of bytes by V's I/O protocol: blocks of an instance at an internet server, read and written in turns (the byte-stream library of
//! the paper, section 2.3). Reading and writing may go on at once: each has messages of its own.

use crate::message_stream::{address, silent};
use stackline_proto::vio::{Reply, Request};
use stackline_transfer::ikp::{self, Options, Segments};
use std::cell::Cell;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What a reply may have.
const REPLY: usize = 1056;
/// How long one waits before a block is written again that had no room, at first and at most.
const AGAIN: [Duration; 2] = [Duration::from_micros(200), Duration::from_millis(20)];

/// One direction: its messages, the next block, and what of the last one was not read.
#[derive(Debug)]
struct Half {
    client: ikp::Client,
    block: u32,
    rest: Vec<u8>,
    reply: [u8; REPLY],
}

impl Half {
    fn new(server: SocketAddr) -> io::Result<Mutex<Self>> {
        let client = ikp::Client::connect(server, &Options::default()).map_err(silent)?;
        Ok(Mutex::new(Self {
            client,
            block: 0,
            rest: Vec::new(),
            reply: [0; REPLY],
        }))
    }

    fn ask(&mut self, request: &Request<'_>) -> io::Result<Reply<'_>> {
        let count = self
            .client
            .send(&request.bytes(), Segments::none(), &mut self.reply)
            .map_err(silent)?;
        Reply::read(&self.reply[..count]).ok_or_else(other)
    }
}

/// An instance; whoever had it last releases it.
#[derive(Debug)]
struct Open {
    instance: u64,
    most: usize,
    reads: Mutex<Half>,
    writes: Mutex<Half>,
    is_ended: AtomicBool,
}

fn lock(half: &Mutex<Half>) -> MutexGuard<'_, Half> {
    half.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Open {
    fn release(&self) {
        if !self.is_ended.swap(true, Ordering::Relaxed) {
            let _ = lock(&self.writes).ask(&Request::Release(self.instance));
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.release();
    }
}

/// A stream.
#[derive(Debug)]
pub struct Vio {
    open: Arc<Open>,
    read_within: Cell<Option<Duration>>,
    write_within: Cell<Option<Duration>>,
}

impl Vio {
    /// To what has that name, through the internet server at that address.
    ///
    /// # Errors
    /// The kernel's; that no internet server answers; `PermissionDenied` where it refuses, with its words.
    pub fn connect(server: &str, secret: &[u8], name: &str) -> io::Result<Self> {
        let server = address(server)?;
        let writes = Half::new(server)?;
        let (instance, most) = {
            let mut half = lock(&writes);
            match half.ask(&Request::Create {
                secret,
                name: name.as_bytes(),
            })? {
                Reply::Refused(why) => {
                    return Err(io::Error::new(
                        ErrorKind::PermissionDenied,
                        String::from_utf8_lossy(why),
                    ));
                }
                reply => reply.created().ok_or_else(other)?,
            }
        };
        let reads = Half::new(server)?;
        let open = Open {
            instance,
            most: usize::from(most).clamp(1, 1000),
            reads,
            writes,
            is_ended: AtomicBool::new(false),
        };
        Ok(Self {
            open: Arc::new(open),
            read_within: Cell::new(None),
            write_within: Cell::new(None),
        })
    }

    /// The same stream once more.
    #[must_use]
    pub fn again(&self) -> Self {
        Self {
            open: Arc::clone(&self.open),
            read_within: self.read_within.clone(),
            write_within: self.write_within.clone(),
        }
    }

    /// Reading takes no longer than that, by a quarter of a second, or fails.
    pub fn read_within(&self, patience: Option<Duration>) {
        self.read_within.set(patience);
    }

    /// Writing takes no longer than that, or fails.
    pub fn write_within(&self, patience: Duration) {
        self.write_within.set(Some(patience));
    }

    /// Ends it both ways, once what was written is there.
    pub fn end(&self) {
        self.open.release();
    }
}

fn other() -> io::Error {
    io::Error::other("what answers does not speak V's I/O protocol")
}

/// In the words of the server.
fn ended(why: &[u8]) -> io::Error {
    io::Error::new(ErrorKind::ConnectionAborted, String::from_utf8_lossy(why))
}

impl Read for Vio {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let begun = Instant::now();
        let mut half = lock(&self.open.reads);
        while half.rest.is_empty() {
            if self.open.is_ended.load(Ordering::Relaxed) {
                return Ok(0);
            }
            if self
                .read_within
                .get()
                .is_some_and(|patience| begun.elapsed() >= patience)
            {
                return Err(ErrorKind::TimedOut.into());
            }
            let block = half.block;
            match half.ask(&Request::Read(self.open.instance, block))? {
                Reply::Done(bytes) => {
                    half.rest = bytes.to_vec();
                    half.block = block.wrapping_add(1);
                }
                Reply::Ended(b"") => return Ok(0),
                // What this end released is not there any more.
                Reply::Refused(_) if self.open.is_ended.load(Ordering::Relaxed) => return Ok(0),
                Reply::Ended(why) | Reply::Refused(why) => return Err(ended(why)),
                Reply::Later | Reply::Created(..) => {}
            }
        }
        let count = into.len().min(half.rest.len());
        into[..count].copy_from_slice(&half.rest[..count]);
        half.rest.drain(..count);
        Ok(count)
    }
}

impl Write for Vio {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (begun, mut pause) = (Instant::now(), AGAIN[0]);
        let piece = bytes.get(..self.open.most).unwrap_or(bytes);
        if piece.is_empty() {
            return Ok(0);
        }
        loop {
            if self.open.is_ended.load(Ordering::Relaxed) {
                return Err(ErrorKind::BrokenPipe.into());
            }
            let mut half = lock(&self.open.writes);
            let block = half.block;
            match half.ask(&Request::Write(self.open.instance, block, piece))? {
                Reply::Done(_) => {
                    half.block = block.wrapping_add(1);
                    return Ok(piece.len());
                }
                Reply::Ended(why) | Reply::Refused(why) => return Err(ended(why)),
                Reply::Later | Reply::Created(..) => {}
            }
            drop(half);
            if self
                .write_within
                .get()
                .is_some_and(|patience| begun.elapsed() >= patience)
            {
                return Err(ErrorKind::TimedOut.into());
            }
            thread::sleep(pause);
            pause = (pause * 2).min(AGAIN[1]);
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
