//! A measured session of the block server: a client sends lists of block numbers at fixed times to servers that run already, and
//! the blocks that come back are counted.

mod figures;
mod request;
mod virtual_time;

pub use figures::BlockSessionFigures;
pub use request::{BlockSessionRequest, SessionRun};
pub use virtual_time::{SimulatedSession, replay_simulated};

use crate::block_events::{BlockEventNames, emit_block_events};
use crate::client::{BlockClient, BlockClientOptions, OpenSet};
use crate::emulated::emit_watched_events;
use crate::list_file;
use crate::list_replay::{self, BlockReplayOutcome, BlockReplaySession};
use stackline_blocks::demand::Demand;
use stackline_blocks::session_record::BlockSessionRecord;
use stackline_core::error::{Error, Result};
use stackline_core::random::Seed;
use stackline_core::time::Duration as Ticks;
use stackline_core::units::format_time;
use stackline_runs::events::keep_run;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// The report says that the machine was too slow for the schedule if a list was sent later than this (ns).
const LATE: Ticks = Ticks(20_000_000);
/// How long the client waits for servers that are being started.
const PATIENCE: Duration = Duration::from_secs(20);

/// The result of a session.
#[derive(Debug)]
pub struct BlockSession {
    /// Its figures.
    pub figures: BlockSessionFigures,
    /// Whether somebody ended it early.
    pub interrupted: bool,
}

/// A session whose client is connected, whose servers are up and whose sets are open.
pub struct OpenSession<'r> {
    request: &'r BlockSessionRequest,
    client: BlockClient,
    /// The open sets, each with the rule by which its lists are made.
    sets: Vec<(OpenSet, Demand)>,
    /// The names of the disk servers, by number.
    servers: BTreeMap<u16, String>,
}

impl<'r> OpenSession<'r> {
    /// Connects to the master, waits for its servers and opens the sets.
    ///
    /// # Errors
    /// When the master, a server or a set is missing.
    pub fn open(request: &'r BlockSessionRequest) -> Result<Self> {
        let client = BlockClient::connect(&request.master, client_options(request))?;
        wait_for_servers(&client, request.servers)?;
        let sets = open_sets(&client, request)?;
        let servers = client.list()?.1.into_iter();
        Ok(Self {
            request,
            sets,
            servers: servers.map(|server| (server.id, server.name)).collect(),
            client,
        })
    }

    /// Sends the lists and counts what arrives. `progress` gets the record so far.
    ///
    /// # Errors
    /// When the master is lost, or the run cannot be written.
    pub fn replay(
        self,
        interrupted: &AtomicBool,
        progress: impl FnMut(&BlockSessionRecord),
    ) -> Result<BlockSession> {
        let request = self.request;
        let session = BlockReplaySession {
            sets: self.sets,
            schedule: request.schedule(),
            keeps: request.keeps(),
            most: request.most as usize,
            supersedes: !request.append,
            histories: request.run.is_some(),
            seed: Seed::root(request.seed),
            interrupted,
        };
        let outcome = list_replay::run(&self.client, &session, progress)?;
        let run = request
            .run
            .as_ref()
            .map(|run| keep(request, run, &outcome, &self.servers))
            .transpose()?;
        let notes = notes(&outcome);
        Ok(BlockSession {
            figures: BlockSessionFigures {
                asked_for: request.schedule().duration,
                record: outcome.record,
                end: outcome.end,
                names: self.servers,
                again: BTreeMap::new(),
                notes,
                run,
                drops: BTreeMap::new(),
            },
            interrupted: outcome.interrupted,
        })
    }
}

fn client_options(request: &BlockSessionRequest) -> BlockClientOptions {
    BlockClientOptions {
        transport: request.transport,
        age: request.age.map(|age| age.as_nanos() as u64),
        receive_buffer: request.receive_buffer.map(|bytes| bytes as usize),
        pace: request.pace,
        discard: true,
        report: true,
        first_unit: Some(1),
        capture: request.capture.clone(),
        ..BlockClientOptions::default()
    }
}

/// Opens the sets, each with the rule by which its lists are made.
fn open_sets(
    client: &BlockClient,
    request: &BlockSessionRequest,
) -> Result<Vec<(OpenSet, Demand)>> {
    let lists = request
        .captured_lists
        .as_deref()
        .map(list_file::read_lists)
        .transpose()?;
    let names: Vec<String> = match (&lists, request.sets.is_empty()) {
        (Some(lists), true) => lists.keys().cloned().collect(),
        (None, true) => {
            return Err(Error::input("no set specified")
                .hint("`stackline blocks list` shows the sets; to start everything on a network, use --across SPEC"));
        }
        _ => request.sets.clone(),
    };
    let open = |name: String| {
        let set = client.open(&name)?;
        let Some(lists) = &lists else {
            return Ok((set, request.demand()));
        };
        let of_set = lists.get(&name).cloned().ok_or_else(|| {
            Error::input(format!("the trace has no lists for the set {name}"))
                .hint("omit the set to request all sets in the trace")
        })?;
        Ok((set, Demand::CapturedLists(of_set)))
    };
    names.into_iter().map(open).collect()
}

/// Lines about what did not go as planned.
fn notes(outcome: &BlockReplayOutcome) -> Vec<String> {
    let mut notes: Vec<String> = outcome
        .gone
        .iter()
        .map(|(name, words)| format!("lost server {name}: {words}"))
        .collect();
    if outcome.latest.0 > LATE.0 {
        notes.push(format!(
            "a list was {} late: this machine was too busy to keep to the schedule",
            format_time(outcome.latest.seconds())
        ));
    }
    if outcome.interrupted {
        notes.push("INCOMPLETE: stopped early".into());
    }
    notes
}

/// Writes the events of the blocks as a run, with those of the ports of the network if these were watched.
fn keep(
    request: &BlockSessionRequest,
    run: &SessionRun,
    outcome: &BlockReplayOutcome,
    servers: &BTreeMap<u16, String>,
) -> Result<String> {
    let named = |name: &Option<String>, usual: &str| name.clone().unwrap_or_else(|| usual.into());
    let names = BlockEventNames {
        client: named(&request.client_name, "client"),
        master: named(&request.master_name, "master"),
        servers: servers.clone(),
    };
    keep_run(&run.name, run.access(), &names.client, |emit| {
        emit_block_events(&outcome.record, &names, 0, emit);
        if let Some(file) = &request.ports {
            emit_watched_events(file, emit);
        }
    })
}

/// Waits until `servers` servers are up.
fn wait_for_servers(client: &BlockClient, servers: Option<usize>) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    while let Some(servers) = servers
        && client.list()?.1.iter().filter(|server| server.up).count() < servers
    {
        if Instant::now() > until {
            return Err(Error::environment(format!(
                "not all servers came up within 20 s ({servers} expected)"
            )));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
