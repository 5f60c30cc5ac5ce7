//! `stackline trace`: traces unmodified programs, on hosts of an emulated network or on this machine. Their requests
//! become a run, and what limits them is printed.

use crate::command_line_error;
use crate::exit::{Error, Exit, Result};
use crate::flags;
use crate::interrupt::listen_for_ctrl_c;
use crate::net::{is_host, link_of_text, open_host_network};
use crate::output;
use stackline_report::trace_note_lines;
use stackline_runs::events::disk_sample::DISK_BYTES;
use stackline_trace::calls;
use stackline_trace::joined_processes::{JoinedNames, JoinedProcesses};
use stackline_trace::program_trace::{TraceOptions, TraceOutcome, trace_once};
use stackline_trace::programs::{HERE, TracedProgram, parse_programs};
use stackline_trace::scope::TraceScope;
use stackline_trace::setting::TraceSetting;
use stackline_whatif::traced_answers::diagnose_traced;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Traces programs, stores a run and prints what limits their requests.
pub(crate) fn trace(flags: &flags::TraceFlags) -> Result {
    let joins = joined_names(flags);
    let programs = programs(flags, &joins)?;
    let failure = programs
        .iter()
        .find_map(|program| program.can_be_started().err());
    if let Some(failure) = failure {
        Exit::from_error(failure.error, flags.json);
        return Ok(Exit::Program(failure.code));
    }
    let joined = match joins.is_empty() {
        true => None,
        false => Some(JoinedProcesses::find(&joins)?),
    };
    let mut setting = match &joined {
        Some(joined) => TraceSetting::joined(&joined.pids(), flags.decipher)?,
        None => setting(flags, &programs)?,
    };
    for change in &flags.tries {
        if let Some(emulation) = setting.emulation() {
            link_of_text(&emulation.describe()?.network, change)?;
        }
    }
    let options = TraceOptions {
        scope: flags.see,
        joined,
        duration: flags.duration,
        most_disk: flags.most_disk,
        keep_contents: flags.keep_contents,
        access: flags.sharing.access(),
        programs_to_stderr: flags.json,
    };
    let stop = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&stop])?;
    let first = trace_once(&options, &mut setting, programs.clone(), &stop, &flags.name)?;
    report(flags, &first)?;
    for change in &flags.tries {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let mut again = |setting: &mut TraceSetting| {
            let name = format!("{}-try", flags.name);
            trace_once(&options, setting, programs.clone(), &stop, &name)
        };
        try_again(&mut setting, change, &first, &mut again)?;
    }
    // Programs that were already running go on: an interruption is the normal end of their trace.
    Ok(if stop.load(Ordering::Relaxed) && joins.is_empty() {
        Exit::Interrupted
    } else {
        code(first.ended)
    })
}

/// The running processes to attach to.
fn joined_names(flags: &flags::TraceFlags) -> JoinedNames {
    JoinedNames {
        pids: flags.pid.clone(),
        containers: flags.container.clone(),
        units: flags.unit.clone(),
        groups: flags.cgroup.clone(),
    }
}

/// The programs to start; empty when running processes are attached to.
fn programs(flags: &flags::TraceFlags, joins: &JoinedNames) -> Result<Vec<TracedProgram>> {
    if let Some(word) = flags.words.first().and_then(|word| word.to_str())
        && word.starts_with('-')
        && word != "--"
    {
        return Err(command_line_error::unknown_flag(word, "trace"));
    }
    let programs = match (flags.words.is_empty(), joins.is_empty()) {
        (true, false) => Vec::new(),
        (false, true) => parse_programs(&flags.words)?,
        (true, true) => {
            return Err(Error::input("no program to trace was given")
                .hint("start a program with `stackline trace -- COMMAND`, or attach to running ones with --pid, --container, --unit or --cgroup"));
        }
        (false, false) => {
            return Err(Error::input(
                "a command cannot be combined with --pid, --container, --unit or --cgroup",
            )
            .hint("use one or the other"));
        }
    };
    if flags.duration.is_some() && !programs.is_empty() {
        return Err(Error::input("--for applies only to programs that are already running")
            .hint("to stop a program that the trace starts, use `timeout`: `stackline trace -- timeout 10 COMMAND`"));
    }
    if let Some(change) = flags.tries.first().filter(|_| flags.on.is_none()) {
        return Err(
            Error::input(format!("cannot try `{change}` without a network"))
                .hint("--try changes a link of the network given by --on"),
        );
    }
    Ok(programs)
}

/// Where the programs run: on a network, or on this machine.
fn setting(flags: &flags::TraceFlags, programs: &[TracedProgram]) -> Result<TraceSetting> {
    let Some(on) = &flags.on else {
        return TraceSetting::here(programs, flags.decipher);
    };
    let word = on.to_string_lossy().into_owned();
    let text = flags::SpecTextFlags {
        spec: Some(on.clone()),
        ..flags::SpecTextFlags::default()
    };
    let first = programs.first().map_or("", |program| program.host.as_str());
    if first == HERE {
        return Err(Error::input("a program on a network needs a host to run on").hint(format!(
            "use `stackline trace --on {word} HOST -- COMMAND`; `stackline net show {word}` lists the hosts"
        )));
    }
    let (emulation, network) = open_host_network(&text, flags.network.as_deref(), first)?;
    for program in programs {
        is_host(&network, &program.host)?;
    }
    TraceSetting::on_network(word, emulation, flags.decipher)
}

/// Runs the programs again with one link of the network changed, restores the link, and prints the comparison.
fn try_again(
    setting: &mut TraceSetting,
    change: &str,
    first: &TraceOutcome,
    again: &mut dyn FnMut(&mut TraceSetting) -> Result<TraceOutcome>,
) -> Result<()> {
    let Some(emulation) = setting.emulation() else {
        return Ok(());
    };
    let network = emulation.describe()?.network;
    let (link, new) = link_of_text(&network, change)?;
    emulation.change(link, new)?;
    let second = again(setting);
    if let Some(emulation) = setting.emulation() {
        emulation.change(link, network.links[link].clone())?;
    }
    let second = second?;
    output::say(&format_args!(
        "with {change}: {}",
        second.compared_with(first)
    ));
    output::say(&format_args!("kept in {}", second.path.display()));
    Ok(())
}

/// Traces one program on a host of a network (`net exec --trace`).
pub(crate) fn trace_one_program(
    text: &flags::SpecTextFlags,
    network: Option<&str>,
    host: &str,
    command: &[OsString],
) -> Result {
    let words = [&[host.into(), "--".into()], command].concat();
    trace(&flags::TraceFlags {
        on: text.spec.clone(),
        network: network.map(ToOwned::to_owned),
        pid: Vec::new(),
        container: Vec::new(),
        unit: Vec::new(),
        cgroup: Vec::new(),
        duration: None,
        most_disk: DISK_BYTES,
        see: TraceScope::Calls,
        keep_contents: false,
        decipher: false,
        name: "trace".into(),
        sharing: flags::Sharing::default(),
        json: false,
        notes: flags::NotesFlag::All,
        tries: Vec::new(),
        words,
    })
}

/// `stackline ptrace`: starts a program and stops it at its system calls; or becomes the program that is stopped
/// (`--traced`).
pub(crate) fn ptrace(flags: &flags::Ptrace) -> Result {
    if flags.ping_pong {
        for ns in calls::measure_ping_pong()? {
            output::print(&format!("{ns}\n"))?;
        }
        return Ok(Exit::Done);
    }
    if flags.traced {
        let (why, code) = calls::become_traced(&flags.command);
        output::say(&format_args!("error: {why}"));
        return Ok(Exit::Program(code));
    }
    let own = std::env::current_exe().map_err(|error| {
        Error::environment(format!("cannot find the path of this program: {error}"))
    })?;
    let mut becoming = Command::new(own);
    becoming
        .args(["ptrace", "--traced", "--"])
        .args(&flags.command);
    let code = calls::stop_at_calls(
        &mut becoming,
        &flags.command,
        flags.to.as_deref(),
        flags.contents,
    )?;
    Ok(Exit::Program(u8::try_from(code).unwrap_or(u8::MAX)))
}

/// The exit code of the last program.
fn code(ended: Option<ExitStatus>) -> Exit {
    let code = ended.and_then(|ended| {
        ended
            .code()
            .or_else(|| ended.signal().map(|signal| 128 + signal))
    });
    match code {
        Some(0) | None => Exit::Done,
        Some(code) => Exit::Program(u8::try_from(code).unwrap_or(u8::MAX)),
    }
}

/// Prints what was traced, and what limits it.
fn report(flags: &flags::TraceFlags, outcome: &TraceOutcome) -> Result<()> {
    let path = &outcome.path;
    outcome.lines().iter().for_each(output::say);
    let answers = diagnose_traced(path)?;
    let notes = answers.note.iter().cloned().chain(outcome.all_notes());
    let lines = trace_note_lines(&notes.collect::<Vec<_>>(), flags.notes.most());
    lines.iter().for_each(output::say);
    if flags.json {
        let mut json =
            stackline_report::findings_json(&path.display().to_string(), true, &answers.findings);
        json["left_out"] = serde_json::json!(outcome.unknown.left_out.names());
        json["requests"] = serde_json::json!(answers.requests);
        json["transfers"] = serde_json::json!(answers.transfers);
        return output::json(&json, false);
    }
    // Standard output has what the programs print.
    answers.lines(path).iter().for_each(output::say);
    Ok(())
}
