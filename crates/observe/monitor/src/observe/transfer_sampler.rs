//! Samples what the kernel knows of the TCP connections of a network namespace that carry much data (`TCP_INFO`): how long a sender was
//! held back by its peer's window or its own send buffer cannot be seen in packets. It keeps nothing from one sample to the next.

use crate::sock_diag::{DiagSocket, SockDiag};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;

pub use crate::sock_diag::TcpInfoCounters;

/// A connection that carried fewer bytes in both directions is left out: it holds short requests or answers.
const LEAST_BYTES: u64 = 64 << 10;
/// The most connections of one sample.
const MOST_CONNECTIONS: usize = 512;

/// One end of a connection at the time of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransferSample {
    /// The address of this end.
    pub local: SocketAddr,
    /// The address of the other end.
    pub remote: SocketAddr,
    /// The kernel's identifier of the socket, which is not used again.
    pub socket: u64,
    /// Bytes that arrived and were not read.
    pub receive_queue_bytes: u32,
    /// The counters since the connection began.
    pub counters: TcpInfoCounters,
}

/// Samples the connections of one network namespace.
#[derive(Debug)]
pub struct TransferSampler(SockDiag);

impl TransferSampler {
    /// Samples the network namespace of the calling thread.
    ///
    /// # Errors
    /// Where the kernel does not list sockets (sock_diag(7)); the text says why.
    pub fn open() -> Result<Self, String> {
        SockDiag::open().map(Self)
    }

    /// Samples another network namespace, such as `/proc/PID/ns/net`, after joining the user namespace if one is given.
    ///
    /// # Errors
    /// As [`open`](Self::open); without the right to join the namespaces.
    pub fn open_in(net: BorrowedFd<'_>, user: Option<BorrowedFd<'_>>) -> Result<Self, String> {
        SockDiag::open_in(net, user).map(Self)
    }

    /// The connections that have carried much data, at most 512.
    ///
    /// # Errors
    /// If the kernel refuses to list them; the text says why.
    pub fn sample(&mut self) -> Result<Vec<TransferSample>, String> {
        let sockets = self.0.sockets()?.into_iter();
        Ok(sockets
            .filter_map(transfer)
            .take(MOST_CONNECTIONS)
            .collect())
    }
}

fn transfer(socket: DiagSocket) -> Option<TransferSample> {
    let counters = socket.counters?;
    let carried = counters.acked_bytes.max(socket.received_bytes)?;
    (carried >= LEAST_BYTES).then_some(TransferSample {
        local: socket.pair.local,
        remote: socket.pair.remote,
        socket: socket.cookie,
        receive_queue_bytes: socket.receive_queue_bytes,
        counters,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn only_connections_that_carried_much_are_sampled_at_both_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connect = || {
            let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (near, listener.accept().unwrap().0)
        };
        let ((mut large, mut reader), (mut small, _kept)) = (connect(), connect());
        large.write_all(&[7; 100_000]).unwrap();
        reader.read_exact(&mut [0; 100_000]).unwrap();
        small.write_all(&[7; 100]).unwrap();
        let samples = TransferSampler::open().unwrap().sample().unwrap();
        let is_sampled = |stream: &TcpStream| {
            let local = stream.local_addr().unwrap();
            let remote = stream.peer_addr().unwrap();
            let mut all = samples.iter();
            all.any(|sample| (sample.local, sample.remote) == (local, remote))
        };
        assert_eq!(
            [&large, &reader, &small].map(is_sampled),
            [true, true, false]
        );
    }
}
