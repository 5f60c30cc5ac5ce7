//! Exchanges of two ends that hear each other at once, and what is written of them.

use super::http2::{FIRST_WINDOW, FRAME_HEAD};
use super::*;
use alloc::vec;
use alloc::vec::Vec;
use stackline_core::time::Instant;

const WINDOWS: Http2Windows = Http2Windows {
    stream: 30_000,
    connection: 1 << 20,
};

const fn head(request: Option<HttpRequestKind>, length: Option<u64>) -> HttpHead {
    HttpHead {
        request,
        pair: None,
        length,
        ends: false,
    }
}

/// What one end writes, one number for each write.
fn writes(end: &mut dyn HttpMachine) -> (Vec<u64>, Vec<HttpFrame>) {
    let (mut sizes, mut frames) = (Vec::new(), Vec::new());
    loop {
        let pieces = end.poll();
        if pieces.is_empty() {
            return (sizes, frames);
        }
        sizes.push(pieces.iter().map(|piece| piece.wire_bytes).sum());
        frames.extend(pieces.into_iter().map(|piece| piece.frame));
    }
}

/// Gives all that `from` writes to `to`. Returns the sizes of the writes.
fn carry(from: &mut dyn HttpMachine, to: &mut dyn HttpMachine) -> Vec<u64> {
    let (sizes, frames) = writes(from);
    frames.into_iter().for_each(|frame| to.handle(frame));
    sizes
}

/// Two ends of HTTP/2 that have exchanged SETTINGS.
fn connected(client: Http2Windows, server: Http2Windows) -> (Http2End, Http2End) {
    let mut ends = (Http2End::new(true, client), Http2End::new(false, server));
    carry(&mut ends.0, &mut ends.1);
    carry(&mut ends.1, &mut ends.0);
    carry(&mut ends.0, &mut ends.1);
    assert!(ends.0.is_settled() && ends.1.is_settled());
    ends
}

#[test]
fn a_call_of_http1_has_the_bytes_of_its_text() {
    let (mut client, mut server) = (Http1End::new(), Http1End::new());
    let stream = client.request(head(Some(HttpRequestKind::Call), Some(32)));
    client.send(stream, 32, true);
    let text = "POST /call HTTP/1.1\r\nhost: stackline\r\ncontent-length: 32\r\n\r\n";
    assert_eq!(carry(&mut client, &mut server), [text.len() as u64 + 32]);
    let arrival = server.accept(None).expect("the request has come");
    assert_eq!(arrival.kind, HttpRequestKind::Call);
    assert_eq!(
        (server.take(arrival.stream), server.is_ended(arrival.stream)),
        (32, true)
    );
    server.respond(arrival.stream, head(None, Some(1000)), Instant(0));
    server.send(arrival.stream, 1000, true);
    let text =
        "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\ndate: Mon, 30 Nov 2026 10:59:16 GMT\r\n\r\n";
    assert_eq!(carry(&mut server, &mut client), [text.len() as u64 + 1000]);
    assert!(client.has_head(stream) && !client.is_ended(stream));
    assert_eq!((client.take(stream), client.is_ended(stream)), (1000, true));
}

#[test]
fn chunks_of_http1_go_sixteen_to_a_write() {
    let (mut client, mut server) = (Http1End::new(), Http1End::new());
    let stream = client.request(head(Some(HttpRequestKind::Put), None));
    let text = "POST /put HTTP/1.1\r\nhost: stackline\r\ntransfer-encoding: chunked\r\n\r\n";
    for _ in 0..18 {
        client.send(stream, 1000, false);
    }
    client.end(stream);
    let chunk = "3e8\r\n".len() as u64 + 1000 + 2;
    assert_eq!(
        carry(&mut client, &mut server),
        [text.len() as u64 + 16 * chunk, 2 * chunk + 5]
    );
    let stream = server.accept(None).expect("the request has come").stream;
    assert_eq!(
        (server.take(stream), server.is_ended(stream)),
        (18_000, true)
    );
    assert!(client.is_sent(stream));
}

#[test]
fn http2_connects_with_preface_settings_and_window_updates() {
    let mut client = Http2End::new(true, Http2Windows::CLIENT);
    // The preface is written alone; SETTINGS and a WINDOW_UPDATE follow.
    assert_eq!(writes(&mut client).0, [24, 33 + 13]);
    let mut server = Http2End::new(false, Http2Windows::SERVER);
    assert_eq!(writes(&mut server).0, [33 + 13]);
    let small = Http2Windows {
        stream: 10_000,
        connection: 10_000,
    };
    assert_eq!(writes(&mut Http2End::new(false, small)).0, [33]);
}

#[test]
fn a_call_of_http2_is_two_writes_and_its_answer_one() {
    let (mut client, mut server) = connected(Http2Windows::CLIENT, Http2Windows::SERVER);
    let mut call = |bytes| {
        let stream = client.request(head(Some(HttpRequestKind::Call), Some(bytes)));
        client.send(stream, bytes, true);
        let asked = carry(&mut client, &mut server);
        let arrival = server.accept(None).expect("the request has come");
        assert_eq!(server.take(arrival.stream), bytes);
        assert!(server.is_ended(arrival.stream));
        server.respond(arrival.stream, head(None, Some(bytes)), Instant(0));
        server.send(arrival.stream, bytes, true);
        let answered = carry(&mut server, &mut client);
        assert_eq!(client.take(stream), bytes);
        client.forget(stream);
        server.forget(arrival.stream);
        (asked, answered)
    };
    let fields = 1 + 1 + 1 + (1 + 1 + 4) + (2 + 1 + 2);
    let (asked, _) = call(32);
    assert_eq!(asked, [FRAME_HEAD + fields + 8, FRAME_HEAD + 32]);
    let (asked, answered) = call(32);
    assert_eq!(asked, [FRAME_HEAD + fields, FRAME_HEAD + 32]);
    assert_eq!(answered, [2 * FRAME_HEAD + 1 + 1 + (2 + 1 + 2) + 32]);
}

#[test]
fn data_waits_for_the_windows_and_goes_on_with_updates() {
    let (mut client, mut server) = connected(Http2Windows::CLIENT, WINDOWS);
    let stream = client.request(head(Some(HttpRequestKind::Put), None));
    client.send(stream, 100_000, false);
    let sent: u64 = carry(&mut client, &mut server).into_iter().sum();
    assert!((30_000..30_100).contains(&sent), "{sent}");
    assert_eq!(client.waits_for(stream), Some(HttpWait::StreamWindow));
    assert!(!client.is_sent(stream));
    let arrival = server.accept(None).expect("the request has come");
    assert_eq!(server.take(arrival.stream), 30_000);
    // Only the stream's window is worth an update.
    assert_eq!(carry(&mut server, &mut client), [13]);
    assert_eq!(client.waits_for(stream), None);
    assert_eq!(
        carry(&mut client, &mut server),
        [16_384 + 9, 30_000 - 16_384 + 9]
    );
}

#[test]
fn the_window_of_the_connection_is_shared() {
    let narrow = Http2Windows {
        stream: 1 << 20,
        connection: FIRST_WINDOW,
    };
    let (mut client, mut server) = connected(Http2Windows::CLIENT, narrow);
    let streams: Vec<u32> = (0..2)
        .map(|_| {
            let stream = client.request(head(Some(HttpRequestKind::Put), None));
            client.send(stream, 50_000, false);
            stream
        })
        .collect();
    carry(&mut client, &mut server);
    let taken: Vec<u64> = streams.iter().map(|stream| server.take(*stream)).collect();
    // They take turns, one frame of 16,384 B each.
    assert_eq!(taken, vec![2 * 16_384, 65_535 - 2 * 16_384]);
    assert_eq!(
        client.waits_for(streams[0]),
        Some(HttpWait::ConnectionWindow)
    );
    carry(&mut server, &mut client);
    assert_eq!(client.waits_for(streams[0]), None);
}

#[test]
fn requests_find_the_pairs_that_they_name() {
    let (mut client, mut server) = connected(Http2Windows::CLIENT, Http2Windows::SERVER);
    for pair in [3, 1] {
        let of_pair = HttpHead {
            pair: Some(pair),
            ..head(Some(HttpRequestKind::Call), Some(5))
        };
        let stream = client.request(of_pair);
        client.send(stream, 5, true);
    }
    let join = client.request(HttpHead {
        pair: Some(3),
        ..head(Some(HttpRequestKind::Join), None)
    });
    carry(&mut client, &mut server);
    assert_eq!(server.accept(None), None);
    let kinds: Vec<HttpRequestKind> = core::iter::from_fn(|| server.accept(Some(3)))
        .map(|arrival| arrival.kind)
        .collect();
    assert_eq!(kinds, [HttpRequestKind::Call, HttpRequestKind::Join]);
    assert!(server.accept(Some(1)).is_some());
    // It lasts until its pair leaves.
    assert!(!server.is_ended(join));
    client.end(join);
    assert_eq!(carry(&mut client, &mut server), [FRAME_HEAD]);
    assert!(server.is_ended(join));
}

#[test]
fn both_ends_say_that_they_go() {
    let (mut client, mut server) = connected(Http2Windows::CLIENT, Http2Windows::SERVER);
    client.close();
    client.close();
    assert_eq!(carry(&mut client, &mut server), [17]);
    assert_eq!(carry(&mut server, &mut client), [17]);
    assert_eq!(carry(&mut client, &mut server), Vec::<u64>::new());
}
