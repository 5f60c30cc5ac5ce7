//! Hardware (Ethernet) addresses.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

/// The broadcast address.
pub const BROADCAST: Mac = Mac([0xFF; 6]);

/// A hardware address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The first four bytes and the last two as big-endian numbers.
    pub(super) const fn words(self) -> (u32, u32) {
        let [a, b, c, d, e, f] = self.0;
        (
            u32::from_be_bytes([a, b, c, d]),
            u32::from_be_bytes([0, 0, e, f]),
        )
    }

    /// A random address that no device has, for this end of a connection over loopback, where interfaces have none.
    pub(super) fn made_up() -> Self {
        let [_, b, c, d, e, f, _, _] = RandomState::new().build_hasher().finish().to_be_bytes();
        // The first byte 2 means: locally administered, unicast.
        Self([2, b, c, d, e, f])
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, last] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{last:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_printed_with_colons_and_split_into_words() {
        let mac = Mac([2, 0xAB, 0, 1, 0xFF, 9]);
        assert_eq!(mac.to_string(), "02:ab:00:01:ff:09");
        assert_eq!(mac.words(), (0x02AB_0001, 0xFF09));
        let made_up = Mac::made_up();
        assert!(made_up.0[0] == 2 && made_up != Mac::made_up());
    }
}
