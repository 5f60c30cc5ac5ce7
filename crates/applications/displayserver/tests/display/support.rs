//! A display that is served, a window of a client, what it shows; its page, and what the page's port answers.

use crate::common;
use stackline_display::machine::FULL_SIZE;
use stackline_display::protocol::DisplayRequest;
use stackline_display::symbols::DisplayClientLimits;
use stackline_displayserver::address::DisplayAddress;
use stackline_displayserver::client::DisplayClient;
use stackline_displayserver::server::DisplayServer;
use stackline_displayserver::view;
use stackline_guard::secret::Secret;
use std::io::{Read, Write};
use std::net::TcpStream;

/// A display on loopback whose clients know that secret, and where it is.
pub(crate) fn served(secret: &str) -> (DisplayServer, DisplayAddress) {
    let server = DisplayServer::new(DisplayClientLimits::default(), secret.as_bytes().to_vec());
    let address = common::served(&server, "127.0.0.1:0");
    (server, address)
}

/// A window that shows a symbol without items.
pub(crate) fn window(client: &mut DisplayClient) {
    client
        .send(&DisplayRequest::CreateWindow(1, (800, 800), b"test"))
        .unwrap();
    client
        .send(&DisplayRequest::DisplayView(1, 100, (8, 8), FULL_SIZE))
        .unwrap();
    client.send(&DisplayRequest::DefineSymbol(100)).unwrap();
    client.ask(&DisplayRequest::EndSymbol).unwrap();
}

/// The pixels of the window of the last client.
pub(crate) fn drawn(server: &DisplayServer) -> Vec<u8> {
    server
        .last(|client, display| display.draw(client, 1).unwrap().pixels().bytes().to_vec())
        .unwrap()
}

/// The address of a view, and the secret in it.
pub(crate) fn viewed(server: &DisplayServer) -> String {
    view::show(
        server,
        &DisplayAddress::Tcp("127.0.0.1:0".into()),
        &Secret::new(b"0123456789abcdef".to_vec()).unwrap(),
    )
    .unwrap()
}

/// What is answered; names of fields in small letters.
pub(crate) fn asked(host: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(host).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
