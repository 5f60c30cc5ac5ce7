//! How much data the socket buffers of Linux hold. A program asks for a size in bytes; the kernel reserves twice as
//! much memory and charges each packet with its metadata, not only with the data it carries.
//!
//! Source: Linux 6.18, `net/core/sock.c` (`SO_SNDBUF`, `SO_RCVBUF`, least values), `tcp_win_from_space`,
//! `__tcp_select_window`.

/// Least memory of a receive buffer, in bytes.
const LEAST_RECEIVE: u64 = 2304;
/// Least memory of a send buffer, in bytes.
const LEAST_SEND: u64 = 2 * LEAST_RECEIVE;
/// Memory that a packet occupies besides its data, in bytes.
const DESCRIPTION: u64 = 768;
/// Windows are computed in units of 1/256 of the memory.
const PARTS: u64 = 256;
/// With less memory than this (bytes), windows are not scaled and are rounded down to whole segments.
const SCALED: u64 = 2 << 16;

/// Memory in bytes of a receive buffer for which a program asked `asked` bytes.
#[must_use]
pub const fn receive_memory(asked: u64) -> u64 {
    at_least(asked.saturating_mul(2), LEAST_RECEIVE)
}

/// Memory in bytes of a send buffer for which a program asked `asked` bytes.
#[must_use]
pub const fn send_memory(asked: u64) -> u64 {
    at_least(asked.saturating_mul(2), LEAST_SEND)
}

/// The larger of both.
const fn at_least(bytes: u64, least: u64) -> u64 {
    if bytes < least { least } else { bytes }
}

/// The part of the memory that can hold data when packets carry `payload` bytes, in units of 1/256; at least 1.
const fn part(payload: u64) -> u64 {
    at_least(
        (payload as u128 * PARTS as u128 / (payload as u128 + DESCRIPTION as u128)) as u64,
        1,
    )
}

/// The window in bytes that a receive buffer with this memory offers to packets that carry `payload` bytes, at least
/// one packet. One packet is assumed to wait for its reader when an acknowledgement is sent. (A kernel may also offer
/// no window.)
#[must_use]
pub const fn offered_window(memory: u64, payload: u64) -> u64 {
    let payload = at_least(payload, 1);
    let free = memory.saturating_sub(payload.saturating_add(DESCRIPTION));
    let window = (free as u128 * part(payload) as u128 / PARTS as u128) as u64;
    let whole = if memory < SCALED {
        window / payload * payload
    } else {
        window
    };
    at_least(whole, payload)
}

/// The memory in bytes for which [`offered_window`] is `window` bytes.
#[must_use]
pub const fn for_window(window: u64, payload: u64) -> u64 {
    let payload = at_least(payload, 1);
    let free = (window as u128 * PARTS as u128).div_ceil(part(payload) as u128);
    let free = if free > u64::MAX as u128 {
        u64::MAX
    } else {
        free as u64
    };
    free.saturating_add(payload + DESCRIPTION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_those_of_a_kernel() {
        // Seen there between two namespaces at an MTU of 1500: 85,510 and 84,150 B; 18,824 B; two segments.
        assert_eq!(offered_window(receive_memory(65_536), 1448), 84_058);
        assert_eq!(offered_window(receive_memory(16_384), 1448), 18_824);
        assert_eq!(offered_window(receive_memory(4096), 1448), 2 * 1448);
        assert_eq!(offered_window(receive_memory(1), 1448), 1448);
        assert_eq!([send_memory(100), send_memory(65_536)], [4608, 131_072]);
    }

    #[test]
    fn memory_for_a_window_offers_it() {
        for bytes in [90_000, 1_000_000, 6 << 20] {
            let offered = offered_window(for_window(bytes, 1448), 1448);
            assert!((bytes..bytes + 2).contains(&offered), "{offered}");
        }
    }

    #[test]
    fn nothing_overflows() {
        assert_eq!(receive_memory(u64::MAX), u64::MAX);
        assert!(offered_window(u64::MAX, 1448) > 0 && offered_window(0, 0) > 0);
        assert!(for_window(u64::MAX, 1448) > 0);
    }
}
