//! The ways of blocks as a run: an event for each point that each block passed, under the paper's keywords.

use crate::exit::Result;
use stackline_blocks::history::{FLUSH, History, Place, Point};
use stackline_core::time::Instant;
use stackline_core::trace::{HostTrace, Index};
use stackline_events::{EventLog, Value, keyword};
use stackline_runs::events::{Spooling, Stop, write_index};
use stackline_runs::{RunDirectory, runs_root};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// Something that happened beside the ways of blocks.
pub(super) struct Mark {
    pub(super) host: String,
    pub(super) at: Instant,
    pub(super) keyword: &'static str,
    pub(super) bytes: u64,
    pub(super) why: &'static str,
}

/// Who is called what in events.
pub(super) struct Names {
    pub(super) client: String,
    pub(super) master: String,
    pub(super) servers: BTreeMap<u16, String>,
}

impl Names {
    fn of(&self, history: &History, place: Place) -> &str {
        match place {
            Place::Application => &self.client,
            Place::Master => &self.master,
            Place::Server => self.servers.get(&history.server).map_or("server", |name| name),
        }
    }
}

/// Keeps a run; where. `zero_ns` is added to every time.
pub(super) fn keep(name: &str, histories: &[History], marks: &[Mark], names: &Names, zero_ns: u64) -> Result<String> {
    let mut logs: BTreeMap<&str, EventLog> = BTreeMap::new();
    for history in histories {
        for point in Point::ALL {
            if let Some(at) = history.passed(point) {
                // In virtual time points of one moment are common; a nanosecond each keeps their order.
                let at_ns = at.0 + zero_ns + point as u64;
                push(&mut logs, names.of(history, point.place()), point.keyword(), at_ns, history);
            }
        }
        if let Some(at) = history.flushed {
            push(&mut logs, names.of(history, Place::Server), FLUSH, at.0 + zero_ns, history);
        }
    }
    for mark in marks {
        let values = [Value::Absent, Value::Absent, Value::Absent, mark.bytes.into(), Value::Text(mark.why)];
        log(&mut logs, &mark.host).push(keyword::intern(mark.keyword), mark.at.0 + zero_ns, &values);
    }
    let directory = RunDirectory::create(&runs_root(), name, SystemTime::now())?;
    let spool = Spooling::of(directory.path())?;
    for (host, log) in &logs {
        spool.append(host, log)?;
    }
    let mut index = Index { reference: names.client.clone(), ..Index::default() };
    for (host, settled) in spool.settle(&Stop::default())? {
        let trace: &mut HostTrace = index.hosts.entry(host).or_default();
        settled.record_in(trace);
    }
    let path = directory.path().to_path_buf();
    write_index(&path, &index)?;
    directory.finish(&[], true, None)?;
    Ok(path.display().to_string())
}

fn log<'l, 'n>(logs: &'l mut BTreeMap<&'n str, EventLog>, host: &'n str) -> &'l mut EventLog {
    logs.entry(host).or_insert_with(|| {
        let mut log = EventLog::default();
        log.host(host);
        log
    })
}

/// The block counter stands first, as every unit's id does; then the paper's other data: block, data set, user session's list.
fn push<'n>(logs: &mut BTreeMap<&'n str, EventLog>, host: &'n str, name: &'static str, at_ns: u64, history: &History) {
    let values: [Value<'_>; 5] =
        [history.unit.into(), history.number.into(), history.set.into(), history.serial.into(), history.bytes.into()];
    log(logs, host).push(keyword::intern(name), at_ns, &values);
}
