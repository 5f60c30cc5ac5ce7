//! To which connection packets and sockets belong, whether its beginning was seen or not.

use super::*;

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
