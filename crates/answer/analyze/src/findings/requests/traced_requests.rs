//! Reads all requests of a trace from its events: the parts of their time, their programs and ports, who answers them.

use crate::findings::requests::control_connections::{AlternatingMessage, find_control_requests};
use crate::findings::requests::program_ports::{name_by_port, name_unknown_servers};
use crate::findings::requests::request::{
    RequestNetworkDelays, RequestServerWork, RequestTimes, TracedRequest,
};
use crate::findings::requests::responders::find_responders;
use crate::findings::rows::EventRows;
use stackline_events::unit_ids;
use std::collections::BTreeMap;

/// All requests of a trace, in the order of their ends.
pub(crate) fn requests(log: &EventRows<'_>) -> Vec<TracedRequest> {
    let mut all: Vec<TracedRequest> = log
        .rows("REQUEST")
        .iter()
        .map(|row| request(log, *row))
        .collect();
    let by_unit: BTreeMap<i64, usize> = all
        .iter()
        .enumerate()
        .map(|(at, request)| (request.unit, at))
        .collect();
    let mut each = |keyword: &str, put: &dyn Fn(&mut TracedRequest, u32)| {
        for row in log.rows(keyword) {
            if let Some(at) = log.number(*row, "unit").and_then(|unit| by_unit.get(&unit)) {
                put(&mut all[*at], *row);
            }
        }
    };
    each("REQUEST_TIME", &|request, row| {
        let times = times(log, row);
        // Without an answer, that the client did not see one does not mean that the client was not traced.
        let is_of_server = times.is_of_server && request.bytes.1 > 0;
        request.times = Some(RequestTimes {
            is_of_server,
            ..times
        });
    });
    each("REQUEST_NETWORK", &|request, row| {
        request.network = network(log, row)
    });
    each("REQUEST_STALL", &|request, row| {
        let number = |field: &str| log.number(row, field).unwrap_or(0);
        request.network.stalled_there_ns = number("stalled_there_ns");
        request.network.stalled_back_ns = number("stalled_back_ns");
        request.network.behind_back_ns = number("behind_back_ns");
    });
    each("REQUEST_PARENT", &|request, row| {
        request.parent = log.number(row, "parent")
    });
    each("REQUEST_UPSTREAM", &|request, row| {
        request.upstream_ns = log.number(row, "upstream_ns")
    });
    each("REQUEST_WORK", &|request, row| {
        request.work = Some(work(log, row))
    });
    each("LOCK_HOLDER", &|request, row| {
        request.holders = Some(work(log, row))
    });
    each("REQUEST_WAIT", &|request, row| {
        request.wait = Some(work(log, row))
    });
    each("RESPONSE_WAIT", &|request, row| {
        request.answer_wait = Some(work(log, row))
    });
    each("REQUEST_PROCESS", &|request, row| {
        request.client_pid = log.number(row, "client_pid");
        request.server_pid = log.number(row, "server_pid");
        request.is_callers = log.number(row, "is_callers").map(|of| of == 1);
    });
    find_ports(&mut all, log);
    find_servers(&mut all);
    name_by_port(&mut all);
    name_unknown_servers(&mut all);
    find_responders(&mut all);
    mark_control_requests(&mut all, log);
    all
}

/// Marks requests that control a transfer and last as long as that.
fn mark_control_requests(all: &mut [TracedRequest], log: &EventRows<'_>) {
    if log.rows("TCP_CONNECTION").is_empty() {
        return;
    }
    let turns: Vec<(usize, AlternatingMessage<'_>)> = all
        .iter()
        .enumerate()
        .filter(|(_, request)| !request.exact)
        .map(|(at, request)| {
            let turn = AlternatingMessage {
                flow: unit_ids::parts(request.unit).0,
                is_call: request.is_call,
                client: (&request.client, &request.programs.0),
                server: &request.server,
                from_ns: request.begin_ns(),
                to_ns: request.end_ns,
            };
            (at, turn)
        })
        .collect();
    for at in find_control_requests(&turns, log) {
        all[at].is_control = true;
    }
}

/// Sets the ports of servers from the flows of the run's index.
fn find_ports(all: &mut [TracedRequest], log: &EventRows<'_>) {
    let port = |service: &str| service.rsplit_once(':')?.1.parse::<u16>().ok();
    let flows = log.input.index.flows.iter();
    let ports: BTreeMap<u32, u16> = flows
        .filter_map(|flow| Some((flow.id, port(&flow.service)?)))
        .collect();
    for request in all {
        request.port = ports.get(&unit_ids::parts(request.unit).0).copied();
    }
}

/// Sets the server's program for requests where it is not known: the one program that serves others at that host and port.
fn find_servers(all: &mut [TracedRequest]) {
    let mut programs: BTreeMap<(&str, u16), Option<&str>> = BTreeMap::new();
    for request in all.iter().filter(|one| !one.programs.1.is_empty()) {
        let Some(port) = request.port else { continue };
        let program = request.programs.1.as_str();
        programs
            .entry((&request.server, port))
            .and_modify(|known| *known = known.filter(|known| *known == program))
            .or_insert(Some(program));
    }
    let found = all.iter().map(|request| {
        let is_asked = request.is_call && request.programs.1.is_empty();
        let port = request.port.filter(|_| is_asked)?;
        let program = programs.get(&(request.server.as_str(), port))?;
        program.map(str::to_owned)
    });
    let found: Vec<Option<String>> = found.collect();
    for (request, program) in all.iter_mut().zip(found) {
        if let Some(program) = program {
            request.programs.1 = program;
        }
    }
}

fn request(log: &EventRows<'_>, row: u32) -> TracedRequest {
    let text = |field: &str| log.text(row, field).unwrap_or_default().to_owned();
    let either = |field: &str| {
        log.number(row, field)
            .map_or_else(|| text(field), |number| number.to_string())
    };
    let number = |field: &str| log.number(row, field);
    TracedRequest {
        unit: number("unit").unwrap_or(-1),
        row,
        is_call: log.text(row, "kind") == Some("call"),
        is_one_way: log.text(row, "kind") == Some("one way"),
        is_unopened: log.text(row, "kind") == Some("connection"),
        exact: number("exact") == Some(1),
        protocol: text("protocol"),
        name: either("name"),
        status: either("status"),
        client: either("client"),
        server: either("server"),
        programs: (either("client_program"), either("server_program")),
        bytes: (
            number("request_bytes").unwrap_or(0),
            number("response_bytes").unwrap_or(0),
        ),
        parts: number("parts").unwrap_or(0),
        unknown: log.text(row, "unknown").map(str::to_owned),
        end_ns: log.at(row),
        ..TracedRequest::default()
    }
}

/// Times are limited to this, 39 h, so that those of 65,000 requests can be added up without overflow, whatever a log says, ns.
const LONGEST_NS: i64 = 1 << 47;

/// The number of round trips of a request is limited to this.
const MOST_ROUNDS: i64 = 1 << 10;

fn times(log: &EventRows<'_>, row: u32) -> RequestTimes {
    let known = |field: &str| {
        log.number(row, field)
            .map(|ns| ns.clamp(-LONGEST_NS, LONGEST_NS))
    };
    let time = |field: &str| known(field).unwrap_or(0);
    RequestTimes {
        total: time("total_ns"),
        lookup: time("lookup_ns"),
        connect: time("connect_ns"),
        handshake: time("handshake_ns"),
        client: time("client_ns"),
        hold: time("hold_ns"),
        there: time("there_ns"),
        unread: time("unread_ns"),
        work: time("work_ns"),
        sending: time("sending_ns"),
        back: time("back_ns"),
        client_unread: time("client_unread_ns"),
        is_transit_known: known("there_ns").is_some() && known("back_ns").is_some(),
        is_of_server: known("there_ns").is_some() && known("back_ns").is_none(),
        is_of_client: known("there_ns").is_none() && known("back_ns").is_some(),
        round_trip: known("round_trip_ns"),
        rounds: log.number(row, "rounds").unwrap_or(1).clamp(1, MOST_ROUNDS),
        has_connect: known("connect_ns").is_some(),
        has_handshake: known("handshake_ns").is_some(),
    }
}

fn network(log: &EventRows<'_>, row: u32) -> RequestNetworkDelays {
    let number = |field: &str| log.number(row, field).unwrap_or(0);
    RequestNetworkDelays {
        again_there: number("again_there"),
        again_there_ns: number("again_there_ns"),
        again_back: number("again_back"),
        again_back_ns: number("again_back_ns"),
        held_there_ns: number("held_there_ns"),
        held_back_ns: number("held_back_ns"),
        window_there_ns: number("window_there_ns"),
        window_back_ns: number("window_back_ns"),
        late_back_ns: number("late_back_ns"),
        paused_there_ns: number("paused_there_ns"),
        paused_back_ns: number("paused_back_ns"),
        connect_again: number("connect_again"),
        awaited_there_ns: number("awaited_there_ns"),
        ..RequestNetworkDelays::default()
    }
}

fn work(log: &EventRows<'_>, row: u32) -> RequestServerWork {
    let number = |field: &str| log.number(row, field).unwrap_or(0);
    RequestServerWork {
        thread: number("thread"),
        cpu: number("cpu_ns"),
        runnable: number("runnable_ns"),
        lock: number("lock_ns"),
        disk: number("disk_ns"),
        sleep: number("sleep_ns"),
        socket: number("socket_ns"),
        child: number("child_ns"),
        stopped: number("stopped_ns"),
        collect: number("collect_ns"),
        observer: number("observer_ns"),
    }
}
