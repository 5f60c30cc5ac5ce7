//! Echo (RFC 862), discard (RFC 863) and character generator (RFC 864).

use super::contract::{StreamServer, receive_datagrams};
use stackline_guard::stop::StopSwitch;
use std::io::{self, Read, Write};
use std::net::{TcpStream, UdpSocket};

/// Bytes that are moved at a time.
const PIECE: usize = 64 << 10;
/// Bytes of a line of chargen, its end included.
const LINE: usize = 74;
/// The least port that datagrams are answered to: below stand other servers, which would answer in turn.
const LEAST_PORT: u16 = 1024;

/// Sends back what it receives.
pub(super) struct Echo;

impl StreamServer for Echo {
    fn serve(&self, mut stream: TcpStream, _: u64) -> io::Result<()> {
        let mut room = vec![0; PIECE];
        loop {
            match stream.read(&mut room)? {
                0 => return Ok(()),
                bytes => stream.write_all(&room[..bytes])?,
            }
        }
    }
}

/// Receives and forgets.
pub(super) struct Discard;

impl StreamServer for Discard {
    fn serve(&self, mut stream: TcpStream, _: u64) -> io::Result<()> {
        let mut room = vec![0; PIECE];
        while stream.read(&mut room)? > 0 {}
        Ok(())
    }
}

/// Sends lines of 72 characters for as long as the client takes them.
pub(super) struct Chargen;

impl StreamServer for Chargen {
    fn serve(&self, mut stream: TcpStream, _: u64) -> io::Result<()> {
        let lines = chargen_lines();
        loop {
            stream.write_all(&lines)?;
        }
    }
}

/// One turn of the 95 printable characters: 95 lines, each of which begins one character later.
fn chargen_lines() -> Vec<u8> {
    let mut lines = Vec::with_capacity(95 * LINE);
    for first in 0..95 {
        lines.extend((first..first + 72).map(|character| b' ' + (character % 95)));
        lines.extend_from_slice(b"\r\n");
    }
    lines
}

pub(super) fn echo_datagrams(socket: &UdpSocket, stop: &StopSwitch) {
    receive_datagrams(socket, stop, |datagram, from| {
        if from.port() >= LEAST_PORT {
            let _ = socket.send_to(datagram, from);
        }
    });
}

pub(super) fn discard_datagrams(socket: &UdpSocket, stop: &StopSwitch) {
    receive_datagrams(socket, stop, |_, _| {});
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chargen_turns_by_one_character_a_line() {
        let lines = chargen_lines();
        assert_eq!(&lines[..4], b" !\"#");
        assert_eq!(&lines[LINE - 2..LINE + 2], b"\r\n!\"");
        assert_eq!(lines.len(), 95 * LINE);
        assert!(
            lines
                .iter()
                .all(|byte| (b' '..=b'~').contains(byte) || b"\r\n".contains(byte))
        );
    }
}
