//! The labelled corpus: every case is run and diagnosed; how many are right at rank one, which healthy ones were alarmed about,
//! what was taken for what. Exits with 1 when fewer than 95 % are right or a healthy run was alarmed about.
//!
//! `cargo bench -p stackline --bench corpus [-- WORD...] [--list] [--keep DIR] [--seeds N]`; words choose cases by name,
//! label or world, N is added to all seeds.

#[path = "../tests/corpus/cases.rs"]
mod cases;
#[path = "../tests/corpus/runner.rs"]
mod runner;

use cases::Case;
use runner::Verdict;
use stackline_testing::bench_arguments::BenchArguments;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What is asked for.
const RIGHT: f64 = 0.95;

struct Options {
    words: Vec<String>,
    list: bool,
    seeds: u64,
    keep: Option<PathBuf>,
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(reason) => {
            eprintln!("error: {reason}");
            return ExitCode::from(2);
        }
    };
    let chosen: Vec<Case> = cases::all(options.seeds)
        .into_iter()
        .filter(|case| wanted(case, &options.words))
        .collect();
    if options.list {
        chosen.iter().for_each(|case| {
            println!(
                "{} ({}, {})\n{}",
                case.name, case.label, case.world, case.text
            )
        });
        return ExitCode::SUCCESS;
    }
    let Ok(scratch) = tempfile::tempdir() else {
        eprintln!("error: no room is left for temporary files");
        return ExitCode::FAILURE;
    };
    let directory = options.keep.unwrap_or_else(|| scratch.path().to_owned());
    let program = Path::new(env!("CARGO_BIN_EXE_stackline"));
    let mut judged = Vec::new();
    println!(
        "| case | world | planted | rank one | share | sure | |\n| --- | --- | --- | --- | --- | --- | --- |"
    );
    for (at, case) in chosen.iter().enumerate() {
        let verdict = runner::verdict(program, &directory.join(at.to_string()), case);
        println!("{}", row(case, &verdict));
        judged.push((case, verdict));
    }
    summary(&judged)
}

fn options() -> Result<Options, String> {
    let mut arguments = BenchArguments::read();
    Ok(Options {
        list: arguments.take_flag("--list"),
        seeds: arguments.take_number("--seeds", 0)?,
        keep: arguments.take_word("--keep")?.map(PathBuf::from),
        words: arguments.into_words()?,
    })
}

fn wanted(case: &Case, words: &[String]) -> bool {
    words.iter().all(|word| {
        [&case.name, &case.label, &case.world]
            .iter()
            .any(|text| text.contains(word.as_str()))
    })
}

fn right(case: &Case, verdict: &Result<Verdict, String>) -> bool {
    verdict.as_ref().is_ok_and(|verdict| {
        verdict.kind == case.label && (case.label != "healthy" || verdict.findings == 1)
    })
}

fn row(case: &Case, verdict: &Result<Verdict, String>) -> String {
    let name = if case.held {
        format!("{} (held out)", case.name)
    } else {
        case.name.clone()
    };
    let (kind, figures) = match verdict {
        Ok(verdict) => {
            let (share, sure) = verdict.figures;
            (
                verdict.kind.clone(),
                format!("{:.0} % | {:.0} %", 100.0 * share, 100.0 * sure),
            )
        }
        Err(error) => (
            format!("failed: {}", error.lines().next().unwrap_or_default()),
            "- | -".into(),
        ),
    };
    let mark = if right(case, verdict) { "" } else { "wrong" };
    format!(
        "| {name} | {} | {} | {kind} | {figures} | {mark} |",
        case.world, case.label
    )
}

fn summary(judged: &[(&Case, Result<Verdict, String>)]) -> ExitCode {
    let mut confusion: BTreeMap<(&str, String), u32> = BTreeMap::new();
    for (case, verdict) in judged {
        let kind = verdict
            .as_ref()
            .map_or_else(|_| "failed".into(), |verdict| verdict.kind.clone());
        *confusion.entry((&case.label, kind)).or_default() += 1;
        if let (Ok(verdict), false) = (verdict, right(case, verdict)) {
            eprintln!(
                "{}: {} instead of {}: {}",
                case.name, verdict.kind, case.label, verdict.sentence
            );
        }
        if let Err(error) = verdict {
            eprintln!("{}: {error}", case.name);
        }
    }
    println!("\n| planted | rank one | cases |\n| --- | --- | --- |");
    confusion
        .iter()
        .for_each(|((label, kind), count)| println!("| {label} | {kind} | {count} |"));
    println!();
    let part = |what: &str, chosen: &dyn Fn(&Case) -> bool| -> (u32, u32) {
        let of = judged.iter().filter(|(case, _)| chosen(case));
        let (all, good) = of.fold((0, 0), |(all, good), (case, verdict)| {
            (all + 1, good + u32::from(right(case, verdict)))
        });
        println!(
            "{what}: {good} of {all} right at rank one ({:.1} %)",
            100.0 * f64::from(good) / f64::from(all.max(1))
        );
        (all, good)
    };
    let ill = part("planted causes", &|case| case.label != "healthy");
    part("of these held out", &|case| {
        case.label != "healthy" && case.held
    });
    part("of these simulated", &|case| {
        case.label != "healthy" && case.world == "simulated"
    });
    part("of these emulated", &|case| {
        case.label != "healthy" && case.world == "emulated"
    });
    let well = part("healthy", &|case| case.label == "healthy");
    let shown = judged
        .iter()
        .filter(|(_, verdict)| verdict.as_ref().is_ok_and(|verdict| verdict.events))
        .count();
    println!(
        "first findings that name events: {shown} of {}",
        judged.len()
    );
    if f64::from(ill.1) >= RIGHT * f64::from(ill.0) && well.0 == well.1 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
