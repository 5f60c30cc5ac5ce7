//! The login before a terminal is opened: the server speaks first, the other end answers its options, and then sends the secret. Nothing
//! else may come first, so a web page, whose browser begins with `POST`, cannot start a program.
//!
//! ```text
//! server                               other end
//! IAC WILL ECHO, IAC DO NAWS,          answers to them, and no data before
//!   IAC WILL SUPPRESS-GO-AHEAD
//! "secret: "                           the secret, and the end of a line
//! "\r\n", or "(wrong)\r\nsecret: "     three times at most
//! ```
//! Over PUP TELNET, which has no negotiation and which no browser speaks, it begins with the question. Programs of the same user on a unix
//! socket are not asked for a secret.

use super::telnet_end::PIECE;
use crate::papers::pup::{Pup, PupStreamInput};
use crate::stream::DisplayStream;
use crate::transport::DisplayTransport;
use stackline_guard::attempts::Attempts;
use stackline_guard::deadline::Deadline;
use stackline_guard::secret::{LONGEST, Secret};
use stackline_proto::papers::pup::telnet::PupTelnetMark;
use stackline_proto::papers::telnet::{Telnet, TelnetCommand as Said, TelnetOption, Whose};
use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

/// The question for the secret.
pub(super) const ASKS: &[u8] = b"secret: ";
/// The answer to a wrong secret.
const WRONG: &[u8] = b"(wrong)\r\n";
/// The answer to the right secret.
const RIGHT: &[u8] = b"\r\n";
/// How many wrong secrets a connection may send.
const TRIES: usize = 3;
/// The limit on bytes (commands) before the options are answered.
const AHEAD: usize = 4096;
/// How long the whole login may take: a person types the secret.
pub(super) const TIME: Duration = Duration::from_secs(60);

/// Data that was typed, and the commands in it with their positions.
pub(super) type Typed = (Vec<u8>, Vec<(usize, Said)>);

/// A connection by RFC 854's TELNET that wants a terminal.
pub(super) struct Guest<'g> {
    stream: &'g mut DisplayStream,
    telnet: &'g mut Telnet,
    deadline: Deadline,
    came: Vec<u8>,
    taken: usize,
}

fn refused(why: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, why.into())
}

impl<'g> Guest<'g> {
    pub(super) fn new(
        stream: &'g mut DisplayStream,
        telnet: &'g mut Telnet,
        deadline: Deadline,
    ) -> Self {
        Self {
            stream,
            telnet,
            deadline,
            came: Vec::new(),
            taken: 0,
        }
    }

    /// The next byte, after pending output was sent.
    fn byte(&mut self) -> io::Result<u8> {
        while self.taken == self.came.len() {
            self.flush()?;
            self.stream.read_within(Some(self.deadline.timeout()?))?;
            self.came.resize(PIECE, 0);
            let read = self.stream.read(&mut self.came);
            self.came.truncate(*read.as_ref().unwrap_or(&0));
            self.taken = 0;
            if read? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        self.taken += 1;
        Ok(self.came[self.taken - 1])
    }

    fn flush(&mut self) -> io::Result<()> {
        let out = self.telnet.output();
        if out.is_empty() {
            Ok(())
        } else {
            self.stream.write_all(&out)
        }
    }

    fn says(&mut self, words: &[u8]) -> io::Result<()> {
        self.telnet.send(words);
        self.flush()
    }

    /// Waits until the options are answered, before any data may come.
    pub(super) fn agree(&mut self) -> io::Result<()> {
        self.telnet.ask(TelnetOption::Echo, Whose::Own, true);
        self.telnet
            .ask(TelnetOption::WindowSize, Whose::Other, true);
        self.telnet
            .ask(TelnetOption::SuppressGoAhead, Whose::Own, true);
        let mut data = Vec::new();
        for _ in 0..AHEAD {
            if !self
                .telnet
                .is_asked(TelnetOption::SuppressGoAhead, Whose::Own)
            {
                return Ok(());
            }
            let byte = self.byte()?;
            self.telnet.receive(&[byte], &mut data);
            if !data.is_empty() {
                return Err(refused(
                    "the peer sent data before negotiating TELNET options",
                ));
            }
        }
        Err(refused("the peer did not negotiate TELNET options"))
    }

    /// Asks for the secret.
    pub(super) fn identify(&mut self, secret: &Secret, attempts: &Attempts) -> io::Result<()> {
        for _ in 0..TRIES {
            self.says(ASKS)?;
            let said = self.line()?;
            if secret.is(&said) {
                return self.says(RIGHT);
            }
            self.waits(attempts.failed(Instant::now()))?;
            self.says(WRONG)?;
        }
        Err(refused("the peer sent the wrong secret"))
    }

    /// Reads a line without echoing it.
    fn line(&mut self) -> io::Result<Vec<u8>> {
        let (mut line, mut data) = (Vec::new(), Vec::new());
        while line.len() <= LONGEST {
            let byte = self.byte()?;
            for (_, command) in self.telnet.receive(&[byte], &mut data) {
                match command {
                    Said::EraseCharacter => drop(line.pop()),
                    Said::EraseLine => line.clear(),
                    Said::AreYouThere => self.telnet.send(b"\r\n[yes]\r\n"),
                    _ => {}
                }
            }
            for byte in data.drain(..) {
                match byte {
                    b'\r' | b'\n' => return Ok(line),
                    8 | 127 => drop(line.pop()),
                    other => line.push(other),
                }
            }
        }
        Err(refused("the secret is too long"))
    }

    /// Waits for this time; what comes meanwhile is dropped.
    fn waits(&mut self, time: Duration) -> io::Result<()> {
        let (until, own) = (Deadline::within(time), self.deadline);
        self.deadline = until;
        let mut data = Vec::new();
        let ended = loop {
            match self.byte() {
                Ok(byte) => drop(self.telnet.receive(&[byte], &mut data)),
                Err(error) if is_late(&error) => break Ok(()),
                Err(error) => break Err(error),
            }
            data.clear();
        };
        self.deadline = own;
        ended
    }

    /// Returns what was typed ahead, for the program.
    pub(super) fn typed(self) -> io::Result<Typed> {
        let mut data = Vec::new();
        let commands = self.telnet.receive(&self.came[self.taken..], &mut data);
        self.stream.write_all(&self.telnet.output())?;
        self.stream.read_within(None)?;
        Ok((data, commands))
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Checks the secret of a connection by PUP TELNET. Returns whether it is for a display, and what was typed after the secret.
pub(super) fn identify_by_pup(
    stream: &Pup,
    secret: &Secret,
    attempts: &Attempts,
    deadline: Deadline,
) -> io::Result<(bool, Vec<u8>)> {
    let (mut says, mut tries) = (stream.again(), 0);
    let (mut is_display, mut skips, mut line) = (false, 0, Vec::new());
    let mut piece = [0; PIECE];
    says.write_all(ASKS)?;
    loop {
        stream.read_within(Some(deadline.timeout()?))?;
        let data = match stream.next(&mut piece)? {
            PupStreamInput::Data(0) => return Err(ErrorKind::UnexpectedEof.into()),
            PupStreamInput::Data(count) => &piece[..count],
            PupStreamInput::Mark(code) => {
                let mark = PupTelnetMark::from_code(code);
                if mark == Some(PupTelnetMark::Timing) {
                    is_display = true;
                    stream.say(Some(PupTelnetMark::TimingReply.code()), None);
                }
                // The size of the terminal is sent again once there is one.
                skips += usize::from(mark.is_some_and(PupTelnetMark::has_argument));
                continue;
            }
            PupStreamInput::Interrupt(_) => continue,
        };
        let skipped = skips.min(data.len());
        skips -= skipped;
        line.extend_from_slice(&data[skipped..]);
        let Some(end) = line.iter().position(|byte| matches!(byte, b'\r' | b'\n')) else {
            if line.len() > LONGEST {
                return Err(refused("the secret is too long"));
            }
            continue;
        };
        if secret.is(&line[..end]) {
            says.write_all(RIGHT)?;
            stream.read_within(None)?;
            return Ok((is_display, line.split_off(end + 1)));
        }
        line.clear();
        tries += 1;
        let until = Deadline::within(attempts.failed(Instant::now()));
        while let Some(rest) = until.rest() {
            stream.read_within(Some(rest))?;
            match stream.next(&mut piece) {
                Ok(PupStreamInput::Data(0)) => return Err(ErrorKind::UnexpectedEof.into()),
                Err(error) if !is_late(&error) => return Err(error),
                _ => {}
            }
        }
        says.write_all(WRONG)?;
        if tries == TRIES {
            return Err(refused("the peer sent the wrong secret"));
        }
        says.write_all(ASKS)?;
    }
}

/// The other end's side of the login: it answers the question itself if it knows the secret.
pub(super) struct Knock<'k> {
    secret: Option<&'k Secret>,
    /// The bytes of the question, or of the reply to the secret, that have come so far.
    came: Vec<u8>,
    state: Knocking,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Knocking {
    /// The question may come.
    Waits,
    /// The secret was sent; the reply is awaited.
    Said,
    /// The secret was right.
    Right,
    /// The secret was wrong.
    Wrong,
    /// There was no question, or the secret is not known here: everything is passed to the person.
    Open,
}

impl<'k> Knock<'k> {
    pub(super) const fn new(secret: Option<&'k Secret>) -> Self {
        Self {
            secret,
            came: Vec::new(),
            state: Knocking::Waits,
        }
    }

    pub(super) const fn state(&self) -> Knocking {
        self.state
    }

    /// Removes from `data` what belongs to the login. Returns bytes to send, if any.
    pub(super) fn takes(&mut self, data: &mut Vec<u8>) -> Option<Vec<u8>> {
        let expected = match self.state {
            Knocking::Waits => ASKS,
            Knocking::Said => RIGHT,
            _ => return None,
        };
        self.came.append(data);
        if self.came.starts_with(expected) {
            *data = self.came.split_off(expected.len());
            self.came.clear();
            match (self.state, self.secret) {
                (Knocking::Said, _) => self.state = Knocking::Right,
                (_, Some(secret)) => {
                    self.state = Knocking::Said;
                    // Bytes that came with the question cannot be the reply, but may be the beginning of one.
                    let none = self.takes(data);
                    debug_assert!(none.is_none(), "there is one question");
                    return Some([secret.bytes(), b"\n"].concat());
                }
                (_, None) => {
                    self.state = Knocking::Open;
                    data.splice(..0, ASKS.iter().copied());
                }
            }
        } else if !expected.starts_with(&self.came) {
            self.state = if self.state == Knocking::Said {
                Knocking::Wrong
            } else {
                Knocking::Open
            };
            *data = std::mem::take(&mut self.came);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In whatever pieces it comes.
    #[test]
    fn the_question_is_answered_once_and_what_follows_is_the_program_s() {
        let secret = Secret::new(b"correct horse".to_vec()).unwrap();
        let talk = |secret: Option<&Secret>, came: &[u8], size: usize| {
            let (mut knock, mut said, mut shown) = (Knock::new(secret), Vec::new(), Vec::new());
            for piece in came.chunks(size) {
                let mut data = piece.to_vec();
                said.extend(knock.takes(&mut data).into_iter().flatten());
                shown.extend(data);
            }
            (knock.state(), said, shown)
        };
        let answer = b"correct horse\n".to_vec();
        for size in 1..20 {
            let right = talk(Some(&secret), b"secret: \r\nhello", size);
            assert_eq!(
                right,
                (Knocking::Right, answer.clone(), b"hello".to_vec()),
                "{size}"
            );
            let wrong = talk(Some(&secret), b"secret: (wrong)\r\n", size);
            assert_eq!(
                wrong,
                (Knocking::Wrong, answer.clone(), b"(wrong)\r\n".to_vec()),
                "{size}"
            );
            let other = talk(Some(&secret), b"sec login: ", size);
            assert_eq!(
                other,
                (Knocking::Open, vec![], b"sec login: ".to_vec()),
                "{size}"
            );
            let person = talk(None, b"secret: ", size);
            assert_eq!(
                person,
                (Knocking::Open, vec![], b"secret: ".to_vec()),
                "{size}"
            );
        }
    }
}
