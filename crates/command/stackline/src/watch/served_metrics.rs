//! The metrics of a watch and the listener that serves them (`watch --listen`).

use crate::exit::Result;
use stackline_events::EventLog;
use stackline_exchange::openmetrics::MetricsListener;
use stackline_exchange::openmetrics::watch_metrics::WatchMetrics;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Metrics that are served until this is dropped.
pub(super) struct ServedMetrics {
    metrics: Arc<Mutex<WatchMetrics>>,
    listener: MetricsListener,
}

impl ServedMetrics {
    /// Serves the metrics of a watch that samples at `interval`.
    pub(super) fn start(address: SocketAddr, interval: Duration) -> Result<Self> {
        let metrics = WatchMetrics::new(interval, env!("CARGO_PKG_VERSION"));
        let metrics = Arc::new(Mutex::new(metrics));
        let scraped = Arc::clone(&metrics);
        let collect = move || {
            scraped
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .families()
        };
        let listener = MetricsListener::start(address, collect)?;
        Ok(Self { metrics, listener })
    }

    /// The URL to scrape.
    pub(super) fn url(&self) -> String {
        self.listener.url()
    }

    /// Adds events.
    pub(super) fn add(&self, log: &EventLog) {
        self.metrics
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .add(log);
    }
}
