//! A display by V's messages: the same pictures, a client that is blocked, what is told.

use crate::common;
use stackline_core::named::NamedValue as _;
use stackline_core::time::Duration;
use stackline_display::protocol::{DisplayInput, DisplayRequest, VERSION, write_request};
use stackline_display::symbols::DisplayClientLimits;
use stackline_displayserver::address::DisplayAddress;
use stackline_displayserver::bench::pictures;
use stackline_displayserver::client::DisplayClient;
use stackline_displayserver::listener::DisplayListener;
use stackline_displayserver::messages;
use stackline_displayserver::send_level::DisplaySendLevel;
use stackline_displayserver::server::DisplayServer;
use stackline_proto::blast::{BlastHeader, HEADER};
use stackline_transfer::ikp;
use std::net::UdpSocket;

fn served(secret: &[u8]) -> (DisplayServer, DisplayAddress, DisplayAddress) {
    let server = DisplayServer::new(DisplayClientLimits::default(), secret.to_vec());
    let listener = DisplayListener::at(&DisplayAddress::Tcp("127.0.0.1:0".into())).unwrap();
    let stream = listener.address();
    server.listen(listener, |_| {});
    let local = messages::serve(&server, "127.0.0.1:0", |_| {}).unwrap();
    (
        server,
        stream,
        DisplayAddress::parse(&format!("ikp:{local}")).unwrap(),
    )
}

#[test]
fn pictures_are_those_of_a_stream_at_every_level_and_clients_leave() {
    let (server, stream, by_messages) = served(b"");
    for picture in pictures().iter().filter(|picture| picture.name != "short") {
        for (level, ..) in DisplaySendLevel::NAMED.iter().copied() {
            if level == DisplaySendLevel::Structured && picture.symbols.is_empty() {
                continue;
            }
            let [one, other] = [&stream, &by_messages]
                .map(|address| common::drawn(&server, address, picture, level).1);
            assert!(one == other, "{} at level {}", picture.name, level.name());
        }
    }
    common::all_gone(&server);
}

#[test]
fn input_comes_strangers_do_not_and_an_absent_peer_is_reported() {
    let (server, _, by_messages) = served(b"secret");
    assert!(DisplayClient::connect(&by_messages, b"wrong").is_err());
    let mut client = DisplayClient::connect(&by_messages, b"secret").unwrap();
    client
        .send(&DisplayRequest::CreateWindow(1, (100, 100), b"keys"))
        .unwrap();
    client.sync(1).unwrap();
    let (id, _) = server.displays().pop().unwrap();
    server.input(id, 1, DisplayInput::Key(65));
    assert_eq!(client.input().unwrap().input, DisplayInput::Key(65));
    let error = client.ask(&DisplayRequest::DeleteSymbol(9)).unwrap_err();
    assert!(error.message.contains("refused"), "{error}");
    let gone = DisplayAddress::parse("ikp:127.0.0.1:1").unwrap();
    assert!(DisplayClient::connect(&gone, b"").is_err());
}

/// First messages of clients that are none, far more than are remembered: each seems to come from somebody else.
#[test]
fn forged_messages_keep_no_client_out_and_no_client_s_place_goes_to_them() {
    let (server, _, by_messages) = served(b"secret");
    let mut before = DisplayClient::connect(&by_messages, b"secret").unwrap();
    let place = by_messages
        .to_string()
        .trim_start_matches("ikp:")
        .to_owned();
    let sockets: Vec<UdpSocket> = (0..20)
        .map(|_| UdpSocket::bind("127.0.0.1:0").unwrap())
        .collect();
    let packet = first_packet();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..40_000_u32 {
                let header = BlastHeader {
                    connection: number,
                    ..BlastHeader::read(&packet).unwrap()
                };
                let packet = [&header.write()[..], &packet[HEADER..]].concat();
                let _ = sockets[number as usize % 20].send_to(&packet, &place);
            }
        });
        for _ in 0..5 {
            DisplayClient::connect(&by_messages, b"secret").unwrap();
        }
    });
    DisplayClient::connect(&by_messages, b"secret").unwrap();
    before.sync(7).unwrap();
    assert_eq!(server.displays().len(), 1);
}

/// The packet in which a client says a wrong secret.
fn first_packet() -> Vec<u8> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut options = ikp::IkpTransferOptions::default();
    options.protocol.patience = Duration(200_000_000);
    let mut client = ikp::IkpUdpClient::connect(socket.local_addr().unwrap(), &options).unwrap();
    let mut message = vec![0];
    write_request(
        &mut message,
        &DisplayRequest::Hello {
            version: VERSION,
            token: b"guess!",
        },
        false,
    );
    assert!(
        client
            .send(&message, ikp::IkpClientSegments::none(), &mut [0; 1056])
            .is_err(),
        "nobody answers"
    );
    let mut packet = vec![0; 2048];
    let count = socket.recv(&mut packet).unwrap();
    packet.truncate(count);
    packet
}
