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
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use tungstenite::client::IntoClientRequest;
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
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
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
    let (mut count, mut dropped) = (0_u32, 0_u32);
    loop {
        let event = client.input().unwrap();
        (count, dropped) = (count + 1, dropped + u32::from(event.dropped));
        if event.input == Input::Key(1) {
            break;
        }
    }
    assert!(dropped > 0 && count > 0, "{count} {dropped}");
}
