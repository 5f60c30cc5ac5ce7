//! Limits of a display by messages: how long who says nothing stays, how many answers wait. Time is said, not waited for.

use super::*;
use crate::message_stream::{DisplayMessageStream, REPLY};
use stackline_display::protocol::{DisplayAnswer, DisplayRequest, VERSION, write_request};
use stackline_display::symbols::DisplayClientLimits;
use std::io::{Read, Write};

const SECOND: Duration = Duration::from_secs(1);

fn quiet(_: &str) {}

/// A display whose messages a test answers by itself, at times of its own.
struct Site {
    messages: ikp::IkpUdpServer,
    clients: MessageDisplayClients,
    begun: Instant,
}

impl Site {
    fn new() -> Self {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let messages =
            ikp::IkpUdpServer::bind(local, &IkpTransferOptions::default()).expect("loopback");
        let server = DisplayServer::new(DisplayClientLimits::default(), b"secret".to_vec());
        Self {
            messages,
            clients: MessageDisplayClients {
                server,
                known: HashMap::new(),
                late: DelayedDisplayRefusals::default(),
                say: quiet,
            },
            begun: Instant::now(),
        }
    }

    fn client(&self) -> DisplayMessageStream {
        DisplayMessageStream::connect(&self.messages.local().expect("its address").to_string())
            .expect("a client")
    }

    /// A client's message, which is answered so long after the beginning.
    fn said(&mut self, client: &mut DisplayMessageStream, bytes: &[u8], after: Duration) {
        // Nothing to write would be no message.
        self.while_it(
            || client.exchange(REQUESTS, bytes).expect("an answer"),
            after,
        );
    }

    /// A client goes; its place is free at once.
    fn left(&mut self, client: DisplayMessageStream, after: Duration) {
        self.while_it(|| drop(client), after);
        assert!(!self.is_there(after));
    }

    fn while_it(&mut self, does: impl FnOnce() + Send, after: Duration) {
        thread::scope(|scope| {
            let done = scope.spawn(does);
            let request = self
                .messages
                .receive_within(20 * SECOND)
                .expect("loopback")
                .expect("the client's message");
            self.clients.answer(request, self.begun + after);
            done.join().expect("the client");
        });
    }

    /// Whether somebody is there after so long.
    fn is_there(&mut self, after: Duration) -> bool {
        self.clients.drop_silent(self.begun + after);
        assert_eq!(
            self.clients.known.len(),
            self.clients.server.displays().len()
        );
        !self.clients.known.is_empty()
    }
}

fn hello() -> Vec<u8> {
    let mut bytes = Vec::new();
    write_request(
        &mut bytes,
        &DisplayRequest::Hello {
            version: VERSION,
            token: b"secret",
        },
        false,
    );
    bytes
}

#[test]
fn nothing_is_kept_of_who_does_not_say_who_it_is_at_once() {
    let mut site = Site::new();
    let hello = hello();
    let mut wrong = hello.clone();
    *wrong.last_mut().expect("it has bytes") ^= 1;
    for bytes in [
        &hello[..1],
        &hello[..hello.len() - 1],
        b"",
        b"POST / HTTP/1.1\r\n\r\n",
        &wrong,
    ] {
        let mut client = site.client();
        thread::scope(|scope| {
            let done = scope.spawn(|| {
                client
                    .exchange(REQUESTS, bytes)
                    .expect_err("it is sent away")
            });
            let request = site
                .messages
                .receive_within(20 * SECOND)
                .expect("loopback")
                .expect("the client's message");
            site.clients.answer(request, site.begun);
            assert!(
                site.clients.known.is_empty() && site.clients.server.displays().is_empty(),
                "{bytes:?}"
            );
            // A wrong secret is answered later.
            site.clients
                .late
                .answer(&mut site.messages, site.begun + SECOND);
            let error = done.join().expect("the client").to_string();
            assert_eq!(error.contains("secret"), bytes == wrong, "{error}");
        });
        site.while_it(|| drop(client), Duration::ZERO);
    }
}

#[test]
fn who_has_said_it_stays_until_it_was_silent_for_ten_minutes() {
    let mut site = Site::new();
    let mut client = site.client();
    site.said(&mut client, &hello(), Duration::ZERO);
    site.said(&mut client, b"", 500 * SECOND);
    assert!(site.is_there(500 * SECOND + IDLE - SECOND));
    assert!(!site.is_there(500 * SECOND + IDLE));
    site.left(client, 500 * SECOND + IDLE);
}

/// A client that is known, of a display that serves itself.
fn served() -> (DisplayServer, DisplayMessageStream) {
    let server = DisplayServer::new(DisplayClientLimits::default(), b"secret".to_vec());
    let local = serve(&server, "127.0.0.1:0", quiet).expect("loopback");
    let mut client = DisplayMessageStream::connect(&local.to_string()).expect("a client");
    client.write_all(&hello()).expect("an answer");
    (server, client)
}

/// A message of requests that are answered by five times as many bytes.
fn asking() -> Vec<u8> {
    let mut message = Vec::new();
    for token in 0..100 {
        write_request(&mut message, &DisplayRequest::Sync(token), false);
    }
    message
}

/// Bytes of answers to that.
const ANSWERS: usize = 100 * 40;

#[test]
fn of_answers_that_are_not_asked_for_a_mebibyte_waits() {
    let (server, mut client) = served();
    let asking = asking();
    let mut answered = 0;
    let error = loop {
        match client.write_all(&asking) {
            Ok(()) => answered += 1,
            Err(error) => break error,
        }
        assert!(answered * ANSWERS < 4 * MOST_WAITING, "nothing ends it");
    };
    assert!(
        error
            .to_string()
            .contains("does not read the answers sent to it"),
        "{error}"
    );
    // Each reply has brought some of it.
    let least = answered * (ANSWERS - REPLY);
    assert!(
        (answered + 1) * ANSWERS > MOST_WAITING && least <= MOST_WAITING,
        "{answered}"
    );
    assert!(server.displays().is_empty());
}

#[test]
fn who_reads_its_answers_gets_more_of_them_than_that() {
    let (server, mut client) = served();
    let (asking, mut rest) = (asking(), Vec::new());
    for _ in 0..2 * MOST_WAITING / ANSWERS {
        client.write_all(&asking).expect("it goes on");
        until_synced(&mut client, &mut rest);
    }
    assert_eq!(server.displays().len(), 1);
}

/// Reads to the last answer of a message.
fn until_synced(client: &mut DisplayMessageStream, rest: &mut Vec<u8>) {
    let mut piece = [0; 4096];
    loop {
        while let Some((answer, length)) = DisplayAnswer::take(rest).expect("answers") {
            rest.drain(..length);
            if matches!(answer, DisplayAnswer::Synced { token: 99, .. }) {
                return;
            }
        }
        let count = client.read(&mut piece).expect("answers");
        rest.extend_from_slice(&piece[..count]);
    }
}
