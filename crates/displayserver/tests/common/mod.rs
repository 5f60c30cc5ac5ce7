//! What tests of a display's transports share: a display that is served, a picture drawn as a client of its own, that clients have gone.
#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "what helpers of a test cannot do fails the test; not every test calls all of them"
)]

use stackline_display::machine::FULL_SIZE;
use stackline_display::protocol::Request;
use stackline_display::symbols::Limits;
use stackline_displayserver::address::Address;
use stackline_displayserver::client::Client;
use stackline_displayserver::level::{Level, Picture, send};
use stackline_displayserver::listener::Listener;
use stackline_displayserver::server::Server;
use std::thread;
use std::time::{Duration, Instant};

/// A display at that address; where it is.
pub(crate) fn served(server: &Server, at: &str) -> Address {
    let listener = Listener::at(&Address::of(at).unwrap()).unwrap();
    let address = listener.address();
    server.listen(listener, |_| {});
    address
}

/// A display that anybody draws on.
pub(crate) fn display() -> Server {
    Server::new(Limits::default(), Vec::new())
}

/// A client that has drawn a picture at a level, and what its window shows.
pub(crate) fn drawn(server: &Server, address: &Address, picture: &Picture, level: Level) -> (Client, Vec<u8>) {
    let mut client = Client::connect(address, b"").unwrap();
    client.send(&Request::CreateWindow(1, (800, 800), b"test")).unwrap();
    client.send(&Request::DisplayView(1, 100, (8, 8), FULL_SIZE)).unwrap();
    client.send(&Request::DefineSymbol(100)).unwrap();
    client.ask(&Request::EndSymbol).unwrap();
    send(&mut client, level, picture, 100).unwrap();
    client.sync(3).unwrap();
    let pixels = server.last(|id, display| display.draw(id, 1).unwrap().pixels().bytes().to_vec()).unwrap();
    (client, pixels)
}

/// Waits until the display has no clients any more.
pub(crate) fn all_gone(server: &Server) {
    let begun = Instant::now();
    while !server.displays().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(10), "clients that have gone are there");
        thread::sleep(Duration::from_millis(5));
    }
}
