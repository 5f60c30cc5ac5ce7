//! What others collect of a probe: metrics that are served, metrics and traces that are pushed.

use super::probing::MadeProbe;
use crate::exit::Result;
use crate::flags::ProbeFlags;
use crate::output;
use stackline_analyze::alerts::AlertStates;
use stackline_exchange::openmetrics::MetricsListener;
use stackline_exchange::otlp::{MetricTimes, metrics_protobuf};
use stackline_exchange::probe_metrics::{AlertMetric, ProbeMetrics, ProbeTroubles};
use stackline_live::push::{PushQueue, PushUrl, PushedPost};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Most pushes that wait for a collector that is down.
const MOST_WAITING: usize = 64;
/// How long the end of all waits for the collector.
const LAST_WAIT: Duration = Duration::from_secs(5);
/// The media type of OTLP's messages.
const PROTOBUF: &str = "application/x-protobuf";

/// Serves and pushes.
pub(super) struct Telemetry {
    metrics: Arc<Mutex<ProbeMetrics>>,
    collector: Option<PushQueue>,
    start_ns: u64,
    /// Serves until it is dropped.
    _listener: Option<MetricsListener>,
}

impl Telemetry {
    /// Starts what the flags ask for.
    pub(super) fn start(flags: &ProbeFlags, probe: &str) -> Result<Self> {
        let metrics = Arc::new(Mutex::new(ProbeMetrics::new(probe.to_owned())));
        let url = flags.otlp.as_deref().map(PushUrl::parse).transpose();
        let url = url.map_err(|error| error.within("--otlp"))?;
        let served = Arc::clone(&metrics);
        let listener = flags
            .listen
            .map(|address| MetricsListener::start(address, move || locked(&served).families()))
            .transpose()?;
        if let Some(listener) = &listener {
            output::say(&format_args!("metrics at {}", listener.url()));
        }
        Ok(Self {
            metrics,
            collector: url
                .map(|url| PushQueue::start(url, MOST_WAITING))
                .transpose()?,
            start_ns: now_ns(),
            _listener: listener,
        })
    }

    /// Takes what a probe yielded, and pushes it.
    pub(super) fn take(&self, made: &MadeProbe, states: &AlertStates, mut troubles: ProbeTroubles) {
        let firing = states.firing().map(|(alert, row, is_firing)| AlertMetric {
            alert: alert.to_owned(),
            measurement: row.to_owned(),
            is_firing,
        });
        troubles.unpushed = self.lost();
        let families = {
            let mut metrics = locked(&self.metrics);
            metrics.observe(&made.record);
            metrics.set(firing.collect(), troubles);
            self.collector.as_ref().map(|_| metrics.families())
        };
        let (Some(collector), Some(families)) = (&self.collector, families) else {
            return;
        };
        let times = MetricTimes {
            start_ns: self.start_ns,
            now_ns: now_ns(),
        };
        collector.push(PushedPost {
            below: "/v1/metrics",
            content_type: PROTOBUF,
            body: metrics_protobuf(&families, times),
        });
        if let Some(spans) = made.spans.as_ref().filter(|spans| !spans.is_empty()) {
            collector.push(PushedPost {
                below: "/v1/traces",
                content_type: PROTOBUF,
                body: spans.clone(),
            });
        }
    }

    fn lost(&self) -> u64 {
        let counts = self.collector.as_ref().map(PushQueue::counts);
        counts.map_or(0, |counts| counts.dropped + counts.refused)
    }

    /// What there is to say since the last call.
    pub(super) fn take_news(&self) -> Option<String> {
        self.collector.as_ref().and_then(PushQueue::take_news)
    }

    /// Waits a bounded time for the last pushes. Returns what to say of those that are lost.
    pub(super) fn finish(self) -> Option<String> {
        let counts = self.collector?.finish(LAST_WAIT);
        let lost = counts.dropped + counts.refused;
        (lost > 0).then(|| format!("pushes that are lost: {lost} of {}", lost + counts.sent))
    }
}

fn locked(metrics: &Mutex<ProbeMetrics>) -> MutexGuard<'_, ProbeMetrics> {
    metrics.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Now, ns since 1970.
fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}
