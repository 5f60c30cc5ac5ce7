//! Requests over a path whose times are known.

use super::*;
use crate::time_account::{ExchangePhase, account_time};
use proptest::prelude::*;
use proptest::{collection, sample};

pub(super) const MS: u64 = 1_000_000;
const CLIENT: &str = "10.0.0.1:50000";
const SERVER: &str = "10.0.0.2:80";

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Two hosts, 5 ms apart.
pub(super) struct Path {
    pub(super) builder: Builder,
    /// Of each direction, what was sent.
    sent: [u64; 2],
    acked: [u64; 2],
    window: u16,
}

impl Path {
    pub(super) fn new() -> Self {
        let host = |name: &str, address: &str| ObservedHost {
            name: name.into(),
            addresses: vec![address.parse().unwrap()],
        };
        let builder = Builder::new(vec![host("a", "10.0.0.1"), host("b", "10.0.0.2")]);
        Self {
            builder,
            sent: [0; 2],
            acked: [0; 2],
            window: 60_000,
        }
    }

    fn segment(&self, direction: usize, from: u64, bytes: u64, flags: &str) -> DissectedSegment {
        let ends = [
            (address(CLIENT), address(SERVER)),
            (address(SERVER), address(CLIENT)),
        ][direction];
        let syn = flags.contains('S');
        DissectedSegment {
            ends,
            // An end has a sequence number too.
            sequence: if syn {
                999
            } else {
                1000 + from as u32 + u32::from(flags.contains('R'))
            },
            bytes,
            syn,
            fin: flags.contains('F'),
            reset: flags.contains('R'),
            acknowledged: (!syn || direction == 1).then(|| 1000 + self.acked[direction] as u32),
            window: self.window,
            selectively_acknowledged: None,
            window_scale: syn.then_some(0),
            largest_segment: None,
            ttl: 64,
            length: 40 + bytes,
        }
    }

    /// A segment leaves at that moment and arrives 5 ms later, unless it is lost.
    pub(super) fn send(&mut self, at_ms: u64, direction: usize, data: &[u8], flags: &str) {
        let from = self.sent[direction];
        self.sent[direction] += data.len() as u64;
        self.pass(at_ms, direction, from, data, flags);
    }

    fn pass(&mut self, at_ms: u64, direction: usize, from: u64, data: &[u8], flags: &str) {
        let segment = self.segment(direction, from, data.len() as u64, flags);
        self.builder
            .segment(direction, true, at_ms * MS, &segment, data);
        if !flags.contains('X') {
            self.builder
                .segment(1 - direction, false, (at_ms + 5) * MS, &segment, data);
            self.acked[1 - direction] = self.acked[1 - direction].max(from + data.len() as u64);
        }
    }

    pub(super) fn connect(&mut self, at_ms: u64) {
        self.send(at_ms, 0, b"", "S");
        self.send(at_ms + 5, 1, b"", "S");
        self.send(at_ms + 10, 0, b"", "");
    }

    pub(super) fn finish(mut self) -> Vec<Exchange> {
        self.builder.finish().0
    }
}

/// The parts of an exchange's time that are there, in ms.
pub(super) fn parts(exchange: &Exchange) -> Vec<(ExchangePhase, i64)> {
    let account = account_time(exchange).unwrap();
    let all: i64 = account.iter().flatten().sum();
    let total = exchange.end_ns().unwrap() - exchange.begin_ns().unwrap();
    assert_eq!(all, total as i64, "parts add up");
    ExchangePhase::ALL
        .into_iter()
        .zip(account)
        .filter_map(|(part, ns)| Some((part, ns? / MS as i64)))
        .filter(|(_, ms)| *ms != 0)
        .collect()
}

const GET: &[u8] = b"GET /a HTTP/1.1\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

#[test]
fn others_find_a_connection_by_how_it_began() {
    let ends = (address(CLIENT), address(SERVER));
    let mut path = Path::new();
    path.connect(0);
    assert_eq!(
        path.builder.flow_of(&(ends.0, ends.1, 1000)),
        None,
        "nobody wants to know"
    );
    let mut path = Path::new();
    path.builder = path.builder.remembering_origins();
    path.connect(0);
    let flow = |path: &Path, first| path.builder.flow_of(&(ends.0, ends.1, first));
    assert_eq!(
        (
            flow(&path, 1000),
            flow(&path, 999),
            path.builder.next_flow()
        ),
        (Some(0), None, 1)
    );
    // The beginning was not seen, but the answer to it.
    let mut late = Path::new();
    late.builder = late.builder.remembering_origins();
    late.send(0, 1, b"", "S");
    assert_eq!(flow(&late, 1000), Some(0));
    // It was there before.
    let mut before = Path::new();
    before.builder = before.builder.remembering_origins();
    before.send(0, 0, b"GET / HTTP/1.1\r\n\r\n", "");
    assert_eq!(
        (
            flow(&before, 1000),
            flow(&before, 1001),
            before.builder.next_flow()
        ),
        (None, None, 1)
    );
}

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
fn a_connection_that_was_there_before_has_exchanges_but_no_set_up() {
    let mut path = Path::new();
    path.sent = [5000, 9000];
    path.acked = [9000, 5000];
    path.send(10, 0, GET, "");
    path.send(16, 1, ANSWER, "");
    let (done, unknown) = path.builder.finish();
    assert_eq!(
        (done[0].connect, done[0].name.kept(), unknown.midway),
        (None, "GET /a", 1)
    );
    assert_eq!(
        parts(&done[0]),
        [
            (ExchangePhase::There, 5),
            (ExchangePhase::Work, 1),
            (ExchangePhase::Back, 5)
        ]
    );
}

#[test]
fn a_socket_that_was_there_before_is_counted_from_where_it_agrees_with_its_packets() {
    let mut path = Path::new();
    path.sent = [5000, 9000];
    path.acked = [9000, 5000];
    path.builder.socket(
        9 * MS,
        1,
        7,
        SocketEvent::Found(address(SERVER), address(CLIENT)),
    );
    for at_ms in [10, 60] {
        path.send(at_ms, 0, GET, "");
        path.builder
            .socket((at_ms + 8) * MS, 1, 7, SocketEvent::Read(GET.len() as u64));
        path.send(at_ms + 20, 1, ANSWER, "");
        path.builder.socket(
            (at_ms + 20) * MS,
            1,
            7,
            SocketEvent::Wrote(ANSWER.len() as u64),
        );
    }
    let (done, unknown) = path.builder.finish();
    assert_eq!(unknown.early_sockets, 0);
    let expected = [
        (ExchangePhase::There, 5),
        (ExchangePhase::Unread, 3),
        (ExchangePhase::Work, 12),
        (ExchangePhase::Back, 5),
    ];
    assert_eq!([parts(&done[0]), parts(&done[1])], [expected, expected]);
    assert_eq!(
        (
            done[1].request.threads.1,
            done[1].response.as_ref().unwrap().threads.0
        ),
        (7, 7)
    );
}

#[test]
fn what_nobody_answers_is_said_to_be_so() {
    let mut path = Path::new();
    path.connect(0);
    path.send(10, 0, GET, "");
    path.send(500, 0, b"", "F");
    let done = path.finish();
    assert_eq!(
        (done[0].void, done[0].end_ns()),
        (Some("nothing answered it"), Some(500 * MS))
    );
    assert_eq!(
        parts(&done[0]),
        [
            (ExchangePhase::Connect, 10),
            (ExchangePhase::There, 5),
            (ExchangePhase::Work, 485)
        ],
        "until it was given up"
    );
    let mut path = Path::new();
    path.connect(0);
    path.send(10, 0, GET, "");
    let done = path.finish();
    assert_eq!(
        (done[0].void, done[0].gave_up),
        (Some("it was under way when the trace ended"), None),
        "nobody looked any more"
    );
}

#[test]
fn what_whoever_looks_ends_was_under_way() {
    let part = b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\nhello";
    let ended = |end_ms: Option<u64>, closed_by: usize| {
        let mut path = Path::new();
        let end = ObservationEnd::default();
        path.builder = path.builder.observed_until(end.clone());
        path.connect(0);
        path.send(20, 0, GET, "");
        path.send(30, 1, part, "");
        if let Some(end_ms) = end_ms {
            end.set_moment(end_ms * MS);
        }
        path.send(1_540, closed_by, b"", "F");
        path.send(1_546, 1 - closed_by, b"", "F");
        let (done, unknown) = path.builder.finish();
        (
            done[0].void.unwrap(),
            done[0].gave_up.is_some(),
            unknown.under_way,
        )
    };
    let under_way = ("it was under way when the trace ended", false, 1);
    for closed_by in [0, 1] {
        assert_eq!(ended(Some(1_500), closed_by), under_way);
        // What ended before was no doing of ours.
        let cut = ended(Some(1_600), closed_by);
        assert_eq!(cut, ("its answer was cut off", true, 0));
        assert_eq!(ended(None, closed_by), cut);
    }
}

#[test]
fn a_stream_that_nobody_answers_is_no_request() {
    let sent = |at_ms: &[u64], close_ms| {
        let mut path = Path::new();
        path.connect(0);
        at_ms
            .iter()
            .for_each(|at_ms| path.send(*at_ms, 0, b"some event\n", ""));
        path.send(close_ms, 0, b"", "F");
        path.send(close_ms + 6, 1, b"", "F");
        // An end has a sequence number too.
        path.acked[0] += 1;
        path.send(close_ms + 12, 0, b"", "");
        path.finish().remove(0)
    };
    let stream = sent(&[10, 500, 900], 1000);
    assert_eq!((stream.kind, stream.void), (ExchangeKind::OneWay, None));
    let waits = sent(&[10, 20], 1000);
    assert_eq!(
        (waits.kind, waits.void, waits.gave_up),
        (
            ExchangeKind::Call,
            Some("nothing answered it"),
            Some(1000 * MS)
        )
    );
}

#[test]
fn a_farewell_is_no_request() {
    let last_said = |close_ms| {
        let mut path = Path::new();
        path.connect(0);
        path.send(20, 0, b"ask\n", "");
        path.send(40, 1, b"answer\n", "");
        path.send(60, 0, b"bye\n", "");
        path.send(close_ms, 0, b"", "F");
        path.send(close_ms + 6, 1, b"", "F");
        path.finish().remove(1)
    };
    // The round trip is 10 ms.
    let farewell = last_said(61);
    assert_eq!((farewell.kind, farewell.void), (ExchangeKind::OneWay, None));
    let waits = last_said(400);
    assert_eq!(waits.void, Some("nothing answered it"));
}

#[test]
fn an_answer_that_nobody_takes_any_more_is_none() {
    let answered = |closing: &str, refused: &str| {
        let mut path = Path::new();
        path.connect(0);
        path.send(10, 0, GET, "");
        path.send(500, 0, b"", closing);
        path.send(900, 1, ANSWER, "F");
        path.send(905, 0, b"", refused);
        let (mut done, unknown) = path.builder.finish();
        assert_eq!(unknown.lost_bytes, 0);
        done.remove(0)
    };
    let late = answered("F", "R");
    assert_eq!(
        (late.void, late.gave_up, late.response),
        (Some("nothing answered it"), Some(500 * MS), None)
    );
    let half_closed = answered("F", "F");
    assert_eq!(
        (half_closed.void, half_closed.end_ns()),
        (None, Some(905 * MS)),
        "it only asks nothing more"
    );
}

#[test]
fn the_rest_of_an_answer_that_is_cut_off_is_waited_for_until_the_connection_ends() {
    let mut path = Path::new();
    path.connect(0);
    path.send(20, 0, GET, "");
    path.send(
        30,
        1,
        b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\nhello",
        "",
    );
    path.send(1_540, 0, b"", "F");
    path.send(1_546, 1, b"", "F");
    let done = path.finish();
    assert_eq!(done[0].void, Some("its answer was cut off"));
    assert_eq!(done[0].end_ns(), Some(1_540 * MS));
    assert!(parts(&done[0]).contains(&(ExchangePhase::Sending, 1_510)));
}

#[test]
fn a_connection_that_is_refused_is_an_attempt() {
    let mut path = Path::new();
    path.send(0, 0, b"", "S");
    path.send(5, 1, b"", "R");
    let done = path.finish();
    assert!(done[0].is_unopened);
    assert_eq!(
        (done[0].begin_ns(), done[0].end_ns()),
        (Some(0), Some(10 * MS)),
        "its client hears of it 5 ms later"
    );
    assert_eq!(done[0].void, Some("its connection was refused"));
    let mut path = Path::new();
    path.send(0, 0, b"", "SX");
    let done = path.finish();
    assert_eq!(
        (done[0].void, done[0].end_ns()),
        (Some("nothing answered its connection"), None)
    );
}

#[test]
fn a_question_after_a_name_belongs_to_the_connection_behind_it() {
    let mut path = Path::new();
    let datagram = |from: &str, to: &str| DissectedDatagram {
        ends: (address(from), address(to)),
        bytes: 30,
        ttl: 64,
    };
    let question = [
        &[0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3][..],
        b"web",
        &[4],
        b"test",
        &[0, 0, 1, 0, 1],
    ]
    .concat();
    let answer = [&[0, 7, 0x81, 0x80][..], &question[4..]].concat();
    let (there, back) = (
        datagram("10.0.0.1:4000", "10.0.0.9:53"),
        datagram("10.0.0.9:53", "10.0.0.1:4000"),
    );
    path.builder
        .datagram(0, PacketPassage::Leaves, MS, &there, &question);
    path.builder
        .datagram(0, PacketPassage::Leaves, 5001 * MS, &there, &question);
    path.builder
        .datagram(0, PacketPassage::Arrives, 5031 * MS, &back, &answer);
    path.connect(5032);
    path.send(5042, 0, GET, "");
    path.send(5048, 1, ANSWER, "");
    let done = path.finish();
    let dns = done
        .iter()
        .find(|exchange| exchange.protocol == "DNS")
        .unwrap();
    assert_eq!(
        (dns.name.kept(), dns.status.kept(), dns.request.again),
        ("A web.test", "NOERROR", 1)
    );
    let get = done
        .iter()
        .find(|exchange| exchange.name.kept() == "GET /a")
        .unwrap();
    assert_eq!(parts(get)[0], (ExchangePhase::Lookup, 5030));
}

#[test]
fn all_that_a_resolver_asked_is_the_lookup_of_the_connection() {
    let lookup = |asked: &[(u64, u64, &str, Option<u64>)]| {
        let mut path = Path::new();
        for (id, at_ms, name, answered_ms) in asked {
            let mut question = vec![0, *id as u8, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            for label in name.split('.') {
                question.push(label.len() as u8);
                question.extend(label.as_bytes());
            }
            question.extend([0, 0, 1, 0, 1]);
            let answer = [&[0, *id as u8, 0x81, 0x80][..], &question[4..]].concat();
            let port = 4000 + id;
            let ends = (address(&format!("10.0.0.1:{port}")), address("10.0.0.9:53"));
            let there = DissectedDatagram {
                ends,
                bytes: 30,
                ttl: 64,
            };
            path.builder
                .datagram(0, PacketPassage::Leaves, at_ms * MS, &there, &question);
            if let Some(answered) = answered_ms {
                let back = DissectedDatagram {
                    ends: (ends.1, ends.0),
                    bytes: 30,
                    ttl: 64,
                };
                path.builder
                    .datagram(0, PacketPassage::Arrives, answered * MS, &back, &answer);
            }
        }
        path.connect(9_500);
        path.send(9_510, 0, GET, "");
        path.send(9_520, 1, ANSWER, "");
        let done = path.finish();
        let get = done
            .iter()
            .find(|exchange| exchange.name.kept() == "GET /a")
            .unwrap();
        parts(get)[0]
    };
    // A search list: two names that are not there, then the one that is.
    let search = [
        (1, 9_000, "web.test.corp", Some(9_200)),
        (2, 9_201, "web.test.lan", Some(9_400)),
        (3, 9_401, "web.test", Some(9_499)),
    ];
    assert_eq!(lookup(&search), (ExchangePhase::Lookup, 499));
    // The first name server is silent, and the second is asked from another socket.
    let silent = [
        (4, 4_490, "web.test", None),
        (5, 9_490, "web.test", Some(9_499)),
    ];
    assert_eq!(lookup(&silent), (ExchangePhase::Lookup, 5_009));
    // What somebody else asked after is not part of it.
    let others = [
        (6, 4_490, "db.test", None),
        (7, 9_000, "mail.test", Some(9_010)),
        (8, 9_490, "web.test", Some(9_499)),
    ];
    assert_eq!(lookup(&others), (ExchangePhase::Lookup, 9));
}

#[test]
fn connections_on_the_loopbacks_of_two_hosts_are_two() {
    let mut path = Path::new();
    let ends = (address("127.0.0.1:5000"), address("127.0.0.1:80"));
    for host in [0, 1] {
        let segment = |ends, sequence, bytes, syn| DissectedSegment {
            ends,
            sequence,
            bytes,
            syn,
            ..path.segment(0, 0, 0, "")
        };
        for (at, segment, data) in [
            (
                1,
                DissectedSegment {
                    acknowledged: None,
                    ..segment(ends, 9, 0, true)
                },
                &b""[..],
            ),
            (2, segment((ends.1, ends.0), 9, 0, true), b""),
            (3, segment(ends, 10, GET.len() as u64, false), GET),
            (
                4,
                segment((ends.1, ends.0), 10, ANSWER.len() as u64, false),
                ANSWER,
            ),
        ] {
            path.builder.segment(host, false, at * MS, &segment, data);
        }
    }
    let done = path.finish();
    let hosts: Vec<_> = done
        .iter()
        .map(|exchange| (exchange.client.host, exchange.server.host))
        .collect();
    assert_eq!(hosts, [(Some(0), Some(0)), (Some(1), Some(1))]);
}

/// So many requests of one connection, in batches that are asked together, at so many a second; what was told of them.
fn many(count: u64, batch: u64, a_second: u64, advance: bool) -> (Vec<Exchange>, Unknown) {
    let mut path = Path::new();
    path.connect(0);
    let each_ns = 1_000_000_000 / a_second;
    let (mut at_ns, mut looked_ns, mut exchanges) = (20 * MS, 0, Vec::new());
    for _ in 0..count / batch {
        for (direction, message) in [(0, GET), (1, ANSWER)] {
            let data = message.repeat(batch as usize);
            // A segment holds no more than its length can say.
            for data in data.chunks(60_000) {
                let segment = path.segment(direction, path.sent[direction], data.len() as u64, "");
                path.builder.segment(direction, true, at_ns, &segment, data);
                path.builder
                    .segment(1 - direction, false, at_ns + each_ns / 4, &segment, data);
                path.sent[direction] += data.len() as u64;
                path.acked[1 - direction] = path.sent[direction];
            }
            at_ns += each_ns * batch / 2;
        }
        assert!(
            path.builder
                .connections
                .values()
                .all(|connection| connection.open() <= Bound::Open.most())
        );
        if path.builder.is_full() {
            exchanges.extend(path.builder.take_done());
        }
        // As often as a trace does that goes on.
        if advance && at_ns - looked_ns >= 10 * MS {
            looked_ns = at_ns;
            exchanges.extend(path.builder.advance(at_ns));
        }
    }
    let (left, unknown) = path.builder.finish();
    exchanges.extend(left);
    (exchanges, unknown)
}

#[test]
fn all_requests_of_one_connection_are_reported_at_any_rate() {
    for (batch, a_second, advance) in [
        (1, 10_000, true),
        (16, 100_000, true),
        (1000, 100_000, false),
    ] {
        let (exchanges, unknown) = many(200_000, batch, a_second, advance);
        let case = format!("{batch} at once, {a_second}/s");
        assert_eq!(exchanges.len(), 200_000, "{case}");
        let is_known = |exchange: &Exchange| {
            let response = exchange.response.as_ref();
            exchange.void.is_none() && response.is_some_and(|response| response.arrived.is_some())
        };
        assert!(exchanges.iter().all(is_known), "{case}");
        assert!(
            exchanges
                .windows(2)
                .all(|pair| pair[0].number + 1 == pair[1].number),
            "{case}: in their order, and once"
        );
        assert!(
            unknown.left_out.is_empty(),
            "{case}: {:?}",
            unknown.left_out.lines()
        );
    }
}

/// Bytes of both sides that begin as those of some protocol, or are any.
fn said() -> impl Strategy<Value = Vec<u8>> {
    let words: Vec<Vec<u8>> = vec![
        GET.into(),
        ANSWER.into(),
        b"*1\r\n$4\r\nPING\r\n".to_vec(),
        b"+PONG\r\n".to_vec(),
    ];
    prop_oneof![sample::select(words), collection::vec(any::<u8>(), 0..40)]
}

proptest! {
    #[test]
    fn any_packets_at_any_time_are_harmless(
        packets in collection::vec((any::<u64>(), any::<u8>(), any::<u32>(), said(), any::<[u16; 2]>()), 0..80),
    ) {
        let mut path = Path::new();
        path.builder = path.builder.remembering_origins();
        for (at_ns, what, sequence, data, [window, bytes]) in packets {
            let bit = |bit: u8| what >> bit & 1 == 1;
            // Near each other, or anywhere.
            let (at_ns, sequence) = if bit(0) { (at_ns % (1 << 32), sequence % (1 << 12)) } else { (at_ns, sequence) };
            let direction = usize::from(bit(1));
            let flags = [("S", 2), ("F", 3), ("R", 4)].map(|(flag, place)| if bit(place) && bit(5) { flag } else { "" });
            let length = data.len() as u64 + if bit(6) { u64::from(bytes) } else { 0 };
            let segment = DissectedSegment {
                sequence,
                window,
                selectively_acknowledged: None,
                window_scale: bit(2).then_some(bytes as u8),
                acknowledged: bit(7).then_some(sequence.wrapping_add(window.into())),
                ..path.segment(direction, 0, length, &flags.concat())
            };
            path.builder.segment(usize::from(bit(6)), bit(5), at_ns, &segment, &data);
            let ends = [(address(CLIENT), address(SERVER)), (address(SERVER), address(CLIENT))][direction];
            let event = match what % 5 {
                0 => SocketEvent::Opened(ends.0, ends.1),
                1 => SocketEvent::Found(ends.0, ends.1),
                2 => SocketEvent::Wrote(at_ns),
                3 => SocketEvent::Read(window.into()),
                _ => SocketEvent::Closed,
            };
            path.builder.socket(at_ns, direction as u64, 7, event);
            if bit(3) {
                path.builder.advance(at_ns);
            }
        }
        let names = ["a".to_owned(), "b".to_owned()];
        for exchange in path.finish() {
            let _ = account_time(&exchange);
            let known = crate::exchange_events::ExchangeContext::default();
            crate::exchange_events::emit_exchange(&exchange, &known, &names, &mut |_, _, _, _| ());
        }
    }
}

#[test]
fn a_request_to_a_connection_that_is_closed_ends_when_its_client_hears_of_it() {
    let mut path = Path::new();
    path.connect(0);
    path.send(20, 0, GET, "");
    path.send(30, 1, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "");
    // The server closes the idle connection, and the client asks before it hears of that.
    path.send(1_000, 1, b"", "F");
    path.send(1_002, 0, GET, "");
    let done = path.finish();
    assert_eq!(
        (done[1].void, done[1].gave_up),
        (Some("the server closed its connection"), Some(1_005 * MS))
    );
}
