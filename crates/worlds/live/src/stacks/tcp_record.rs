//! Converts the kernel's `TCP_INFO` of a connection to the transport record of a run.

use stackline_core::run_record::TransportRecord;
use stackline_os::tcp_info::TcpInfo;
use std::io;
use std::os::fd::BorrowedFd;

/// Whether sent data is unacknowledged or still unsent; false for a socket that is not TCP.
pub(super) fn is_in_transit(socket: BorrowedFd<'_>) -> bool {
    TcpInfo::read(socket)
        .is_ok_and(|info| info.unacked > 0 || info.unsent_bytes.is_some_and(|bytes| bytes > 0))
}

/// Bytes that the peer's kernel has acknowledged; `None` of a socket that is not TCP.
pub(super) fn acknowledged_bytes(socket: BorrowedFd<'_>) -> Option<u64> {
    TcpInfo::read(socket).ok()?.acked_bytes
}

/// The transport record of a TCP socket; an error for any other socket.
#[expect(clippy::cast_precision_loss, reason = "microseconds of one connection")]
pub(super) fn read_tcp_record(socket: BorrowedFd<'_>) -> io::Result<TransportRecord> {
    let info = TcpInfo::read(socket)?;
    let seconds = |us: u64| us as f64 / 1e6;
    Ok(TransportRecord {
        retransmits: info.total_retransmits.into(),
        rtt_s: seconds(info.rtt_us.into()),
        rtt_var_s: Some(seconds(info.rtt_var_us.into())),
        cwnd_segments: Some(info.cwnd_segments.into()),
        mss_bytes: info.mss_bytes.into(),
        busy_s: info.busy_us.map(seconds),
        receive_window_limited_s: info.receive_window_limited_us.map(seconds),
        send_buffer_limited_s: info.send_buffer_limited_us.map(seconds),
        bytes_acked: info.acked_bytes,
        bytes_received: info.received_bytes.unwrap_or(0),
        spent: None,
    })
}
