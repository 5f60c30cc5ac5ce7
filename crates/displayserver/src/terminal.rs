//! Terminals over TELNET: a program on a pseudo-terminal for whoever connects (`Telnetd` of the paper, over PUP its `Telser`), and the other
//! end, which brings a display what such a program says (its user TELNET), or a person.
//!
//! Over streams of PUP it is the PUP TELNET: bytes go as they are, and marks say the rest ([`pup`]).

mod pup;

use crate::address::Address;
use crate::listener::Listener;
use crate::raw::Raw;
use crate::stream::Stream;
use pty_process::blocking::{Command, Pty, open};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::termios::{LocalModes, SpecialCodeIndex, tcgetattr, tcgetpgrp};
use stackline_core::error::{Error, Result};
use stackline_proto::telnet::{Command as Said, Role, Telnet, TelnetOption, Whose};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that are read at once.
const PIECE: usize = 4096;
/// How long the other end may take to answer what is asked of options, and bytes that may be typed before.
const ANSWERS: Duration = Duration::from_secs(1);
const AHEAD: usize = 1024;
/// Terminals at once.
const MOST_TERMINALS: usize = 64;
/// How long a program may take to take what is typed.
const TYPES: Duration = Duration::from_secs(5);
/// How long a program may take to end once nobody is there.
const HANGS_UP: Duration = Duration::from_millis(200);

/// One end of a connection by RFC 854's TELNET: what is said is in the order in which it is sent, whoever says it.
struct Line {
    telnet: Mutex<Telnet>,
    writer: Mutex<Stream>,
}

impl Line {
    fn new(telnet: Telnet, writer: Stream) -> Arc<Self> {
        Arc::new(Self { telnet: Mutex::new(telnet), writer: Mutex::new(writer) })
    }

    fn telnet(&self) -> MutexGuard<'_, Telnet> {
        self.telnet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> MutexGuard<'_, Stream> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends data. False where the connection is lost.
    fn send(&self, data: &[u8]) -> bool {
        let mut writer = self.writer();
        let bytes = {
            let mut telnet = self.telnet();
            telnet.send(data);
            telnet.output()
        };
        bytes.is_empty() || writer.write_all(&bytes).is_ok()
    }

    /// Sends what there is to be answered.
    fn flush(&self) -> bool {
        // Nothing waits for a reader that has nothing to be told.
        !self.telnet().has_output() || self.send(b"")
    }

    fn end(&self) {
        self.writer().end();
    }
}

/// Serves terminals for ever: each connection gets the program on one of its own. What it says on its standard error goes to ours.
pub fn serve(listener: &Listener, program: &[String], say: fn(&str)) {
    let terminals = Arc::new(());
    loop {
        let Ok(stream) = listener.accept() else {
            // No descriptors, or the like: it may be better in a while.
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        if Arc::strong_count(&terminals) > MOST_TERMINALS {
            stream.end();
            continue;
        }
        let (program, counted) = (program.to_vec(), Arc::clone(&terminals));
        thread::spawn(move || {
            if let Err(error) = one(stream, &program) {
                say(&error.to_string());
            }
            drop(counted);
        });
    }
}

/// What was typed, and the commands in it with their places.
type Typed = (Vec<u8>, Vec<(usize, Said)>);

fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::environment(format!("no terminal can be made: {error}"))
}

/// One terminal, until its program or its connection ends.
fn one(mut stream: Stream, program: &[String]) -> Result<()> {
    if let Stream::Pup(stream) = stream {
        return pup::one(&stream, program);
    }
    let mut telnet = Telnet::new(Role::Server);
    // Who goes before there is a terminal wanted none.
    let Ok((typed_ahead, commands)) = agree(&mut telnet, &mut stream) else { return Ok(()) };
    let terminal = Terminal::start(program)?;
    let line = Line::new(telnet, stream.again().map_err(|error| failed(&error))?);
    press(&terminal.pty, &line, &typed_ahead, commands);
    let (keys, keyed, said) = (Arc::clone(&terminal.pty), Arc::clone(&line), Arc::clone(&line));
    terminal.run(move || type_in(stream, &keys, &keyed), |bytes| said.send(bytes), || line.end());
    Ok(())
}

/// A program on a terminal of its own.
struct Terminal {
    pty: Arc<Pty>,
    child: Child,
}

impl Terminal {
    fn start(program: &[String]) -> Result<Self> {
        let (pty, pts) = open().map_err(|error| failed(&error))?;
        let (name, arguments) = program.split_first().ok_or_else(|| Error::input("no program is named"))?;
        let command = Command::new(name).args(arguments).stderr(Stdio::inherit());
        let child = command.spawn(pts).map_err(|error| {
            Error::environment(format!("{name} cannot be started on a terminal: {error}")).hint("is it in PATH?")
        })?;
        Ok(Self { pty: Arc::new(pty), child })
    }

    /// Goes on until program or connection end: `types` brings what is typed until nobody is there, `says` takes what the program says as
    /// long as there is somebody, `ends` ends the connection.
    fn run(mut self, types: impl FnOnce() + Send + 'static, mut says: impl FnMut(&[u8]) -> bool, ends: impl FnOnce()) {
        let group = Pid::from_child(&self.child);
        let typed = thread::spawn(move || {
            types();
            // Nobody is there any more: the terminal hangs up, and who does not care is ended.
            let _ = kill_process_group(group, Signal::HUP);
            thread::sleep(HANGS_UP);
            let _ = kill_process_group(group, Signal::KILL);
        });
        let mut piece = [0; PIECE];
        // A terminal whose program is gone says so as an error.
        while let Ok(count @ 1..) = (&*self.pty).read(&mut piece) {
            if !says(&piece[..count]) {
                break;
            }
        }
        // Its number is its own until it is waited for.
        let _ = self.child.kill();
        ends();
        let _ = typed.join();
        let _ = self.child.wait();
    }
}

/// Agrees on options before the program says anything: what the other end asked before its answer came is settled then. What was typed
/// meanwhile. Who does not answer is no TELNET, and gets its terminal all the same.
fn agree(telnet: &mut Telnet, stream: &mut Stream) -> io::Result<Typed> {
    telnet.ask(TelnetOption::Echo, Whose::Own, true);
    telnet.ask(TelnetOption::SuppressGoAhead, Whose::Own, true);
    let (mut piece, mut data, mut commands) = ([0; PIECE], Vec::new(), Vec::new());
    let begun = Instant::now();
    stream.write_all(&telnet.output())?;
    while telnet.is_asked(TelnetOption::SuppressGoAhead, Whose::Own) && data.len() + commands.len() < AHEAD {
        let Some(rest) = ANSWERS.checked_sub(begun.elapsed()).filter(|rest| !rest.is_zero()) else { break };
        stream.read_within(Some(rest))?;
        let count = match stream.read(&mut piece) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => break,
            Err(error) => return Err(error),
        };
        commands.extend(telnet.receive(&piece[..count], &mut data));
        stream.write_all(&telnet.output())?;
    }
    stream.read_within(None)?;
    Ok((data, commands))
}

/// What comes over the connection is typed into the terminal.
fn type_in(mut stream: Stream, pty: &Pty, line: &Line) {
    let (mut piece, mut data) = ([0; PIECE], Vec::new());
    while let Ok(count @ 1..) = stream.read(&mut piece) {
        let commands = line.telnet().receive(&piece[..count], &mut data);
        let wrote = press(pty, line, &data, commands);
        data.clear();
        if !line.flush() || !wrote {
            break;
        }
    }
}

/// Interrupts the program that the terminal is for, whatever it makes of its bytes.
fn interrupt(pty: &Pty) {
    if let Ok(group) = tcgetpgrp(pty) {
        let _ = kill_process_group(group, Signal::INT);
    }
}

/// Types what was typed, with the keys that its commands are. False where the terminal is gone.
fn press(mut pty: &Pty, line: &Line, data: &[u8], commands: Vec<(usize, Said)>) -> bool {
    let (mut typed, mut wrote) = (0, true);
    for (place, command) in commands {
        wrote &= pty.write_all(&data[typed..place]).is_ok();
        typed = place;
        let key = match command {
            Said::EraseCharacter => key(pty, SpecialCodeIndex::VERASE),
            Said::EraseLine => key(pty, SpecialCodeIndex::VKILL),
            Said::Interrupt => {
                interrupt(pty);
                None
            }
            Said::AreYouThere => {
                line.telnet().send(b"\r\n[yes]\r\n");
                None
            }
            _ => None,
        };
        wrote &= key.is_none_or(|key| pty.write_all(&[key]).is_ok());
    }
    wrote && pty.write_all(&data[typed..]).is_ok()
}

/// The key that a terminal which gathers lines has for that; none where its program takes bytes as they are.
fn key(pty: &Pty, code: SpecialCodeIndex) -> Option<u8> {
    let attributes = tcgetattr(pty).ok()?;
    attributes.local_modes.contains(LocalModes::ICANON).then(|| attributes.special_codes[code])
}

/// Brings a display what the program of a terminal says, and it the display's answers: one byte a message where they are typed. Returns when
/// either ends.
///
/// # Errors
/// When one of them is not there. The program itself says who it is.
pub fn attach(terminal: &Address, display: &Address, typed: bool) -> Result<()> {
    let from = terminal.connect().map_err(|error| unserved(terminal, &error))?;
    let to = display.connect()?;
    if matches!(from, Stream::Pup(_)) {
        // Its bytes are as they are, and marks are for persons.
        return bring(from, to, typed);
    }
    let mut telnet = Telnet::new(Role::User);
    telnet.ask(TelnetOption::Binary, Whose::Own, true);
    telnet.ask(TelnetOption::Binary, Whose::Other, true);
    let line = Line::new(telnet, from.again().map_err(lost)?);
    line.writer().write_within(TYPES).map_err(lost)?;
    line.flush();
    let typing = Arc::clone(&line);
    let hears = |came: &[u8], data: &mut Vec<u8>| {
        line.telnet().receive(came, data);
        line.flush()
    };
    carry(from, to, typed, move |bytes| typing.send(bytes), hears)
}

/// Brings a display what comes, as it is, and back its answers: one byte a message where they are typed. Returns when either ends.
///
/// # Errors
/// When one of them is lost.
pub fn bring(from: Stream, to: Stream, typed: bool) -> Result<()> {
    let mut typing = from.again().map_err(lost)?;
    typing.write_within(TYPES).map_err(lost)?;
    let hears = |came: &[u8], data: &mut Vec<u8>| {
        data.extend_from_slice(came);
        true
    };
    carry(from, to, typed, move |bytes| typing.write_all(bytes).is_ok(), hears)
}

/// Carries what comes to a display, as `hears` has it, and the display's answers back by `types`. Both say whether the other end is there;
/// who takes nothing for [`TYPES`] does not keep this from seeing that the display is gone.
fn carry(
    mut from: Stream,
    mut to: Stream,
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
            if !piece[..count].chunks(if typed { 1 } else { PIECE }).all(&mut types) {
                break;
            }
        }
        gone_first.store(true, Ordering::Relaxed);
        ends.end();
    });
    let (mut piece, mut data) = ([0; PIECE], Vec::new());
    loop {
        let count = match from.read(&mut piece) {
            Ok(0) | Err(_) if is_gone.load(Ordering::Relaxed) => return Err(gone()),
            Ok(0) => return to.finish().map_err(lost),
            Ok(count) => count,
            Err(error) => return Err(lost(error)),
        };
        if !hears(&piece[..count], &mut data) {
            return to.finish().map_err(lost);
        }
        if to.write_all(&data).is_err() {
            return Err(gone());
        }
        data.clear();
    }
}

fn lost(error: io::Error) -> Error {
    Error::measurement(format!("the program is lost: {error}"))
}

fn gone() -> Error {
    Error::measurement("the display ended the connection").hint("what it refused, it says itself")
}

fn unserved(terminal: &Address, error: &Error) -> Error {
    let cause = error.message.rsplit(": ").next().unwrap_or_default();
    Error::environment(format!("no terminal is served at {terminal}: {cause}"))
        .hint("`stackline display terminal -- PROGRAM` serves one")
}

/// A person at the other end: what is typed here goes there, character by character where the program echoes.
///
/// # Errors
/// When no terminal is served there.
pub fn talk(terminal: &Address) -> Result<()> {
    let mut from = terminal.connect().map_err(|error| unserved(terminal, &error))?;
    if let Stream::Pup(from) = from {
        return pup::talk(&from);
    }
    let line = Line::new(Telnet::new(Role::User), from.again().map_err(lost)?);
    let typing = Arc::clone(&line);
    thread::spawn(move || {
        let mut piece = [0; PIECE];
        let mut input = io::stdin().lock();
        // What was typed last may still be answered: the program ends the connection.
        while let Ok(count @ 1..) = input.read(&mut piece) {
            if !typing.send(&piece[..count]) {
                break;
            }
        }
    });
    let mut raw = None;
    let (mut piece, mut data) = ([0; PIECE], Vec::new());
    loop {
        let count = from.read(&mut piece).map_err(lost)?;
        line.telnet().receive(&piece[..count], &mut data);
        if raw.is_none() && line.telnet().is_by_character() {
            raw = Raw::of(io::stdin().as_fd());
        }
        let mut out = io::stdout().lock();
        let shown = out.write_all(&data).and_then(|()| out.flush());
        data.clear();
        if !line.flush() || count == 0 || shown.is_err() {
            return Ok(());
        }
    }
}
