//! A private network for raw frames: a process in a network namespace with loopback and the veth pair `near` and `far`.
//! It is gone when the process ends. No rights are needed where users may make namespaces.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "tests, benchmarks and examples each use a part of it"
)]

use std::env;
use std::process::{Command, Output, Stdio};

const INSIDE: &str = "STACKLINE_ROOM";
/// The kernel opens a link's queue a little after both ends are up; frames before that are dropped.
const FURNISH: &str = r#"set -e
ip link set lo up
ip link add near mtu 1500 type veth peer name far mtu 1500
ip link set far up
ip link set near up
for i in $(seq 200); do
    ip link show near | grep -q "state UP" && ip link show far | grep -q "state UP" && exec "$0" "$@"
    sleep 0.02
done
echo "the veth pair does not come up" >&2
exit 1"#;

/// Whether this process is in such a network.
pub fn is_inside() -> bool {
    env::var_os(INSIDE).is_some()
}

/// This program once more, with these arguments, in a network of its own.
///
/// # Errors
/// Why there can be none.
pub fn enter(arguments: &[&str]) -> Result<Command, String> {
    let flag_sets: [&[&str]; 2] = [&["--net"], &["--user", "--map-root-user", "--net"]];
    let works = |flags: &&[&str]| {
        let tried = Command::new("unshare")
            .args(*flags)
            .arg("true")
            .stderr(Stdio::null())
            .status();
        tried.is_ok_and(|status| status.success())
    };
    let flags = flag_sets
        .into_iter()
        .find(works)
        .ok_or("this user may not make network namespaces with `unshare`")?;
    if !Command::new("ip")
        .arg("-V")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
    {
        return Err("there is no `ip` (iproute2)".into());
    }
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new("unshare");
    command
        .args(flags)
        .args(["sh", "-c", FURNISH])
        .arg(program)
        .args(arguments)
        .env(INSIDE, "1");
    Ok(command)
}

/// Runs the body of test `name` in a network of its own; a reason is printed where that cannot be.
///
/// # Panics
/// When the test fails there.
pub fn inside(name: &str, body: fn()) {
    if is_inside() {
        return body();
    }
    let name = name.split_once("::").map_or(name, |(_, rest)| rest);
    let mut command = match enter(&["--exact", name, "--nocapture"]) {
        Ok(command) => command,
        Err(reason) => return println!("left out: {reason}"),
    };
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("unshare was there a moment ago");
    let (stdout, stderr) = (
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr),
    );
    assert!(
        status.success() && stdout.contains("1 passed"),
        "{stdout}\n{stderr}"
    );
}
