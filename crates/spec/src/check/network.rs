//! A network's tree to its plain data: ends that exist, sensible rates, one connected whole.

use super::evaluate::{Bindings, LONGEST, fixed};
use crate::diagnostic::{Diagnostic, Report};
use crate::tree::{LinkItem, NetworkItem, SwitchItem, Value, Word};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::network::{Host, Link, Loss, Network, Queue, Rate, Switch};
use stackline_core::time::Duration;

const LARGEST_BUFFER: u64 = 1 << 40;
const LARGEST_PACKET: u64 = 1 << 24;

/// The network, with every mistake in it reported.
pub(crate) fn resolve(item: &NetworkItem, report: &mut Report) -> Network {
    let mut nodes: BTreeSet<&str> = BTreeSet::new();
    for word in item.hosts.iter().chain(item.switches.iter().map(|switch| &switch.name)) {
        if !nodes.insert(&word.text) {
            let message = format!("`{}` is declared twice in this network", word.text);
            report.push(Diagnostic::error(word.span, message, "already declared").hint("choose another name"));
        }
    }
    let mut network = Network { name: item.name.text.clone(), ..Network::default() };
    network.hosts = item.hosts.iter().map(|word| Host { name: word.text.clone(), ..Host::default() }).collect();
    network.switches = item.switches.iter().map(|item| collect(switch(item), report)).collect();
    let mut pairs: BTreeSet<(&str, &str)> = BTreeSet::new();
    for item_link in &item.links {
        ends(item_link, item, &nodes, &mut pairs, report);
        network.links.push(collect(link(item_link), report));
    }
    if !item.broken {
        connected(item, &nodes, report);
    }
    network
}

/// The value all the same, its mistakes reported.
fn collect<T>((value, mistakes): (T, Vec<Diagnostic>), report: &mut Report) -> T {
    for mistake in mistakes {
        report.push(mistake);
    }
    value
}

fn ends<'i>(
    link: &'i LinkItem,
    item: &NetworkItem,
    nodes: &BTreeSet<&str>,
    pairs: &mut BTreeSet<(&'i str, &'i str)>,
    report: &mut Report,
) {
    let (first, second) = (&link.ends.0, &link.ends.1);
    for end in [first, second] {
        if !nodes.contains(end.text.as_str()) && !item.broken && !report.full() {
            let message = format!("the network has no host or switch `{}`", end.text);
            let hint = format!("declare it: `host {};`", end.text);
            let diagnostic = Diagnostic::error(end.span, message, "not declared in this network");
            report.push(diagnostic.did_you_mean(&end.text, nodes.iter().copied(), hint));
        }
    }
    let span = first.span.to(second.span);
    if first.text == second.text {
        let message = format!("a link joins `{}` to itself", first.text);
        report.push(Diagnostic::error(span, message, "expected two different ends"));
        return;
    }
    let pair = if first.text < second.text { (&*first.text, &*second.text) } else { (&*second.text, &*first.text) };
    if !pairs.insert(pair) {
        let message = format!("there are two links between `{}` and `{}`", first.text, second.text);
        report.push(Diagnostic::error(span, message, "already joined").hint("keep one, with the sum of the rates"));
    }
}

fn switch(item: &SwitchItem) -> (Switch, Vec<Diagnostic>) {
    let mut mistakes = Vec::new();
    let mut bytes = |value: &Option<Value>, what: &str, most: u64| optional(value, what, most, &mut mistakes);
    let switch = Switch {
        name: item.name.text.clone(),
        buffer_bytes: bytes(&item.buffer, "a buffer", LARGEST_BUFFER),
        buffer_per_port: item.per_port,
        cell_bytes: bytes(&item.cells, "the size of a cell", LARGEST_PACKET),
        early_packet_discard: item.early_packet_discard,
        queue: None,
    };
    (switch, mistakes)
}

fn optional(value: &Option<Value>, what: &str, most: u64, mistakes: &mut Vec<Diagnostic>) -> Option<u64> {
    match fixed(value.as_ref()?, what, 1, most) {
        Ok(bytes) => Some(bytes),
        Err(mistake) => {
            mistakes.push(mistake);
            None
        }
    }
}

fn link(item: &LinkItem) -> (Link, Vec<Diagnostic>) {
    let mut mistakes = Vec::new();
    let number = |value: &Value| Bindings(&[]).number(value);
    let rate_bit_s = number(&item.rate);
    if rate_bit_s <= 0.0 {
        let message = "the rate of a link has to be above zero";
        mistakes.push(Diagnostic::error(item.rate.span, message, "nothing would ever arrive"));
    }
    let delay = number(&item.delay);
    if delay > LONGEST {
        mistakes.push(Diagnostic::error(
            item.delay.span,
            "the delay of a link is too long",
            format!("at most {LONGEST} s"),
        ));
    }
    let loss = item.loss.as_ref().map_or(0.0, number);
    if loss > 100.0
        && let Some(value) = &item.loss
    {
        mistakes.push(Diagnostic::error(value.span, "a link cannot lose more than all", "expected 0 to 100 per cent"));
    }
    let mtu_bytes = optional(&item.mtu, "an mtu", LARGEST_PACKET, &mut mistakes);
    let queue_bytes = optional(&item.queue, "a queue", LARGEST_BUFFER, &mut mistakes);
    let ends: (String, String) = (item.ends.0.text.clone(), item.ends.1.text.clone());
    let delay = Duration::from_seconds(delay);
    let link = Link {
        ends,
        rate: Rate::Constant(rate_bit_s),
        delay,
        loss: if loss > 0.0 { Loss::Independent(loss / 100.0) } else { Loss::None },
        mtu_bytes,
        queue: queue_bytes.map(|bytes| Queue { limit_bytes: Some(bytes), ..Queue::default() }),
        ..Link::default()
    };
    (link, mistakes)
}

/// Every node is reached from the first host.
fn connected(item: &NetworkItem, nodes: &BTreeSet<&str>, report: &mut Report) {
    let Some(first) = item.hosts.first() else {
        let message = format!("the network `{}` has no host", item.name.text);
        report.push(Diagnostic::error(item.name.span, message, "expected `host NAME;` in it"));
        return;
    };
    let mut neighbours: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for link in &item.links {
        neighbours.entry(&link.ends.0.text).or_default().push(&link.ends.1.text);
        neighbours.entry(&link.ends.1.text).or_default().push(&link.ends.0.text);
    }
    let mut reached: BTreeSet<&str> = BTreeSet::new();
    let mut open: Vec<&str> = alloc::vec![&first.text];
    while let Some(node) = open.pop() {
        if reached.insert(node) {
            open.extend(neighbours.get(node).into_iter().flatten().copied());
        }
    }
    let named = item.hosts.iter().chain(item.switches.iter().map(|switch| &switch.name));
    let lost: Option<&Word> = named.into_iter().find(|word| !reached.contains(word.text.as_str()));
    if let Some(word) = lost
        && nodes.len() > 1
    {
        let message = format!("no path leads from `{}` to `{}`", first.text, word.text);
        let hint = format!("add a link, as in `link {} - {} 100 Mbit/s 1 ms;`", first.text, word.text);
        report.push(Diagnostic::error(word.span, message, "not connected").hint(hint));
    }
}
