//! What a world (live, emulated or simulated) gives an endpoint: a clock, connections, and ways to wait.

use crate::service::EndpointService;
use crate::times::DurationSamples;
use stackline_core::error::{Error, Result};
use stackline_core::run_record::Usage;
use stackline_core::time::{Duration, Instant};
use std::collections::BTreeMap;

/// What an endpoint does beside moving data units; a trace records these steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointStep {
    /// The endpoint requests a connection.
    Connect,
    /// The requested connection is open.
    Connected,
    /// The endpoint begins to wait for a connection.
    Accept,
    /// The awaited connection is open.
    Accepted,
    /// The endpoint ends the connection.
    Disconnect,
    /// The connection is over.
    Disconnected,
    /// The clock starts.
    ClockStarts,
    /// The clock stops.
    ClockStops,
    /// The endpoint waits for a message of the peer that is not a data unit: that a transfer begins, or that everything
    /// has arrived.
    AwaitsWord,
    /// The peer's stream has ended where a data unit would begin.
    StreamEnded,
}

/// The processor time that an endpoint has used until a moment, and the core it runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndpointProcessor {
    /// Processor time and counters.
    pub usage: Usage,
    /// The number of the core that it runs on.
    pub core: usize,
    /// Whether the endpoint is pinned to that core.
    pub pinned: bool,
}

/// What an endpoint needs of its world. Operations of the language have the language's names.
///
/// # Errors
/// Waiting fails when the endpoint was stopped at once; connecting fails as the stack says.
#[expect(
    async_fn_in_trait,
    reason = "endpoints are generic over it; each world decides whether futures move between threads"
)]
pub trait EndpointWorld {
    /// An open connection.
    type Service: EndpointService;

    /// The present instant, by a clock that all worlds take as right.
    fn now(&self) -> Instant;
    /// The time between two instants as the clock of the endpoint's host measures it.
    fn between(&self, from: Instant, to: Instant) -> Duration {
        to - from
    }
    /// What the clock of the endpoint's host reads at an instant.
    fn reading(&self, at: Instant) -> Instant {
        at
    }
    /// `ConnectRequest`.
    async fn connect(&mut self) -> Result<Self::Service>;
    /// `AwaitConnectIndication`.
    async fn accept(&mut self) -> Result<Self::Service>;
    /// Waits until `moment`. Returns false when the time limit came first.
    async fn sleep_until(&mut self, moment: Instant) -> Result<bool>;
    /// Waits until all endpoints of the run are ready to start their clocks.
    async fn barrier(&mut self) -> Result<()>;
    /// `ReadFile`.
    async fn read_file(&mut self, bytes: u64) -> Result<()>;
    /// `WriteFile`.
    async fn write_file(&mut self, bytes: u64) -> Result<()>;
    /// Whether the time limit was reached, or a load is no longer wanted: the endpoint is then to end cleanly.
    fn limit_reached(&self) -> bool;
    /// Starts counting the time limit; later calls do nothing.
    fn start_time_limit(&self);
    /// The processor time that the endpoint has used, read when its clock starts or stops; `None` where the world has
    /// no processors to measure.
    fn processor(&self, at: EndpointStep) -> Option<EndpointProcessor>;
    /// Records a step, when the run is traced.
    fn emit(&self, step: EndpointStep);
    /// The error for a peer that closed the connection at a wrong moment (`when`), with the likely cause in this world.
    fn vanished(&self, when: &str) -> Error;
    /// How often the stack did what it counts, over all connections of the endpoint, by name. Asked for once, at its end.
    fn counts(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
    /// A collector for about `expected` times. By default its memory is allocated here, so that recording allocates
    /// nothing.
    fn times(&self, expected: u64) -> DurationSamples {
        DurationSamples::new(expected)
    }
}
