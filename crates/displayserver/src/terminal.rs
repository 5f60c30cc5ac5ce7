//! Terminals over TELNET: a program on a pseudo-terminal for whoever connects (`Telnetd` of the paper, over PUP its `Telser`), and the other
//! end, which brings a display what such a program says (its user TELNET), or a person.
//!
//! Over streams of PUP it is the PUP TELNET: bytes go as they are, and marks say the rest ([`pup`]).

mod door;
mod person;
mod pup;
mod requests;
mod typist;

pub use person::talk;

use crate::address::{self, Address};
use crate::listener::Listener;
use crate::server::hear_out;
use crate::stream::Stream;
use crate::threads::in_thread;
use door::{Guest, Knock, Knocking};
use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};
use requests::Requests;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};
use stackline_core::error::{Error, Result};
use stackline_guard::attempts::Attempts;
use stackline_guard::deadline::Deadline;
use stackline_guard::pool::{Place, Pool};
use stackline_guard::secret::Secret;
use stackline_proto::telnet::{Command as Said, Role, Telnet, TelnetOption, Whose};
use std::io::{self, Read, Write};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use typist::Typist;

/// Bytes that are read at once.
const PIECE: usize = 4096;
/// Terminals at once, and connections that have not said the secret yet: of more the idlest gives way.
const MOST_TERMINALS: usize = 64;
const MOST_STRANGERS: usize = 64;
/// How long one that is refused may take to read why.
const LAST: Duration = Duration::from_secs(1);
/// How long a program may take to take what is typed.
const TYPES: Duration = Duration::from_secs(5);
/// How long a program may take to end once nobody is there.
const HANGS_UP: Duration = Duration::from_secs(1);

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

/// What is served on terminals.
#[derive(Clone, Debug)]
pub struct Service {
    /// The program and its arguments.
    pub program: Vec<String>,
    /// What the other end has to know, but for programs of this user at a unix socket; without one those alone get a terminal.
    pub secret: Option<Secret>,
}

/// Who wants terminals, and who has them.
struct Office {
    service: Service,
    strangers: Arc<Pool>,
    terminals: Arc<Pool>,
    attempts: Attempts,
}

/// Serves terminals for ever: each connection gets the program on one of its own.
pub fn serve(listener: &Listener, service: Service, say: fn(&str)) {
    let (strangers, terminals) = (Pool::new(MOST_STRANGERS), Pool::new(MOST_TERMINALS));
    let office = Arc::new(Office { service, strangers, terminals, attempts: Attempts::default() });
    loop {
        let Ok(stream) = listener.accept() else {
            // No descriptors, or the like: it may be better in a while.
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        let Ok(ends) = stream.again() else { continue };
        let place = office.strangers.enter_or_replace(move || ends.end());
        let office = Arc::clone(&office);
        in_thread(move || {
            if let Err(error) = one(stream, &office, place) {
                say(&error.to_string());
            }
        });
    }
}

/// Says why there is no terminal. What the other end sent and nobody read would take the words with it.
fn refused(stream: &mut Stream) -> Error {
    let words = format!("there are {MOST_TERMINALS} terminals here, which is as many as may be: come again later\r\n");
    let _ = stream.write_all(words.as_bytes());
    stream.ends_writing();
    hear_out(stream, LAST);
    stream.end();
    Error::environment(format!("a terminal was refused: there are {MOST_TERMINALS} already"))
}

/// Why somebody gets no terminal, where there is something to say of it.
fn sent_away(error: &io::Error, place: &Place) -> Result<()> {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Err(Error::environment(format!("a terminal was refused: {error}"))),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Err(Error::environment(format!(
            "a terminal was refused: the other end did not say the secret within {} s",
            door::TIME.as_secs()
        ))),
        _ if place.is_lost() => {
            Err(Error::environment("a terminal was refused: others came while it did not say the secret"))
        }
        // Who goes before there is a terminal wanted none.
        _ => Ok(()),
    }
}

/// What was typed, and the commands in it with their places.
type Typed = (Vec<u8>, Vec<(usize, Said)>);

fn failed(error: &dyn std::fmt::Display) -> Error {
    Error::environment(format!("no terminal can be made: {error}"))
}

/// One terminal, until its program or its connection ends.
fn one(mut stream: Stream, office: &Office, place: Place) -> Result<()> {
    if let Stream::Pup(stream) = stream {
        return pup::one(&stream, office, place);
    }
    stream.write_within(TYPES).map_err(|error| failed(&error))?;
    let mut telnet = Telnet::new(Role::Server);
    let (typed_ahead, commands) = match greet(&mut telnet, &mut stream, office) {
        Ok(typed) => typed,
        Err(error) => {
            stream.end();
            return sent_away(&error, &place);
        }
    };
    drop(place);
    let Some(_place) = office.terminals.enter() else { return Err(refused(&mut stream)) };
    let program = &office.service.program;
    let is_display = [Whose::Own, Whose::Other].into_iter().any(|whose| telnet.is_on(TelnetOption::Binary, whose));
    let terminal = Terminal::start(
        program,
        if is_display { For::Display } else { For::Person },
        (telnet.resized(), echoes(&telnet)),
    )?;
    let line = Line::new(telnet, stream.again().map_err(|error| failed(&error))?);
    let (typist, pty) = (terminal.typist()?, Arc::clone(&terminal.pty));
    press(&typist, &line, &typed_ahead, commands, &mut false);
    let (keyed, said) = (Arc::clone(&line), Arc::clone(&line));
    terminal.run(move || type_in(stream, (&typist, &pty), &keyed), |bytes| said.send(bytes), || line.end());
    Ok(())
}

/// Whom a program on a terminal is for.
#[derive(Clone, Copy)]
enum For {
    /// A person sees all that it says.
    Person,
    /// Of a display's requests nothing else is part: standard error is ours.
    Display,
}

/// A program on a terminal of its own.
struct Terminal {
    pty: Arc<Pty>,
    child: Child,
}

impl Terminal {
    /// A program on a terminal of that size (columns and rows, where they are known), which echoes what is typed or not.
    fn start(program: &[String], whom: For, (size, echoes): (Option<(u16, u16)>, bool)) -> Result<Self> {
        let (pty, pts) = open().map_err(|error| failed(&error))?;
        resize(&pty, size);
        echo(&pty, echoes);
        let (name, arguments) = program.split_first().ok_or_else(|| Error::input("no program is named"))?;
        let command = Command::new(name).args(arguments);
        let command = match whom {
            For::Person => command,
            For::Display => command.stderr(Stdio::inherit()),
        };
        let child = command.spawn(pts).map_err(|error| {
            Error::environment(format!("{name} cannot be started on a terminal: {error}")).hint("is it in PATH?")
        })?;
        Ok(Self { pty: Arc::new(pty), child })
    }

    fn typist(&self) -> Result<Typist> {
        Typist::new(&self.pty).map_err(|error| failed(&error))
    }

    /// Goes on until program or connection end: `types` brings what is typed until nobody is there, `says` takes what the program says as
    /// long as there is somebody, `ends` ends the connection.
    fn run(mut self, types: impl FnOnce() + Send + 'static, mut says: impl FnMut(&[u8]) -> bool, ends: impl FnOnce()) {
        let group = Pid::from_child(&self.child);
        let (says_more, is_silent) = channel::<()>();
        let typed = thread::spawn(move || {
            types();
            // Nobody is there any more: the terminal hangs up, and who does not care is ended.
            let _ = kill_process_group(group, Signal::HUP);
            let _ = is_silent.recv_timeout(HANGS_UP);
            let _ = kill_process_group(group, Signal::KILL);
        });
        let mut piece = [0; PIECE];
        loop {
            let count = typist::read(&self.pty, &mut piece, || has_ended(group));
            if count == 0 || !says(&piece[..count]) {
                break;
            }
        }
        drop(says_more);
        // Its number is its own until it is waited for.
        let _ = self.child.kill();
        ends();
        let _ = typed.join();
        let _ = self.child.wait();
    }
}

/// Whether a program has ended, which nobody has waited for.
fn has_ended(program: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(program), options).is_ok_and(|status| status.is_some())
}

/// A terminal has another size: so many columns and rows.
fn resize(pty: &Pty, size: Option<(u16, u16)>) {
    if let Some((columns, rows)) = size {
        let _ = pty.resize(Size::new(rows, columns));
    }
}

/// Whether the other end wants what is typed to be echoed here (RFC 857).
fn echoes(telnet: &Telnet) -> bool {
    telnet.is_on(TelnetOption::Echo, Whose::Own)
}

/// A terminal echoes what is typed, or does not.
fn echo(pty: &Pty, is_on: bool) {
    if let Ok(mut modes) = tcgetattr(pty) {
        modes.local_modes.set(LocalModes::ECHO, is_on);
        let _ = tcsetattr(pty, OptionalActions::Now, &modes);
    }
}

/// Whoever wants a terminal answers as TELNET does and says the secret, in time: what was typed behind that.
fn greet(telnet: &mut Telnet, stream: &mut Stream, office: &Office) -> io::Result<Typed> {
    let is_same_user = stream.is_same_user();
    let mut guest = Guest::new(stream, telnet, Deadline::within(door::TIME));
    guest.agree()?;
    match &office.service.secret {
        _ if is_same_user => {}
        Some(secret) => guest.identify(secret, &office.attempts)?,
        None => return Err(io::Error::new(io::ErrorKind::PermissionDenied, "only programs of this user get one here")),
    }
    guest.typed()
}

/// What comes over the connection is typed into the terminal.
fn type_in(mut stream: Stream, (typist, pty): (&Typist, &Pty), line: &Line) {
    let (mut piece, mut data) = ([0; PIECE], Vec::new());
    // A Synch is on its way: what was typed before its mark is dropped but for commands (RFC 854, RFC 1123 3.2.4).
    let (mut hurries, mut echoing) = (false, echoes(&line.telnet()));
    loop {
        // Once its last byte is read nothing says that something was urgent; and nothing is read across the mark.
        let was_urgent = stream.waits_urgent();
        let Ok(count @ 1..) = stream.read(&mut piece) else { break };
        if !hurries && (was_urgent || stream.is_urgent()) {
            hurries = true;
            typist.drops();
        }
        let commands = line.telnet().receive(&piece[..count], &mut data);
        resize(pty, line.telnet().resized());
        // What the program has chosen since stays, unless the other end changes its mind.
        let now = echoes(&line.telnet());
        if echoing != now {
            echoing = now;
            echo(pty, now);
        }
        press(typist, line, &data, commands, &mut hurries);
        // Who sends urgent bytes without a mark is no TELNET, and types on.
        hurries &= stream.is_urgent();
        data.clear();
        if !line.flush() || !(stream.is_urgent() || typist.has_room(|| stream.is_gone(), || stream.is_urgent())) {
            break;
        }
    }
    typist.finishes();
}

/// Types what was typed, with the keys that its commands are.
fn press(typist: &Typist, line: &Line, data: &[u8], commands: Vec<(usize, Said)>, hurries: &mut bool) {
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

/// Brings a display what the program of a terminal says, and it the display's answers: one byte a message where they are typed. Returns when
/// either ends.
///
/// # Errors
/// When one of them is not there, or the secret is another. The program itself says who it is to the display.
pub fn attach(terminal: &Address, display: &Address, secret: Option<&Secret>, typed: bool) -> Result<()> {
    let mut from = terminal.connect_to(address::Service::Terminal)?;
    if let Stream::Pup(stream) = &from {
        pup::begins_for_display(stream);
        let mut says = stream.again();
        let hears = |came: &[u8], data: &mut Vec<u8>| {
            data.extend_from_slice(came);
            true
        };
        let first = knock(terminal, &mut from, secret, hears, |bytes| says.write_all(bytes).is_ok())?;
        // Its bytes are as they are.
        return bring_behind(first, from, display.connect()?, typed);
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
    let first = match from {
        // Programs of the same user are asked nothing.
        Stream::Unix(_) => Vec::new(),
        _ => knock(terminal, &mut from, secret, hears, |bytes| line.send(bytes))?,
    };
    carry(first, from, display.connect()?, typed, move |bytes| typing.send(bytes), hears)
}

/// Says the secret where it is asked for: what came behind that.
fn knock(
    at: &Address,
    from: &mut Stream,
    secret: Option<&Secret>,
    mut hears: impl FnMut(&[u8], &mut Vec<u8>) -> bool,
    mut says: impl FnMut(&[u8]) -> bool,
) -> Result<Vec<u8>> {
    let (deadline, mut piece, mut data) = (Deadline::within(door::TIME), [0; PIECE], Vec::new());
    let mut knock = Knock::new(secret);
    loop {
        let read =
            deadline.timeout().and_then(|rest| from.read_within(Some(rest))).and_then(|()| from.read(&mut piece));
        let Ok(count @ 1..) = read else {
            return Err(unopened(at, "it ended the connection before it asked for the secret"));
        };
        let is_there = hears(&piece[..count], &mut data);
        let said = knock.takes(&mut data).is_none_or(|answer| says(&answer));
        match knock.state() {
            Knocking::Right => {
                from.read_within(None).map_err(lost)?;
                return Ok(data);
            }
            Knocking::Wrong => return Err(unopened(at, "the secret is another")),
            Knocking::Open if secret.is_none() => return Err(unopened(at, "it asks for a secret")),
            Knocking::Open => return Err(unopened(at, "it does not ask for a secret, as stackline's terminals do")),
            Knocking::Waits | Knocking::Said if is_there && said => {}
            Knocking::Waits | Knocking::Said => return Err(unopened(at, "the connection is lost")),
        }
    }
}

/// No terminal is opened there.
fn unopened(at: &Address, why: &str) -> Error {
    Error::environment(format!("the terminal at {at} is not opened: {why}"))
        .hint("its secret is in ~/.config/stackline/terminal.secret of the user who serves it: copy it, or name a file with --secret-file")
}

/// Brings a display what comes, as it is, and back its answers: one byte a message where they are typed. Returns when either ends.
///
/// # Errors
/// When one of them is lost.
pub fn bring(from: Stream, to: Stream, typed: bool) -> Result<()> {
    bring_behind(Vec::new(), from, to, typed)
}

/// The same, of which that came already.
fn bring_behind(first: Vec<u8>, from: Stream, to: Stream, typed: bool) -> Result<()> {
    let mut typing = from.again().map_err(lost)?;
    typing.write_within(TYPES).map_err(lost)?;
    let hears = |came: &[u8], data: &mut Vec<u8>| {
        data.extend_from_slice(came);
        true
    };
    carry(first, from, to, typed, move |bytes| typing.write_all(bytes).is_ok(), hears)
}

/// Carries what comes to a display, as `hears` has it, and the display's answers back by `types`. Both say whether the other end is there;
/// who takes nothing for [`TYPES`] does not keep this from seeing that the display is gone.
fn carry(
    first: Vec<u8>,
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
    let (mut piece, mut data, mut requests) = ([0; PIECE], first, Requests::default());
    requests.pass(&data);
    if to.write_all(&data).is_err() {
        return Err(gone());
    }
    data.clear();
    loop {
        let count = match from.read(&mut piece) {
            Ok(0) | Err(_) if is_gone.load(Ordering::Relaxed) => return Err(gone()),
            Ok(0) => return to.finish().map_err(lost).and_then(|()| requests.are_whole()),
            Ok(count) => count,
            // What it said before is the display's all the same.
            Err(error) => return to.finish().map_err(lost).and(Err(lost(error))),
        };
        if !hears(&piece[..count], &mut data) {
            return to.finish().map_err(lost).and_then(|()| requests.are_whole());
        }
        requests.pass(&data);
        if to.write_all(&data).is_err() {
            return Err(gone());
        }
        data.clear();
    }
}

fn lost(error: io::Error) -> Error {
    match error.kind() {
        // A server in between has said what is wrong.
        io::ErrorKind::ConnectionAborted => Error::measurement(error.to_string()),
        _ => Error::measurement(format!("the program is lost: {error}")),
    }
}

fn gone() -> Error {
    Error::measurement("the display ended the connection")
        .hint("why stands on the standard error of its `stackline display serve`")
}
