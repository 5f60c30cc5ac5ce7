//! Checks a queue: its limit, and its discipline with the defaults of the RFCs.

use super::classes;
use super::figures::{LARGEST_BUFFER, number, share};
use crate::check::evaluate::fixed;
use crate::diagnostic::{Diagnostic, DiagnosticReport, TextSpan};
use crate::tree::{Base, DisciplineItem, QueueItem, QueueLimit, SettingItem, SpecUnit, SpecValue};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::network::{Discipline, DualPi2Settings, LinkQueue};
use stackline_core::time::Duration;

pub(super) const MOST_PACKETS: u64 = 1 << 30;
/// Longest target, interval or update, in seconds.
const LONGEST: f64 = 3600.0;
const MOST_FLOWS: u64 = 65_536;
const MOST_QUANTUM: u64 = 1 << 24;

/// Defaults of CoDel: target 5 ms, interval 100 ms (RFC 8289).
const CODEL: (Duration, Duration) = (Duration(5_000_000), Duration(100_000_000));
/// Defaults of PIE: target 15 ms, update 15 ms (RFC 8033).
const PIE: (Duration, Duration) = (Duration(15_000_000), Duration(15_000_000));
/// Defaults of FQ-CoDel (RFC 8290): number of flows, and quantum in bytes (an Ethernet frame without its check
/// sequence).
const FQ_CODEL: (u32, u32) = (1024, 1514);
/// Floyd and Jacobson, 1993.
const RED: (f64, f64) = (0.1, 0.002);

/// What a setting is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SettingKind {
    Size,
    Time,
    Percent,
    Weight,
    Whole,
}

const TABLE: &[(&str, &[(&str, SettingKind)])] = &[
    ("drop_tail", &[]),
    ("drop_head", &[]),
    (
        "red",
        &[
            ("min", SettingKind::Size),
            ("max", SettingKind::Size),
            ("probability", SettingKind::Percent),
            ("weight", SettingKind::Weight),
        ],
    ),
    (
        "codel",
        &[
            ("target", SettingKind::Time),
            ("interval", SettingKind::Time),
        ],
    ),
    (
        "pie",
        &[("target", SettingKind::Time), ("update", SettingKind::Time)],
    ),
    (
        "fq_codel",
        &[
            ("target", SettingKind::Time),
            ("interval", SettingKind::Time),
            ("flows", SettingKind::Whole),
            ("quantum", SettingKind::Size),
        ],
    ),
    (
        "dualpi2",
        &[
            ("target", SettingKind::Time),
            ("update", SettingKind::Time),
            ("alpha", SettingKind::Weight),
            ("beta", SettingKind::Weight),
            ("coupling", SettingKind::Weight),
            ("step", SettingKind::Time),
            ("classic", SettingKind::Percent),
        ],
    ),
];
/// Largest gain or coupling factor of DualPI2.
const LARGEST_GAIN: f64 = 1000.0;

pub(super) fn resolve(item: &QueueItem, report: &mut DiagnosticReport) -> LinkQueue {
    let mut queue = LinkQueue::default();
    match &item.limit {
        Some(QueueLimit::Bytes(value)) => {
            queue.limit_bytes = report.keep(fixed(value, "a queue", 1, LARGEST_BUFFER));
            unit_doubted(value, report);
        }
        Some(QueueLimit::Packets(value)) => {
            queue.limit_packets = report.keep(fixed(value, "a queue", 1, MOST_PACKETS));
        }
        None => {}
    }
    if let Some(discipline) = &item.discipline {
        let settings = DisciplineSettings {
            item: discipline,
            values: known(discipline, report),
        };
        queue.discipline = settings.discipline(queue.limit_bytes, report);
        if queue.discipline == Discipline::Classes {
            queue.classes = classes::resolve(discipline, report);
        }
    }
    // DualPI2 without marks would be no DualPI2.
    queue.ecn = item.ecn.is_some() || matches!(queue.discipline, Discipline::DualPi2(_));
    agreement(item, &queue, report);
    queue
}

/// Warns of a limit without a unit: it counts bytes, while other tools count packets.
fn unit_doubted(value: &SpecValue, report: &mut DiagnosticReport) {
    if let (Base::Number(number @ 1.0..), SpecUnit::None) = (&value.base, value.unit) {
        let message = format!("the limit of this queue is interpreted as {number} B");
        let diagnostic = Diagnostic::warning(value.span, message, "no unit");
        report.push(diagnostic.hint(format!("write `{number} packets`, or `{number} B`")));
    }
}

/// Reports settings that do not go together or have no effect.
fn agreement(item: &QueueItem, queue: &LinkQueue, report: &mut DiagnosticReport) {
    let name = item
        .discipline
        .as_ref()
        .map_or("drop_tail", |discipline| discipline.name.text.as_str());
    let controlled = queue.classes.iter().any(|class| class.codel.is_some());
    let plain = matches!(name, "drop_tail" | "drop_head") || name == "classes" && !controlled;
    if let Some(span) = item.ecn.filter(|_| plain) {
        let message = format!("a `{name}` queue does not mark packets");
        let diagnostic = Diagnostic::error(span, message, "it drops packets only when it is full");
        report
            .push(diagnostic.hint(
                "choose a discipline that acts early, such as `codel ecn` or `red(...) ecn`",
            ));
    }
    if name == "drop_head" && item.limit.is_none() && queue.discipline == Discipline::DropHead {
        let diagnostic = Diagnostic::warning(
            item.span,
            "a queue without a limit is never full",
            "nothing is dropped",
        );
        report.push(diagnostic.hint("give it a limit, as in `queue 64 KiB drop_head`"));
    }
}

/// The settings that the discipline has, each once, each of its kind; the others are reported.
fn known<'i>(item: &'i DisciplineItem, report: &mut DiagnosticReport) -> Vec<&'i SettingItem> {
    let mut good: Vec<&SettingItem> = Vec::new();
    let takes = TABLE
        .iter()
        .find(|(name, _)| *name == item.name.text)
        .map_or(&[][..], |(_, takes)| *takes);
    for setting in &item.settings {
        let name = &setting.name;
        let Some((_, kind)) = takes.iter().find(|(known, _)| *known == name.text) else {
            let names: Vec<&str> = takes.iter().map(|(name, _)| *name).collect();
            let message = format!("`{}` has no setting `{}`", item.name.text, name.text);
            let hint = if names.is_empty() {
                String::from("omit it")
            } else {
                format!("its settings: {}", names.join(", "))
            };
            let diagnostic =
                Diagnostic::error(name.span, message, "expected a setting of this discipline");
            report.push(diagnostic.did_you_mean(&name.text, names, hint));
            continue;
        };
        if good.iter().any(|other| other.name.text == name.text) {
            let message = format!("`{}` is given twice", name.text);
            report.push(Diagnostic::error(
                name.span,
                message,
                "already given for this queue",
            ));
        }
        if report.keep(is_kind(setting, *kind)).is_some() {
            good.push(setting);
        }
    }
    good
}

fn is_kind(setting: &SettingItem, kind: SettingKind) -> Result<(), Diagnostic> {
    let right = match (setting.value.unit, setting.percent) {
        (SpecUnit::None, percent) => percent == (kind == SettingKind::Percent),
        (SpecUnit::Size(_), percent) => kind == SettingKind::Size && !percent,
        (SpecUnit::Time(_), percent) => kind == SettingKind::Time && !percent,
        (SpecUnit::Percent, _) => kind == SettingKind::Percent,
        (SpecUnit::Rate(_) | SpecUnit::PerSecond(_), _) => false,
    };
    if right {
        return Ok(());
    }
    let (what, such_as) = match kind {
        SettingKind::Size => ("a size", "10 KiB"),
        SettingKind::Time => ("a time", "5 ms"),
        SettingKind::Percent => ("a percentage", "10%"),
        SettingKind::Weight => ("a number", "0.002"),
        SettingKind::Whole => ("a whole number", "1024"),
    };
    let message = format!("`{}` must be {what}", setting.name.text);
    Err(Diagnostic::error(
        setting.value.span,
        message,
        format!("expected {what} such as `{such_as}`"),
    ))
}

/// Target and interval of the CoDel of a class; `None` where it has the discipline `drop_tail`.
pub(super) fn class_codel(
    item: &DisciplineItem,
    report: &mut DiagnosticReport,
) -> Option<(Duration, Duration)> {
    let settings = DisciplineSettings {
        item,
        values: known(item, report),
    };
    (item.name.text == "codel").then(|| settings.control(report))
}

struct DisciplineSettings<'i> {
    item: &'i DisciplineItem,
    values: Vec<&'i SettingItem>,
}

impl DisciplineSettings<'_> {
    fn get(&self, name: &str) -> Option<&SpecValue> {
        self.values
            .iter()
            .find(|setting| setting.name.text == name)
            .map(|setting| &setting.value)
    }

    /// Where this setting stands, or the discipline's name if it is absent.
    fn span(&self, name: &str) -> TextSpan {
        self.get(name)
            .map_or(self.item.name.span, |value| value.span)
    }

    fn discipline(&self, limit: Option<u64>, report: &mut DiagnosticReport) -> Discipline {
        match self.item.name.text.as_str() {
            "drop_head" => Discipline::DropHead,
            "red" => self.red(limit, report).unwrap_or_default(),
            "codel" => {
                let (target, interval) = self.control(report);
                Discipline::CoDel { target, interval }
            }
            "pie" => Discipline::Pie {
                target: self.time("target", PIE.0, report),
                update: self.time("update", PIE.1, report),
            },
            "fq_codel" => {
                let (target, interval) = self.control(report);
                let flows = self.whole("flows", FQ_CODEL.0, MOST_FLOWS, report);
                let quantum = self.whole("quantum", FQ_CODEL.1, MOST_QUANTUM, report);
                Discipline::FqCoDel {
                    target,
                    interval,
                    flows,
                    quantum,
                }
            }
            "classes" => Discipline::Classes,
            "dualpi2" => Discipline::DualPi2(self.dual_pi2(report)),
            _ => Discipline::DropTail,
        }
    }

    fn time(&self, name: &str, otherwise: Duration, report: &mut DiagnosticReport) -> Duration {
        let Some(value) = self.get(name) else {
            return otherwise;
        };
        let seconds = number(value);
        let time = Duration::from_seconds(seconds);
        if time == Duration::ZERO || seconds > LONGEST {
            let message = format!("`{name}` must be above 0 and at most 1 hour");
            report.push(Diagnostic::error(
                value.span,
                message,
                format!("this is {seconds} s"),
            ));
        }
        time
    }

    fn whole(&self, name: &str, otherwise: u32, most: u64, report: &mut DiagnosticReport) -> u32 {
        let Some(value) = self.get(name) else {
            return otherwise;
        };
        let number = report.keep(fixed(value, &format!("`{name}`"), 1, most));
        number
            .and_then(|number| u32::try_from(number).ok())
            .unwrap_or(otherwise)
    }

    fn dual_pi2(&self, report: &mut DiagnosticReport) -> DualPi2Settings {
        let usual = DualPi2Settings::default();
        let mut gain = |name: &str, otherwise: f64| {
            let gain = self.get(name).map_or(otherwise, number);
            if gain <= 0.0 || gain > LARGEST_GAIN {
                let message = format!("`{name}` must be above 0 and at most {LARGEST_GAIN}");
                report.push(Diagnostic::error(self.span(name), message, "out of range"));
            }
            gain
        };
        let (alpha, beta) = (gain("alpha", usual.alpha), gain("beta", usual.beta));
        let coupling = gain("coupling", usual.coupling);
        let classic = self.get("classic").and_then(|value| {
            report.keep(share(
                value,
                "the share of the classic queue is above 100 per cent",
            ))
        });
        DualPi2Settings {
            target: self.time("target", usual.target, report),
            update: self.time("update", usual.update, report),
            alpha,
            beta,
            coupling,
            step: self.time("step", usual.step, report),
            classic_share: classic.unwrap_or(usual.classic_share),
        }
    }

    /// The target and interval of `CoDel`.
    fn control(&self, report: &mut DiagnosticReport) -> (Duration, Duration) {
        let target = self.time("target", CODEL.0, report);
        let interval = self.time("interval", CODEL.1, report);
        if target >= interval {
            let span = if self.get("target").is_some() {
                self.span("target")
            } else {
                self.span("interval")
            };
            let message = format!(
                "the target of `{}` must be below its interval",
                self.item.name.text
            );
            let label = format!("a target of {target} and an interval of {interval}");
            report.push(
                Diagnostic::error(span, message, label)
                    .hint("the target is usually about 5% of the interval"),
            );
        }
        (target, interval)
    }

    /// The thresholds are written, or follow from the queue's limit.
    fn red(&self, limit: Option<u64>, report: &mut DiagnosticReport) -> Option<Discipline> {
        let mut threshold = |name: &str, part: u64| match (self.get(name), limit) {
            (Some(value), _) => report.keep(fixed(value, &format!("`{name}`"), 1, LARGEST_BUFFER)),
            (None, Some(limit)) => Some(limit / part),
            (None, None) => {
                let message = format!("`red` has no `{name}`");
                let label = "expected thresholds, or a limit in bytes to derive them from";
                let diagnostic = Diagnostic::error(self.item.name.span, message, label);
                report.push(
                    diagnostic
                        .hint("write `red(min = 10 KiB, max = 30 KiB)` or `queue 64 KiB red`"),
                );
                None
            }
        };
        let (min, max) = (threshold("min", 6), threshold("max", 2));
        let most = self
            .get("probability")
            .map_or(RED.0, |value| number(value) / 100.0);
        if most <= 0.0 || most > 1.0 {
            let message = "the probability of `red` must be above 0 and at most 100 per cent";
            report.push(Diagnostic::error(
                self.span("probability"),
                message,
                "out of range",
            ));
        }
        let weight = self.get("weight").map_or(RED.1, number);
        if weight <= 0.0 || weight > 1.0 {
            let message = "the weight of `red` must be above 0 and at most 1";
            report.push(Diagnostic::error(
                self.span("weight"),
                message,
                "out of range",
            ));
        }
        let (min_bytes, max_bytes) = (min?, max?);
        if min_bytes >= max_bytes {
            let name = if self.get("min").is_some() {
                "min"
            } else {
                "max"
            };
            let message = "the `min` of `red` must be below its `max`";
            let label = format!("min {min_bytes} B, max {max_bytes} B");
            report.push(
                Diagnostic::error(self.span(name), message, label)
                    .hint("`max` is often three times `min`"),
            );
        }
        Some(Discipline::Red {
            min_bytes,
            max_bytes,
            most,
            weight,
        })
    }
}
