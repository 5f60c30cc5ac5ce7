//! Computes the difference of two samples of one host. It reads neither files nor clocks.

use super::dynamic::{DynamicSample, DynamicValueKind};
use super::facts::{EnvironmentFacts, number};
use crate::parse::stat;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The growth of counters, shares of CPU time, states at the end, and the flags that a result is marked with.
///
/// A flag is `{"flag", "value", "unit"}`; the flags are `paging`, `throttled`, `core full`, `steal`,
/// `tcp retransmits`, `listen overflow`, `udp receive drops`, `backlog drops`, `interface drops`.
#[must_use]
pub fn difference(before: &DynamicSample, after: &DynamicSample) -> Value {
    let changes = CounterGrowth::between(before, after);
    let mut facts = EnvironmentFacts::default();
    facts.put(
        "interval_s",
        after
            .taken
            .saturating_duration_since(before.taken)
            .as_secs_f64(),
    );
    for (path, change) in &changes.growth {
        facts.put(&format!("change/{path}"), number(*change));
    }
    for (path, (_, value)) in after
        .values
        .iter()
        .filter(|(_, (kind, _))| *kind == DynamicValueKind::State)
    {
        facts.put(&format!("after/{path}"), number(*value));
    }
    for (name, share) in shares(&changes) {
        facts.add(
            &format!("share/{name}"),
            share
                .map(Value::from)
                .ok_or_else(|| "too little time passed".to_owned()),
        );
    }
    facts.put("flags", flags(&changes));
    for (path, reason) in after
        .absent
        .iter()
        .chain(&before.absent)
        .chain(&changes.absent)
    {
        facts.absent(path, reason);
    }
    facts.into_json()
}

/// How much each counter grew that both samples have, by path; and why others are absent.
struct CounterGrowth {
    growth: BTreeMap<String, f64>,
    absent: BTreeMap<String, String>,
}

impl CounterGrowth {
    fn between(before: &DynamicSample, after: &DynamicSample) -> Self {
        let mut changes = Self {
            growth: BTreeMap::new(),
            absent: BTreeMap::new(),
        };
        for (path, (kind, value)) in &after.values {
            if *kind == DynamicValueKind::Counter {
                changes.add(
                    path,
                    before.values.get(path).map(|(_, earlier)| value - earlier),
                );
            }
        }
        changes
    }

    fn add(&mut self, path: &str, change: Option<f64>) {
        match change {
            Some(change) if change >= 0.0 => _ = self.growth.insert(path.to_owned(), change),
            Some(_) => {
                _ = self
                    .absent
                    .insert(path.to_owned(), "the counter went backwards".to_owned())
            }
            None => {
                _ = self.absent.insert(
                    path.to_owned(),
                    "it is missing from the first sample".to_owned(),
                )
            }
        }
    }

    fn get(&self, path: &str) -> Option<f64> {
        self.growth.get(path).copied()
    }

    /// The growth of one counter, summed over all interfaces.
    fn over_interfaces(&self, column: &str) -> f64 {
        let matches = |path: &str| {
            path.strip_prefix("interfaces/")
                .is_some_and(|rest| rest.ends_with(column))
        };
        self.growth
            .iter()
            .filter(|(path, _)| matches(path))
            .map(|(_, change)| change)
            .sum()
    }
}

/// Shares from 0 to 1: of CPU time, and of retransmitted TCP segments. `None` if too little time passed.
fn shares(changes: &CounterGrowth) -> [(&'static str, Option<f64>); 4] {
    let time = |kind: &str| changes.get(&format!("processor/{kind}_s")).unwrap_or(0.0);
    let total: f64 = stat::KINDS.into_iter().map(time).sum();
    let busy = total - time("idle") - time("iowait");
    let retransmitted = changes
        .get("tcp/segments_retransmitted")
        .zip(changes.get("tcp/segments_sent"));
    [
        ("cpu_busy", ratio(busy, total)),
        ("cpu_steal", ratio(time("steal"), total)),
        ("busiest_core", busiest(changes)),
        (
            "tcp_retransmitted",
            retransmitted.and_then(|(part, whole)| ratio(part, whole)),
        ),
    ]
}

/// The share of time in which the busiest core was busy.
fn busiest(changes: &CounterGrowth) -> Option<f64> {
    let busy = changes
        .growth
        .iter()
        .filter(|(path, _)| path.starts_with("processor/each/") && path.ends_with("/busy_s"));
    let share = |(path, busy): (&String, &f64)| {
        ratio(*busy, changes.get(&path.replace("/busy_s", "/total_s"))?)
    };
    busy.filter_map(share).reduce(f64::max)
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| (part / whole).clamp(0.0, 1.0))
}

/// The share of busy time above which a core counts as full.
const FULL: f64 = 0.95;
/// The share of stolen CPU time above which the flag `steal` is set.
const STOLEN: f64 = 0.01;

/// The flags whose values are above their limits.
fn flags(changes: &CounterGrowth) -> Vec<Value> {
    let shares = shares(changes);
    let share = |name: &str| {
        shares
            .iter()
            .find(|(n, _)| *n == name)
            .and_then(|(_, value)| *value)
            .unwrap_or(0.0)
    };
    let count = |path: &str| changes.get(path).unwrap_or(0.0);
    let swapped = count("paging/swapped_in_pages") + count("paging/swapped_out_pages");
    let dropped = changes.over_interfaces("receive_drops") + changes.over_interfaces("send_drops");
    let listen = count("tcp/listen_overflows").max(count("tcp/listen_drops"));
    let all = [
        ("paging", swapped, 0.0, "pages"),
        ("throttled", count("throttling/throttled_s"), 0.0, "s"),
        ("core full", share("busiest_core"), FULL, "share"),
        ("steal", share("cpu_steal"), STOLEN, "share"),
        (
            "tcp retransmits",
            count("tcp/segments_retransmitted"),
            0.0,
            "segments",
        ),
        ("listen overflow", listen, 0.0, "connects"),
        (
            "udp receive drops",
            count("udp/receive_buffer_drops"),
            0.0,
            "datagrams",
        ),
        ("backlog drops", count("backlog/drops"), 0.0, "packets"),
        ("interface drops", dropped, 0.0, "packets"),
    ];
    let raised = all.into_iter().filter(|(_, value, above, _)| value > above);
    raised
        .map(|(flag, value, _, unit)| json!({"flag": flag, "value": number(value), "unit": unit}))
        .collect()
}
