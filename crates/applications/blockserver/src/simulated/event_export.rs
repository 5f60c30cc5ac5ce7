//! A simulated session as events: the histories of its blocks, retransmissions, and the use of ports and connections. Writing them to a
//! file is up to the caller.

use super::scene::{BlockScene, BlockSceneOutcome};
use super::usage::ConnectionUse;
use crate::block_events::{BlockEventNames, emit_block_events};
use stackline_core::procedure::PairSide;
use stackline_events::catalogue::families::{ConnectionReport, ConnectionReportEvent};
use stackline_events::catalogue::rows::TcpRetransmit;
use stackline_events::{EventEmitter, EventTable, EventValue};
use stackline_sim::connection_info::ConnectionInfo;
use stackline_sim::messages::TcpConnectionEvent;
use stackline_sim::usage::emit_usage;

/// All events as a table, from which lifelines (the paths of blocks over time) and findings are computed.
#[must_use]
pub fn event_table(scene: &BlockScene<'_>, outcome: &BlockSceneOutcome) -> EventTable {
    let mut table = EventTable::default();
    emit_scene_events(scene, outcome, 0, &mut table.emitter());
    table
}

/// Emits all events. `zero_ns` is added to every time.
pub fn emit_scene_events(
    scene: &BlockScene<'_>,
    outcome: &BlockSceneOutcome,
    zero_ns: u64,
    emit: &mut EventEmitter<'_>,
) {
    let servers = (0..)
        .zip(scene.servers.iter().map(|server| server.host.clone()))
        .collect();
    let names = BlockEventNames {
        client: scene.client.clone(),
        master: scene.master.clone(),
        servers,
    };
    emit_block_events(&outcome.record, &names, zero_ns, emit);
    for traced in &outcome.traced {
        let TcpConnectionEvent::Again { bytes, reason, .. } = traced.event else {
            continue;
        };
        let blocks = outcome
            .servers
            .iter()
            .find(|server| server.connection == Some(traced.connection));
        if let Some(server) = blocks.filter(|_| traced.side == PairSide::Responder) {
            let again = TcpRetransmit {
                bytes: bytes.into(),
                cause: EventValue::Text(reason.word()),
                ..TcpRetransmit::default()
            };
            again.emit_on(&server.host, traced.at.0 + zero_ns, emit);
        }
    }
    emit_usage(scene.network, &outcome.watched.intervals, zero_ns, emit);
    outcome
        .watched
        .connections
        .iter()
        .for_each(|one| connection(scene, one, zero_ns, emit));
}

/// The events of a connection, as a kernel would report it.
fn connection(
    scene: &BlockScene<'_>,
    one: &ConnectionUse,
    zero_ns: u64,
    emit: &mut EventEmitter<'_>,
) {
    let server = scene
        .servers
        .get(one.server)
        .map_or("server", |server| &server.host);
    let (local, remote) = if one.side == PairSide::Responder {
        (server, scene.client.as_str())
    } else {
        (scene.client.as_str(), server)
    };
    let [before, later] = one.facts.each_ref().map(ConnectionInfo::of_tcp);
    let report = ConnectionReport {
        local: EventValue::Text(local),
        remote: EventValue::Text(remote),
        ..later.since(&before, one.interval)
    };
    ConnectionReportEvent::TcpInfo.emit_on(&report, local, one.at.0 + zero_ns, emit);
}
