//! What the listener of metrics answers to scrapers, and to clients that are hostile or slow.

use super::*;
use crate::openmetrics::build_info;
use stackline_testing::metrics_text::{read_openmetrics, read_prometheus};
use std::io::{Read as _, Write as _};

fn listener() -> MetricsListener {
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    MetricsListener::start(address, || vec![build_info("1.2.3")]).unwrap()
}

/// What the listener sends to these bytes until it ends the connection.
fn answer_to(listener: &MetricsListener, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(listener.address()).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

/// The answer to a request line with further fields.
fn answer(listener: &MetricsListener, request: &str, fields: &str) -> (String, String) {
    let port = listener.address().port();
    let text = format!("{request} HTTP/1.1\r\nHost: localhost:{port}\r\n{fields}\r\n");
    let answer = answer_to(listener, text.as_bytes());
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_ascii_lowercase(), body.to_owned())
}

#[test]
fn metrics_are_served_in_the_form_that_is_asked_for() {
    let listener = listener();
    let open = "Accept: application/openmetrics-text; version=1.0.0\r\n";
    let (head, body) = answer(&listener, "GET /metrics", open);
    assert!(
        head.starts_with("http/1.1 200") && head.contains("openmetrics-text; version=1.0.0"),
        "{head}"
    );
    let families = read_openmetrics(&body).unwrap();
    assert_eq!(families[0].samples[0].labels["version"], "1.2.3");
    let (head, body) = answer(&listener, "GET /metrics?a=b", "");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    assert_eq!(read_prometheus(&body).unwrap().len(), 1);
    let (head, nothing) = answer(&listener, "HEAD /metrics", "");
    assert!(
        nothing.is_empty() && head.contains(&format!("content-length: {}", body.len())),
        "{head}"
    );
    let (_, page) = answer(&listener, "GET /", "");
    assert!(page.contains("<a href=\"/metrics\">"), "{page}");
    assert!(listener.url().ends_with("/metrics"));
}

#[test]
fn what_is_not_there_or_not_allowed_is_refused_with_a_reason() {
    let listener = listener();
    for (request, fields, status) in [
        ("GET /other", "", "404"),
        ("POST /metrics", "Content-Length: 0\r\n", "405"),
        ("DELETE /", "", "405"),
        ("GET http://evil.example/metrics", "", "421"),
        ("GET /metrics", "Host: evil.example\r\n", "400"),
    ] {
        let (head, body) = answer(&listener, request, fields);
        assert!(head.starts_with(&format!("http/1.1 {status}")), "{head}");
        assert!(!body.is_empty(), "{request}");
        assert_eq!(head.contains("allow: get, head"), status == "405", "{head}");
    }
    for (host, status) in [
        ("evil.example", "421"),
        ("192.0.2.1:9464", "421"),
        ("127.0.0.1", "200"),
        ("[::1]:9464", "200"),
        ("LOCALHOST:80", "200"),
    ] {
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let answer = answer_to(&listener, request.as_bytes());
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{answer}"
        );
    }
    let old = answer_to(&listener, b"GET /metrics HTTP/1.0\r\n\r\n");
    assert!(old.contains(" 200 "), "{old}");
}

#[test]
fn what_is_not_http_or_too_long_is_refused() {
    let listener = listener();
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(9 << 10));
    let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(65));
    for (bytes, status) in [
        ("\r\n\r\nnothing of HTTP\r\n\r\n", " 400 "),
        ("GET /metrics HTTP/1.1\r\nHost localhost\r\n\r\n", " 400 "),
        ("GET /metrics HTTP/1.1\r\n\r\n", " 400 "),
        (&long, " 431 "),
        (&many, " 431 "),
    ] {
        let answer = answer_to(&listener, bytes.as_bytes());
        let first = answer.lines().next().unwrap_or_default();
        assert!(first.contains(status), "{first} to {bytes:.40}");
    }
    // Somebody who closes without a word is no trouble.
    assert_eq!(
        {
            let stream = TcpStream::connect(listener.address()).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut answer = String::new();
            (&stream).read_to_string(&mut answer).unwrap();
            answer
        },
        ""
    );
}

#[test]
fn silent_connections_give_way_and_end_with_the_listener() {
    let listener = listener();
    let mut silent: Vec<TcpStream> = (0..2 * CONNECTIONS)
        .map(|_| TcpStream::connect(listener.address()).unwrap())
        .collect();
    let (head, _) = answer(&listener, "GET /metrics", "");
    assert!(head.starts_with("http/1.1 200"), "{head}");
    // The oldest was closed for a newer one; the newest is open until the listener ends.
    assert_eq!(silent[0].read(&mut [0]).unwrap(), 0);
    let address = listener.address();
    drop(listener);
    let newest = silent.last_mut().unwrap();
    assert!(matches!(newest.read(&mut [0]), Ok(0) | Err(_)));
    assert!(TcpStream::connect(address).is_err());
}
