//! What requests of other (traced) programs are called where one is shown: the request, its answer, the processes of both ends.

use stackline_events::EventTable;
use stackline_events::catalogue;
use std::collections::HashMap;

/// By unit: the request's name, its answer and its processes, such as `GET /slow/1 200, curl (811) > nginx (812)`.
#[must_use]
pub fn request_names(events: &EventTable) -> HashMap<i64, String> {
    const REQUEST: &str = "REQUEST";
    let field = |keyword: &str, name: &str| {
        let entry = catalogue::find(keyword)?;
        entry.data.iter().position(|own| *own == name)
    };
    let known = [
        "name",
        "status",
        "unknown",
        "client_program",
        "server_program",
    ]
    .map(|name| field(REQUEST, name));
    let [
        Some(name),
        Some(status),
        Some(unknown),
        Some(client),
        Some(server),
    ] = known
    else {
        return HashMap::new();
    };
    let processes = request_processes(events);
    let mut names = HashMap::new();
    for row in (0..events.len()).filter(|row| events.keyword(*row) == REQUEST) {
        let text = |field: usize| events.value(row, field).to_string();
        let answer = match text(status) {
            status if status.is_empty() => text(unknown),
            status => status,
        };
        let label = format!("{} {answer}", text(name)).trim().to_owned();
        let Some(unit) = events.number(row, 0).filter(|_| !label.is_empty()) else {
            continue;
        };
        let pids = processes.get(&unit).copied().unwrap_or_default();
        let ends = [(text(client), pids.client), (text(server), pids.server)];
        let [client, server] = ends.map(|(program, pid)| match pid {
            Some(pid) => format!("{program} ({pid})"),
            None => program,
        });
        let between = match (client.is_empty(), server.is_empty()) {
            (true, true) => String::new(),
            _ => format!(", {client} > {server}"),
        };
        names.insert(unit, label + &between);
    }
    names
}

/// The process ids of both ends of a request.
#[derive(Clone, Copy, Default)]
struct RequestProcesses {
    client: Option<i64>,
    server: Option<i64>,
}

/// By unit: the processes of the request.
fn request_processes(events: &EventTable) -> HashMap<i64, RequestProcesses> {
    let rows = (0..events.len()).filter(|row| events.keyword(*row) == "REQUEST_PROCESS");
    let known = |row: usize| {
        let processes = RequestProcesses {
            client: events.number(row, 1),
            server: events.number(row, 2),
        };
        Some((events.number(row, 0)?, processes))
    };
    rows.filter_map(known).collect()
}
