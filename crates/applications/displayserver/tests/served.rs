//! A display on sockets: clients at the four levels, whoever is sent away, a browser's side of the view.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

use stackline_core::named::NamedValue as _;
use stackline_display::item::{DisplayItem, DisplayItemKind};
use stackline_display::machine::{DisplayMachine, FULL_SIZE};
use stackline_display::protocol::{DisplayInput, DisplayRequest, VERSION, write_request};
use stackline_display::symbols::DisplayClientLimits;
use stackline_displayserver::address::DisplayAddress;
use stackline_displayserver::agent;
use stackline_displayserver::bench::pictures;
use stackline_displayserver::client::DisplayClient;
use stackline_displayserver::listener::DisplayListener;
use stackline_displayserver::send_level::{DisplaySendLevel, send};
use stackline_displayserver::server::DisplayServer;
use stackline_displayserver::stream::DisplayStream;
use stackline_displayserver::view;
use stackline_guard::secret::Secret;
use stackline_testing::wait_until;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tungstenite::client::IntoClientRequest;
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, WebSocket};

fn served(secret: &str) -> (DisplayServer, DisplayAddress) {
    let server = DisplayServer::new(DisplayClientLimits::default(), secret.as_bytes().to_vec());
    let listener = DisplayListener::at(&DisplayAddress::Tcp("127.0.0.1:0".into())).unwrap();
    let address = listener.address();
    server.listen(listener, |_| {});
    (server, address)
}

fn window(client: &mut DisplayClient) {
    client
        .send(&DisplayRequest::CreateWindow(1, (800, 800), b"test"))
        .unwrap();
    client
        .send(&DisplayRequest::DisplayView(1, 100, (8, 8), FULL_SIZE))
        .unwrap();
    client.send(&DisplayRequest::DefineSymbol(100)).unwrap();
    client.ask(&DisplayRequest::EndSymbol).unwrap();
}

fn drawn(server: &DisplayServer) -> Vec<u8> {
    server
        .last(|client, display| display.draw(client, 1).unwrap().pixels().bytes().to_vec())
        .unwrap()
}

#[test]
fn one_client_too_many_is_refused_with_the_reason() {
    let (server, address) = served("");
    let clients: Vec<DisplayClient> = (0..64)
        .map(|_| DisplayClient::connect(&address, b"").unwrap())
        .collect();
    let error = DisplayClient::connect(&address, b"").unwrap_err();
    assert!(
        error.message.ends_with("has reached its client limit") && error.hint.is_some(),
        "{error:?}"
    );
    drop(clients);
    // They go one by one.
    wait_until("its clients are gone", || server.displays().is_empty());
    DisplayClient::connect(&address, b"").unwrap();
}

#[test]
fn every_level_draws_the_same() {
    for picture in pictures() {
        let mut all = Vec::new();
        for (level, ..) in DisplaySendLevel::NAMED
            .iter()
            .copied()
            .filter(|(level, ..)| {
                *level != DisplaySendLevel::Structured || !picture.symbols.is_empty()
            })
        {
            let (server, address) = served("");
            let mut client = DisplayClient::connect(&address, b"").unwrap();
            window(&mut client);
            send(&mut client, level, &picture, 100).unwrap();
            all.push(drawn(&server));
        }
        assert!(all[0].iter().any(|pixel| *pixel != 0), "{}", picture.name);
        assert!(
            all.windows(2).all(|pair| pair[0] == pair[1]),
            "{}",
            picture.name
        );
    }
}

#[test]
fn a_client_sends_no_more_than_it_may_and_a_million_items_arrive() {
    let (server, address) = served("");
    let mut client = DisplayClient::connect(&address, b"").unwrap();
    window(&mut client);
    client.send(&DisplayRequest::DefineSymbol(100)).unwrap();
    for id in 1..=1_000_000 {
        client
            .send(&DisplayRequest::AddItem(
                DisplayItem::drawn(DisplayItemKind::Vector, id, (1, 1), (9, 9)),
                b"",
            ))
            .unwrap();
    }
    client.ask(&DisplayRequest::EndSymbol).unwrap();
    let memory = server.last(|client, display| display.memory(client));
    assert_eq!(memory, Some(20_000_000));
    let error = client.ask(&DisplayRequest::EndSymbol).unwrap_err();
    assert!(
        error.message.contains("unknown symbol"),
        "{}",
        error.message
    );
}

#[test]
fn strangers_get_no_further_than_the_door() {
    let (server, address) = served("secret");
    let error = DisplayClient::connect(&address, b"guess").unwrap_err();
    assert!(
        error.hint.unwrap().contains("--secret-file") || error.message.contains("ended"),
        "{}",
        error.message
    );
    DisplayClient::connect(&address, b"secret").unwrap();
    let DisplayAddress::Tcp(port) = &address else {
        unreachable!()
    };
    let mut web = TcpStream::connect(port).unwrap();
    web.write_all(b"GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n")
        .unwrap();
    web.write_all(&[b'x'; 200]).unwrap();
    let mut answer = Vec::new();
    let _ = web.read_to_end(&mut answer);
    assert!(answer.is_empty());
    assert_eq!(
        server
            .last(|_, display| display.windows().count())
            .unwrap_or(0),
        0
    );
}

/// The address of a view, and the secret in it.
fn viewed(server: &DisplayServer) -> String {
    view::show(
        server,
        &DisplayAddress::Tcp("127.0.0.1:0".into()),
        &Secret::new(b"0123456789abcdef".to_vec()).unwrap(),
    )
    .unwrap()
}

fn get(host: &str, path: &str) -> String {
    asked(
        host,
        &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
    )
}

/// What is answered; names of fields in small letters.
fn asked(host: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(host).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
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
fn what_is_no_request_for_the_page_is_answered_with_why() {
    let (server, _) = served("");
    let url = viewed(&server);
    let (host, token) = url.trim_start_matches("http://").split_once("/?").unwrap();
    for wrong in ["", "Host: a\r\nHost: a\r\n", "Host : a\r\n"] {
        let refused = asked(host, &format!("GET / HTTP/1.1\r\n{wrong}\r\n"));
        assert!(refused.starts_with("HTTP/1.1 400 "), "{wrong}: {refused}");
    }
    assert!(
        asked(host, "GET / HTTP/1.1\r\nHost: a\r\nno field\r\n\r\n").starts_with("HTTP/1.1 400 ")
    );
    let page = |target: &str| {
        asked(
            host,
            &format!("\r\nGET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        )
    };
    for target in [
        format!("/?{token}"),
        format!("http://{host}/?{token}"),
        format!("http://{host}?{token}"),
    ] {
        assert!(page(&target).starts_with("HTTP/1.1 200 "), "{target}");
    }
    assert!(page(&format!("http://{host}")).starts_with("HTTP/1.1 403 "));
    assert!(asked(host, "GET / HTTP/2.0\r\nHost: a\r\n\r\n").starts_with("HTTP/1.1 400 "));
    // As RFC 9112 asks of HTTP/1.1; no browser leaves it out of HTTP/1.0.
    assert!(asked(host, "GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 400 "));
    let lengths = |more: &str| {
        asked(
            host,
            &format!("GET / HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"),
        )
    };
    // Lengths that are none, folded lines (RFC 9112, 5.2), fields without a name, and what no field may hold.
    let strict = [
        "Content-Length: 0\r\nContent-Length: 1\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: \r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: 18446744073709551616\r\n",
        "X: a\r\n b: c\r\n",
        ": x\r\n",
        "X: a\0b\r\n",
        "X: a\rb\r\n",
        "Origin: http://a\r\nOrigin: http://a\r\n",
    ];
    for wrong in strict {
        assert!(lengths(wrong).starts_with("HTTP/1.1 400 "), "{wrong:?}");
    }
    // What is behind the head is no part of it, be it a Host or a second request.
    assert!(
        asked(
            host,
            &format!("GET /?{token} HTTP/1.1\r\n\r\nHost: {host}\r\n\r\n")
        )
        .starts_with("HTTP/1.1 400 ")
    );
    let twice = format!("GET /?{token} HTTP/1.1\r\nHost: {host}\r\n\r\n").repeat(2);
    assert!(asked(host, &twice).starts_with("HTTP/1.1 200 "));
    let line = |method: &str, path: &str| {
        asked(
            host,
            &format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        )
    };
    for path in [format!("/?{token}"), "/".into(), "/etc".into()] {
        let (whole, head) = (line("GET", &path), line("HEAD", &path));
        let body = whole.strip_prefix(&head).unwrap();
        assert!(
            head.ends_with("\r\n\r\n")
                && head.contains(&format!("content-length: {}\r\n", body.len())),
            "{head}"
        );
    }
    // A body is not waited for.
    for length in ["Content-Length: 5", "Transfer-Encoding: chunked"] {
        let post = format!("POST / HTTP/1.1\r\nHost: {host}\r\n{length}\r\n\r\n");
        assert!(asked(host, &post).starts_with("HTTP/1.1 405 "), "{length}");
    }
    let refused = line("POST", "/");
    assert!(
        refused.starts_with("HTTP/1.1 405 ") && refused.contains("allow: GET, HEAD\r\n"),
        "{refused}"
    );
    // Also where much of it was not read yet.
    for long in [8_200, 100_000, 600_000] {
        let answer = asked(
            host,
            &format!(
                "GET / HTTP/1.1\r\nHost: {host}\r\nX: {}\r\n\r\n",
                "x".repeat(long)
            ),
        );
        assert!(
            answer.starts_with("HTTP/1.1 431 ") && answer.ends_with("longer than 8192 bytes\n"),
            "{answer}"
        );
    }
    let opens = |version: &str, key: &str| {
        let first =
            format!("GET /pixels?{token} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n");
        asked(
            host,
            &format!(
                "{first}Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: {version}\r\n{key}\r\n"
            ),
        )
    };
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let refused = opens("8", key);
    assert!(
        refused.starts_with("HTTP/1.1 426 ") && refused.contains("sec-websocket-version: 13\r\n"),
        "{refused}"
    );
    let short = "Sec-WebSocket-Key: dGhlIHNh\r\n";
    for key in ["", short] {
        let refused = opens("13", key);
        let (head, body) = refused.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400 "), "{refused}");
        assert!(
            body.starts_with("cannot open a WebSocket: ")
                && body.contains("Key")
                && body.ends_with('\n'),
            "{refused}"
        );
    }
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

#[test]
fn the_display_ends_and_its_clients_say_so() {
    let server = DisplayServer::new(DisplayClientLimits::default(), Vec::new());
    let directory = std::env::temp_dir().join(format!("stackline-display-{}", std::process::id()));
    let address = DisplayAddress::Unix(directory.clone());
    server.listen(DisplayListener::at(&address).unwrap(), |_| {});
    let mut stream = address.connect().unwrap();
    // Half a message and then nothing: others are served meanwhile.
    stream.write_all(&[1, 0, 0]).unwrap();
    let mut client = DisplayClient::connect(&address, b"").unwrap();
    window(&mut client);
    assert!(matches!(stream, DisplayStream::Unix(_)));
    std::fs::remove_file(directory).unwrap();
    let error = address.connect().unwrap_err();
    assert!(
        error.message.contains("no display answers")
            && error.hint.unwrap().contains("display serve")
    );
}

/// However slowly somebody says who he is, and whatever he makes the display draw: others are served.
#[test]
fn who_is_slow_or_draws_without_end_holds_nobody_up() {
    let (server, address) = served("");
    let mut slow = address.connect().unwrap();
    slow.write_all(&[1, 0, 0]).unwrap();
    let mut greedy = DisplayClient::connect(&address, b"").unwrap();
    greedy
        .send(&DisplayRequest::CreateWindow(1, (4096, 4096), b"all"))
        .unwrap();
    greedy.send(&DisplayRequest::DefineSymbol(1)).unwrap();
    for id in 1..=1000 {
        let all =
            DisplayItem::drawn(DisplayItemKind::Rectangle, id, (0, 0), (4095, 4095)).stippled(1);
        greedy.send(&DisplayRequest::AddItem(all, b"")).unwrap();
    }
    greedy.send(&DisplayRequest::EndSymbol).unwrap();
    greedy.send(&DisplayRequest::DefineSymbol(2)).unwrap();
    for id in 1..=3990 {
        greedy
            .send(&DisplayRequest::AddItem(
                DisplayItem::call(id, 1, 0, 0),
                b"",
            ))
            .unwrap();
    }
    greedy.send(&DisplayRequest::EndSymbol).unwrap();
    greedy
        .send(&DisplayRequest::DisplayView(1, 2, (0, 0), FULL_SIZE))
        .unwrap();
    let error = greedy.sync(1).unwrap_err();
    assert!(
        error.message.contains("the rest is omitted"),
        "{}",
        error.message
    );
    // Who came first may have been entered last: the one with a window is meant.
    let displays = server.displays();
    let is_cut = |display: &DisplayMachine| display.windows().any(|(.., window)| !window.items.1);
    assert!(
        displays
            .iter()
            .any(|(_, display)| is_cut(&display.lock().unwrap()))
    );
    let mut other = DisplayClient::connect(&address, b"").unwrap();
    window(&mut other);
    drop(slow);
}

/// Input for a client that does not read is counted and not kept, and whoever looks on goes on.
#[test]
fn input_does_not_wait_for_a_client_that_does_not_read() {
    let (server, address) = served("");
    let mut client = DisplayClient::connect(&address, b"").unwrap();
    window(&mut client);
    let id = server.last(|client, _| client).unwrap();
    for _ in 0..200_000 {
        server.input(id, 1, DisplayInput::Move(5, 5));
    }
    // Keys come once there is room again, and the first one that does tells what was dropped.
    let (seen, keys) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !seen.load(Ordering::Relaxed) {
                server.input(id, 1, DisplayInput::Key(1));
                keys.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let (mut count, mut dropped) = (0, 0);
        loop {
            let event = client.input().unwrap();
            (count, dropped) = (count + 1, dropped + event.dropped);
            if event.input == DisplayInput::Key(1) {
                break;
            }
        }
        seen.store(true, Ordering::Relaxed);
        // The kernels of both ends keep no more than some ten thousand, however their sender takes turns with this one.
        let all = 200_001..=200_001 + keys.load(Ordering::Relaxed);
        assert!(
            all.contains(&(count + dropped)) && dropped > 100_000,
            "{count} {dropped} {all:?}"
        );
    });
}

/// Another name that leads here (DNS rebinding), and pages from elsewhere.
#[test]
fn a_page_is_for_its_own_host_and_for_no_other_page() {
    let (server, _) = served("");
    let url = viewed(&server);
    let (host, token) = url.trim_start_matches("http://").split_once("/?").unwrap();
    let port = host.rsplit_once(':').unwrap().1;
    let page = |host_line: &str, more: &str| {
        asked(
            host,
            &format!("GET /?{token} HTTP/1.1\r\nHost: {host_line}\r\n{more}\r\n"),
        )
    };
    for own in [
        host,
        &format!("localhost:{port}"),
        &format!("[::1]:{port}"),
        "127.0.0.1:9",
        "LOCALHOST",
    ] {
        assert!(page(own, "").starts_with("HTTP/1.1 200 "), "{own}");
    }
    for other in [
        "evil.example",
        &format!("evil.example:{port}"),
        "localhost.evil.example",
        "8.8.8.8",
        "127.0.0.1.evil",
        "",
    ] {
        assert!(page(other, "").starts_with("HTTP/1.1 421 "), "{other}");
    }
    // As proxies ask: the host in the target counts.
    for (authority, status) in [(host, "200"), ("evil.example", "421"), ("", "400")] {
        let request = format!("GET http://{authority}/?{token} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert!(
            asked(host, &request).starts_with(&format!("HTTP/1.1 {status} ")),
            "{authority}"
        );
    }
    let machine = format!("{}:{port}", stackline_events::setting::host());
    assert!(page(&machine, "").starts_with("HTTP/1.1 200 "), "{machine}");
    for wrong in ["a b", "user@127.0.0.1"] {
        assert!(page(wrong, "").starts_with("HTTP/1.1 400 "), "{wrong}");
    }
    assert!(page(host, &format!("Origin: http://{host}\r\n")).starts_with("HTTP/1.1 200 "));
    for other in ["http://evil.example", "null", "http://127.0.0.1:9"] {
        assert!(
            page(host, &format!("Origin: {other}\r\n")).starts_with("HTTP/1.1 403 "),
            "{other}"
        );
    }
    for (site, mode, is_shown) in [
        ("none", "navigate", true),
        ("same-origin", "navigate", true),
        ("cross-site", "navigate", false),
        ("same-site", "navigate", false),
        ("same-origin", "no-cors", false),
        ("none", "cors", false),
    ] {
        let answer = page(
            host,
            &format!("Sec-Fetch-Site: {site}\r\nSec-Fetch-Mode: {mode}\r\n"),
        );
        assert_eq!(
            answer.starts_with("HTTP/1.1 200 "),
            is_shown,
            "{site} {mode}"
        );
        assert!(is_shown || answer.starts_with("HTTP/1.1 403 "), "{answer}");
    }
    let opens = |host_line: &str, site: &str, mode: &str| {
        let first = format!(
            "GET /pixels?{token} HTTP/1.1\r\nHost: {host_line}\r\nOrigin: http://{host_line}\r\n"
        );
        let fetch =
            format!("Sec-Fetch-Site: {site}\r\nSec-Fetch-Mode: {mode}\r\nConnection: Upgrade\r\n");
        let opens = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        let mut stream = TcpStream::connect(host).unwrap();
        stream
            .write_all(format!("{first}{fetch}{opens}\r\n").as_bytes())
            .unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[9..]).into_owned()
    };
    assert_eq!(opens(host, "same-origin", "websocket"), "101");
    assert_eq!(
        opens(&format!("evil.example:{port}"), "same-origin", "websocket"),
        "421"
    );
    assert_eq!(opens(host, "cross-site", "websocket"), "403");
    assert_eq!(opens(host, "same-origin", "cors"), "403");
}

/// What a browser sends for a page of somebody else, with requests that would do something behind it.
#[test]
fn no_port_takes_requests_behind_a_post() {
    let server = DisplayServer::new(DisplayClientLimits::default(), b"secret".to_vec());
    let mut body = Vec::new();
    write_request(
        &mut body,
        &DisplayRequest::Hello {
            version: VERSION,
            token: b"secret",
        },
        true,
    );
    write_request(
        &mut body,
        &DisplayRequest::CreateWindow(1, (100, 100), b"owned"),
        true,
    );
    let post = [
        b"POST / HTTP/1.1\r\nHost: x\r\nOrigin: http://evil\r\n\r\n".as_slice(),
        &body,
    ]
    .concat();
    let display = served_at(&server, "127.0.0.1:0");
    let service = agent::DisplayAgentOptions {
        display: display.clone(),
        limits: DisplayClientLimits::default(),
        patience: Duration::from_secs(5),
        secret: b"secret".to_vec(),
    };
    let by_agent = DisplayListener::at(&DisplayAddress::Tcp("127.0.0.1:0".into())).unwrap();
    let behind = by_agent.address();
    std::thread::spawn(move || agent::serve(&by_agent, &service, |_| {}));
    let page = viewed(&server);
    let page = DisplayAddress::Tcp(
        page.trim_start_matches("http://")
            .split_once('/')
            .unwrap()
            .0
            .to_owned(),
    );
    let by_frames = served_at(&server, "ngp:127.0.0.1:0");
    for address in [&display, &by_frames, &behind, &page] {
        let place = address.to_string().trim_start_matches("ngp:").to_owned();
        let mut stream = TcpStream::connect(&place).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let _ = stream.write_all(&post);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let is_refused = answer.is_empty() || answer.starts_with(b"HTTP/1.1 4");
        assert!(
            is_refused,
            "{address}: {}",
            String::from_utf8_lossy(&answer)
        );
        assert!(server.displays().is_empty(), "{address}");
    }
    // The same without HTTP before it is a client.
    let mut stream = TcpStream::connect(display.to_string()).unwrap();
    stream.write_all(&body).unwrap();
    stream.read_exact(&mut [0; 18]).unwrap();
    assert_eq!(server.displays().len(), 1);
}

fn served_at(server: &DisplayServer, at: &str) -> DisplayAddress {
    let listener = DisplayListener::at(&DisplayAddress::of(at).unwrap()).unwrap();
    let address = listener.address();
    server.listen(listener, |_| {});
    address
}

/// Silent ones, ones that begin a greeting, ones with a wrong secret: far more than there are places.
#[test]
fn strangers_keep_no_client_out() {
    let (server, address) = served("secret");
    let clients: Vec<DisplayClient> = (0..63)
        .map(|_| DisplayClient::connect(&address, b"secret").unwrap())
        .collect();
    let mut strangers = std::collections::VecDeque::new();
    for number in 0..4200 {
        let mut stream = TcpStream::connect(address.to_string()).unwrap();
        if number % 3 == 1 {
            stream.write_all(&[1, 0]).unwrap();
        }
        if number % 100 == 0 {
            let mut hello = Vec::new();
            write_request(
                &mut hello,
                &DisplayRequest::Hello {
                    version: VERSION,
                    token: b"guess!",
                },
                false,
            );
            stream.write_all(&hello).unwrap();
        }
        strangers.push_back(stream);
        if strangers.len() > 300 {
            strangers.pop_front();
        }
    }
    let last = DisplayClient::connect(&address, b"secret").unwrap();
    assert_eq!(server.displays().len(), 64);
    drop((clients, last));
}

#[test]
fn a_unix_socket_is_private_and_its_user_s_programs_need_no_secret() {
    use std::os::unix::fs::PermissionsExt;
    let place = std::env::temp_dir().join(format!("stackline-private-{}", std::process::id()));
    let server = DisplayServer::new(DisplayClientLimits::default(), b"secret".to_vec());
    for at in ["unix:", "ngp:unix:"] {
        let address = served_at(&server, &format!("{at}{}", place.display()));
        assert_eq!(
            std::fs::symlink_metadata(&place)
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o600
        );
        DisplayClient::connect(&DisplayAddress::of(&address.to_string()).unwrap(), b"").unwrap();
        std::fs::remove_file(&place).unwrap();
    }
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
