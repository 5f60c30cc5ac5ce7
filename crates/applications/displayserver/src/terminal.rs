//! Terminals over TELNET: a server that gives each connection a program on a pseudo-terminal (`Telnetd` of the paper, over PUP `Telser`),
//! and the other end, which connects such a program to a display (the paper's user TELNET) or to a person.
//!
//! Over PUP streams it is the PUP TELNET, where bytes go unchanged and marks carry everything else ([`pup`]).

mod admission;
mod failure;
mod keyboard;
mod login;
mod pty_program;
mod pup;
mod request_tracker;
mod telnet_client;
mod telnet_end;
mod typist;

pub use admission::TerminalServiceOptions;
pub use telnet_client::talk;

use crate::address::{self, DisplayAddress};
use crate::listener::{DisplayListener, serve_streams};
use crate::stream::DisplayStream;
use admission::{MOST_STRANGERS, TerminalAdmission, refused, sent_away};
use failure::{gone, lost, unopened};
use login::{Guest, Knock, Knocking, Typed};
use pty_process::blocking::Pty;
use pty_program::{For, ProgramTerminal, echo, failed, resize};
use request_tracker::DisplayRequestTracker;
use rustix::termios::SpecialCodeIndex;
use stackline_core::error::Result;
use stackline_guard::connection_slots::{ConnectionSlot, ConnectionSlotPool};
use stackline_guard::deadline::Deadline;
use stackline_guard::secret::Secret;
use stackline_proto::papers::telnet::{
    Telnet, TelnetCommand as Said, TelnetOption, TelnetRole, Whose,
};
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use telnet_end::{PIECE, TerminalTelnetEnd};
use typist::Typist;

/// How long a program may take to accept what is typed.
const TYPES: Duration = Duration::from_secs(5);

/// Serves terminals forever: each connection gets the program on a pseudo-terminal of its own.
pub fn serve(listener: &DisplayListener, service: TerminalServiceOptions, say: fn(&str)) {
    let office = TerminalAdmission::new(service);
    let strangers = ConnectionSlotPool::new(MOST_STRANGERS);
    serve_streams(listener, strangers, move |stream, place| {
        if let Err(error) = one(stream, &office, place) {
            say(&error.to_string());
        }
    });
}

/// Serves one terminal until its program or its connection ends.
fn one(mut stream: DisplayStream, office: &TerminalAdmission, place: ConnectionSlot) -> Result<()> {
    if let DisplayStream::Pup(stream) = stream {
        return pup::one(&stream, office, place);
    }
    stream.write_within(TYPES).map_err(|error| failed(&error))?;
    let mut telnet = Telnet::new(TelnetRole::Server);
    let (typed_ahead, commands) = match greet(&mut telnet, &mut stream, office) {
        Ok(typed) => typed,
        Err(error) => {
            stream.end();
            return sent_away(&error, &place);
        }
    };
    drop(place);
    let Some(_place) = office.terminals.enter() else {
        return Err(refused(&mut stream));
    };
    let program = &office.service.program;
    let is_display = [Whose::Own, Whose::Other]
        .into_iter()
        .any(|whose| telnet.is_on(TelnetOption::Binary, whose));
    let terminal = ProgramTerminal::start(
        program,
        if is_display {
            For::Display
        } else {
            For::Person
        },
        telnet.resized(),
        echoes(&telnet),
    )?;
    let line = TerminalTelnetEnd::new(telnet, stream.again().map_err(|error| failed(&error))?);
    let (typist, pty) = (terminal.typist()?, Arc::clone(&terminal.pty));
    press(&typist, &line, &typed_ahead, commands, &mut false);
    let (keyed, said) = (Arc::clone(&line), Arc::clone(&line));
    terminal.run(
        move || type_in(stream, &typist, &pty, &keyed),
        |bytes| said.send(bytes),
        || line.end(),
    );
    Ok(())
}

/// Whether the other end wants this end to echo what is typed (RFC 857).
fn echoes(telnet: &Telnet) -> bool {
    telnet.is_on(TelnetOption::Echo, Whose::Own)
}

/// Negotiates TELNET with a new connection and checks its secret, within a time limit. Returns what was typed after that.
fn greet(
    telnet: &mut Telnet,
    stream: &mut DisplayStream,
    office: &TerminalAdmission,
) -> io::Result<Typed> {
    let is_same_user = stream.is_same_user();
    let mut guest = Guest::new(stream, telnet, Deadline::within(login::TIME));
    guest.agree()?;
    match &office.service.secret {
        _ if is_same_user => {}
        Some(secret) => guest.identify(secret, &office.attempts)?,
        None => {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "only this user's programs can open a terminal here",
            ));
        }
    }
    guest.typed()
}

/// Types what comes over the connection into the terminal.
fn type_in(mut stream: DisplayStream, typist: &Typist, pty: &Pty, line: &TerminalTelnetEnd) {
    let (mut piece, mut data) = ([0; PIECE], Vec::new());
    // `hurries`: a Synch is under way, so data before its mark is dropped, but commands are not (RFC 854; RFC 1123, section 3.2.4).
    let (mut hurries, mut echoing) = (false, echoes(&line.telnet()));
    loop {
        // Checked before reading, since afterwards nothing shows that data was urgent; and a read never crosses the urgent mark.
        let was_urgent = stream.waits_urgent();
        let Ok(count @ 1..) = stream.read(&mut piece) else {
            break;
        };
        if !hurries && (was_urgent || stream.is_urgent()) {
            hurries = true;
            typist.drops();
        }
        let commands = line.telnet().receive(&piece[..count], &mut data);
        resize(pty, line.telnet().resized());
        // The program may have set the echo itself; it is changed only if the other end changes its mind.
        let now = echoes(&line.telnet());
        if echoing != now {
            echoing = now;
            echo(pty, now);
        }
        press(typist, line, &data, commands, &mut hurries);
        // Urgent bytes without a mark are not TELNET's; typing goes on.
        hurries &= stream.is_urgent();
        data.clear();
        if !line.flush()
            || !(stream.is_urgent() || typist.has_room(|| stream.is_gone(), || stream.is_urgent()))
        {
            break;
        }
    }
    typist.finishes();
}

/// Types what came, with TELNET commands as keys.
fn press(
    typist: &Typist,
    line: &TerminalTelnetEnd,
    data: &[u8],
    commands: Vec<(usize, Said)>,
    hurries: &mut bool,
) {
    let mut typed = 0;
    for (place, command) in commands {
        if !*hurries {
            typist.types(&data[typed..place]);
        }
        typed = place;
        match command {
            Said::Mark => *hurries = false,
            Said::EraseCharacter => typist.presses(SpecialCodeIndex::VERASE),
            Said::EraseLine => typist.presses(SpecialCodeIndex::VKILL),
            Said::Interrupt => typist.interrupts(),
            Said::AreYouThere => line.telnet().send(b"\r\n[yes]\r\n"),
            _ => {}
        }
    }
    if !*hurries {
        typist.types(&data[typed..]);
    }
}

/// Connects the program of a terminal to a display: the program's output goes to the display, and the display's answers are typed, one byte
/// per message. Returns when either ends.
///
/// # Errors
/// If one of them is not there, or the secret is wrong. The program itself sends the greeting to the display.
pub fn attach(
    terminal: &DisplayAddress,
    display: &DisplayAddress,
    secret: Option<&Secret>,
    typed: bool,
) -> Result<()> {
    let mut from = terminal.connect_to(address::DisplayServiceKind::Terminal)?;
    if let DisplayStream::Pup(stream) = &from {
        pup::begins_for_display(stream);
        let mut says = stream.again();
        let hears = |came: &[u8], data: &mut Vec<u8>| {
            data.extend_from_slice(came);
            true
        };
        let first = knock(terminal, &mut from, secret, hears, |bytes| {
            says.write_all(bytes).is_ok()
        })?;
        // Its bytes are as they are.
        return bring_behind(first, from, display.connect()?, typed);
    }
    let mut telnet = Telnet::new(TelnetRole::User);
    telnet.ask(TelnetOption::Binary, Whose::Own, true);
    telnet.ask(TelnetOption::Binary, Whose::Other, true);
    let line = TerminalTelnetEnd::new(telnet, from.again().map_err(lost)?);
    line.writer().write_within(TYPES).map_err(lost)?;
    line.flush();
    let typing = Arc::clone(&line);
    let hears = |came: &[u8], data: &mut Vec<u8>| {
        line.telnet().receive(came, data);
        line.flush()
    };
    let first = if from.knows_user() {
        Vec::new()
    } else {
        knock(terminal, &mut from, secret, hears, |bytes| line.send(bytes))?
    };
    carry(
        first,
        from,
        display.connect()?,
        typed,
        move |bytes| typing.send(bytes),
        hears,
    )
}

/// Sends the secret when it is asked for. Returns what came after that.
fn knock(
    at: &DisplayAddress,
    from: &mut DisplayStream,
    secret: Option<&Secret>,
    mut hears: impl FnMut(&[u8], &mut Vec<u8>) -> bool,
    mut says: impl FnMut(&[u8]) -> bool,
) -> Result<Vec<u8>> {
    let (deadline, mut piece, mut data) = (Deadline::within(login::TIME), [0; PIECE], Vec::new());
    let mut knock = Knock::new(secret);
    loop {
        let read = deadline
            .timeout()
            .and_then(|rest| from.read_within(Some(rest)))
            .and_then(|()| from.read(&mut piece));
        let Ok(count @ 1..) = read else {
            return Err(unopened(
                at,
                "it closed the connection before asking for the secret",
            ));
        };
        let is_there = hears(&piece[..count], &mut data);
        let said = knock.takes(&mut data).is_none_or(|answer| says(&answer));
        match knock.state() {
            Knocking::Right => {
                from.read_within(None).map_err(lost)?;
                return Ok(data);
            }
            Knocking::Wrong => return Err(unopened(at, "the secret does not match")),
            Knocking::Open if secret.is_none() => return Err(unopened(at, "it asks for a secret")),
            Knocking::Open => {
                return Err(unopened(
                    at,
                    "it does not ask for a secret, unlike stackline terminals",
                ));
            }
            Knocking::Waits | Knocking::Said if is_there && said => {}
            Knocking::Waits | Knocking::Said => {
                return Err(unopened(at, "the connection was lost"));
            }
        }
    }
}

/// Passes everything from `from` to a display and its answers back, one byte per message if `typed`. Returns when either ends.
///
/// # Errors
/// If one of them is lost.
pub fn bring(from: DisplayStream, to: DisplayStream, typed: bool) -> Result<()> {
    bring_behind(Vec::new(), from, to, typed)
}

/// The same, after the bytes `first`, which were read already.
fn bring_behind(first: Vec<u8>, from: DisplayStream, to: DisplayStream, typed: bool) -> Result<()> {
    let mut typing = from.again().map_err(lost)?;
    typing.write_within(TYPES).map_err(lost)?;
    let hears = |came: &[u8], data: &mut Vec<u8>| {
        data.extend_from_slice(came);
        true
    };
    carry(
        first,
        from,
        to,
        typed,
        move |bytes| typing.write_all(bytes).is_ok(),
        hears,
    )
}

/// Passes data, filtered by `hears`, to a display, and the display's answers back by `types`. Both return whether the other end is there. A
/// terminal that takes nothing for [`TYPES`] does not prevent noticing that the display is gone.
fn carry(
    first: Vec<u8>,
    mut from: DisplayStream,
    mut to: DisplayStream,
    typed: bool,
    mut types: impl FnMut(&[u8]) -> bool + Send + 'static,
    mut hears: impl FnMut(&[u8], &mut Vec<u8>) -> bool,
) -> Result<()> {
    let (mut answers, ends) = (to.again().map_err(lost)?, from.again().map_err(lost)?);
    let is_gone = Arc::new(AtomicBool::new(false));
    let gone_first = Arc::clone(&is_gone);
    thread::spawn(move || {
        let mut piece = [0; PIECE];
        while let Ok(count @ 1..) = answers.read(&mut piece) {
            if !piece[..count]
                .chunks(if typed { 1 } else { PIECE })
                .all(&mut types)
            {
                break;
            }
        }
        gone_first.store(true, Ordering::Relaxed);
        ends.end();
    });
    let (mut piece, mut data, mut requests) = ([0; PIECE], first, DisplayRequestTracker::default());
    requests.pass(&data);
    if to.write_all(&data).is_err() {
        return Err(gone());
    }
    data.clear();
    loop {
        let count = match from.read(&mut piece) {
            Ok(0) | Err(_) if is_gone.load(Ordering::Relaxed) => return Err(gone()),
            Ok(0) => {
                return to
                    .finish()
                    .map_err(lost)
                    .and_then(|()| requests.are_whole());
            }
            Ok(count) => count,
            // What was read before still belongs to the display.
            Err(error) => return to.finish().map_err(lost).and(Err(lost(error))),
        };
        if !hears(&piece[..count], &mut data) {
            return to
                .finish()
                .map_err(lost)
                .and_then(|()| requests.are_whole());
        }
        requests.pass(&data);
        if to.write_all(&data).is_err() {
            return Err(gone());
        }
        data.clear();
    }
}
