//! Checksums of the Internet protocols (RFC 1071), and words in network byte order.

use super::header::NETWORK;

/// Writes a value in network byte order.
pub(super) fn put(frame: &mut [u8], at: usize, value: u16) {
    frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Folds a sum of 16-bit words into a one's complement sum of 16 bits (RFC 1071).
pub(super) fn fold(sum: u32) -> u16 {
    // Twice is enough: the first time leaves at most one carry.
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

/// The sum of all whole words.
pub(super) fn sum_words(bytes: &[u8]) -> u32 {
    bytes
        .chunks_exact(2)
        .map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])))
        .sum()
}

/// Computes the checksum of the IPv4 header, which has `ip` bytes.
pub(super) fn sum_ip(frame: &mut [u8], ip: usize) {
    put(frame, NETWORK + 10, 0);
    let sum = !fold(sum_words(&frame[NETWORK..NETWORK + ip]));
    put(frame, NETWORK + 10, sum);
}
