//! Requests and connections without a whole answer: why, until when, and what is not a request.

use super::*;

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
