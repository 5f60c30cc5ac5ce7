//! `stackline ab`: makes the runs of two specifications in pairs until it is known whether the second is better, the same or worse.

use crate::checked_plan::{SpecSource, Specification as _, source_of};
use crate::clean;
use crate::exit::{Blame, Error, Result};
use crate::flags::{AbFlags, RunFlags, SpecTextFlags};
use crate::interrupt::listen_for_ctrl_c;
use crate::output;
use crate::progress::Bar;
use crate::run;
use crate::verdicts::{exit_of_gate, new_report, write_reports};
use stackline_analyze::{
    RegressionOutcome, RegressionRule, RunMetric, interval_reached, is_decided, judge_pairs,
    summarise,
};
use stackline_core::plan::{Plan, StoppingCriterion};
use stackline_core::run_record::RunRecord;
use stackline_core::run_schedule::ScheduledRun;
use stackline_report::{PairedOutcome, paired_lines, paired_runs, paired_runs_json};
use stackline_runner::{PairedSide, PairsOutcome, RunProgress, RunWriter, make_pairs};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// One of the two specifications.
struct AbSide {
    flags: RunFlags,
    source: SpecSource,
    plan: Plan,
    /// Set to end its runs; its worlds may set it too.
    interrupted: Arc<AtomicBool>,
}

impl AbSide {
    /// Checks the specification. `which` ends the name of its kept run.
    fn new(flags: &AbFlags, text: SpecTextFlags, which: &str) -> Result<Self> {
        let source = source_of(&text)?;
        let (plan, assumed) = source.work(&text)?;
        assumed.iter().for_each(output::say);
        let name = flags.name.clone().unwrap_or_else(|| source.stem());
        let flags = RunFlags {
            text,
            files: flags.files.clone(),
            name: Some(format!("{name}-{which}")),
            sharing: flags.sharing,
            ..RunFlags::default()
        };
        Ok(Self {
            flags,
            source,
            plan,
            interrupted: Arc::default(),
        })
    }

    fn writer(&self, progress: Box<dyn RunProgress>) -> Result<RunWriter<'_>> {
        let directory = run::open(&self.flags, &self.source, &self.plan)?;
        Ok(RunWriter::new(
            &self.plan,
            directory,
            progress,
            interval_reached,
        ))
    }
}

/// Makes pairs of runs and judges B by A.
pub(crate) fn ab(flags: &AbFlags) -> Result {
    let [a, b] = flags.sides()?;
    let rule = flags.rule.rule()?;
    let (a, b) = (AbSide::new(flags, a, "a")?, AbSide::new(flags, b, "b")?);
    let signalled = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&a.interrupted, &b.interrupted, &signalled])?;
    let bar = Bar::new(&with_pairs(&a.plan, flags.most), 1);
    let mut writers = [
        a.writer(Box::new(bar))?,
        b.writer(Box::new(UnshownProgress))?,
    ];
    let runs = writers
        .each_ref()
        .map(|one| one.path().display().to_string());
    let outcome = pairs_of(flags, rule, [&a, &b], &mut writers, &signalled);
    if outcome.failed.is_some() {
        // A killed agent leaves its settings in the kernel.
        clean::sweep();
    }
    let refused = |fault: &Error| matches!(fault.blame, Blame::Input | Blame::Environment);
    if writers.iter().all(RunWriter::is_empty) && outcome.failed.as_ref().is_some_and(refused) {
        writers.into_iter().for_each(RunWriter::remove);
        return Err(outcome.failed.unwrap_or_else(Error::interrupted));
    }
    let reason = outcome.failed.as_ref().map(|fault| fault.message.clone());
    let finish = |writer: RunWriter<'_>| writer.finish(reason.is_none(), reason.as_deref());
    let [(records_a, unkept_a), (records_b, unkept_b)] = writers.map(finish);
    outcome.notes.iter().for_each(output::say);
    let judged = judge(
        [&a.plan, &b.plan],
        outcome.pairs,
        &records_a,
        &records_b,
        rule,
    );
    let paired = PairedOutcome {
        outcome: judged,
        pairs: outcome.pairs,
        most: flags.most,
        runs,
    };
    let failed = outcome.failed.or(unkept_a.or(unkept_b).map(Error::from));
    if outcome.pairs > 0 && paired.outcome.figures.is_empty() {
        let message = "A and B have no measurement in common";
        return Err(failed.unwrap_or_else(|| {
            Error::input(message).hint(
                "measurements are matched by their text, part and stack, else by application type",
            )
        }));
    }
    if outcome.pairs > 0 {
        show(flags, &paired)?;
    }
    failed.map_or_else(|| Ok(exit_of_gate(paired.outcome.verdict)), Err)
}

/// Makes the pairs until they decide.
fn pairs_of<'s>(
    flags: &AbFlags,
    rule: RegressionRule,
    sides: [&'s AbSide; 2],
    writers: &mut [RunWriter<'s>; 2],
    signalled: &'s Arc<AtomicBool>,
) -> PairsOutcome {
    let [first, second] = writers;
    let [a, b] = sides;
    let context = |side: &'s AbSide, writer: &RunWriter<'_>| {
        let (plan, interrupted) = (&side.plan, &side.interrupted);
        run::context(&side.flags, plan, interrupted, signalled, writer.path())
    };
    let contexts = context(a, first).and_then(|one| Ok([one, context(b, second)?]));
    let contexts = match contexts {
        Ok(contexts) => contexts,
        Err(fault) => {
            return PairsOutcome {
                failed: Some(fault),
                ..PairsOutcome::default()
            };
        }
    };
    let [context, other] = &contexts;
    let sides = [
        PairedSide {
            context,
            writer: first,
        },
        PairedSide {
            context: other,
            writer: second,
        },
    ];
    make_pairs(sides, a.plan.seed, flags.most, |first, second| {
        let outcome = judge([&a.plan, &b.plan], u32::MAX, first, second, rule);
        outcome.figures.is_empty() || is_decided(&outcome)
    })
}

/// Judges the first pairs, of which there are so many.
fn judge(
    plans: [&Plan; 2],
    pairs: u32,
    first: &[RunRecord],
    second: &[RunRecord],
    rule: RegressionRule,
) -> RegressionOutcome {
    // Of a pair that was not finished, one side has a run.
    let whole = |records: &[RunRecord]| -> Vec<RunRecord> {
        let all = records.iter().filter(|record| record.run < pairs);
        all.cloned().collect()
    };
    let base = summarise(plans[0], &whole(first));
    let new = summarise(plans[1], &whole(second));
    judge_pairs(&base, &new, &RunMetric::MAIN, rule)
}

fn show(flags: &AbFlags, paired: &PairedOutcome) -> Result<()> {
    if flags.json {
        output::json(&paired_runs_json(paired), false)?;
    } else {
        let [a, b] = &paired.runs;
        output::print(&format!("{}\nA {a}\nB {b}\n", paired_runs(paired)))?;
    }
    paired_lines(paired).iter().for_each(output::say);
    let mut report = new_report("stackline ab".to_owned());
    report.add_regressions(&paired.outcome);
    write_reports(&flags.reports, &report)
}

/// The plan with as many runs as there may be pairs, for the progress display.
fn with_pairs(plan: &Plan, most: u32) -> Plan {
    let mut plan = plan.clone();
    for measurement in &mut plan.measurements {
        measurement.runs = 1;
        measurement.until = Some(StoppingCriterion {
            share: 0.0,
            at_most: most,
        });
    }
    plan
}

/// The progress of B, which that of A shows.
struct UnshownProgress;

impl RunProgress for UnshownProgress {
    fn begin(&mut self, _scheduled: &ScheduledRun<'_>) {}

    fn advance(&mut self) {}

    fn warn(&mut self, words: &str) {
        output::say(&format_args!("warning: {words}"));
    }

    fn finish(&mut self) {}
}
