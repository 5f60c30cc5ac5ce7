//! How a connection between coordinator and agent notices that the other machine is gone: keep-alive probes, as ssh's
//! `ServerAliveInterval=15`.

use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::TcpStream;
use std::time::Duration;

/// Silence before the first probe, and between two.
const PROBE: Duration = Duration::from_secs(15);
/// Unanswered probes before the connection is taken for dead.
const PROBES: u32 = 3;

/// Turns keep-alive probes on, and Nagle's algorithm off.
pub(super) fn keep_alive(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(PROBE)
        .with_interval(PROBE)
        .with_retries(PROBES);
    let socket = SockRef::from(socket);
    socket.set_tcp_keepalive(&keepalive)?;
    // TCP sends no keep-alive probes while data is unacknowledged; the user timeout bounds that case.
    socket.set_tcp_user_timeout(Some(PROBE * (PROBES + 1)))
}
