//! A byte stream by V's I/O protocol: blocks of an instance at an internet server (the byte-stream library of the paper, section 2.3).
//! Reading and writing may go on at the same time, each with messages of its own.

pub(crate) mod scheme;

use crate::message_stream::{address, silent};
use crate::transport::DisplayTransport;
use stackline_proto::papers::vio::{VioReply, VioRequest};
use stackline_transfer::ikp::{self, IkpClientSegments, IkpTransferOptions};
use std::cell::Cell;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The longest reply, bytes.
const REPLY: usize = 1056;
/// The pause before a block for which there was no room is written again: at first, and at most (it doubles).
const AGAIN: [Duration; 2] = [Duration::from_micros(200), Duration::from_millis(20)];

/// One direction: its message client, the next block's number, and the unread rest of the last block.
#[derive(Debug)]
struct VioDirection {
    client: ikp::IkpUdpClient,
    block: u32,
    rest: Vec<u8>,
    reply: [u8; REPLY],
}

impl VioDirection {
    fn new(server: SocketAddr) -> io::Result<Mutex<Self>> {
        let client =
            ikp::IkpUdpClient::connect(server, &IkpTransferOptions::default()).map_err(silent)?;
        Ok(Mutex::new(Self {
            client,
            block: 0,
            rest: Vec::new(),
            reply: [0; REPLY],
        }))
    }

    fn ask(&mut self, request: &VioRequest<'_>) -> io::Result<VioReply<'_>> {
        let count = self
            .client
            .send(&request.bytes(), IkpClientSegments::none(), &mut self.reply)
            .map_err(silent)?;
        VioReply::read(&self.reply[..count]).ok_or_else(other)
    }
}

/// An instance at the server; it is released when the last handle is dropped.
#[derive(Debug)]
struct VioClientInstance {
    instance: u64,
    most: usize,
    reads: Mutex<VioDirection>,
    writes: Mutex<VioDirection>,
    is_ended: AtomicBool,
}

fn lock(half: &Mutex<VioDirection>) -> MutexGuard<'_, VioDirection> {
    half.lock().unwrap_or_else(PoisonError::into_inner)
}

impl VioClientInstance {
    fn release(&self) {
        if !self.is_ended.swap(true, Ordering::Relaxed) {
            let _ = lock(&self.writes).ask(&VioRequest::Release(self.instance));
        }
    }
}

impl Drop for VioClientInstance {
    fn drop(&mut self) {
        self.release();
    }
}

/// A handle of a stream.
#[derive(Debug)]
pub struct Vio {
    open: Arc<VioClientInstance>,
    read_within: Cell<Option<Duration>>,
    write_within: Cell<Option<Duration>>,
}

impl Vio {
    /// Connects to the name `name` through the internet server at that address.
    ///
    /// # Errors
    /// The kernel's error, or that no internet server answers; `PermissionDenied` with the server's words if it refuses.
    pub fn connect(server: &str, secret: &[u8], name: &str) -> io::Result<Self> {
        let server = address(server)?;
        let writes = VioDirection::new(server)?;
        let (instance, most) = {
            let mut half = lock(&writes);
            match half.ask(&VioRequest::Create {
                secret,
                name: name.as_bytes(),
            })? {
                VioReply::Refused(why) => {
                    return Err(io::Error::new(
                        ErrorKind::PermissionDenied,
                        String::from_utf8_lossy(why),
                    ));
                }
                reply => reply.created().ok_or_else(other)?,
            }
        };
        let reads = VioDirection::new(server)?;
        let open = VioClientInstance {
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

    /// A second handle of the same stream.
    #[must_use]
    pub fn again(&self) -> Self {
        Self {
            open: Arc::clone(&self.open),
            read_within: self.read_within.clone(),
            write_within: self.write_within.clone(),
        }
    }
}

fn other() -> io::Error {
    io::Error::other("the server does not speak V's I/O protocol")
}

/// An error in the server's words.
fn ended(why: &[u8]) -> io::Error {
    io::Error::new(ErrorKind::ConnectionAborted, String::from_utf8_lossy(why))
}

impl DisplayTransport for Vio {
    fn second_handle(&self) -> io::Result<Self> {
        Ok(self.again())
    }

    fn read_within(&self, patience: Option<Duration>) -> io::Result<()> {
        self.read_within.set(patience);
        Ok(())
    }

    fn write_within(&self, patience: Duration) -> io::Result<()> {
        self.write_within.set(Some(patience));
        Ok(())
    }

    fn end(&self) {
        self.open.release();
    }
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
            match half.ask(&VioRequest::Read(self.open.instance, block))? {
                VioReply::Done(bytes) => {
                    half.rest = bytes.to_vec();
                    half.block = block.wrapping_add(1);
                }
                VioReply::Ended(b"") => return Ok(0),
                // An instance that this end has released does not exist any more.
                VioReply::Refused(_) if self.open.is_ended.load(Ordering::Relaxed) => return Ok(0),
                VioReply::Ended(why) | VioReply::Refused(why) => return Err(ended(why)),
                VioReply::Later | VioReply::Created(..) => {}
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
            match half.ask(&VioRequest::Write(self.open.instance, block, piece))? {
                VioReply::Done(_) => {
                    half.block = block.wrapping_add(1);
                    return Ok(piece.len());
                }
                VioReply::Ended(why) | VioReply::Refused(why) => return Err(ended(why)),
                VioReply::Later | VioReply::Created(..) => {}
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
