//! Runs of a plan into a run directory of their own, and what was seen of them.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test takes what it needs; what it cannot do fails it"
)]

use stackline_core::plan::Plan;
use stackline_core::run_record::RunRecord;
use stackline_core::run_schedule::{RunOrder, ScheduledRun};
use stackline_live::launch::Launcher;
use stackline_runner::spec_source::SpecSource;
use stackline_runner::{
    AfterFailure, RunContext, RunProgress, RunWriter, RunsBefore, RunsOutcome, StopRule, Traces,
    make_runs,
};
use stackline_runs::{RunDirectory, RunFileAccess, StoredRun};
use stackline_spec::Overrides;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;
use tempfile::TempDir;

pub(crate) fn plan_of(text: &str) -> Plan {
    SpecSource::made("test", text.into())
        .plan(&Overrides::default())
        .unwrap()
}

/// What happened, in order: each run as it began, and what was said.
pub(crate) type Journal = Rc<RefCell<Vec<String>>>;

pub(crate) struct Watcher {
    journal: Journal,
    /// Raised when so many runs that count are done.
    interrupt: Option<(usize, Arc<AtomicBool>)>,
}

impl RunProgress for Watcher {
    fn begin(&mut self, run: &ScheduledRun<'_>) {
        let kind = if run.counted { "run" } else { "warmup" };
        let line = format!("{}: {kind} {}", run.index, run.run);
        self.journal.borrow_mut().push(line);
    }

    fn advance(&mut self) {
        if let Some((left, interrupted)) = &mut self.interrupt {
            *left -= 1;
            interrupted.fetch_or(*left == 0, Ordering::Relaxed);
        }
    }

    fn warn(&mut self, words: &str) {
        self.journal.borrow_mut().push(words.into());
    }

    fn finish(&mut self) {
        self.journal.borrow_mut().push("finished".into());
    }
}

/// Runs of a plan into a run directory, and what became of them.
pub(crate) struct Made {
    pub(crate) journal: Vec<String>,
    pub(crate) outcome: RunsOutcome,
    pub(crate) records: Vec<RunRecord>,
    pub(crate) path: PathBuf,
    _root: TempDir,
}

impl Made {
    /// As it is read back.
    pub(crate) fn stored(&self) -> StoredRun {
        StoredRun::open(&self.path).unwrap()
    }
}

pub(crate) struct Making {
    pub(crate) enough: StopRule,
    pub(crate) interrupt_after: Option<usize>,
    pub(crate) after_failure: AfterFailure,
    pub(crate) order: RunOrder,
    /// What an earlier process made.
    pub(crate) before: Option<RunsBefore>,
    pub(crate) twice: bool,
    pub(crate) trace: bool,
}

impl Default for Making {
    fn default() -> Self {
        Self {
            enough: |_, _| panic!("nothing is repeated until an interval"),
            interrupt_after: None,
            after_failure: AfterFailure::Stop,
            order: RunOrder::Declared,
            before: None,
            twice: false,
            trace: false,
        }
    }
}

/// A writer into a new directory, and what it will have journalled.
pub(crate) fn writer<'p>(
    plan: &'p Plan,
    root: &TempDir,
    making: &Making,
    interrupted: &Arc<AtomicBool>,
) -> (RunWriter<'p>, Journal) {
    let journal = Journal::default();
    let mut directory = RunDirectory::create(
        root.path(),
        "test",
        SystemTime::UNIX_EPOCH,
        RunFileAccess::new(root.path()),
    )
    .unwrap();
    directory.write_plan(plan).unwrap();
    let watcher = Watcher {
        journal: Rc::clone(&journal),
        interrupt: making.interrupt_after.map(|n| (n, Arc::clone(interrupted))),
    };
    let writer = RunWriter::new(plan, directory, Box::new(watcher), making.enough);
    (writer, journal)
}

pub(crate) fn make(plan: &Plan, making: &Making) -> Made {
    let root = tempfile::tempdir().unwrap();
    let interrupted = Arc::new(AtomicBool::new(false));
    let (mut writer, journal) = writer(plan, &root, making, &interrupted);
    if let Some(before) = &making.before {
        writer = writer.going_on(before.clone());
    }
    let path = writer.path().to_owned();
    let context = RunContext {
        plan,
        launcher: Launcher::new("/there/is/no/such/program".into(), None),
        interrupted: &interrupted,
        signalled: &Arc::new(AtomicBool::new(false)),
        traces: Traces {
            directory: path.clone(),
            trace: making.trace,
            ..Traces::default()
        },
        after_failure: making.after_failure,
        order: making.order,
        twice: making.twice,
    };
    let outcome = make_runs(&context, &mut writer);
    let reason = outcome.failed.as_ref().map(|error| error.message.clone());
    let (records, unkept) = writer.finish(reason.is_none(), reason.as_deref());
    assert!(unkept.is_none(), "{unkept:?}");
    let journal = journal.take();
    Made {
        journal,
        outcome,
        records,
        path,
        _root: root,
    }
}
