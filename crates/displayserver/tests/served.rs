//! A display on sockets: clients at the four levels, whoever is sent away, a browser's side of the view.
#![allow(clippy::unwrap_used, reason = "what helpers of a test cannot do fails the test")]

use stackline_display::item::{Item, Kind};
use stackline_display::machine::{Display, FULL_SIZE};
use stackline_display::protocol::{Input, Request};
use stackline_display::symbols::Limits;
use stackline_displayserver::address::Address;
use stackline_displayserver::bench::pictures;
use stackline_displayserver::client::Client;
use stackline_displayserver::level::{Level, send};
use stackline_displayserver::listener::Listener;
use stackline_displayserver::server::Server;
use stackline_displayserver::stream::Stream;
use stackline_displayserver::view;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tungstenite::client::IntoClientRequest;
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, WebSocket};

fn served(secret: &str) -> (Server, Address) {
    let server = Server::new(Limits::default(), secret.as_bytes().to_vec());
    let listener = Listener::at(&Address::Tcp("127.0.0.1:0".into())).unwrap();
    let address = listener.address();
    server.listen(listener, |_| {});
    (server, address)
}

fn window(client: &mut Client) {
    client.send(&Request::CreateWindow(1, (800, 800), b"test")).unwrap();
    client.send(&Request::DisplayView(1, 100, (8, 8), FULL_SIZE)).unwrap();
    client.send(&Request::DefineSymbol(100)).unwrap();
    client.ask(&Request::EndSymbol).unwrap();
}

fn drawn(server: &Server) -> Vec<u8> {
    server.last(|client, display| display.draw(client, 1).unwrap().pixels().bytes().to_vec()).unwrap()
}

#[test]
fn one_client_too_many_is_told_so() {
    let (server, address) = served("");
    let clients: Vec<Client> = (0..64).map(|_| Client::connect(&address, b"").unwrap()).collect();
    let error = Client::connect(&address, b"").unwrap_err();
    assert!(error.message.ends_with("has as many clients as it takes") && error.hint.is_some(), "{error:?}");
    drop(clients);
    // They go one by one.
    let begun = Instant::now();
    while !server.displays().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(10), "clients that went are there");
        std::thread::sleep(Duration::from_millis(10));
    }
    Client::connect(&address, b"").unwrap();
}

#[test]
fn every_level_draws_the_same() {
    for picture in pictures() {
        let mut all = Vec::new();
        for (_, level) in
            Level::ALL.into_iter().filter(|(_, level)| *level != Level::Structured || !picture.symbols.is_empty())
        {
            let (server, address) = served("");
            let mut client = Client::connect(&address, b"").unwrap();
            window(&mut client);
            send(&mut client, level, &picture, 100).unwrap();
            all.push(drawn(&server));
        }
        assert!(all[0].iter().any(|pixel| *pixel != 0), "{}", picture.name);
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{}", picture.name);
    }
}

#[test]
fn a_client_sends_no_more_than_it_may_and_a_million_items_arrive() {
    let (server, address) = served("");
    let mut client = Client::connect(&address, b"").unwrap();
    window(&mut client);
    client.send(&Request::DefineSymbol(100)).unwrap();
    for id in 1..=1_000_000 {
        client.send(&Request::AddItem(Item::drawn(Kind::Vector, id, (1, 1), (9, 9)), b"")).unwrap();
    }
    client.ask(&Request::EndSymbol).unwrap();
    let memory = server.last(|client, display| display.memory(client));
    assert_eq!(memory, Some(20_000_000));
    let error = client.ask(&Request::EndSymbol).unwrap_err();
    assert!(error.message.contains("no such symbol"), "{}", error.message);
}

#[test]
fn strangers_get_no_further_than_the_door() {
    let (server, address) = served("secret");
    let error = Client::connect(&address, b"guess").unwrap_err();
    assert!(error.hint.unwrap().contains("--secret") || error.message.contains("ended"), "{}", error.message);
    Client::connect(&address, b"secret").unwrap();
    let Address::Tcp(port) = &address else { unreachable!() };
    let mut web = TcpStream::connect(port).unwrap();
    web.write_all(b"GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n").unwrap();
    web.write_all(&[b'x'; 200]).unwrap();
    let mut answer = Vec::new();
    let _ = web.read_to_end(&mut answer);
    assert!(answer.is_empty());
    assert_eq!(server.last(|_, display| display.windows().count()).unwrap_or(0), 0);
}

/// The address of a view, and the secret in it.
fn viewed(server: &Server) -> String {
    view::show(server, &Address::Tcp("127.0.0.1:0".into()), "0123456789abcdef").unwrap()
}

fn get(host: &str, path: &str) -> String {
    asked(host, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
}

fn asked(host: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(host).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn looks_on(host: &str, token: &str, origin: &str) -> Result<WebSocket<TcpStream>, String> {
    let mut request = format!("ws://{host}/pixels?{token}").into_client_request().unwrap();
    request.headers_mut().insert("origin", origin.parse().unwrap());
    let stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    tungstenite::client(request, stream).map(|(socket, _)| socket).map_err(|error| error.to_string())
}

#[test]
fn what_is_no_hello_ends_at_once_and_a_closing_browser_is_answered() {
    let (server, address) = served("");
    let Stream::Tcp(mut stranger) = address.connect().unwrap() else { panic!("{address}") };
    stranger.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
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
    socket.close(Some(CloseFrame { code: CloseCode::Normal, reason: "".into() })).unwrap();
    assert_eq!(closed(socket), Some(1000));
    let said = |text: String| {
        let mut socket = looks_on();
        socket.send(Message::text(text)).unwrap();
        closed(socket)
    };
    assert_eq!((said("no message".into()), said(" ".repeat(5000))), (Some(1008), Some(1009)));
}

#[test]
fn a_browser_sees_what_is_drawn_and_its_keys_arrive() {
    let (server, address) = served("");
    let url = viewed(&server);
    let (host, token) = url.trim_start_matches("http://").split_once("/?").unwrap();
    assert!(
        get(host, &format!("/?{token}")).contains("<canvas") || get(host, &format!("/?{token}")).contains("canvas")
    );
    assert!(get(host, "/").starts_with("HTTP/1.1 403") && get(host, "/etc").starts_with("HTTP/1.1 404"));
    assert!(looks_on(host, "guess", &format!("http://{host}")).unwrap_err().contains("403"));
    assert!(looks_on(host, token, "http://evil.example").unwrap_err().contains("403"));

    let mut client = Client::connect(&address, b"").unwrap();
    window(&mut client);
    let mut socket = looks_on(host, token, &format!("http://{host}")).unwrap();
    client.send(&Request::EditSymbol(100)).unwrap();
    client.ask(&Request::AddItem(Item::drawn(Kind::Rectangle, 1, (0, 0), (9, 9)).coloured(5), b"")).unwrap();
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
            Message::Text(text) => assert!(text.contains("palette") || text.contains("\"title\":\"test\"")),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(pixels, drawn(&server));
    let press = "{\"client\":1,\"window\":1,\"what\":\"press\",\"x\":10,\"y\":12}";
    socket.send(Message::text(press)).unwrap();
    let event = client.input().unwrap();
    assert_eq!((event.window, event.input, event.hits), (1, Input::Press(10, 12), vec![(100, 1)]));
    socket.send(Message::text("{\"client\":1,\"window\":1,\"what\":\"key\",\"key\":\"ü\"}")).unwrap();
    assert_eq!(client.input().unwrap().input, Input::Key(u32::from('ü')));
}

#[test]
fn what_is_no_request_for_the_page_is_answered_with_why() {
    let (server, _) = served("");
    let url = viewed(&server);
    let (host, token) = url.trim_start_matches("http://").split_once("/?").unwrap();
    for wrong in ["", "Host: a\r\nHost: a\r\n", "Host : a\r\n"] {
        let refused = asked(host, &format!("GET / HTTP/1.1\r\n{wrong}\r\n"));
        assert!(refused.starts_with("HTTP/1.1 400 "), "{wrong}: {refused}");
    }
    assert!(asked(host, "GET / HTTP/1.1\r\nHost: a\r\nno field\r\n\r\n").starts_with("HTTP/1.1 400 "));
    let page = |target: &str| asked(host, &format!("\r\nGET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    for target in [format!("/?{token}"), format!("http://{host}/?{token}"), format!("http://{host}?{token}")] {
        assert!(page(&target).starts_with("HTTP/1.1 200 "), "{target}");
    }
    assert!(page(&format!("http://{host}")).starts_with("HTTP/1.1 403 "));
    assert!(asked(host, "GET / HTTP/2.0\r\nHost: a\r\n\r\n").starts_with("HTTP/1.1 400 "));
    assert!(asked(host, "GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 403 "));
    let line = |method: &str, path: &str| asked(host, &format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    for path in [format!("/?{token}"), "/".into(), "/etc".into()] {
        let (whole, head) = (line("GET", &path), line("HEAD", &path));
        let body = whole.strip_prefix(&head).unwrap();
        assert!(head.ends_with("\r\n\r\n") && head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
    }
    let refused = line("POST", "/");
    assert!(refused.starts_with("HTTP/1.1 405 ") && refused.contains("Allow: GET, HEAD\r\n"), "{refused}");
    // Also where much of it was not read yet.
    for long in [8_200, 100_000, 600_000] {
        let answer = asked(host, &format!("GET / HTTP/1.1\r\nHost: {host}\r\nX: {}\r\n\r\n", "x".repeat(long)));
        assert!(
            answer.starts_with("HTTP/1.1 431 ")
                && answer.ends_with("longer than the 8192 bytes that are read of one\n"),
            "{answer}"
        );
    }
    let opens = |version: &str, key: &str, more: &str| {
        let first = format!("GET /pixels?{token} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n");
        asked(
            host,
            &format!(
                "{first}Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: {version}\r\n{key}\r\n{more}"
            ),
        )
    };
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let refused = opens("8", key, "");
    assert!(refused.starts_with("HTTP/1.1 426 ") && refused.contains("Sec-WebSocket-Version: 13\r\n"), "{refused}");
    let short = "Sec-WebSocket-Key: dGhlIHNh\r\n";
    for (key, more, why) in [("", "", "Key"), (short, "", "Key"), (key, "more", "behind the request")] {
        let refused = opens("13", key, more);
        let (head, body) = refused.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400 "), "{refused}");
        assert!(
            body.starts_with("no WebSocket is opened: ") && body.contains(why) && body.ends_with('\n'),
            "{refused}"
        );
    }
}

#[test]
fn one_browser_too_many_is_told_so() {
    let (server, _) = served("");
    let url = viewed(&server);
    let (host, token) = url.trim_start_matches("http://").split_once("/?").unwrap();
    let mut looking: Vec<_> = (0..16).map(|_| looks_on(host, token, &format!("http://{host}")).unwrap()).collect();
    let upgrade = format!(
        "GET /pixels?{token} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    let refused = asked(host, &upgrade);
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("16 browsers look on"), "{refused}");
    // One that goes makes room, when that is seen.
    looking.pop().unwrap().close(None).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while looks_on(host, token, &format!("http://{host}")).is_err() {
        assert!(Instant::now() < until, "no room");
    }
    // Strangers that say nothing keep nobody from the page: the oldest of many gives way.
    let mut silent: Vec<_> = (0..200).map(|_| TcpStream::connect(host).unwrap()).collect();
    silent.iter_mut().for_each(|stream| stream.write_all(b"GET / HT").unwrap());
    assert!(get(host, &format!("/?{token}")).starts_with("HTTP/1.1 200 "));
    silent[0].set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let ended = silent[0].read(&mut [0; 100]);
    assert!(matches!(&ended, Ok(0)) || ended.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
}

#[test]
fn the_display_ends_and_its_clients_say_so() {
    let server = Server::new(Limits::default(), Vec::new());
    let directory = std::env::temp_dir().join(format!("stackline-display-{}", std::process::id()));
    let address = Address::Unix(directory.clone());
    server.listen(Listener::at(&address).unwrap(), |_| {});
    let mut stream = address.connect().unwrap();
    // Half a message and then nothing: others are served meanwhile.
    stream.write_all(&[1, 0, 0]).unwrap();
    let mut client = Client::connect(&address, b"").unwrap();
    window(&mut client);
    assert!(matches!(stream, Stream::Unix(_)));
    std::fs::remove_file(directory).unwrap();
    let error = address.connect().unwrap_err();
    assert!(error.message.contains("no display answers") && error.hint.unwrap().contains("display serve"));
}

/// However slowly somebody says who he is, and whatever he makes the display draw: others are served.
#[test]
fn who_is_slow_or_draws_without_end_holds_nobody_up() {
    let (server, address) = served("");
    let mut slow = address.connect().unwrap();
    slow.write_all(&[1, 0, 0]).unwrap();
    let mut greedy = Client::connect(&address, b"").unwrap();
    greedy.send(&Request::CreateWindow(1, (4096, 4096), b"all")).unwrap();
    greedy.send(&Request::DefineSymbol(1)).unwrap();
    for id in 1..=1000 {
        let all = Item::drawn(Kind::Rectangle, id, (0, 0), (4095, 4095)).stippled(1);
        greedy.send(&Request::AddItem(all, b"")).unwrap();
    }
    greedy.send(&Request::EndSymbol).unwrap();
    greedy.send(&Request::DefineSymbol(2)).unwrap();
    for id in 1..=3990 {
        greedy.send(&Request::AddItem(Item::call(id, 1, 0, 0), b"")).unwrap();
    }
    greedy.send(&Request::EndSymbol).unwrap();
    greedy.send(&Request::DisplayView(1, 2, (0, 0), FULL_SIZE)).unwrap();
    let told = greedy.sync(1).unwrap_err();
    assert!(told.message.contains("the rest is left out"), "{}", told.message);
    // Who came first may have been entered last: the one with a window is meant.
    let displays = server.displays();
    let is_cut = |display: &Display| display.windows().any(|(.., window)| !window.items.1);
    assert!(displays.iter().any(|(_, display)| is_cut(&display.lock().unwrap())));
    let mut other = Client::connect(&address, b"").unwrap();
    window(&mut other);
    drop(slow);
}

/// Input for a client that does not read is counted and not kept, and whoever looks on goes on.
#[test]
fn input_does_not_wait_for_a_client_that_does_not_read() {
    let (server, address) = served("");
    let mut client = Client::connect(&address, b"").unwrap();
    window(&mut client);
    let id = server.last(|client, _| client).unwrap();
    for _ in 0..200_000 {
        server.input(id, 1, Input::Move(5, 5));
    }
    // Behind this answer nothing waits, so the next is not dropped, and tells what was.
    client.sync(1).unwrap();
    server.input(id, 1, Input::Key(1));
    let (mut count, mut dropped) = (0, 0);
    loop {
        let event = client.input().unwrap();
        (count, dropped) = (count + 1, dropped + event.dropped);
        if event.input == Input::Key(1) {
            break;
        }
    }
    // The kernels of both ends keep no more than some ten thousand, however their sender takes turns with this one.
    assert!(count + dropped == 200_001 && dropped > 100_000, "{count} {dropped}");
}
