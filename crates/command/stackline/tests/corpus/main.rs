//! The quick part of the labelled corpus: simulated runs with one planted cause each are diagnosed by name, healthy ones are
//! called healthy. All of it: `cargo bench -p stackline --bench corpus`.

mod cases;
mod runner;

use cases::Case;
use std::path::Path;

/// Every kind that the simulated world can plant, the first case of each, and healthy ones.
fn quick() -> Vec<Case> {
    let mut chosen: Vec<Case> = Vec::new();
    for case in cases::all(0)
        .into_iter()
        .filter(|case| case.world == "simulated")
    {
        let same = chosen
            .iter()
            .filter(|other| other.label == case.label)
            .count();
        if same < if case.label == "healthy" { 4 } else { 1 } {
            chosen.push(case);
        }
    }
    chosen
}

#[test]
fn runs_are_diagnosed_as_they_were_planted() {
    let directory = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_stackline"));
    let (mut wrong, mut proved) = (Vec::new(), 0);
    let quick = quick();
    for (at, case) in quick.iter().enumerate() {
        let verdict = runner::verdict(program, &directory.path().join(at.to_string()), case);
        let verdict =
            verdict.unwrap_or_else(|error| panic!("{}: {error}\n{}", case.name, case.text));
        proved += usize::from(verdict.events);
        if verdict.kind != case.label || case.label == "healthy" && verdict.findings != 1 {
            let (kind, (share, sure)) = (&verdict.kind, verdict.figures);
            wrong.push(format!(
                "{}: {kind} ({share:.2}, {sure:.2}) instead of {}: {}",
                case.name, case.label, verdict.sentence
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        proved > quick.len() / 3,
        "{proved} of {} first findings name events",
        quick.len()
    );
}

#[test]
fn the_corpus_is_as_large_as_it_claims() {
    let all = cases::all(0);
    let healthy = all.iter().filter(|case| case.label == "healthy").count();
    assert!(
        healthy >= 10 && all.len() - healthy >= 40,
        "{healthy} of {}",
        all.len()
    );
    assert!(all.iter().filter(|case| case.held).count() >= 15);
}
