//! Scratch.
use stackline_analyze::loaded_run::{LoadedRun, MOST_EVENTS};
use stackline_core::plan::World;
use stackline_runner::spec_source::SpecSource;
use stackline_runs::{RunDirectory, RunFileAccess};
use stackline_spec::Overrides;
use stackline_whatif::advice;
use stackline_whatif::unattended_runs::{UnattendedOptions, make_unattended_runs};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let never = Arc::new(AtomicBool::new(false));
    for file in &args {
        println!("=== {file}");
        if std::path::Path::new(file).is_dir() {
            show(std::path::Path::new(file));
            continue;
        }
        let text = std::fs::read_to_string(file).unwrap();
        let plan = match SpecSource::made("x", text).plan_in(World::Simulated, Overrides::default())
        {
            Ok(plan) => plan,
            Err(error) => {
                println!("ERROR {error:?}");
                continue;
            }
        };
        let dir = tempfile::tempdir().unwrap();
        let directory =
            RunDirectory::create(dir.path(), "x", SystemTime::now(), RunFileAccess::default())
                .unwrap();
        let path = directory.path().to_owned();
        let options = UnattendedOptions {
            trace: true,
            capture: Vec::new(),
            ended: &never,
            signalled: &never,
            warn: |w| println!("{w}"),
        };
        let records = make_unattended_runs(&plan, directory, options).unwrap();
        let elapsed: f64 = records
            .iter()
            .filter(|r| !r.warmup)
            .map(|r| r.elapsed_ns as f64 / 1e9)
            .sum::<f64>()
            / records.len() as f64;
        println!("elapsed {elapsed:.4} s");
        if std::env::var_os("SPENT").is_some() {
            for r in records.iter().take(2) {
                for (n, s) in [("init", &r.initiator), ("resp", &r.responder)] {
                    if let Some((a, b)) = s.transport {
                        println!(
                            "{n} busy {:?} rwnd {:?} snd {:?} spent {:?} rtt {} again {}",
                            b.busy_s.zip(a.busy_s).map(|(b, a)| b - a),
                            b.receive_window_limited_s,
                            b.send_buffer_limited_s,
                            b.spent,
                            b.rtt_s,
                            b.retransmits - a.retransmits
                        );
                    } else {
                        println!("{n} no transport");
                    }
                }
                println!(
                    "calls n {} sum {} connects n {} sum {}",
                    r.calls.n(),
                    r.calls.sum as f64 / 1e9,
                    r.connects.n(),
                    r.connects.sum as f64 / 1e9
                );
            }
        }
        show(&path);
    }
}

fn show(path: &std::path::Path) {
    let loaded = LoadedRun::open(path, MOST_EVENTS).unwrap();
    let mut sum = 0.0;
    for f in advice::findings(&loaded, Duration::from_secs(30)) {
        sum += f.share;
        println!(
            "- {} {:.0}% sure {:.0}%: {}",
            f.kind,
            100.0 * f.share,
            100.0 * f.confidence,
            f.sentence
        );
        for e in f.evidence.iter().filter(|e| e.what.starts_with("no help")) {
            println!("      see {}", e.what);
        }
        for t in &f.tries {
            if t.change.is_some() {
                println!("      try {}", t.text());
            }
        }
    }
    println!("  sum {:.0}%", 100.0 * sum);
}
