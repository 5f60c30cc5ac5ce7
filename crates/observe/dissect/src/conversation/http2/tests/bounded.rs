//! More than is kept: heads that are too long, and streams that wait.

use super::*;

#[test]
fn a_head_that_is_too_long_has_no_name() {
    let mut fed = Fed::opened();
    fed.bytes('>', &frame(1, LAST, 1, &[0; 10_000]));
    fed.bytes('>', &frame(9, 0, 1, &[0; 10_000]));
    assert!(fed.http.held() < 2 * LONGEST_HEAD);
    fed.bytes('>', &frame(9, WHOLE, 1, &[0; 10_000]));
    fed.bytes('>', &get(3, "/3"));
    assert_eq!(
        fed.dissect_lines(),
        [
            "0 request begins > 33",
            "left out: 1 head",
            "0 request ends > 30060",
            "1 request begins > 30060",
            "1 request ends > 30106"
        ]
    );
}

#[test]
fn streams_that_wait_are_bounded() {
    let mut fed = Fed::opened();
    for number in 0..MOST_WAITING as u32 + 10 {
        fed.bytes('>', &get(2 * number + 1, "/"));
    }
    assert_eq!(fed.http.streams.len(), MOST_WAITING);
    let voids = fed
        .dissect_lines()
        .into_iter()
        .filter(|line| line.contains("void"))
        .count();
    assert_eq!(voids, 10);
}

#[test]
fn streams_beyond_the_bound_lose_their_answers_and_not_their_names() {
    let mut fed = Fed::opened();
    let most = MOST_WAITING as u32;
    (0..most).for_each(|number| fed.bytes('>', &get(2 * number + 1, "/")));
    fed.dissect_lines();
    let ask = |kind: u8, flags: u8, stream: u32, bytes: &[u8]| frame(kind, flags, stream, bytes);
    let fields = block(&[(":method", "POST"), (":path", "/with/a/body")]);
    let first = 2 * most + 1;
    fed.bytes('>', &get(first, "/alone"));
    // A head in two frames and a body behind it.
    fed.bytes('>', &ask(1, 0, first + 2, &fields[..9]));
    fed.bytes('>', &ask(9, WHOLE, first + 2, &fields[9..]));
    fed.bytes('>', &data(first + 2, LAST, b"body"));
    fed.bytes('<', &head(first, LAST, &[(":status", "200")]));
    let promise = [
        &[0, 0, 0, 2][..],
        &block(&[(":method", "GET"), (":path", "/pushed")]),
    ]
    .concat();
    fed.bytes('<', &ask(5, WHOLE, 1, &promise));
    let dissected = fed.dissect_lines();
    let said: Vec<&str> = dissected
        .iter()
        .filter(|line| {
            [" is ", "void", " response "]
                .iter()
                .any(|w| line.contains(w))
        })
        .map(|l| &l[..])
        .collect();
    let void = "void: more than 4,096 requests were waiting on its connection";
    let [alone, body, pushed] = [most, most + 1, most + 2];
    let begins = said
        .iter()
        .position(|line| line.contains("response begins"))
        .unwrap();
    assert_eq!(
        [&said[..begins], &said[begins + 1..]].concat(),
        [
            format!("{alone} request is GET /alone"),
            format!("{alone} {void}"),
            format!("{body} request is POST /with/a/body"),
            format!("{body} {void}"),
            format!("{pushed} request is GET /pushed"),
            format!("{pushed} {void}"),
        ]
    );
    let mut fed = Fed::opened();
    (0..most).for_each(|number| fed.bytes('>', &get(2 * number + 1, "/")));
    fed.dissect_lines();
    fed.bytes('>', &get(first, "/never/whole")[..20]);
    fed.http
        .end(EventStreamDirection::There, fed.at[0], &mut fed.found);
    assert_eq!(
        fed.dissect_lines()
            .iter()
            .filter(|line| line.starts_with(&format!("{most} void")))
            .count(),
        1,
        "it is not lost"
    );
}
