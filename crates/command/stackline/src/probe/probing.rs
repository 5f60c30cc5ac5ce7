//! One probe: all measurements of the specification, as rows; what failed is a result too.

use super::ticks::{ProbeTick, millis};
use crate::clean;
use crate::exit::{Blame, Error, Result};
use crate::output;
use stackline_analyze::Summary;
use stackline_analyze::findings::Finding;
use stackline_analyze::loaded_run::{LoadedRun, MOST_EVENTS};
use stackline_analyze::probed::{probed_measurement, probed_rows};
use stackline_core::plan::{Plan, World};
use stackline_core::run_record::RunRecord;
use stackline_core::run_schedule::RunOrder;
use stackline_exchange::otlp;
use stackline_live::launch::Launcher;
use stackline_runner::{AfterFailure, RunContext, RunWriter, RunsOutcome, Traces, make_runs};
use stackline_runs::probe_series::ProbeRecord;
use stackline_runs::{RunDirectory, RunFileAccess};
use stackline_whatif::unattended_runs::QuietProgress;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

/// Most units of a probe whose spans are pushed: the slowest.
const MOST_TRACES: usize = 100;

/// What the directories of events in a series are called, behind their time.
const TRACED: &str = "traced";

/// What ends a probe.
#[derive(Clone, Debug)]
pub(super) struct ProbeStop {
    /// Ends the runs; worlds may set it too.
    pub(super) ended: Arc<AtomicBool>,
    /// The user asked to stop.
    pub(super) signalled: Arc<AtomicBool>,
}

/// Makes probes of one plan.
pub(super) struct Prober<'p> {
    pub(super) plan: &'p Plan,
    pub(super) is_traced: bool,
    pub(super) pushes_spans: bool,
    /// Where the events of a probe are until it is diagnosed.
    pub(super) directory: PathBuf,
}

/// A probe that was made.
pub(super) struct MadeProbe {
    pub(super) record: ProbeRecord,
    /// Its rows with their names, in the order of the record.
    pub(super) rows: Vec<(String, Summary)>,
    /// Its spans as protobuf, where they are pushed.
    pub(super) spans: Option<Vec<u8>>,
}

/// What the runs of a probe yielded.
#[derive(Default)]
struct ProbeRuns {
    records: Vec<RunRecord>,
    outcome: RunsOutcome,
    /// Findings and spans, of a traced probe.
    events: Option<ProbeEvents>,
}

/// What the events of a probe show.
#[derive(Default)]
struct ProbeEvents {
    findings: Vec<Finding>,
    spans: Option<Vec<u8>>,
}

impl Prober<'_> {
    /// Makes a probe, the `index`th of this process. `None` if the user asked to stop meanwhile.
    ///
    /// # Errors
    /// If the specification cannot be carried out at all.
    pub(super) fn make(
        &self,
        tick: ProbeTick,
        index: u64,
        stop: &ProbeStop,
    ) -> Result<Option<MadeProbe>> {
        let began = Instant::now();
        let plan = self.seeded(index);
        let runs = self.runs(&plan, stop)?;
        if stop.signalled.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // The emulated world sets it when its path has been taken down.
        stop.ended.store(false, Ordering::Relaxed);
        let RunsOutcome {
            failed, given_up, ..
        } = runs.outcome;
        if failed.is_some() || !given_up.is_empty() {
            // A killed agent leaves its settings in the kernel.
            clean::sweep();
        }
        let mut failures: BTreeMap<usize, String> = BTreeMap::new();
        for (measurement, error) in given_up {
            failures.entry(measurement).or_insert(error.message);
        }
        let summaries = stackline_analyze::summarise(&plan, &runs.records);
        if let Some(error) = failed {
            if error.blame == Blame::Input {
                return Err(error);
            }
            // It ended all measurements that were not made yet.
            for summary in summaries.iter().filter(|summary| summary.runs == 0) {
                let failure = failures.entry(summary.measurement);
                failure.or_insert_with(|| error.message.clone());
            }
        }
        let (findings, spans) = match runs.events {
            Some(events) => (Some(events.findings), events.spans),
            None => (None, None),
        };
        let rows: Vec<(String, Summary)> = probed_rows(&summaries)
            .into_iter()
            .map(|(name, summary)| (name, summary.clone()))
            .collect();
        let measured = rows.iter().map(|(name, summary)| {
            probed_measurement(name, summary, &failures, findings.as_deref())
        });
        let record = ProbeRecord {
            at_ms: tick.due_ms,
            took_ms: millis(began.elapsed()),
            skipped: tick.skipped,
            measurements: measured.collect(),
        };
        Ok(Some(MadeProbe {
            record,
            rows,
            spans,
        }))
    }

    /// The plan with the seed of a probe: simulated probes are drawn anew.
    fn seeded(&self, index: u64) -> Plan {
        let mut plan = self.plan.clone();
        let is_simulated = |world: World| world == World::Simulated;
        if plan.measurements.iter().any(|one| is_simulated(one.world)) {
            plan.seed = plan.seed.wrapping_add(index);
        }
        plan
    }

    fn runs(&self, plan: &Plan, stop: &ProbeStop) -> Result<ProbeRuns> {
        let directory = match self.is_traced {
            true => traced_directory(&self.directory, plan),
            false => None,
        };
        let program = std::env::current_exe().map_err(|cause| {
            Error::environment(format!("cannot find the path of this program: {cause}"))
        })?;
        let path = directory
            .as_ref()
            .map(|directory| directory.path().to_owned());
        let context = RunContext {
            plan,
            launcher: Launcher::new(program, None),
            interrupted: &stop.ended,
            signalled: &stop.signalled,
            traces: Traces {
                directory: path.clone().unwrap_or_default(),
                trace: path.is_some(),
                capture: Vec::new(),
            },
            after_failure: AfterFailure::GoOn,
            order: RunOrder::Declared,
            twice: false,
        };
        let progress = Box::new(QuietProgress(|words| output::say(&words)));
        let enough = stackline_analyze::interval_reached;
        let mut writer = match directory {
            Some(directory) => RunWriter::new(plan, directory, progress, enough),
            None => RunWriter::in_memory(plan, progress, enough),
        };
        let outcome = make_runs(&context, &mut writer);
        let is_whole = outcome.failed.is_none() && outcome.given_up.is_empty();
        // What could not be kept is the events' trouble alone: the records are here.
        let (records, _) = writer.finish(is_whole, None);
        let is_over = stop.signalled.load(Ordering::Relaxed);
        let events = path.filter(|_| !is_over).map(|path| self.events(&path));
        Ok(ProbeRuns {
            records,
            outcome,
            events,
        })
    }

    /// Reads what the events of a probe show, and removes them.
    fn events(&self, path: &Path) -> ProbeEvents {
        let events = match LoadedRun::whatever(path, MOST_EVENTS) {
            Ok(loaded) => ProbeEvents {
                spans: self.pushes_spans.then(|| {
                    let spans = otlp::slowest_spans(&loaded.lifelines, &loaded.events, MOST_TRACES);
                    otlp::protobuf(&spans)
                }),
                findings: loaded.findings(),
            },
            Err(error) => {
                output::say(&format_args!("note: this probe is not diagnosed: {error}"));
                ProbeEvents::default()
            }
        };
        let _ = fs::remove_dir_all(path);
        events
    }
}

/// Removes the events of probes that a killed process left in a series.
pub(super) fn remove_left(series: &Path) {
    for entry in fs::read_dir(series).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().contains(TRACED) && entry.path().is_dir() {
            // What cannot be removed does no harm.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A directory for the events of a probe. On a full disk there is none, and the probe is made without events.
fn traced_directory(series: &Path, plan: &Plan) -> Option<RunDirectory> {
    let access = RunFileAccess::Private;
    let made = RunDirectory::create(series, TRACED, SystemTime::now(), access);
    let made = made.and_then(|mut directory| {
        directory.write_plan(plan)?;
        directory.write_specification("")?;
        Ok(directory)
    });
    made.map_err(|error| output::say(&format_args!("note: this probe is not traced: {error}")))
        .ok()
}
