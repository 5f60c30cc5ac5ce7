//! Checks what only routers have: address translation and firewalls.

use super::figures::delay;
use crate::check::evaluate::fixed;
use crate::diagnostic::{Diagnostic, DiagnosticReport};
use crate::tree::{GateItem, SwitchItem};
use stackline_core::network::{FirewallSettings, NatSettings, RouterSettings};
use stackline_core::time::Duration;

/// Most entries of a router's table.
const MOST_ENTRIES: u64 = 1 << 20;
/// Most translations: those of one protocol cannot be more than there are ports.
const MOST_TRANSLATIONS: u64 = 65_535;

/// The settings of a router; `None` for a switch or an IMP.
pub(super) fn resolve(item: &SwitchItem, report: &mut DiagnosticReport) -> Option<RouterSettings> {
    let router = item.router.as_ref()?;
    if let Some(value) = &item.cells {
        let diagnostic = Diagnostic::error(
            value.span,
            "a router forwards packets, not cells",
            "only a switch has `cells`",
        );
        report.push(diagnostic.hint("declare the node as a `switch`"));
    }
    let nat = router.nat.as_ref().map(|gate| NatSettings {
        outside: gate.outside.text.clone(),
        timeout: idle_time(gate, NatSettings::TIMEOUT, report),
        entries: entries(gate, NatSettings::ENTRIES, MOST_TRANSLATIONS, report),
    });
    let firewall = router.firewall.as_ref().map(|gate| FirewallSettings {
        outside: gate.outside.text.clone(),
        idle: idle_time(gate, FirewallSettings::IDLE, report),
        entries: entries(gate, FirewallSettings::ENTRIES, MOST_ENTRIES, report),
        rejects: gate.rejects.is_some(),
    });
    Some(RouterSettings {
        silent: router.icmp.is_some_and(|(is_on, _)| !is_on),
        nat,
        firewall,
    })
}

fn idle_time(gate: &GateItem, default: Duration, report: &mut DiagnosticReport) -> Duration {
    let Some(value) = &gate.time else {
        return default;
    };
    match report.keep(delay(value, "the time after which an entry is forgotten")) {
        Some(Duration::ZERO) => {
            let message = "an entry that is forgotten at once lets no answer through";
            let diagnostic = Diagnostic::error(value.span, message, "this is zero");
            report.push(diagnostic.hint("for example `60 s`"));
            default
        }
        time => time.unwrap_or(default),
    }
}

fn entries(gate: &GateItem, default: u32, most: u64, report: &mut DiagnosticReport) -> u32 {
    let value = gate.entries.as_ref();
    let entries =
        value.and_then(|value| report.keep(fixed(value, "the number of entries", 1, most)));
    entries
        .and_then(|entries| u32::try_from(entries).ok())
        .unwrap_or(default)
}
