//! Curves of summaries made by hand: which axis, which lines, which intervals, what is left out and why.

use super::*;
use crate::statistics::SampleStatistics;
use crate::summary::{RepeatedWork, RunValues, Summary};
use stackline_core::plan::VariableUnit;
use stackline_core::run_record::Histogram;

/// A row that is judged by its throughput, of runs with these values.
fn row(variables: &[(&str, f64)], stack: &str, values: &[f64]) -> Summary {
    Summary {
        line: 1,
        part_index: Some(0),
        stack: stack.to_owned(),
        application: "bulk_put".to_owned(),
        from: "a".to_owned(),
        to: "b".to_owned(),
        variables: variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect(),
        runs: values.len() as u32,
        throughput_bit_s: SampleStatistics::from_values(values),
        main: (!values.is_empty()).then_some(RunMetric::Throughput),
        run_values: RunValues {
            throughput_bit_s: values.to_vec(),
            ..RunValues::default()
        },
        ..Summary::default()
    }
}

/// A histogram of these times, ns.
fn times(values: &[u64]) -> Histogram {
    let each: Vec<Histogram> = values
        .iter()
        .map(|value| Histogram {
            counts: vec![(*value, 1)],
            sum: *value,
            squares: (*value as f64).powi(2),
            min_max: Some((*value, *value)),
        })
        .collect();
    Histogram::merged(&each)
}

/// A row that is judged by response times: of each run, those of its calls, ns.
fn calls(variables: &[(&str, f64)], runs: &[Vec<u64>]) -> Summary {
    let histograms: Vec<Histogram> = runs.iter().map(|run| times(run)).collect();
    Summary {
        runs: runs.len() as u32,
        throughput_bit_s: None,
        response_s: SampleStatistics::from_runs(&histograms, 1e-9),
        response_ns: Histogram::merged(&histograms),
        response_run_ns: histograms,
        main: Some(RunMetric::Response),
        rate_of: Some(RepeatedWork::Call),
        application: "request_response".to_owned(),
        ..row(variables, "tcp", &[])
    }
}

fn run(name: &str, summaries: Vec<Summary>) -> CurveRun {
    CurveRun {
        name: name.to_owned(),
        summaries,
    }
}

fn drawn(summaries: Vec<Summary>) -> CurveSet {
    curves(&[run("r", summaries)], &CurveQuestion::default()).unwrap()
}

fn names(set: &CurveSet) -> Vec<&str> {
    set.curves.iter().map(|curve| curve.name.as_str()).collect()
}

/// Rates 1 and 2 at each of these values of N, of two runs each.
fn sweep(values: &[f64], stack: &str) -> Vec<Summary> {
    let each = values.iter();
    each.map(|n| row(&[("N", *n)], stack, &[*n, *n + 2.0]))
        .collect()
}

#[test]
fn the_variable_with_the_most_values_is_the_axis_and_others_are_lines() {
    let mut rows = Vec::new();
    for n in [4.0, 1.0, 2.0] {
        for loss in [1.0, 0.0] {
            for stack in ["tcp", "quic"] {
                rows.push(row(&[("L", loss), ("N", n)], stack, &[n, n + 2.0]));
            }
        }
    }
    for one in &mut rows {
        let unit = |quantity| VariableUnit {
            quantity,
            factor: 1.0,
        };
        one.variable_units = vec![unit(Quantity::Percent), unit(Quantity::Size)];
    }
    let set = drawn(rows.clone());
    assert_eq!((set.x.name.as_str(), set.x.quantity), ("N", Quantity::Size));
    assert_eq!(set.y.name, "throughput");
    assert_eq!(
        names(&set),
        [
            "L = 0 %, tcp",
            "L = 0 %, quic",
            "L = 1 %, tcp",
            "L = 1 %, quic"
        ]
    );
    let places: Vec<f64> = set.curves[0].points.iter().map(|point| point.x).collect();
    assert_eq!(places, [1.0, 2.0, 4.0], "from left to right");
    // Lines by stack: the loss has panels.
    let by = CurveQuestion {
        by: Some("stack".into()),
        ..CurveQuestion::default()
    };
    let set = curves(&[run("r", rows.clone())], &by).unwrap();
    assert_eq!(set.panels, ["L = 0 %", "L = 1 %"]);
    assert_eq!(names(&set), ["tcp", "quic", "tcp", "quic"]);
    let panels = CurveQuestion {
        panels: Some("stack".into()),
        ..CurveQuestion::default()
    };
    let set = curves(&[run("r", rows)], &panels).unwrap();
    assert_eq!((set.panels.len(), set.panels[0].as_str()), (2, "tcp"));
    let by = set.by.unwrap();
    assert_eq!((by.name.as_str(), by.quantity), ("L", Quantity::Percent));
    assert_eq!(set.curves[1].number, Some(1.0));
}

#[test]
fn an_interval_is_of_two_runs_and_more() {
    let mut rows = sweep(&[1.0, 2.0], "tcp");
    rows.push(row(&[("N", 3.0)], "tcp", &[5.0]));
    let set = drawn(rows);
    let points = &set.curves[0].points;
    // Student's t with one degree of freedom is 12.706, of values 1 and 3 around 2; no rate is below zero.
    let (low, high) = points[0].interval.unwrap();
    assert!(low == 0.0 && (high - 14.706).abs() < 0.001, "{low} {high}");
    assert_eq!(
        (points[2].y, points[2].interval, points[2].n),
        (5.0, None, 1)
    );
    assert_eq!(set.single_points(), 1);
}

#[test]
fn a_swept_option_does_not_make_lines() {
    let stack = |buffer: u64| format!("tcp(nodelay, receive_buffer = {buffer})");
    let with = |buffer: u64| row(&[("W", buffer as f64)], &stack(buffer), &[1.0, 2.0]);
    let mut rows = vec![with(4096), with(65_536)];
    assert_eq!(names(&drawn(rows.clone())), [""]);
    // Beside another stack the variable stands in the place of its values.
    rows.extend([4096.0, 65_536.0].map(|w| row(&[("W", w)], "udp", &[1.0, 2.0])));
    let set = drawn(rows);
    assert_eq!(names(&set), ["tcp(nodelay, receive_buffer = W)", "udp"]);
    // A time is written with its unit.
    let rows = [0.001, 0.002].map(|d| {
        let stack = format!("tcp(delay = {})", stackline_core::units::format_time(d));
        row(&[("D", d)], &stack, &[1.0])
    });
    assert_eq!(names(&drawn(rows.to_vec())), [""]);
}

#[test]
fn runs_are_lines_of_their_own() {
    let rows = || sweep(&[1.0, 2.0], "tcp");
    let runs = [run("before", rows()), run("after", rows())];
    let set = curves(&runs, &CurveQuestion::default()).unwrap();
    assert_eq!(names(&set), ["before", "after"]);
    let runs = [run("x", rows()), run("x", rows())];
    let set = curves(&runs, &CurveQuestion::default()).unwrap();
    assert_eq!(names(&set), ["x (1)", "x (2)"]);
}

#[test]
fn what_rows_lack_is_counted_by_reason() {
    let mut rows = sweep(&[1.0, 2.0], "tcp");
    rows.push(row(&[("N", 8.0)], "tcp", &[]));
    rows.push(calls(&[("N", 3.0)], &[vec![1000]]));
    rows.push(row(&[], "tcp", &[7.0]));
    rows.push(Summary {
        background: true,
        ..row(&[("N", 9.0)], "tcp", &[1.0])
    });
    let set = drawn(rows.clone());
    assert_eq!(set.points().count(), 2);
    assert_eq!(
        set.omissions(),
        [
            "1 row was left out: judged by response time, not by throughput",
            "1 row was left out: no value of N",
            "1 row was left out: nothing measured",
        ]
    );
    let of_calls = CurveQuestion {
        y: CurveMetric::parse("response_max").unwrap(),
        ..CurveQuestion::default()
    };
    let set = curves(&[run("r", rows)], &of_calls).unwrap();
    assert_eq!(set.omissions()[0], "2 rows were left out: no response time");
    assert_eq!(
        (set.y.name.as_str(), set.points().count()),
        ("max of response time", 1)
    );
}

#[test]
fn a_percentile_has_the_interval_of_its_runs() {
    let runs: Vec<Vec<u64>> = vec![(1..=100).collect(), (11..=110).collect()];
    let question = |y: &str| CurveQuestion {
        y: CurveMetric::parse(y).unwrap(),
        ..CurveQuestion::default()
    };
    let rows = vec![
        calls(&[("N", 1.0)], &runs),
        calls(&[("N", 2.0)], &[vec![5, 6]]),
    ];
    let of = |y: &str| curves(&[run("r", rows.clone())], &question(y)).unwrap();
    let set = of("median");
    let point = set.curves[0].points[0];
    // The runs' medians are 50 and 60 ns.
    assert!((point.y - 55e-9).abs() < 1e-12, "{}", point.y);
    let (_, high) = point.interval.unwrap();
    assert!((high - point.y - 12.706 * 5e-9).abs() < 1e-11, "{high}");
    assert_eq!(
        of("p99").omissions(),
        ["1 row was left out: fewer than the 100 values of p99"]
    );
    // Names of JSON and CSV, and short ones.
    assert_eq!(
        CurveMetric::parse("response_s_p999"),
        CurveMetric::parse("response p99.9")
    );
    assert_eq!(
        CurveMetric::parse("throughput_bit_s"),
        CurveMetric::parse("throughput-mean")
    );
    let words = CurveMetric::parse("speed").unwrap_err();
    assert!(
        words.contains("no metric `speed`") && words.contains("cpu_per_gb"),
        "{words}"
    );
}

#[test]
fn calls_are_distributions() {
    let rows = vec![calls(&[], &[vec![10, 10, 20, 40]]), row(&[], "udp", &[1.0])];
    let of = |kind| {
        let question = CurveQuestion {
            kind,
            y: CurveMetric::parse("response").unwrap(),
            ..CurveQuestion::default()
        };
        curves(&[run("r", rows.clone())], &question).unwrap()
    };
    let set = of(CurveKind::Cumulative);
    let points: Vec<(f64, f64)> = set.points().map(|point| (point.x, point.y)).collect();
    assert_eq!(points, [(1e-8, 50.0), (2e-8, 75.0), (4e-8, 100.0)]);
    assert_eq!(
        set.omissions(),
        ["1 row was left out: no times of single calls"]
    );
    let set = of(CurveKind::Percentiles);
    let points: Vec<f64> = set.points().map(|point| point.x).collect();
    assert_eq!(
        points,
        [50.0, 75.0, 87.5],
        "the largest has the place of its middle"
    );
}

#[test]
fn what_cannot_be_drawn_has_a_reason_and_a_hint() {
    let fails = |runs: &[CurveRun], question: CurveQuestion| {
        let error = curves(runs, &question).unwrap_err();
        format!(
            "{}; hint: {}",
            error.message,
            error.hint.unwrap_or_default()
        )
    };
    let default = CurveQuestion::default;
    let words = fails(&[run("r", vec![])], default());
    assert!(words.contains("nothing was measured"), "{words}");
    let words = fails(&[run("r", vec![row(&[], "tcp", &[1.0])])], default());
    assert!(
        words.contains("no variable has several values") && words.contains("N = 1, 2"),
        "{words}"
    );
    let tied: Vec<Summary> = [(1.0, 2.0), (3.0, 4.0)]
        .map(|(n, m)| row(&[("N", n), ("M", m)], "tcp", &[1.0]))
        .to_vec();
    let words = fails(&[run("r", tied)], default());
    assert!(
        words.contains("--x") && words.contains("M (2 values), N (2 values)"),
        "{words}"
    );
    let unknown = CurveQuestion {
        x: Some("Q".into()),
        ..default()
    };
    let words = fails(&[run("r", sweep(&[1.0, 2.0], "tcp"))], unknown);
    assert!(
        words.contains("`Q`") && words.contains("swept: N (2 values)"),
        "{words}"
    );
    let by = CurveQuestion {
        by: Some("colour".into()),
        ..default()
    };
    let words = fails(&[run("r", sweep(&[1.0, 2.0], "tcp"))], by);
    assert!(
        words.contains("`colour`") && words.contains("stack"),
        "{words}"
    );
    let lacking = CurveQuestion {
        y: CurveMetric::parse("connect").unwrap(),
        ..default()
    };
    let words = fails(&[run("r", sweep(&[1.0, 2.0], "tcp"))], lacking);
    assert!(
        words.contains("no connect time") && words.contains("--y"),
        "{words}"
    );
}

#[test]
fn numbers_of_rows_are_an_axis_if_they_are_asked_for() {
    let with = |replicas: u32, line: usize| Summary {
        replicas,
        line,
        ..row(&[], "tcp", &[1.0, 2.0])
    };
    let question = CurveQuestion {
        x: Some("replicas".into()),
        by: Some("stack".into()),
        ..CurveQuestion::default()
    };
    let set = curves(&[run("r", vec![with(1, 1), with(4, 2)])], &question).unwrap();
    assert_eq!(set.x.name, "replicas");
    assert_eq!(
        set.points().map(|point| point.x).collect::<Vec<_>>(),
        [1.0, 4.0]
    );
}
