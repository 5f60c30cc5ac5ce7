//! `stackline probe`: makes the measurements of a specification again and again, keeps what they yield as a series, and reports it:
//! alerts, metrics, traces.

mod alert_reports;
mod probing;
mod series_commands;
mod telemetry;
mod ticks;

use crate::checked_plan::{Specification as _, mistakes_shown, source_of};
use crate::exit::{Blame, Error, Exit, Result, already_shown};
use crate::flags::{ProbeCommand, ProbeFlags};
use crate::interrupt::act_on_ctrl_c;
use crate::output;
use alert_reports::AlertReports;
use probing::{MadeProbe, ProbeStop, Prober, remove_left};
use stackline_analyze::alerts::{AlertChange, AlertCondition, AlertRule, AlertStates, AlertedRow};
use stackline_core::plan::Plan;
use stackline_exchange::probe_metrics::ProbeTroubles;
use stackline_report::probes::{ProbeTotals, alert_line, probe_json, probe_lines};
use stackline_runs::probe_series::{
    ProbeRetention, ProbeSeriesWriter, check_series_name, kept_series, series_root,
};
use stackline_spec::AlertTextCondition;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use telemetry::Telemetry;
use ticks::{ProbeTick, millis, next_tick, now_ms};

/// Carries out the command, or its subcommand.
pub(crate) fn probe(flags: &ProbeFlags) -> Result {
    match &flags.command {
        None => probe_specification(flags),
        Some(ProbeCommand::List(list)) => series_commands::list(list),
        Some(ProbeCommand::Show(show)) => series_commands::show(show),
        Some(ProbeCommand::Remove(remove)) => series_commands::remove(remove),
    }
}

fn probe_specification(flags: &ProbeFlags) -> Result {
    let source = source_of(&flags.text)?;
    let (plan, assumed) = source.work(&flags.text)?;
    let rules = flags.alert.iter().map(|text| rule(text));
    let rules = rules.collect::<Result<Vec<AlertRule>>>()?;
    without_events(flags, &rules)?;
    let name = flags
        .name
        .clone()
        .unwrap_or_else(|| series_name(&source.stem()));
    check_series_name(&name)?;
    let retention = ProbeRetention {
        keep: flags.keep,
        most_bytes: flags.most_size,
    };
    let series = ProbeSeriesWriter::open(&series_root(), &name, retention, flags.sharing.access())?;
    let text = source.own_text();
    // Another probe of the same begins on a full disk too.
    if kept_series(&series_root(), &name)?.specification() != Some(text.clone()) {
        series.write_specification(&text)?;
    }
    remove_left(series.path());
    if flags.trace {
        // Diagnosis needs the memory that sorting events returns to the system.
        stackline_live::keep_large_blocks_apart();
    }
    let telemetry = Telemetry::start(flags, &name)?;
    let reports = AlertReports::start(flags, &name)?;
    for note in assumed {
        output::say(&format_args!("note: {note}"));
    }
    let (stop, woken) = stop_on_ctrl_c()?;
    let session = ProbeSession {
        flags,
        plan: &plan,
        series,
        states: AlertStates::new(rules, flags.every),
        telemetry,
        reports,
        totals: ProbeTotals::default(),
        troubles: ProbeTroubles::default(),
        is_disk_trouble: false,
        woken,
    };
    session.run(&stop)
}

/// The name of a series for a specification whose name may have any characters.
fn series_name(stem: &str) -> String {
    let plain = |c: char| match c {
        c if c.is_ascii_alphanumeric() || "._-".contains(c) => c,
        _ => '-',
    };
    let name: String = stem.chars().map(plain).take(60).collect();
    match name.trim_matches(['-', '.']) {
        "" => "probe".to_owned(),
        name => name.to_owned(),
    }
}

/// An alert of the command line.
fn rule(text: &str) -> Result<AlertRule> {
    let read = stackline_spec::alert_text(text)
        .map_err(|mistakes| mistakes_shown(&mistakes, "--alert", text))?;
    Ok(AlertRule {
        text: read.text,
        condition: match read.condition {
            AlertTextCondition::Expected(expected) => AlertCondition::Expected(expected),
            AlertTextCondition::Failures(bound) => AlertCondition::Failures(bound),
        },
        hold: read.hold,
    })
}

/// Refuses alerts of findings without the events that show them.
fn without_events(flags: &ProbeFlags, rules: &[AlertRule]) -> Result<()> {
    match rules.iter().find(|rule| rule.condition.needs_findings()) {
        Some(rule) if !flags.trace => {
            let message = format!("the alert `{}` needs the events of each probe", rule.text);
            Err(Error::input(message).hint("add --trace"))
        }
        _ => Ok(()),
    }
}

/// What Ctrl-C and SIGTERM set, and what wakes the wait for the next probe.
fn stop_on_ctrl_c() -> Result<(ProbeStop, Receiver<()>)> {
    let stop = ProbeStop {
        ended: Arc::new(AtomicBool::new(false)),
        signalled: Arc::new(AtomicBool::new(false)),
    };
    let (wake, woken) = channel();
    let flags = stop.clone();
    act_on_ctrl_c(move || {
        flags.signalled.store(true, Ordering::Relaxed);
        flags.ended.store(true, Ordering::Relaxed);
        let _ = wake.send(());
    })?;
    Ok((stop, woken))
}

/// A series while it goes on.
struct ProbeSession<'p> {
    flags: &'p ProbeFlags,
    plan: &'p Plan,
    series: ProbeSeriesWriter,
    states: AlertStates,
    telemetry: Telemetry,
    reports: AlertReports,
    totals: ProbeTotals,
    troubles: ProbeTroubles,
    /// Whether the latest record could not be written.
    is_disk_trouble: bool,
    woken: Receiver<()>,
}

impl ProbeSession<'_> {
    /// Makes probes until the end, then says how it was.
    fn run(mut self, stop: &ProbeStop) -> Result {
        let ended = self.make_probes(stop);
        let is_interrupted = stop.signalled.load(Ordering::Relaxed);
        let lost = [self.telemetry.finish(), self.reports.finish()];
        for said in lost.into_iter().flatten() {
            output::say(&said);
        }
        let path = self.series.path().display();
        output::say(&format_args!("{}; kept in {path}", self.totals.line()));
        let is_open = self.flags.count.is_none() && self.flags.duration.is_none();
        match ended? {
            Exit::Done if is_interrupted && !is_open => Err(already_shown(Blame::Interrupted)),
            exit => Ok(exit),
        }
    }

    fn make_probes(&mut self, stop: &ProbeStop) -> Result {
        let prober = Prober {
            plan: self.plan,
            is_traced: self.flags.trace,
            pushes_spans: self.flags.trace && self.flags.otlp.is_some(),
            directory: self.series.path().to_owned(),
        };
        let began = Instant::now();
        let mut tick = ProbeTick {
            due_ms: now_ms(),
            skipped: 0,
        };
        loop {
            let Some(made) = prober.make(tick, self.totals.probes, stop)? else {
                return Ok(Exit::Done);
            };
            if self.take(&made)? {
                return Ok(Exit::Worse);
            }
            if self
                .flags
                .count
                .is_some_and(|count| self.totals.probes >= count)
            {
                return Ok(Exit::Done);
            }
            tick = next_tick(tick.due_ms, now_ms(), millis(self.flags.every));
            let rest = Duration::from_millis(tick.due_ms.saturating_sub(now_ms()));
            let left = |most: Duration| most.saturating_sub(began.elapsed());
            let is_last = self.flags.duration.is_some_and(|most| left(most) < rest);
            let ends = self.wait_until(tick.due_ms, self.flags.duration.map(left));
            if ends || is_last || stop.signalled.load(Ordering::Relaxed) {
                return Ok(Exit::Done);
            }
        }
    }

    /// Waits until a moment, for at most `most`. Returns whether a signal came. The clock of the day may be set meanwhile, so it is read
    /// again after each interval.
    fn wait_until(&self, due_ms: u64, most: Option<Duration>) -> bool {
        let end = most.map(|most| Instant::now() + most);
        loop {
            let mut rest = Duration::from_millis(due_ms.saturating_sub(now_ms()));
            if rest > self.flags.every {
                // The clock was set back: the next multiple is nearer.
                rest = self.flags.every;
            }
            let rest_of_all = end.map(|end| end.saturating_duration_since(Instant::now()));
            let wait = rest_of_all.map_or(rest, |all| all.min(rest));
            if wait.is_zero() {
                return false;
            }
            match self.woken.recv_timeout(wait) {
                Err(RecvTimeoutError::Timeout) if rest == self.flags.every => return false,
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return true,
            }
        }
    }

    /// Keeps, prints and reports what a probe yielded. Returns whether an alert ends the command.
    fn take(&mut self, made: &MadeProbe) -> Result<bool> {
        self.totals.probes += 1;
        self.totals.failed += u64::from(made.record.has_failed());
        self.totals.skipped += made.record.skipped;
        let is_written = self.keep(made);
        let rows = made.rows.iter().zip(&made.record.measurements);
        let rows: Vec<AlertedRow<'_>> = rows
            .map(|((name, summary), measured)| AlertedRow {
                name,
                has_failed: measured.failure.is_some(),
                summary,
                findings: measured.findings.as_ref(),
            })
            .collect();
        let changes = self.states.observe(made.record.at_ms, &rows);
        match self.flags.text.json {
            true => output::json(&probe_json(&made.record, is_written, &changes), false)?,
            false => output::print(&probe_lines(&made.record))?,
        }
        for (alert, why) in self.states.without_figures() {
            output::say(&format_args!(
                "note: the alert `{alert}` has no figure: {why}"
            ));
        }
        for change in &changes {
            output::say(&alert_line(change));
            self.reports.report(change);
        }
        self.troubles.unwritten = self.totals.unwritten;
        self.troubles.unreported = self.reports.lost();
        self.telemetry.take(made, &self.states, self.troubles);
        for news in [self.telemetry.take_news(), self.reports.take_news()] {
            news.into_iter()
                .for_each(|news| output::say(&format_args!("note: {news}")));
        }
        let fires = |change: &AlertChange| change.is_firing;
        Ok(self.flags.exit_on_alert && changes.iter().any(fires))
    }

    /// Writes the record. A full disk ends nothing: the record is counted as lost, and the next one is tried.
    fn keep(&mut self, made: &MadeProbe) -> bool {
        let written = self.series.append(&made.record);
        let is_trouble = written.is_err();
        match written {
            Err(error) => {
                self.totals.unwritten += 1;
                if !self.is_disk_trouble {
                    output::say(&format_args!(
                        "note: {error}; probes go on, and records that are lost are counted"
                    ));
                }
            }
            Ok(()) if self.is_disk_trouble => output::say(&"note: records are written again"),
            Ok(()) => {}
        }
        self.is_disk_trouble = is_trouble;
        !is_trouble
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_specification_has_a_name_that_a_series_can_have() {
        for (stem, name) in [
            ("wan", "wan"),
            ("my wan/of ü", "my-wan-of"),
            ("../..", "probe"),
            ("", "probe"),
        ] {
            assert_eq!(series_name(stem), name);
            assert!(check_series_name(name).is_ok());
        }
    }
}
