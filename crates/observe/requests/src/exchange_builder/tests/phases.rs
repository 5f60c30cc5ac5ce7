//! The time of a request is in the phase in which it was spent: by sockets and packets, or by packets alone.

use super::*;

#[test]
fn the_time_of_a_request_is_where_it_was() {
    let mut path = Path::new();
    path.connect(0);
    path.builder.socket(
        8 * MS,
        1,
        70,
        SocketEvent::Opened(address(SERVER), address(CLIENT)),
    );
    path.builder.socket(
        10 * MS,
        2,
        60,
        SocketEvent::Opened(address(CLIENT), address(SERVER)),
    );
    path.builder
        .socket(12 * MS, 2, 60, SocketEvent::Wrote(GET.len() as u64));
    path.send(12, 0, GET, "");
    path.builder
        .socket(40 * MS, 1, 70, SocketEvent::Read(GET.len() as u64));
    path.builder
        .socket(61 * MS, 1, 71, SocketEvent::Wrote(ANSWER.len() as u64));
    path.send(61, 1, ANSWER, "");
    path.builder
        .socket(70 * MS, 2, 60, SocketEvent::Read(ANSWER.len() as u64));
    let done = path.finish();
    assert_eq!(done.len(), 1);
    let exchange = &done[0];
    assert_eq!(
        (
            exchange.name.kept(),
            exchange.status.kept(),
            exchange.protocol
        ),
        ("GET /a", "200", "HTTP/1.1")
    );
    assert_eq!(
        (exchange.client.host, exchange.server.host, exchange.void),
        (Some(0), Some(1), None)
    );
    assert_eq!(exchange.round_trip_ns, Some(10 * MS));
    assert_eq!(
        (
            exchange.request.threads.1,
            exchange.response.as_ref().unwrap().threads
        ),
        (70, (71, 60))
    );
    let expected = [
        (ExchangePhase::Connect, 10),
        (ExchangePhase::Client, 2),
        (ExchangePhase::There, 5),
        (ExchangePhase::Unread, 23),
        (ExchangePhase::Work, 21),
        (ExchangePhase::Back, 5),
        (ExchangePhase::ClientUnread, 4),
    ];
    assert_eq!(parts(exchange), expected);
}

#[test]
fn packets_alone_distinguish_the_server_from_the_network() {
    let mut path = Path::new();
    path.connect(0);
    path.send(10, 0, GET, "");
    path.send(40, 1, ANSWER, "");
    path.send(46, 0, GET, "");
    path.send(60, 1, ANSWER, "");
    let done = path.finish();
    assert_eq!(
        parts(&done[0]),
        [
            (ExchangePhase::Connect, 10),
            (ExchangePhase::There, 5),
            (ExchangePhase::Work, 25),
            (ExchangePhase::Back, 5)
        ]
    );
    assert_eq!(
        parts(&done[1]),
        [
            (ExchangePhase::There, 5),
            (ExchangePhase::Work, 9),
            (ExchangePhase::Back, 5)
        ]
    );
}

#[test]
fn what_is_sent_again_needlessly_is_not_lost() {
    let mut path = Path::new();
    path.connect(0);
    let from = path.sent[0];
    path.sent[0] += GET.len() as u64;
    let segment = path.segment(0, from, GET.len() as u64, "");
    // The first waits 100 ms in a queue, and its sender does not.
    for (leaves, at_ms) in [(true, 20), (true, 60), (false, 120), (false, 125)] {
        path.builder
            .segment(usize::from(!leaves), leaves, at_ms * MS, &segment, GET);
    }
    path.acked[1] = path.sent[0];
    path.send(130, 1, ANSWER, "");
    let done = path.finish();
    assert_eq!((done[0].request.again, done[0].request.again_ns), (0, 0));
    assert!(parts(&done[0]).contains(&(ExchangePhase::There, 100)));
}

#[test]
fn what_is_sent_again_is_late_by_so_much() {
    let mut path = Path::new();
    path.connect(0);
    path.send(10, 0, GET, "X");
    path.pass(210, 0, 0, GET, "");
    path.send(220, 1, ANSWER, "");
    let done = path.finish();
    assert_eq!(
        (done[0].request.again, done[0].request.again_ns),
        (1, 200 * MS)
    );
    assert_eq!(
        parts(&done[0]),
        [
            (ExchangePhase::Connect, 10),
            (ExchangePhase::There, 205),
            (ExchangePhase::Work, 5),
            (ExchangePhase::Back, 5)
        ]
    );
}

#[test]
fn a_window_that_is_full_holds_the_sender_back() {
    let mut path = Path::new();
    path.connect(0);
    let answer = |bytes: usize| {
        [
            b"HTTP/1.1 200 OK\r\nContent-Length: 4461\r\n\r\n".to_vec(),
            vec![b'x'; bytes],
        ]
        .concat()
    };
    path.window = 3000;
    path.send(10, 0, GET, "");
    path.send(16, 1, &answer(2961), "");
    // What has come is read at once; it arrives 5 ms later.
    path.send(22, 0, b"", "");
    path.send(28, 1, &vec![b'x'; 1500], "");
    path.send(33, 0, b"", "");
    let done = path.finish();
    assert_eq!(
        done[0].response.as_ref().unwrap().window_ns,
        11 * MS,
        "from 16 to 27"
    );
}

#[test]
fn what_is_lost_is_remembered_until_it_comes() {
    let mut path = Path::new();
    path.connect(0);
    path.send(10, 0, GET, "X");
    // An acknowledgement says where the sender is, and the other side has not got there.
    path.send(20, 0, b"", "");
    path.builder.advance(100 * MS);
    path.pass(210, 0, 0, GET, "");
    path.send(220, 1, ANSWER, "X");
    path.send(225, 1, b"", "");
    path.builder.advance(300 * MS);
    path.pass(430, 1, 0, ANSWER, "");
    let done = path.finish();
    assert_eq!(
        parts(&done[0]),
        [
            (ExchangePhase::Connect, 10),
            (ExchangePhase::There, 205),
            (ExchangePhase::Work, 5),
            (ExchangePhase::Back, 215)
        ]
    );
}

#[test]
fn an_answer_that_lies_unread_is_waited_for() {
    let mut path = Path::new();
    path.connect(0);
    path.builder.socket(
        MS,
        2,
        60,
        SocketEvent::Opened(address(CLIENT), address(SERVER)),
    );
    path.builder
        .socket(10 * MS, 2, 60, SocketEvent::Wrote(GET.len() as u64));
    path.send(10, 0, GET, "");
    path.send(20, 1, ANSWER, "");
    path.builder.socket(30 * MS, 2, 60, SocketEvent::Read(1));
    assert_eq!(path.builder.advance(2000 * MS), []);
    path.builder
        .socket(2100 * MS, 2, 60, SocketEvent::Read(ANSWER.len() as u64 - 1));
    let done = path.builder.advance(2700 * MS);
    assert_eq!(done[0].end_ns(), Some(2100 * MS));
    assert_eq!(parts(&done[0])[4], (ExchangePhase::ClientUnread, 2075));
}

#[test]
fn an_end_that_waits_for_an_acknowledgement_is_held() {
    let mut path = Path::new();
    path.connect(0);
    let (head, body) = (b"POST /a HTTP/1.1\r\nContent-Length: 2\r\n\r\n", b"ab");
    path.builder.socket(
        1,
        2,
        60,
        SocketEvent::Opened(address(CLIENT), address(SERVER)),
    );
    path.builder
        .socket(10 * MS, 2, 60, SocketEvent::Wrote(head.len() as u64));
    path.builder.socket(10 * MS, 2, 60, SocketEvent::Wrote(2));
    path.send(10, 0, head, "");
    // The delayed acknowledgement.
    path.send(55, 1, b"", "");
    path.send(60, 0, body, "");
    path.send(66, 1, ANSWER, "");
    let done = path.finish();
    assert_eq!(done[0].request.held_ns, 50 * MS);
    assert_eq!(
        parts(&done[0]),
        [
            (ExchangePhase::Connect, 10),
            (ExchangePhase::Hold, 50),
            (ExchangePhase::There, 5),
            (ExchangePhase::Work, 1),
            (ExchangePhase::Back, 5)
        ]
    );
}

#[test]
fn the_body_of_an_answer_that_waits_for_an_acknowledgement_is_held() {
    let mut path = Path::new();
    path.connect(0);
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    for round in 0..2 {
        let at_ms = 100 * round;
        path.send(10 + at_ms, 0, GET, "");
        path.send(16 + at_ms, 1, head, "");
        // The delayed acknowledgement.
        path.send(61 + at_ms, 0, b"", "");
        path.send(66 + at_ms, 1, &[b'x'; 1000], "");
    }
    let held_ns: Vec<u64> = path
        .finish()
        .iter()
        .map(|done| done.response.as_ref().unwrap().held_ns)
        .collect();
    assert_eq!(held_ns, [50 * MS, 50 * MS]);
}

#[test]
fn calls_behind_lost_ones_are_not_counted_from_the_beginning() {
    let mut path = Path::new();
    path.connect(0);
    let ends = (address(CLIENT), address(SERVER));
    let socket = |path: &mut Path, at_ms: u64, event| {
        path.builder.socket(at_ms * MS, 2, 60, event);
    };
    socket(&mut path, 1, SocketEvent::Opened(ends.0, ends.1));
    for at_ms in [10, 30, 60] {
        socket(&mut path, at_ms, SocketEvent::Wrote(GET.len() as u64));
        path.send(at_ms, 0, GET, "");
        path.send(at_ms + 10, 1, ANSWER, "");
        if at_ms == 10 {
            path.builder.lost_sockets();
            socket(&mut path, 29, SocketEvent::Found(ends.0, ends.1));
        }
    }
    let written: Vec<_> = path
        .finish()
        .iter()
        .map(|one| one.request.written)
        .collect();
    assert_eq!(written, [Some((10 * MS, 10 * MS)), None, None]);
}

#[test]
fn a_socket_that_is_found_behind_lost_calls_is_not_counted_either() {
    let mut path = Path::new();
    path.connect(0);
    path.builder.lost_sockets();
    let found = SocketEvent::Found(address(CLIENT), address(SERVER));
    path.builder.socket(11 * MS, 2, 60, found);
    for at_ms in [20, 50] {
        path.send(at_ms, 0, GET, "");
        path.send(at_ms + 10, 1, ANSWER, "");
    }
    path.builder
        .socket(60 * MS, 2, 60, SocketEvent::Wrote(2 * GET.len() as u64));
    assert!(
        path.finish()
            .iter()
            .all(|one| one.request.written.is_none())
    );
}
