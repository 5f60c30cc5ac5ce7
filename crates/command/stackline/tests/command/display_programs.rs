//! `stackline display vserver`, `execute` and `terminal`: programs that draw on a display end with it, fail, or cannot be started.

use crate::support::display::{Served, service};
use crate::support::{Place, until, wait_until};
use nix::sys::signal::Signal;
use std::process::Child;

/// A program that is served by its pipes, and where.
fn v_server(place: &Place, program: &[&str]) -> (Child, String) {
    let serve = ["vserver", "--listen", "ikp:127.0.0.1:0", "--"];
    service(place, &[&serve[..], program].concat())
}

#[test]
fn a_program_ends_with_the_execute_that_is_stopped() {
    let place = Place::new();
    let display = Served::start(&place, &["--listen", "127.0.0.1:0"]);
    let said = place.path("number");
    let (mut server, at) = v_server(
        &place,
        &[
            "sh",
            "-c",
            &format!("echo $$. > {}; exec sleep 60", said.display()),
        ],
    );
    let started =
        place.start(&mut place.command(&["display", "execute", &at, "--to", &display.clients]));
    let number = || {
        std::fs::read_to_string(&said)
            .ok()
            .filter(|text| text.ends_with(".\n"))
    };
    let number = until("the program begins", number);
    let program = format!("/proc/{}", number.trim_end_matches(".\n"));
    started.process().signal(Signal::SIGINT);
    started
        .finish()
        .fails(130, &["interrupted before completion"]);
    wait_until("the program has ended", || {
        !std::path::Path::new(&program).exists()
    });
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn execute_fails_where_its_program_does() {
    let place = Place::new();
    let display = Served::start(&place, &["--listen", "127.0.0.1:0"]);
    let executed = |program: &[&str]| {
        let (mut server, at) = v_server(&place, program);
        let executed = place.stackline(&["display", "execute", &at, "--to", &display.clients]);
        server.kill().unwrap();
        server.wait().unwrap();
        executed
    };
    executed(&["sh", "-c", "exit 3"]).fails(1, &["sh exited with code 3"]);
    executed(&["printf", r"\001\000\000\020VG"]).fails(1, &["ended in the middle of a request"]);
    executed(&["sh", "-c", "kill -KILL $$"]).fails(1, &["sh was killed by signal 9"]);
    let bench = [
        "display",
        "bench",
        "--to",
        "pipe",
        "--trials",
        "1",
        "--picture",
        "text",
    ];
    executed(&[&[env!("CARGO_BIN_EXE_stackline")], &bench[..]].concat()).succeeds();
}

#[test]
fn a_program_that_cannot_be_started_is_not_served() {
    let place = Place::new();
    place.write("text", "no program");
    for serves in ["vserver", "terminal"] {
        let refused = |program: &str| place.stackline(&["display", serves, "--", program]);
        refused("no-such-program")
            .fails(2, &["cannot start no-such-program"])
            .hints("check that it is installed");
        refused("./text")
            .fails(2, &["cannot start ./text: it is not executable"])
            .hints("chmod +x ./text");
    }
}
