//! Queues before servers of the test: order, attempts, what gives way.

use super::*;
use stackline_testing::wait_until;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

fn post(body: &str) -> PushedPost {
    PushedPost {
        below: "/v1/metrics",
        content_type: "text/plain",
        body: body.as_bytes().to_vec(),
    }
}

/// A server that answers its requests with these heads, one after the other, and reports what it got: the number of the connection, the
/// first line, the content.
fn server(heads: &'static [&'static str]) -> (PushUrl, Receiver<(usize, String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/base/", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut heads = heads.iter();
        for (number, socket) in listener.incoming().enumerate() {
            let mut reader = BufReader::new(socket.unwrap());
            loop {
                let mut lines = Vec::new();
                let mut line = String::new();
                while reader.read_line(&mut line).unwrap_or(0) > 2 {
                    lines.push(std::mem::take(&mut line));
                }
                let Some(first) = lines.first() else { break };
                let length = lines
                    .iter()
                    .find_map(|line| line.strip_prefix("Content-Length: "));
                let mut body = vec![0; length.unwrap().trim().parse().unwrap()];
                reader.read_exact(&mut body).unwrap();
                let got = (
                    number,
                    first.trim().to_owned(),
                    String::from_utf8(body).unwrap(),
                );
                sender.send(got).unwrap();
                let Some(head) = heads.next() else { return };
                let answer = format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n");
                reader.get_mut().write_all(answer.as_bytes()).unwrap();
            }
        }
    });
    (PushUrl::parse(&url).unwrap(), receiver)
}

#[test]
fn posts_go_over_one_connection_in_their_order() {
    let (url, got) = server(&["200 OK", "200 OK", "400 No", "200 OK"]);
    let queue = PushQueue::start(url, 8).unwrap();
    ["a", "b", "c", "d"]
        .iter()
        .for_each(|body| queue.push(post(body)));
    let all: Vec<_> = (0..4).map(|_| got.recv().unwrap()).collect();
    let line = "POST /base/v1/metrics HTTP/1.1";
    let expected = ["a", "b", "c", "d"].map(|body| (0, line.to_owned(), body.to_owned()));
    assert_eq!(all, expected);
    let counts = queue.finish(Duration::from_secs(60));
    let expected = PushCounts {
        sent: 3,
        refused: 1,
        ..PushCounts::default()
    };
    assert_eq!(counts, expected);
}

#[test]
fn a_server_that_asks_for_it_gets_the_same_again() {
    let (url, got) = server(&["503 Later\r\nRetry-After: 0", "200 OK"]);
    let queue = PushQueue::start(url, 8).unwrap();
    queue.push(post("a"));
    let bodies = [got.recv().unwrap().2, got.recv().unwrap().2];
    assert_eq!(bodies, ["a", "a"]);
    assert_eq!(queue.finish(Duration::from_secs(60)).sent, 1);
}

#[test]
fn a_server_that_is_down_costs_the_oldest_and_is_said_once() {
    // Nothing listens at this port any more.
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let url = PushUrl::parse(&format!("http://127.0.0.1:{port}/secret")).unwrap();
    let queue = PushQueue::start(url, 2).unwrap();
    queue.push(post("a"));
    let mut news = None;
    wait_until("the failure is said", || {
        news = queue.take_news();
        news.is_some()
    });
    let news = news.unwrap();
    assert!(
        news.starts_with("nothing can be pushed: cannot connect to http://127.0.0.1"),
        "{news}"
    );
    assert!(!news.contains("secret"), "{news}");
    ["b", "c", "d", "e"]
        .iter()
        .for_each(|body| queue.push(post(body)));
    let counts = queue.counts();
    assert_eq!((counts.sent, counts.dropped, counts.waiting), (0, 3, 2));
    let counts = queue.finish(Duration::from_secs(60));
    assert_eq!((counts.sent, counts.dropped), (0, 5));
}
