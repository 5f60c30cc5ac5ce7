//! The PUP TELNET at both ends: bytes go as they are; marks say how large the terminal is and ask whether all before them is done; an
//! interrupt with a mark behind it makes what was typed between them be dropped, and interrupts the program.

use super::person::{LEAVES, end, size};
use super::typist::Typist;
use super::{ANSWERS, For, PIECE, Terminal, lost};
use crate::pup::{Came, Pup};
use crate::raw::Raw;
use pty_process::Size;
use pty_process::blocking::Pty;
use stackline_core::error::Result;
use stackline_proto::pup::telnet::Mark;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;

/// What a person types to interrupt the program.
const INTERRUPT: u8 = 3;

/// What came first: nothing in time, or that with its bytes.
type First = (Option<Came>, [u8; PIECE]);

/// One terminal, until its program or its connection ends.
pub(super) fn one(stream: &Pup, program: &[String]) -> Result<()> {
    // Who goes before there is a terminal wanted none.
    let Ok(first) = first(stream) else { return Ok(()) };
    let is_display = first.0 == Some(Came::Mark(Mark::Timing.code()));
    let terminal = Terminal::start(program, if is_display { For::Display } else { For::Person }, (None, true))?;
    let typing = Typing {
        typist: terminal.typist()?,
        pty: Arc::clone(&terminal.pty),
        marked: None,
        size: (24, 80),
        dropping: 0,
    };
    let (typed, mut said) = (stream.again(), stream.again());
    terminal.run(move || type_in(&typed, typing, first), |bytes| said.write_all(bytes).is_ok(), || stream.end());
    Ok(())
}

/// Says that the program is for a display: a person's end says first how large its terminal is, or nothing.
pub(super) fn begins_for_display(stream: &Pup) {
    stream.say(Some(Mark::Timing.code()), None);
}

fn first(stream: &Pup) -> io::Result<First> {
    let mut piece = [0; PIECE];
    stream.read_within(Some(ANSWERS));
    let came = stream.next(&mut piece);
    stream.read_within(None);
    match came {
        Ok(Came::Data(0)) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok((None, piece)),
        came => came.map(|came| (Some(came), piece)),
    }
}

/// What comes over the connection is typed into the terminal.
fn type_in(stream: &Pup, mut typing: Typing, (mut first, mut piece): First) {
    while let Ok(came) = first.take().map_or_else(|| stream.next(&mut piece), Ok) {
        if came == Came::Data(0) || !typing.takes(stream, came, &piece) {
            break;
        }
    }
    typing.typist.finishes();
}

/// One who types.
struct Typing {
    typist: Typist,
    pty: Arc<Pty>,
    /// The mark whose byte is next.
    marked: Option<Mark>,
    /// Lines and letters of the terminal.
    size: (u16, u16),
    /// Interrupts whose mark has not come, until which what is typed is dropped.
    dropping: i32,
}

impl Typing {
    /// What came is done. False where nobody is there any more.
    fn takes(&mut self, stream: &Pup, came: Came, piece: &[u8]) -> bool {
        match came {
            Came::Data(count) => self.data(&piece[..count]),
            Came::Interrupt(_) => interrupt(&self.typist, &mut self.dropping),
            Came::Mark(code) => match Mark::of(code) {
                Some(Mark::Data) => self.dropping = self.dropping.saturating_sub(1),
                Some(Mark::Timing) => stream.say(Some(Mark::TimingReply.code()), None),
                other => self.marked = other.filter(|mark| mark.has_argument()),
            },
        }
        // Interrupts come over a full terminal too.
        let (typist, dropping) = (&self.typist, &mut self.dropping);
        typist.has_room(
            || {
                stream.interrupted().into_iter().for_each(|_| interrupt(typist, dropping));
                stream.is_gone()
            },
            || false,
        )
    }

    fn data(&mut self, mut data: &[u8]) {
        if let Some(mark) = self.marked.take() {
            resize(&self.pty, &mut self.size, mark, data[0]);
            data = &data[1..];
        }
        if self.dropping <= 0 {
            self.typist.types(data);
        }
    }
}

fn interrupt(typist: &Typist, dropping: &mut i32) {
    *dropping = dropping.saturating_add(1);
    typist.interrupts();
}

/// The terminal has another size, as far as a mark says so.
fn resize(pty: &Pty, size: &mut (u16, u16), mark: Mark, argument: u8) {
    match mark {
        Mark::LineWidth => size.1 = u16::from(argument),
        Mark::PageLength => size.0 = u16::from(argument),
        _ => return,
    }
    let _ = pty.resize(Size::new(size.0, size.1));
}

/// A person at the other end. The program echoes.
pub(super) fn talk(from: &Pup) -> Result<()> {
    let raw = Raw::of(io::stdin().as_fd());
    if let Some((columns, rows)) = size() {
        for (mark, count) in [(Mark::LineWidth, columns), (Mark::PageLength, rows)] {
            from.say(Some(mark.code()), None);
            from.again().write_all(&[u8::try_from(count).unwrap_or(u8::MAX)]).map_err(lost)?;
        }
    }
    let (mut typing, is_raw) = (from.again(), raw.is_some());
    thread::spawn(move || {
        let mut piece = [0; PIECE];
        let mut input = io::stdin().lock();
        let mut last = None;
        // What was typed last may still be answered: the program ends the connection.
        while let Ok(count @ 1..) = input.read(&mut piece) {
            last = Some(piece[count - 1]);
            let mut bytes = &piece[..count];
            if is_raw && bytes.contains(&LEAVES) {
                return typing.end();
            }
            if is_raw && let Some(at) = bytes.iter().rposition(|byte| *byte == INTERRUPT) {
                typing.say(Some(Mark::Data.code()), Some(0));
                bytes = &bytes[at + 1..];
            }
            if typing.write_all(bytes).is_err() {
                return;
            }
        }
        let _ = typing.write_all(end(last.as_ref()));
    });
    let mut piece = [0; PIECE];
    loop {
        let count = match from.next(&mut piece).map_err(lost)? {
            Came::Data(count) => count,
            Came::Mark(_) | Came::Interrupt(_) => continue,
        };
        let mut out = io::stdout().lock();
        if count == 0 || out.write_all(&piece[..count]).and_then(|()| out.flush()).is_err() {
            return Ok(());
        }
    }
}
