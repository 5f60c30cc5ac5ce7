//! Expectations and gates as text and as JSON.

mod verdicts;

use serde_json::json as object;
use stackline_analyze::{ExpectationVerdict, JudgedExpectation};
use stackline_report::{
    expectations, expectations_json, regression_lines, regressions, regressions_json,
};
use verdicts::{judged, outcome};

#[test]
fn each_expectation_has_a_line() {
    let open = JudgedExpectation {
        ci95: Some((0.0119, f64::INFINITY)),
        reason: Some("too few".into()),
        ..judged("p99.9 < 1 s", ExpectationVerdict::Undecided)
    };
    let finding = JudgedExpectation {
        unit: None,
        value: None,
        ci95: None,
        reason: Some("the queue before a>b drops 3 % of the packets".into()),
        ..judged("finding not queue_drop", ExpectationVerdict::Missed)
    };
    let all = [
        judged("p99 < 20 ms", ExpectationVerdict::Met),
        open,
        finding,
    ];
    assert_eq!(
        expectations(&all),
        "
expectations: 1 met, 1 missed, 1 undecided
  met        p99 < 20 ms             12.1 ms (95 %: 11.9 ms..12.3 ms)
  undecided  p99.9 < 1 s             12.1 ms (95 %: from 11.9 ms) (too few)
  MISSED     finding not queue_drop  the queue before a>b drops 3 % of the
    packets
"
    );
    assert_eq!(expectations(&[]), "");
    let json = expectations_json(&all);
    assert_eq!(json[1]["ci95"], object!([0.0119, null]));
    assert_eq!(json[2]["verdict"], "missed");
}

const BASE: [f64; 4] = [0.0100, 0.0101, 0.0099, 0.0100];

#[test]
fn a_gate_says_what_is_worse_by_how_much_and_how_sure() {
    let worse = outcome(&BASE, &BASE.map(|value| value * 1.2));
    assert_eq!(
        regressions(&worse),
        "5 rr 32*1000 over tcp\n  response time  10.0 ms  -> 12.0 ms  +20.0 % (+16.9..+23.2)  WORSE\n"
    );
    assert_eq!(
        regression_lines(&worse),
        [
            "failed: response time of `5 rr 32*1000 over tcp` is worse (+20.0 % (+16.9..+23.2)) (error rate 1 %)"
        ]
    );
    let json = regressions_json(&worse);
    assert_eq!(
        (&json["verdict"], &json["figures"][0]["verdict"]),
        (&object!("worse"), &object!("worse"))
    );
    let same = outcome(&BASE, &BASE);
    assert_eq!(
        regression_lines(&same),
        [
            "passed: nothing is worse by 5 % or more, and nothing is shown to be worse (error rate 1 %)"
        ]
    );
}

#[test]
fn a_gate_that_cannot_say_proposes_runs() {
    let open = outcome(&[0.010, 0.012, 0.009], &[0.011, 0.010, 0.012]);
    let lines = regression_lines(&open);
    assert!(
        lines[0].starts_with("cannot say whether anything is worse by 5 %: response time of"),
        "{lines:?}"
    );
    assert!(
        lines[1].contains("more runs of each side would decide"),
        "{lines:?}"
    );
    assert!(regressions(&open).contains("chance alone may do that; about"));
    let one = outcome(&[0.010], &[0.011]);
    assert!(regressions(&one).contains("1 and 1 counted runs, but each side needs two"));
    assert_eq!(regression_lines(&one).len(), 1);
}
