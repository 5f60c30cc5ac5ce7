//! Peers that are programs of their own, built here: one for each end, in the namespaces and on the cores of the two
//! sides. Each says its wall time and processor time itself.

use crate::Failure;
use crate::net::{Pair, SERVER};
use crate::table::Turn;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches");
const BUILT: &str = env!("CARGO_TARGET_TMPDIR");
/// No turn takes longer.
const LONGEST: Duration = Duration::from_secs(40);
/// How often is looked whether it is over.
const LOOK: Duration = Duration::from_millis(20);

/// A built program.
#[derive(Clone)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    path: PathBuf,
}

/// Builds the program with quinn, outside the workspace.
pub(crate) fn quinn() -> Result<Program, String> {
    let target = Path::new(BUILT).join("quinn-peer");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = Path::new(HERE).join("quinn-peer/Cargo.toml");
    let mut command = Command::new(cargo);
    command
        .args(["build", "--release", "--locked", "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(&target);
    built(command, "hint: its crates have to be fetched once")?;
    Ok(Program {
        name: "quinn",
        path: target.join("release/quinn-peer"),
    })
}

/// Builds the program with UDT4, where that is installed.
pub(crate) fn udt() -> Result<Program, String> {
    let path = Path::new(BUILT).join("udt-peer");
    let mut command = Command::new("g++");
    command
        .arg("-O2")
        .arg("-o")
        .arg(&path)
        .arg(Path::new(HERE).join("peers/udt.cc"))
        .args(["-ludt", "-lpthread"]);
    built(
        command,
        "hint: Debian has it: apt-get install g++ libudt-dev",
    )?;
    Ok(Program { name: "udt", path })
}

fn built(mut command: Command, hint: &str) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let Output { status, stderr, .. } = command
        .output()
        .map_err(|error| format!("{program}: {error}; {hint}"))?;
    if status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&stderr);
    let first = words
        .lines()
        .find(|line| line.contains("error"))
        .unwrap_or("it says nothing");
    Err(format!("its program is not built: {first}; {hint}"))
}

impl Program {
    /// One transfer of so many bytes.
    pub(crate) fn run(&self, pair: &Pair, bytes: usize) -> Result<Turn, Failure> {
        let mut receiver = self.start(pair, 1, "receive", bytes)?;
        let mut said = BufReader::new(receiver.0.stdout.take().ok_or("it has no output")?);
        said.read_line(&mut String::new())?;
        let mut sender = self.start(pair, 0, "send", bytes)?;
        let until = Instant::now() + LONGEST;
        sender.end(until)?;
        receiver.end(until)?;
        let (_, received) = figures(&mut said)?;
        let (seconds, sent) = figures(&mut sender.0.stdout.take().ok_or("it has no output")?)?;
        Ok(Turn {
            seconds,
            sender: sent,
            receiver: received,
        })
    }

    /// A process is where the thread that starts it is.
    fn start(
        &self,
        pair: &Pair,
        side: usize,
        what: &str,
        bytes: usize,
    ) -> Result<Running, Failure> {
        let start = || -> Result<Running, Failure> {
            pair.enter(side)?;
            let mut command = Command::new(&self.path);
            command.args([what, &format!("{SERVER}:7002"), &bytes.to_string()]);
            Ok(Running(
                command
                    .stdin(Stdio::null())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()?,
            ))
        };
        thread::scope(|scope| scope.spawn(start).join()).map_err(|_| "a thread panicked")?
    }
}

/// A process that does not outlive this value.
struct Running(Child);

impl Running {
    fn end(&mut self, until: Instant) -> Result<(), Failure> {
        let status = loop {
            match self.0.try_wait()? {
                Some(status) => break status,
                None if Instant::now() > until => {
                    return Err(format!("it was not done after {LONGEST:?}").into());
                }
                None => thread::sleep(LOOK),
            }
        };
        if status.success() {
            return Ok(());
        }
        let mut words = String::new();
        if let Some(mut stderr) = self.0.stderr.take() {
            stderr.read_to_string(&mut words)?;
        }
        Err(format!("it failed: {}", words.trim()).into())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already; then there is nobody to end.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Seconds, of wall time and of the processor's.
fn figures(said: &mut impl Read) -> Result<(f64, f64), Failure> {
    let mut words = String::new();
    said.read_to_string(&mut words)?;
    let numbers: Vec<f64> = words
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    match numbers[..] {
        [seconds, processor] => Ok((seconds, processor)),
        _ => Err(format!("it said `{}`", words.trim()).into()),
    }
}
