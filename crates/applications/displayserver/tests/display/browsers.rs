//! Browsers that look on: they see what is drawn, their keys arrive, and they are closed and refused with a reason.

use crate::support::{asked, drawn, served, viewed, window};
use stackline_display::item::{DisplayItem, DisplayItemKind};
use stackline_display::protocol::{DisplayInput, DisplayRequest};
use stackline_displayserver::client::DisplayClient;
use stackline_displayserver::stream::DisplayStream;
use stackline_testing::wait_until;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use tungstenite::client::IntoClientRequest;
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, WebSocket};

fn get(host: &str, path: &str) -> String {
    asked(
        host,
        &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
    )
}

fn looks_on(host: &str, token: &str, origin: &str) -> Result<WebSocket<TcpStream>, String> {
    let mut request = format!("ws://{host}/pixels?{token}")
        .into_client_request()
        .unwrap();
    request
        .headers_mut()
        .insert("origin", origin.parse().unwrap());
    let stream = TcpStream::connect(host).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    tungstenite::client(request, stream)
        .map(|(socket, _)| socket)
        .map_err(|error| error.to_string())
}

#[test]
fn what_is_no_hello_ends_at_once_and_a_closing_browser_is_answered() {
    let (server, address) = served("");
    let DisplayStream::Tcp(mut stranger) = address.connect().unwrap() else {
        panic!("{address}")
    };
    stranger
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    // Ten seconds are for who begins as a client does.
    assert_eq!(stranger.read(&mut [0; 100]).unwrap_or(0), 0);
    let url = viewed(&server);
    let (host, token) = url.trim_start_matches("http://").split_once("/?").unwrap();
    let looks_on = || looks_on(host, token, &format!("http://{host}")).unwrap();
    let closed = |mut socket: WebSocket<TcpStream>| loop {
        if let Message::Close(frame) = socket.read().unwrap() {
            return frame.map(|frame| u16::from(frame.code));
        }
    };
    // RFC 6455, 5.5.1 and 7.4.1.
    let mut socket = looks_on();
    socket
        .close(Some(CloseFrame {
            code: CloseCode::Normal,
            reason: "".into(),
        }))
        .unwrap();
    assert_eq!(closed(socket), Some(1000));
    let said = |text: String| {
        let mut socket = looks_on();
        socket.send(Message::text(text)).unwrap();
        closed(socket)
    };
    assert_eq!(
        (said("no message".into()), said(" ".repeat(5000))),
        (Some(1008), Some(1009))
    );
}

#[test]
fn a_browser_sees_what_is_drawn_and_its_keys_arrive() {
    let (server, address) = served("");
    let url = viewed(&server);
    let (host, token) = url.trim_start_matches("http://").split_once("/?").unwrap();
    assert!(
        get(host, &format!("/?{token}")).contains("<canvas")
            || get(host, &format!("/?{token}")).contains("canvas")
    );
    assert!(
        get(host, "/").starts_with("HTTP/1.1 403") && get(host, "/etc").starts_with("HTTP/1.1 404")
    );
    assert!(
        looks_on(host, "guess", &format!("http://{host}"))
            .unwrap_err()
            .contains("403")
    );
    assert!(
        looks_on(host, token, "http://evil.example")
            .unwrap_err()
            .contains("403")
    );

    let mut client = DisplayClient::connect(&address, b"").unwrap();
    window(&mut client);
    let mut socket = looks_on(host, token, &format!("http://{host}")).unwrap();
    client.send(&DisplayRequest::EditSymbol(100)).unwrap();
    client
        .ask(&DisplayRequest::AddItem(
            DisplayItem::drawn(DisplayItemKind::Rectangle, 1, (0, 0), (9, 9)).coloured(5),
            b"",
        ))
        .unwrap();
    let mut pixels = vec![0; 800 * 800];
    while pixels[8 * 800 + 8] != 5 {
        match socket.read().unwrap() {
            Message::Binary(part) => {
                let top = usize::from(u16::from_be_bytes([part[12], part[13]]));
                pixels[top * 800..][..part.len() - 16].copy_from_slice(&part[16..]);
            }
            Message::Text(text) if text.contains("end") => {
                socket.send(Message::text("{\"shown\":true}")).unwrap();
            }
            Message::Text(text) => {
                assert!(text.contains("palette") || text.contains("\"title\":\"test\""))
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(pixels, drawn(&server));
    let press = "{\"client\":1,\"window\":1,\"what\":\"press\",\"x\":10,\"y\":12}";
    socket.send(Message::text(press)).unwrap();
    let event = client.input().unwrap();
    assert_eq!(
        (event.window, event.input, event.hits),
        (1, DisplayInput::Press(10, 12), vec![(100, 1)])
    );
    socket
        .send(Message::text(
            "{\"client\":1,\"window\":1,\"what\":\"key\",\"key\":\"ü\"}",
        ))
        .unwrap();
    assert_eq!(
        client.input().unwrap().input,
        DisplayInput::Key(u32::from('ü'))
    );
}

#[test]
fn one_browser_too_many_is_refused_with_the_reason() {
    let (server, _) = served("");
    let url = viewed(&server);
    let (host, token) = url.trim_start_matches("http://").split_once("/?").unwrap();
    let mut looking: Vec<_> = (0..16)
        .map(|_| looks_on(host, token, &format!("http://{host}")).unwrap())
        .collect();
    let upgrade = format!(
        "GET /pixels?{token} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    let refused = asked(host, &upgrade);
    assert!(
        refused.starts_with("HTTP/1.1 503 ") && refused.contains("16 browsers are connected"),
        "{refused}"
    );
    // One that goes makes room, when that is seen.
    looking.pop().unwrap().close(None).unwrap();
    wait_until("there is room", || {
        looks_on(host, token, &format!("http://{host}")).is_ok()
    });
    // Strangers that say nothing keep nobody from the page: the oldest of many gives way.
    let mut silent: Vec<_> = (0..200)
        .map(|_| TcpStream::connect(host).unwrap())
        .collect();
    silent
        .iter_mut()
        .for_each(|stream| stream.write_all(b"GET / HT").unwrap());
    assert!(get(host, &format!("/?{token}")).starts_with("HTTP/1.1 200 "));
    silent[0]
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let ended = silent[0].read(&mut [0; 100]);
    assert!(
        matches!(&ended, Ok(0))
            || ended.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset)
    );
}

/// A client whose display is at work keeps neither input nor the pictures of others waiting: what is looked for and drawn for it is its own
/// thread's work. The lock that is held here is what such a thread holds.
#[test]
fn a_client_that_is_busy_keeps_no_browser_from_the_others() {
    let (server, address) = served("");
    let [mut busy, mut other] = [0, 1].map(|_| DisplayClient::connect(&address, b"").unwrap());
    [&mut busy, &mut other].into_iter().for_each(window);
    let url = viewed(&server);
    let (host, token) = url.trim_start_matches("http://").split_once("/?").unwrap();
    let displays = server.displays();
    let (id, display) = &displays[0];
    let held = display.lock().unwrap();
    for _ in 0..1000 {
        server.input(*id, 1, DisplayInput::Move(5, 5));
    }
    let mut socket = looks_on(host, token, &format!("http://{host}")).unwrap();
    socket
        .send(Message::text(format!(
            "{{\"client\":{},\"window\":1,\"what\":\"move\",\"x\":1,\"y\":1}}",
            id.0
        )))
        .unwrap();
    other.send(&DisplayRequest::EditSymbol(100)).unwrap();
    other
        .ask(&DisplayRequest::AddItem(
            DisplayItem::drawn(DisplayItemKind::Rectangle, 1, (0, 0), (9, 9)).coloured(5),
            b"",
        ))
        .unwrap();
    // Its window of 800 rows comes whole, and nothing of the one that is busy.
    loop {
        if let Message::Binary(part) = socket.read().unwrap() {
            assert_eq!(part[..8], displays[1].0.0.to_be_bytes());
            if part[16..].contains(&5) {
                break;
            }
        }
    }
    drop(held);
    busy.sync(1).unwrap();
}
