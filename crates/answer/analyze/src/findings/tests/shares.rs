//! Shares of the time: of one part among several, of their rank, and what is left unexplained.

use super::*;

#[test]
fn healthy_runs_leave_no_time_unexplained() {
    assert_eq!(used(0.8).all(), ["unexplained"]);
    let sentence = &used(0.8).found()[0].sentence;
    assert!(
        sentence.starts_with("20 % of the time is unexplained"),
        "{sentence}"
    );
    let seen = &used(0.8).found()[0].evidence[0].what;
    assert!(seen.ends_with("; other findings explain 0 %"), "{seen}");
    let paced = used(0.8).paced();
    assert_eq!(paced.all(), ["healthy"]);
    assert_eq!(calls(&[(20, 4)]).all(), ["healthy"]);
    // However little the cause takes of the time, what is not known comes behind it.
    let small = used(0.2).with(|given| given.transport(|t| t.send_buffer_limited_s = Some(0.7)));
    assert_eq!(small.all(), ["socket_buffer", "unexplained"]);
    assert!(small.found()[1].rank() > small.found()[0].rank());
    let all = used(0.2).with(|given| given.transport(|t| t.send_buffer_limited_s = Some(7.8)));
    assert_eq!(all.all(), ["socket_buffer"]);
}

#[test]
fn the_share_of_one_of_several_parts_names_the_part() {
    let given = bulk(3, 10.0, 10_000_000, None).with(|given| {
        given.plan.measurements[0].parts[1].text = "bulk_put 1 KiB".into();
        given.records[1]
            .initiator
            .transport
            .as_mut()
            .unwrap()
            .1
            .send_buffer_limited_s = Some(8.2);
    });
    let finding = given
        .found()
        .into_iter()
        .find(|finding| finding.kind == "socket_buffer")
        .unwrap();
    assert!(
        finding
            .sentence
            .contains("82 % of the time of `bulk_put 1 KiB`"),
        "{}",
        finding.sentence
    );
    assert!(
        finding.evidence[0].what.contains("82 %"),
        "{}",
        finding.evidence[0].what
    );
    assert!(
        (finding.share - 0.82 / 3.0).abs() < 1e-6,
        "{}",
        finding.share
    );
}

#[test]
fn findings_are_ranked_by_share_times_confidence() {
    let given = bulk(1, 10.0, 30_000_000, None).with(|given| {
        given.transport(|t| {
            t.receive_window_limited_s = Some(2.0);
            t.send_buffer_limited_s = Some(6.0);
        });
    });
    assert_eq!(given.kinds(), ["socket_buffer", "window_below_bdp"]);
    let ranks: Vec<f64> = given.found().iter().map(Finding::rank).collect();
    assert!(ranks[0] >= ranks[1]);
}

/// Streams beside one another that use a tenth of the link together; so many of them wait for their send buffer.
fn waiting(streams: usize, wait: usize) -> Given {
    bulk(streams, 10.0, 12_500_000 / streams as u64, None).with(|given| {
        for record in given.records.iter_mut().take(wait) {
            record
                .initiator
                .transport
                .as_mut()
                .unwrap()
                .1
                .send_buffer_limited_s = Some(9.0);
        }
    })
}

#[test]
fn a_cause_in_every_stream_has_share_one() {
    for streams in [1, 2, 12, 40] {
        let found = waiting(streams, streams).found();
        assert_eq!(
            found.iter().map(|finding| finding.kind).collect::<Vec<_>>(),
            ["socket_buffer"],
            "{streams}"
        );
        assert!(
            (found[0].share - 0.9).abs() < 1e-6,
            "{streams}: {}",
            found[0].share
        );
    }
    let sentence = &waiting(3, 3).found()[0].sentence;
    let together = "; the same holds for other parts (2 of 2: a1 to b, a2 to b): 90 % of the total time of all parts";
    assert!(sentence.ends_with(together), "{sentence}");
}

#[test]
fn a_cause_in_one_stream_has_the_share_of_its_stream() {
    let found = waiting(4, 1).found();
    assert_eq!(
        [found[0].kind, found[1].kind],
        ["socket_buffer", "unexplained"]
    );
    assert!(
        (found[0].share - 0.9 / 4.0).abs() < 1e-6,
        "{}",
        found[0].share
    );
    assert!(
        !found[0].sentence.contains("beside it"),
        "{}",
        found[0].sentence
    );
}
