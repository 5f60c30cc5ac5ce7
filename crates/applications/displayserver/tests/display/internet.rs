//! An internet server: displays and terminals reached through it by V's messages alone, what it refuses, what it forgets.

use crate::common;
use stackline_core::named::NamedValue as _;
use stackline_display::protocol::DisplayInput;
use stackline_displayserver::address::DisplayAddress;
use stackline_displayserver::bench::pictures;
use stackline_displayserver::client::DisplayClient;
use stackline_displayserver::papers::internet::{self, Serves};
use stackline_displayserver::papers::vio::Vio;
use stackline_displayserver::send_level::DisplaySendLevel;
use stackline_displayserver::server::DisplayServer;
use stackline_guard::secret::Secret;
use stackline_testing::wait_until;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

fn served() -> (DisplayServer, DisplayAddress, DisplayAddress) {
    let server = common::display();
    let [tcp, pup] = ["127.0.0.1:0", "pup:127.0.0.1:0"].map(|at| common::served(&server, at));
    (server, tcp, pup)
}

fn through(server: &str, to: &DisplayAddress) -> DisplayAddress {
    DisplayAddress::parse(&format!("vio:{server}/{to}")).unwrap()
}

#[test]
fn pictures_and_input_pass_it_whatever_stream_it_connects_by() {
    let (server, tcp, pup) = served();
    let local = internet::serve("127.0.0.1:0", Vec::new(), Serves::Streams)
        .unwrap()
        .local()
        .to_string();
    let picture = pictures()
        .into_iter()
        .find(|picture| picture.name == "rectangles")
        .unwrap();
    let draw = |address: &DisplayAddress, level: DisplaySendLevel| {
        let (mut client, pixels) = common::drawn(&server, address, &picture, level);
        let (id, _) = server.displays().pop().unwrap();
        server.input(id, 1, DisplayInput::Key(65));
        assert_eq!(client.input().unwrap().input, DisplayInput::Key(65));
        pixels
    };
    for (level, ..) in DisplaySendLevel::NAMED.iter().copied() {
        let expected = draw(&tcp, level);
        for to in [&tcp, &pup] {
            assert!(
                draw(&through(&local, to), level) == expected,
                "{to} at level {}",
                level.name()
            );
        }
    }
    // Clients that have gone say so, and the display is told.
    common::all_gone(&server);
}

#[test]
fn a_stream_ends_after_what_was_written_and_both_ends_hear_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = DisplayAddress::parse(&listener.local_addr().unwrap().to_string()).unwrap();
    let local = internet::serve("127.0.0.1:0", Vec::new(), Serves::Streams)
        .unwrap()
        .local()
        .to_string();
    // One that is written much and left, one that says something and goes.
    let reads = thread::spawn(move || {
        let (mut first, _) = listener.accept().unwrap();
        let mut all = Vec::new();
        first.read_to_end(&mut all).unwrap();
        let (mut second, _) = listener.accept().unwrap();
        second.write_all(&[7; 200_000]).unwrap();
        all
    });
    let written: Vec<u8> = (0..300_000_u32).map(|byte| (byte % 251) as u8).collect();
    let mut stream = through(&local, &to).connect().unwrap();
    stream.write_all(&written).unwrap();
    drop(stream);
    let mut stream = through(&local, &to).connect().unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    assert_eq!(all, [7; 200_000]);
    assert!(reads.join().unwrap() == written);
}

#[test]
fn what_it_does_not_do_is_said_in_a_sentence() {
    let (_server, tcp, _) = served();
    let local = internet::serve("127.0.0.1:0", b"the secret".to_vec(), Serves::Streams)
        .unwrap()
        .local()
        .to_string();
    let secret = Secret::new(b"the secret".to_vec()).unwrap();
    let known = |to: &dyn std::fmt::Display| {
        DisplayAddress::parse(&format!("vio:{local}/{to}"))
            .unwrap()
            .knowing(&secret)
    };
    let refused = |address: &str| {
        DisplayClient::connect(&DisplayAddress::parse(address).unwrap(), b"")
            .unwrap_err()
            .to_string()
    };
    let error = refused(&format!("vio:{local}/{tcp}"));
    assert!(
        error.contains(&format!(
            "the internet server at ikp:{local} refused the request: the secret does not match"
        )),
        "{error}"
    );
    let nobody = DisplayClient::connect(&known(&"127.0.0.1:1"), b"").unwrap_err();
    assert!(
        nobody
            .message
            .contains("the internet server cannot connect to 127.0.0.1:1"),
        "{nobody}"
    );
    assert!(
        nobody
            .hint
            .unwrap()
            .contains("display serve --listen 127.0.0.1:1`")
    );
    assert!(DisplayClient::connect(&known(&tcp), b"").is_ok());
    for address in [
        "vio:127.0.0.1:1/127.0.0.1:2",
        "ngp:vio:127.0.0.1:1/127.0.0.1:2",
    ] {
        let nobody = DisplayAddress::parse(address)
            .unwrap()
            .connect()
            .unwrap_err();
        assert!(
            nobody
                .message
                .contains("no internet server answers at ikp:127.0.0.1:1"),
            "{nobody}"
        );
        assert!(
            nobody
                .hint
                .unwrap()
                .contains("display internet --listen ikp:127.0.0.1:1`")
        );
    }
    for wrong in [
        "vio:127.0.0.1:1",
        "vio:127.0.0.1/127.0.0.1:2",
        "vio:127.0.0.1:1/unix:/tmp/x",
        "vio:/",
    ] {
        assert!(
            DisplayAddress::parse(wrong)
                .unwrap_err()
                .contains("vio:HOST:PORT/ADDRESS"),
            "{wrong}"
        );
    }
    assert!(
        DisplayAddress::parse("vio:word@127.0.0.1:1/127.0.0.1:2")
            .unwrap_err()
            .contains("omit the secret")
    );
    assert!(!format!("{:?} {}", known(&tcp), known(&tcp)).contains("the secret"));
    // As many as may be; those that go make room.
    let streams: Vec<_> = (0..64).map_while(|_| known(&tcp).connect().ok()).collect();
    assert!(streams.len() >= 60);
    let error = known(&tcp).connect().unwrap_err();
    assert!(error.message.contains("too many instances"), "{error}");
    drop(streams);
    assert!(known(&tcp).connect().is_ok());
}

#[test]
fn a_program_is_read_and_written_by_its_pipes_looked_into_now_and_then_and_ends_with_its_client() {
    let program = |script: &str| ["sh", "-c", script].map(str::to_owned).to_vec();
    let serve = |script: &str, polls: Option<Duration>| {
        let serves = Serves::Program {
            program: program(script),
            polls,
        };
        internet::serve("127.0.0.1:0", Vec::new(), serves)
            .unwrap()
            .local()
            .to_string()
    };
    let server = serve(
        "while read line; do echo got $line; done",
        Some(Duration::from_millis(300)),
    );
    let mut stream = Vio::connect(&server, b"", "program").unwrap();
    for line in ["one", "two"] {
        let begun = Instant::now();
        stream.write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut piece = [0; 100];
        let count = stream.read(&mut piece).unwrap();
        assert_eq!(piece[..count], *format!("got {line}\n").as_bytes());
        // Whoever looks now and then sees the second answer no earlier than at the next look.
        assert!(
            line == "one" || begun.elapsed() > Duration::from_millis(100),
            "{:?}",
            begun.elapsed()
        );
    }
    drop(stream);
    // It goes with its client, and with the server: whatever signals it ignores.
    for ends_server in [false, true] {
        let serves = Serves::Program {
            program: program("trap '' HUP; echo $$.; sleep 60"),
            polls: None,
        };
        let served = internet::serve("127.0.0.1:0", Vec::new(), serves).unwrap();
        let mut stream = Vio::connect(&served.local().to_string(), b"", "program").unwrap();
        let mut said = String::new();
        while !said.ends_with(".\n") {
            let mut piece = [0; 100];
            let count = stream.read(&mut piece).unwrap();
            said.push_str(&String::from_utf8_lossy(&piece[..count]));
        }
        let process = format!("/proc/{}/stat", said.trim_end_matches(".\n"));
        assert!(std::fs::exists(&process).unwrap());
        if ends_server {
            served.end();
        } else {
            drop(stream);
        }
        wait_until("the program has gone with its client or its server", || {
            !std::fs::read_to_string(&process).is_ok_and(|stat| !stat.contains(") Z"))
        });
    }
    // How it failed is told behind all that it said.
    for (script, how) in [
        ("exit 7", "sh exited with code 7"),
        ("kill -TERM $$", "sh was killed by signal 15"),
    ] {
        let server = serve(&format!("echo said; {script}"), None);
        let (mut stream, mut all) = (
            Vio::connect(&server, b"", "program").unwrap(),
            String::new(),
        );
        assert_eq!(
            stream.read_to_string(&mut all).unwrap_err().to_string(),
            how
        );
        assert_eq!(all, "said\n");
    }
    let server = internet::serve(
        "127.0.0.1:0",
        Vec::new(),
        Serves::Program {
            program: vec!["/nowhere".into()],
            polls: None,
        },
    );
    let error = Vio::connect(&server.unwrap().local().to_string(), b"", "program")
        .unwrap()
        .read(&mut [0; 10])
        .unwrap_err();
    assert!(
        error.to_string().contains("cannot start /nowhere"),
        "{error}"
    );
}
