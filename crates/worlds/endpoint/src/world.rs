//! What a world gives an endpoint: its clock, its connections, and ways to wait.

use crate::service::EndpointService;
use crate::times::DurationSamples;
use stackline_core::error::{Error, Result};
use stackline_core::run_record::Usage;
use stackline_core::time::{Duration, Instant};

/// What an endpoint does beside moving data units, for a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointStep {
    /// It requests a connection.
    Connect,
    /// The connection it requested is there.
    Connected,
    /// It begins to wait for a connection.
    Accept,
    /// The connection it waited for is there.
    Accepted,
    /// It ends the connection.
    Disconnect,
    /// The connection is over.
    Disconnected,
    /// The clock starts.
    ClockStarts,
    /// The clock stops.
    ClockStops,
    /// It waits for a word of the peer that is no data unit: that a transfer begins, or that all has arrived.
    AwaitsWord,
    /// The peer's stream has ended where a data unit would begin.
    StreamEnded,
}

/// What an endpoint has used of a processor until a moment, and where it runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndpointProcessor {
    /// Time and counters.
    pub usage: Usage,
    /// The core it is on.
    pub core: usize,
    /// Whether it is pinned to it.
    pub pinned: bool,
}

/// What an endpoint needs of its world.
///
/// # Errors
/// Waiting fails when the endpoint was stopped at once, connecting as the stack says.
#[expect(
    async_fn_in_trait,
    reason = "endpoints are generic over it; each world decides whether futures move between threads"
)]
pub trait EndpointWorld {
    /// An open connection.
    type Service: EndpointService;

    /// Now.
    fn now(&self) -> Instant;
    /// The time between two moments as the endpoint's host reads it.
    fn between(&self, from: Instant, to: Instant) -> Duration {
        to - from
    }
    /// What the host's clock reads at a moment.
    fn reading(&self, at: Instant) -> Instant {
        at
    }
    /// `ConnectRequest`.
    async fn connect(&mut self) -> Result<Self::Service>;
    /// `AwaitConnectIndication`.
    async fn accept(&mut self) -> Result<Self::Service>;
    /// Waits until `moment`; false when the limit came first.
    async fn sleep_until(&mut self, moment: Instant) -> Result<bool>;
    /// Waits until all endpoints of the run are ready to start their clocks.
    async fn barrier(&mut self) -> Result<()>;
    /// `ReadFile`.
    async fn read_file(&mut self, bytes: u64) -> Result<()>;
    /// `WriteFile`.
    async fn write_file(&mut self, bytes: u64) -> Result<()>;
    /// Whether the limit was reached, or a load is no longer wanted: end cleanly.
    fn limit_reached(&self) -> bool;
    /// Starts counting the time limit; a second time does nothing.
    fn start_time_limit(&self);
    /// What the endpoint has used of its processor when its clock starts or stops; absent where there is none.
    fn processor(&self, at: EndpointStep) -> Option<EndpointProcessor>;
    /// Records a step, when the run is traced.
    fn emit(&self, step: EndpointStep);
    /// The peer closed the connection at a wrong moment: the error, with what may be its cause in this world.
    fn vanished(&self, when: &str) -> Error;
    /// Room for about so many times; by default memory is taken here, so that recording takes none.
    fn times(&self, expected: u64) -> DurationSamples {
        DurationSamples::new(expected)
    }
}
