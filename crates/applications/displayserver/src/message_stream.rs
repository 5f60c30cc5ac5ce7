//! A client's side of V's messages (`ikp`) as a byte stream: written bytes go in messages, and the replies contain the bytes to read.
//!
//! ```text
//! message   what 1 (0 requests, 1 goodbye) | requests, or nothing where only answers are asked for
//! reply     what 1 (0 that was all, 1 there is more, 2 the connection ends) | answers, or why it ends
//! ```

use crate::transport::DisplayTransport;
use stackline_transfer::ikp::{self, IkpClientSegments, IkpTransferOptions};
use std::cell::Cell;
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

/// The limit on bytes of requests in a message.
const MOST: usize = 1000;
/// The longest reply, bytes.
pub(crate) const REPLY: usize = 1056;
/// The time between two messages that ask for answers while there are none: at first, and at most (it doubles).
const ASK: [Duration; 2] = [Duration::from_micros(200), Duration::from_millis(20)];

/// In a message: requests follow.
pub(crate) const REQUESTS: u8 = 0;
/// In a message: the client closes the connection.
pub(crate) const GOODBYE: u8 = 1;
/// In a reply: these are all answers.
pub(crate) const ALL: u8 = 0;
/// In a reply: more answers wait.
pub(crate) const MORE: u8 = 1;
/// In a reply: the connection ends.
pub(crate) const ENDS: u8 = 2;

/// The socket address of `HOST:PORT`.
pub(crate) fn address(text: &str) -> io::Result<SocketAddr> {
    text.to_socket_addrs()?
        .next()
        .ok_or_else(|| io::Error::other("the name has no address"))
}

/// A transport's failure as an error without its hint: the caller knows which hint fits.
pub(crate) fn failed(kind: io::ErrorKind, error: &dyn Display) -> io::Error {
    let words = error.to_string();
    io::Error::new(kind, words.split("; hint: ").next().unwrap_or_default())
}

/// The error if nobody answers.
pub(crate) fn silent(error: ikp::IkpTransferError) -> io::Error {
    failed(io::ErrorKind::Other, &error)
}

/// A connection of a client by V's messages.
#[derive(Debug)]
pub struct DisplayMessageStream {
    client: Box<ikp::IkpUdpClient>,
    /// Answers that came and are not read yet.
    answers: Vec<u8>,
    /// Whether the display has more answers.
    has_more: bool,
    /// The longest time that a read may take.
    patience: Cell<Option<Duration>>,
}

impl DisplayMessageStream {
    /// A stream to the display at that address. Whether there is one shows only with the first message.
    ///
    /// # Errors
    /// The kernel's error, or that the address is invalid.
    pub fn connect(to: &str) -> io::Result<Self> {
        let client = ikp::IkpUdpClient::connect(address(to)?, &IkpTransferOptions::default())
            .map_err(silent)?;
        Ok(Self {
            client: Box::new(client),
            answers: Vec::new(),
            has_more: false,
            patience: Cell::new(None),
        })
    }

    /// Sends a message with requests, and takes the answers of its reply.
    pub(crate) fn exchange(&mut self, what: u8, requests: &[u8]) -> io::Result<()> {
        let mut message = vec![what];
        message.extend_from_slice(requests);
        let mut reply = [0; REPLY];
        let count = self
            .client
            .send(&message, IkpClientSegments::none(), &mut reply)
            .map_err(silent)?;
        let Some((what, answers)) = reply[..count].split_first() else {
            return Err(io::Error::other("the reply is invalid"));
        };
        if *what == ENDS {
            let why = format!(
                "the display closed the connection: {}",
                String::from_utf8_lossy(answers)
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        self.answers.extend_from_slice(answers);
        self.has_more = *what == MORE;
        Ok(())
    }
}

impl DisplayTransport for DisplayMessageStream {
    // The sender is blocked until the reply comes, so a second thread could not read in the meantime: it has one handle.

    fn read_within(&self, patience: Option<Duration>) -> io::Result<()> {
        self.patience.set(patience);
        Ok(())
    }
}

impl Write for DisplayMessageStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = bytes.get(..MOST).unwrap_or(bytes);
        self.exchange(REQUESTS, piece)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for DisplayMessageStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (begun, mut pause) = (Instant::now(), ASK[0]);
        while self.answers.is_empty() {
            if !self.has_more {
                if self
                    .patience
                    .get()
                    .is_some_and(|patience| begun.elapsed() >= patience)
                {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                thread::sleep(pause);
                pause = (pause * 2).min(ASK[1]);
            }
            self.exchange(REQUESTS, b"")?;
        }
        let count = into.len().min(self.answers.len());
        into[..count].copy_from_slice(&self.answers[..count]);
        self.answers.drain(..count);
        Ok(count)
    }
}

impl Drop for DisplayMessageStream {
    fn drop(&mut self) {
        let _ = self.exchange(GOODBYE, b"");
    }
}
