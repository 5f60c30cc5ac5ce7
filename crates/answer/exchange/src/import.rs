//! Logs of other programs become a run, or are added to one.

mod import_ending;
mod log_clocks;
mod server_logs;

pub use import_ending::ImportEnding;

use crate::capture::{CaptureReadOptions, FIRST_LOOKUP};
use crate::formats::{
    CaptureImport, FROM, ImportContext, Importer, LOOKED_AT, find_unsupported, read_captures,
};
use crate::qlog::requests::find_requests;
use stackline_core::error::{Error, Result};
use stackline_core::trace_index::{Index, TraceImport};
use stackline_guard::files as guard_files;
use stackline_requests::collector::counted_requests;
use stackline_requests::exchange_events::HostsElsewhere;
use stackline_requests::{LeftOut, Secrets, contents};
use stackline_runs::events::{ImportLog, Intake, IntakeResult, read_index, write_index};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io::{self, Cursor, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What is later than the present by more is reported: clocks of other machines may be a little ahead.
const AHEAD: Duration = Duration::from_secs(24 * 60 * 60);

/// What is imported, and how.
#[derive(Clone, Debug, Default)]
pub struct ImportRequest {
    /// Logs and captures; `-` is standard input.
    pub logs: Vec<PathBuf>,
    /// Names for the hosts of a log, `NAME=LOG`, or for a host by its addresses, `NAME=ADDRESS,ADDRESS`.
    pub hosts: Vec<String>,
    /// How far a host's clock is ahead, ns.
    pub clocks: Vec<(String, i64)>,
    /// The form of all logs, where it is not to be recognised.
    pub form: Option<String>,
    /// Logs of servers whose requests are in the captures, `FILE` or `HOST=FILE`.
    pub server_logs: Vec<PathBuf>,
    /// Secrets of TLS sessions.
    pub keys: Option<PathBuf>,
    /// All that logs say of requests is kept.
    pub keep_contents: bool,
}

/// What an import came to.
#[derive(Debug)]
pub struct ImportOutcome {
    /// What is known of the run's events by now.
    pub index: Index,
    /// What became of the events.
    pub taken: IntakeResult,
    /// What became of each log.
    pub imports: Vec<TraceImport>,
    /// What was found in captures, a line each.
    pub found: Vec<String>,
    /// How many of the imports are of logs, in the order in which they were given; those behind are logs of servers.
    logs: usize,
}

/// A log on the command line.
struct ImportedLog<'f> {
    path: &'f Path,
    name: String,
    /// Which file it is, however it is called; nothing of stdin.
    file: Option<PathBuf>,
    host: Option<&'f str>,
    format: Option<&'static Importer>,
}

impl ImportRequest {
    /// Refuses what cannot be imported as it is asked for, before anything is read.
    ///
    /// # Errors
    /// When a form or a log is not known, or a log is given twice.
    pub fn check(&self) -> Result<()> {
        self.logs().map(drop)
    }

    /// The name of a run of it: after its first log.
    #[must_use]
    pub fn run_name(&self) -> String {
        let stem = self.logs.first().and_then(|log| log.file_stem());
        stem.filter(|stem| *stem != "-").map_or_else(
            || "import".into(),
            |stem| stem.to_string_lossy().into_owned(),
        )
    }

    fn importer(&self) -> Result<Option<&'static Importer>> {
        let Some(name) = &self.form else {
            return Ok(None);
        };
        let found = FROM.iter().find(|format| format.name == name);
        found.map(Some).ok_or_else(|| {
            let names: Vec<&str> = FROM.iter().map(|format| format.name).collect();
            Error::input(format!("unknown format {name}"))
                .hint(format!("known formats: {}", names.join(", ")))
        })
    }

    /// The names that hosts of logs are given, by log.
    fn host_names(&self) -> Result<BTreeMap<&str, &str>> {
        let mut hosts: BTreeMap<&str, &str> = BTreeMap::new();
        for host in &self.hosts {
            let parts = host
                .split_once('=')
                .filter(|(name, log)| !name.is_empty() && !log.is_empty());
            let (name, log) = parts.ok_or_else(|| {
                Error::input(format!("--host {host} does not name a log"))
                    .hint("use --host NAME=LOG or NAME=ADDRESS,ADDRESS")
            })?;
            if !addresses(log).is_empty() {
                continue;
            }
            if !self.logs.iter().any(|given| given.as_os_str() == log) {
                return Err(Error::input(format!(
                    "--host {host}: {log} is not one of the logs to import"
                ))
                .hint("use the log's path exactly as on the command line"));
            }
            hosts.insert(log, name);
        }
        Ok(hosts)
    }

    /// The names that hosts are given by their addresses.
    fn hosts_elsewhere(&self) -> HostsElsewhere {
        let named = self.hosts.iter().filter_map(|host| host.split_once('='));
        let each = named.flat_map(|(name, list)| {
            let all = addresses(list).into_iter();
            all.map(move |address| (address, name.to_owned()))
        });
        each.collect()
    }

    fn logs(&self) -> Result<Vec<ImportedLog<'_>>> {
        let format = self.importer()?;
        let hosts = self.host_names()?;
        let given = self.logs.iter().map(|path| {
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
                    true => format!("{} is specified twice", log.name),
                    false => format!("{} and {} are the same file", other.name, log.name),
                };
                return Err(Error::input(message)
                    .hint("events would be counted twice; specify each log once"));
            }
        }
        Ok(given)
    }
}

/// Reads logs into a run.
///
/// # Errors
/// When a log cannot be read, none has an event, or the import is ended; then nothing of it is in the run.
pub fn import_logs(
    run: &Path,
    request: &ImportRequest,
    started: SystemTime,
    ending: &ImportEnding,
) -> Result<ImportOutcome> {
    let logs = request.logs()?;
    // From here until the index is written nobody else adds to this run.
    let mut intake = Intake::until(run, &ending.stop())?;
    let mut index = read_index(run)?.unwrap_or_default();
    let present = started.duration_since(UNIX_EPOCH).unwrap_or_default() + AHEAD;
    let mut context = ImportContext {
        contents: request.keep_contents,
        ..ImportContext::default()
    };
    let mut imports = Vec::new();
    for (place, log) in logs.iter().enumerate() {
        context.place = place;
        imports.push(read_log(log, present, &index, &mut intake, &mut context)?);
    }
    let options = CaptureReadOptions {
        contents: request.keep_contents,
        asked: !request.server_logs.is_empty(),
        secrets: request.keys.as_deref().map(secrets).transpose()?,
        elsewhere: request.hosts_elsewhere(),
        ..CaptureReadOptions::default()
    };
    let captured = read_captures(
        context.captures,
        &mut intake,
        &mut imports,
        &request.clocks,
        options,
    )?;
    let first_flow = first_free_flow(&index, captured.as_ref());
    let logged = find_requests(context.connections, first_flow, request.keep_contents);
    intake.push(&logged.table)?;
    if imports.iter().all(|import| import.events == 0) {
        return Err(without_events(&logs, &imports));
    }
    server_logs::join(request, captured.as_ref(), &mut intake, &mut imports)?;
    // Hosts of measured runs have been compared already.
    let is_measured = !index.runs.is_empty() || !index.flows.is_empty();
    if let Some(captured) = &captured {
        captured.record_in(&mut index, &request.clocks);
    }
    index.flows.extend(logged.flows);
    log_clocks::set_given_clocks(&request.clocks, &mut index, intake.hosts())?;
    let taken = intake.finish_if(|| ending.keeps())?;
    add_to_index(&mut index, &taken, &imports);
    if request.keep_contents {
        log_clocks::note(
            index.hosts.entry(index.reference.clone()).or_default(),
            contents::OF_LOGS.to_owned(),
        );
    }
    if !is_measured {
        log_clocks::correct_clocks(run, &mut index)?;
    }
    write_index(run, &index)?;
    Ok(ImportOutcome {
        index,
        taken,
        imports,
        found: found_in(captured.as_ref(), &logged.counts),
        logs: logs.len(),
    })
}

/// What was found in captures and logs, a line each.
fn found_in(captured: Option<&CaptureImport>, logged: &BTreeMap<&'static str, u64>) -> Vec<String> {
    let captured = captured.map_or_else(Vec::new, CaptureImport::notes);
    captured
        .into_iter()
        .chain(counted_requests(logged))
        .collect()
}

/// The first flow that neither the run nor the captures have, before those of questions after names.
fn first_free_flow(index: &Index, captured: Option<&CaptureImport>) -> u32 {
    let captured = captured.map_or(&[][..], CaptureImport::flows);
    let flows = index.flows.iter().chain(captured).map(|flow| flow.id);
    let last = flows.filter(|flow| *flow < FIRST_LOOKUP).max();
    last.map_or(0, |last| last + 1)
}

/// What came becomes known of the run.
fn add_to_index(index: &mut Index, taken: &IntakeResult, imports: &[TraceImport]) {
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
}

const FORMS: &str = "`--as` names the format; `stackline import --help` lists them";

/// Addresses with commas between them; none where it is not that.
fn addresses(list: &str) -> Vec<IpAddr> {
    let each = list
        .split(',')
        .map(|one| one.parse().map(|one: IpAddr| one.to_canonical()));
    each.collect::<Result<_, _>>().unwrap_or_default()
}

/// The largest file of secrets that is read, bytes.
const LARGEST_SECRETS: u64 = 256 << 20;

/// Secrets of TLS sessions from a file as programs write it (`SSLKEYLOGFILE`).
fn secrets(path: &Path) -> Result<Secrets> {
    let text = guard_files::read_text(path, LARGEST_SECRETS)
        .map_err(|error| Error::input(format!("cannot read {}: {error}", path.display())))?;
    let secrets = Secrets::default();
    if secrets.learn(&text) == 0 {
        return Err(Error::input(format!(
            "{} contains no TLS session secrets",
            path.display()
        ))
        .hint("set SSLKEYLOGFILE to the file's path before starting the program"));
    }
    Ok(secrets)
}

/// That there was no event in any of the logs; a form that is known and not read is named.
fn without_events(logs: &[ImportedLog<'_>], imports: &[TraceImport]) -> Error {
    let names: Vec<&str> = logs.iter().map(|log| &log.name[..]).collect();
    let known = logs.iter().find_map(|log| {
        let mut first = Vec::new();
        let file = log
            .file
            .as_ref()
            .and_then(|file| guard_files::open(file).ok())?;
        file.take(LOOKED_AT as u64).read_to_end(&mut first).ok()?;
        find_unsupported(&first)
    });
    // What was read of them says why, if anything was.
    let noted = imports.iter().find_map(|import| import.notes.first());
    let cause = noted
        .filter(|_| known.is_none())
        .map_or_else(String::new, |noted| format!(": {noted}"));
    let message = format!("no events in {}{cause}", names.join(", "));
    Error::input(message).hint(known.unwrap_or(FORMS))
}

/// Reads one log, and counts what of its events was taken.
fn read_log(
    log: &ImportedLog<'_>,
    present: Duration,
    index: &Index,
    intake: &mut Intake,
    context: &mut ImportContext,
) -> Result<TraceImport> {
    let (before, refused) = (intake.hosts().clone(), intake.refused().clone());
    let mut import = import_as_its_form(log, present, index, intake, context)?;
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
    Ok(import)
}

fn import_as_its_form(
    log: &ImportedLog<'_>,
    present: Duration,
    index: &Index,
    intake: &mut Intake,
    context: &mut ImportContext,
) -> Result<TraceImport> {
    let unread = |cause: io::Error| {
        Error::input(format!("cannot read {}: {cause}", log.name))
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
            return Err(
                Error::input(format!("this run already contains {}", log.name))
                    .hint("its events would be counted twice; import it into a separate run"),
            );
        }
    }
    // Captures are read twice, where that goes.
    context.file = None;
    if !stdin && file.metadata().is_ok_and(|about| about.is_file()) {
        context.file = guard_files::open(log.path).ok();
    }
    let mut first = Vec::new();
    file.by_ref()
        .take(LOOKED_AT as u64)
        .read_to_end(&mut first)
        .map_err(unread)?;
    let found = FROM
        .iter()
        .find(|format| (format.recognises)(&log.name, &first));
    let unknown = || Error::input(format!("{} has an unknown format", log.name)).hint(FORMS);
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
        context,
    )?;
    Ok(TraceImport { path, ..import })
}

impl ImportOutcome {
    /// What has to be known of it, a line each.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .found
            .iter()
            .map(|note| format!("note: {note}"))
            .collect();
        let notes = self.imports.iter().flat_map(|import| &import.notes);
        lines.extend(notes.map(|note| format!("warning: {note}")));
        if self.taken.refused > 0 {
            lines.push(format!(
                "warning: events dropped because the run already has the maximum number of hosts: {}",
                self.taken.refused
            ));
        }
        lines.extend(self.hosts_of_several_logs());
        // What was done to clocks, what is doubtful, and what else is to be known of hosts.
        let of_hosts = self.index.hosts.values().flat_map(|trace| &trace.notes);
        lines.extend(of_hosts.map(|sentence| format!("note: {sentence}")));
        let left_out = self.left_out().lines();
        lines.extend(left_out.iter().map(|line| format!("note: {line}")));
        lines
    }

    fn hosts_of_several_logs(&self) -> Vec<String> {
        let several = self.taken.hosts.keys().filter_map(|host| {
            let from: Vec<&str> = self.imports[..self.logs]
                .iter()
                .filter(|import| import.hosts.contains_key(host))
                .map(|import| &import.source[..])
                .collect();
            (from.len() > 1).then(|| {
                let from = from.join(", ");
                format!("note: events of {host} come from several logs ({from}) and are attributed to one host; use `--host OTHER=LOG` to separate them")
            })
        });
        several.collect()
    }

    fn left_out(&self) -> LeftOut {
        let mut left_out = LeftOut::default();
        self.imports
            .iter()
            .for_each(|import| left_out.merge(&LeftOut::of_names(&import.left_out)));
        left_out
    }

    /// All of it as JSON.
    #[must_use]
    pub fn json(&self, run: &Path) -> serde_json::Value {
        let hosts: BTreeMap<_, _> = self
            .taken
            .hosts
            .keys()
            .map(|host| (host, self.index.hosts[host].recorded))
            .collect();
        serde_json::json!({
            "run": run,
            "imports": self.imports,
            "hosts": hosts,
            "refused_hosts_events": self.taken.refused,
            "reference": self.index.reference,
            "clocks": log_clocks::json(&self.index),
            "left_out": self.left_out().names(),
        })
    }

    /// What became of each log.
    #[must_use]
    pub fn text(&self, run: &Path) -> String {
        let mut text = format!("{}\n", run.display());
        for import in &self.imports {
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
        text
    }
}
