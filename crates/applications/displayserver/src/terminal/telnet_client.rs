//! A person at a terminal over TELNET: what is typed is sent, what comes is shown. It has nothing to do with displays.

use super::failure::{lost, unopened};
use super::keyboard::{LEAVES, end, size};
use super::login::{Knock, Knocking};
use super::pup;
use super::telnet_end::{PIECE, TerminalTelnetEnd};
use crate::address::{DisplayAddress, DisplayServiceKind};
use crate::raw_terminal::RawTerminal;
use crate::stream::DisplayStream;
use stackline_core::error::Result;
use stackline_guard::secret::Secret;
use stackline_proto::papers::telnet::{Telnet, TelnetRole};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// If a server asks for no secret, typing begins after this silence.
const SILENT: Duration = Duration::from_secs(5);

/// Connects a person to a terminal: what is typed is sent, character by character if the program echoes.
///
/// # Errors
/// If no terminal is served at that address.
pub fn talk(terminal: &DisplayAddress, secret: Option<&Secret>) -> Result<()> {
    let mut from = terminal.connect_to(DisplayServiceKind::Terminal)?;
    if let DisplayStream::Pup(from) = from {
        return pup::talk(terminal, &from, secret);
    }
    let mut telnet = Telnet::new(TelnetRole::User);
    let known = size();
    known
        .into_iter()
        .for_each(|(columns, rows)| telnet.resize(columns, rows));
    let line = TerminalTelnetEnd::new(telnet, from.again().map_err(lost)?);
    let (typing, is_raw) = (Arc::clone(&line), Arc::new(AtomicBool::new(false)));
    let by_character = Arc::clone(&is_raw);
    let (opens, opened) = channel::<()>();
    thread::spawn(move || {
        // Nothing is sent before the login is complete.
        if opened.recv().is_ok() {
            send_typed(&typing, &by_character, known);
        }
    });
    let is_asked = !from.knows_user();
    let (mut raw, mut knock, mut opens) = (None, Knock::new(secret), Some(opens));
    let (mut piece, mut data) = ([0; PIECE], Vec::new());
    from.read_within(Some(SILENT)).map_err(lost)?;
    loop {
        let count = match from.read(&mut piece) {
            Err(error)
                if opens.is_some()
                    && matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
            {
                from.read_within(None).map_err(lost)?;
                let _ = opens.take().map(|opens| opens.send(()));
                continue;
            }
            read => read.map_err(lost)?,
        };
        line.telnet().receive(&piece[..count], &mut data);
        let answer = if is_asked {
            knock.takes(&mut data)
        } else {
            None
        };
        if is_asked && knock.state() == Knocking::Wrong {
            return Err(unopened(terminal, "the secret does not match"));
        }
        let is_open = !is_asked || !matches!(knock.state(), Knocking::Waits | Knocking::Said);
        if !answer.is_none_or(|answer| line.send(&answer)) {
            return Ok(());
        }
        if raw.is_none() && line.telnet().is_by_character() {
            raw = RawTerminal::enter(io::stdin().as_fd());
            is_raw.store(raw.is_some(), Ordering::Relaxed);
        }
        let mut out = io::stdout().lock();
        let shown = out.write_all(&data).and_then(|()| out.flush());
        data.clear();
        if !line.flush() || count == 0 || shown.is_err() {
            return Ok(());
        }
        if is_open && let Some(opens) = opens.take() {
            from.read_within(None).map_err(lost)?;
            let _ = opens.send(());
        }
    }
}

/// Sends what is typed until its end, and the terminal's size when it changes.
fn send_typed(
    typing: &TerminalTelnetEnd,
    by_character: &AtomicBool,
    mut known: Option<(u16, u16)>,
) {
    let mut piece = [0; PIECE];
    let mut input = io::stdin().lock();
    let mut last = None;
    // Whatever was typed last may still be answered: the program ends the connection.
    while let Ok(count @ 1..) = input.read(&mut piece) {
        last = Some(piece[count - 1]);
        let now = size().filter(|now| known != Some(*now));
        known = now.or(known);
        now.into_iter()
            .for_each(|(columns, rows)| typing.telnet().resize(columns, rows));
        if by_character.load(Ordering::Relaxed) && piece[..count].contains(&LEAVES) {
            return typing.end();
        }
        if !typing.send(&piece[..count]) {
            return;
        }
    }
    typing.send(end(last.as_ref()));
}
