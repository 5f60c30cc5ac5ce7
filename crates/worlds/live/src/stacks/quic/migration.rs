//! Connection migration (RFC 9000, 9): the initiator's socket changes its port every so often, and its connections go on.

use super::counts::QuicCounts;
use super::sockets::client_socket;
use crate::stacks::contract::LiveConnectParameters;
use quinn::Endpoint;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{self, MissedTickBehavior};

/// The shortest time between two changes of the address: an endpoint does not spend its time on new sockets.
const LEAST_INTERVAL: Duration = Duration::from_millis(1);

/// How often the address changes; `None` where it stays.
pub(super) fn interval(parameters: &LiveConnectParameters) -> Option<Duration> {
    let seconds = parameters.stack.seconds("migrate").filter(|s| *s > 0.0)?;
    Some(Duration::from_secs_f64(seconds.min(1e9)).max(LEAST_INTERVAL))
}

/// Gives the endpoint another socket every so often, as long as it has a connection. Runs until the endpoint's runtime ends.
pub(super) async fn migrate(
    endpoint: Endpoint,
    server: SocketAddr,
    parameters: LiveConnectParameters,
    interval: Duration,
    counts: Arc<QuicCounts>,
) {
    let mut ticks = time::interval(interval);
    // Between two operations nobody drives the endpoint: what was missed then is not made up for.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    loop {
        ticks.tick().await;
        if endpoint.open_connections() == 0 {
            continue;
        }
        // A socket that cannot be had, as when all ports are taken, leaves the old one in use.
        let Ok(socket) = client_socket(server, &parameters) else {
            continue;
        };
        if endpoint.rebind(UdpSocket::from(socket)).is_ok() {
            counts.add_migration();
        }
    }
}
