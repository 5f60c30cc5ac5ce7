//! `stackline blocks replay`: a session by the clock, against servers that are there, or with all of it started on the hosts
//! of a network.

mod emulated;
mod flag_checks;
mod network_session;
mod port_watcher;
mod session_demand;
mod session_results;
mod simulated;

use crate::exit::{Error, Exit, Result};
use crate::flags::{BlockTransport, Replay};
use crate::output;
use crate::run::listen_for_ctrl_c;
use flag_checks::BlocksReplayMode;
use session_demand::{demand, keeps, schedule};
use session_results::{BlocksReplaySession, show};
use stackline_blocks::demand::Demand;
use stackline_blocks::session_record::BlockSessionRecord;
use stackline_blocks::wire::message::BlockDataTransport;
use stackline_blockserver::block_events::{BlockEventNames, emit_block_events};
use stackline_blockserver::client::{BlockClient, BlockClientOptions};
use stackline_blockserver::{list_file, session_replay as live};
use stackline_core::random::Seed;
use stackline_core::time::Duration;
use stackline_core::units::{format_rate, format_time};
use std::collections::BTreeMap;
use std::io::{IsTerminal, stderr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// A list later than this is reported: the machine was too slow for the schedule.
const LATE: Duration = Duration(20_000_000);
/// How long servers that are being started may take.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

/// Replays a session.
pub(crate) fn replay(flags: &Replay) -> Result {
    let way = BlocksReplayMode::of(flags);
    flag_checks::check(flags, way)?;
    match way {
        BlocksReplayMode::Live => against(flags),
        BlocksReplayMode::Simulated => simulated::replay(flags),
        BlocksReplayMode::Emulated => emulated::replay(flags),
    }
}

/// Against a master and servers that are there.
fn against(flags: &Replay) -> Result {
    let lists = flags
        .trace
        .as_deref()
        .map(list_file::read_lists)
        .transpose()?;
    let names: Vec<String> = match (&lists, flags.sets.is_empty()) {
        (Some(lists), true) => lists.keys().cloned().collect(),
        (None, true) => {
            return Err(Error::input("no set is named")
                .hint("`stackline blocks list` shows the sets; or --across SPEC starts all of it on a network"));
        }
        _ => flags.sets.clone(),
    };
    let transport = match flags.transport {
        BlockTransport::Tcp => BlockDataTransport::Tcp,
        BlockTransport::Udp => BlockDataTransport::Udp,
        BlockTransport::Rtp => BlockDataTransport::Rtp,
        BlockTransport::Blast => BlockDataTransport::Blast,
    };
    let options = BlockClientOptions {
        transport,
        age: flags.age.map(|age| age.as_nanos() as u64),
        receive_buffer: flags.receive_buffer.map(|bytes| bytes as usize),
        pace: flags.pace,
        discard: true,
        report: true,
        first_unit: Some(1),
        capture: flags.capture.clone(),
        ..BlockClientOptions::default()
    };
    let client = BlockClient::connect(&flags.master, options)?;
    wait_for_servers(&client, flags.servers)?;
    let mut sets = Vec::new();
    for name in &names {
        let set = client.open(name)?;
        let demand = match &lists {
            Some(lists) => {
                let of_set = lists.get(name).cloned();
                let missing = || {
                    Error::input(format!("the trace has no lists of the set {name}")).hint(
                        "without a set on the command line all sets of the trace are asked for",
                    )
                };
                Demand::Trace(of_set.ok_or_else(missing)?)
            }
            None => demand(flags),
        };
        sets.push((set, demand));
    }
    let servers = client.list()?.1;
    let interrupted = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&interrupted])?;
    let session = live::BlockReplaySession {
        sets,
        schedule: schedule(flags),
        keeps: keeps(flags),
        most: flags.most as usize,
        supersedes: !flags.append,
        histories: !flags.no_history,
        seed: Seed::root(flags.seed),
        interrupted: &interrupted,
    };
    let outcome = live::run(&client, &session, running)?;
    let names: BTreeMap<u16, String> = servers
        .into_iter()
        .map(|server| (server.id, server.name))
        .collect();
    let mut notes: Vec<String> = outcome
        .gone
        .iter()
        .map(|(name, words)| format!("server {name} went: {words}"))
        .collect();
    if outcome.latest.0 > LATE.0 {
        notes.push(format!(
            "a list was {} late: this machine was too busy to keep the times",
            format_time(outcome.latest.seconds())
        ));
    }
    if outcome.interrupted {
        notes.push("INCOMPLETE: it was ended early".into());
    }
    let client_name = flags.as_host.clone().unwrap_or_else(|| "client".into());
    let master = flags.master_name.clone().unwrap_or_else(|| "master".into());
    let names_of_hosts = BlockEventNames {
        client: client_name,
        master,
        servers: names.clone(),
    };
    let record = outcome.record;
    let run = match flags.no_history {
        true => None,
        false => Some(stackline_runs::events::keep_run(
            &flags.name,
            flags.sharing.access(),
            &names_of_hosts.client,
            |emit| {
                emit_block_events(&record, &names_of_hosts, 0, emit);
                if let Some(file) = &flags.watched {
                    port_watcher::emit_watched_events(file, emit);
                }
            },
        )?),
    };
    let (again, drops) = (BTreeMap::new(), BTreeMap::new());
    let asked_for = schedule(flags).duration;
    show(
        flags,
        BlocksReplaySession {
            record,
            end: outcome.end,
            asked_for,
            names,
            again,
            notes,
            run,
            drops,
        },
    )?;
    if outcome.interrupted {
        Err(Error::interrupted())
    } else {
        Ok(Exit::Done)
    }
}

/// Waits until so many servers are up.
fn wait_for_servers(client: &BlockClient, servers: Option<usize>) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    while let Some(servers) = servers
        && client.list()?.1.iter().filter(|server| server.up).count() < servers
    {
        if Instant::now() > until {
            return Err(Error::environment(format!(
                "{servers} servers were to be up after 20 s"
            )));
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Ok(())
}

/// A running summary, on a terminal.
fn running(record: &BlockSessionRecord) {
    if stderr().is_terminal() {
        let score = &record.score;
        let last = score
            .by_second
            .len()
            .checked_sub(2)
            .and_then(|at| score.by_second.get(at))
            .copied()
            .unwrap_or(0);
        output::say(&format_args!(
            "{} lists, {} blocks, {} useful",
            score.lists,
            score.requested,
            format_rate(last as f64 * 8.0)
        ));
    }
}
