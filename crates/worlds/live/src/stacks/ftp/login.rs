//! How a connection shows the token of the run to a server of FTP: as the password of a login, in hexadecimal digits.

use crate::stacks::authentication::{ShownAuthentication, TokenDialogue};
use socket2::Socket;
use stackline_guard::secret::is_same;
use stackline_os::stream_socket::{self as os, RecvFlags, SendFlags};
use stackline_proto::datagram::DatagramToken;
use stackline_proto::ftp::FtpCommand;
use std::fmt::Write as _;
use std::io;
use std::os::fd::AsFd;

/// Who logs in.
pub(super) const USER: &str = "stackline";
/// Most bytes that have come and were not read as lines: the longest line is that of the password, 39 bytes.
const ROOM: usize = 64;

/// A login, and the part of it that has come.
pub(super) struct FtpLogin {
    input: [u8; ROOM],
    have: usize,
    /// How many bytes were received in all.
    received: usize,
    /// Whether a user was named.
    is_named: bool,
}

impl FtpLogin {
    pub(super) const fn new() -> Self {
        Self {
            input: [0; ROOM],
            have: 0,
            received: 0,
            is_named: false,
        }
    }

    /// What has come behind the login.
    pub(super) fn rest(&self) -> &[u8] {
        &self.input[..self.have]
    }

    /// Answers the lines that have come.
    fn read_lines(&mut self, socket: &Socket, token: &DatagramToken) -> ShownAuthentication {
        while let Some(end) = self.rest().iter().position(|byte| *byte == b'\n') {
            let line = self.input[..end].trim_ascii_end();
            let (reply, shown) = match FtpCommand::read(line) {
                FtpCommand::User(_) => {
                    self.is_named = true;
                    (
                        "331 the token of the run, please",
                        ShownAuthentication::Part,
                    )
                }
                FtpCommand::Pass(said) if self.is_named && is_password(said, token) => {
                    ("230 logged in", ShownAuthentication::All)
                }
                _ => ("530 not logged in", ShownAuthentication::Stranger),
            };
            self.input.copy_within(end + 1..self.have, 0);
            self.have -= end + 1;
            match (say(socket, reply), shown) {
                (Ok(()), ShownAuthentication::Part) => {}
                (Ok(()), shown) => return shown,
                (Err(_), _) => return ShownAuthentication::Stranger,
            }
        }
        if self.have == ROOM {
            ShownAuthentication::Stranger
        } else {
            ShownAuthentication::Part
        }
    }
}

impl TokenDialogue for FtpLogin {
    fn greet(&mut self, socket: &Socket) {
        // A connection that has left by now is found by the first read.
        let _ = say(socket, "220 stackline measures here");
    }

    fn inspect(&mut self, socket: &Socket, token: &DatagramToken) -> ShownAuthentication {
        let room = &mut self.input[self.have..];
        match os::receive(socket.as_fd(), room, RecvFlags::DONTWAIT) {
            Ok(0) => ShownAuthentication::Stranger,
            Ok(n) => {
                self.have += n;
                self.received += n;
                self.read_lines(socket, token)
            }
            Err(error) => ShownAuthentication::after(&error),
        }
    }

    fn received(&self) -> usize {
        self.received
    }
}

/// Sends a line; a connection that has room for none of it is none of the run.
fn say(socket: &Socket, line: &str) -> io::Result<()> {
    let line = format!("{line}\r\n");
    let sent = os::send(socket.as_fd(), line.as_bytes(), SendFlags::DONTWAIT)?;
    if sent == line.len() {
        Ok(())
    } else {
        Err(io::ErrorKind::WriteZero.into())
    }
}

/// The token as a password.
pub(super) fn password(token: &DatagramToken) -> String {
    token.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn is_password(said: &[u8], token: &DatagramToken) -> bool {
    is_same(said, password(token).as_bytes())
}
