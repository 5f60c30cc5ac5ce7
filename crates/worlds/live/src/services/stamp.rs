//! The reflector of STAMP (RFC 8762) without authentication, which clients of TWAMP Light (RFC 5357, appendix I) understand too. It keeps
//! no state: its sequence numbers are the sender's.

use super::contract::receive_datagrams;
use stackline_guard::stop::StopSwitch;
use std::net::UdpSocket;
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of a test packet (RFC 8762, 4.2.1 and 4.3.1).
const PACKET: usize = 44;
/// Seconds from 1900, where NTP's time begins, to 1970.
const NTP_OFFSET_S: u64 = 2_208_988_800;
/// An error estimate that says: not synchronised, multiplier 1 (RFC 4656, 4.1.2).
const ERROR_ESTIMATE: [u8; 2] = [0x00, 0x01];
/// The TTL is not read here: unknown.
const UNKNOWN_TTL: u8 = 0;

/// Reflects test packets.
pub(super) fn reflect(socket: &UdpSocket, stop: &StopSwitch) {
    receive_datagrams(socket, stop, |packet, from| {
        let received = ntp_time(SystemTime::now());
        if packet.len() >= PACKET {
            turn_around(packet, received, ntp_time(SystemTime::now()));
            let _ = socket.send_to(packet, from);
        }
    });
}

/// Makes the reflector's packet of the sender's, of the same length.
fn turn_around(packet: &mut [u8], received: [u8; 8], sent: [u8; 8]) {
    let mut of_sender = [0; 14];
    of_sender.copy_from_slice(&packet[..14]);
    packet[4..12].copy_from_slice(&sent);
    packet[12..14].copy_from_slice(&ERROR_ESTIMATE);
    packet[14..16].fill(0);
    packet[16..24].copy_from_slice(&received);
    packet[24..38].copy_from_slice(&of_sender);
    packet[38..40].fill(0);
    packet[40] = UNKNOWN_TTL;
    packet[41..PACKET].fill(0);
}

/// A moment as NTP writes it: seconds and fractions of 2^-32 s.
fn ntp_time(moment: SystemTime) -> [u8; 8] {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs().wrapping_add(NTP_OFFSET_S) as u32;
    let fraction = (u64::from(since.subsec_nanos()) << 32) / 1_000_000_000;
    let mut time = [0; 8];
    time[..4].copy_from_slice(&seconds.to_be_bytes());
    time[4..].copy_from_slice(&(fraction as u32).to_be_bytes());
    time
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_reflected_packet_has_the_sender_s_numbers_and_both_times() {
        let mut packet: Vec<u8> = (1..=60).collect();
        turn_around(&mut packet, [0xAA; 8], [0xBB; 8]);
        // The number stays; behind it the reflector's time and its error estimate.
        assert_eq!(packet[..4], [1, 2, 3, 4]);
        assert_eq!(
            (&packet[4..12], &packet[12..16]),
            (&[0xBB; 8][..], &[0, 1, 0, 0][..])
        );
        assert_eq!(packet[16..24], [0xAA; 8]);
        let of_sender: Vec<u8> = (1..=14).collect();
        assert_eq!(
            (&packet[24..38], &packet[38..44]),
            (&of_sender[..], &[0; 6][..])
        );
        // Padding comes back as it was.
        assert_eq!((packet.len(), packet[44]), (60, 45));
    }

    #[test]
    fn ntp_counts_from_1900() {
        let half = UNIX_EPOCH + Duration::from_millis(500);
        assert_eq!(ntp_time(half), [0x83, 0xAA, 0x7E, 0x80, 0x80, 0, 0, 0]);
    }
}
