//! Checks networks of IMPs: all switches are IMPs, each host has one interface, and lines have a constant rate and
//! delay.

use crate::check::evaluate::fixed;
use crate::diagnostic::{Diagnostic, DiagnosticReport};
use crate::tree::{
    DelayItem, ImpItem, LinkItem, NetworkItem, NodeItem, RateItem, SwitchItem, Word,
};
use alloc::format;
use stackline_core::network::{ImpMachine, ImpSettings, MOST_IMPS};

/// Largest number of messages or channels.
const MOST: u64 = 1024;

/// The settings of an IMP.
pub(super) fn resolve(item: &ImpItem, report: &mut DiagnosticReport) -> ImpSettings {
    let machine = ImpMachine::ALL
        .iter()
        .find(|(name, _)| *name == item.machine.text)
        .map(|(_, machine)| *machine);
    let mut number = |value: &Option<_>, what| {
        let kept = value
            .as_ref()
            .and_then(|value| report.keep(fixed(value, what, 1, MOST)));
        kept.and_then(|number| u32::try_from(number).ok())
    };
    ImpSettings {
        machine: machine.unwrap_or_default(),
        reassembly: number(&item.reassembly, "the reassembly capacity"),
        window: number(&item.window, "a window"),
        channels: number(&item.channels, "the number of channels")
            .and_then(|count| u16::try_from(count).ok()),
        buffers: number(&item.buffers, "the number of buffers"),
        september: item.september.unwrap_or_default(),
        unreserved: item.reservation == Some(false),
        splits: item.splitting.unwrap_or_default(),
    }
}

/// Reports what no network of IMPs can have.
pub(super) fn report(item: &NetworkItem, report: &mut DiagnosticReport) {
    let is_imp = |switch: &&SwitchItem| switch.imp.is_some();
    if !item.switches.iter().any(|switch| is_imp(&switch)) {
        for (_, _, span) in item.hosts.iter().filter_map(|host| host.down.as_ref()) {
            let diagnostic = Diagnostic::error(
                *span,
                "hosts can go down only in networks of IMPs",
                "only an IMP would notify the other hosts",
            );
            report.push(
                diagnostic
                    .hint("take the host's link down instead: `loss schedule(0 s 0%, 5 s 100%)`"),
            );
        }
        for (_, span) in item.hosts.iter().filter_map(|host| host.fake) {
            let diagnostic = Diagnostic::error(
                span,
                "fake hosts are programs that run on IMPs",
                "this network has no IMP",
            );
            report.push(
                diagnostic.hint("omit `fake`, or make the host's switch an IMP: `imp A 516;`"),
            );
        }
    }
    if item.broken || !item.switches.iter().any(|switch| is_imp(&switch)) {
        return;
    }
    for switch in item.switches.iter().filter(|switch| !is_imp(switch)) {
        let message = format!("`{}` is a switch in a network of IMPs", switch.name.text);
        let diagnostic = Diagnostic::error(switch.name.span, message, "expected an IMP");
        report.push(diagnostic.hint(format!("write `imp {} 516;`", switch.name.text)));
    }
    if item.switches.len() > MOST_IMPS {
        let message = format!(
            "`{}` has {} IMPs, but the 1973 formats can only address {MOST_IMPS}",
            item.name.text,
            item.switches.len()
        );
        let diagnostic = Diagnostic::warning(
            item.name.span,
            message,
            "this network could not have existed",
        );
        report.push(diagnostic.hint("it is simulated anyway, with larger formats"));
    }
    host_links(item, report);
    for link in &item.links {
        let is_end = |name: &Word| name.text == link.ends.0.text || name.text == link.ends.1.text;
        let host = item.hosts.iter().find(|host| host.names.iter().any(is_end));
        line(link, host, report);
    }
}

/// Each host has one link, to an IMP.
fn host_links(item: &NetworkItem, report: &mut DiagnosticReport) {
    for host in item.host_names() {
        let is_own =
            |link: &&LinkItem| link.ends.0.text == host.text || link.ends.1.text == host.text;
        let own: alloc::vec::Vec<&LinkItem> = item.links.iter().filter(is_own).collect();
        let is_host = |name: &str| item.host_names().any(|host| host.text == name);
        let joins_hosts = own
            .iter()
            .any(|link| is_host(&link.ends.0.text) && is_host(&link.ends.1.text));
        if own.len() != 1 || joins_hosts {
            let message = format!("`{}` must be connected to one IMP, by one link", host.text);
            let diagnostic = Diagnostic::error(
                host.span,
                message,
                "a host of the ARPANET has one interface",
            );
            report.push(diagnostic.hint(format!(
                "write one link: `link {} - IMP 100 kbit/s 0 us;`",
                host.text
            )));
        }
    }
}

/// A line, or the interface of a host.
fn line(link: &LinkItem, host: Option<&NodeItem>, report: &mut DiagnosticReport) {
    let span = link.ends.0.span.to(link.ends.1.span);
    let is_fake = host.is_some_and(|host| host.fake.is_some());
    if is_fake && !matches!(link.rate, RateItem::Unlimited) {
        let diagnostic = Diagnostic::error(
            span,
            "a fake host has no interface, so its link cannot have a rate",
            "this one does",
        );
        report.push(diagnostic.hint(format!(
            "write `link {} - {} unlimited 0 us;`",
            link.ends.0.text, link.ends.1.text
        )));
    }
    let name = if host.is_some() {
        "the interface of an IMP host"
    } else {
        "a line between IMPs"
    };
    let mut refuse = |is: bool, what: &str| {
        if is {
            let message = format!("{name} cannot have {what}");
            report.push(
                Diagnostic::error(span, message, "this one does")
                    .hint("it can only have a rate, a delay and a loss"),
            );
        }
    };
    refuse(link.one_way, "only one direction");
    refuse(
        !is_fake && !matches!(link.rate, RateItem::Constant(_)),
        "a rate that changes or is unlimited",
    );
    refuse(
        !matches!(link.delay, DelayItem::Constant(_)),
        "a delay that changes",
    );
    refuse(link.jitter.is_some(), "jitter");
    refuse(link.duplicate.is_some(), "duplicates");
    refuse(
        link.queue.is_some(),
        "a queue of its own: its channels serve as the queue",
    );
    refuse(link.shaper.is_some(), "a shaper");
    refuse(link.policer.is_some(), "a policer");
    refuse(link.dscp.is_some(), "a code point for its packets");
    refuse(link.reorder.is_some(), "reordering");
    refuse(link.mtu.is_some(), "a packet size of its own");
    refuse(link.charge.is_some(), "framing of its own");
}
