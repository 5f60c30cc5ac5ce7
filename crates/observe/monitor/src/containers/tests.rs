//! Runtimes by what they keep in a directory; none of them runs.

use super::list::{ContainerList, ContainerPlaces};
use super::{Container, ContainerRuntime, docker};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn id(begin: &str) -> String {
    format!("{begin}{}", "0".repeat(64 - begin.len()))
}

fn put(at: &Path, path: &str, text: &str) {
    let path = at.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A machine on which those processes run, without control groups.
fn machine(pids: &[u32]) -> TempDir {
    let at = tempfile::tempdir().unwrap();
    put(at.path(), "proc/self/mountinfo", "");
    for pid in pids {
        put(at.path(), &format!("proc/{pid}/cgroup"), "0::/\n");
    }
    at
}

fn docker(at: &Path, id: &str, name: &str, running: Option<u32>) {
    let config = serde_json::json!({
        "ID": id, "Name": format!("/{name}"),
        "State": {"Running": running.is_some(), "Pid": running.unwrap_or(0)},
    });
    let file = format!("var/lib/docker/containers/{id}/config.v2.json");
    put(at, &file, &config.to_string());
}

fn read(at: &TempDir) -> ContainerList {
    ContainerList::read(ContainerPlaces::at(at.path()))
}

fn found(list: &ContainerList, word: &str) -> Container {
    list.find(word).unwrap().clone()
}

fn refused(list: &ContainerList, word: &str) -> (String, String) {
    let error = list.find(word).unwrap_err();
    (error.message.clone(), error.hint.clone().unwrap())
}

#[test]
fn containers_of_docker_are_found_by_name_id_and_its_beginning() {
    let at = machine(&[41, 42]);
    docker(at.path(), &id("aa1"), "web", Some(41));
    docker(at.path(), &id("aa2"), "db", Some(42));
    docker(at.path(), &id("bb1"), "old", None);
    docker(at.path(), &id("cc1"), "gone", Some(77));
    let list = read(&at);
    for word in ["web", "/web", "aa1", &id("aa1")] {
        let web = found(&list, word);
        assert_eq!((web.pid, web.short_name()), (Some(41), "web"), "{word}");
        assert_eq!(web.runtime, ContainerRuntime::Docker);
    }
    let (message, hint) = refused(&list, "aa");
    assert!(message.contains("several containers"), "{message}");
    assert!(
        hint.contains("web (docker aa1000000000)") && hint.contains("db"),
        "{hint}"
    );
    for word in ["old", "gone"] {
        let (message, _) = refused(&list, word);
        assert!(
            message.contains(word) && message.contains("is not running"),
            "{message}"
        );
    }
    let (message, hint) = refused(&list, "nginx");
    assert!(message.contains("unknown container nginx"), "{message}");
    assert!(
        hint.contains("web (docker") && hint.contains("old"),
        "{hint}"
    );
}

#[test]
fn where_nothing_is_kept_the_reasons_are_said() {
    let (message, hint) = refused(&read(&machine(&[])), "web");
    assert!(
        message.contains("no container runtime on this machine lists any containers"),
        "{message}"
    );
    for runtime in ["docker", "podman", "containerd"] {
        assert!(hint.contains(&format!("{runtime}: /")), "{hint}");
    }
    assert!(
        hint.contains("--pid") && hint.contains("--cgroup"),
        "{hint}"
    );
}

#[test]
fn containers_of_podman_are_read_from_its_store() {
    let at = machine(&[51]);
    let all = serde_json::json!([
        {"id": id("f1"), "names": ["cache"]}, {"id": id("f2"), "names": ["stopped"]},
    ]);
    let store = "var/lib/containers/storage/overlay-containers/containers.json";
    put(at.path(), store, &all.to_string());
    let running = format!(
        "run/containers/storage/overlay-containers/{}/userdata",
        id("f1")
    );
    put(at.path(), &format!("{running}/pidfile"), "51\n");
    let list = read(&at);
    let cache = found(&list, "cache");
    assert_eq!(
        (cache.pid, cache.runtime),
        (Some(51), ContainerRuntime::Podman)
    );
    assert!(refused(&list, "stopped").0.contains("is not running"));
}

#[test]
fn containers_of_a_pod_have_its_name_too() {
    let at = machine(&[61, 62, 63]);
    let task = "run/containerd/io.containerd.runtime.v2.task";
    for (begin, pid, kind, name) in [
        ("a1", 61, "container", "app"),
        ("a2", 62, "sandbox", ""),
        ("a3", 63, "container", "proxy"),
    ] {
        let annotations = serde_json::json!({"annotations": {
            "io.kubernetes.cri.container-type": kind, "io.kubernetes.cri.container-name": name,
            "io.kubernetes.cri.sandbox-name": "shop", "io.kubernetes.cri.sandbox-namespace": "default",
        }});
        let directory = format!("{task}/k8s.io/{}", id(begin));
        put(
            at.path(),
            &format!("{directory}/init.pid"),
            &pid.to_string(),
        );
        put(
            at.path(),
            &format!("{directory}/config.json"),
            &annotations.to_string(),
        );
    }
    let list = read(&at);
    for word in ["app", "shop/app", "default/shop/app", "a1"] {
        assert_eq!(found(&list, word).pid, Some(61), "{word}");
    }
    assert!(found(&list, "shop").is_sandbox);
}

#[test]
fn a_container_of_docker_is_not_another_one_of_containerd() {
    let at = machine(&[71]);
    docker(at.path(), &id("d1"), "web", Some(71));
    let task = "run/containerd/io.containerd.runtime.v2.task/moby";
    put(at.path(), &format!("{task}/{}/init.pid", id("d1")), "71");
    assert_eq!(read(&at).containers().len(), 1);
}

#[test]
fn a_control_group_shows_a_container_that_no_runtime_does() {
    let at = machine(&[81]);
    let mounts = "30 21 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    put(at.path(), "proc/self/mountinfo", mounts);
    let group = format!("system.slice/docker-{}.scope", id("e1"));
    put(
        at.path(),
        &format!("sys/fs/cgroup/{group}/cgroup.procs"),
        "81\n",
    );
    put(at.path(), "proc/81/cgroup", &format!("0::/{group}\n"));
    let list = read(&at);
    let one = found(&list, "e1");
    assert_eq!((one.pid, one.short_name()), (Some(81), "e10000000000"));
    assert_eq!(
        list.group_directories(&one),
        [format!("sys/fs/cgroup/{group}")]
    );
    assert_eq!(list.name_of_process(81).as_deref(), Some("e10000000000"));
    assert_eq!(list.name_of_process(82), None);
}

#[test]
fn a_process_of_another_control_group_is_not_the_containers() {
    let at = machine(&[]);
    docker(at.path(), &id("b1"), "web", Some(91));
    let other = format!("0::/system.slice/docker-{}.scope\n", id("b2"));
    put(at.path(), "proc/91/cgroup", &other);
    assert!(refused(&read(&at), "web").0.contains("is not running"));
}

/// Answers as the socket does, until nobody asks any more.
fn serve(at: &Path, answers: Vec<(String, String)>) -> std::thread::JoinHandle<()> {
    let socket = at.join("run/docker.sock");
    fs::create_dir_all(socket.parent().unwrap()).unwrap();
    let listener = UnixListener::bind(socket).unwrap();
    std::thread::spawn(move || {
        for (path, body) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 512];
            let length = stream.read(&mut asked).unwrap();
            let asked = String::from_utf8_lossy(&asked[..length]).into_owned();
            assert!(
                asked.starts_with(&format!("GET {path} HTTP/1.0")),
                "{asked}"
            );
            write!(stream, "HTTP/1.0 200 OK\r\nServer: Docker\r\n\r\n{body}").unwrap();
        }
    })
}

#[test]
fn where_the_directory_is_elsewhere_the_socket_is_asked() {
    let at = machine(&[95]);
    let one = id("ab");
    let about = serde_json::json!({
        "Id": one, "Name": "/web", "State": {"Running": true, "Pid": 95},
    });
    let server = serve(
        at.path(),
        vec![
            (
                "/containers/json?all=1".into(),
                format!(r#"[{{"Id":"{one}"}},{{"Id":"../x"}}]"#),
            ),
            (format!("/containers/{one}/json"), about.to_string()),
        ],
    );
    let list = read(&at);
    assert_eq!(found(&list, "web").pid, Some(95));
    server.join().unwrap();
}

/// What is said of a socket whose answer `writes` writes.
fn refused_answer(writes: impl FnOnce(UnixStream) + Send + 'static) -> String {
    let at = tempfile::tempdir().unwrap();
    let socket = at.path().join("docker.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _asked = stream.read(&mut [0; 512]).unwrap();
        writes(stream);
    });
    docker::of_socket(&socket, ContainerRuntime::Docker).unwrap_err()
}

#[test]
fn a_socket_that_does_not_answer_as_a_runtime_is_refused() {
    for (answer, why) in [
        ("hello", "invalid data"),
        ("HTTP/1.0 500 No\r\n\r\n[]", "it answered HTTP/1.0 500 No"),
        ("HTTP/1.0 200 OK\r\n\r\n[", "EOF while parsing"),
    ] {
        let refused = refused_answer(|mut stream| stream.write_all(answer.as_bytes()).unwrap());
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn an_answer_of_a_socket_that_never_ends_or_is_too_large_is_refused() {
    let begins = b"HTTP/1.0 200 OK\r\n\r\n[";
    let begun = Instant::now();
    let silent = refused_answer(|mut stream| {
        stream.write_all(begins).unwrap();
        // Ends when nobody reads any more.
        while stream.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    assert!(silent.contains("docker.sock: "), "{silent}");
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
    let large = refused_answer(|mut stream| {
        stream.write_all(begins).unwrap();
        while stream.write_all(&[b' '; 1 << 16]).is_ok() {}
    });
    assert!(large.contains("EOF while parsing"), "{large}");
}

#[test]
fn what_is_no_state_of_a_runtime_holds_nothing() {
    let at = machine(&[1]);
    let docker = "var/lib/docker/containers";
    for (number, text) in ["", "[]", "{}", r#"{"ID":1,"State":{}}"#, "\u{1}"]
        .iter()
        .enumerate()
    {
        put(
            at.path(),
            &format!("{docker}/{number}/config.v2.json"),
            text,
        );
    }
    put(
        at.path(),
        "run/containerd/io.containerd.runtime.v2.task/moby/x/init.pid",
        "y",
    );
    let list = read(&at);
    assert!(
        list.containers().iter().all(|one| !one.is_running),
        "{list:?}"
    );
}
