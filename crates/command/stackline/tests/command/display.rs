//! `stackline display` without measuring: the page brought to another machine, what cannot be served or reached, interruptions.

use crate::support::Place;
use crate::support::display::{Served, private};
use nix::sys::signal::Signal;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Stdio;
use std::time::Duration;

#[test]
fn a_page_that_is_brought_here_says_all_it_has_to_say() {
    let place = Place::new();
    let served = Served::start(&place, &["--listen", "unix:socket"]);
    let (from, token) = served
        .page
        .trim_start_matches("http://")
        .split_once("/?")
        .unwrap();
    // Every user of this machine could read it there.
    let with_token = format!("{from}?{token}");
    let refused = place.stackline(&["display", "view", &with_token, "--listen", "127.0.0.1:0"]);
    refused
        .fails(2, &["do not pass the page secret"])
        .hints("the address opened in the browser");
    let mut child = place
        .command(&["display", "view", from, "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    let (host, path) = first
        .split_once("http://")
        .unwrap()
        .1
        .trim()
        .split_once('/')
        .unwrap();
    assert_eq!(path, "?SECRET");
    let path = &format!("?{token}");
    let get = |path: &str, more: &str| {
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(get(path, "").starts_with("HTTP/1.1 200 "));
    // What the display refuses is not read to its end.
    let long = get(path, &format!("X: {}\r\n", "x".repeat(600_000)));
    assert!(
        long.starts_with("HTTP/1.1 431 ") && long.ends_with("longer than 8192 bytes\n"),
        "{long}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn what_cannot_be_served_is_refused_with_what_can() {
    let place = Place::new();
    private(&place, "configuration/stackline/display.secret");
    let serve = |listen: &str| {
        place.stackline(&[
            "display",
            "serve",
            "--view",
            "127.0.0.1:0",
            "--listen",
            listen,
        ])
    };
    let unread = serve("nowhere");
    assert!(
        unread.status.code() == Some(2) && unread.err.contains("HOST:PORT"),
        "{}",
        unread.err
    );
    serve("unix:/no/such/place/socket")
        .fails(3, &["cannot listen"])
        .hints("another address");
    place
        .stackline(&["display", "bench", "--to", "127.0.0.1:1"])
        .fails(3, &["no display answers"])
        .hints("display serve");
    for to in ["no-such-host.invalid:1", "pupp:127.0.0.1:1"] {
        let bench = ["display", "bench", "--to", to];
        place
            .stackline(&bench)
            .fails(3, &["cannot resolve the host of", to])
            .hints("pup:, blast:, ngp: or vio:HOST:PORT/");
    }
    place
        .stackline(&["display", "view", "unix:gone"])
        .fails(3, &["no display answers"])
        .hints("--view unix:gone`");
    // The command that serves what is not there, whatever it would be reached by.
    for (to, hint) in [
        (
            "ngp:127.0.0.1:1",
            "`stackline display serve --listen ngp:127.0.0.1:1`",
        ),
        (
            "pup:127.0.0.1:1",
            "`stackline display serve --listen pup:127.0.0.1:1`",
        ),
        (
            "blast:127.0.0.1:1",
            "`stackline display serve --listen blast:127.0.0.1:1`",
        ),
        (
            "ikp:127.0.0.1:1",
            "`stackline display serve --listen ikp:127.0.0.1:1`",
        ),
    ] {
        place
            .stackline(&["display", "bench", "--to", to])
            .fails(3, &["no display answers at", to])
            .hints(hint);
    }
    let through = "vio:127.0.0.1:1/127.0.0.1:2";
    for words in [&["bench", "--to", through][..], &["telnet", through]] {
        let words = [&["display"], words].concat();
        place
            .stackline(&words)
            .fails(3, &["no internet server answers at ikp:127.0.0.1:1"])
            .hints("display internet");
    }
    let telnet = place.stackline(&["display", "telnet", "pup:127.0.0.1:1"]);
    telnet
        .fails(3, &["no terminal is served at pup:127.0.0.1:1"])
        .hints("--listen pup:127.0.0.1:1 -- PROGRAM`");
    let both = place.stackline(&["display", "bench", "--png", "x", "--to", "127.0.0.1:1"]);
    assert!(
        both.status.code() == Some(2) && both.err.contains("cannot be used"),
        "{}",
        both.err
    );
}

#[test]
fn who_waits_for_a_display_that_says_nothing_is_interrupted_at_once() {
    let place = Place::new();
    let (listener, silent) = (
        TcpListener::bind("127.0.0.1:0").unwrap(),
        UdpSocket::bind("127.0.0.1:0").unwrap(),
    );
    silent
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let interrupted = |words: &[&str], waits: &mut dyn FnMut()| {
        let started = place.start(&mut place.command(words));
        waits();
        started.process().signal(Signal::SIGINT);
        started.finish()
    };
    let tcp = listener.local_addr().unwrap().to_string();
    let mut connections = Vec::new();
    let mut hello = || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 10]).unwrap();
        connections.push(stream);
    };
    interrupted(&["display", "bench", "--to", &tcp], &mut hello)
        .fails(130, &["interrupted before completion"]);
    let [pup, ikp] = ["pup", "ikp"].map(|kind| format!("{kind}:{}", silent.local_addr().unwrap()));
    let mut asked = || assert!(silent.recv(&mut [0; 2000]).unwrap() > 0);
    interrupted(&["display", "bench", "--to", &pup], &mut asked)
        .fails(130, &["interrupted before completion"]);
    let display = Served::start(&place, &["--listen", "127.0.0.1:0"]);
    let executes = ["display", "execute", &ikp, "--to", &display.clients];
    interrupted(&executes, &mut asked).fails(130, &["interrupted before completion"]);
}
