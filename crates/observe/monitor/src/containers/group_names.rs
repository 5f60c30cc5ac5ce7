//! Recognises containers by the names of their control groups: `docker-ID.scope` and similar names if systemd makes the groups, the
//! bare ID if the runtime does.

use super::ContainerRuntime;

/// The number of hexadecimal digits of an ID.
const LENGTH: usize = 64;
/// The prefixes by which runtimes name the groups that systemd makes.
const PREFIXES: [(&str, ContainerRuntime); 5] = [
    ("docker-", ContainerRuntime::Docker),
    ("libpod-", ContainerRuntime::Podman),
    ("crio-", ContainerRuntime::CriO),
    ("cri-containerd-", ContainerRuntime::Containerd),
    ("nerdctl-", ContainerRuntime::Containerd),
];

/// The container of a control group's path: its runtime, its ID, and the path down to the container's topmost group.
pub(super) fn container_of(path: &str) -> Option<(ContainerRuntime, &str, &str)> {
    let mut end = 0;
    let mut above = "";
    for part in path.split('/') {
        end += part.len();
        if let Some((runtime, id)) = container_of_part(above, part) {
            return Some((runtime, id, &path[..end]));
        }
        above = part;
        end += 1;
    }
    None
}

/// The container of one part of a path; `above`: the part before it.
fn container_of_part<'p>(above: &str, part: &'p str) -> Option<(ContainerRuntime, &'p str)> {
    let name = part.strip_suffix(".scope").unwrap_or(part);
    for (prefix, runtime) in PREFIXES {
        if let Some(id) = name.strip_prefix(prefix).filter(|id| is_id(id)) {
            return Some((runtime, id));
        }
    }
    let runtime = match above {
        "docker" => ContainerRuntime::Docker,
        _ => ContainerRuntime::Containerd,
    };
    is_id(name).then_some((runtime, name))
}

fn is_id(text: &str) -> bool {
    text.len() == LENGTH && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_runtimes_are_recognised() {
        let id = "0123456789abcdef".repeat(4);
        for (path, runtime) in [
            ("/system.slice/docker-ID.scope", ContainerRuntime::Docker),
            ("/docker/ID", ContainerRuntime::Docker),
            (
                "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope/container",
                ContainerRuntime::Podman,
            ),
            ("/libpod_parent/libpod-ID", ContainerRuntime::Podman),
            (
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/cri-containerd-ID.scope",
                ContainerRuntime::Containerd,
            ),
            (
                "/kubepods.slice/crio-ID.scope/init.scope",
                ContainerRuntime::CriO,
            ),
            (
                "/kubepods/besteffort/pod1-2-3/ID",
                ContainerRuntime::Containerd,
            ),
            ("/default/ID", ContainerRuntime::Containerd),
        ] {
            let path = path.replace("ID", &id);
            let (found, of, top) = container_of(&path).unwrap();
            assert_eq!((found, of), (runtime, id.as_str()), "{path}");
            let end = path.find(&id).unwrap() + id.len();
            assert!(
                path.starts_with(top)
                    && top.len() >= end
                    && !path[..top.len()].ends_with("container")
            );
        }
        let monitor = format!("/machine.slice/libpod-conmon-{id}.scope");
        for path in [
            "/",
            "",
            "/system.slice/nginx.service",
            "/docker/web",
            &monitor,
        ] {
            assert!(container_of(path).is_none(), "{path}");
        }
    }
}
