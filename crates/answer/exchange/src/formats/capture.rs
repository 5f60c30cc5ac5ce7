//! Imports captures (pcapng, pcap). A first pass over each capture collects a survey; when all captures of an import were surveyed, they
//! are read together. Connections that the run's own events name are recognised by their addresses and ports.

use super::format::{ImportContext, Importer, report, unread};
use crate::capture::{
    CaptureEventReader, CapturePlan, CaptureReadOptions, CapturedRequest, FIRST_LOOKUP, Finished,
    StreamRegistry, Survey,
};
use stackline_core::error::{Error, Result};
use stackline_core::trace_index::{ClockCorrection, HostTrace, Index, RunFlow, TraceImport};
use stackline_events::EventTable;
use stackline_requests::Secrets;
use stackline_requests::collector::counted_requests;
use stackline_runs::events::{
    EventColumnSelection, ImportLog, Intake, event_files, read_batches, read_index,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek as _, Write as _};
use std::net::SocketAddr;
use std::path::Path;

/// The first bytes of a capture: a pcapng section header, or the magic number of pcap in either byte order and resolution.
const MAGIC: [[u8; 4]; 5] = [
    [0x0a, 0x0d, 0x0d, 0x0a],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
];

pub(crate) const FROM: Importer = Importer {
    name: "capture",
    recognises: |_, first| MAGIC.iter().any(|magic| first.starts_with(magic)),
    import,
};

/// A capture that was surveyed and is still to be read.
#[derive(Debug)]
pub struct SurveyedCapture {
    survey: Survey,
    /// The file from its beginning, for the second pass.
    file: File,
    /// How many bytes the survey read.
    bytes: u64,
    /// The index of the capture among the logs of the import.
    place: usize,
}

/// Surveys a capture; its events are read later, together with those of the others.
fn import(log: ImportLog<'_>, _: &mut Intake, shared: &mut ImportContext) -> Result<TraceImport> {
    let again = shared.file.take();
    // Input that cannot be read twice, such as a pipe, is copied to a temporary file.
    let mut copy = again
        .is_none()
        .then(stackline_guard::scratch::create_file)
        .transpose()
        .map_err(|cause| uncopied(&log, &cause))?;
    let (mut count, mut failed) = (0, None);
    let ImportLog {
        bytes,
        name,
        host,
        present_ns,
    } = log;
    let seen = CountingReader {
        from: bytes,
        copy: copy.as_mut(),
        count: &mut count,
        failed: &mut failed,
    };
    let survey = Survey::read(seen, name, host);
    let log = ImportLog {
        bytes: &mut io::empty(),
        name,
        host,
        present_ns,
    };
    if let Some(cause) = failed {
        return Err(uncopied(&log, &cause));
    }
    let survey = survey.map_err(|cause| unread(&log, &cause))?;
    let Some(mut file) = copy.or(again) else {
        return Err(uncopied(&log, &io::Error::other("no file")));
    };
    file.rewind().map_err(|cause| uncopied(&log, &cause))?;
    shared.captures.push(SurveyedCapture {
        survey,
        file,
        bytes: count,
        place: shared.place,
    });
    Ok(TraceImport {
        source: name.to_owned(),
        form: "capture".to_owned(),
        bytes: count,
        ..TraceImport::default()
    })
}

/// The error that a capture cannot be read a second time.
fn uncopied(log: &ImportLog<'_>, cause: &io::Error) -> Error {
    Error::environment(format!(
        "cannot read {} a second time, as captures require: {cause}",
        log.name
    ))
    .hint("a capture from a pipe has to be copied to TMPDIR; import it from a file instead")
}

/// The result of reading all captures of an import.
#[derive(Debug)]
pub struct CaptureImport {
    plan: CapturePlan,
    finished: Finished,
}

impl CaptureImport {
    /// Requests that access logs may describe.
    #[must_use]
    pub fn asked(&self) -> &[CapturedRequest] {
        &self.finished.asked
    }

    /// The connections that had requests.
    #[must_use]
    pub fn flows(&self) -> &[RunFlow] {
        &self.finished.flows
    }

    /// Adds what is known of hosts and connections to the index. `given` are clocks that the user set: they are not replaced.
    pub fn record_in(&self, index: &mut Index, given: &[(String, i64)]) {
        let is_new = index.hosts.is_empty();
        for (at, host) in self.plan.hosts.iter().enumerate() {
            let is_given = given.iter().any(|(name, _)| *name == host.name);
            let trace: &mut HostTrace = index.hosts.entry(host.name.clone()).or_default();
            if !is_given && self.plan.clocks[at] != ClockCorrection::default() {
                trace.clock = self.plan.clocks[at].clone();
            }
            trace.notes.extend(self.plan.notes[at].iter().cloned());
        }
        if let Some(first) = self.plan.hosts.first().filter(|_| is_new) {
            index.reference.clone_from(&first.name);
        }
        let new = |flow: &&RunFlow| !index.flows.iter().any(|known| known.id == flow.id);
        let new: Vec<RunFlow> = match index.flows.is_empty() {
            true => self.finished.flows.clone(),
            false => self.finished.flows.iter().filter(new).cloned().collect(),
        };
        index.flows.extend(new);
        index.flows.sort_by_key(|flow| flow.id);
    }

    /// What was found and what remained unknown, one line each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let Finished {
            requests,
            void,
            unknown,
            ..
        } = &self.finished;
        let void = (*void > 0).then(|| {
            format!(
                "{void} of them {} incomplete: the field `unknown` of REQUEST gives the reason",
                if *void == 1 { "is" } else { "are" }
            )
        });
        counted_requests(requests)
            .into_iter()
            .chain(void)
            .chain(unknown.lines())
            .collect()
    }
}

/// Reads all surveyed captures together, in the order of time, into a run.
///
/// # Errors
/// If a capture cannot be read again, or the run cannot be written.
pub fn read_captures(
    captures: Vec<SurveyedCapture>,
    into: &mut Intake,
    imports: &mut [TraceImport],
    given: &[(String, i64)],
    options: CaptureReadOptions,
) -> Result<Option<CaptureImport>> {
    if captures.is_empty() {
        return Ok(None);
    }
    let (known, first_lookup) = known(into.run())?;
    let options = CaptureReadOptions {
        first_lookup,
        ..options
    };
    let places: Vec<usize> = captures.iter().map(|capture| capture.place).collect();
    let (surveys, files): (Vec<Survey>, Vec<Box<dyn Read + Send>>) = captures
        .into_iter()
        .map(|capture| {
            let from: Box<dyn Read + Send> = Box::new(capture.file.take(capture.bytes));
            (capture.survey, from)
        })
        .unzip();
    // TLS secrets within captures count like those given in a file.
    let brought = surveys
        .iter()
        .map(Survey::secrets)
        .filter(|secrets| !secrets.is_empty());
    let mut options = options;
    for secrets in brought {
        options
            .secrets
            .get_or_insert_with(Secrets::default)
            .adopt(secrets);
    }
    let plan = CapturePlan::from_surveys(&surveys, &given.iter().cloned().collect())
        .naming(&options.elsewhere, &surveys);
    drop(surveys);
    let failed =
        |cause: crate::Error| Error::input(format!("cannot read a capture again: {cause}"));
    let mut reader = CaptureEventReader::open(files, &plan, known, options).map_err(failed)?;
    while let Some(tables) = reader.next_batch() {
        for (table, place) in tables.zip(&places) {
            count(table, &mut imports[*place]);
            into.push(table)?;
        }
    }
    let finished = reader.finish();
    // The captures are read together, so what was left out is noted once, at the first one.
    if let Some(first) = places.first() {
        imports[*first].left_out = finished.unknown.left_out.names();
    }
    for (mistakes, place) in finished.mistakes.iter().zip(&places) {
        report(mistakes.clone(), &mut imports[*place]);
    }
    Ok(Some(CaptureImport { plan, finished }))
}

/// Counts the events of a table, by host.
fn count(table: &EventTable, import: &mut TraceImport) {
    import.events += table.len() as u64;
    let mut hosts = vec![0_u64; table.names.len()];
    table
        .host
        .iter()
        .for_each(|host| hosts[*host as usize] += 1);
    for (host, count) in hosts.iter().enumerate().filter(|(_, count)| **count > 0) {
        *import
            .hosts
            .entry(table.names.text(host as u32).to_owned())
            .or_default() += count;
    }
}

/// The streams of connections that the run already knows, by their addresses, with the first free flow number for connections; and the
/// first free flow number for DNS lookups.
fn known(run: &Path) -> Result<(StreamRegistry, u32)> {
    const FIELDS: [usize; 3] = [1, 4, 5];
    if event_files(run).is_err() {
        return Ok((StreamRegistry::default(), 0));
    }
    let (mut first_flow, mut first_lookup) = (0, 0);
    let mut take = |flow: u32| {
        let first = if flow < FIRST_LOOKUP {
            &mut first_flow
        } else {
            &mut first_lookup
        };
        *first = flow.saturating_add(1).max(*first);
    };
    read_index(run)?
        .iter()
        .flat_map(|index| &index.flows)
        .for_each(|flow| take(flow.id));
    let mut streams = BTreeMap::new();
    read_batches(run, &EventColumnSelection::fields(&FIELDS), |events| {
        let connected = ["APP_CONNECTED", "APP_ACCEPTED"].map(|keyword| events.names.find(keyword));
        for row in 0..events.len() {
            let Some(stream) = events.number(row, FIELDS[0]) else {
                continue;
            };
            take(u32::try_from(stream >> 1).unwrap_or(0));
            if connected.contains(&Some(events.keyword[row]))
                && let (Some(local), Some(remote)) = (
                    address(events, row, FIELDS[1]),
                    address(events, row, FIELDS[2]),
                )
            {
                // The event names the stream on which this end sends; the other direction differs in the lowest bit.
                streams.insert((local, remote), stream);
                streams.insert((remote, local), stream ^ 1);
            }
        }
    })?;
    Ok((StreamRegistry::new(streams, first_flow), first_lookup))
}

fn address(events: &EventTable, row: usize, field: usize) -> Option<SocketAddr> {
    events.value(row, field).text()?.parse().ok()
}

/// A reader that counts the bytes it passes on, and copies them if wanted.
struct CountingReader<'r> {
    from: &'r mut (dyn Read + Send),
    copy: Option<&'r mut File>,
    count: &'r mut u64,
    /// The error of the copy, which the reader of this reader cannot pass on.
    failed: &'r mut Option<io::Error>,
}

impl Read for CountingReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        *self.count += read as u64;
        if let Some(Err(cause)) = self.copy.as_mut().map(|copy| copy.write_all(&into[..read])) {
            *self.failed = Some(cause);
            return Err(io::Error::other("it cannot be copied"));
        }
        Ok(read)
    }
}
