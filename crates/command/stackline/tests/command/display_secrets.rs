//! Who may draw on a display and look at it: secrets in files, where they are found, and where they may not be written.

use crate::support::Place;
use crate::support::display::{Served, private, service};
use std::io::{Read, Write};
use std::net::TcpStream;

#[test]
fn a_display_is_served_with_a_page_and_strangers_are_kept_out() {
    let place = Place::new();
    private(&place, "known");
    private(&place, "other");
    let served = Served::start(
        &place,
        &["--listen", "127.0.0.1:0", "--secret-file", "known"],
    );
    let bench = [
        "display",
        "bench",
        "--to",
        &served.clients,
        "--trials",
        "1",
        "--picture",
        "text",
        "--level",
        "batched",
    ];
    place
        .stackline(&bench)
        .fails(1, &["the display closed the connection"])
        .hints("--secret-file");
    let with = |file: &str| place.stackline(&[&bench[..], &["--secret-file", file]].concat());
    with("other").fails(1, &["the display closed the connection"]);
    with("known").succeeds();
    // In the environment, which others of this user can read.
    let mut by_variable = place.command(&bench);
    let by_variable =
        place.finish(by_variable.env("STACKLINE_DISPLAY_SECRET", "the secret of known"));
    assert!(
        by_variable
            .succeeds()
            .err
            .contains("a file (--secret-file) is safer"),
        "{}",
        by_variable.err
    );
    let (host, path) = served
        .page
        .trim_start_matches("http://")
        .split_once('/')
        .unwrap();
    let get = |path: &str| {
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(get(path).starts_with("HTTP/1.1 200") && get(path).contains("stackline display"));
    assert!(get("").starts_with("HTTP/1.1 403") && get("?0").starts_with("HTTP/1.1 403"));
}

/// Without a flag: the first that serves makes a secret that this user's programs find, and no other user can read.
#[test]
fn on_one_machine_everything_finds_its_secret_and_nobody_else_does() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let display = Served::start(&place, &["--listen", "127.0.0.1:0"]);
    let secret = |name: &str| place.path(&format!("configuration/stackline/{name}.secret"));
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(secret("display")), 0o600);
    let trial = ["--trials", "1", "--picture", "text", "--level", "batched"];
    let bench =
        |to: &str| place.stackline(&[&["display", "bench", "--to", to], &trial[..]].concat());
    bench(&display.clients).succeeds();
    let (mut agent, at) = service(
        &place,
        &["agent", "--listen", "127.0.0.1:0", "--to", &display.clients],
    );
    bench(&at).succeeds();
    let (mut internet, through) = service(&place, &["internet", "--listen", "ikp:127.0.0.1:0"]);
    assert_eq!(mode(secret("internet")), 0o600);
    let server = through.split_once('/').unwrap().0.to_owned();
    bench(&format!("{server}/{}", display.clients)).succeeds();
    for at in ["127.0.0.1:0", "pup:127.0.0.1:0", "unix:terminal"] {
        let (mut terminal, at) = service(&place, &["terminal", "--listen", at, "--", "sh"]);
        let mut started = place.start(&mut place.command(&["display", "telnet", &at]));
        started.say(b"echo $((6*7))\nexit\n");
        let said = started.finish();
        assert!(said.succeeds().out.contains("42"), "{at}: {}", said.out);
        terminal.kill().unwrap();
        terminal.wait().unwrap();
    }
    assert_eq!(mode(secret("terminal")), 0o600);
    // Somebody else, who has none of these files.
    let stranger = Place::new();
    let without = |words: &[&str]| stranger.stackline(&[&["display"], words].concat());
    without(&[&["bench", "--to", &display.clients], &trial[..]].concat())
        .fails(1, &["the display closed the connection"]);
    let by_server = format!("{server}/{}", display.clients);
    without(&[&["bench", "--to", &by_server], &trial[..]].concat())
        .fails(3, &["the secret does not match"])
        .hints("internet.secret");
    for process in [agent.id(), internet.id(), display.child.id()] {
        let words = std::fs::read(format!("/proc/{process}/cmdline")).unwrap();
        let known = std::fs::read(secret("display")).unwrap();
        assert!(!words.windows(32).any(|window| window == &known[..32]));
    }
    for child in [&mut agent, &mut internet] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn a_secret_is_no_argument() {
    let place = Place::new();
    for words in [
        &["serve", "--secret", "s"][..],
        &["bench", "--secret", "s"],
        &["telnet", "--secret", "s"],
    ] {
        let refused = place.stackline(&[&["display"], words].concat());
        assert!(
            refused.status.code() == Some(2) && refused.err.contains("unexpected argument"),
            "{}",
            refused.err
        );
    }
    let refused = place.stackline(&[
        "display",
        "bench",
        "--to",
        "vio:word@127.0.0.1:1/127.0.0.1:2",
    ]);
    assert!(
        refused.status.code() == Some(2) && refused.err.contains("from a file or the environment"),
        "{}",
        refused.err
    );
    place.write("short", "short\n");
    let short = [
        "display",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--secret-file",
        "short",
    ];
    place
        .stackline(&short)
        .fails(2, &["the secret is too short: its length is 5"])
        .hints("8 to");
}
