//! The PUP TELNET at both ends: bytes go unchanged; marks carry the terminal's size and ask whether everything before them is done. An
//! interrupt, with a mark behind it, interrupts the program and drops what was typed between the two.

use super::admission::{TerminalAdmission, refused, sent_away};
use super::failure::{lost, unopened};
use super::keyboard::{LEAVES, end, size};
use super::login::{self, Knock, Knocking};
use super::pty_program::{For, ProgramTerminal};
use super::telnet_end::PIECE;
use super::typist::Typist;
use crate::address::DisplayAddress;
use crate::papers::pup::{Pup, PupStreamInput};
use crate::raw_terminal::RawTerminal;
use crate::stream::DisplayStream;
use crate::transport::DisplayTransport;
use pty_process::Size;
use pty_process::blocking::Pty;
use stackline_core::error::Result;
use stackline_guard::connection_slots::ConnectionSlot;
use stackline_guard::deadline::Deadline;
use stackline_guard::secret::Secret;
use stackline_proto::papers::pup::telnet::PupTelnetMark;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

/// The key with which a person interrupts the program: Ctrl-C.
const INTERRUPT: u8 = 3;

/// The first input of a connection.
struct First {
    /// `None` if nothing came in time.
    came: Option<PupStreamInput>,
    /// Its bytes.
    piece: [u8; PIECE],
}

/// What was typed after the secret, as the first input.
fn first(typed: &[u8]) -> First {
    let mut piece = [0; PIECE];
    let count = typed.len().min(PIECE);
    piece[..count].copy_from_slice(&typed[..count]);
    let came = (count > 0).then_some(PupStreamInput::Data(count));
    First { came, piece }
}

/// Serves one terminal until its program or its connection ends.
pub(super) fn one(stream: &Pup, office: &TerminalAdmission, place: ConnectionSlot) -> Result<()> {
    let Some(secret) = &office.service.secret else {
        stream.end();
        return Ok(());
    };
    let identified = login::identify_by_pup(
        stream,
        secret,
        &office.attempts,
        Deadline::within(login::TIME),
    );
    let (is_display, typed) = match identified {
        Ok(identified) => identified,
        Err(error) => {
            stream.end();
            return sent_away(&error, &place);
        }
    };
    drop(place);
    let Some(_place) = office.terminals.enter() else {
        return Err(refused(&mut DisplayStream::Pup(stream.again())));
    };
    let (program, first) = (&office.service.program, first(&typed));
    let terminal = ProgramTerminal::start(
        program,
        if is_display {
            For::Display
        } else {
            For::Person
        },
        None,
        true,
    )?;
    let typing = Typing {
        typist: terminal.typist()?,
        pty: Arc::clone(&terminal.pty),
        marked: None,
        size: (24, 80),
        dropping: 0,
    };
    let (typed, mut said) = (stream.again(), stream.again());
    terminal.run(
        move || type_in(&typed, typing, first),
        |bytes| said.write_all(bytes).is_ok(),
        || stream.end(),
    );
    Ok(())
}

/// Tells the server that the program is for a display. A person's end first sends the size of its terminal, or nothing.
pub(super) fn begins_for_display(stream: &Pup) {
    stream.say(Some(PupTelnetMark::Timing.code()), None);
}

/// Types what comes over the connection into the terminal.
fn type_in(stream: &Pup, mut typing: Typing, first: First) {
    let First {
        came: mut first,
        mut piece,
    } = first;
    while let Ok(came) = first.take().map_or_else(|| stream.next(&mut piece), Ok) {
        if came == PupStreamInput::Data(0) || !typing.takes(stream, came, &piece) {
            break;
        }
    }
    typing.typist.finishes();
}

/// Types into one terminal.
struct Typing {
    typist: Typist,
    pty: Arc<Pty>,
    /// The mark whose argument is the next byte.
    marked: Option<PupTelnetMark>,
    /// Rows and columns of the terminal.
    size: (u16, u16),
    /// The number of interrupts whose mark has not come; until then what is typed is dropped.
    dropping: i32,
}

impl Typing {
    /// Handles input. Returns false when nobody is there any more.
    fn takes(&mut self, stream: &Pup, came: PupStreamInput, piece: &[u8]) -> bool {
        match came {
            PupStreamInput::Data(count) => self.data(&piece[..count]),
            PupStreamInput::Interrupt(_) => interrupt(&self.typist, &mut self.dropping),
            PupStreamInput::Mark(code) => match PupTelnetMark::from_code(code) {
                Some(PupTelnetMark::Data) => self.dropping = self.dropping.saturating_sub(1),
                Some(PupTelnetMark::Timing) => {
                    stream.say(Some(PupTelnetMark::TimingReply.code()), None)
                }
                other => self.marked = other.filter(|mark| mark.has_argument()),
            },
        }
        // Interrupts are handled even if the terminal takes no input.
        let (typist, dropping) = (&self.typist, &mut self.dropping);
        typist.has_room(
            || {
                stream
                    .interrupted()
                    .into_iter()
                    .for_each(|_| interrupt(typist, dropping));
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

/// Changes the size of the terminal as a mark says.
fn resize(pty: &Pty, size: &mut (u16, u16), mark: PupTelnetMark, argument: u8) {
    match mark {
        PupTelnetMark::LineWidth => size.1 = u16::from(argument),
        PupTelnetMark::PageLength => size.0 = u16::from(argument),
        _ => return,
    }
    let _ = pty.resize(Size::new(size.0, size.1));
}

/// Connects a person to a terminal. The program echoes.
pub(super) fn talk(at: &DisplayAddress, from: &Pup, secret: Option<&Secret>) -> Result<()> {
    let raw = RawTerminal::enter(io::stdin().as_fd());
    let (mut typing, is_raw) = (from.again(), raw.is_some());
    let (opens, opened) = channel::<()>();
    thread::spawn(move || {
        if opened.recv().is_err() {
            return;
        }
        let mut piece = [0; PIECE];
        let mut input = io::stdin().lock();
        let mut last = None;
        // Whatever was typed last may still be answered: the program ends the connection.
        while let Ok(count @ 1..) = input.read(&mut piece) {
            last = Some(piece[count - 1]);
            let mut bytes = &piece[..count];
            if is_raw && bytes.contains(&LEAVES) {
                return typing.end();
            }
            if is_raw && let Some(at) = bytes.iter().rposition(|byte| *byte == INTERRUPT) {
                typing.say(Some(PupTelnetMark::Data.code()), Some(0));
                bytes = &bytes[at + 1..];
            }
            if typing.write_all(bytes).is_err() {
                return;
            }
        }
        let _ = typing.write_all(end(last.as_ref()));
    });
    let (mut piece, mut knock, mut opens) = ([0; PIECE], Knock::new(secret), Some(opens));
    loop {
        let count = match from.next(&mut piece).map_err(lost)? {
            PupStreamInput::Data(count) => count,
            PupStreamInput::Mark(_) | PupStreamInput::Interrupt(_) => continue,
        };
        let mut data = piece[..count].to_vec();
        if let Some(answer) = knock.takes(&mut data) {
            from.again().write_all(&answer).map_err(lost)?;
        }
        if knock.state() == Knocking::Wrong {
            return Err(unopened(at, "the secret does not match"));
        }
        if !matches!(knock.state(), Knocking::Waits | Knocking::Said)
            && let Some(opens) = opens.take()
        {
            send_size(from)?;
            let _ = opens.send(());
        }
        let mut out = io::stdout().lock();
        if count == 0 || out.write_all(&data).and_then(|()| out.flush()).is_err() {
            return Ok(());
        }
    }
}

/// Sends the size of the person's terminal, if there is one.
fn send_size(to: &Pup) -> Result<()> {
    for (mark, count) in size().into_iter().flat_map(|(columns, rows)| {
        [
            (PupTelnetMark::LineWidth, columns),
            (PupTelnetMark::PageLength, rows),
        ]
    }) {
        to.say(Some(mark.code()), None);
        to.again()
            .write_all(&[u8::try_from(count).unwrap_or(u8::MAX)])
            .map_err(lost)?;
    }
    Ok(())
}
