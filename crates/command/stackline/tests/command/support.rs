//! A temporary directory that holds the runs, the command in it, and what became of its processes.
//!
//! Every process started in a [`Place`], and every agent these start, has the place's path in its environment: that is how
//! they are found, and how a process left behind is noticed.

pub(crate) mod authority;
pub(crate) mod blocks;
pub(crate) mod daemons;
pub(crate) mod display;
pub(crate) mod emulated;
pub(crate) mod events;
pub(crate) mod stacks;
pub(crate) mod traced;
pub(crate) mod wire_capture;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
pub(crate) use stackline_testing::{PATIENCE, has_program, skip, wait_for as until, wait_until};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::LazyLock;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_millis(5);

/// A directory of its own for one test.
pub(crate) struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn script(&self, name: &str, text: &str) -> PathBuf {
        let source = self.write(&format!("{name}.source"), text);
        let path = self.install(&source, name);
        fs::remove_file(source).unwrap();
        path
    }

    /// A copy of a program that can be started at once. Another process writes it: a descriptor of ours that is open for writing would
    /// also be in whatever another test forks at that moment, and until that has executed its program, the kernel refuses to start this
    /// one (`ETXTBSY`).
    pub(crate) fn install(&self, source: impl AsRef<Path>, name: &str) -> PathBuf {
        let path = self.path(name);
        let made = Command::new("install")
            .args(["-D", "-m", "755"])
            .args([source.as_ref(), &path])
            .status()
            .unwrap();
        assert!(made.success());
        path
    }

    /// `stackline ARGUMENTS`, to be changed and started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        // In a process group of its own: the kernel hangs up on a group without a parent in which something is stopped when a member of
        // it ends, and tests stop some. That would be the group of all tests.
        command
            .process_group(0)
            .args(arguments)
            .current_dir(self.directory.path())
            .env("STACKLINE_RUNS", self.path("runs"));
        // Secrets are made there, and not among those of who runs this.
        command.env("XDG_CONFIG_HOME", self.path("configuration"));
        for name in ["STACKLINE_SSH", "STACKLINE_REMOTE"] {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn start(&self, command: &mut Command) -> Started {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (out, err) = (
            collect(child.stdout.take().unwrap()),
            collect(child.stderr.take().unwrap()),
        );
        Started {
            child,
            out,
            err,
            runs: self.path("runs"),
        }
    }

    pub(crate) fn finish(&self, command: &mut Command) -> Finished {
        self.start(command).finish()
    }

    /// `stackline ARGUMENTS` to its end.
    pub(crate) fn stackline(&self, arguments: &[&str]) -> Finished {
        self.finish(&mut self.command(arguments))
    }

    /// `stackline run -e SPECIFICATION` in the background.
    pub(crate) fn running(&self, specification: &str) -> Started {
        self.start(&mut self.command(&["run", "-e", specification]))
    }

    /// `stackline run -e SPECIFICATION` to its end.
    pub(crate) fn run(&self, specification: &str) -> Finished {
        self.stackline(&["run", "-e", specification])
    }

    /// The JSON of a run that succeeds.
    pub(crate) fn json(&self, specification: &str) -> Value {
        self.stackline(&["run", "--json", "-e", specification])
            .json()
    }

    /// The measurements in the JSON of a run that succeeds.
    pub(crate) fn measure(&self, specification: &str) -> Vec<Value> {
        self.json(specification)["measurements"]
            .as_array()
            .unwrap()
            .clone()
    }

    /// The run directories, oldest first.
    pub(crate) fn runs(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("runs")).into_iter().flatten();
        let mut runs: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        runs.sort();
        runs
    }

    /// The one run directory there is.
    pub(crate) fn kept(&self) -> Kept {
        let runs = self.runs();
        assert_eq!(runs.len(), 1, "{runs:?}");
        Kept(runs[0].clone())
    }

    /// Processes of this place that are alive.
    pub(crate) fn processes(&self) -> Vec<Process> {
        processes(&self.path("runs"))
    }

    /// The process that emulates a network.
    pub(crate) fn emulator(&self) -> Process {
        until("there is an emulator", || {
            self.processes()
                .into_iter()
                .find(|process| process.is("emulate"))
        })
    }

    /// Waits until no process of this place is left.
    pub(crate) fn empties(&self) {
        until("every process is gone", || {
            self.processes().is_empty().then_some(())
        });
    }
}

/// Two hosts, `a` and `b`, 10 ms apart with a switch `x` between them, and what the link behind it does besides.
pub(crate) fn pair(loss: &str) -> String {
    format!(
        "network n {{ host a, b; switch x; link a - x 10 Mbit/s 4 ms; link x - b 10 Mbit/s 6 ms {loss}; }}"
    )
}

/// An ssh that drops its options and the destination; the shell runs what is left, as sshd does.
pub(crate) const SSH: &str = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift 2\n";

/// The command under test: the one just built, or the one that `STACKLINE_PROGRAM` names.
pub(crate) fn program() -> &'static str {
    static PROGRAM: LazyLock<String> = LazyLock::new(|| {
        std::env::var("STACKLINE_PROGRAM")
            .unwrap_or_else(|_| env!("CARGO_BIN_EXE_stackline").into())
    });
    &PROGRAM
}

fn collect(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    })
}

/// A process found in /proc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process(pub(crate) i32);

impl Process {
    pub(crate) fn signal(self, signal: Signal) {
        kill(Pid::from_raw(self.0), signal).unwrap();
    }

    fn text(self, name: &str) -> Option<String> {
        Some(
            String::from_utf8_lossy(&fs::read(format!("/proc/{}/{name}", self.0)).ok()?)
                .into_owned(),
        )
    }

    /// How many of its threads have that name.
    pub(crate) fn threads_named(self, name: &str) -> usize {
        let is_it = |comm: &String| comm.trim() == name;
        self.tasks().filter(is_it).count()
    }

    /// How many threads it has.
    pub(crate) fn threads(self) -> usize {
        self.tasks().count()
    }

    /// The names of its threads.
    fn tasks(self) -> impl Iterator<Item = String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0));
        let paths = tasks.into_iter().flatten().flatten();
        paths.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok())
    }

    /// What the kernel calls it.
    pub(crate) fn name(self) -> String {
        self.text("comm").unwrap_or_default().trim().to_owned()
    }

    pub(crate) fn parent(self) -> Option<i32> {
        self.text("status")?
            .lines()
            .find_map(|line| line.strip_prefix("PPid:"))?
            .trim()
            .parse()
            .ok()
    }

    pub(crate) fn is(self, command: &str) -> bool {
        self.text("cmdline")
            .is_some_and(|line| line.split('\0').nth(1) == Some(command))
    }

    /// The most memory it has had, in bytes.
    pub(crate) fn peak_memory(self) -> u64 {
        let status = self.text("status").unwrap_or_default();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap_or("0 kB");
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }
}

/// Alive processes with that runs directory in their environment.
fn processes(runs: &Path) -> Vec<Process> {
    let mark = format!("STACKLINE_RUNS={}", runs.display());
    let numbers = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse().ok());
    let marked = |process: &Process| {
        process
            .text("environ")
            .is_some_and(|all| all.split('\0').any(|variable| variable == mark))
    };
    let mut found: Vec<Process> = numbers.map(Process).filter(marked).collect();
    found.sort();
    found
}

/// The command while it runs. Dropped (by a failing test), it is killed with its agents.
pub(crate) struct Started {
    child: Child,
    out: JoinHandle<String>,
    err: JoinHandle<String>,
    runs: PathBuf,
}

impl Started {
    pub(crate) fn process(&self) -> Process {
        Process(i32::try_from(self.child.id()).unwrap())
    }

    pub(crate) fn say(&mut self, bytes: &[u8]) {
        // It may have heard enough.
        let _ = self.child.stdin.as_mut().unwrap().write_all(bytes);
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until `n` runs are kept.
    pub(crate) fn has_kept(&self, n: usize) -> &Self {
        until("runs are kept", || {
            let directory = fs::read_dir(&self.runs).ok()?.next()?.ok()?.path();
            (Kept(directory).journal() >= n).then_some(())
        });
        self
    }

    /// Its agents as soon as there are `n`, in the order of their hosts' names: initiator, responder.
    pub(crate) fn agents(&self, n: usize) -> Vec<Process> {
        until("the agents are there", || {
            let children = processes(&self.runs)
                .into_iter()
                .filter(|p| p.parent() == Some(self.process().0));
            let agents: Vec<Process> = children.filter(|p| p.is("agent")).collect();
            (agents.len() == n).then_some(agents)
        })
    }

    /// Waits for its end. Whatever happened, it has not panicked and it has left no process behind.
    pub(crate) fn finish(mut self) -> Finished {
        drop(self.child.stdin.take());
        let give_up = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > give_up {
                for process in processes(&self.runs) {
                    let _ = kill(Pid::from_raw(process.0), Signal::SIGKILL);
                }
                let _ = self.child.wait();
                panic!(
                    "it hangs; stdout: {}; stderr: {}",
                    self.out.join().unwrap(),
                    self.err.join().unwrap()
                );
            }
            std::thread::sleep(LOOK);
        };
        let left = processes(&self.runs);
        if status.code().is_some() {
            assert_eq!(left, [], "left behind");
        }
        let (out, err) = (self.out.join().unwrap(), self.err.join().unwrap());
        assert!(!err.contains("panicked"), "{err}");
        Finished { status, out, err }
    }
}

/// What the command said.
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Finished {
    /// It is done, without an error on stderr.
    pub(crate) fn succeeds(&self) -> &Self {
        assert_eq!(self.status.code(), Some(0), "{}{}", self.out, self.err);
        assert!(
            !self.err.contains("error: ") && !self.err.contains('×'),
            "{}",
            self.err
        );
        self
    }

    pub(crate) fn json(&self) -> Value {
        self.succeeds();
        serde_json::from_str(&self.out).unwrap()
    }

    /// One sentence on stderr that says all of `words`, at most one hint behind it, and that exit code.
    pub(crate) fn fails(&self, code: i32, words: &[&str]) -> &Self {
        assert_eq!(self.status.code(), Some(code), "{}{}", self.out, self.err);
        // How far a slow machine had come by then is no part of it.
        let is_progress = |line: &&str| line.contains(" runs done after ");
        let lines = self.err.lines().filter(|line| !is_progress(line));
        let lines: Vec<&str> = lines.collect();
        assert!(
            lines.len() <= 2
                && lines
                    .first()
                    .is_some_and(|line| line.starts_with("error: ")),
            "{}",
            self.err
        );
        assert!(
            lines.get(1).is_none_or(|line| line.starts_with("hint: ")),
            "{}",
            self.err
        );
        for word in words {
            assert!(lines[0].contains(word), "no `{word}` in: {}", self.err);
        }
        self
    }

    pub(crate) fn hints(&self, word: &str) -> &Self {
        let hint = self
            .err
            .lines()
            .find(|line| line.trim_start().starts_with("hint: "));
        assert!(
            hint.is_some_and(|hint| hint.contains(word)),
            "no hint `{word}` in: {}",
            self.err
        );
        self
    }

    /// Mistakes of a specification: each shown where it is, exit code 2.
    pub(crate) fn mistakes(&self, words: &[&str]) -> &Self {
        assert_eq!(self.status.code(), Some(2), "{}{}", self.out, self.err);
        assert_eq!(self.out, "");
        let shown = self
            .err
            .lines()
            .filter(|line| line.trim_start().starts_with('×'))
            .count();
        assert_eq!(shown, words.len(), "{}", self.err);
        for word in words {
            assert!(self.err.contains(word), "no `{word}` in: {}", self.err);
        }
        assert!(
            self.err.contains('─') && self.err.contains('╰'),
            "not underlined: {}",
            self.err
        );
        self
    }
}

/// A run directory.
pub(crate) struct Kept(pub(crate) PathBuf);

impl Kept {
    fn value(&self, name: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.0.join(name)).unwrap()).unwrap()
    }

    pub(crate) fn status(&self) -> Value {
        self.value("status.json")
    }

    /// Records that were kept as they came.
    pub(crate) fn journal(&self) -> usize {
        fs::read_to_string(self.0.join("runs.jsonl")).map_or(0, |text| text.lines().count())
    }

    /// It says that it is incomplete and why, and holds what was done.
    pub(crate) fn incomplete(&self, reason: &str) -> &Self {
        let status = self.status();
        assert_eq!(status["complete"], false, "{status}");
        assert!(
            status["reason"]
                .as_str()
                .is_some_and(|said| said.contains(reason)),
            "no `{reason}` in {status}"
        );
        assert_eq!(
            status["records"].as_u64(),
            Some(self.journal() as u64),
            "{status}"
        );
        self
    }
}

/// The numbers at that path of a JSON value: `number(v, "/throughput_bit_s/mean")`.
pub(crate) fn number(value: &Value, path: &str) -> f64 {
    value
        .pointer(path)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("no number at {path} in {value}"))
}

/// What a program printed on both its streams.
pub(crate) fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
    .trim()
    .into()
}

/// Bytes that do not repeat soon.
pub(crate) fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}
