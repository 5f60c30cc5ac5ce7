//! The process that starts a program and stops it at its calls, the one that becomes the program, and the one that measures what that
//! costs. The command line runs each as a process of its own.

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use stackline_core::error::{Error, Result};
use stackline_monitor::observe::observation_cost::PingPong;
use stackline_monitor::observe::ptrace::record::{PtraceChange, PtraceRecord, PtraceRecordWriter};
use stackline_monitor::observe::ptrace::{tracee_setup, tracer};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

/// Becomes the program once somebody traces this process; returns only where it cannot, with why and the exit code that shells give that.
#[must_use]
pub fn become_traced(command: &[OsString]) -> (String, u8) {
    let error = tracee_setup::become_program(command);
    let name = command
        .first()
        .map(|name| name.to_string_lossy())
        .unwrap_or_default();
    let code = match error.kind() {
        ErrorKind::NotFound => 127,
        _ => 126,
    };
    (format!("{name} cannot be started: {error}"), code)
}

/// Starts a program by `becoming`, a command of this program that ends in [`become_traced`], stops it at its calls and reports these `to`
/// a pipe, with what is sent and received if `contents` are wanted; its exit code. Where programs may not be stopped it becomes the program as it is.
///
/// # Errors
/// When the pipe cannot be written, or the program not be started.
pub fn stop_at_calls(
    becoming: &mut Command,
    command: &[OsString],
    to: Option<&Path>,
    contents: bool,
) -> Result<i32> {
    // The program that is stopped ends with this process (PTRACE_O_EXITKILL), and this one with the trace.
    let _ = set_pdeathsig(Signal::SIGKILL);
    let mut writer = to
        .map(|to| PtraceRecordWriter::open(to, contents))
        .transpose()
        .map_err(|error| Error::environment(format!("cannot trace the program: {error}")))?;
    let ended = tracer::trace_command(becoming, contents, |record| {
        writer.iter_mut().for_each(|writer| writer.write(&record))
    });
    ended.or_else(|error| {
        let why = format!("this machine does not allow ptrace: {error}");
        let absent = PtraceRecord {
            at_ns: stackline_events::clock::now_ns(),
            thread: 0,
            what: PtraceChange::Absent { why },
        };
        writer.iter_mut().for_each(|writer| writer.write(&absent));
        untraced(command)
    })
}

/// The program as it is, in this process's place.
fn untraced(command: &[OsString]) -> Result<i32> {
    use std::os::unix::process::CommandExt as _;
    let Some((name, arguments)) = command.split_first() else {
        return Ok(0);
    };
    let error = Command::new(name).args(arguments).exec();
    Err(Error::input(format!(
        "{} cannot be started: {error}",
        name.to_string_lossy()
    )))
}

/// What a message and its answer take this process, ns of each batch.
///
/// # Errors
/// When it cannot be measured.
pub fn measure_ping_pong() -> Result<Vec<f64>> {
    PingPong::start()
        .and_then(PingPong::elapsed)
        .map_err(|error| Error::environment(format!("cannot measure: {error}")))
}
