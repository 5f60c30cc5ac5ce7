//! A command of a client: a verb in any case, then perhaps a space and an argument (RFC 959, 5.3).

use super::data_address::{read_extended_port, read_port};
use core::net::{SocketAddr, SocketAddrV4};

/// How many letters the verbs that are served have.
const VERB: usize = 4;

/// A command, with what its argument says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FtpCommand<'l> {
    /// `USER`: who logs in.
    User(&'l [u8]),
    /// `PASS`: the password.
    Pass(&'l [u8]),
    /// `TYPE I`, or `TYPE L 8`, which is the same: files are bytes.
    ImageType,
    /// `MODE S`: the end of a file is the end of its connection.
    StreamMode,
    /// `STRU F`: files have no records.
    FileStructure,
    /// `EPSV` (RFC 2428, 3): the server is to listen for the connection of the next file.
    ExtendedPassive,
    /// `PASV`: the same over IPv4.
    Passive,
    /// `EPRT` (RFC 2428, 2): where the server is to connect to for the next file.
    ExtendedPort(SocketAddr),
    /// `PORT`: the same over IPv4.
    Port(SocketAddrV4),
    /// `STOR`: the server receives a file with this name.
    Store(&'l [u8]),
    /// `RETR`: the server sends the file with this name.
    Retrieve(&'l [u8]),
    /// `NOOP`.
    Noop,
    /// `QUIT`.
    Quit,
    /// A verb of these with an argument that is not of its form, or not one that is served: 501.
    Wrong,
    /// Another verb: 502.
    Other,
}

impl<'l> FtpCommand<'l> {
    /// Reads a line without its end.
    #[must_use]
    pub fn read(line: &'l [u8]) -> Self {
        let at = line.iter().position(|byte| *byte == b' ');
        let (verb, argument) = match at {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &line[line.len()..]),
        };
        let whole = |command| {
            if argument.is_empty() {
                command
            } else {
                Self::Wrong
            }
        };
        let word = |words: &[&str], command| {
            let is_one = |word: &&str| argument.eq_ignore_ascii_case(word.as_bytes());
            if words.iter().any(is_one) {
                command
            } else {
                Self::Wrong
            }
        };
        let named = |command: fn(&'l [u8]) -> Self| match argument {
            [] => Self::Wrong,
            name => command(name),
        };
        let mut name = [0; VERB];
        if verb.len() != VERB {
            return Self::Other;
        }
        name.copy_from_slice(verb);
        name.make_ascii_uppercase();
        match &name {
            b"USER" => named(Self::User),
            b"PASS" => Self::Pass(argument),
            b"TYPE" => word(&["I", "L 8"], Self::ImageType),
            b"MODE" => word(&["S"], Self::StreamMode),
            b"STRU" => word(&["F"], Self::FileStructure),
            b"EPSV" => whole(Self::ExtendedPassive),
            b"PASV" => whole(Self::Passive),
            b"EPRT" => read_extended_port(argument).map_or(Self::Wrong, Self::ExtendedPort),
            b"PORT" => read_port(argument).map_or(Self::Wrong, Self::Port),
            b"STOR" => named(Self::Store),
            b"RETR" => named(Self::Retrieve),
            b"NOOP" => whole(Self::Noop),
            b"QUIT" => whole(Self::Quit),
            _ => Self::Other,
        }
    }
}
