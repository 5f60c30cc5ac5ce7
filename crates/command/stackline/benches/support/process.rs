//! Processes of the benchmark: forked ends of a bare loop, and commands with their CPU time. Each is bounded in time,
//! dies with the benchmark, and is waited for by its number.

#![allow(unsafe_code)] // fork, wait4 and what a child does before exec have no safe form

use super::sys;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{Error, Read as _, Write as _};
use std::os::fd::FromRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// No process of the benchmark lives longer.
const LIMIT_S: u32 = 60;

/// A forked child that will say something in JSON.
pub(crate) struct End {
    pid: i32,
    answer: File,
}

impl End {
    /// Forks; the child runs on the core and says what `work` returns. The benchmark has one thread, so any call is
    /// allowed in the child.
    pub(crate) fn fork(
        core: Option<usize>,
        work: impl FnOnce() -> std::io::Result<Value>,
    ) -> Result<Self, String> {
        let (reader, writer) = pipe().map_err(|error| format!("pipe: {error}"))?;
        // SAFETY: this process has one thread.
        match unsafe { libc::fork() } {
            -1 => Err(format!("fork: {}", Error::last_os_error())),
            0 => child(core, writer, work),
            pid => Ok(Self {
                pid,
                answer: reader,
            }),
        }
    }

    /// Waits for what the child says.
    pub(crate) fn join(mut self) -> Result<Value, String> {
        let mut text = String::new();
        let read = self
            .answer
            .read_to_string(&mut text)
            .map_err(|error| error.to_string());
        wait(self.pid);
        self.pid = 0;
        read?;
        let value: Value =
            serde_json::from_str(&text).map_err(|_| "an end of the loop died".to_owned())?;
        match value.get("error").and_then(Value::as_str) {
            Some(error) => Err(error.to_owned()),
            None => Ok(value),
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if self.pid > 0 {
            kill(self.pid);
            wait(self.pid);
        }
    }
}

fn pipe() -> std::io::Result<(File, File)> {
    let mut fds = [0; 2];
    // SAFETY: room for two descriptors, which are then owned by exactly one File each.
    unsafe {
        if libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) < 0 {
            return Err(Error::last_os_error());
        }
        Ok((File::from_raw_fd(fds[0]), File::from_raw_fd(fds[1])))
    }
}

fn child(
    core: Option<usize>,
    mut writer: File,
    work: impl FnOnce() -> std::io::Result<Value>,
) -> ! {
    let answer = bound(core).and_then(|()| work());
    let answer = answer.unwrap_or_else(|error| serde_json::json!({"error": error.to_string()}));
    let written = writer.write_all(answer.to_string().as_bytes());
    // SAFETY: ends the child without running the parent's cleanups.
    unsafe { libc::_exit(i32::from(written.is_err())) }
}

/// Dies with the benchmark, and after a time anyhow; runs on the core.
fn bound(core: Option<usize>) -> std::io::Result<()> {
    // SAFETY: plain numbers.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::alarm(LIMIT_S);
    }
    core.map_or(Ok(()), sys::pin)
}

/// How a command ended.
pub(crate) struct Ended {
    /// Whether its exit code was 0.
    pub(crate) success: bool,
    /// What it said.
    pub(crate) stdout: String,
    /// What it complained about.
    pub(crate) stderr: String,
    /// From before fork to after its end.
    pub(crate) wall_s: f64,
    /// CPU time of the command and of all its children that it waited for.
    pub(crate) cpu_s: f64,
}

impl Ended {
    /// What was said by a command that succeeded.
    pub(crate) fn output(&self) -> Result<&str, String> {
        let complaint = self.stderr.trim().lines().next_back().or(self
            .stdout
            .trim()
            .lines()
            .next_back());
        if self.success {
            Ok(&self.stdout)
        } else {
            Err(complaint.unwrap_or("it failed without a word").to_owned())
        }
    }
}

/// A command that runs, in a process group of its own, its words going to files.
pub(crate) struct Running {
    pid: i32,
    files: Files,
    start: Instant,
}

/// Files for what a command says, removed afterwards.
struct Files {
    out: PathBuf,
    err: PathBuf,
}

impl Drop for Files {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.out);
        _ = fs::remove_file(&self.err);
    }
}

impl Running {
    /// Starts a command on a core.
    pub(crate) fn start(command: &mut Command, core: Option<usize>) -> Result<Self, String> {
        let name = scratch("words");
        let files = Files {
            out: name.with_extension("out"),
            err: name.with_extension("err"),
        };
        let create = |path: &Path| File::create(path).map_err(|error| error.to_string());
        command
            .stdin(Stdio::null())
            .stdout(create(&files.out)?)
            .stderr(create(&files.err)?)
            .process_group(0);
        // SAFETY: the hook only makes system calls.
        unsafe { command.pre_exec(move || bound(core)) };
        let start = Instant::now();
        let child = command
            .spawn()
            .map_err(|error| format!("{:?}: {error}", command.get_program()))?;
        Ok(Self {
            pid: child.id() as i32,
            files,
            start,
        })
    }

    /// Its number, which is also that of its process group.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether it still runs; what it was remains to be waited for.
    pub(crate) fn runs(&self) -> bool {
        // SAFETY: the kernel fills a live siginfo; WNOWAIT leaves the child to be waited for.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            libc::waitid(libc::P_PID, self.pid as u32, &raw mut info, flags) == 0
                && info.si_pid() == 0
        }
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        let (status, cpu_s) = wait(self.pid);
        let wall_s = self.start.elapsed().as_secs_f64();
        end_group(self.pid);
        self.pid = 0;
        let text = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        Ended {
            success: status == 0,
            stdout: text(&self.files.out),
            stderr: text(&self.files.err),
            wall_s,
            cpu_s,
        }
    }

    /// Ends it and the children it forked for its clients; its CPU time.
    pub(crate) fn stop(mut self) -> f64 {
        kill(-self.pid);
        let (_, cpu_s) = wait(self.pid);
        self.pid = 0;
        cpu_s
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.pid > 0 {
            kill(-self.pid);
            wait(self.pid);
        }
    }
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command, core: Option<usize>) -> Result<Ended, String> {
    Ok(Running::start(command, core)?.end())
}

fn wait(pid: i32) -> (i32, f64) {
    let mut status = -1;
    // SAFETY: the kernel fills a live integer and a live rusage.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        while libc::wait4(pid, &raw mut status, 0, &raw mut usage) < 0 {
            if Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
                break;
            }
        }
        (status, sys::seconds(&usage))
    }
}

/// Ends a child, or with a negative number its process group.
fn kill(pid: i32) {
    // SAFETY: the number of a child that was not waited for yet, so nobody else's.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// Ends what is left of a command's process group after a moment of grace.
fn end_group(group: i32) {
    for _ in 0..20 {
        // SAFETY: signal 0 only asks; the group is the command's own.
        if unsafe { libc::kill(-group, 0) } < 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    eprintln!("note: process group {group} outlived its command; ending it");
    // SAFETY: the group still has members, so its number is not anybody else's.
    unsafe { libc::kill(-group, libc::SIGKILL) };
}

/// A name nobody else has, in the directory for temporary files.
pub(crate) fn scratch(what: &str) -> PathBuf {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    std::env::temp_dir().join(format!(
        "stackline-peers-{}-{what}-{number}",
        std::process::id()
    ))
}

/// Waits until a port of this host is listened to (TCP) or bound (UDP).
pub(crate) fn until_bound(port: u16, udp: bool) -> Result<(), String> {
    let files = if udp {
        ["/proc/net/udp", "/proc/net/udp6"]
    } else {
        ["/proc/net/tcp", "/proc/net/tcp6"]
    };
    let state = if udp { "07" } else { "0A" };
    let place = format!(":{port:04X}");
    let bound = |line: &str| {
        let mut words = line.split_ascii_whitespace().skip(1);
        words.next().is_some_and(|local| local.ends_with(&place)) && words.nth(1) == Some(state)
    };
    for _ in 0..400 {
        if files.iter().any(|file| {
            fs::read_to_string(file)
                .unwrap_or_default()
                .lines()
                .any(bound)
        }) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Err(format!("nothing listened to port {port} within 2 s"))
}

/// A port nobody uses now.
pub(crate) fn free_port() -> Result<u16, String> {
    let port =
        std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    port.map(|address| address.port())
        .map_err(|error| error.to_string())
}
