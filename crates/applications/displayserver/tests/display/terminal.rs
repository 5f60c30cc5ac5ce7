//! Programs on pseudo-terminals over TELNET: what they say reaches a display as they said it, and what is typed reaches them.

use crate::common;
use rustix::net::{SendFlags, send};
use stackline_display::symbols::DisplayClientLimits;
use stackline_displayserver::address::DisplayAddress;
use stackline_displayserver::listener::DisplayListener;
use stackline_displayserver::server::DisplayServer;
use stackline_displayserver::terminal;
use stackline_testing::wait_until;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

fn terminals(program: &[impl ToString]) -> DisplayAddress {
    common::terminals("127.0.0.1:0", program)
}

/// Answers options like that, and says the secret.
fn enters(stream: &mut (impl Read + Write), answers: &[u8]) {
    stream.write_all(answers).unwrap();
    until(stream, b"secret: ");
    stream.write_all(&[common::WORD, b"\r\n"].concat()).unwrap();
    until(stream, b"\r\n");
}

fn connect(address: &DisplayAddress) -> TcpStream {
    let stream = TcpStream::connect(address.to_string()).expect("it is there");
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .expect("it is there");
    stream
}

/// What comes until it holds that.
fn until(stream: &mut impl Read, wanted: &[u8]) -> Vec<u8> {
    let (mut all, mut piece) = (Vec::new(), [0; 1000]);
    while !all.windows(wanted.len()).any(|window| window == wanted) {
        let count = stream
            .read(&mut piece)
            .unwrap_or_else(|error| panic!("{error}: {all:?}"));
        assert!(count > 0, "it ended: {}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&piece[..count]);
    }
    all
}

#[test]
fn a_person_without_options_gets_a_terminal_with_ends_of_lines() {
    let mut stream = connect(&terminals(&["sh", "-c", "read a; echo got $a"]));
    // WONT and DONT to all that is offered: no echo is agreed on.
    until(&mut stream, &[255, 251, 3]);
    enters(&mut stream, &[255, 254, 1, 255, 254, 3]);
    stream.write_all(b"hello\r\n").unwrap();
    until(&mut stream, b"got hello\r\n");
}

#[test]
fn a_person_sees_what_a_program_says_on_standard_error() {
    let mut stream = connect(&terminals(&[
        "sh",
        "-c",
        "test -t 2 && echo seen >&2; sleep 1",
    ]));
    enters(&mut stream, &[255, 253, 1, 255, 253, 3]);
    until(&mut stream, b"seen\r\n");
}

#[test]
fn an_interrupt_reaches_the_program_and_somebody_is_there() {
    let mut stream = connect(&terminals(&[
        "sh",
        "-c",
        "stty raw; trap 'echo caught; exit' INT; echo ready; while :; do sleep 0.05; done",
    ]));
    enters(&mut stream, &[255, 253, 1, 255, 253, 3]);
    until(&mut stream, b"ready");
    stream.write_all(&[255, 246]).unwrap();
    until(&mut stream, b"[yes]");
    stream.write_all(&[255, 244]).unwrap();
    until(&mut stream, b"caught");
}

/// RFC 854's Synch, RFC 1123 3.2.4.
#[test]
fn what_is_typed_before_an_urgent_mark_is_dropped_and_nothing_behind_it() {
    let mut stream = connect(&terminals(&[
        "sh",
        "-c",
        "echo ready; read a; echo got $a.; read a; echo then $a.",
    ]));
    enters(&mut stream, &[255, 253, 1, 255, 253, 3]);
    until(&mut stream, b"ready");
    send(&stream, b"junk\xff\xf2", SendFlags::OOB).unwrap();
    stream.write_all(b"hello\r\n").unwrap();
    until(&mut stream, b"got hello.");
    // A mark that is not urgent drops nothing.
    stream.write_all(b"well\xff\xf2come\r\n").unwrap();
    until(&mut stream, b"then wellcome.");
}

#[test]
fn what_waits_for_a_program_that_does_not_read_is_dropped_by_an_urgent_mark() {
    let begins =
        std::env::temp_dir().join(format!("stackline-terminal-begins-{}", std::process::id()));
    let program = format!(
        "stty -echo; echo ready; while [ ! -e {} ]; do sleep 0.05; done; cat",
        begins.display()
    );
    let mut stream = connect(&terminals(&["sh", "-c", &program]));
    enters(&mut stream, &[255, 253, 1, 255, 253, 3]);
    until(&mut stream, b"ready");
    // More than a terminal holds.
    stream.write_all(&b"old line\r\n".repeat(5000)).unwrap();
    stream.write_all(&[255, 246]).unwrap();
    until(&mut stream, b"[yes]");
    // Its two bytes one by one.
    stream.write_all(b"\xff").unwrap();
    thread::sleep(Duration::from_millis(50));
    send(&stream, b"\xf2", SendFlags::OOB).unwrap();
    stream.write_all(&[255, 246]).unwrap();
    until(&mut stream, b"[yes]");
    std::fs::write(&begins, "").unwrap();
    stream.write_all(b"new line\r\n").unwrap();
    let came = until(&mut stream, b"new line");
    std::fs::remove_file(&begins).unwrap();
    assert!(
        !came.windows(3).any(|word| word == b"old"),
        "{}",
        String::from_utf8_lossy(&came)
    );
}

/// RFC 1073.
#[test]
fn a_terminal_is_as_large_as_the_other_end_says() {
    let mut stream = connect(&terminals(&["sh", "-c", "stty size; read a; stty size"]));
    enters(
        &mut stream,
        b"\xff\xfd\x01\xff\xfb\x1f\xff\xfa\x1f\x00\x61\x00\x21\xff\xf0\xff\xfd\x03",
    );
    until(&mut stream, b"33 97");
    stream
        .write_all(b"\xff\xfa\x1f\x00\x50\x00\x18\xff\xf0x\r\n")
        .unwrap();
    until(&mut stream, b"24 80");
}

#[test]
fn keys_of_the_terminal_erase_what_was_typed() {
    let mut stream = connect(&terminals(&["sh", "-c", "read a; echo got $a"]));
    enters(&mut stream, &[255, 253, 1, 255, 253, 3]);
    stream
        .write_all(b"wrong\xff\xf8rigt\xff\xf7ht\r\n")
        .unwrap();
    until(&mut stream, b"got right");
}

/// What is typed comes back where the other end wants that, and not where it does not (RFC 857).
#[test]
fn a_terminal_echoes_as_long_as_the_other_end_wants_it() {
    let mut stream = connect(&terminals(&["cat"]));
    enters(&mut stream, &[255, 253, 1, 255, 253, 3]);
    stream.write_all(b"once\r\n").unwrap();
    until(&mut stream, b"once\r\nonce\r\n");
    stream.write_all(&[255, 254, 1]).unwrap();
    until(&mut stream, &[255, 252, 1]);
    stream.write_all(b"alone\r\n").unwrap();
    let seen = until(&mut stream, b"alone\r\n");
    assert_eq!(seen, b"alone\r\n");
    stream.write_all(&[255, 253, 1]).unwrap();
    until(&mut stream, &[255, 251, 1]);
    stream.write_all(b"again\r\n").unwrap();
    until(&mut stream, b"again\r\nagain\r\n");
}

#[test]
fn options_that_are_asked_for_again_and_again_are_answered_and_change_nothing() {
    let mut stream = connect(&terminals(&["sh", "-c", "read a; echo got $a"]));
    let loops: Vec<u8> = [255, 251, 1, 255, 253, 24, 255, 250, 24, 1, 2].repeat(2000);
    enters(&mut stream, &[255, 253, 1, 255, 253, 3]);
    stream.write_all(&loops).unwrap();
    // The subnegotiation that never ended ends here.
    stream.write_all(&[255, 240]).unwrap();
    stream.write_all(b"x\r\n").unwrap();
    until(&mut stream, b"got x");
}

#[test]
fn a_display_gets_every_byte_of_a_program_and_answers_it() {
    let directory = std::env::temp_dir().join(format!("stackline-terminal-{}", std::process::id()));
    let display = DisplayAddress::Unix(directory);
    let server = DisplayServer::new(DisplayClientLimits::default(), Vec::new());
    server.listen(DisplayListener::at(&display).unwrap(), |_| {});
    // Hello, a window whose title holds every byte but 0, and Sync; then the answers as numbers.
    let program = r#"
import os, struct, sys, termios, tty
tty.setraw(0)
title = bytes(range(1, 256))
hello = bytes([1, 0, 0, 10]) + b"VGTP" + struct.pack(">H", 2)
window = struct.pack(">BBH", 9, 0, 4 + 8 + len(title)) + struct.pack(">IHH", 1, 5, 5) + title
os.write(1, hello + window + struct.pack(">BBHI", 14, 0, 8, 0x0d0aff0d))
got = b""
while len(got) < 18 + 40:
    got += os.read(0, 100)
sys.stderr.write(got.hex())
os.write(1, b"")
open(sys.argv[1], "w").write(got.hex())
"#;
    if !stackline_testing::has_program("python3", "python3") {
        return;
    }
    for typed in [false, true] {
        let said = std::env::temp_dir().join(format!(
            "stackline-terminal-said-{}-{typed}",
            std::process::id()
        ));
        let terminal = terminals(&["python3", "-c", program, &said.display().to_string()]);
        terminal::attach(&terminal, &display, Some(&common::word()), typed).unwrap();
        let got = std::fs::read_to_string(&said).unwrap();
        let _ = std::fs::remove_file(&said);
        // Welcome, then the answer to Sync with its token: end of line, return and 255 in it.
        assert!(got.starts_with("41") && got.contains("0d0aff0d"), "{got}");
    }
}

#[test]
fn what_is_not_there_is_said() {
    let gone = DisplayAddress::Tcp("127.0.0.1:1".into());
    let error = terminal::attach(&gone, &gone, None, false).unwrap_err();
    assert!(
        error
            .message
            .contains("no terminal is served at 127.0.0.1:1"),
        "{error}"
    );
}

#[test]
fn a_program_ends_with_its_connection_and_who_floods_gets_a_terminal_too() {
    let terminals = terminals(&["sh", "-c", "trap '' HUP; echo $$.; sleep 60"]);
    let mut stream = connect(&terminals);
    enters(&mut stream, &[255, 254, 1, 255, 254, 3]);
    stream.write_all(&[255, 246].repeat(5000)).unwrap();
    let pid = common::number(&String::from_utf8_lossy(&until(&mut stream, b".\r\n")));
    assert!(common::runs(&pid), "{pid:?}");
    drop(stream);
    common::has_ended(&pid, "without its connection");
}

/// As a shell's jobs do, which are groups of their own and have the terminal still.
#[test]
fn what_a_program_began_keeps_neither_it_nor_its_connection() {
    let begins =
        |then: &str| terminals(&["sh", "-c", &format!("set -m; sleep 20 & echo $$.; {then}")]);
    let mut stream = connect(&begins("exec sleep 60"));
    enters(&mut stream, &[255, 254, 1, 255, 254, 3]);
    let pid = common::number(&String::from_utf8_lossy(&until(&mut stream, b".\r\n")));
    drop(stream);
    // Its place is free once it is waited for.
    common::has_ended(&pid, "without its connection");
    wait_until("it is waited for", || {
        !std::path::Path::new(&format!("/proc/{pid}")).exists()
    });
    let mut stream = connect(&begins("echo last words"));
    enters(&mut stream, &[255, 254, 1, 255, 254, 3]);
    until(&mut stream, b"last words\r\n");
    assert_eq!(stream.read(&mut [0; 100]).unwrap(), 0);
}

#[test]
fn an_interrupt_overtakes_what_a_program_does_not_read_and_so_does_the_end() {
    for terminal in ["raw", "sane"] {
        let terminals = terminals(&common::deaf(terminal));
        for interrupts in [true, false] {
            let mut stream = connect(&terminals);
            stream
                .set_write_timeout(Some(Duration::from_secs(10)))
                .unwrap();
            enters(&mut stream, &[255, 253, 1, 255, 253, 3]);
            let pid = common::number(&String::from_utf8_lossy(&until(&mut stream, b".")));
            assert!(common::runs(&pid), "{pid:?}");
            stream.write_all(&common::many_lines()).unwrap();
            if interrupts {
                stream.write_all(&[255, 244]).unwrap();
                common::has_ended(&pid, "after an interrupt");
            } else {
                drop(stream);
                common::has_ended(&pid, "without its connection");
            }
        }
    }
}

#[test]
fn an_interrupt_drops_what_was_not_read() {
    let script = "stty -echo; trap 'read line; echo got $line; exit' INT; echo ready; while :; do sleep 0.05; done";
    let mut stream = connect(&terminals(&["sh", "-c", script]));
    enters(&mut stream, &[255, 253, 1, 255, 253, 3]);
    until(&mut stream, b"ready");
    stream.write_all(&common::many_lines()).unwrap();
    stream.write_all(&[255, 244]).unwrap();
    stream.write_all(b"kept\r\n").unwrap();
    until(&mut stream, b"got kept");
}

#[test]
fn more_than_is_kept_for_a_program_waits_and_the_end_is_seen_all_the_same() {
    let path = std::env::temp_dir().join(format!("stackline-terminal-full-{}", std::process::id()));
    common::terminals(&format!("unix:{}", path.display()), &common::deaf("raw"));
    let mut stream = UnixStream::connect(&path).unwrap();
    // A program of the same user is asked nothing.
    stream.write_all(&[255, 253, 1, 255, 253, 3]).unwrap();
    let pid = common::number(&String::from_utf8_lossy(&until(&mut stream, b".")));
    stream
        .set_write_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let mut typed = 0;
    while let Ok(count) = stream.write(&common::many_lines()) {
        typed += count;
        assert!(typed < 100 << 20, "what nobody reads is kept without end");
    }
    drop(stream);
    common::has_ended(&pid, "without its connection");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_slow_program_gets_all_that_was_typed_by_who_is_gone_too() {
    let read = std::env::temp_dir().join(format!("stackline-terminal-read-{}", std::process::id()));
    // What is in its terminal by then is read after the hang-up.
    let script = format!(
        "trap '' HUP; stty raw -echo; echo ready; sleep 0.3; head -c 204800 > {0}.part; mv {0}.part {0}",
        read.display()
    );
    let mut stream = connect(&terminals(&["sh", "-c", &script]));
    enters(&mut stream, &[255, 253, 1, 255, 253, 3]);
    until(&mut stream, b"ready");
    stream.write_all(&common::many_lines()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    wait_until("it has got all", || read.exists());
    assert!(std::fs::read(&read).unwrap() == common::many_lines());
    std::fs::remove_file(&read).unwrap();
}

/// What a server says before it ends the connection.
fn said(mut stream: TcpStream) -> Vec<u8> {
    let (mut all, mut piece) = (Vec::new(), [0; 1000]);
    while let Ok(count @ 1..) = stream.read(&mut piece) {
        all.extend_from_slice(&piece[..count]);
    }
    all
}

/// A program that leaves a trace where it was started at all.
fn traced(name: &str) -> (DisplayAddress, std::path::PathBuf) {
    let trace =
        std::env::temp_dir().join(format!("stackline-terminal-{name}-{}", std::process::id()));
    let _ = std::fs::remove_file(&trace);
    (
        terminals(&["sh", "-c", &format!("echo started > {}", trace.display())]),
        trace,
    )
}

#[test]
fn data_before_the_answers_to_its_options_ends_a_connection_and_starts_nothing() {
    let (terminals, trace) = traced("post");
    let post = |body: &[u8]| {
        [
            b"POST / HTTP/1.1\r\nHost: x\r\nOrigin: http://evil\r\n\r\n".as_slice(),
            body,
        ]
        .concat()
    };
    let all = [
        &[255, 253, 1, 255, 253, 3][..],
        common::WORD,
        b"\necho owned\n",
    ]
    .concat();
    for first in [
        post(&all),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        b"\n".to_vec(),
        [b"x".as_slice(), &all].concat(),
    ] {
        let mut stream = connect(&terminals);
        // A reset may come before all of it is written.
        let _ = stream.write_all(&first);
        let said = said(stream);
        assert!(!said.windows(7).any(|word| word == b"secret:"), "{first:?}");
        assert!(!trace.exists(), "{first:?}");
    }
    let mut stream = connect(&terminals);
    stream.write_all(&[255, 246].repeat(5000)).unwrap();
    let _ = said(stream);
    assert!(!trace.exists());
}

#[test]
fn three_wrong_secrets_end_a_connection_and_the_right_one_is_taken_after_two() {
    let (terminals, trace) = traced("guess");
    let guesses = |words: &[&[u8]]| {
        let mut stream = connect(&terminals);
        stream.write_all(&[255, 253, 1, 255, 253, 3]).unwrap();
        for word in words {
            until(&mut stream, b"secret: ");
            stream
                .write_all(&[word, b"\r\n".as_slice()].concat())
                .unwrap();
        }
        said(stream)
    };
    let ended = guesses(&[b"", b"open sesam", b"open sesame "]);
    assert!(
        ended.ends_with(b"(wrong)\r\n"),
        "{}",
        String::from_utf8_lossy(&ended)
    );
    assert!(!trace.exists());
    // Keys that erase are known while it is typed.
    guesses(&[b"x", b"y", b"open sesamX\x7fe"]);
    wait_until("the program begins", || trace.exists());
    std::fs::remove_file(trace).unwrap();
}

/// Far more than there are places; some are there still when somebody who knows the secret comes.
#[test]
fn strangers_keep_nobody_out_who_knows_the_secret() {
    let terminals = terminals(&["sh", "-c", "echo inside"]);
    let mut silent = std::collections::VecDeque::new();
    for _ in 0..4200 {
        silent.push_back(connect(&terminals));
        if silent.len() > 300 {
            silent.pop_front();
        }
    }
    let mut stream = connect(&terminals);
    enters(&mut stream, &[255, 253, 1, 255, 253, 3]);
    until(&mut stream, b"inside\r\n");
}

#[test]
fn a_display_s_end_that_does_not_know_the_secret_gets_the_reason() {
    let terminals = terminals(&["sh", "-c", "echo never"]);
    let server = DisplayServer::new(DisplayClientLimits::default(), Vec::new());
    let display = common::served(&server, "127.0.0.1:0");
    let wrong = stackline_guard::secret::Secret::new(b"something else".to_vec()).unwrap();
    let error = terminal::attach(&terminals, &display, Some(&wrong), false).unwrap_err();
    assert!(
        error.message.contains("the secret does not match") && error.hint.is_some(),
        "{error}"
    );
    let error = terminal::attach(&terminals, &display, None, false).unwrap_err();
    assert!(error.message.contains("it asks for a secret"), "{error}");
    assert!(server.displays().is_empty());
}
