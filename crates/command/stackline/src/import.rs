//! `stackline import`: logs of other programs become a run, or are added to one.

mod import_ending;
mod log_clocks;
mod server_logs;

use crate::exit::{Error, Exit, Result};
use crate::flags;
use crate::formats::{self, FROM, ImportContext, LOOKED_AT};
use crate::output;
use import_ending::ImportEnding;
use stackline_core::trace_index::{Index, TraceImport};
use stackline_exchange::capture::CaptureReadOptions;
use stackline_guard::files as guard_files;
use stackline_requests::{LeftOut, Secrets};
use stackline_runs::events::{ImportLog, Intake, IntakeResult, read_index, write_index};
use stackline_runs::{RunDirectory, StoredRun, runs_root};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What is later than the present by more is reported: clocks of other machines may be a little ahead.
const AHEAD: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads logs into a run.
pub(crate) fn import(flags: &flags::ImportFlags) -> Result {
    logs(flags)?;
    // Before there is a directory: from then on a signal ends the import and not the program.
    let ending = ImportEnding::listen()?;
    let started = SystemTime::now();
    let (run, made) = match &flags.into {
        Some(run) => (StoredRun::open_events(run)?.path, None),
        None => {
            let made =
                RunDirectory::create(&runs_root(), &name(flags), started, flags.sharing.access())?;
            (made.path().to_owned(), Some(made))
        }
    };
    let done = {
        let (flags, run, ending) = (flags.clone(), run.clone(), ending.clone());
        ending
            .clone()
            .carry_out(move || fill(&run, &flags, started, &ending))
    };
    let (index, taken, imports) = match (done, made) {
        (Ok(done), None) => done,
        (Ok(done), Some(made)) => {
            made.finish(&[], true, None)?;
            done
        }
        (Err(error), made) => {
            // A run that holds nothing is no run.
            if made.is_some() {
                let _ = fs::remove_dir_all(&run);
            }
            return Err(error);
        }
    };
    report(flags, &run, &index, &taken, &imports)?;
    Ok(Exit::Done)
}

/// A log on the command line.
struct ImportedLog<'f> {
    path: &'f Path,
    name: String,
    /// Which file it is, however it is called; nothing of stdin.
    file: Option<PathBuf>,
    host: Option<&'f str>,
    format: Option<&'static formats::Importer>,
}

fn logs(flags: &flags::ImportFlags) -> Result<Vec<ImportedLog<'_>>> {
    let format = match &flags.form {
        None => None,
        Some(name) => {
            let names: Vec<&str> = FROM.iter().map(|format| format.name).collect();
            let unknown = || {
                Error::input(format!("there is no form {name}"))
                    .hint(format!("there are {}", names.join(", ")))
            };
            Some(
                FROM.iter()
                    .find(|format| format.name == name)
                    .ok_or_else(unknown)?,
            )
        }
    };
    let mut hosts: BTreeMap<&str, &str> = BTreeMap::new();
    for host in &flags.host {
        let parts = host
            .split_once('=')
            .filter(|(name, log)| !name.is_empty() && !log.is_empty());
        let (name, log) = parts.ok_or_else(|| {
            Error::input(format!("--host {host} names no log")).hint("write --host NAME=LOG")
        })?;
        if !flags.logs.iter().any(|given| given.as_os_str() == log) {
            return Err(Error::input(format!(
                "--host {host}: {log} is not one of the logs to import"
            ))
            .hint("write the log's path as it stands on the command line"));
        }
        hosts.insert(log, name);
    }
    let given = flags.logs.iter().map(|path| {
        let name = path.display().to_string();
        // What cannot be found, as a pipe of a shell, is reported when it is opened.
        let file = (path.as_os_str() != "-")
            .then(|| fs::canonicalize(path).unwrap_or_else(|_| path.clone()));
        ImportedLog {
            path,
            host: hosts.get(&name[..]).copied(),
            name,
            file,
            format,
        }
    });
    let given: Vec<ImportedLog<'_>> = given.collect();
    for (index, log) in given.iter().enumerate() {
        if let Some(other) = given[..index].iter().find(|other| other.file == log.file) {
            let message = match other.name == log.name {
                true => format!("{} is given twice", log.name),
                false => format!("{} and {} are one file", other.name, log.name),
            };
            return Err(Error::input(message)
                .hint("events of a log that is given twice would count twice; give it once"));
        }
    }
    Ok(given)
}

/// The name of the run: the one that is given, or after its first log.
fn name(flags: &flags::ImportFlags) -> String {
    let stem = || {
        flags
            .logs
            .first()
            .and_then(|log| log.file_stem())
            .filter(|stem| *stem != "-")
    };
    flags
        .name
        .clone()
        .or_else(|| stem().map(|stem| stem.to_string_lossy().into_owned()))
        .unwrap_or_else(|| "import".into())
}

fn fill(
    run: &Path,
    flags: &flags::ImportFlags,
    started: SystemTime,
    ending: &ImportEnding,
) -> Result<(Index, IntakeResult, Vec<TraceImport>)> {
    // From here until the index is written nobody else adds to this run.
    let logs = logs(flags)?;
    let mut intake = Intake::until(run, &ending.stop())?;
    let mut index = read_index(run)?.unwrap_or_default();
    let present = started.duration_since(UNIX_EPOCH).unwrap_or_default() + AHEAD;
    let (mut imports, mut shared) = (
        Vec::new(),
        ImportContext {
            contents: flags.keep_contents,
            ..ImportContext::default()
        },
    );
    for (place, log) in logs.iter().enumerate() {
        shared.place = place;
        let (before, refused) = (intake.hosts().clone(), intake.refused().clone());
        let mut import = read(log, present, &index, (&mut intake, &mut shared))?;
        for (cause, count) in intake.refused() {
            let count = count - refused.get(cause).unwrap_or(&0);
            if count > 0 {
                import.events = import.events.saturating_sub(count);
                *import.refused.entry((*cause).to_owned()).or_default() += count;
            }
        }
        let came = intake
            .hosts()
            .iter()
            .map(|(host, count)| (host.clone(), count - before.get(host).unwrap_or(&0)));
        import.hosts = came.filter(|(_, count)| *count > 0).collect();
        imports.push(import);
    }
    let secrets = flags.keys.as_deref().map(secrets).transpose()?;
    let options = CaptureReadOptions {
        contents: flags.keep_contents,
        asked: !flags.log.is_empty(),
        secrets,
        ..CaptureReadOptions::default()
    };
    let captured = formats::read_captures(
        shared.captures,
        &mut intake,
        &mut imports,
        &flags.clock,
        options,
    )?;
    if imports.iter().all(|import| import.events == 0) {
        return Err(without_events(&logs));
    }
    server_logs::join(flags, captured.as_ref(), &mut intake, &mut imports)?;
    // Hosts of measured runs have been compared already.
    let is_measured = !index.runs.is_empty() || !index.flows.is_empty();
    if let Some(captured) = &captured {
        captured.record_in(&mut index, &flags.clock);
        captured.report();
    }
    log_clocks::set_given_clocks(&flags.clock, &mut index, intake.hosts())?;
    let taken = intake.finish_if(|| ending.keeps())?;
    for (host, settled) in &taken.settled {
        settled.record_in(index.hosts.entry(host.clone()).or_default());
    }
    for (host, count) in &taken.hosts {
        index.hosts.entry(host.clone()).or_default().recorded += count;
    }
    if index.reference.is_empty() {
        index.reference = taken.hosts.keys().next().cloned().unwrap_or_default();
    }
    for (bound, count) in imports.iter().flat_map(|import| &import.left_out) {
        *index.left_out.entry(bound.clone()).or_default() += count;
    }
    index.imports.extend(imports.iter().cloned());
    if flags.keep_contents {
        log_clocks::note(
            index.hosts.entry(index.reference.clone()).or_default(),
            stackline_requests::contents::OF_LOGS.to_owned(),
        );
    }
    if !is_measured {
        log_clocks::correct_clocks(run, &mut index)?;
    }
    write_index(run, &index)?;
    Ok((index, taken, imports))
}

const FORMS: &str = "docs/EVENTS.md has the forms that are read, `--as` chooses one";

/// The largest file of secrets that is read, bytes.
const LARGEST_SECRETS: u64 = 256 << 20;

/// Secrets of TLS sessions from a file as programs write it (`SSLKEYLOGFILE`).
fn secrets(path: &Path) -> Result<Secrets> {
    let text = guard_files::read_text(path, LARGEST_SECRETS)
        .map_err(|error| Error::input(format!("{} cannot be read: {error}", path.display())))?;
    let secrets = Secrets::default();
    if secrets.learn(&text) == 0 {
        return Err(
            Error::input(format!("{} has no secrets of TLS sessions", path.display()))
                .hint("programs write such a file where the variable SSLKEYLOGFILE names one"),
        );
    }
    Ok(secrets)
}

/// That there was no event in any of the logs; a form that is known and not read is named.
fn without_events(logs: &[ImportedLog<'_>]) -> Error {
    let names: Vec<&str> = logs.iter().map(|log| &log.name[..]).collect();
    let known = logs.iter().find_map(|log| {
        let mut first = Vec::new();
        let file = log
            .file
            .as_ref()
            .and_then(|file| guard_files::open(file).ok())?;
        file.take(LOOKED_AT as u64).read_to_end(&mut first).ok()?;
        formats::find_unsupported(&first)
    });
    let hint = known.unwrap_or(FORMS);
    Error::input(format!("there is no event in {}", names.join(", "))).hint(hint)
}

fn read(
    log: &ImportedLog<'_>,
    present: Duration,
    index: &Index,
    (intake, shared): (&mut Intake, &mut ImportContext),
) -> Result<TraceImport> {
    let unread = |cause: io::Error| {
        Error::input(format!("{} cannot be read: {cause}", log.name))
            .hint("check its name and permissions")
    };
    let stdin = log.path.as_os_str() == "-";
    let mut file = guard_files::open(log.path).map_err(unread)?;
    let path = log
        .file
        .as_ref()
        .map_or_else(String::new, |file| file.display().to_string());
    if !stdin {
        let length = fs::metadata(log.path).map_err(unread)?.len();
        let again = index
            .imports
            .iter()
            .any(|import| import.path == path && import.bytes == length);
        if again {
            return Err(Error::input(format!("{} is in this run already", log.name))
                .hint("events of a log that is imported twice would count twice; import it into a run of its own"));
        }
    }
    // Captures are read twice, where that goes.
    shared.file = None;
    if !stdin && file.metadata().is_ok_and(|about| about.is_file()) {
        shared.file = guard_files::open(log.path).ok();
    }
    let mut first = Vec::new();
    file.by_ref()
        .take(LOOKED_AT as u64)
        .read_to_end(&mut first)
        .map_err(unread)?;
    let found = FROM
        .iter()
        .find(|format| (format.recognises)(&log.name, &first));
    let unknown = || Error::input(format!("{} is in no known form", log.name)).hint(FORMS);
    let format = log.format.or(found).ok_or_else(unknown)?;
    let mut bytes = Cursor::new(first).chain(file);
    let present_ns = u64::try_from(present.as_nanos()).unwrap_or(u64::MAX);
    let import = (format.import)(
        ImportLog {
            bytes: &mut bytes,
            name: &log.name,
            host: log.host,
            present_ns,
        },
        intake,
        shared,
    )?;
    Ok(TraceImport { path, ..import })
}

fn report(
    flags: &flags::ImportFlags,
    run: &PathBuf,
    index: &Index,
    taken: &IntakeResult,
    imports: &[TraceImport],
) -> Result<()> {
    for note in imports.iter().flat_map(|import| &import.notes) {
        output::say(&format_args!("warning: {note}"));
    }
    if taken.refused > 0 {
        output::say(&format_args!(
            "warning: {} events name one host more than a run has room for",
            taken.refused
        ));
    }
    for host in taken.hosts.keys() {
        let from: Vec<&str> = imports[..flags.logs.len()]
            .iter()
            .filter(|import| import.hosts.contains_key(host))
            .map(|import| &import.source[..])
            .collect();
        if from.len() > 1 {
            let from = from.join(", ");
            output::say(&format_args!(
                "note: {from} have events of {host}, which is taken for one host; `--host OTHER=LOG` makes it two"
            ));
        }
    }
    log_clocks::report(index);
    let mut left_out = LeftOut::default();
    imports
        .iter()
        .for_each(|import| left_out.merge(&LeftOut::of_names(&import.left_out)));
    left_out
        .lines()
        .iter()
        .for_each(|line| output::say(&format_args!("note: {line}")));
    if flags.json {
        let hosts: BTreeMap<_, _> = taken
            .hosts
            .keys()
            .map(|host| (host, index.hosts[host].recorded))
            .collect();
        let refused = taken.refused;
        return output::json(
            &serde_json::json!({
                "run": run, "imports": imports, "hosts": hosts, "refused_hosts_events": refused,
                "reference": index.reference, "clocks": log_clocks::json(index), "left_out": left_out.names(),
            }),
            false,
        );
    }
    let mut text = format!("{}\n", run.display());
    for import in imports {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "  {} ({}): {} events",
            import.source, import.form, import.events
        );
        for (cause, count) in &import.refused {
            let _ = write!(text, ", {count} {cause}");
        }
        text.push('\n');
    }
    output::print(&text)
}
