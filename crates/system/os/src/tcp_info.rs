//! Reads the kernel's `struct tcp_info` (`include/uapi/linux/tcp.h`); no other file depends on its layout.
//!
//! The structure only ever grows at its end: an older kernel's is shorter and lacks the later fields.

use crate::sys::socket_option::read_bytes;
use std::io;
use std::os::fd::BorrowedFd;

/// The fields that are used here, in the kernel's units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// `tcpi_ca_state`: 0 open, 1 disorder, 2 cwr, 3 recovery, 4 loss.
    pub congestion_state: u8,
    /// `tcpi_options`: the features that this connection uses, as bits.
    pub options: u8,
    /// The maximum segment size for sending, bytes.
    pub mss_bytes: u32,
    /// Segments sent and not acknowledged.
    pub unacked: u32,
    /// Segments acknowledged selectively.
    pub sacked: u32,
    /// Segments that count as lost.
    pub lost: u32,
    /// Segments retransmitted and not acknowledged.
    pub retransmitted: u32,
    /// The smoothed round-trip time, us.
    pub rtt_us: u32,
    /// The mean deviation of the round-trip time, us.
    pub rtt_var_us: u32,
    /// The congestion window, in segments.
    pub cwnd_segments: u32,
    /// Segments retransmitted since the connection began.
    pub total_retransmits: u32,
    /// Bytes sent and acknowledged; since Linux 4.1.
    pub acked_bytes: Option<u64>,
    /// Bytes received; since Linux 4.1.
    pub received_bytes: Option<u64>,
    /// Bytes in the send buffer that were not sent; since Linux 4.6.
    pub unsent_bytes: Option<u32>,
    /// The least round-trip time of the last minutes; since Linux 4.6.
    pub least_rtt_us: Option<u32>,
    /// Time with data to send; since Linux 4.10, as are the next two.
    pub busy_us: Option<u64>,
    /// Time limited by the peer's receive window.
    pub receive_window_limited_us: Option<u64>,
    /// Time limited by the send buffer.
    pub send_buffer_limited_us: Option<u64>,
    /// The peer's receive window; since Linux 5.4.
    pub send_window_bytes: Option<u32>,
}

/// `TCPI_OPT_SYN_DATA`.
const SYN_DATA: u8 = 32;
/// More than the structure has in any kernel, bytes.
const ROOM: usize = 512;

impl TcpInfo {
    /// Queries the state of a socket.
    ///
    /// # Errors
    /// If the socket is not TCP.
    pub fn read(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let mut room = [0; ROOM];
        let length = read_bytes(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut room)?;
        Self::parse(&room[..length]).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Whether data that went in the SYN were acknowledged (RFC 7413): `TCPI_OPT_SYN_DATA`.
    #[must_use]
    pub const fn has_syn_data(&self) -> bool {
        self.options & SYN_DATA != 0
    }

    /// Parses the structure's bytes; `None` if they lack a field that every kernel has.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            congestion_state: *bytes.get(1)?,
            options: *bytes.get(5)?,
            mss_bytes: read_u32(bytes, 16)?,
            unacked: read_u32(bytes, 24)?,
            sacked: read_u32(bytes, 28)?,
            lost: read_u32(bytes, 32)?,
            retransmitted: read_u32(bytes, 36)?,
            rtt_us: read_u32(bytes, 68)?,
            rtt_var_us: read_u32(bytes, 72)?,
            cwnd_segments: read_u32(bytes, 80)?,
            total_retransmits: read_u32(bytes, 100)?,
            acked_bytes: read_u64(bytes, 120),
            received_bytes: read_u64(bytes, 128),
            unsent_bytes: read_u32(bytes, 144),
            least_rtt_us: read_u32(bytes, 148).filter(|us| *us != u32::MAX),
            busy_us: read_u64(bytes, 168),
            receive_window_limited_us: read_u64(bytes, 176),
            send_buffer_limited_us: read_u64(bytes, 184),
            send_window_bytes: read_u32(bytes, 228),
        })
    }
}

/// The 32-bit number at an offset of what the kernel wrote.
#[must_use]
pub fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The 64-bit number at an offset of what the kernel wrote.
#[must_use]
pub fn read_u64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;

    #[test]
    fn an_older_kernel_lacks_later_fields() {
        // Linux 4.1: up to bytes_received.
        let info = TcpInfo::parse(&[1; 136]).unwrap();
        assert_eq!(info.acked_bytes, Some(0x0101_0101_0101_0101));
        assert_eq!(
            (info.busy_us, info.unsent_bytes, info.send_window_bytes),
            (None, None, None)
        );
        assert_eq!(TcpInfo::parse(&[1; 90]), None);
    }

    #[test]
    fn a_socket_that_is_not_tcp_has_no_tcp_info() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(TcpInfo::read(listener.as_fd()).is_ok());
        let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(TcpInfo::read(datagrams.as_fd()).is_err());
    }
}
