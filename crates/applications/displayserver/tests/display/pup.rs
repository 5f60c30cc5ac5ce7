//! A display by streams of PUP: the same pictures, over a path that loses and repeats; strangers; programs on terminals by the PUP TELNET.

use crate::common;
use stackline_core::named::NamedValue as _;
use stackline_display::symbols::DisplayClientLimits;
use stackline_displayserver::address::DisplayAddress;
use stackline_displayserver::bench::pictures;
use stackline_displayserver::client::DisplayClient;
use stackline_displayserver::papers::pup::{Pup, PupStreamInput};
use stackline_displayserver::send_level::DisplaySendLevel;
use stackline_displayserver::server::DisplayServer;
use stackline_displayserver::stream::DisplayStream;
use stackline_displayserver::terminal;
use stackline_displayserver::transport::DisplayTransport;
use stackline_proto::papers::pup::{PupPacket, PupPacketKind, PupPort};
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

fn served() -> (DisplayServer, DisplayAddress, DisplayAddress) {
    let server = common::display();
    let [tcp, pup] = ["127.0.0.1:0", "pup:127.0.0.1:0"].map(|at| common::served(&server, at));
    (server, tcp, pup)
}

/// A path to there that loses every seventh packet and repeats every fifth; where it begins.
fn bad_path(to: &DisplayAddress) -> DisplayAddress {
    let to = to.to_string().strip_prefix("pup:").unwrap().to_owned();
    let (near, far) = (
        UdpSocket::bind("127.0.0.1:0").unwrap(),
        UdpSocket::bind("127.0.0.1:0").unwrap(),
    );
    far.connect(to).unwrap();
    let begins = DisplayAddress::parse(&format!("pup:{}", near.local_addr().unwrap())).unwrap();
    let (back, there) = (near.try_clone().unwrap(), far.try_clone().unwrap());
    let client = std::sync::Arc::new(std::sync::Mutex::new(None));
    let known = client.clone();
    let fate = |number: usize| {
        if number % 7 == 6 {
            0
        } else {
            1 + usize::from(number % 5 == 4)
        }
    };
    thread::spawn(move || {
        let mut piece = [0; 2048];
        for number in 0.. {
            let Ok((count, from)) = near.recv_from(&mut piece) else {
                return;
            };
            *known.lock().unwrap() = Some(from);
            (0..fate(number)).for_each(|_| drop(there.send(&piece[..count])));
        }
    });
    thread::spawn(move || {
        let mut piece = [0; 2048];
        for number in 0.. {
            let Ok(count) = far.recv(&mut piece) else {
                return;
            };
            let client = client.lock().unwrap().unwrap();
            (0..fate(number)).for_each(|_| drop(back.send_to(&piece[..count], client)));
        }
    });
    begins
}

#[test]
fn pictures_are_those_of_tcp_at_every_level_also_where_packets_are_lost_and_repeated() {
    let (server, tcp, pup) = served();
    let bad = bad_path(&pup);
    for picture in pictures().iter().filter(|picture| picture.name != "short") {
        for (level, ..) in DisplaySendLevel::NAMED.iter().copied() {
            if level == DisplaySendLevel::Structured && picture.symbols.is_empty() {
                continue;
            }
            let draw = |address: &DisplayAddress| common::drawn(&server, address, picture, level).1;
            let expected = draw(&tcp);
            assert!(
                draw(&pup) == expected,
                "{} at level {}",
                picture.name,
                level.name()
            );
            // An answer each over such a path takes its time.
            if level != DisplaySendLevel::StopAndWait {
                assert!(
                    draw(&bad) == expected,
                    "{} at level {} over a bad path",
                    picture.name,
                    level.name()
                );
            }
        }
    }
    // Clients that have gone say so, and what they had is gone.
    common::all_gone(&server);
}

#[test]
fn strangers_who_do_not_answer_take_no_place_and_broken_packets_are_not_believed() {
    let (server, _, pup) = served();
    let place = pup.to_string().strip_prefix("pup:").unwrap().to_owned();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.connect(place).unwrap();
    stranger
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    let (own, to) = (
        PupPort {
            socket: 9,
            ..PupPort::default()
        },
        PupPort {
            socket: 1,
            ..PupPort::default()
        },
    );
    let rfc = |id: u32| {
        PupPacket {
            kind: PupPacketKind::Rfc,
            id,
            to,
            from: own,
            data: &own.bytes(),
        }
        .bytes(true)
    };
    let mut broken = rfc(1);
    broken[10] ^= 1;
    stranger.send(&broken).unwrap();
    let mut piece = [0; 2048];
    for id in 1..=600 {
        stranger.send(&rfc(id)).unwrap();
        let count = stranger.recv(&mut piece).unwrap();
        let answer = PupPacket::read(&piece[..count]).unwrap();
        assert_eq!((answer.kind, answer.id), (PupPacketKind::Rfc, id));
    }
    assert!(server.displays().is_empty());
    // Clients come in all the same.
    assert!(DisplayClient::connect(&pup, b"").is_ok());
    assert!(Pup::connect("127.0.0.1:1").is_err());
}

/// Rendezvous of nobody, and of somebody with a secret, between them.
#[test]
fn forged_rendezvous_keep_no_client_out() {
    let server = DisplayServer::new(DisplayClientLimits::default(), b"secret".to_vec());
    let pup = common::served(&server, "pup:127.0.0.1:0");
    let place = pup.to_string().strip_prefix("pup:").unwrap().to_owned();
    let strangers: Vec<UdpSocket> = (0..20)
        .map(|_| UdpSocket::bind("127.0.0.1:0").unwrap())
        .collect();
    let (own, to) = (
        PupPort {
            socket: 9,
            ..PupPort::default()
        },
        PupPort {
            socket: 1,
            ..PupPort::default()
        },
    );
    thread::scope(|scope| {
        scope.spawn(|| {
            for id in 1..=40_000_u32 {
                let packet = PupPacket {
                    kind: PupPacketKind::Rfc,
                    id,
                    to,
                    from: own,
                    data: &own.bytes(),
                }
                .bytes(true);
                let _ = strangers[id as usize % 20].send_to(&packet, &place);
            }
        });
        for _ in 0..3 {
            DisplayClient::connect(&pup, b"secret").unwrap();
        }
    });
    DisplayClient::connect(&pup, b"secret").unwrap();
}

fn terminals(program: &[impl ToString]) -> DisplayAddress {
    common::terminals("pup:127.0.0.1:0", program)
}

/// What a terminal says until it holds that.
fn until(stream: &Pup, wanted: &str) -> String {
    let (mut all, mut piece) = (String::new(), [0; 1000]);
    stream.read_within(Some(Duration::from_secs(10))).unwrap();
    while !all.contains(wanted) {
        match stream
            .next(&mut piece)
            .unwrap_or_else(|error| panic!("{error}: {all}"))
        {
            PupStreamInput::Data(0) => panic!("it ended: {all}"),
            PupStreamInput::Data(count) => all.push_str(&String::from_utf8_lossy(&piece[..count])),
            PupStreamInput::Mark(kind) => all.push_str(&format!("[{kind}]")),
            PupStreamInput::Interrupt(_) => {}
        }
    }
    all
}

fn connected(address: &DisplayAddress) -> Pup {
    match address.connect().unwrap() {
        DisplayStream::Pup(stream) => {
            use std::io::Write;
            until(&stream, "secret: ");
            stream
                .again()
                .write_all(&[common::WORD, b"\r"].concat())
                .unwrap();
            stream
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn marks_say_how_large_a_terminal_is_and_an_interrupt_overtakes_what_was_typed() {
    use std::io::Write;
    let script = "trap 'echo caught; stty size; read line; echo got $line; sleep 2; exit' INT; echo ready; while :; do sleep 0.05; done";
    let stream = connected(&terminals(&["sh", "-c", script]));
    let mut typing = stream.again();
    for (mark, count) in [(2, 111), (3, 55)] {
        stream.say(Some(mark), None);
        typing.write_all(&[count]).unwrap();
    }
    until(&stream, "ready");
    // Asked whether all that is done.
    stream.say(Some(5), None);
    until(&stream, "[6]");
    stream.say(None, Some(0));
    // The size may come with it or later.
    let mut said = until(&stream, "caught");
    typing.write_all(b"dropped\r").unwrap();
    stream.say(Some(1), None);
    typing.write_all(b"kept\r").unwrap();
    said.push_str(&until(&stream, "got kept"));
    assert!(said.contains("55 111"), "{said}");
}

#[test]
fn a_person_sees_what_a_program_says_on_standard_error() {
    let terminals = terminals(&["sh", "-c", "test -t 2 && echo seen >&2; sleep 1"]);
    until(&connected(&terminals), "seen");
    let sized = connected(&terminals);
    sized.say(Some(2), None);
    until(&sized, "seen");
}

#[test]
fn an_interrupt_overtakes_what_a_program_does_not_read_and_so_does_the_end() {
    use std::io::Write;
    for terminal in ["raw", "sane"] {
        let terminals = terminals(&common::deaf(terminal));
        for interrupts in [true, false] {
            let stream = connected(&terminals);
            let pid = common::number(&until(&stream, "."));
            assert!(common::runs(&pid), "{pid:?}");
            let mut typing = stream.again();
            typing.write_within(Duration::from_secs(10)).unwrap();
            typing.write_all(&common::many_lines()).unwrap();
            if interrupts {
                stream.say(None, Some(0));
                common::has_ended(&pid, "after an interrupt");
            } else {
                drop((stream, typing));
                common::has_ended(&pid, "without its connection");
            }
        }
    }
}

#[test]
fn a_display_gets_every_byte_of_a_program_by_the_pup_telnet() {
    let (server, display, _) = served();
    // What it says beside its requests is not the display's.
    let program = "import os, struct, sys, tty; tty.setraw(0); sys.stderr.write('beside'); sys.stderr.flush(); \
                   os.write(1, struct.pack('>BBH', 1, 0, 10) + b'VGTP' + struct.pack('>H', 2)); os.read(0, 16); \
                   os.write(1, struct.pack('>BBH', 14, 0, 8) + b'\\r\\n\\xff\\r'); got = b''\n\
                   while len(got) < 40: got += os.read(0, 100)\n\
                   open(sys.argv[1], 'w').write(got.hex())";
    for typed in [false, true] {
        let said =
            std::env::temp_dir().join(format!("stackline-pup-said-{}-{typed}", std::process::id()));
        let terminal = terminals(&["python3", "-c", program, &said.display().to_string()]);
        terminal::attach(&terminal, &display, Some(&common::word()), typed).unwrap();
        let got = std::fs::read_to_string(&said).unwrap();
        let _ = std::fs::remove_file(&said);
        assert!(got.contains("0d0aff0d"), "{got}");
    }
    drop(server);
}
