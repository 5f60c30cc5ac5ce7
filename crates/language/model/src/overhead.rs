//! The share of a rate that headers, frames and cells take.
//!
//! A packet is a network-layer packet. A link charges it by its own rule ([`Charge`]) or in cells.

use stackline_core::network::Charge;

/// IPv4 header without options, in bytes (RFC 791 section 3.1).
pub const IPV4: u64 = 20;
/// TCP header without options, in bytes (RFC 9293 section 3.1).
pub const TCP: u64 = 20;
/// TCP timestamps option, padded to whole words, in bytes (RFC 7323 appendix A).
pub const TCP_TIMESTAMPS: u64 = 12;
/// UDP header, in bytes (RFC 768).
pub const UDP: u64 = 8;
/// QUIC short header with a connection id of 8 bytes and a packet number of 2 bytes, and a STREAM frame with id and
/// offset but no length (RFC 9000 sections 17.3.1 and 19.8): 1 + 8 + 2 + 1 + 1 + 4 bytes.
pub const QUIC_SHORT_AND_STREAM: u64 = 17;
/// Authentication tag of a QUIC packet's encryption, in bytes (RFC 9001 section 5.3).
pub const QUIC_TAG: u64 = 16;
/// Header of an ATM cell, in bytes (ITU-T I.361).
pub const CELL_HEADER: u64 = 5;
/// Trailer of an AAL5 frame, in bytes (RFC 2684 section 3).
pub const AAL5_TRAILER: u64 = 8;

/// Header bytes of a TCP segment over IPv4.
#[must_use]
pub const fn tcp_headers(timestamps: bool) -> u64 {
    IPV4 + TCP + if timestamps { TCP_TIMESTAMPS } else { 0 }
}

/// Header bytes of a UDP datagram over IPv4.
#[must_use]
pub const fn udp_headers() -> u64 {
    IPV4 + UDP
}

/// Header bytes of a QUIC packet with stream data over UDP and IPv4.
#[must_use]
pub const fn quic_headers() -> u64 {
    udp_headers() + QUIC_SHORT_AND_STREAM + QUIC_TAG
}

/// Bytes that a frame occupies in cells of `cell_bytes`, with the AAL5 trailer: for ATM `ceil((n + 8) / 48) * 53`. A
/// cell that is no larger than its header can carry nothing; the frame's own bytes are returned then.
#[must_use]
pub const fn in_cells(frame_bytes: u64, cell_bytes: u64) -> u64 {
    let payload = cell_bytes.saturating_sub(CELL_HEADER);
    if payload == 0 {
        frame_bytes
    } else {
        (frame_bytes + AAL5_TRAILER).div_ceil(payload) * cell_bytes
    }
}

/// Bytes that count against a link's rate for a packet of `packet_bytes`.
#[must_use]
pub const fn charged_bytes(packet_bytes: u64, charge: Charge, cell_bytes: Option<u64>) -> u64 {
    match cell_bytes {
        // AAL5 cuts the packet itself into cells; there is no Ethernet frame around it.
        Some(cell) => in_cells(packet_bytes, cell),
        None => charge.bytes(packet_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count_to_f64;
    use proptest::prelude::*;

    /// The share of a link's rate that is left for data: `payload / charged`, 0 to 1; 0 without payload.
    fn useful_share(
        payload_bytes: u64,
        header_bytes: u64,
        charge: Charge,
        cell_bytes: Option<u64>,
    ) -> f64 {
        let charged = charged_bytes(payload_bytes + header_bytes, charge, cell_bytes);
        if charged == 0 {
            0.0
        } else {
            count_to_f64(payload_bytes) / count_to_f64(charged)
        }
    }

    #[test]
    fn tcp_over_ethernet() {
        // The usual figure: 1448 of 1538 bytes, 941 Mbit/s of a gigabit.
        let share = useful_share(1448, tcp_headers(true), Charge::Wire, None);
        assert!((share - 1448.0 / 1538.0).abs() < 1e-12);
        assert!(
            (useful_share(1460, tcp_headers(false), Charge::Packet, None) - 1460.0 / 1500.0).abs()
                < 1e-12
        );
    }

    #[test]
    fn small_frames_are_padded() {
        // 1 byte in 29 of IP is a frame of 64 bytes, 84 on the wire.
        assert_eq!(charged_bytes(29, Charge::Wire, None), 84);
        assert!((useful_share(1, udp_headers(), Charge::Wire, None) - 1.0 / 84.0).abs() < 1e-12);
    }

    #[test]
    fn cells() {
        // 40 bytes and the trailer of 8 fill one cell; one byte more needs two.
        assert_eq!(in_cells(40, 53), 53);
        assert_eq!(in_cells(41, 53), 106);
        // RFC 1626's MTU of 9180 bytes: 9188 / 48 = 191.4, so 192 cells.
        assert_eq!(in_cells(9180, 53), 192 * 53);
        assert_eq!(in_cells(100, 5), 100);
    }

    #[test]
    fn quic_costs_more_than_udp() {
        assert_eq!(quic_headers(), 61);
        assert_eq!(useful_share(0, 28, Charge::Packet, None), 0.0);
        assert_eq!(useful_share(0, 0, Charge::Packet, None), 0.0);
    }

    proptest! {
        #[test]
        fn a_share_is_a_share(payload in 0..1_000_000_u64, headers in 0..100_u64, cell in 1..2000_u64) {
            for charge in [Charge::Packet, Charge::Frame, Charge::Wire] {
                for cells in [None, Some(cell)] {
                    let share = useful_share(payload, headers, charge, cells);
                    prop_assert!((0.0..=1.0).contains(&share));
                }
            }
        }
    }
}
