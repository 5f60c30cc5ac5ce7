//! What a server for clients of other tools is, whatever its protocol.

use stackline_guard::stop::StopSwitch;
use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// How long a client may be silent, or not take what it is sent.
pub(super) const SILENCE: Duration = Duration::from_secs(60);

/// A connection's server.
pub(super) trait StreamServer: Send + Sync {
    /// Serves a connection to its end. `number` counts the connections of the service, in the order in which they came. An error is the
    /// client's, and ends the connection.
    fn serve(&self, stream: TcpStream, number: u64) -> io::Result<()>;
}

/// Serves what comes at a datagram socket until the switch is thrown.
pub(super) type DatagramServer = fn(&UdpSocket, &StopSwitch);

/// Passes each datagram of a socket to `each` until the switch is thrown.
pub(super) fn receive_datagrams(
    socket: &UdpSocket,
    stop: &StopSwitch,
    mut each: impl FnMut(&mut [u8], SocketAddr),
) {
    let mut room = vec![0; 1 << 16];
    while !stop.is_stopped() {
        // An error is a timeout, or of an earlier answer that nobody took.
        if let Ok((bytes, from)) = socket.recv_from(&mut room) {
            each(&mut room[..bytes], from);
        }
    }
}
