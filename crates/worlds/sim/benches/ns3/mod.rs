//! ns-3 as a peer: builds `dumbbell.cc` beside this file and runs it, its CPU time taken from the kernel's account of
//! children.

use super::{Case, Turn, cpu_seconds};
use nix::sys::resource::UsageWho;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/ns3/dumbbell.cc");
const MODULES: [&str; 6] = [
    "applications",
    "internet",
    "point-to-point",
    "traffic-control",
    "network",
    "core",
];

/// A built program.
pub(crate) struct Ns3 {
    program: PathBuf,
    /// Its version in words.
    pub(crate) version: String,
}

impl Ns3 {
    /// Builds it into the target directory; says how to install what is missing.
    pub(crate) fn build() -> Result<Self, String> {
        const HINT: &str = "hint: Debian has it: apt-get install g++ pkg-config libns3-dev";
        let said = |output: Output| String::from_utf8_lossy(&output.stdout).trim().to_string();
        let asked = Command::new("pkg-config")
            .args(["--modversion", "ns3-core"])
            .output();
        let version = match asked {
            Ok(output) if output.status.success() => said(output),
            Ok(_) => return Err(format!("ns-3 is not installed; {HINT}")),
            Err(error) => return Err(format!("pkg-config: {error}; {HINT}")),
        };
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ns3-dumbbell");
        let mut compiler = Command::new("g++");
        compiler.arg("-O2").arg("-o").arg(&program).arg(SOURCE);
        compiler.args(MODULES.iter().map(|module| format!("-lns3-{module}")));
        let built = compiler
            .output()
            .map_err(|error| format!("g++: {error}; {HINT}"))?;
        if !built.status.success() {
            let words = String::from_utf8_lossy(&built.stderr);
            let first = words
                .lines()
                .find(|line| line.contains("error"))
                .unwrap_or("g++ failed");
            return Err(format!("dumbbell.cc is not built: {first}; {HINT}"));
        }
        Ok(Self { program, version })
    }

    /// Carries out a case; with `seconds` 0 only what start-up and set-up cost.
    pub(crate) fn run(&self, case: &Case, seconds: u32) -> Result<Turn, String> {
        let (before, start) = (cpu_seconds(UsageWho::RUSAGE_CHILDREN), Instant::now());
        let numbers = [case.rate, u64::from(seconds), case.window, case.queue]
            .map(|number| number.to_string());
        let output = Command::new(&self.program)
            .args(numbers)
            .output()
            .map_err(|error| error.to_string())?;
        let (wall, cpu) = (
            start.elapsed().as_secs_f64(),
            cpu_seconds(UsageWho::RUSAGE_CHILDREN) - before,
        );
        let words = String::from_utf8_lossy(&output.stdout);
        let numbers: Vec<u64> = words
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        match numbers[..] {
            [bytes, events, dropped] if output.status.success() => Ok(Turn {
                cpu,
                wall,
                bytes,
                seconds: f64::from(seconds),
                events,
                dropped,
            }),
            _ => Err(format!(
                "it failed: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            )),
        }
    }
}
