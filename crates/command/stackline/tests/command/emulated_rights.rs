//! Who may emulate networks, and what a machine that forbids it, or has too few files for it, is said to lack.

use crate::support::emulated::Net;
use crate::support::{has_program, program, said, skip};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt;
use std::process::Command;

#[test]
fn without_files_for_its_hosts_it_is_refused() {
    let Some(net) = Net::pair("limit") else {
        return;
    };
    let hosts: Vec<String> = (0..60).map(|number| format!("h{number}")).collect();
    let links: String = hosts
        .iter()
        .map(|host| format!("link {host} - hub 1 Gbit/s 1 ms; "))
        .collect();
    net.place.write(
        "net.stackline",
        format!(
            "network l {{ host {}; switch hub; {links} }}",
            hosts.join(", ")
        ),
    );
    let script = format!(
        "ulimit -n 100; exec {} net exec net.stackline h0 -- true",
        program()
    );
    let ended = Command::new("sh")
        .args(["-c", &script])
        .current_dir(net.place.path(""))
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(3), "{}", said(&ended));
    assert!(
        said(&ended).contains("60 emulated hosts need 248 file descriptors, but the limit is 100"),
        "{}",
        said(&ended)
    );
    assert!(
        said(&ended)
            .trim_end()
            .ends_with("hint: use `ulimit -Hn 248`"),
        "{}",
        said(&ended)
    );
}

#[test]
fn the_setting_that_forbids_it_is_named() {
    let Some(net) = Net::pair("forbidden") else {
        return;
    };
    if !has_program("unshare", "util-linux") {
        return;
    }
    let arguments = format!("{} net exec net.stackline khons -- true", program());
    let script = format!("echo 0 > /proc/sys/user/max_net_namespaces && exec {arguments}");
    let inside = net.place.path("");
    let ended = Command::new("unshare")
        .args(["-Ur", "sh", "-c", &script])
        .current_dir(inside)
        .output()
        .unwrap();
    if said(&ended).contains("unshare: ") {
        return skip(said(&ended));
    }
    assert_eq!(ended.status.code(), Some(3), "{}", said(&ended));
    assert!(
        said(&ended).contains("which sysctl user.max_net_namespaces=0 forbids"),
        "{}",
        said(&ended)
    );
    assert!(
        said(&ended).contains("lift the restriction: sysctl -w user.max_net_namespaces="),
        "{}",
        said(&ended)
    );
}

#[test]
fn root_of_a_user_namespace_with_one_group_may_emulate() {
    let Some(net) = Net::pair("restricted") else {
        return;
    };
    if !has_program("unshare", "util-linux") {
        return;
    }
    let script = format!("exec {} net exec net.stackline khons -- true", program());
    let inside = net.place.path("");
    let ended = Command::new("unshare")
        .args(["-Ur", "sh", "-c", &script])
        .current_dir(inside)
        .output()
        .unwrap();
    if said(&ended).contains("unshare: ") {
        return skip(said(&ended));
    }
    assert_eq!(ended.status.code(), Some(0), "{}", said(&ended));
    net.place.empties();
}

#[test]
fn anybody_may_emulate() {
    // Where this user is not root, all the other tests show it.
    if !nix::unistd::getuid().is_root() {
        return;
    }
    let Some(net) = Net::pair("anybody") else {
        return;
    };
    let text = format!("{} # as nobody", net.text);
    // Others may not be allowed to enter the directory in which it was built.
    fs::set_permissions(net.place.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(net.place.install(program(), "stackline"));
    command.args([
        "net",
        "exec",
        "-e",
        &text,
        "khons",
        "--",
        "sh",
        "-c",
        "id -u; grep CapAmb /proc/self/status",
    ]);
    let ended = command
        .uid(65534)
        .gid(65534)
        .current_dir("/")
        .output()
        .unwrap();
    if ended.status.code() == Some(3) {
        return skip(said(&ended));
    }
    let seen = said(&ended);
    assert_eq!(
        seen.split_whitespace().collect::<Vec<_>>(),
        ["65534", "CapAmb:", "0000000000003400"],
        "{seen}"
    );
}
