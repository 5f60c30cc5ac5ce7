//! The command line: every command and flag, its help and its form. Nothing here touches the machine.

mod ab;
mod agent;
mod blocks;
mod bufferbloat;
mod choice;
mod clean;
mod client;
mod command_groups;
mod display;
#[cfg(test)]
mod documented_commands_tests;
mod examples;
mod factors;
mod gate;
mod import_export;
mod lifelines;
mod load;
mod manual;
mod net;
mod percent;
mod plot;
mod probe;
mod results_table;
mod run;
mod runs;
mod series;
mod session;
mod sharing;
mod spec_text;
mod trace;
mod unit_durations;
mod watch;

use crate::exit::Result;
use choice::choice;
use clap::{Args, Parser, Subcommand};
use stackline_core::plan::World;
use stackline_core::quantity::{parse_duration, parse_moment};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use ab::AbFlags;
pub(crate) use agent::AgentFlags;
pub(crate) use blocks::{
    BlocksCommand, BlocksDelete, BlocksFlags, BlocksGateway, BlocksGet, BlocksKey, BlocksList,
    BlocksLoad, BlocksMaster, BlocksPart, BlocksServe, NetworkWorld, Replay,
};
pub(crate) use bufferbloat::BufferbloatFlags;
pub(crate) use clean::Clean;
pub(crate) use client::{ClientFlags, Language};
pub(crate) use command_groups::{all_commands, command_line};
pub(crate) use display::{
    DisplayAgent, DisplayBench, DisplayCommand, DisplayExecute, DisplayFactors, DisplayFlags,
    DisplayInternet, DisplayServe, DisplayTelnet, DisplayTerminal, DisplayView, DisplayVserver,
};
pub(crate) use factors::{FactorExperiment, Factors};
pub(crate) use gate::{CiFlags, GateFlags, GateRuleFlags, GateScopeFlags};
pub(crate) use import_export::{Export, ImportFlags};
pub(crate) use lifelines::LifelinesFlags;
pub(crate) use load::LoadFlags;
pub(crate) use manual::{Completions, Man};
pub(crate) use net::{Net, NetCommand, NetDown, NetExec, NetFrom, NetList, NetSet, NetShow, NetUp};
pub(crate) use plot::PlotFlags;
pub(crate) use probe::{DrawnFigure, ProbeCommand, ProbeFlags, ProbeList, ProbeRemove, ProbeShow};
pub(crate) use results_table::{NotesFlag, Show, TableFlags, percentile};
pub(crate) use run::{RunFlags, Seeds};
pub(crate) use runs::{
    ArchiveFlags, RunsAdd, RunsAgain, RunsChanges, RunsCommand, RunsFilterFlags, RunsFlags,
    RunsPrune, RunsSince, RunsTag,
};
pub(crate) use series::{SeriesFlag, SeriesFlags};
pub(crate) use session::SessionFlags;
pub(crate) use sharing::Sharing;
pub(crate) use spec_text::SpecTextFlags;
pub(crate) use trace::TraceFlags;
pub(crate) use unit_durations::Took;
pub(crate) use watch::WatchFlags;

/// Where does a distributed application's time go, and what would make it faster?
#[derive(Debug, Parser)]
#[command(name = "stackline", version, max_term_width = 80, disable_help_subcommand = true, after_help = AFTER)]
pub(crate) struct StacklineFlags {
    #[command(subcommand)]
    pub(crate) command: StacklineCommand,
}

const AFTER: &str = "\
Try:  stackline trace curl -s -o /dev/null http://localhost:8080/
      stackline run -e '10 request_response 32*1000 over tcp, unix'
Exit codes: 0 done, 1 measurement failed, 2 wrong input, 3 not possible on this
machine, 4 worse than permitted or expected, 5 undecided, 130 interrupted.";

const AFTER_RUN: &str = "\
Examples:
  stackline run -e '10 request_response 32*1000 over tcp, unix'
  stackline run wan.stackline --in simulated --trace
  stackline run bench.stackline --against bench/baseline.json --junit run.xml
  stackline run pair.stackline --host udjat=ssh:user@10.0.0.6 --over \\
      'tcp(nodelay), udp'

Every run is kept in stackline-runs/, or in $STACKLINE_RUNS.";

const AFTER_PREDICT: &str = "\
Examples:
  stackline predict wan.stackline
  stackline predict wan.stackline --over 'tcp(receive_buffer = 64 KiB), udp'
  stackline predict wan.stackline --run stackline-runs/20260101-120000-wan
  stackline predict wan.stackline --simulate

Nothing is measured. Figures that no closed-form formula covers are simulated with 19 different \
seeds, if that takes no more than two seconds in total; otherwise they are left open, with the \
reason.";

const AFTER_FACTORS: &str = "\
Examples:
  stackline factors wan.stackline -f 'bandwidth x 10' -f 'delay x 0.1' -f \\
      'receive_buffer = 64 KiB, 1 MiB'
  stackline factors wan.stackline -f 'loss x 0.1' -f 'stack = tcp, quic' \\
      --design full --replicates 10
  stackline factors many.stackline --budget 10min --pictures figures
  stackline factors wan.stackline -f 'bandwidth x 10' -f 'cpu x 2' --cost \\
      'bandwidth x 10 = 300, cpu x 2 = 120' --spend 300

Available factors: bandwidth, delay, loss, queue and mtu [of A - B], cpu [of HOST], buffer [of \
SWITCH], stack, size, clients, from, to, any stack option, any variable. A specification may \
declare its own factors (`factor delay x 0.1;`).";

const AFTER_GENERATE: &str = "\
Networks, transfers, calls and planted causes are chosen at random; the cost of a cause is found \
by removing it and simulating again. docs/JSON.md describes truth.json.";

const AFTER_QUERY: &str = "\
Examples:
  stackline query last 'SELECT measurement, run, elapsed_s FROM results'
  stackline query before after \\
      'SELECT run_name, avg(elapsed_s) FROM results GROUP BY run_name'
  stackline query RUN \\
      'SELECT keyword, count(*) AS n FROM events GROUP BY keyword ORDER BY n'

Tables: results, and events for runs made with --trace. docs/JSON.md lists the
columns.";

const AFTER_REPRODUCE: &str = "\
Examples:
  stackline reproduce                             # lists the papers
  # Zwaenepoel 1985, with Figures 4 to 6 as SVG
  stackline reproduce blast --pictures figures
  stackline reproduce blast --profile > sun.stackline";

const AFTER_IMPORT: &str = "\
Examples:
  stackline import server.log client.log --name first-try
  stackline import a.log b.log --host rack1=a.log --host '*-rack2=b.log'
  zcat old.log.gz | stackline import - --into stackline-runs/20260101-120000-wan

The text format is KEYWORD; host; seconds; nanoseconds; data; ... Other lines are skipped and counted.";
const AFTER_COMPLETIONS: &str = "\
Examples:
  stackline completions bash > \\
      ~/.local/share/bash-completion/completions/stackline
  # with ~/.zfunc in fpath
  stackline completions zsh > ~/.zfunc/_stackline
  stackline completions fish > ~/.config/fish/completions/stackline.fish";

const AFTER_REPORT: &str = "\
Examples:
  stackline run wan.stackline --trace
  # writes report.html beside the run's events
  stackline report 20260101-120000-first
  stackline report 20260101-120000-first -o lines.pdf --from 1.2s --to 1.3s
  # the newest run's page, in a browser
  stackline open";

#[derive(Debug, Subcommand)]
pub(crate) enum StacklineCommand {
    /// Run a specification and show the results
    #[command(
        override_usage = "stackline run [OPTIONS] <SPEC | -e TEXT>",
        after_help = AFTER_RUN,
        mut_arg("spec", or_resumed),
        mut_arg("worse", of_gates),
        mut_arg("error_rate", of_gates),
        mut_arg("tolerate", of_gates),
        mut_arg("figures", of_gates),
        mut_arg("segments", of_gates)
    )]
    Run(RunFlags),
    /// Show a kept run's results again as a table, JSON or CSV
    Show(Show),
    /// List kept runs, tag them, make them again, remove them
    #[command(after_help = runs::AFTER)]
    Runs(RunsFlags),
    /// Write a kept run as one file that another machine runs again
    ///
    /// The file is a compressed tar file. `stackline runs add FILE` adds it to the kept runs, `stackline runs again FILE` also makes the run
    /// again and says whether the results are the same to the last bit.
    Archive(ArchiveFlags),
    /// Report every error in a specification
    #[command(override_usage = "stackline check [OPTIONS] <SPEC | -e TEXT>")]
    Check(SpecTextFlags),
    /// Format a specification
    #[command(override_usage = "stackline fmt [OPTIONS] <SPEC | -e TEXT>")]
    Fmt(Fmt),
    /// Show what would be run, without running it
    #[command(override_usage = "stackline plan [OPTIONS] <SPEC | -e TEXT>")]
    Plan(SpecTextFlags),
    /// Predict the results: figures, what limits them, and why
    ///
    /// Uses closed-form formulas where they apply, and simulation otherwise.
    #[command(override_usage = "stackline predict [OPTIONS] <SPEC | -e TEXT>", after_help = AFTER_PREDICT)]
    Predict(PredictFlags),
    /// Measure how much latency grows while a path is loaded
    ///
    /// Idle, during downloads and during uploads: latency, round trips a minute, and a grade. The path leads to a web server, or is a
    /// modelled access line, where another queue is tried as well.
    Bufferbloat(BufferbloatFlags),
    /// Offer rising load, or find the highest rate that is good enough
    ///
    /// The load is open: operations begin at their moments, whether or not those before them are answered. The table has latency against
    /// the offered rate, why no more was offered, and whether the generator was punctual.
    #[command(override_usage = "stackline load [OPTIONS] <SPEC | -e TEXT>", after_help = load::AFTER)]
    Load(LoadFlags),
    /// Find which changes would matter, using a designed experiment
    ///
    /// Reports the gain from each factor, with its confidence interval, and the next limit if that factor no longer mattered.
    #[command(override_usage = "stackline factors [OPTIONS] <SPEC | -e TEXT>", after_help = AFTER_FACTORS)]
    Factors(Factors),
    /// List the stacks of a world, or the options of one stack
    Stacks(Stacks),
    /// List event keywords and their fields
    Keywords(KeywordsFlags),
    /// Print C or Python source code that emits events
    #[command(after_help = client::AFTER)]
    Client(ClientFlags),
    /// Compare two runs: ratios with their intervals
    Compare(Compare),
    /// Fail if a run is worse than a baseline, at a stated error rate
    #[command(after_help = gate::AFTER)]
    Gate(GateFlags),
    /// Run two specifications in pairs until a verdict is known
    #[command(after_help = ab::AFTER)]
    Ab(AbFlags),
    /// Report what limits a run, with evidence, and what to try
    ///
    /// `stackline help findings` explains each kind of finding.
    Diagnose(Diagnose),
    /// Import captures, logs or other tools' traces as a run
    #[command(after_help = AFTER_IMPORT)]
    Import(ImportFlags),
    /// Write a run's events in another format
    #[command(
        override_usage = "stackline export <RUN>\n           <--text|--tape|--otlp|--otlp-json|--perfetto|--qlog> [FILE]"
    )]
    Export(Export),
    /// Show where each request or data unit spent its time
    #[command(after_help = lifelines::AFTER)]
    Lifelines(LifelinesFlags),
    /// Write a kept run as a single-file web page
    #[command(after_help = AFTER_REPORT)]
    Report(ReportFlags),
    /// Draw curves of kept runs: sweeps, distributions of calls
    #[command(after_help = plot::AFTER)]
    Plot(PlotFlags),
    /// Draw a kept run over time: rates, latency, windows, queues
    #[command(after_help = series::AFTER)]
    Series(SeriesFlags),
    /// Query kept runs with SQL (needs `stackline-query`)
    #[command(disable_help_flag = true, after_help = AFTER_QUERY)]
    Query(Query),
    /// Monitor this machine: cores, interfaces, TCP, switches
    #[command(after_help = watch::AFTER)]
    Watch(WatchFlags),
    /// Probe again and again: a series, alerts, metrics
    #[command(
        override_usage = "stackline probe [OPTIONS] <SPEC | -e TEXT>\n       stackline probe <list | show NAME | remove NAME...>",
        after_help = probe::AFTER,
        mut_arg("over", of_run),
        mut_arg("hosts", of_run),
        mut_arg("seed", of_run),
        mut_arg("cpu", of_run)
    )]
    Probe(ProbeFlags),
    /// Trace unmodified programs: what their requests wait for, and why
    #[command(override_usage = "stackline trace [OPTIONS] [--] <COMMAND>...\n       stackline trace [OPTIONS] --on <SPEC> [<HOST> -- <COMMAND>...]...\n       stackline trace [OPTIONS] --pid <PID>...", after_help = trace::AFTER)]
    Trace(TraceFlags),
    /// Open the page of a kept run in a browser
    Open(OpenFlags),
    /// Show a network, or run any program on it
    Net(Net),
    /// Make simulated runs with known causes, to test findings
    Truth(TruthFlags),
    /// Systems from five papers, with their tables and figures
    Papers(PapersFlags),
    /// The same commands without `papers` before them.
    #[command(flatten)]
    Paper(PaperCommand),
    /// Remove what killed processes of this user left behind
    Clean(Clean),
    /// Print help on a command or topic, or list all commands
    Help(HelpFlags),
    /// Print shell completions for commands and flags
    #[command(after_help = AFTER_COMPLETIONS)]
    Completions(Completions),
    /// Write the manual pages
    Man(Man),
    /// Measure on this host for a coordinator elsewhere
    #[command(after_help = agent::AFTER)]
    Agent(AgentFlags),
    /// Answer requests of a program on stdin and stdout, as JSON lines
    #[command(after_help = session::AFTER)]
    Session(SessionFlags),
    /// Emulate a network (started by `run` and `net exec`)
    #[command(hide = true)]
    Emulate(Emulate),
    /// Start a program and stop it at its system calls (started by `trace`)
    #[command(hide = true)]
    Ptrace(Ptrace),
    /// Measure what a paper's tables need (started by `reproduce`)
    #[command(hide = true)]
    Measure(Measure),
}

/// What a paper describes.
#[derive(Debug, Subcommand)]
pub(crate) enum PaperCommand {
    /// A parallel block server (DPSS, 1996)
    #[command(after_help = blocks::AFTER)]
    Blocks(BlocksFlags),
    /// Serve and measure a structured display (V-System, 1985)
    #[command(after_help = display::AFTER)]
    Display(DisplayFlags),
    /// Reproduce a paper's tables and figures beside the published ones
    #[command(after_help = AFTER_REPRODUCE)]
    Reproduce(Reproduce),
    /// Show what the IMPs of a run reported: packets, processors, lines
    Ncc(Ncc),
}

#[derive(Args, Debug)]
pub(crate) struct PapersFlags {
    #[command(subcommand)]
    pub(crate) command: PaperCommand,
}

#[derive(Args, Debug)]
pub(crate) struct HelpFlags {
    /// A command, a topic such as `networks`, or `all`
    pub(crate) words: Vec<String>,
}

/// A run that goes on has its specification.
fn or_resumed(spec: clap::Arg) -> clap::Arg {
    spec.required_unless_present("resume")
}

/// Options that `gate --help` explains.
fn of_gates(option: clap::Arg) -> clap::Arg {
    option.hide(true)
}

/// Options that `run --help` explains.
fn of_run(option: clap::Arg) -> clap::Arg {
    option.hide(true)
}

#[derive(Args, Debug)]
pub(crate) struct PredictFlags {
    #[command(flatten)]
    pub(crate) text: SpecTextFlags,
    /// A kept run (a directory, or its name under the runs directory) whose figures are shown beside the predictions
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<PathBuf>,
    /// Take up to a minute, instead of two seconds, to simulate what no closed-form formula covers
    #[arg(long)]
    pub(crate) simulate: bool,
    /// Use closed-form formulas only; simulate nothing
    #[arg(long, conflicts_with = "simulate")]
    pub(crate) forms: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Fmt {
    /// The specification: a file, - for standard input, or a Markdown file, perhaps with #BLOCK
    #[arg(required_unless_present = "expression", conflicts_with = "expression")]
    pub(crate) spec: Option<PathBuf>,
    /// The specification itself
    #[arg(short = 'e', long, value_name = "TEXT", conflicts_with = "write")]
    pub(crate) expression: Option<String>,
    /// Only check whether the file is formatted (exit code 1 if not)
    #[arg(long)]
    pub(crate) check: bool,
    /// Write the result to the file itself
    #[arg(long, conflicts_with = "check")]
    pub(crate) write: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Stacks {
    /// One stack
    pub(crate) name: Option<String>,
    /// World whose stacks are listed; emulated has the same stacks as live
    #[arg(long = "in", value_name = "WORLD", value_parser = choice::<World>(), default_value = "live")]
    pub(crate) world: World,
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct KeywordsFlags {
    /// One keyword
    pub(crate) keyword: Option<String>,
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Compare {
    /// The run to compare with: its directory, directory name or given name, or `last`
    pub(crate) before: PathBuf,
    /// The other run; if omitted, the stacks of the first run are compared, each with the first one in its specification
    pub(crate) after: Option<PathBuf>,
    /// Exit with code 4 if something is worse by more than this, such as 5%, and with 5 if that cannot be decided
    ///
    /// Worse by more than PERCENT means that the mean (for traces, the median) is slower or costlier by more than that, and that the 95 %
    /// confidence interval of the ratio excludes 1, so chance does not explain the difference. How far the interval extends does not matter.
    /// This cannot be decided if either side has fewer than two runs, or if the two sides do not have the same measurements.
    #[arg(long, value_name = "PERCENT", value_parser = percent::percent)]
    pub(crate) fail_above: Option<f64>,
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Diagnose {
    /// A kept run: its directory, directory name or given name, or `last`
    #[arg(default_value = "last")]
    pub(crate) run: PathBuf,
    /// Read at most this many events at once, at about 300 bytes of memory each; if there are more, read only those of whole runs
    #[arg(long, value_name = "NUMBER", default_value_t = stackline_analyze::loaded_run::MOST_EVENTS)]
    pub(crate) most_events: usize,
    /// Take up to a minute, instead of two seconds, to simulate the gain from each piece of advice
    #[arg(long)]
    pub(crate) simulate: bool,
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Ncc {
    /// A run on a network of IMPs, with events: a directory, or its name under the runs directory
    pub(crate) run: PathBuf,
    /// Write a drawing of the network, showing how busy its lines were
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Show the reports over time, with a row for each interval of this length
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) each: Option<Duration>,
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[command(group(clap::ArgGroup::new("picture").args(["output", "svg", "png"]).multiple(true)))]
pub(crate) struct ReportFlags {
    /// A run: its directory, directory name or given name, or `last`; pictures need its events
    #[arg(default_value = "last")]
    pub(crate) run: PathBuf,
    /// Write the page here instead of to report.html in the run's directory; FILE.svg, .png or .pdf draws the lifelines,
    /// or the figures if the run has none
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Read at most this many events at once, and show at most this many in the page's lifelines; if there are more, read only those of
    /// whole runs
    #[arg(long, value_name = "NUMBER", default_value_t = stackline_analyze::loaded_run::MOST_EVENTS)]
    pub(crate) most_events: usize,
    /// Draw the lifelines as SVG instead
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    pub(crate) svg: Option<PathBuf>,
    /// Draw the lifelines as PNG instead
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    pub(crate) png: Option<PathBuf>,
    /// Draw a monitored field, such as cwnd_bytes or rtt_ns, over time instead of the lifelines (with -o FILE.svg)
    #[arg(long, value_name = "FIELD", requires = "picture", conflicts_with_all = ["png", "units"])]
    pub(crate) monitor: Option<String>,
    /// Draw lifelines from this time on, such as 1.5s or 200ms, counted from the first event as on the report page
    #[arg(long, value_name = "TIME", value_parser = parse_moment, requires = "picture")]
    pub(crate) from: Option<f64>,
    /// Draw lifelines up to this time
    #[arg(long, value_name = "TIME", value_parser = parse_moment, requires = "picture")]
    pub(crate) to: Option<f64>,
    /// Draw only the lifelines of units with these IDs
    #[arg(
        long,
        value_name = "ID,...",
        value_delimiter = ',',
        requires = "picture"
    )]
    pub(crate) units: Vec<String>,
    #[command(flatten)]
    pub(crate) took: Took,
}

#[derive(Args, Debug)]
pub(crate) struct OpenFlags {
    /// A run: a directory, or its name under the runs directory; by default the newest
    pub(crate) run: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Query {
    /// Runs, then the query as the last argument
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "RUN... SQL"
    )]
    pub(crate) words: Vec<OsString>,
}

fn precision(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').unwrap_or(text).trim().parse().ok();
    percent
        .filter(|percent| (0.1..=50.0).contains(percent))
        .ok_or_else(|| "expected a number from 0.1 to 50".to_owned())
}

#[derive(Args, Debug)]
pub(crate) struct TruthFlags {
    #[command(subcommand)]
    pub(crate) command: TruthCommand,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum TruthCommand {
    /// Write labelled runs: events, specification, and truth.json with the cost of each cause
    #[command(after_help = AFTER_GENERATE)]
    Generate(Generate),
}

#[derive(Args, Debug)]
pub(crate) struct Generate {
    /// Directory for the runs; created if missing
    pub(crate) directory: PathBuf,
    /// The first seed; each seed always gives the same run
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub(crate) from: u64,
    /// Number of seeds
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    pub(crate) count: u64,
    /// Also keep the packets of every port, as pcapng
    #[arg(long)]
    pub(crate) capture: bool,
    #[command(flatten)]
    pub(crate) sharing: Sharing,
}

#[derive(Args, Debug)]
pub(crate) struct Reproduce {
    /// The paper; by default all papers are listed
    pub(crate) paper: Option<String>,
    /// Only print the host profiles used to simulate the paper, as network declarations
    #[arg(long, requires = "paper", conflicts_with_all = ["json", "pictures"])]
    pub(crate) profile: bool,
    /// Only the tables and figures whose names begin with this, such as 'figure 11'
    #[arg(long, value_name = "NAME", requires = "paper")]
    pub(crate) only: Option<String>,
    /// Write the figures as SVG to this directory
    #[arg(long, value_name = "DIR", requires = "paper")]
    pub(crate) pictures: Option<PathBuf>,
    /// Seed of the simulation
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Minimum number of simulated transfers for each figure that depends on chance
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) transfers: u64,
    /// Keep simulating until the standard error of each standard deviation is at most this percentage of it
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0, value_parser = precision)]
    pub(crate) precision: f64,
    /// Number of transfers of each kind to measure on this machine; 0 for none
    #[arg(long, value_name = "NUMBER", default_value_t = 500, value_parser = clap::value_parser!(u32).range(..=100_000))]
    pub(crate) runs: u32,
    /// The world; `emulated` adds real processes on an emulated network, alongside the same sessions in simulation
    #[arg(
        long = "in",
        value_name = "WORLD",
        requires = "paper",
        default_value = "simulated"
    )]
    pub(crate) world: NetworkWorld,
    /// With --in emulated: runs of each kind in each world
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) sessions: u32,
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Measure {
    /// The paper
    pub(crate) paper: String,
    /// Transfers of each kind
    #[arg(long)]
    pub(crate) runs: u32,
}

#[derive(Args, Debug)]
pub(crate) struct Emulate {
    /// Stdin is the listening socket of a network shared by several programs
    #[arg(long)]
    pub(crate) shared: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Ptrace {
    /// The pipe on which to report what the program does
    #[arg(long)]
    pub(crate) to: Option<PathBuf>,
    /// Also report what the program sends and receives
    #[arg(long)]
    pub(crate) contents: bool,
    /// Become the program once it is traced
    #[arg(long)]
    pub(crate) traced: bool,
    /// Measure the time for a message and its reply
    #[arg(long)]
    pub(crate) ping_pong: bool,
    /// The program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<OsString>,
}
