//! A connection with 200,000 requests, at several rates.

use super::*;

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
