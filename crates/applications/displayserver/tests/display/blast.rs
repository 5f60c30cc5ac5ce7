//! A display by streams of blasts: the same pictures, both ways at once, who goes and who says nothing.

use crate::common;
use stackline_core::named::NamedValue as _;
use stackline_display::protocol::DisplayInput;
use stackline_display::symbols::DisplayClientLimits;
use stackline_displayserver::address::DisplayAddress;
use stackline_displayserver::bench::pictures;
use stackline_displayserver::client::DisplayClient;
use stackline_displayserver::listener::DisplayListener;
use stackline_displayserver::send_level::DisplaySendLevel;
use stackline_displayserver::server::DisplayServer;
use stackline_displayserver::stream::DisplayStream;
use stackline_proto::blast::negotiation::BlastParameters;
use stackline_proto::blast::{self as proto, BlastHeader, BlastPacketKind, HEADER};
use stackline_testing::wait_until;
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

fn served() -> (DisplayServer, DisplayAddress, DisplayAddress) {
    let server = common::display();
    let [tcp, blast] = ["127.0.0.1:0", "blast:127.0.0.1:0"].map(|at| common::served(&server, at));
    (server, tcp, blast)
}

#[test]
fn pictures_are_those_of_tcp_at_every_level_input_comes_and_clients_leave() {
    let (server, tcp, blast) = served();
    for picture in pictures().iter().filter(|picture| picture.name != "short") {
        for (level, ..) in DisplaySendLevel::NAMED.iter().copied() {
            if level == DisplaySendLevel::Structured && picture.symbols.is_empty() {
                continue;
            }
            let [one, other] = [&tcp, &blast].map(|address| {
                let (mut client, pixels) = common::drawn(&server, address, picture, level);
                let (id, _) = server.displays().pop().unwrap();
                server.input(id, 1, DisplayInput::Key(65));
                assert_eq!(client.input().unwrap().input, DisplayInput::Key(65));
                pixels
            });
            assert!(one == other, "{} at level {}", picture.name, level.name());
        }
    }
    common::all_gone(&server);
}

#[test]
fn both_ends_may_write_much_before_either_reads_and_the_end_is_heard() {
    let listener =
        DisplayListener::at(&DisplayAddress::parse("blast:127.0.0.1:0").unwrap()).unwrap();
    let address = listener.address();
    let all: Vec<u8> = (0..200_000_u32).map(|byte| (byte % 251) as u8).collect();
    let other = all.clone();
    let far = thread::spawn(move || {
        let mut stream = listener.accept().unwrap();
        stream.write_all(&other).unwrap();
        let mut came = vec![0; other.len()];
        stream.read_exact(&mut came).unwrap();
        assert!(came == other);
        // What is written is there before the end.
        stream.write_all(b"last words").unwrap();
        stream.end();
    });
    let mut stream = address.connect().unwrap();
    stream.write_all(&all).unwrap();
    let mut came = Vec::new();
    stream.read_to_end(&mut came).unwrap();
    assert!(came == [&all[..], b"last words"].concat());
    far.join().unwrap();
    assert!(stream.write_all(b"to nobody").is_err() || stream.write_all(&all).is_err());
}

#[test]
fn one_direction_alone_is_no_connection_and_an_absent_peer_is_reported() {
    let (server, _, blast) = served();
    let place = blast.to_string().trim_start_matches("blast:").to_owned();
    let options = stackline_transfer::BlastChannelOptions::default();
    let mut halves = Vec::new();
    for at in 0..70_u8 {
        let Ok(mut channel) =
            stackline_transfer::BlastChannel::connect(place.parse().unwrap(), &options)
        else {
            continue;
        };
        let said = channel.send(&[&[0], &[at; 16][..]].concat());
        halves.push((channel, said.is_ok()));
    }
    assert!(server.displays().is_empty());
    // They lose their places, and clients come in.
    wait_until("a client comes in", || {
        DisplayClient::connect(&blast, b"").is_ok()
    });
    let gone = DisplayAddress::parse("blast:127.0.0.1:1")
        .unwrap()
        .connect();
    assert!(!matches!(gone, Ok(DisplayStream::Blast(_))));
}

/// Packets that ask for connections, whose senders never say more: each seems to come from somebody else.
#[test]
fn forged_openings_keep_no_client_out() {
    let server = DisplayServer::new(DisplayClientLimits::default(), b"secret".to_vec());
    let blast = common::served(&server, "blast:127.0.0.1:0");
    let place = blast.to_string().trim_start_matches("blast:").to_owned();
    let options = stackline_transfer::BlastChannelOptions::default();
    let machine = proto::BlastOptions {
        packet: 1000,
        buffer: 1 << 20,
        ..options.blast
    };
    let sockets: Vec<UdpSocket> = (0..50)
        .map(|_| UdpSocket::bind("127.0.0.1:0").unwrap())
        .collect();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..4000_u32 {
                let nonce = [number as u8; 16];
                let body = BlastParameters::new(&machine, options.token, nonce).write();
                let packet = [
                    &BlastHeader::new(BlastPacketKind::Open, number).write()[..],
                    &body,
                ]
                .concat();
                let _ = sockets[number as usize % 50].send_to(&packet, &place);
                if is_over.load(Ordering::Relaxed) && number > 2000 {
                    break;
                }
            }
        });
        // In the middle of it, as often as there are tries of somebody who does not give up at once.
        let mut tries = 0;
        while DisplayClient::connect(&blast, b"secret").is_err() {
            tries += 1;
            assert!(tries < 20, "nobody gets in");
        }
        is_over.store(true, Ordering::Relaxed);
    });
    // They were openings that were answered.
    let (socket, mut answer) = (&sockets[0], [0; 2048]);
    socket
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    assert!(socket.recv(&mut answer).unwrap() >= HEADER);
    DisplayClient::connect(&blast, b"secret").unwrap();
}
