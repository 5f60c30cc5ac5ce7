//! Reads the containers of Podman and CRI-O, which use the same files: names in the store of image layers, processes in a directory
//! that does not survive a restart of the machine.

use super::{Container, ContainerRuntime, LONGEST, names_in_pod};
use serde_json::Value;
use stackline_os::root_directory::Root;

/// The storage drivers for layers, which are part of the directories' names.
const DRIVERS: [&str; 3] = ["overlay", "vfs", "btrfs"];

/// The containers of a store; `running`: the directory of running containers.
///
/// # Errors
/// The reason why it does not exist or cannot be read.
pub(super) fn containers(
    root: &Root,
    store: &str,
    running: &str,
) -> Result<Vec<Container>, String> {
    let mut why = String::new();
    for driver in DRIVERS {
        let list = format!("{store}/{driver}-containers/containers.json");
        match root.head(&list, LONGEST) {
            Ok(text) => {
                let all: Value =
                    serde_json::from_str(&text).map_err(|error| format!("/{list}: {error}"))?;
                let all = all.as_array().map_or(&[][..], Vec::as_slice);
                let running = format!("{running}/{driver}-containers");
                return Ok(all
                    .iter()
                    .filter_map(|one| container(root, &running, one))
                    .collect());
            }
            Err(error) if why.is_empty() => why = error,
            Err(_) => {}
        }
    }
    Err(why)
}

fn container(root: &Root, running: &str, one: &Value) -> Option<Container> {
    let id = one.get("id")?.as_str()?;
    let directory = format!("{running}/{id}/userdata");
    let pid = root.line(&format!("{directory}/pidfile"));
    let pid = pid.ok().and_then(|pid| pid.parse().ok());
    // The file may be left from a container that was killed.
    let pid = pid.filter(|pid: &u32| root.exists(&format!("proc/{pid}")));
    let named = one.get("names").and_then(Value::as_array);
    let names: Vec<String> = named
        .into_iter()
        .flatten()
        .filter_map(|name| Some(name.as_str()?.to_owned()))
        .collect();
    let config = root.head(&format!("{directory}/config.json"), LONGEST);
    let config: Value = serde_json::from_str(&config.unwrap_or_default()).unwrap_or_default();
    let note = |key: &str| {
        let notes = config.get("annotations");
        notes
            .and_then(|notes| notes.get(key)?.as_str())
            .unwrap_or("")
    };
    let pod = note("io.kubernetes.pod.name");
    if pod.is_empty() {
        return Some(Container::new(id, ContainerRuntime::Podman, pid).named(names));
    }
    let is_sandbox = note("io.kubernetes.cri-o.ContainerType") == "sandbox";
    let own = match is_sandbox {
        true => "",
        false => note("io.kubernetes.container.name"),
    };
    let names = names_in_pod(note("io.kubernetes.pod.namespace"), pod, own);
    Some(Container {
        is_sandbox,
        ..Container::new(id, ContainerRuntime::CriO, pid).named(names)
    })
}
