//! What runs in processes of its own: the C and the Python client, LTTng-UST. Each program prints ns an event.

use super::{Failure, Rival};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

pub(super) const LTTNG: &str = "LTTng-UST, snapshot session";

pub(super) fn others(directory: &Path) -> Result<Vec<Rival>, Failure> {
    let mut rivals = Vec::new();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let client = here.join("../../../clients/c/bench.c");
    if let Some(program) = compiled(&client, &["-pthread"], &directory.join("client")) {
        rivals.push(program_of(
            "C client, the emitting thread",
            program,
            &[],
            "c.tape",
            directory,
        ));
    }
    if done(Command::new("python3").arg("--version")).is_some() {
        let bench = here.join("../../../python/bench.py").display().to_string();
        rivals.push(program_of(
            "Python client, the emitting thread",
            "python3".into(),
            &[bench],
            "python.tape",
            directory,
        ));
    } else {
        eprintln!("passed over: there is no python3");
    }
    rivals.extend(lttng(here, directory)?);
    Ok(rivals)
}

/// A program compiled from one C source; nothing, with a word, where that is not to be had.
fn compiled(source: &Path, flags: &[&str], program: &Path) -> Option<PathBuf> {
    let mut compiler = Command::new("cc");
    let built = done(
        compiler
            .args(["-O2", "-o"])
            .arg(program)
            .arg(source)
            .args(flags),
    );
    if built.is_none() {
        eprintln!("passed over: {} cannot be compiled here", source.display());
    }
    built.map(|_| program.to_owned())
}

/// What a command says, when it succeeds.
fn done(command: &mut Command) -> Option<Output> {
    command
        .output()
        .ok()
        .filter(|output| output.status.success())
}

/// A program that writes its events into a file made anew for each round.
fn program_of(
    name: &'static str,
    program: PathBuf,
    arguments: &[String],
    file: &str,
    directory: &Path,
) -> Rival {
    let (arguments, event_log) = (arguments.to_owned(), directory.join(file));
    Rival::new(name, move || {
        let _ = std::fs::remove_file(&event_log);
        let setting = format!("file:{}", event_log.display());
        first_number(
            Command::new(&program)
                .args(&arguments)
                .env("STACKLINE_EVENTS", setting),
        )
    })
}

fn first_number(command: &mut Command) -> Result<f64, Failure> {
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = text
        .split_whitespace()
        .next()
        .and_then(|number| number.parse().ok());
    number
        .filter(|_| output.status.success())
        .ok_or_else(|| format!("{output:?}").into())
}

/// The daemon that LTTng needs, for as long as the benchmark runs.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = done(Command::new("lttng").args(["--no-sessiond", "destroy", "stackline-bench"]));
        // It ends its own children when it is asked to, not when it is killed.
        let _ = done(Command::new("kill").args(["-TERM", &self.0.id().to_string()]));
        let _ = self.0.wait();
    }
}

fn lttng(here: &Path, directory: &Path) -> Result<Option<Rival>, Failure> {
    let sources = here.join("benches/emit/lttng");
    if done(Command::new("lttng").arg("--version")).is_none() {
        eprintln!("passed over: LTTng is not installed (Debian: lttng-tools, liblttng-ust-dev)");
        return Ok(None);
    }
    let include = format!("-I{}", sources.display());
    let program = compiled(
        &sources.join("peer.c"),
        &[&include, "-llttng-ust", "-ldl"],
        &directory.join("peer"),
    );
    let Some(program) = program else {
        return Ok(None);
    };
    let home = directory.join("lttng");
    std::fs::create_dir_all(&home)?;
    let quiet = || Stdio::null();
    let daemon = Command::new("lttng-sessiond")
        .arg("--no-kernel")
        .stdout(quiet())
        .stderr(quiet())
        .spawn()?;
    let daemon = Daemon(daemon);
    let steps: [&[&str]; 3] = [
        &["create", "stackline-bench", "--snapshot"],
        &["enable-event", "--userspace", "stackline_peer:app_send"],
        &["start"],
    ];
    for step in steps {
        let output = format!("--output={}", home.display());
        let arguments = step.iter().map(|argument| (*argument).to_owned());
        let arguments: Vec<String> = arguments
            .chain((step[0] == "create").then_some(output))
            .collect();
        // The daemon takes a while to be there.
        let mut left = 50;
        while done(Command::new("lttng").arg("--no-sessiond").args(&arguments)).is_none() {
            left -= 1;
            if left == 0 {
                eprintln!(
                    "passed over: `lttng {}` does not work here",
                    arguments.join(" ")
                );
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    Ok(Some(Rival::new(LTTNG, move || {
        let _kept = &daemon;
        // Wait until the daemon has sent the program what to trace.
        first_number(Command::new(&program).env("LTTNG_UST_REGISTER_TIMEOUT", "-1"))
    })))
}
