//! Observes the bytes that a QUIC connection has in flight, by wrapping quinn-proto's congestion controller, which is called for each
//! packet sent, each acknowledgement and each loss.
//!
//! The wrapper passes every call on and decides nothing: the congestion control is quinn's own.

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use std::any::Any;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant as Moment;

/// What the wrapper has observed.
#[derive(Debug, Default)]
pub(super) struct SimQuicFlight {
    /// Bytes in flight.
    in_flight: AtomicU64,
    /// Acknowledgements have come since the last [`SimQuicFlight::take`].
    acknowledged: AtomicBool,
    /// At the last acknowledgement, the application had given too little data (`app_limited`).
    starved: AtomicBool,
    /// Slow start: the congestion window is below the threshold.
    starts: AtomicBool,
    /// When the last loss was detected; `None` once a packet that was sent later is acknowledged.
    recovers: Mutex<Option<Moment>>,
}

/// What an acknowledgement shows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acknowledged {
    /// Before it, neither the congestion window nor pacing held anything back: all data was in flight.
    pub(super) starved: bool,
    /// Nothing is in flight any more.
    pub(super) all: bool,
    /// The sender was in slow start.
    pub(super) starts: bool,
    /// The sender was recovering from a loss.
    pub(super) recovers: bool,
}

impl SimQuicFlight {
    /// What the last acknowledgement showed; `None` if none has come since the last call.
    pub(super) fn take(&self) -> Option<Acknowledged> {
        let came = self.acknowledged.load(Relaxed);
        self.acknowledged.store(false, Relaxed);
        came.then(|| Acknowledged {
            starved: self.starved.load(Relaxed),
            all: self.bytes() == 0,
            starts: self.starts.load(Relaxed),
            recovers: self.recovery().is_some(),
        })
    }

    fn recovery(&self) -> std::sync::MutexGuard<'_, Option<Moment>> {
        // A panic cannot leave the value half-written, so a poisoned lock is harmless.
        self.recovers
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Bytes in flight, as QUIC counts them: of whole packets.
    pub(super) fn bytes(&self) -> u64 {
        self.in_flight.load(Relaxed)
    }

    /// The observations of a connection whose congestion controller [`WatchedQuicFactory`] made.
    pub(super) fn from_connection(connection: &quinn_proto::Connection) -> Arc<Self> {
        let watch = connection
            .congestion_state()
            .clone_box()
            .into_any()
            .downcast::<WatchedQuicController>();
        watch.map(|watch| watch.flight).unwrap_or_default()
    }
}

/// Makes congestion controllers that are observed.
pub(super) struct WatchedQuicFactory<F>(pub(super) Arc<F>);

impl<F: ControllerFactory> ControllerFactory for WatchedQuicFactory<F> {
    fn build(self: Arc<Self>, now: Moment, mtu: u16) -> Box<dyn Controller> {
        Box::new(WatchedQuicController {
            inner: Arc::clone(&self.0).build(now, mtu),
            flight: Arc::default(),
        })
    }
}

/// A congestion controller, and where its calls are noted.
struct WatchedQuicController {
    inner: Box<dyn Controller>,
    flight: Arc<SimQuicFlight>,
}

impl Controller for WatchedQuicController {
    fn on_sent(&mut self, now: Moment, bytes: u64, last_packet_number: u64) {
        self.flight
            .in_flight
            .store(self.flight.bytes() + bytes, Relaxed);
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Moment,
        sent: Moment,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        let mut recovers = self.flight.recovery();
        *recovers = recovers.filter(|since| sent <= *since);
        drop(recovers);
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Moment,
        in_flight: u64,
        app_limited: bool,
        largest: Option<u64>,
    ) {
        self.flight.in_flight.store(in_flight, Relaxed);
        let ControllerMetrics {
            congestion_window,
            ssthresh,
            ..
        } = self.inner.metrics();
        let starts = ssthresh.is_some_and(|threshold| congestion_window < threshold);
        self.flight.starts.store(starts, Relaxed);
        self.flight.starved.store(app_limited, Relaxed);
        self.flight.acknowledged.store(true, Relaxed);
        self.inner.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(
        &mut self,
        now: Moment,
        sent: Moment,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.flight
            .in_flight
            .store(self.flight.bytes().saturating_sub(lost_bytes), Relaxed);
        *self.flight.recovery() = Some(now);
        self.inner
            .on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            inner: self.inner.clone_box(),
            flight: Arc::clone(&self.flight),
        })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
