//! `stackline display`: serves, shows and measures the structured display. The display itself is in
//! `stackline_display`, its sockets are in `stackline_displayserver`.

mod rates;
mod secrets;
mod signals;
mod simulated;

use crate::exit::{Error, Exit, Result};
use crate::flags::{
    self, DisplayAgent, DisplayBench, DisplayCommand, DisplayExecute, DisplayInternet,
    DisplayServe, DisplayTelnet, DisplayTerminal, DisplayView, DisplayVserver,
};
use crate::interrupt::listen_for_ctrl_c;
use crate::output;
use crate::progress::draw_target;
use indicatif::ProgressBar;
use rates::{levels, pictures, show};
use stackline_display::budget::DisplayMemoryBudget;
use stackline_display::symbols::DisplayClientLimits;
use stackline_displayserver::address::{DisplayAddress, DisplayServiceKind, program_not_served};
use stackline_displayserver::agent as agents;
use stackline_displayserver::bench::rate_rows;
use stackline_displayserver::listener::DisplayListener;
use stackline_displayserver::live_bench::{LiveBench, OwnDisplay};
use stackline_displayserver::messages;
use stackline_displayserver::page_relay::relay_page;
use stackline_displayserver::papers::internet::{self, RunningInternetServer, Serves};
use stackline_displayserver::papers::vio::Vio;
use stackline_displayserver::program_check;
use stackline_displayserver::raw_terminal::{self, RawTerminal};
use stackline_displayserver::server::DisplayServer;
use stackline_displayserver::stream::DisplayStream;
use stackline_displayserver::terminal;
use stackline_displayserver::view;
use stackline_events::EventRecorder;
use stackline_guard::interruptible::unless_stopped;
use stackline_guard::scratch;
use stackline_guard::secret::Secret;
use stackline_guard::stop::StopSwitch;
use std::io::stdin;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long an interrupted command waits for a program that is just starting, in order to end it.
const LETS_GO: Duration = Duration::from_secs(2);

/// Carries out the subcommand of `display`. Events are recorded as `STACKLINE_EVENTS` says.
pub(crate) fn display(flags: &flags::DisplayFlags) -> Result {
    let recorder = EventRecorder::from_env();
    let recorder =
        recorder.map_err(|error| Error::environment(format!("cannot record events: {error}")))?;
    let done = carry_out(flags);
    let lost = recorder
        .map(EventRecorder::stop)
        .map_or(0, |totals| totals.lost);
    if lost > 0 {
        output::say(&format_args!("warning: events lost: {lost}"));
    }
    done
}

fn carry_out(flags: &flags::DisplayFlags) -> Result {
    match &flags.command {
        DisplayCommand::Serve(flags) => serve(flags),
        DisplayCommand::Bench(flags) => bench(flags),
        DisplayCommand::Factors(flags) => simulated::factors(flags),
        DisplayCommand::View(flags) => bring(flags),
        DisplayCommand::Agent(flags) => agent(flags),
        DisplayCommand::Terminal(flags) => terminals(flags),
        DisplayCommand::Telnet(flags) => telnet(flags),
        DisplayCommand::Internet(flags) => internet_server(flags),
        DisplayCommand::Vserver(flags) => v_server(flags),
        DisplayCommand::Execute(flags) => execute(flags),
    }
}

/// Serves a display until it is interrupted.
fn serve(flags: &DisplayServe) -> Result {
    let limits = limits(flags.memory);
    let secret = secrets::find_or_make_secret(secrets::DISPLAY, flags.secret_file.as_deref())?;
    let budget = DisplayMemoryBudget::new(usize::try_from(flags.memory_all).unwrap_or(usize::MAX));
    let server = DisplayServer::within(limits, secret.bytes().to_vec(), budget);
    let (by_messages, streams): (Vec<&DisplayAddress>, Vec<&DisplayAddress>) = flags
        .listen
        .iter()
        .partition(|address| matches!(address, DisplayAddress::Messages(_)));
    let listeners = streams
        .into_iter()
        .map(DisplayListener::at)
        .collect::<Result<Vec<DisplayListener>>>()?;
    let token = Secret::random().map_err(|error| {
        Error::environment(format!(
            "cannot get random bytes for the page secret: {error}"
        ))
    })?;
    let page = view::show(&server, &flags.view, &token)?;
    let stop = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&stop])?;
    for listener in listeners {
        output::print(&format!("clients: {}\n", listener.address().for_others()))?;
        server.listen(listener, |why| output::say(&why));
    }
    for address in by_messages {
        if let DisplayAddress::Messages(place) = address {
            let local = messages::serve(&server, place, |why| output::say(&why))?;
            let at = DisplayAddress::Messages(local.to_string()).for_others();
            output::print(&format!("clients: {at}\n"))?;
        }
    }
    output::print(&format!("page:    {page}\n"))?;
    wait(&stop);
    // Unix socket files are not removed when their process ends.
    flags
        .listen
        .iter()
        .chain([&flags.view])
        .for_each(DisplayAddress::remove_socket_file);
    Ok(Exit::Done)
}

/// Runs an agent between clients and a display until it is interrupted.
fn agent(flags: &DisplayAgent) -> Result {
    flags.to.must_be_stream()?;
    let display = secrets::add_internet_secret(&flags.to)?;
    let secret = secrets::find_or_make_secret(secrets::DISPLAY, flags.secret_file.as_deref())?
        .bytes()
        .to_vec();
    let listener = DisplayListener::at(&flags.listen)?;
    let service = agents::DisplayAgentOptions {
        display,
        limits: limits(flags.memory),
        patience: flags.patience,
        secret,
    };
    let stop = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&stop])?;
    output::print(&format!("clients: {}\n", listener.address().for_others()))?;
    thread::spawn(move || agents::serve(&listener, &service, |why| output::say(&why)));
    wait(&stop);
    flags.listen.remove_socket_file();
    Ok(Exit::Done)
}

/// Serves a program on terminals until it is interrupted.
fn terminals(flags: &DisplayTerminal) -> Result {
    stackline_guard::keep_descriptors_from_programs();
    program_check::check(&flags.program)?;
    let secret = secrets::find_or_make_secret(secrets::TERMINAL, flags.secret_file.as_deref())?;
    let listener = DisplayListener::at(&flags.listen)?;
    let stop = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&stop])?;
    output::print(&format!("terminals: {}\n", listener.address().for_others()))?;
    let service = terminal::TerminalServiceOptions {
        program: flags.program.clone(),
        secret: Some(secret),
    };
    thread::spawn(move || terminal::serve(&listener, service, |why| output::say(&why)));
    wait(&stop);
    flags.listen.remove_socket_file();
    Ok(Exit::Done)
}

/// Runs an internet server, which connects programs that can only send V messages to streams, until it is interrupted.
fn internet_server(flags: &DisplayInternet) -> Result {
    let served = by_blocks(
        &flags.listen,
        secrets::INTERNET,
        flags.secret_file.as_deref(),
        Serves::Streams,
    )?;
    let local = DisplayAddress::Tcp(served.local().to_string()).for_others();
    output::print(&format!(
        "streams: vio:{local}/HOST:PORT, vio:{local}/pup:HOST:PORT\n"
    ))?;
    until_stopped()
}

/// Serves a program through its pipes until it is interrupted.
fn v_server(flags: &DisplayVserver) -> Result {
    stackline_guard::keep_descriptors_from_programs();
    program_check::check(&flags.program)?;
    let serves = Serves::Program {
        program: flags.program.clone(),
        polls: flags.polls,
    };
    let served = by_blocks(
        &flags.listen,
        secrets::VSERVER,
        flags.secret_file.as_deref(),
        serves,
    )?;
    output::print(&format!(
        "programs: {}\n",
        DisplayAddress::Messages(served.local().to_string()).for_others()
    ))?;
    let done = until_stopped();
    served.end();
    done
}

/// Serves instances by V's block I/O protocol.
fn by_blocks(
    listen: &DisplayAddress,
    of: secrets::Of,
    file: Option<&Path>,
    serves: Serves,
) -> Result<RunningInternetServer> {
    let DisplayAddress::Messages(place) = listen else {
        return Err(Error::input(format!(
            "cannot listen on {listen}: only V messages are accepted"
        ))
        .hint("use --listen ikp:HOST:PORT"));
    };
    internet::serve(
        place,
        secrets::find_or_make_secret(of, file)?.bytes().to_vec(),
        serves,
    )
}

/// Waits until the process is interrupted.
fn until_stopped() -> Result {
    let stop = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&stop])?;
    wait(&stop);
    Ok(Exit::Done)
}

/// Passes the output of a V-server's program to a display.
fn execute(flags: &DisplayExecute) -> Result {
    let DisplayAddress::Messages(place) = &flags.program else {
        return Err(Error::input(format!(
            "programs are served only over V messages, not at {}",
            flags.program
        ))
        .hint("`stackline display vserver -- PROGRAM` serves one and prints its address"));
    };
    flags.to.must_be_stream()?;
    let secret = secrets::find_secret(secrets::VSERVER, flags.secret_file.as_deref())?;
    // Installed before the program is started, so that a signal ends the program too.
    let stop = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&stop])?;
    let (place, at, to, typed) = (
        place.clone(),
        flags.program.clone(),
        secrets::add_internet_secret(&flags.to)?,
        flags.typed,
    );
    let begins = move || {
        let display = to.connect()?;
        let secret = secret.as_ref().map(Secret::bytes).unwrap_or_default();
        let program = Vio::connect(&place, secret, "program")
            .map_err(|error| program_not_served(&at, &error))?;
        Ok((program, display))
    };
    let (program, display) = unless_stopped(&stop, LETS_GO, Error::interrupted, begins)?;
    let ends = DisplayStream::Vio(program.again());
    let done = unless_stopped(&stop, Duration::ZERO, Error::interrupted, move || {
        terminal::bring(DisplayStream::Vio(program), display, typed)
    });
    // The program ends together with the command that asked for it.
    ends.end();
    done.map(|()| Exit::Done)
}

/// Runs the user's end of a terminal (TELNET).
fn telnet(flags: &DisplayTelnet) -> Result {
    flags.terminal.must_serve_telnet()?;
    flags
        .to
        .as_ref()
        .map_or(Ok(()), DisplayAddress::must_be_stream)?;
    let stop = Arc::new(AtomicBool::new(false));
    signals::watch(&stop)?;
    listen_for_ctrl_c([&stop])?;
    let at = secrets::add_internet_secret(&flags.terminal)?;
    let to = flags
        .to
        .as_ref()
        .map(secrets::add_internet_secret)
        .transpose()?;
    let secret = match &at {
        // A Unix socket's server knows the user of the connecting process.
        DisplayAddress::Unix(_) => None,
        _ => secrets::find_secret(secrets::TERMINAL, flags.secret_file.as_deref())?,
    };
    let typed = flags.typed;
    let done = unless_stopped(
        &stop,
        Duration::ZERO,
        Error::interrupted,
        move || match &to {
            Some(display) => terminal::attach(&at, display, secret.as_ref(), typed),
            None => terminal::talk(&at, secret.as_ref()),
        },
    );
    raw_terminal::restore();
    if done.is_ok() && flags.to.is_none() {
        output::say(&format!("the connection to {} was closed", flags.terminal));
    }
    done.map(|()| Exit::Done)
}

fn limits(memory: u64) -> DisplayClientLimits {
    DisplayClientLimits {
        bytes: usize::try_from(memory).unwrap_or(usize::MAX),
        ..DisplayClientLimits::default()
    }
}

fn wait(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(50));
    }
}

/// Relays bytes from a port to a display's page.
fn bring(flags: &DisplayView) -> Result {
    let (place, secret) = (&flags.from, "SECRET");
    if place.contains('?') {
        return Err(Error::input(
            "do not pass the page secret as an argument: every user of this machine could read it",
        )
        .hint("omit `?` and everything after it here; append that part to the address opened in the browser"));
    }
    let from = DisplayAddress::parse(place)
        .map_err(|form| Error::input(format!("{place} is not a valid address: {form}")))?;
    from.must_be_stream()?;
    is_there(&from)?;
    let listener = DisplayListener::at(&flags.listen)?;
    let stop = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&stop])?;
    output::print(&format!(
        "page:    {}\n",
        view::url(listener.address(), secret)
    ))?;
    output::say(&"SECRET is the part after `?` in the address that `display serve` printed");
    thread::spawn(move || relay_page(&listener, from, &StopSwitch::never()));
    wait(&stop);
    Ok(Exit::Done)
}

/// Waits up to three seconds for a display that is just starting.
fn is_there(from: &DisplayAddress) -> Result<()> {
    let begun = Instant::now();
    loop {
        match from.connect_to(DisplayServiceKind::Page) {
            Err(_) if begun.elapsed() < Duration::from_secs(3) => {
                thread::sleep(Duration::from_millis(50))
            }
            there => return there.map(drop),
        }
    }
}

/// Measures the rates of a display.
fn bench(flags: &DisplayBench) -> Result {
    if flags.simulated.across.is_some() {
        return simulated::bench(flags);
    }
    let own = flags.to.is_none().then(own_display).transpose()?;
    let address = own.as_ref().map(OwnDisplay::address).or(flags.to.as_ref());
    let address = address.ok_or_else(|| Error::input("no display address was given"))?;
    // The secret may be needed by an agent at a Unix socket, which passes it on.
    let (address, secret) = (
        secrets::add_internet_secret(address)?,
        secrets::find_secret(secrets::DISPLAY, flags.secret_file.as_deref())?,
    );
    let stop = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&stop])?;
    // A progress indicator of trials.
    let bar = ProgressBar::with_draw_target(None, draw_target());
    let shown = bar.clone();
    let live = LiveBench {
        secret: secret.map_or_else(Vec::new, |secret| secret.bytes().to_vec()),
        levels: levels(flags),
        trials: usize::from(flags.trials),
        stop: Arc::clone(&stop),
        show: Arc::new(move |trial| {
            shown.set_message(trial);
            shown.tick();
        }),
        address,
    };
    let _before = (live.address == DisplayAddress::Terminal)
        .then(|| RawTerminal::enter(stdin().as_fd()))
        .flatten();
    let (mut all, mut client) = (Vec::new(), None);
    for picture in pictures(flags) {
        let name = picture.name;
        let (used, measured) = live.measure(picture, client.take())?;
        client = Some(used);
        all.extend(measured);
        if let (Some(own), Some(directory)) = (&own, &flags.png) {
            keep(own, name, directory)?;
        }
        if let Some(time) = flags.hold {
            hold(time, &stop);
        }
    }
    bar.finish_and_clear();
    let (place, rows) = (live.address.to_string(), rate_rows(&all));
    if live.is_single() {
        // Standard output belongs to the display.
        output::say(&stackline_report::display::display(&place, &rows));
        return Ok(Exit::Done);
    }
    show(&place, &rows, flags.json)
}

/// A display of this process.
fn own_display() -> Result<OwnDisplay> {
    let directory = scratch::create_directory("display")
        .map_err(|error| output::unwritten("to the temporary directory", &error))?;
    OwnDisplay::start(directory, |why| output::say(&why))
}

/// Keeps a picture shown for some time, or until the process is interrupted.
fn hold(time: Duration, stop: &AtomicBool) {
    let until = Instant::now() + time;
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(50));
    }
}

/// Writes the picture of the display's last window as PNG.
fn keep(own: &OwnDisplay, name: &str, directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)
        .map_err(|error| output::unwritten(directory.display(), &error))?;
    match own.last_picture()? {
        Some(png) => output::file(&directory.join(format!("{name}.png")), png),
        None => Ok(()),
    }
}
