//! Reads Docker's containers: from its directory, or where that cannot be read, from its socket. Podman's socket has the same
//! interface.
//!
//! The socket is asked without a library of HTTP: the client of hyper, the one in this workspace, needs a runtime and crates that nothing
//! else here uses, and with limits of time and size it is longer than one request whose answer ends with the connection.

use super::{Container, ContainerRuntime, LONGEST};
use serde_json::Value;
use stackline_os::root_directory::Root;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Where Docker keeps its containers, unless it is configured otherwise.
const DIRECTORY: &str = "var/lib/docker/containers";
/// The longest wait for the whole answer of a socket.
const ANSWERS: Duration = Duration::from_secs(2);
/// The most containers that a socket is asked about one by one.
const MOST_ASKED: usize = 1_024;

/// The containers in Docker's directory.
///
/// # Errors
/// The reason why it cannot be read.
pub(super) fn of_directory(root: &Root) -> Result<Vec<Container>, String> {
    let ids = root.names(DIRECTORY)?;
    let container = |id: &String| {
        let text = root
            .head(&format!("{DIRECTORY}/{id}/config.v2.json"), LONGEST)
            .ok()?;
        inspected(
            &serde_json::from_str(&text).ok()?,
            "ID",
            ContainerRuntime::Docker,
        )
    };
    Ok(ids.iter().filter_map(container).collect())
}

/// A container from its description in JSON; `id`: the name of the field with its ID.
fn inspected(value: &Value, id: &str, runtime: ContainerRuntime) -> Option<Container> {
    let state = value.get("State")?;
    let is_running = state.get("Running").and_then(Value::as_bool) == Some(true);
    let pid = state.get("Pid").and_then(Value::as_u64);
    let pid = pid.and_then(|pid| u32::try_from(pid).ok());
    let pid = pid.filter(|pid| is_running && *pid != 0);
    let name = value.get("Name").and_then(Value::as_str).unwrap_or("");
    let container = Container::new(value.get(id)?.as_str()?, runtime, pid);
    Some(
        Container {
            is_running,
            ..container
        }
        .named([name.trim_start_matches('/').to_owned()]),
    )
}

/// The containers that a runtime's socket lists.
///
/// # Errors
/// The reason why it does not answer.
pub(super) fn of_socket(
    socket: &Path,
    runtime: ContainerRuntime,
) -> Result<Vec<Container>, String> {
    let failed = |error: io::Error| format!("{}: {error}", socket.display());
    let all = ask(socket, "/containers/json?all=1").map_err(failed)?;
    let listed = all.as_array().map_or(&[][..], Vec::as_slice);
    let container = |one: &Value| {
        let id = one.get("Id")?.as_str()?;
        // Only hexadecimal IDs may become part of the request line.
        let is_id = id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let about = format!("/containers/{}/json", Some(id).filter(|_| is_id)?);
        inspected(&ask(socket, &about).ok()?, "Id", runtime)
    };
    Ok(listed
        .iter()
        .take(MOST_ASKED)
        .filter_map(container)
        .collect())
}

/// The answer of a socket to a request. HTTP/1.0 is used so that the answer is not chunked and ends with the connection.
fn ask(socket: &Path, path: &str) -> io::Result<Value> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWERS))?;
    stream.set_write_timeout(Some(ANSWERS))?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let (mut answer, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    let (begun, mut stream) = (Instant::now(), stream.take(LONGEST));
    loop {
        let count = stream.read(&mut piece)?;
        if count == 0 {
            break;
        }
        answer.extend_from_slice(&piece[..count]);
        let rest = ANSWERS
            .checked_sub(begun.elapsed())
            .filter(|rest| !rest.is_zero());
        let rest = rest.ok_or(io::ErrorKind::TimedOut)?;
        stream.get_ref().set_read_timeout(Some(rest))?;
    }
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text
        .split_once("\r\n\r\n")
        .ok_or(io::ErrorKind::InvalidData)?;
    let is_good = head
        .split_ascii_whitespace()
        .nth(1)
        .is_some_and(|status| status.starts_with('2'));
    if !is_good {
        let first = head.lines().next().unwrap_or_default();
        return Err(io::Error::other(format!("it answered {first}")));
    }
    serde_json::from_str(body).map_err(io::Error::other)
}
