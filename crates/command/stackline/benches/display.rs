//! A display beside X, in turns, both with their clients on one core and over unix sockets: items a second of each, and ratios within a round.
//! X draws lines of 10 pixels as `x11perf -line10` sends them and answers requests one by one (`-noop -sync`); the display draws the same
//! lines at three of its levels.
//!
//! `cargo bench -p stackline --bench display`; `-- --rounds N` for more than 5 rounds. `STACKLINE_BIN` names another program to measure.
//! Where there is no Xvfb or no x11perf it says so and ends.

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use nix::unistd::Pid;
use serde_json::Value;
use stackline_testing::bench_arguments::BenchArguments;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::time::Instant;

type Result<T> = std::result::Result<T, String>;

/// What one side sends and how, and the rate of X that it is measured by, with what was promised.
const PROMISES: [(&str, X11, f64); 3] = [
    ("stop-and-wait", X11::Sync, 1.0),
    ("pipelined", X11::Line10, 0.25),
    ("batched", X11::Line10, 0.5),
];

#[derive(Clone, Copy)]
enum X11 {
    Sync,
    Line10,
}

/// Items a second within a round, and what share of its time the side's programs had the core.
#[derive(Clone, Copy)]
struct Rate {
    per_s: f64,
    busy: f64,
}

struct Round {
    ours: [Rate; 3],
    sync: Rate,
    line10: Rate,
}

fn main() -> ExitCode {
    let rounds = BenchArguments::read()
        .take_number("--rounds", 5)
        .unwrap_or(5);
    match measure(rounds) {
        Ok(rounds) => {
            print(&rounds);
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("skipped: {why}");
            ExitCode::SUCCESS
        }
    }
}

fn measure(rounds: usize) -> Result<Vec<Round>> {
    let mut core = CpuSet::new();
    core.set(0)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &core))
        .map_err(|error| format!("core 0: {error}"))?;
    let program = std::env::var("STACKLINE_BIN")
        .unwrap_or_else(|_| env!("CARGO_BIN_EXE_stackline").to_owned());
    let place = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (xvfb, number) =
        Server::start(Command::new("Xvfb").args(["-displayfd", "1", "-nolisten", "tcp"]))?;
    let listen = format!("unix:{}", place.path().join("display").display());
    let (display, _) =
        Server::start(Command::new(&program).args(["display", "serve", "--listen", &listen]))?;
    let x11 = |flags: &[&str]| {
        let screen = format!(":{}", number.trim());
        let flags = [&["-display", &screen, "-repeat", "2", "-time", "1"], flags].concat();
        xvfb.while_it_serves(Command::new("x11perf").args(flags))
            .and_then(|(said, busy)| {
                Ok(Rate {
                    per_s: x_rate(&said)?,
                    busy,
                })
            })
    };
    let ours = |level: &str| {
        let words = [
            "display",
            "bench",
            "--json",
            "--picture",
            "short",
            "--trials",
            "3",
            "--to",
            &listen,
            "--level",
            level,
        ];
        display
            .while_it_serves(Command::new(&program).args(words))
            .and_then(|(said, busy)| {
                Ok(Rate {
                    per_s: our_rate(&said, level)?,
                    busy,
                })
            })
    };
    let round = |number: usize| {
        eprintln!("round {} of {rounds}", number + 1);
        let [stop, pipelined, batched] = PROMISES.map(|(level, ..)| level);
        let (sync, stop) = (x11(&["-sync", "-noop"])?, ours(stop)?);
        let (line10, pipelined, batched) = (x11(&["-line10"])?, ours(pipelined)?, ours(batched)?);
        Ok(Round {
            ours: [stop, pipelined, batched],
            sync,
            line10,
        })
    };
    (0..rounds).map(round).collect()
}

/// A server that is killed at the end; what it says later has a reader until then.
struct Server(Child, BufReader<ChildStdout>);

impl Server {
    /// And the first line that it prints.
    fn start(command: &mut Command) -> Result<(Self, String)> {
        let name = Path::new(command.get_program()).display().to_string();
        let started = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = started.map_err(|error| format!("{name} cannot be started: {error}"))?;
        let (mut first, out) = (
            String::new(),
            child.stdout.take().ok_or("its output is a pipe")?,
        );
        let mut server = Self(child, BufReader::new(out));
        match server.1.read_line(&mut first) {
            Ok(1..) => Ok((server, first)),
            _ => Err(format!("{name} ended before it served")),
        }
    }

    /// What the client prints, and the share of its time in which one of both had the core.
    fn while_it_serves(&self, client: &mut Command) -> Result<(String, f64)> {
        let name = Path::new(client.get_program()).display().to_string();
        let cpu_s = || Ok::<f64, String>(clients_cpu_s()? + self.cpu_s()?);
        let (begun, cpu) = (Instant::now(), cpu_s()?);
        let done = client
            .output()
            .map_err(|error| format!("{name} cannot be started: {error}"))?;
        if !done.status.success() {
            return Err(format!(
                "{name} failed: {}",
                String::from_utf8_lossy(&done.stderr).trim()
            ));
        }
        Ok((
            String::from_utf8_lossy(&done.stdout).into_owned(),
            (cpu_s()? - cpu) / begun.elapsed().as_secs_f64(),
        ))
    }

    /// Of user and kernel, in seconds: proc_pid_stat(5), whose ticks are hundredths on Linux.
    fn cpu_s(&self) -> Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id()))
            .map_err(|error| error.to_string())?;
        let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
        let ticks = behind
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|word| word.parse::<f64>().ok());
        Ok(ticks.sum::<f64>() / 100.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn clients_cpu_s() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| error.to_string())?;
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// The mean of its repeats is the last line: `NUMBER trep @ MSEC msec (RATE/sec): NAME`.
fn x_rate(said: &str) -> Result<f64> {
    let rate = said.lines().rev().find_map(|line| {
        line.split_once('(')?
            .1
            .split_once("/sec)")?
            .0
            .trim()
            .parse()
            .ok()
    });
    rate.ok_or_else(|| format!("x11perf gave no rate: {said}"))
}

fn our_rate(said: &str, level: &str) -> Result<f64> {
    let said: Value = serde_json::from_str(said).map_err(|error| error.to_string())?;
    let mut rates = said["rates"].as_array().into_iter().flatten();
    let rate = rates
        .find(|rate| rate["rate"] == level)
        .and_then(|rate| rate["mean"].as_f64());
    rate.ok_or_else(|| format!("no rate at level {level}: {said}"))
}

fn print(rounds: &[Round]) {
    println!(
        "medians of {} rounds in turns; busy: the share of its time in which a side's programs had the core",
        rounds.len()
    );
    println!(
        "{:<14} {:>12} {:>5} {:>12} {:>5} {:>6} {:>14} {:>9}",
        "level", "items/s", "busy", "X/s", "busy", "ratio", "least .. most", "promised"
    );
    for (which, (level, x, promised)) in PROMISES.into_iter().enumerate() {
        let beside = |round: &Round| match x {
            X11::Sync => round.sync,
            X11::Line10 => round.line10,
        };
        let sorted = |of: &dyn Fn(&Round) -> f64| {
            let mut all: Vec<f64> = rounds.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let median = |of: &dyn Fn(&Round) -> f64| {
            sorted(of)
                .get(rounds.len() / 2)
                .copied()
                .unwrap_or(f64::NAN)
        };
        let ratio = |round: &Round| round.ours[which].per_s / beside(round).per_s;
        let ratios = sorted(&ratio);
        let (least, most) = (
            ratios.first().unwrap_or(&f64::NAN),
            ratios.last().unwrap_or(&f64::NAN),
        );
        println!(
            "{level:<14} {:>12.0} {:>5.2} {:>12.0} {:>5.2} {:>6.2} {:>14} {promised:>9}",
            median(&|round| round.ours[which].per_s),
            median(&|round| round.ours[which].busy),
            median(&|round| beside(round).per_s),
            median(&|round| beside(round).busy),
            median(&ratio),
            format!("{least:.2} .. {most:.2}"),
        );
    }
}
