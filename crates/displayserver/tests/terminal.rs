//! Programs on pseudo-terminals over TELNET: what they say reaches a display as they said it, and what is typed reaches them.

use stackline_display::symbols::Limits;
use stackline_displayserver::address::Address;
use stackline_displayserver::listener::Listener;
use stackline_displayserver::server::Server;
use stackline_displayserver::terminal;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

fn terminals(program: &[&str]) -> Address {
    let listener = Listener::at(&Address::Tcp("127.0.0.1:0".into())).expect("it is there");
    let address = listener.address();
    let program: Vec<String> = program.iter().map(|&word| word.to_owned()).collect();
    thread::spawn(move || terminal::serve(&listener, &program, |_| {}));
    address
}

fn connect(address: &Address) -> TcpStream {
    let stream = TcpStream::connect(address.to_string()).expect("it is there");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("it is there");
    stream
}

/// What comes until it holds that.
fn until(stream: &mut TcpStream, wanted: &[u8]) -> Vec<u8> {
    let (mut all, mut piece) = (Vec::new(), [0; 1000]);
    while !all.windows(wanted.len()).any(|window| window == wanted) {
        let count = stream.read(&mut piece).unwrap_or_else(|error| panic!("{error}: {all:?}"));
        assert!(count > 0, "it ended: {}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&piece[..count]);
    }
    all
}

#[test]
fn a_person_without_options_gets_a_terminal_with_ends_of_lines() {
    let mut stream = connect(&terminals(&["sh", "-c", "read a; echo got $a"]));
    // WONT and DONT to all that is offered: no echo is agreed on, and the kernel's terminal echoes by itself.
    until(&mut stream, &[255, 251, 3]);
    stream.write_all(&[255, 254, 1, 255, 254, 3]).unwrap();
    stream.write_all(b"hello\r\n").unwrap();
    until(&mut stream, b"got hello\r\n");
}

#[test]
fn an_interrupt_reaches_the_program_and_somebody_is_there() {
    let mut stream = connect(&terminals(&[
        "sh",
        "-c",
        "stty raw; trap 'echo caught; exit' INT; echo ready; while :; do sleep 0.05; done",
    ]));
    stream.write_all(&[255, 253, 1, 255, 253, 3]).unwrap();
    until(&mut stream, b"ready");
    stream.write_all(&[255, 246]).unwrap();
    until(&mut stream, b"[yes]");
    stream.write_all(&[255, 244]).unwrap();
    until(&mut stream, b"caught");
}

#[test]
fn keys_of_the_terminal_erase_what_was_typed() {
    let mut stream = connect(&terminals(&["sh", "-c", "read a; echo got $a"]));
    stream.write_all(&[255, 253, 1, 255, 253, 3]).unwrap();
    stream.write_all(b"wrong\xff\xf8rigt\xff\xf7ht\r\n").unwrap();
    until(&mut stream, b"got right");
}

#[test]
fn options_that_are_asked_for_again_and_again_are_answered_and_change_nothing() {
    let mut stream = connect(&terminals(&["sh", "-c", "read a; echo got $a"]));
    let loops: Vec<u8> = [255, 251, 1, 255, 253, 24, 255, 250, 24, 1, 2].repeat(2000);
    stream.write_all(&[255, 253, 1, 255, 253, 3]).unwrap();
    stream.write_all(&loops).unwrap();
    // The subnegotiation that never ended ends here.
    stream.write_all(&[255, 240]).unwrap();
    stream.write_all(b"x\r\n").unwrap();
    until(&mut stream, b"got x");
}

#[test]
fn a_display_gets_every_byte_of_a_program_and_answers_it() {
    let directory = std::env::temp_dir().join(format!("stackline-terminal-{}", std::process::id()));
    let display = Address::Unix(directory);
    let server = Server::new(Limits::default(), Vec::new());
    server.listen(Listener::at(&display).unwrap(), |_| {});
    // Hello, a window whose title holds every byte but 0, and Sync; then the answers as numbers.
    let program = r#"
import os, struct, sys, termios, tty
tty.setraw(0)
title = bytes(range(1, 256))
hello = bytes([1, 0, 0, 10]) + b"VGTP" + struct.pack(">H", 1)
window = struct.pack(">BBH", 9, 0, 4 + 8 + len(title)) + struct.pack(">IHH", 1, 5, 5) + title
os.write(1, hello + window + struct.pack(">BBHI", 14, 0, 8, 0x0d0aff0d))
got = b""
while len(got) < 18 + 40:
    got += os.read(0, 100)
sys.stderr.write(got.hex())
os.write(1, b"")
open(sys.argv[1], "w").write(got.hex())
"#;
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3");
        return;
    }
    for typed in [false, true] {
        let said = std::env::temp_dir().join(format!("stackline-terminal-said-{}-{typed}", std::process::id()));
        let terminal = terminals(&["python3", "-c", program, &said.display().to_string()]);
        terminal::attach(&terminal, &display, typed).unwrap();
        let got = std::fs::read_to_string(&said).unwrap();
        let _ = std::fs::remove_file(&said);
        // Welcome, then the answer to Sync with its token: end of line, return and 255 in it.
        assert!(got.starts_with("41") && got.contains("0d0aff0d"), "{got}");
    }
}

#[test]
fn what_is_not_there_is_said() {
    let gone = Address::Tcp("127.0.0.1:1".into());
    let error = terminal::attach(&gone, &gone, false).unwrap_err();
    assert!(error.message.contains("no terminal is served at 127.0.0.1:1"), "{error}");
}

/// Whether a process is there, and no zombie.
fn runs(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z"))
}

#[test]
fn a_program_ends_with_its_connection_and_who_floods_gets_a_terminal_too() {
    let terminals = terminals(&["sh", "-c", "trap '' HUP; echo $$.; sleep 60"]);
    let mut stream = connect(&terminals);
    // More commands than are kept before there is a terminal, and no answer.
    stream.write_all(&[255, 246].repeat(5000)).unwrap();
    let said = String::from_utf8_lossy(&until(&mut stream, b".\r\n")).into_owned();
    let digits: String = said.split(".\r\n").next().unwrap().chars().rev().take_while(char::is_ascii_digit).collect();
    let pid: String = digits.chars().rev().collect();
    assert!(runs(&pid), "{said:?}");
    drop(stream);
    let begun = std::time::Instant::now();
    while runs(&pid) {
        assert!(begun.elapsed() < Duration::from_secs(10), "the program outlives its connection");
        thread::sleep(Duration::from_millis(10));
    }
}
