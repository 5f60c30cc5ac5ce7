//! A few of the specifications that `cargo bench -p stackline-whatif --bench truth` draws, judged as there.

#[path = "../benches/truth/asked.rs"]
mod asked;
#[path = "../benches/truth/diagnosis.rs"]
mod diagnosis;
#[path = "../benches/truth/followed_advice.rs"]
mod followed_advice;
#[path = "../benches/truth/prediction.rs"]
mod prediction;
#[path = "../benches/truth/runs.rs"]
mod runs;
#[path = "../benches/truth/verdict_tables.rs"]
mod verdict_tables;

use diagnosis::JudgedScenarios;
use std::time::{Duration, Instant};

/// Ends only what hangs.
fn until() -> Instant {
    Instant::now() + Duration::from_secs(600)
}

#[test]
fn what_is_said_of_drawn_specifications_is_right_by_removal() {
    let all = JudgedScenarios::judge(1, 12, until());
    let (right, wrong, failed) = all.of_the_sure();
    assert!(
        failed == 0 && wrong <= 1 && right >= 12,
        "{}{}",
        all.lines(),
        all.table()
    );
}

#[test]
fn what_is_predicted_of_drawn_specifications_is_right_or_open() {
    let judge = |simulate| prediction::judge(1, 20, until(), simulate);
    let (forms, all) = (judge(false), judge(true));
    let [right, wrong, open] = forms.counts();
    assert!(
        wrong == 0 && right >= 5 && right + open == 20,
        "{}{}",
        forms.lines(),
        forms.table()
    );
    let [right, wrong, open] = all.counts();
    assert!(
        wrong == 0 && right >= 19 && open <= 1,
        "{}{}",
        all.lines(),
        all.table()
    );
}
