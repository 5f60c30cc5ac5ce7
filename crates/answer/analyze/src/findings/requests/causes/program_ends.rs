//! The finding about programs of a trace that ended by themselves: servers before the trace did, the traced program by a crash.

use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, counted};
use crate::findings::input::AnalysisInput;
use crate::findings::kind::FindingKind;

/// Signals with which a program ends because of its own mistake (signal(7)): SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS.
const CRASHES: [i64; 6] = [4, 6, 7, 8, 11, 31];
/// Signals by which somebody ends a program: SIGHUP, SIGINT, SIGTERM.
const ENDED_BY_USER: [i64; 3] = [1, 2, 15];
/// SIGKILL, which the kernel sends where memory runs out.
const KILL: i64 = 9;

pub(crate) fn program_ended(kind: &FindingKind, log: &FindingEventLog<'_>) -> Option<Finding> {
    let of_row = |row: &u32| EarlyProgramEnd::find(log, *row);
    let ends: Vec<EarlyProgramEnd<'_>> = log
        .rows("PROGRAM_END")
        .iter()
        .map(of_row)
        .filter(EarlyProgramEnd::is_a_failure)
        .collect();
    // What came first may be why the others ended.
    let first = ends.iter().min_by_key(|end| log.at(end.row))?;
    let others = match ends.len() {
        1 => String::new(),
        more => format!("; {} ended after it", counted(more as u64 - 1, "program")),
    };
    let when = match first.is_last {
        true => "",
        false => " before the trace did",
    };
    let sentence = format!(
        "{}{} on {} ended with {}{when}{others}",
        first.program,
        first
            .pid
            .map_or_else(String::new, |pid| format!(" (process {pid})")),
        log.host(first.row),
        first.how()
    );
    let rows: Vec<u32> = ends.iter().map(|end| end.row).collect();
    let evidence = log.evidence(counted(rows.len() as u64, "program"), &rows);
    let found = kind.of_run(1.0, 0.95, sentence).because(evidence);
    Some(found.attempt(first.advice()))
}

/// What is noted of the last program of a trace where it ended with a failure: `sh on here ended with exit code 28`.
#[must_use]
pub fn describe_last_program(input: &AnalysisInput<'_>) -> Option<String> {
    let log = FindingEventLog::from_input(input);
    let mut ends = log.rows("PROGRAM_END").iter();
    let end =
        ends.find_map(|row| Some(EarlyProgramEnd::find(&log, *row)).filter(|end| end.is_last))?;
    let (program, host) = (end.program, log.host(end.row));
    Some(format!("{program} on {host} ended with {}", end.how()))
}

/// A program that ended by itself.
struct EarlyProgramEnd<'l> {
    row: u32,
    program: &'l str,
    pid: Option<i64>,
    code: Option<i64>,
    signal: Option<i64>,
    is_last: bool,
}

impl<'l> EarlyProgramEnd<'l> {
    fn find(log: &'l FindingEventLog<'_>, row: u32) -> Self {
        Self {
            row,
            program: log.text(row, "program").unwrap_or("a program"),
            pid: log.number(row, "pid"),
            code: log.number(row, "code"),
            signal: log.number(row, "signal"),
            is_last: log.number(row, "is_last") == Some(1),
        }
    }

    fn has_crashed(&self) -> bool {
        self.signal.is_some_and(|signal| CRASHES.contains(&signal))
    }

    /// Whether it is a failure. The exit code of the last program is its own answer, such as that a limit of time was reached; a server
    /// that exits with 0 may have left its work to another process.
    fn is_a_failure(&self) -> bool {
        let is_by_user = self
            .signal
            .is_some_and(|signal| ENDED_BY_USER.contains(&signal));
        self.has_crashed() || (!self.is_last && self.code != Some(0) && !is_by_user)
    }

    fn how(&self) -> String {
        match (self.code, self.signal) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "no exit code".to_owned(),
        }
    }

    const fn advice(&self) -> &'static str {
        match (self.code, self.signal) {
            (None, Some(KILL)) => {
                "check what killed it: the kernel does so where memory runs out (`dmesg`)"
            }
            (None, Some(_)) => "look at its log and its core dump (`coredumpctl`)",
            _ => "look at what it printed, and at its log",
        }
    }
}
