//! A display by V's messages: the same pictures, a client that is blocked, what is told.
#![allow(clippy::unwrap_used, reason = "what helpers of a test cannot do fails the test")]

mod common;

use stackline_display::protocol::{Input, Request};
use stackline_display::symbols::Limits;
use stackline_displayserver::address::Address;
use stackline_displayserver::bench::pictures;
use stackline_displayserver::client::Client;
use stackline_displayserver::level::Level;
use stackline_displayserver::listener::Listener;
use stackline_displayserver::messages;
use stackline_displayserver::server::Server;

fn served(secret: &[u8]) -> (Server, Address, Address) {
    let server = Server::new(Limits::default(), secret.to_vec());
    let listener = Listener::at(&Address::Tcp("127.0.0.1:0".into())).unwrap();
    let stream = listener.address();
    server.listen(listener, |_| {});
    let local = messages::serve(&server, "127.0.0.1:0", |_| {}).unwrap();
    (server, stream, Address::of(&format!("ikp:{local}")).unwrap())
}

#[test]
fn pictures_are_those_of_a_stream_at_every_level_and_clients_leave() {
    let (server, stream, by_messages) = served(b"");
    for picture in pictures().iter().filter(|picture| picture.name != "short") {
        for (_, level) in Level::ALL {
            if level == Level::Structured && picture.symbols.is_empty() {
                continue;
            }
            let [one, other] = [&stream, &by_messages].map(|address| common::drawn(&server, address, picture, level).1);
            assert!(one == other, "{} at level {}", picture.name, level.name());
        }
    }
    common::all_gone(&server);
}

#[test]
fn input_comes_strangers_do_not_and_who_is_not_there_is_told() {
    let (server, _, by_messages) = served(b"secret");
    assert!(Client::connect(&by_messages, b"wrong").is_err());
    let mut client = Client::connect(&by_messages, b"secret").unwrap();
    client.send(&Request::CreateWindow(1, (100, 100), b"keys")).unwrap();
    client.sync(1).unwrap();
    let (id, _) = server.displays().pop().unwrap();
    server.input(id, 1, Input::Key(65));
    assert_eq!(client.input().unwrap().input, Input::Key(65));
    let error = client.ask(&Request::DeleteSymbol(9)).unwrap_err();
    assert!(error.message.contains("refused"), "{error}");
    let gone = Address::of("ikp:127.0.0.1:1").unwrap();
    assert!(Client::connect(&gone, b"").is_err());
}
