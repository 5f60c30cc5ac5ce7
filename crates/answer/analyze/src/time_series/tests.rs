//! Series of which each value is known.

use super::interval_table::interval_tables;
use super::series_data::round_interval_s;
use super::*;
use crate::lifelines::Lifelines;
use crate::testing::plan;
use stackline_core::interval_record::{
    IntervalCalls, IntervalRow, IntervalTransport, SideIntervals,
};
use stackline_core::plan::Plan;
use stackline_core::trace_index::{Index, RunFlow, RunSpan};
use stackline_events::unit_ids::{EventStreamDirection, stream, unit};
use stackline_events::{EventTable, EventValue};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
/// Where the clocks of these runs start.
const ZERO: u64 = 7 * S;

/// A run directory in memory.
struct PlantedRun {
    plan: Plan,
    records: Vec<RunRecord>,
    index: Index,
    events: EventTable,
}

impl PlantedRun {
    fn new(text: &str) -> Self {
        Self {
            plan: plan(text),
            records: vec![RunRecord::default()],
            index: Index::default(),
            events: EventTable::default(),
        }
    }

    /// Traced from clock start to clock stop, with one flow.
    fn traced(text: &str, length_ns: u64) -> Self {
        let mut run = Self::new(text);
        run.index.runs.push(RunSpan {
            from_ns: ZERO - S,
            to_ns: ZERO + length_ns + S,
            ..RunSpan::default()
        });
        run.index.flows.push(RunFlow {
            hosts: ("a".into(), "b".into()),
            ..RunFlow::default()
        });
        for (keyword, at) in [("APP_START", 0), ("APP_STOP", length_ns)] {
            let there = stream(0, EventStreamDirection::There);
            run.event(keyword, "a", at, &[EventValue::Absent, there.into()]);
        }
        run
    }

    fn event(&mut self, keyword: &str, host: &str, since_ns: u64, data: &[EventValue<'_>]) {
        self.events.push(keyword, host, ZERO + since_ns, data);
    }

    /// An event of a data unit of so many bytes.
    fn unit(&mut self, keyword: &str, host: &str, since_ns: u64, number: u64, bytes: u64) {
        let there = stream(0, EventStreamDirection::There);
        let data = [unit(0, number).into(), there.into(), 0.into(), bytes.into()];
        self.event(keyword, host, since_ns, &data);
    }

    fn series(&self, question: &SeriesQuestion) -> Result<TimeSeries, String> {
        let input = AnalysisInput {
            plan: &self.plan,
            records: &self.records,
            index: &self.index,
            events: &self.events,
            lifelines: &Lifelines::default(),
        };
        time_series(&input, question)
    }

    fn panel(&self, kind: SeriesKind) -> SeriesPanel {
        let series = self.series(&SeriesQuestion::default()).unwrap();
        let found = series.panels.into_iter().find(|panel| panel.kind == kind);
        found.unwrap_or_else(|| panic!("{kind:?}: {:?}", series.absent))
    }
}

fn values(line: &SeriesLine) -> Vec<f64> {
    line.points.iter().map(|point| point.value).collect()
}

#[track_caller]
fn near(value: f64, expected: f64) {
    assert!(
        (value - expected).abs() <= 1e-6 * expected.abs() + 1e-12,
        "{value} {expected}"
    );
}

#[test]
fn a_traced_rate_that_halves_after_two_seconds_shows_so() {
    let mut run = PlantedRun::traced("1 bulk_put 12500*300 over tcp;", 4 * S);
    // 12,500 bytes each 10 ms are 10 Mbit/s. They arrive in the middle of their 10 ms.
    for number in 0..300 {
        let at = match number {
            first @ 0..200 => 10 * first + 5,
            later => 2000 + 20 * (later - 200) + 5,
        };
        run.unit("APP_RECEIVED", "b", at * MS, number, 12_500);
    }
    let panel = run.panel(SeriesKind::Throughput);
    near(panel.every_s, 0.1);
    let rates = values(&panel.lines[0]);
    assert_eq!(rates.len(), 40);
    rates[..20].iter().for_each(|rate| near(*rate, 10e6));
    rates[20..].iter().for_each(|rate| near(*rate, 5e6));
    let points = &panel.lines[0].points;
    near(points[20].from_s, 2.0);
    near(points[20].to_s, 2.1);
    assert_eq!(panel.lines[0].name, "", "one line needs no name");
}

#[test]
fn intervals_are_as_long_as_was_asked_but_not_too_many() {
    let mut run = PlantedRun::traced("1 bulk_put 1000*4 over tcp;", 4 * S);
    (0..4).for_each(|number| run.unit("APP_RECEIVED", "b", number * S + MS, number, 1000));
    let asked = |every_s| {
        run.series(&SeriesQuestion {
            every_s: Some(every_s),
            ..SeriesQuestion::default()
        })
    };
    let series = asked(1.5).unwrap();
    // The last interval is as long as the clock ran.
    assert_eq!(values(&series.panels[0].lines[0]).len(), 3);
    near(series.panels[0].lines[0].points[2].value, 8000.0);
    let error = asked(1e-5).unwrap_err();
    assert!(error.contains("400000 intervals"), "{error}");
}

#[test]
fn a_queue_that_fills_shows_how_full_it_was() {
    let mut run = PlantedRun::traced("1 bulk_put 1000*4 over tcp;", S);
    let packet = |queued: u64, place: &'static str| {
        let mut data = vec![EventValue::Absent; 11];
        data[4] = EventValue::Text(place);
        (data[9], data[10]) = (1500.into(), queued.into());
        data
    };
    // Two packets enter and one leaves each 100 ms.
    for tick in 0..10_u64 {
        let held = 1500 * tick;
        run.event(
            "NET_ENQUEUE",
            "x",
            (100 * tick + 10) * MS,
            &packet(held + 1500, "x>b"),
        );
        run.event(
            "NET_ENQUEUE",
            "x",
            (100 * tick + 20) * MS,
            &packet(held + 3000, "x>b"),
        );
        run.event(
            "NET_DEQUEUE",
            "x",
            (100 * tick + 90) * MS,
            &packet(0, "x>b"),
        );
        run.event(
            "NET_ENQUEUE",
            "a",
            (100 * tick + 5) * MS,
            &packet(1500, "a>x"),
        );
    }
    let question = SeriesQuestion {
        every_s: Some(0.1),
        only: vec![SeriesKind::Queue],
        ..SeriesQuestion::default()
    };
    let series = run.series(&question).unwrap();
    let [panel] = &series.panels[..] else {
        panic!("{series:?}")
    };
    // The host's own queue never held more than the packet that it was sending.
    assert_eq!(panel.lines.len(), 1);
    assert_eq!(panel.lines[0].name, "x>b");
    let expected: Vec<f64> = (0..10).map(|tick| 1500.0 * f64::from(tick + 2)).collect();
    assert_eq!(values(&panel.lines[0]), expected);
}

#[test]
fn a_queue_keeps_what_it_holds_while_nothing_happens() {
    let mut run = PlantedRun::traced("1 bulk_put 1000*4 over tcp;", S);
    let mut data = vec![EventValue::Absent; 11];
    data[4] = EventValue::Text("x>b");
    (data[9], data[10]) = (1500.into(), 9000.into());
    run.event("NET_ENQUEUE", "x", 150 * MS, &data);
    (data[9], data[10]) = (9000.into(), EventValue::Absent);
    run.event("NET_DEQUEUE", "x", 450 * MS, &data);
    let question = SeriesQuestion {
        every_s: Some(0.1),
        only: vec![SeriesKind::Queue],
        ..SeriesQuestion::default()
    };
    let series = run.series(&question).unwrap();
    let full = [0.0, 9000.0, 9000.0, 9000.0, 9000.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    assert_eq!(values(&series.panels[0].lines[0]), full);
}

#[test]
fn calls_count_where_they_end() {
    let mut run = PlantedRun::traced("1 rr 32*100 over tcp;", 2 * S);
    for number in 0..100 {
        // 10 ms each in the first second, 20 ms in the second one.
        let took = if number < 50 { 10 } else { 20 };
        let end = 20 * number + 19;
        run.unit("APP_CALL", "a", (end - took.min(19)) * MS, number, 32);
        run.unit("APP_RESPONSE", "a", end * MS, number, 32);
    }
    let question = SeriesQuestion {
        every_s: Some(1.0),
        ..SeriesQuestion::default()
    };
    let series = run.series(&question).unwrap();
    let of = |kind| {
        series
            .panels
            .iter()
            .find(|panel| panel.kind == kind)
            .unwrap()
    };
    assert_eq!(values(&of(SeriesKind::Calls).lines[0]), [50.0, 50.0]);
    let latency = &of(SeriesKind::Latency).lines;
    let names: Vec<&str> = latency.iter().map(|line| line.name.as_str()).collect();
    assert_eq!(names, ["median", "p99", "max"]);
    near(values(&latency[0])[0], 0.010);
    near(values(&latency[0])[1], 0.019);
}

#[test]
fn datagrams_that_never_arrive_are_lost_when_they_were_sent() {
    let mut run = PlantedRun::traced("1 stream 1000*20 constant(50 ms) over tcp;", S);
    run.records[0].responder.lost = Some(2);
    for number in 0..20 {
        run.unit("APP_SEND", "a", 50 * number * MS, number, 1000);
        // From the second half on each second one takes 4 ms longer.
        let late = if number >= 10 && number % 2 == 1 {
            4
        } else {
            0
        };
        if number != 3 && number != 4 {
            run.unit(
                "APP_RECEIVED",
                "b",
                (50 * number + 10 + late) * MS,
                number,
                1000,
            );
        }
    }
    let question = SeriesQuestion {
        every_s: Some(0.5),
        ..SeriesQuestion::default()
    };
    let series = run.series(&question).unwrap();
    let of = |kind| {
        series
            .panels
            .iter()
            .find(|panel| panel.kind == kind)
            .unwrap()
    };
    assert_eq!(values(&of(SeriesKind::Lost).lines[0]), [2.0, 0.0]);
    let jitter = values(&of(SeriesKind::Jitter).lines[0]);
    // RFC 3550, 6.4.1: nine differences of 4 ms after none.
    let expected = 0.004 * (1.0 - (15.0_f64 / 16.0).powi(9));
    near(jitter[1], expected);
    near(jitter[0], 0.0);
}

#[test]
fn a_connection_is_named_by_the_pair_that_opened_it() {
    let mut run = PlantedRun::traced("1 bulk_put 1000*4 over tcp;", S);
    let ends = [
        EventValue::Text("127.0.0.1:5000"),
        EventValue::Text("127.0.0.1:7"),
    ];
    let mut opened = vec![EventValue::Absent; 6];
    opened[1] = stream(0, EventStreamDirection::There).into();
    (opened[4], opened[5]) = (ends[0], ends[1]);
    run.event("APP_CONNECTED", "a", 0, &opened);
    let mut report = vec![EventValue::Absent; 16];
    (report[2], report[3]) = (ends[0], ends[1]);
    (report[4], report[15]) = (14_480.into(), 1000.into());
    run.event("TCP_INFO", "a", 100 * MS, &report);
    (report[2], report[3]) = (ends[1], ends[0]);
    run.event("TCP_INFO", "a", 100 * MS, &report);
    let lines = run.panel(SeriesKind::Window).lines;
    let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    assert_eq!(names, ["a 127.0.0.1:7>127.0.0.1:5000", "a>b"]);
}

#[test]
fn reports_of_connections_that_carry_no_data_are_left_out() {
    let mut run = PlantedRun::traced("1 bulk_put 1000*4 over tcp;", S);
    for tick in 1..=10_u64 {
        for (direction, acknowledged) in [
            (EventStreamDirection::There, 100_000),
            (EventStreamDirection::Back, 17),
        ] {
            let mut data = vec![EventValue::Absent; 16];
            data[1] = stream(0, direction).into();
            (data[4], data[6]) = ((tick * 10_000).into(), (20 * MS).into());
            (data[7], data[15]) = (u64::from(tick == 5).into(), acknowledged.into());
            run.event("TCP_INFO", "a", (100 * tick - 50) * MS, &data);
        }
    }
    let question = SeriesQuestion {
        every_s: Some(0.5),
        ..SeriesQuestion::default()
    };
    let series = run.series(&question).unwrap();
    let of = |kind| {
        series
            .panels
            .iter()
            .find(|panel| panel.kind == kind)
            .unwrap()
    };
    let windows = of(SeriesKind::Window);
    assert_eq!(windows.lines.len(), 1);
    assert_eq!(values(&windows.lines[0]), [30_000.0, 80_000.0]);
    assert_eq!(values(&of(SeriesKind::RoundTrip).lines[0]), [0.02, 0.02]);
    assert_eq!(
        values(&of(SeriesKind::Retransmissions).lines[0]),
        [1.0, 0.0]
    );
}

/// Intervals of half a second with so many bytes.
fn intervals(bytes: &[u64]) -> SideIntervals {
    let row = |bytes: &u64| IntervalRow {
        received_units: 1,
        received_bytes: *bytes,
        ..IntervalRow::default()
    };
    SideIntervals {
        every_ns: 500 * MS,
        length_ns: 500 * MS * bytes.len() as u64,
        sum: bytes.iter().map(row).collect(),
        pairs: Vec::new(),
    }
}

#[test]
fn a_recorded_rate_that_halves_after_two_seconds_shows_so() {
    let mut run = PlantedRun::new("1 bulk_put 1000*10 over tcp;");
    let bytes = [1_000_000, 1_000_000, 1_000_000, 1_000_000, 500_000, 500_000];
    run.records[0].responder_intervals = Some(intervals(&bytes));
    run.records[0].initiator_intervals = Some(SideIntervals {
        sum: vec![
            IntervalRow {
                transport: Some(IntervalTransport {
                    retransmits: 2,
                    window_bytes: Some(14_480),
                    round_trip_ns: 30 * MS,
                }),
                ..IntervalRow::default()
            };
            6
        ],
        ..intervals(&[0; 6])
    });
    let series = run.series(&SeriesQuestion::default()).unwrap();
    let rates = values(&series.panels[0].lines[0]);
    assert_eq!(rates, [16e6, 16e6, 16e6, 16e6, 8e6, 8e6]);
    let kinds: Vec<&str> = series
        .panels
        .iter()
        .map(|panel| panel.kind.word())
        .collect();
    assert_eq!(kinds, ["throughput", "cwnd", "rtt", "retransmits"]);
    near(series.length_s, 3.0);
    let notable = series.absent.iter().filter(|absent| absent.is_notable);
    let notable: Vec<_> = notable
        .map(|one| (one.kind.word(), one.reason.as_str()))
        .collect();
    let reason = "not traced: run with --trace";
    assert_eq!(notable, [("queue", reason), ("cpu", reason)]);
    let tables = interval_tables(&run.plan, &run.records);
    let row = &tables[0].rows[4];
    assert_eq!((row.from_s, row.to_s, row.bytes), (2.0, 2.5, Some(500_000)));
    assert_eq!((row.bit_s, row.retransmits), (Some(8e6), Some(2)));
    assert_eq!((row.window_bytes, row.lost), (Some(14_480), None));
}

#[test]
fn pairs_have_lines_beside_their_sum() {
    let mut run = PlantedRun::new("1 2 bulk_get 1000*10 over tcp;");
    let mut both = intervals(&[3000, 3000]);
    both.pairs = vec![intervals(&[1000, 2000]).sum, intervals(&[2000, 1000]).sum];
    run.records[0].initiator_intervals = Some(both);
    let panel = run.panel(SeriesKind::Throughput);
    let lines: Vec<_> = panel
        .lines
        .iter()
        .map(|line| (line.name.as_str(), values(line)[0]))
        .collect();
    assert_eq!(
        lines,
        [("all 2 pairs", 48e3), ("pair 1", 16e3), ("pair 2", 32e3)]
    );
    let rows = &interval_tables(&run.plan, &run.records)[0].rows;
    let bytes: Vec<_> = rows
        .iter()
        .map(|row| (row.pair, row.bytes.unwrap()))
        .collect();
    assert_eq!(bytes[..3], [(Some(0), 1000), (Some(1), 2000), (None, 3000)]);
}

#[test]
fn recorded_calls_have_their_times() {
    let mut run = PlantedRun::new("1 rr 32*100 over tcp;");
    let mut side = intervals(&[0, 0]);
    side.sum[1].calls = Some(IntervalCalls {
        n: 100,
        median_ns: Some(MS),
        p99_ns: None,
        max_ns: 3 * MS,
    });
    run.records[0].initiator_intervals = Some(side);
    let series = run.series(&SeriesQuestion::default()).unwrap();
    let of = |kind| {
        series
            .panels
            .iter()
            .find(|panel| panel.kind == kind)
            .unwrap()
    };
    assert_eq!(values(&of(SeriesKind::Calls).lines[0]), [0.0, 200.0]);
    let latency: Vec<&str> = of(SeriesKind::Latency)
        .lines
        .iter()
        .map(|line| line.name.as_str())
        .collect();
    assert_eq!(latency, ["median", "max"], "no room for the percentile");
    let rows = &interval_tables(&run.plan, &run.records)[0].rows;
    assert_eq!((rows[0].calls, rows[1].calls), (Some(0), Some(100)));
    near(rows[1].max_s.unwrap(), 0.003);
    assert_eq!(rows[1].bytes, None);
}

#[test]
fn what_was_not_kept_or_does_not_exist_is_said() {
    let run = PlantedRun::new("1 rr 32*100 over tcp;");
    let error = run.series(&SeriesQuestion::default()).unwrap_err();
    assert_eq!(error, NOTHING_KEPT);
    let asked = |measurement, number| {
        let question = SeriesQuestion {
            measurement,
            run: number,
            ..SeriesQuestion::default()
        };
        run.series(&question).unwrap_err()
    };
    assert_eq!(
        asked(Some(4), None),
        "measurement 5 does not exist: the run has 1"
    );
    assert_eq!(asked(None, Some(6)), "run 7 was not made, or not kept");
}

#[test]
fn intervals_are_round() {
    let expected = [
        (4.0, 0.1),
        (60.0, 1.0),
        (61.0, 2.0),
        (0.03, 0.0005),
        (3600.0, 100.0),
    ];
    for (length_s, every_s) in expected {
        near(round_interval_s(length_s), every_s);
    }
}
