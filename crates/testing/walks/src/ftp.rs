//! Lines of FTP that bytes hold, read as commands and as replies: for the fuzz target and the tests.
//!
//! Whatever comes: nothing panics, an address that was read is written as one that reads the same, and a reply has a code of its range.

use core::net::SocketAddr;
use stackline_proto::ftp::{
    FtpCommand, FtpReplyLines, extended_passive_reply, extended_port_command, passive_reply,
    port_command, read_extended_passive, read_passive,
};

/// Reads the lines of the bytes; how many commands were known and how many replies were whole.
///
/// # Panics
/// When what is found cannot be true.
#[must_use]
pub fn fuzz_ftp(bytes: &[u8]) -> usize {
    let mut found = 0;
    let mut reply = FtpReplyLines::default();
    for line in bytes.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii_end();
        found += usize::from(read_command(line));
        match reply.take(line) {
            Ok(Some(code)) => {
                assert!((100..600).contains(&code));
                found += 1;
                reply = FtpReplyLines::default();
            }
            Ok(None) => {}
            Err(_) => reply = FtpReplyLines::default(),
        }
        if let Ok(text) = core::str::from_utf8(line) {
            read_places(text);
        }
    }
    found
}

/// Whether a line is a command that is known.
fn read_command(line: &[u8]) -> bool {
    let command = FtpCommand::read(line);
    let again = match command {
        FtpCommand::ExtendedPort(address) => {
            assert!(address.port() > 0);
            extended_port_command(address)
        }
        FtpCommand::Port(address) => {
            let extended = extended_port_command(SocketAddr::V4(address));
            let read = FtpCommand::read(extended.as_bytes());
            assert_eq!(read, FtpCommand::ExtendedPort(address.into()));
            port_command(address)
        }
        FtpCommand::User(name) | FtpCommand::Store(name) | FtpCommand::Retrieve(name) => {
            assert!(!name.is_empty() && name.len() < line.len());
            return true;
        }
        command => return !matches!(command, FtpCommand::Wrong | FtpCommand::Other),
    };
    assert_eq!(FtpCommand::read(again.as_bytes()), command);
    true
}

/// Reads where a connection for a file goes.
fn read_places(text: &str) {
    if let Some(port) = read_extended_passive(text) {
        let again = read_extended_passive(&extended_passive_reply(port));
        assert_eq!(again, Some(port));
    }
    if let Some(place) = read_passive(text) {
        assert!(place.port() > 0);
        assert_eq!(read_passive(&passive_reply(place)), Some(place));
    }
}
