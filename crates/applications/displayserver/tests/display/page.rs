//! The page over HTTP: strictly read requests, answered for its own host and no other page.

use crate::support::{asked, served, viewed};
use std::io::{Read, Write};
use std::net::TcpStream;

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
