//! Summaries as JSON: the stable schema of `--json`, described in `docs/JSON.md`. Fields may be added, but never renamed or removed.

use crate::figure::Percentile;
use serde_json::{Map, Value, json as object};
use stackline_analyze::{RunMetric, SampleStatistics, SideSummary, Summary};
use stackline_core::plan::World;
use stackline_core::run_record::WakeUp;
use stackline_runs::StoredRun;

/// Data of a run that hold for all its measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportHeader {
    /// The version of stackline that measured.
    pub stackline: String,
    /// Path of the run directory.
    pub run: String,
    /// Root of all randomness.
    pub seed: u64,
    /// The world it ran in.
    pub world: World,
    /// What waking a core costs on the initiator's host, if measured.
    pub wake_up: Option<WakeUp>,
    /// Whether all planned runs were made.
    pub complete: bool,
    /// Whether it is still running.
    pub running: bool,
    /// Why it is incomplete, if known.
    pub reason: Option<String>,
}

impl ReportHeader {
    /// That of a kept run.
    #[must_use]
    pub fn from_run(run: &StoredRun) -> Self {
        let first = run.plan.measurements.first();
        Self {
            stackline: env!("CARGO_PKG_VERSION").into(),
            run: run.path.display().to_string(),
            seed: run.plan.seed,
            world: first.map_or(World::Live, |measurement| measurement.world),
            wake_up: wake_up(run),
            complete: run.complete,
            running: run.running,
            reason: run.reason.clone(),
        }
    }
}

/// The cost of waking a thread, if it was measured.
fn wake_up(run: &StoredRun) -> Option<WakeUp> {
    let worlds = run.environment.get("worlds")?.as_object()?.values();
    let hosts = worlds
        .filter_map(|world| world.get("hosts")?.as_object())
        .flat_map(|hosts| hosts.values());
    hosts
        .filter_map(|host| serde_json::from_value(host.get("wake_up")?.clone()).ok())
        .next()
}

/// A run and its summaries; `percentiles` are given in addition to the fixed ones.
#[must_use]
pub fn json(header: &ReportHeader, summaries: &[Summary], percentiles: &[Percentile]) -> Value {
    object!({
        "stackline": header.stackline,
        "run": header.run,
        "seed": header.seed,
        "world": header.world.to_string(),
        "wake_up": header.wake_up.map(|w| object!({"same_core_s": w.same_core_s, "other_core_s": w.other_core_s})),
        "complete": header.complete,
        "running": header.running,
        "reason": header.reason,
        "measurements": summaries.iter().map(|summary| measurement(summary, percentiles)).collect::<Vec<_>>(),
    })
}

fn measurement(s: &Summary, percentiles: &[Percentile]) -> Value {
    let parts = [described(s), measured(s), spent(s)];
    let mut value = Value::Object(parts.into_iter().flat_map(into_map).collect());
    for (name, metric, of) in [
        ("response_s", RunMetric::Response, s.response_s),
        ("connect_s", RunMetric::Connect, s.connect_s),
    ] {
        let Some(of) = of.filter(|_| !percentiles.is_empty()) else {
            continue;
        };
        let each = percentiles
            .iter()
            .map(|one| (one.name(), one.value_in(metric, s).into()))
            .collect::<Map<_, Value>>();
        value[name]["percentiles"] = each.into();
        for (one, why) in percentiles
            .iter()
            .filter_map(|one| Some((one, one.too_few(of.n)?)))
        {
            value["absent"][format!("{name} {}", one.name())] = why.into();
        }
    }
    value
}

fn into_map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// What the plan says about the measurement.
fn described(s: &Summary) -> Value {
    let variables: Map<String, Value> = s
        .variables
        .iter()
        .map(|(name, value)| (name.clone(), (*value).into()))
        .collect();
    object!({
        "measurement": s.measurement,
        "text": s.text,
        "part": s.part,
        "application": s.application,
        "stack": s.stack,
        "world": s.world.to_string(),
        "from": s.from,
        "to": s.to,
        "background": s.background,
        "replicas": s.replicas,
        "variables": variables,
        "swept": (!s.variables.is_empty()).then(|| s.swept_values()),
        "unit_bytes": s.unit_bytes,
        "reply_bytes": s.reply_bytes,
    })
}

/// The measured figures.
fn measured(s: &Summary) -> Value {
    object!({
        "runs": s.runs,
        "units": s.units,
        "elapsed_s": statistics(s.elapsed_s.as_ref()),
        "throughput_bit_s": statistics(s.throughput_bit_s.as_ref()),
        "response_s": statistics(s.response_s.as_ref()),
        "fairness": statistics(s.fairness.as_ref()),
        "response_run_s": statistics(s.response_run_s.as_ref()),
        "connect_s": statistics(s.connect_s.as_ref()),
        "connect_run_s": statistics(s.connect_run_s.as_ref()),
        "rate_of": s.rate_of,
        "rate_per_s": statistics(s.rate_per_s.as_ref()),
        "transaction_s": statistics(s.transaction_s.as_ref()),
        "transactions_per_s": statistics(s.transactions_per_s.as_ref()),
        "lateness_s": statistics(s.lateness_s.as_ref()),
        "generator_lateness_s": statistics(s.generator_lateness_s.as_ref()),
        "generator_late_share": s.generator_late_share,
        "backlog_s": s.backlog_s,
        "marks": s.marks.iter().map(|(name, mark)| (name.clone(), statistics(Some(mark)))).collect::<Map<_, _>>(),
        "main": s.main,
        "normalised_sd": s.normalised_sd,
        "run_values": s.run_values,
        "lost": s.lost,
        "lost_share": s.lost_share,
        "duplicated": s.duplicated,
        "reordered": s.reordered,
        "network": s.network,
        "flags": s.flags,
        "absent": s.absent,
    })
}

/// CPU time and other costs.
fn spent(s: &Summary) -> Value {
    // A far end's processor was not measured.
    let is_measured = !s.absent.contains_key("responder");
    let sides = |cost: Value| match cost {
        Value::Object(mut sides) if !is_measured => {
            sides.insert("responder".to_owned(), Value::Null);
            Value::Object(sides)
        }
        cost => cost,
    };
    object!({
        "cpu": { "initiator": cpu(&s.initiator), "responder": is_measured.then(|| cpu(&s.responder)) },
        "cpu_s_per_gb": sides(object!(s.cpu_s_per_gb)),
        "cpu_us_per_call": sides(object!(s.cpu_us_per_call)),
        "host_cpu_s_per_gb": s.host_cpu_s_per_gb,
        "host_cpu_us_per_call": s.host_cpu_us_per_call,
        "initiator": s.initiator,
        "responder": s.responder,
    })
}

fn cpu(side: &SideSummary) -> Value {
    object!({ "user_s": side.usage.user_s, "system_s": side.usage.system_s })
}

/// Statistics as the object S of the schema, or null.
pub(crate) fn statistics(statistics: Option<&SampleStatistics>) -> Value {
    let Some(s) = statistics else {
        return Value::Null;
    };
    object!({
        "n": s.n, "mean": s.mean, "sd": s.sd, "min": s.min, "max": s.max, "median": s.median,
        "p90": s.p90, "p99": s.p99, "p999": s.p999,
        // No rate and no time is below zero.
        "ci95": s.ci95.map(|(low, high)| (low.max(0.0), high)),
    })
}

#[cfg(test)]
mod tests;
