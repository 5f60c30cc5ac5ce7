//! Effects of factors of random specifications, out of a few runs, beside what many runs say: how often intervals hold the truth, how
//! often a factor that does nothing is alleged, how often the first of the ranking is the first.

use crate::runs::Place;
use serde_json::Value;
use stackline_testing::seeds::for_each_seed;
use stackline_truth::Scenario;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Instant;

/// Runs of each combination: few, and many for the truth.
const FEW: u32 = 5;
const MANY: u32 = 60;
/// A link that nothing goes over.
const INERT: &str = "bandwidth of z - l";
/// What is varied. Losses make runs differ from each other.
const FACTORS: [&str; 4] = [
    "bandwidth of l - r x 2",
    "delay of l - r x 0.5",
    "loss of l - r = 0.2%, 1%",
    "bandwidth of z - l x 10",
];

/// Effects and interactions by name: estimate and half of the interval; ranks of effects.
type Effects = BTreeMap<String, (f64, f64)>;

/// One specification, judged.
struct Judged {
    few: Effects,
    many: Effects,
    ranks: BTreeMap<String, u64>,
}

/// All that were judged, or what went wrong, by seed.
pub(crate) struct All(Vec<(u64, Result<Judged, String>)>);

/// Judges the specifications of seeds from `from` on, until one of the limits is reached.
pub(crate) fn judge(from: u64, count: u64, until: Instant) -> All {
    All(for_each_seed(from, count, until, Place::new, one))
}

fn one(place: &Place, seed: u64) -> Result<Judged, String> {
    let text = Scenario::draw(seed).to_string();
    let text = text.replace(
        "  router l, r;\n",
        "  router l, r;\n  host z;\n  link z - l 1 Mbit/s 1 ms;\n",
    );
    let asked = |replicates: u32, seed: u64| asked(place, &text, replicates, seed);
    let (few, many) = (asked(FEW, 1)?, asked(MANY, 1_000_000)?);
    let ranks = entries(&few, "effects")
        .filter_map(|one| Some((name(one)?, one["rank"].as_u64()?)))
        .collect();
    Ok(Judged {
        few: effects(&few),
        many: effects(&many),
        ranks,
    })
}

/// What factors do to the time of a specification, with so many runs of each combination.
fn asked(place: &Place, text: &str, replicates: u32, seed: u64) -> Result<Value, String> {
    let (replicates, seed) = (replicates.to_string(), seed.to_string());
    let mut words = vec![
        "factors",
        "--json",
        "--no-limits",
        "--response",
        "elapsed",
        "--model",
        "multiplicative",
        "-e",
        text,
    ];
    words.extend(["--replicates", &replicates, "--seed", &seed]);
    words.extend(FACTORS.iter().flat_map(|factor| ["-f", factor]));
    let output = place.stackline(&words)?;
    serde_json::from_slice(&output).map_err(|error| error.to_string())
}

/// Limits by the account of one run beside those that are simulated: within 10 %, others, and those that one run cannot tell.
pub(crate) fn limits(from: u64, count: u64, until: Instant) -> String {
    let one = |place: &Place, seed: u64| {
        let text = Scenario::draw(seed).to_string();
        let mut words = vec!["factors", "--json", "--replicates", "2", "-e", &text];
        words.extend(["-f", "bandwidth of l - r x 2", "-f", "delay of l - r x 0.5"]);
        let answer: Value =
            serde_json::from_slice(&place.stackline(&words)?).map_err(|error| error.to_string())?;
        let limits = answer["limits"].as_array().cloned().unwrap_or_default();
        let of = |limit: &Value| {
            Some((
                limit["times_as_fast"].as_f64()?,
                limit["by_account"].as_f64(),
            ))
        };
        Ok(limits.iter().filter_map(of).collect::<Vec<_>>())
    };
    let all = for_each_seed(from, count, until, Place::new, one);
    let limits: Vec<(f64, Option<f64>)> = all
        .iter()
        .filter_map(|(_, made)| made.as_ref().ok())
        .flatten()
        .copied()
        .collect();
    let mut off: Vec<f64> = limits
        .iter()
        .filter_map(|(simulated, account)| Some((account.as_ref()? / simulated - 1.0).abs()))
        .collect();
    off.sort_unstable_by(f64::total_cmp);
    let near = off.iter().filter(|off| **off <= 0.1).count();
    format!(
        "{} specifications, {} limits: told by the account of one run {}, within 10 % {near}, median {:.2} % off, most {:.1} %; \
         not told {}\n",
        all.len(),
        limits.len(),
        off.len(),
        100.0 * off.get(off.len() / 2).copied().unwrap_or(0.0),
        100.0 * off.last().copied().unwrap_or(0.0),
        limits.len() - off.len()
    )
}

fn entries<'v>(answer: &'v Value, what: &str) -> impl Iterator<Item = &'v Value> {
    answer["responses"][0]["answer"][what]
        .as_array()
        .into_iter()
        .flatten()
}

fn name(one: &Value) -> Option<String> {
    let joined = |factors: &Vec<Value>| {
        factors
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(" with ")
    };
    one["factor"]
        .as_str()
        .map(str::to_owned)
        .or_else(|| one["factors"].as_array().map(joined))
}

fn effects(answer: &Value) -> Effects {
    let of = |one: &Value| {
        let (value, least) = (
            one["effect"]["value"].as_f64()?,
            one["effect"]["ci95"][0].as_f64()?,
        );
        Some((name(one)?, (value, value - least)))
    };
    entries(answer, "effects")
        .chain(entries(answer, "interactions"))
        .filter_map(of)
        .collect()
}

impl All {
    /// Of intervals: those that hold the truth, and all; of factors that do nothing: those that are alleged, and all; of rankings:
    /// those whose first is right, and all.
    pub(crate) fn counts(&self) -> [(usize, usize); 3] {
        let mut counts = [(0, 0); 3];
        let mut count = |which: usize, yes: bool| {
            counts[which].0 += usize::from(yes);
            counts[which].1 += 1;
        };
        for judged in self.0.iter().filter_map(|(_, judged)| judged.as_ref().ok()) {
            for (name, (value, half)) in &judged.few {
                let Some((truth, _)) = judged.many.get(name) else {
                    continue;
                };
                // The truth is a mean of runs too.
                let widened = half * (1.0 + f64::from(FEW) / f64::from(MANY)).sqrt();
                // What is the same in all runs has no interval to miss it.
                count(0, (value - truth).abs() <= widened + 1e-9);
            }
            let (value, half) = judged.few.get(INERT).copied().unwrap_or_default();
            count(1, value.abs() > half + 1e-9);
            let mains = judged
                .many
                .iter()
                .filter(|(name, _)| judged.ranks.contains_key(*name));
            let first = mains.max_by(|a, b| a.1.0.abs().total_cmp(&b.1.0.abs()));
            count(
                2,
                first.is_some_and(|(name, _)| judged.ranks.get(name) == Some(&1)),
            );
        }
        counts
    }

    /// What they come to.
    pub(crate) fn table(&self) -> String {
        let [(held, of), (alleged, inert), (right, ranked)] = self.counts();
        let share = |some: usize, all: usize| 100.0 * some as f64 / all.max(1) as f64;
        let mut out = String::new();
        let failed = self.0.iter().filter(|(_, judged)| judged.is_err()).count();
        let _ = writeln!(out, "{} specifications, {failed} failed", self.0.len());
        let _ = writeln!(
            out,
            "intervals of 95 % hold the truth: {held} of {of} ({:.1} %)",
            share(held, of)
        );
        let _ = writeln!(
            out,
            "a factor that does nothing is alleged: {alleged} of {inert} ({:.1} %)",
            share(alleged, inert)
        );
        let _ = writeln!(
            out,
            "the first of the ranking is the first: {right} of {ranked} ({:.1} %)",
            share(right, ranked)
        );
        for (seed, error) in self
            .0
            .iter()
            .filter_map(|(seed, judged)| Some((seed, judged.as_ref().err()?)))
            .take(5)
        {
            let _ = writeln!(out, "{seed}: {}", error.lines().next().unwrap_or_default());
        }
        out
    }
}
