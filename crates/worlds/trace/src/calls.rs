//! Three entry points that the command line runs as processes of their own: [`stop_at_calls`] starts a program and stops it at its
//! system calls (ptrace), [`become_traced`] becomes that program, and [`measure_ping_pong`] measures what the stops cost.

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

/// Waits until another process traces this one, then becomes the program. It returns only on failure: the reason, and the exit code
/// that shells use for it.
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

/// Starts a program through `becoming` (a command of this program that ends in [`become_traced`]), stops it at its calls and writes
/// these to the pipe `to`, with the bytes sent and received if `contents`. Returns its exit code. If ptrace is not allowed, it
/// becomes the program without tracing.
///
/// # Errors
/// When the pipe cannot be written, or the program not be started.
pub fn stop_at_calls(
    becoming: &mut Command,
    command: &[OsString],
    to: Option<&Path>,
    contents: bool,
) -> Result<i32> {
    // If the trace is killed, this process is killed too, and the stopped program ends with it (PTRACE_O_EXITKILL). An error is
    // ignored: the program is traced anyway.
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

/// Becomes the program without tracing it.
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

/// Measures what a message and its answer cost in this process, ns for each batch.
///
/// # Errors
/// When it cannot be measured.
pub fn measure_ping_pong() -> Result<Vec<f64>> {
    PingPong::start()
        .and_then(PingPong::elapsed)
        .map_err(|error| Error::environment(format!("cannot measure: {error}")))
}
