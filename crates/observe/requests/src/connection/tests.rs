//! Exchanges of one connection, many of them at the same time.

use super::*;
use crate::stream_progress::Arrivals;

fn connection() -> RequestConnection {
    let place = |text: &str| ExchangeEnd {
        host: Some(0),
        address: text.parse().unwrap(),
    };
    let mut connection = RequestConnection::new(
        0,
        [place("10.0.0.1:5000"), place("10.0.0.2:80")],
        false,
        None,
    );
    connection
        .directions
        .iter_mut()
        .for_each(|direction| direction.position = Some(Position::new(0)));
    connection
}

fn begins(exchange: u64) -> DissectorEvent {
    DissectorEvent::Begins {
        exchange,
        role: ExchangeRole::Request,
        kind: ExchangeKind::Call,
        side: EventStreamDirection::There,
        at: exchange,
    }
}

fn answered(exchange: u64) -> [DissectorEvent; 3] {
    let (role, side, at) = (ExchangeRole::Response, EventStreamDirection::Back, exchange);
    [
        DissectorEvent::Ends {
            exchange,
            role: ExchangeRole::Request,
            side: EventStreamDirection::There,
            at,
        },
        DissectorEvent::Begins {
            exchange,
            role,
            kind: ExchangeKind::Call,
            side,
            at,
        },
        DissectorEvent::Ends {
            exchange,
            role,
            side,
            at: at + 1,
        },
    ]
}

#[test]
fn those_that_are_whole_make_room_and_the_latest_of_them_go_on_waiting() {
    let (mut connection, mut done) = (connection(), Vec::new());
    let most = MOST_OPEN as u64;
    for exchange in 0..most {
        connection.take(vec![begins(exchange)], &mut done);
        // The first one takes long.
        if exchange > 0 {
            connection.take(answered(exchange).into(), &mut done);
        }
    }
    assert!(done.is_empty());
    connection.take(vec![begins(most)], &mut done);
    let numbers: Vec<u64> = done.iter().map(|exchange| exchange.number).collect();
    assert_eq!(
        numbers,
        (1..=(MOST_OPEN - GO_ON) as u64).collect::<Vec<_>>()
    );
    assert!(done.iter().all(|exchange| exchange.void.is_none()));
    assert!(connection.open.contains(0) && connection.left_out().is_empty());
}

#[test]
fn where_none_is_whole_the_oldest_is_reported_as_it_is_and_counted() {
    let (mut connection, mut done) = (connection(), Vec::new());
    for exchange in 0..=MOST_OPEN as u64 {
        connection.take(vec![begins(exchange)], &mut done);
    }
    assert_eq!(
        (done.len(), done[0].number, done[0].void),
        (1, 0, Some(TOO_MANY_OPEN))
    );
    assert_eq!(connection.left_out().count_of(Bound::Open), 1);
    assert_eq!(connection.open.len(), MOST_OPEN);
    // Its answer comes when it was told already.
    connection.take(answered(0).into(), &mut done);
    connection.over(u64::MAX, true, &mut done);
    assert_eq!(
        done.iter().filter(|exchange| exchange.number == 0).count(),
        1
    );
    assert_eq!(done.len(), MOST_OPEN + 1);
    assert!(TOO_MANY_OPEN.contains("8,192") && MOST_OPEN == 8192);
}

#[test]
fn what_is_one_more_than_is_remembered_of_a_connection_is_counted() {
    let named = |bytes: usize| {
        let (mut connection, mut done) = (connection(), Vec::new());
        let name = RedactedName::host("", &"x".repeat(bytes), "");
        let (exchange, role) = (0, ExchangeRole::Request);
        connection.take(
            vec![
                begins(0),
                DissectorEvent::Named {
                    exchange,
                    role,
                    name,
                },
            ],
            &mut done,
        );
        connection.left_out()
    };
    // A name is cut by who finds it: one that fills the room may have been.
    assert_eq!(
        (
            named(200).count_of(Bound::Name),
            named(256).count_of(Bound::Name)
        ),
        (0, 1)
    );
    Bound::Repeated.assert_reported(|count| {
        let (mut queue, mut left_out) = (VecDeque::new(), LeftOut::default());
        (0..count).for_each(|at| remember(&mut queue, at, &mut left_out));
        left_out
    });
    Bound::Moments.assert_reported(|count| {
        let (mut progress, mut left_out) = (StreamPointProgress::default(), LeftOut::default());
        (1..=count as u64).for_each(|end| progress.pass(end, end, 0));
        progress.left_out(&mut left_out);
        // Every second one goes, and what is counted are those.
        assert!(left_out.count_of(Bound::Moments) <= 1 + count as u64 / 2);
        left_out
    });
    Bound::Ahead.assert_reported(|count| {
        let (mut arrivals, mut left_out) = (Arrivals::default(), LeftOut::default());
        (1..=count as u64).for_each(|at| arrivals.segment(at * 10, at * 10 + 5, 0));
        arrivals.left_out(&mut left_out);
        left_out
    });
    Bound::Unread.assert_reported(|count| {
        let (mut connection, mut done) = (connection(), Vec::new());
        connection.sockets = [true; 2];
        for exchange in 0..count as u64 {
            connection.take(vec![begins(exchange)], &mut done);
            connection.take(answered(exchange).into(), &mut done);
        }
        connection.over(2 * SETTLES_NS, false, &mut done);
        connection.left_out()
    });
}

#[test]
fn however_many_are_pipelined_each_is_reported_once_and_with_its_answer_or_counted() {
    let (mut connection, mut done) = (connection(), Vec::new());
    let (sent, then) = (20_000, 1000);
    let mut say = |connection: &mut RequestConnection,
                   side: EventStreamDirection,
                   bytes: &[u8],
                   at: &mut u64| {
        for bytes in bytes.chunks(1400) {
            let mut found = Vec::new();
            connection
                .conversation
                .segment(side, *at, bytes, bytes.len() as u64, &mut found);
            connection.take(found, &mut done);
            *at += bytes.len() as u64;
            connection.directions[side as usize].dissected_end = *at;
        }
    };
    let (asked, answer) = (b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n");
    let mut at = [0; 2];
    say(
        &mut connection,
        EventStreamDirection::There,
        &asked.repeat(sent),
        &mut at[0],
    );
    say(
        &mut connection,
        EventStreamDirection::Back,
        &answer.repeat(sent),
        &mut at[1],
    );
    for _ in 0..then {
        say(
            &mut connection,
            EventStreamDirection::There,
            asked,
            &mut at[0],
        );
        say(
            &mut connection,
            EventStreamDirection::Back,
            answer,
            &mut at[1],
        );
    }
    connection.over(u64::MAX >> 1, true, &mut done);
    let numbers: std::collections::BTreeSet<u64> =
        done.iter().map(|exchange| exchange.number).collect();
    assert_eq!((done.len(), numbers.len()), (sent + then, sent + then));
    let answered = done
        .iter()
        .filter(|exchange| exchange.void.is_none() && exchange.response.is_some())
        .count();
    let left_out = connection.left_out();
    assert_eq!(
        (answered, left_out.count_of(Bound::Waiting)),
        (4096 + then, (sent - 4096) as u64)
    );
    assert_eq!(left_out.count_of(Bound::Open), 0);
}
