//! `blocks gateway`: where it listens, what it says without a master, how it ends.

use crate::support::Place;
use nix::sys::signal::Signal;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

#[test]
fn it_serves_until_it_is_ended() {
    let place = Place::new();
    // Nobody listens at port 1.
    let mut command = place.command(&[
        "blocks",
        "gateway",
        "--listen",
        "127.0.0.1:0",
        "--master",
        "127.0.0.1:1",
    ]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let address = line
        .trim()
        .strip_prefix("http://")
        .unwrap()
        .trim_end_matches('/');
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 503 ") && answer.contains("127.0.0.1:1"),
        "{answer}"
    );
    let mut said = String::new();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    errors.read_line(&mut said).unwrap();
    assert!(
        said.contains("127.0.0.1:1") && said.contains("answered with 503"),
        "{said}"
    );
    let process = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(process, Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    errors.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
}

#[test]
fn what_it_cannot_listen_at_is_said() {
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = place.stackline(&["blocks", "gateway", "--listen", &address]);
    refused
        .fails(3, &["cannot listen on", &address])
        .hints("--listen");
}
