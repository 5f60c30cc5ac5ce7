//! Derives the figures of a smoltcp connection from the segments that leave and reach its end: retransmissions, round-trip times,
//! bytes. smoltcp does not publish its own estimates; these follow RFC 6298 with Karn's rule, as Linux's do.
//!
//! `tcp.rs` uses the header fields, but not the tracker, to recognise a SYN.

use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant;

/// Flags of a TCP header.
pub(crate) const FIN: u8 = 0x01;
pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const ACK: u8 = 0x10;

/// The fields of a TCP header that are used here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimTcpHeaderFields {
    pub(crate) source: u16,
    pub(crate) destination: u16,
    pub(crate) sequence: u32,
    pub(crate) acknowledged: u32,
    pub(crate) flags: u8,
}

impl SimTcpHeaderFields {
    /// Reads the fields from an IPv4 header of 20 bytes and the TCP header behind it.
    ///
    /// # Panics
    /// If `header` is shorter than 34 bytes, which those made in this crate are not.
    pub(crate) fn from_header(header: &[u8]) -> Self {
        let word = |at: usize| {
            u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        Self {
            source: half(20),
            destination: half(22),
            sequence: word(24),
            acknowledged: word(28),
            flags: header[33],
        }
    }

    pub(crate) const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// One end's view of its segments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SimSegmentTracker {
    /// The sequence number after the last byte ever sent.
    sent: u32,
    /// The sequence number of the first byte that is not acknowledged.
    unacknowledged: u32,
    /// The SYN has left, so both of these are known.
    begun: bool,
    /// The segment being timed: its end and when it left.
    timed: Option<(u32, Instant)>,
    /// Mean deviation of the round-trip time, s.
    rtt_var_s: f64,
    /// Bytes acknowledged so far.
    acknowledged: u64,
    transport: TransportRecord,
}

/// Whether sequence number `a` is after `b`, modulo 2^32.
const fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

impl SimSegmentTracker {
    /// A segment with `carried` bytes of data leaves. Data sent before is a retransmission, which ends the timing (Karn's rule).
    pub(crate) fn leaves(&mut self, fields: &SimTcpHeaderFields, carried: usize, now: Instant) {
        if !self.begun {
            // The first segment is the SYN, which takes one sequence number.
            self.begun = true;
            self.sent = fields.sequence.wrapping_add(1);
            self.unacknowledged = self.sent;
            return;
        }
        if carried == 0 {
            return;
        }
        let end = fields.sequence.wrapping_add(carried as u32);
        if after(end, self.sent) {
            self.sent = end;
            self.timed = self.timed.or(Some((end, now)));
        } else {
            self.transport.retransmits += 1;
            self.timed = None;
        }
    }

    /// A segment with `carried` bytes of data arrives.
    pub(crate) fn arrives(&mut self, fields: &SimTcpHeaderFields, carried: usize, now: Instant) {
        self.transport.bytes_received += carried as u64;
        if !fields.has(ACK) || !self.begun || !after(fields.acknowledged, self.unacknowledged) {
            return;
        }
        let upto = if after(fields.acknowledged, self.sent) {
            self.sent
        } else {
            fields.acknowledged
        };
        self.acknowledged += u64::from(upto.wrapping_sub(self.unacknowledged));
        self.unacknowledged = upto;
        if let Some((end, left)) = self.timed
            && !after(end, upto)
        {
            self.sample((now - left).seconds());
            self.timed = None;
        }
    }

    fn sample(&mut self, rtt: f64) {
        let t = &mut self.transport;
        if t.rtt_s == 0.0 {
            (t.rtt_s, self.rtt_var_s) = (rtt, rtt / 2.0);
        } else {
            self.rtt_var_s += ((t.rtt_s - rtt).abs() - self.rtt_var_s) / 4.0;
            t.rtt_s += (rtt - t.rtt_s) / 8.0;
        }
    }

    pub(crate) const fn transport(&self, mss: u64) -> TransportRecord {
        let (rtt_var_s, bytes_acked) = (Some(self.rtt_var_s), Some(self.acknowledged));
        TransportRecord {
            mss_bytes: mss,
            rtt_var_s,
            bytes_acked,
            ..self.transport
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(sequence: u32, acknowledged: u32, flags: u8) -> SimTcpHeaderFields {
        SimTcpHeaderFields {
            source: 1,
            destination: 2,
            sequence,
            acknowledged,
            flags,
        }
    }

    #[test]
    fn a_segment_sent_again_counts_and_is_not_timed() {
        let mut segments = SimSegmentTracker::default();
        segments.leaves(&fields(u32::MAX, 0, SYN), 0, Instant(0));
        segments.leaves(&fields(0, 0, ACK), 1000, Instant(0));
        segments.arrives(&fields(0, 1000, ACK), 0, Instant(20_000_000));
        segments.leaves(&fields(1000, 0, ACK), 1000, Instant(20_000_000));
        segments.leaves(&fields(1000, 0, ACK), 1000, Instant(1_000_000_000));
        segments.arrives(&fields(0, 2000, ACK), 5, Instant(1_020_000_000));
        let transport = segments.transport(1448);
        assert_eq!(
            (
                transport.retransmits,
                transport.bytes_acked,
                transport.bytes_received
            ),
            (1, Some(2000), 5)
        );
        assert!((transport.rtt_s - 0.02).abs() < 1e-12);
    }
}
