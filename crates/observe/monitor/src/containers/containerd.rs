//! Reads the running containers of containerd: those of Kubernetes, of nerdctl, and of Docker, which uses it. Their first processes
//! and configurations are in a directory that does not survive a restart of the machine.

use super::{Container, ContainerRuntime, LONGEST, names_in_pod};
use serde_json::Value;
use stackline_os::root_directory::Root;

/// The directories of running containers, by containerd namespace.
const DIRECTORIES: [&str; 2] = [
    "run/containerd/io.containerd.runtime.v2.task",
    "run/k3s/containerd/io.containerd.runtime.v2.task",
];
/// The containerd namespace of Docker's containers.
const OF_DOCKER: &str = "moby";

/// The running containers.
///
/// # Errors
/// The reason why they cannot be read.
pub(super) fn containers(root: &Root) -> Result<Vec<Container>, String> {
    let mut all = Vec::new();
    let mut why = None;
    for directory in DIRECTORIES {
        match root.names(directory) {
            Ok(namespaces) => {
                for namespace in namespaces {
                    let of_namespace = format!("{directory}/{namespace}");
                    let ids = root.names(&of_namespace).unwrap_or_default();
                    let container = |id: &String| container(root, &of_namespace, &namespace, id);
                    all.extend(ids.iter().filter_map(container));
                }
            }
            Err(error) => why = why.or(Some(error)),
        }
    }
    match (all.is_empty(), why) {
        (true, Some(why)) => Err(why),
        _ => Ok(all),
    }
}

/// One container, from its files; `None` if it has no process file.
fn container(root: &Root, directory: &str, namespace: &str, id: &str) -> Option<Container> {
    let pid = root.line(&format!("{directory}/{id}/init.pid")).ok()?;
    let pid = pid.parse().ok();
    let pid = pid.filter(|pid: &u32| root.exists(&format!("proc/{pid}")));
    let runtime = match namespace {
        OF_DOCKER => ContainerRuntime::Docker,
        _ => ContainerRuntime::Containerd,
    };
    let container = Container::new(id, runtime, pid);
    let config = root.head(&format!("{directory}/{id}/config.json"), LONGEST);
    let config: Value = serde_json::from_str(&config.unwrap_or_default()).unwrap_or_default();
    let note = |key: &str| {
        let notes = config.get("annotations");
        notes
            .and_then(|notes| notes.get(key)?.as_str())
            .unwrap_or("")
    };
    let pod = note("io.kubernetes.cri.sandbox-name");
    if pod.is_empty() {
        return Some(container.named([note("nerdctl/name").to_owned()]));
    }
    let is_sandbox = note("io.kubernetes.cri.container-type") == "sandbox";
    let own = match is_sandbox {
        true => "",
        false => note("io.kubernetes.cri.container-name"),
    };
    let names = names_in_pod(note("io.kubernetes.cri.sandbox-namespace"), pod, own);
    Some(Container {
        is_sandbox,
        ..container.named(names)
    })
}
