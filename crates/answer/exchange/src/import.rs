//! Imports logs of other programs into a new or an existing run.

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

/// Events later than the present by more than this are reported; less is allowed, since clocks of other machines may be a little ahead.
const AHEAD: Duration = Duration::from_secs(24 * 60 * 60);

/// What to import, and how.
#[derive(Clone, Debug, Default)]
pub struct ImportRequest {
    /// Paths of logs and captures; `-` is standard input.
    pub logs: Vec<PathBuf>,
    /// Names for the hosts of logs, `NAME=LOG`, or for hosts by their addresses, `NAME=ADDRESS,ADDRESS`.
    pub hosts: Vec<String>,
    /// How far a host's clock is ahead, ns, by the host's name.
    pub clocks: Vec<(String, i64)>,
    /// The format of all logs; `None` to recognise it.
    pub form: Option<String>,
    /// Access logs of servers whose requests are in the captures, `FILE` or `HOST=FILE`.
    pub server_logs: Vec<PathBuf>,
    /// A file with secrets of TLS sessions.
    pub keys: Option<PathBuf>,
    /// Whether everything that logs say of requests is kept, without redaction.
    pub keep_contents: bool,
}

/// The result of an import.
#[derive(Debug)]
pub struct ImportOutcome {
    /// The run's index after the import.
    pub index: Index,
    /// How many events were taken and refused.
    pub taken: IntakeResult,
    /// The result for each log.
    pub imports: Vec<TraceImport>,
    /// What was found in captures and logs, one line each.
    pub found: Vec<String>,
    /// How many of `imports` are logs, in the order given; the rest are access logs of servers.
    logs: usize,
}

/// A log on the command line.
struct ImportedLog<'f> {
    path: &'f Path,
    name: String,
    /// The canonical path, which identifies the file whatever name was given; `None` for standard input.
    file: Option<PathBuf>,
    host: Option<&'f str>,
    format: Option<&'static Importer>,
}

impl ImportRequest {
    /// Checks the request before anything is read.
    ///
    /// # Errors
    /// If a format or a log is unknown, or a log is given twice.
    pub fn check(&self) -> Result<()> {
        self.logs().map(drop)
    }

    /// The name for a new run: the first log's file name without its extension.
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

    /// The names of hosts, by the path of their log.
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

    /// The names of hosts by their addresses.
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
            // A path that cannot be resolved, such as a shell's pipe, is reported when it is opened.
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

/// Reads logs into the run in the directory `run`.
///
/// # Errors
/// If a log cannot be read, no log has an event, or the import is aborted; the run is then unchanged.
pub fn import_logs(
    run: &Path,
    request: &ImportRequest,
    started: SystemTime,
    ending: &ImportEnding,
) -> Result<ImportOutcome> {
    let logs = request.logs()?;
    // From here until the index is written, nobody else adds to this run.
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
    // A run with measurements already has its clocks compared.
    let is_measured = !index.runs.is_empty() || !index.flows.is_empty();
    if let Some(captured) = &captured {
        captured.record_in(&mut index, &request.clocks);
    }
    logged.record_in(&mut index);
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

/// What was found in captures and logs, one line each.
fn found_in(captured: Option<&CaptureImport>, logged: &BTreeMap<&'static str, u64>) -> Vec<String> {
    let captured = captured.map_or_else(Vec::new, CaptureImport::notes);
    captured
        .into_iter()
        .chain(counted_requests(logged))
        .collect()
}

/// The first flow number that neither the run nor the captures use, below the range reserved for DNS lookups.
fn first_free_flow(index: &Index, captured: Option<&CaptureImport>) -> u32 {
    let captured = captured.map_or(&[][..], CaptureImport::flows);
    let flows = index.flows.iter().chain(captured).map(|flow| flow.id);
    let last = flows.filter(|flow| *flow < FIRST_LOOKUP).max();
    last.map_or(0, |last| last + 1)
}

/// Adds the results of an import to the run's index.
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

/// Parses addresses separated by commas; empty if the text is not such a list.
fn addresses(list: &str) -> Vec<IpAddr> {
    let each = list
        .split(',')
        .map(|one| one.parse().map(|one: IpAddr| one.to_canonical()));
    each.collect::<Result<_, _>>().unwrap_or_default()
}

/// The largest file of secrets that is read, bytes.
const LARGEST_SECRETS: u64 = 256 << 20;

/// Reads TLS session secrets from a file as programs write it (`SSLKEYLOGFILE`).
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

/// The error that no log had an event; a known format that is not supported is named.
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
    // Notes of the reading may say why.
    let noted = imports.iter().find_map(|import| import.notes.first());
    let cause = noted
        .filter(|_| known.is_none())
        .map_or_else(String::new, |noted| format!(": {noted}"));
    let message = format!("no events in {}{cause}", names.join(", "));
    Error::input(message).hint(known.unwrap_or(FORMS))
}

/// Reads one log, and counts which of its events were taken.
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

/// Opens a log, chooses its format and reads it.
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
    // Captures are read twice, which needs a regular file.
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
    /// Notes and warnings for the user, one line each.
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
        // Notes on hosts: clock corrections, doubts, and others.
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

    /// The result as JSON.
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

    /// The result of each log, one line each.
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
