//! The PUP TELNET at both ends: bytes go as they are; marks say how large the terminal is and ask whether all before them is done; an
//! interrupt with a mark behind it makes what was typed between them be dropped, and interrupts the program.

use super::{PIECE, Terminal, interrupt, lost};
use crate::pup::{Came, Pup};
use crate::raw::Raw;
use pty_process::Size;
use pty_process::blocking::Pty;
use rustix::termios::tcgetwinsize;
use stackline_core::error::Result;
use stackline_proto::pup::telnet::Mark;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;

/// What a person types to interrupt the program.
const INTERRUPT: u8 = 3;

/// One terminal, until its program or its connection ends.
pub(super) fn one(stream: &Pup, program: &[String]) -> Result<()> {
    let terminal = Terminal::start(program)?;
    let (keys, typed) = (Arc::clone(&terminal.pty), stream.again());
    let mut said = stream.again();
    terminal.run(move || type_in(&typed, &keys), |bytes| said.write_all(bytes).is_ok(), || stream.end());
    Ok(())
}

/// What comes over the connection is typed into the terminal.
fn type_in(stream: &Pup, mut pty: &Pty) {
    let mut piece = [0; PIECE];
    // The mark whose byte is next; lines and letters of the terminal; interrupts whose mark has not come, until which what is typed is dropped.
    let (mut marked, mut size, mut dropping) = (None, (24, 80), 0_i32);
    while let Ok(came) = stream.next(&mut piece) {
        match came {
            Came::Data(0) => return,
            Came::Data(count) => {
                let mut data = &piece[..count];
                if let Some(mark) = marked.take() {
                    resize(pty, &mut size, mark, data[0]);
                    data = &data[1..];
                }
                if dropping <= 0 && pty.write_all(data).is_err() {
                    return;
                }
            }
            Came::Interrupt(_) => {
                dropping = dropping.saturating_add(1);
                interrupt(pty);
            }
            Came::Mark(code) => match Mark::of(code) {
                Some(Mark::Data) => dropping = dropping.saturating_sub(1),
                Some(Mark::Timing) => stream.say(Some(Mark::TimingReply.code()), None),
                other => marked = other.filter(|mark| mark.has_argument()),
            },
        }
    }
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
    if let Ok(size) = tcgetwinsize(io::stdin()) {
        for (mark, count) in [(Mark::LineWidth, size.ws_col), (Mark::PageLength, size.ws_row)] {
            from.say(Some(mark.code()), None);
            from.again().write_all(&[u8::try_from(count).unwrap_or(u8::MAX)]).map_err(lost)?;
        }
    }
    let (mut typing, is_raw) = (from.again(), raw.is_some());
    thread::spawn(move || {
        let mut piece = [0; PIECE];
        let mut input = io::stdin().lock();
        // What was typed last may still be answered: the program ends the connection.
        while let Ok(count @ 1..) = input.read(&mut piece) {
            let mut bytes = &piece[..count];
            if is_raw && let Some(at) = bytes.iter().rposition(|byte| *byte == INTERRUPT) {
                typing.say(Some(Mark::Data.code()), Some(0));
                bytes = &bytes[at + 1..];
            }
            if typing.write_all(bytes).is_err() {
                break;
            }
        }
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
