//! The command line of `display`: a structured display served, looked at, measured. Nothing here touches the machine.

use super::choice::choice;
use super::factors::FactorExperiment;
use clap::{Args, Subcommand};
use stackline_core::quantity::{parse_duration, parse_size};
use stackline_displayserver::address::DisplayAddress;
use stackline_displayserver::bench::DisplayBenchPicture;
use stackline_displayserver::experiment::combinations::parse_gathers;
use stackline_displayserver::experiment::testbed::{DisplaySceneOptions, parse_drawing_costs};
use stackline_displayserver::send_level::DisplaySendLevel;
use stackline_displayserver::simulated::{
    DisplayDrawingCosts, DisplaySceneClass, SymbolDrawMoment,
};
use std::path::PathBuf;
use std::time::Duration;

pub(super) const AFTER: &str = "\
Examples:
  # open the page whose address it prints
  stackline display serve
  stackline display bench --to 127.0.0.1:7085
  stackline display bench --level pipelined,batched --picture vectors
  # in virtual time
  stackline display bench --across lan.stackline --class terminal --draw \\
      'pixel = 5 us'
  stackline display bench --across lan.stackline --level stop-and-wait \\
      --trials 1 --keep waits && stackline lifelines last
  stackline display factors --across lan.stackline --draw 'pixel = 5 us' -f \\
      'cpu of vax x 2' -f 'level = pipelined, batched'

docs/DISPLAY.md describes symbols, levels, the protocol and the limits.";

#[derive(Args, Debug)]
pub(crate) struct DisplayFlags {
    #[command(subcommand)]
    pub(crate) command: DisplayCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DisplayCommand {
    /// Serve a display until Ctrl-C: clients draw on it, browsers show it
    Serve(DisplayServe),
    /// Measure a display with the V-System's pictures at four protocol levels
    Bench(Box<DisplayBench>),
    /// In virtual time: find which of hosts, network, level, class and transport matter
    Factors(Box<DisplayFactors>),
    /// Forward a display's page to a port, for example from an emulated host's unix socket
    View(DisplayView),
    /// Relay between clients and a display, and restore their pictures when the display is restarted
    Agent(DisplayAgent),
    /// Serve a program on a pseudo-terminal over TELNET, one for each connection
    Terminal(DisplayTerminal),
    /// Connect to a terminal over TELNET, for a display or a person
    Telnet(DisplayTelnet),
    /// Connect programs that only use V messages to TCP and PUP streams: the V-System's internet server
    Internet(DisplayInternet),
    /// Serve a program through pipes, one for each client, over V messages: the V-server
    Vserver(DisplayVserver),
    /// Pass the requests of a V-server's program to a display
    Execute(DisplayExecute),
}

#[derive(Args, Debug)]
pub(crate) struct DisplayVserver {
    /// Address to listen on: ikp:HOST:PORT
    #[arg(long, value_name = "ADDRESS", value_parser = DisplayAddress::parse, default_value = "ikp:127.0.0.1:7090")]
    pub(crate) listen: DisplayAddress,
    /// File whose first line is the secret that clients must know; by default the secret in $STACKLINE_VSERVER_SECRET, else ~/.config/stackline/vserver.secret, which is created if missing
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    /// How often to poll the program for output, as systems without output notification do; by default, output is seen at once
    #[arg(long, value_name = "TIME", value_parser = polls)]
    pub(crate) polls: Option<Duration>,
    /// The program and its arguments; `stackline display bench --to pipe` draws through pipes
    #[arg(
        value_name = "PROGRAM",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) program: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct DisplayExecute {
    /// Address of the V-server: ikp:HOST:PORT
    #[arg(value_name = "ADDRESS", value_parser = DisplayAddress::parse, default_value = "ikp:127.0.0.1:7090")]
    pub(crate) program: DisplayAddress,
    /// File whose first line is the V-server's secret; by default the secret in $STACKLINE_VSERVER_SECRET, else ~/.config/stackline/vserver.secret
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    /// The display that receives the program's requests
    #[arg(long, value_name = "ADDRESS", value_parser = DisplayAddress::parse, default_value = "127.0.0.1:7085")]
    pub(crate) to: DisplayAddress,
    /// Send the display's answers as if they were typed, one byte per message
    #[arg(long)]
    pub(crate) typed: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DisplayInternet {
    /// Address to listen on: ikp:HOST:PORT. Clients connect through this server using vio:HOST:PORT/ADDRESS
    #[arg(long, value_name = "ADDRESS", value_parser = DisplayAddress::parse, default_value = "ikp:127.0.0.1:7089")]
    pub(crate) listen: DisplayAddress,
    /// File whose first line is the secret that clients must know; by default the secret in $STACKLINE_INTERNET_SECRET, else ~/.config/stackline/internet.secret, which is created if missing
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct DisplayAgent {
    /// Address for clients: HOST:PORT, unix:PATH or pup:HOST:PORT
    #[arg(long, value_name = "ADDRESS", value_parser = DisplayAddress::parse, default_value = "127.0.0.1:7086")]
    pub(crate) listen: DisplayAddress,
    /// File whose first line is the secret for both clients and display; by default the secret in $STACKLINE_DISPLAY_SECRET, else ~/.config/stackline/display.secret, which is created if missing
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    /// The display
    #[arg(long, value_name = "ADDRESS", value_parser = DisplayAddress::parse, default_value = "127.0.0.1:7085")]
    pub(crate) to: DisplayAddress,
    /// Maximum memory for a client's symbols; use the same value as for the display
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "64MiB")]
    pub(crate) memory: u64,
    /// How long to wait for a lost display to come back
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "60s")]
    pub(crate) patience: Duration,
}

#[derive(Args, Debug)]
pub(crate) struct DisplayTerminal {
    /// Address to listen on: HOST:PORT, unix:PATH, or pup:HOST:PORT for PUP TELNET
    #[arg(long, value_name = "ADDRESS", value_parser = DisplayAddress::parse, default_value = "127.0.0.1:7023")]
    pub(crate) listen: DisplayAddress,
    /// File whose first line is the secret that the other end must know; by default the secret in $STACKLINE_TERMINAL_SECRET, else
    /// ~/.config/stackline/terminal.secret, which is created if missing. Programs run by this user need no secret at unix:PATH
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    /// The program and its arguments, such as `stackline display bench --to tty`, which draws on a terminal. The program's standard error is shown on
    /// the terminal if a person is connected, but is printed here if `telnet --to` connects the program to a display
    #[arg(
        value_name = "PROGRAM",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) program: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct DisplayTelnet {
    /// The terminal's address
    #[arg(value_name = "ADDRESS", value_parser = DisplayAddress::parse, default_value = "127.0.0.1:7023")]
    pub(crate) terminal: DisplayAddress,
    /// File whose first line is the terminal's secret; by default the secret in $STACKLINE_TERMINAL_SECRET, else ~/.config/stackline/terminal.secret
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    /// The display that receives the program's requests; by default, the program talks to this terminal
    #[arg(long, value_name = "ADDRESS", value_parser = DisplayAddress::parse)]
    pub(crate) to: Option<DisplayAddress>,
    /// Send the display's answers as if they were typed, one byte per message
    #[arg(long, requires = "to")]
    pub(crate) typed: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DisplayServe {
    /// Address for clients: HOST:PORT, unix:PATH, ikp:HOST:PORT (V messages), pup:HOST:PORT (PUP streams), blast:HOST:PORT (blasts), or ngp:ADDRESS (definitions are sent once); may be repeated
    #[arg(long, value_name = "ADDRESS", value_parser = DisplayAddress::parse, default_value = "127.0.0.1:7085")]
    pub(crate) listen: Vec<DisplayAddress>,
    /// Address of the viewer page: HOST:PORT or unix:PATH
    #[arg(long, value_name = "ADDRESS", value_parser = DisplayAddress::parse, default_value = "127.0.0.1:8085")]
    pub(crate) view: DisplayAddress,
    /// File whose first line is the secret that clients must know; by default the secret in $STACKLINE_DISPLAY_SECRET, else ~/.config/stackline/display.secret, which is created if missing. Programs run by this user need no secret at unix:PATH
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    /// Maximum memory for a client's symbols
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "64MiB")]
    pub(crate) memory: u64,
    /// Maximum memory for the symbols and windows of all clients together
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "512MiB")]
    pub(crate) memory_all: u64,
}

#[derive(Args, Debug)]
pub(crate) struct DisplayBench {
    /// The display: HOST:PORT, unix:PATH, ikp:HOST:PORT (V messages), pup:HOST:PORT (PUP streams), blast:HOST:PORT (blasts), vio:HOST:PORT/ADDRESS (through an internet server), ngp:ADDRESS (definitions are sent once; ngp-newest:ADDRESS if the newest of several changes is enough), `tty` (at the other end of this terminal), or `pipe` (standard output and input; results then go to standard error); by default, bench starts its own display
    #[arg(long, value_name = "ADDRESS", value_parser = DisplayAddress::parse)]
    pub(crate) to: Option<DisplayAddress>,
    /// File whose first line is the display's secret; by default the secret in $STACKLINE_DISPLAY_SECRET, else ~/.config/stackline/display.secret
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) simulated: DisplaySimulated,
    /// Levels to measure; all four by default
    #[arg(long, value_name = "LEVEL,...", value_delimiter = ',', value_parser = choice::<DisplaySendLevel>())]
    pub(crate) level: Vec<DisplaySendLevel>,
    /// Pictures to measure; the V-System paper's three by default
    #[arg(long, value_name = "PICTURE,...", value_delimiter = ',', value_parser = choice::<DisplayBenchPicture>())]
    pub(crate) picture: Vec<DisplayBenchPicture>,
    /// Trials for each rate
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) trials: u16,
    /// Keep the pictures on the display this long at the end
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) hold: Option<Duration>,
    /// Write each picture, as drawn, to this directory (without --to)
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "to")]
    pub(crate) png: Option<PathBuf>,
    /// Print every trial as JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which factors matter for a display in virtual time.
#[derive(Args, Debug)]
pub(crate) struct DisplayFactors {
    /// A specification; the client and the display run on hosts of its network, which set the cost of programs (`work`, `cpu`)
    #[arg(long, value_name = "SPEC")]
    pub(crate) across: PathBuf,
    /// A factor and its levels, such as 'cpu of vax x 2', 'level = pipelined, batched', 'over = tcp(mss = 212), pup'; may be repeated, and is added
    /// to those declared in the specification
    #[arg(short, long = "factor", value_name = "FACTOR")]
    pub(crate) factors: Vec<String>,
    /// The level, if it is not a factor
    #[arg(long, value_name = "LEVEL", value_parser = choice::<DisplaySendLevel>(), default_value = "pipelined")]
    pub(crate) level: DisplaySendLevel,
    /// The picture
    #[arg(long, value_name = "PICTURE", value_parser = choice::<DisplayBenchPicture>(), default_value = "vectors")]
    pub(crate) picture: DisplayBenchPicture,
    /// Trials per run, one after another
    #[arg(long, value_name = "NUMBER", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) trials: u16,
    #[command(flatten)]
    pub(crate) experiment: FactorExperiment,
    /// Runs of each combination, each with its own seed; by default two if their results are equal, else five
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) replicates: Option<u32>,
    /// Skip the advice on what to change first, and the limit reached if a factor no longer mattered
    #[arg(long)]
    pub(crate) no_limits: bool,
    /// Print JSON on stdout, as `stackline factors` does
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) scene: DisplayScene,
}

/// A display in virtual time.
#[derive(Args, Debug)]
#[command(next_help_heading = "In virtual time")]
pub(crate) struct DisplaySimulated {
    /// A specification; the client and the display run on hosts of its network, which set the cost of programs (`work`, `cpu`)
    #[arg(long, value_name = "SPEC", conflicts_with_all = ["to", "secret_file", "png", "hold"])]
    pub(crate) across: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) scene: DisplayScene,
    /// Keep the path of each request as a run with this name, for `lifelines`
    #[arg(long, value_name = "NAME", requires = "across")]
    pub(crate) keep: Option<String>,
    #[command(flatten)]
    pub(crate) sharing: super::Sharing,
    /// Have a second client draw the same picture at the same time; its stream ends at the internet server on this host, and the first client's at the one given by `--internet`
    #[arg(
        long,
        value_name = "HOST",
        requires = "across",
        conflicts_with = "keep"
    )]
    pub(crate) beside: Option<String>,
}

/// Which program is on which host of the network, and what lies between.
#[derive(Args, Clone, Debug, PartialEq)]
#[command(next_help_heading = "In virtual time")]
pub(crate) struct DisplayScene {
    /// Network name, if the specification has several
    #[arg(long, value_name = "NAME", requires = "across")]
    pub(crate) network: Option<String>,
    /// The client's host; by default the network's last
    #[arg(long, value_name = "HOST", requires = "across")]
    pub(crate) client: Option<String>,
    /// The display's host; by default the network's first
    #[arg(long, value_name = "HOST", requires = "across")]
    pub(crate) display: Option<String>,
    /// Host of the internet server at which the client's stream ends: the display's host, or another one, from which the display's agent gets
    /// blocks over V messages; by default there is no internet server, only the agent
    #[arg(long, value_name = "HOST", requires = "across")]
    pub(crate) internet: Option<String>,
    /// How the application is divided between client and display
    #[arg(
        long,
        value_name = "CLASS",
        value_parser = choice::<DisplaySceneClass>(),
        default_value = "agent",
        requires = "across"
    )]
    pub(crate) class: DisplaySceneClass,
    /// Transport for requests: tcp with its options, pup, blast, saw, window, ikp, or tty for a serial line; by default ikp for class messages, else tcp
    #[arg(long, value_name = "STACK", requires = "across")]
    pub(crate) over: Option<String>,
    /// The same for the display's end, if its TCP differs
    #[arg(long, value_name = "STACK", requires = "across")]
    pub(crate) display_over: Option<String>,
    /// Time that the display takes on a processor with `cpu 1`, such as 'request = 0.5 ms, pixel = 5 us, rectangle = 0.7 ms, letter = 0.1 ms,
    /// added = 5 ms, added_rectangle = 5 ms, answer = 8 ms' (added: for an item added alone to a picture already shown); by default zero
    #[arg(long, value_name = "TIMES", value_parser = parse_drawing_costs, default_value = "", hide_default_value = true, requires = "across")]
    pub(crate) draw: DisplayDrawingCosts,
    /// When to draw a picture that is being defined
    #[arg(
        long,
        value_name = "WHEN",
        value_parser = choice::<SymbolDrawMoment>(),
        default_value = "growing",
        requires = "across"
    )]
    pub(crate) shown: SymbolDrawMoment,
    /// Bytes of requests that the client hands over at once if it does not wait for answers
    #[arg(long, value_name = "SIZE", value_parser = parse_gathers, default_value = "1KiB", requires = "across")]
    pub(crate) gathers: u64,
    /// Number of bytes by which a rectangle request is longer than a line request
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=10_000), requires = "across")]
    pub(crate) rectangle_bytes: u64,
    /// Size of a call request
    #[arg(long, value_name = "BYTES", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000), requires = "across")]
    pub(crate) call_bytes: u64,
}

impl DisplayScene {
    /// What they say.
    pub(crate) fn options(&self) -> DisplaySceneOptions {
        DisplaySceneOptions {
            network: self.network.clone(),
            client: self.client.clone(),
            display: self.display.clone(),
            internet: self.internet.clone(),
            class: self.class,
            over: self.over.clone(),
            display_over: self.display_over.clone(),
            draw: self.draw,
            shown: self.shown,
            gathers: self.gathers,
            rectangle_bytes: self.rectangle_bytes,
            call_bytes: self.call_bytes,
        }
    }
}

/// More than no time.
fn polls(text: &str) -> Result<Duration, String> {
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    if number.trim().parse::<f64>().is_ok_and(|it| it <= 0.0) {
        return Err("expected a time longer than 0, such as 50ms; without --polls, the program's output is seen at once".into());
    }
    parse_duration(text)
}

#[derive(Args, Debug)]
pub(crate) struct DisplayView {
    /// Address of the display's page: unix:PATH or HOST:PORT, as given to `display serve --view`
    #[arg(value_name = "ADDRESS")]
    pub(crate) from: String,
    /// Address for browsers
    #[arg(long, value_name = "HOST:PORT", value_parser = DisplayAddress::parse, default_value = "127.0.0.1:8085")]
    pub(crate) listen: DisplayAddress,
}
