//! Distinguishes programs of the same name on one host that are different services at different ports, such as four services in Python:
//! each is named with its port, `python3 (port 8214)`, as a server and as a client.

use crate::findings::requests::request::TracedRequest;
use std::collections::{BTreeMap, BTreeSet};

/// With more services of one name, their ports are taken for temporary ones, such as those of FTP data connections, and not named.
const MOST_SERVICES: usize = 16;

/// A host, and the name of a program on it.
type HostProgram = (String, String);

/// The ids of the processes that answer at each port of a program.
type PortProcesses = BTreeMap<u16, BTreeSet<i64>>;

/// One service: the ports at which the same processes answer.
#[derive(Debug, Default)]
struct Service {
    ports: BTreeSet<u16>,
    pids: BTreeSet<i64>,
}

/// Names servers of unknown programs on their client's host by their port: the host's name alone would stand for both ends.
pub(crate) fn name_unknown_servers(all: &mut [TracedRequest]) {
    for request in all.iter_mut() {
        let is_unknown = request.programs.1.is_empty() && !request.programs.0.is_empty();
        if let Some(port) = request
            .port
            .filter(|_| is_unknown && request.client == request.server)
        {
            request.programs.1 = format!("{UNKNOWN}{port}");
        }
    }
}

/// Adds the port to the names of programs that would otherwise be taken for one.
pub(crate) fn name_by_port(all: &mut [TracedRequest]) {
    let mut names: BTreeMap<HostProgram, Vec<Service>> = BTreeMap::new();
    for (program, ports) in processes_by_port(all) {
        let services = services(ports);
        if (2..=MOST_SERVICES).contains(&services.len()) {
            names.insert(program, services);
        }
    }
    if names.is_empty() {
        return;
    }
    for request in all {
        let client = (request.client.clone(), request.programs.0.clone());
        let asks = |service: &&Service| {
            let pid = request.client_pid;
            pid.is_some_and(|pid| service.pids.contains(&pid))
        };
        rename(&mut request.programs.0, names.get(&client), asks);
        let server = (request.server.clone(), request.programs.1.clone());
        let answers = |service: &&Service| {
            let port = request.port;
            port.is_some_and(|port| service.ports.contains(&port))
        };
        rename(&mut request.programs.1, names.get(&server), answers);
    }
}

/// Adds the first port of the matching service to a program's name.
fn rename(
    program: &mut String,
    services: Option<&Vec<Service>>,
    is_it: impl Fn(&&Service) -> bool,
) {
    let service = services.and_then(|services| services.iter().find(is_it));
    if let Some(port) = service.and_then(|service| service.ports.first()) {
        *program = format!("{program}{PORT}{port})");
    }
}

/// What stands between a program's name and its port.
const PORT: &str = " (port ";

/// What stands before the port of a server whose program is not known.
const UNKNOWN: &str = "port ";

/// A program's name without the port that was added; empty if the program is not known.
pub(crate) fn without_port(program: &str) -> &str {
    match program.starts_with(UNKNOWN) {
        true => "",
        false => program.split(PORT).next().unwrap_or_default(),
    }
}

/// The processes by port of each program whose processes are all known.
fn processes_by_port(all: &[TracedRequest]) -> BTreeMap<HostProgram, PortProcesses> {
    let mut programs: BTreeMap<HostProgram, PortProcesses> = BTreeMap::new();
    for request in all {
        let (true, Some(port)) = (request.is_call, request.port) else {
            continue;
        };
        if !request.programs.1.is_empty() {
            let program = (request.server.clone(), request.programs.1.clone());
            let processes = programs.entry(program).or_default();
            let pids = processes.entry(port).or_default();
            pids.extend(request.server_pid);
        }
    }
    programs.retain(|_, ports| ports.values().all(|pids| !pids.is_empty()));
    programs
}

/// The services of a program: ports that share a process are one service.
fn services(ports: PortProcesses) -> Vec<Service> {
    let mut services: Vec<Service> = Vec::new();
    for (port, pids) in ports {
        let mut merged = Service {
            ports: BTreeSet::from([port]),
            pids,
        };
        services.retain_mut(|service| {
            let is_other = service.pids.is_disjoint(&merged.pids);
            if !is_other {
                merged.ports.append(&mut service.ports);
                merged.pids.append(&mut service.pids);
            }
            is_other
        });
        services.push(merged);
    }
    services
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::requests::request::{client_name, server_name};

    fn call(client: (&str, i64), server: (&str, i64), port: u16) -> TracedRequest {
        TracedRequest {
            is_call: true,
            client: "here".into(),
            server: "here".into(),
            programs: (client.0.into(), server.0.into()),
            client_pid: Some(client.1),
            server_pid: Some(server.1),
            port: Some(port),
            ..TracedRequest::default()
        }
    }

    fn names(mut all: Vec<TracedRequest>) -> Vec<(String, String)> {
        name_by_port(&mut all);
        all.iter()
            .map(|request| (client_name(request), server_name(request)))
            .collect()
    }

    fn pair(client: &str, server: &str) -> (String, String) {
        (client.to_owned(), server.to_owned())
    }

    #[test]
    fn services_of_one_program_are_named_by_their_ports() {
        let (page, user, cart) = (("python3", 11), ("python3", 12), ("python3", 13));
        let found = names(vec![
            call(("curl", 9), page, 8000),
            call(page, user, 8001),
            call(page, cart, 8002),
            call(("python3", 20), cart, 8002),
        ]);
        let name = |port: u16| format!("python3 (port {port}) on here");
        assert_eq!(
            found,
            [
                pair("curl on here", &name(8000)),
                pair(&name(8000), &name(8001)),
                pair(&name(8000), &name(8002)),
                // A client of the same program that serves nobody.
                pair("python3 on here", &name(8002)),
            ]
        );
    }

    #[test]
    fn a_server_whose_program_is_not_known_is_its_port() {
        let mut all = vec![call(("psql", 9), ("", 0), 5432), call(("", 9), ("", 0), 80)];
        all.push(call(("psql", 9), ("", 0), 5432));
        all[2].server = "db".into();
        name_unknown_servers(&mut all);
        let names: Vec<String> = all.iter().map(server_name).collect();
        assert_eq!(names, ["port 5432 on here", "here", "db"]);
        let programs = ["python3 (port 81)", "python3", "port 5432"].map(without_port);
        assert_eq!(programs, ["python3", "python3", ""]);
    }

    #[test]
    fn one_server_at_two_ports_stays_one() {
        let plain = |count| vec![pair("curl on here", "nginx on here"); count];
        let same = names(vec![
            call(("curl", 9), ("nginx", 5), 80),
            call(("curl", 9), ("nginx", 6), 80),
            call(("curl", 9), ("nginx", 5), 443),
        ]);
        assert_eq!(same, plain(3));
        // An unknown process may be the same one at both ports.
        let mut unknown = vec![
            call(("curl", 9), ("nginx", 5), 80),
            call(("curl", 9), ("nginx", 6), 443),
        ];
        unknown[1].server_pid = None;
        assert_eq!(names(unknown), plain(2));
    }
}
