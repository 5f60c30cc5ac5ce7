//! Throughput, response, loss and marks of the runs of one part, and where there are none.

use super::*;
use crate::RunMetric;
use stackline_core::catalogue::OptionValue;
use stackline_core::run_record::TransportRecord;

#[test]
fn no_runs_give_a_summary_without_figures() {
    let summary = &summarise(&plan(Composer::Basic, vec![get("a")]), &[])[0];
    assert_eq!((summary.runs, summary.units, summary.main), (0, 0.0, None));
    assert!(
        summary.throughput_bit_s.is_none()
            && summary.lost.is_none()
            && summary.cpu_s_per_gb.is_none()
    );
    assert!(summary.flags.is_empty());
    assert_eq!(
        (summary.from.as_str(), summary.to.as_str()),
        ("khons", "local")
    );
}

#[test]
fn bytes_that_are_not_those_of_the_clock_give_no_throughput() {
    for note in [
        stackline_core::run_record::IN_TRANSIT,
        stackline_core::run_record::UNPLACED,
    ] {
        let mut record = moved(0, 0, 100);
        record.responder.notes.push(note.into());
        let summary = &summarise(&plan(Composer::Basic, vec![get("a")]), &[record])[0];
        assert!(
            summary.throughput_bit_s.is_none() && summary.flags.iter().any(|flag| flag == note),
            "{:?}",
            summary.flags
        );
    }
}

#[test]
fn throughput_over_runs_without_the_warmup() {
    let warmup = RunRecord {
        warmup: true,
        ..moved(0, 0, 900)
    };
    let records = [warmup, moved(0, 0, 100), moved(0, 1, 100), moved(0, 2, 106)];
    let summary = &summarise(&plan(Composer::Basic, vec![get("a")]), &records)[0];
    let throughput = summary.throughput_bit_s.unwrap();
    assert_eq!(
        (throughput.n, throughput.min, throughput.max),
        (3, 8e8, 8.48e8)
    );
    assert_eq!(
        (summary.runs, summary.units, summary.unit_bytes),
        (3, 102_000.0, Some(1000))
    );
    assert_eq!(summary.main, Some(RunMetric::Throughput));
    assert!(
        summary.response_s.is_none() && summary.flags.is_empty(),
        "{:?}",
        summary.flags
    );
}

#[test]
fn calls_are_not_throughput_even_when_their_bytes_are_counted() {
    let mut record = called(0, &[1000, 2000, 3000]);
    record.responder.received_bytes = 96;
    let summary = &summarise(&plan(Composer::Basic, vec![rr()]), &[record])[0];
    assert!(summary.throughput_bit_s.is_none());
    assert_eq!(
        (summary.main, summary.units),
        (Some(RunMetric::Response), 3.0)
    );
    assert!((summary.response_s.unwrap().mean - 2e-6).abs() < 1e-15);
    assert!((summary.rate_per_s.unwrap().mean - 500_000.0).abs() < 1e-6);
    assert_eq!(summary.flags, ["one run", "interval from calls"]);
}

#[test]
fn replicas_last_from_the_first_start_to_the_last_stop() {
    let record = RunRecord {
        replicas: 4,
        span_ns: 4_000_000_000,
        ..moved(0, 0, 100)
    };
    let summary = &summarise(
        &plan(Composer::Basic, vec![get("a")]),
        std::slice::from_ref(&record),
    )[0];
    assert_eq!(summary.throughput_bit_s.unwrap().mean, 2e8);
    let unknown = RunRecord {
        span_ns: 0,
        ..record
    };
    let summary = &summarise(&plan(Composer::Basic, vec![get("a")]), &[unknown])[0];
    assert_eq!(summary.throughput_bit_s.unwrap().mean, 8e8);
}

#[test]
fn loss_is_absent_where_it_is_not_counted() {
    let mut record = moved(0, 0, 1);
    record.responder.sent_units = 1000;
    record.initiator.lost = Some(10);
    let known = &summarise(&plan(Composer::Basic, vec![get("a")]), &[record.clone()])[0];
    assert_eq!((known.lost, known.lost_share), (Some(10), Some(0.01)));
    assert!(known.flags.contains(&"lost data".to_owned()));
    record.initiator.lost = None;
    let unknown = &summarise(&plan(Composer::Basic, vec![get("a")]), &[record])[0];
    assert_eq!((unknown.lost, unknown.lost_share), (None, None));
}

#[test]
fn lost_calls_are_over_the_calls_made() {
    let mut record = called(0, &[1000, 2000, 3000]);
    record.initiator.lost = Some(1);
    assert_eq!(
        summarise(&plan(Composer::Basic, vec![rr()]), &[record])[0].lost_share,
        Some(0.25)
    );
}

#[test]
fn retransmits_are_summed_over_runs() {
    let with = |run, retransmits, rtt_s| {
        let start = TransportRecord {
            retransmits: 5,
            busy_s: Some(0.0),
            send_buffer_limited_s: Some(0.0),
            ..TransportRecord::default()
        };
        let stop = TransportRecord {
            retransmits,
            rtt_s,
            busy_s: Some(0.5),
            send_buffer_limited_s: Some(0.1),
            ..start
        };
        let mut record = moved(0, run, 1);
        record.initiator.transport = Some((start, stop));
        record
    };
    let side = &summarise(
        &plan(Composer::Basic, vec![get("a")]),
        &[with(0, 7, 0.1), with(1, 6, 0.2)],
    )[0]
    .initiator;
    assert_eq!(side.retransmits, Some(3));
    assert_eq!(side.transport.unwrap().1.rtt_s, 0.2);
    assert_eq!(
        (side.busy_share, side.send_buffer_limited_share),
        (Some(0.5), Some(0.2))
    );
    assert_eq!(
        side.receive_window_limited_share, None,
        "it was not reported"
    );
}

#[test]
fn marks_are_pooled_over_runs() {
    let mark = |run, ns| {
        let mut record = moved(0, run, 1);
        record.initiator.marks.insert(
            "first byte".into(),
            crate::statistics::tests::histogram(&[ns]),
        );
        record
    };
    let summary = &summarise(
        &plan(Composer::Basic, vec![get("a")]),
        &[mark(0, 1000), mark(1, 3000)],
    )[0];
    let first_byte = summary.marks["first byte"];
    assert_eq!(first_byte.n, 2);
    assert!((first_byte.mean - 2e-6).abs() < 1e-15);
}

#[test]
fn the_time_of_a_transfer_is_of_one_amount_moved_to_its_end() {
    let sent = |limited: bool| {
        let mut record = RunRecord {
            elapsed_ns: 1_000_000,
            limited,
            ..RunRecord::default()
        };
        record.responder.received_bytes = 50_000_000;
        record
    };
    let is_transfer = |text: &str, limited: bool| {
        summarise(&testing::plan(text), &[sent(limited)])[0].is_transfer
    };
    assert!(is_transfer("1 bulk_put 64 KiB 50 MB over tcp", false));
    assert!(is_transfer("1 bulk_put 50000000*1 over tcp", false));
    assert!(
        !is_transfer("1 bulk_put 64 KiB*1000 over tcp", false),
        "so many data units"
    );
    assert!(
        !is_transfer("1 timelimit 1 bulk_put 64 KiB 50 MB over tcp", true),
        "not to its end"
    );
}

#[test]
fn a_connection_that_pairs_share_is_busy_as_one() {
    let start = TransportRecord {
        busy_s: Some(0.0),
        ..TransportRecord::default()
    };
    let stop = TransportRecord {
        busy_s: Some(0.5),
        ..start
    };
    let mut record = moved(0, 0, 1);
    record.replicas = 4;
    record.initiator.transport = Some((start, stop));
    let busy = |streams| {
        let mut part = get("a");
        part.replicas = 4;
        part.stack.facts.shares_connections = true;
        let option = ("streams".into(), OptionValue::Number(streams));
        part.stack.options.extend([option]);
        let plan = plan(Composer::Basic, vec![part]);
        summarise(&plan, &[record.clone()])[0].initiator.busy_share
    };
    assert_eq!(busy(4), Some(0.5));
    assert_eq!(busy(2), Some(0.25), "two connections");
}
