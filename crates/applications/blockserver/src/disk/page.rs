//! The first page of a disk: its identity, its master, and how far it is used.
//!
//! | bytes | |
//! | --- | --- |
//! | 0..16 | `stackline blocks` |
//! | 16..32 | the disk's identity, drawn when it was made |
//! | 32..36 | version of this page: 2; 0 on pages of older programs, which end here |
//! | 36..40 | CRC-32 of the other bytes |
//! | 40..56 | identity of the master that allocates its space; 0: none yet |
//! | 56..64 | end of the space that holds blocks, bytes; pages of version 1 end here |
//! | 64..68 | the highest number of a set of which the disk has held blocks |
//!
//! The page lies in one sector, which disks write completely or not at all. Numbers are in network byte order.

use stackline_blocks::wire::master_messages::DiskOwnerRecord;

/// The first bytes of a disk.
const MAGIC: &[u8; 16] = b"stackline blocks";
/// Bytes of a page that have a meaning.
pub(super) const LENGTH: usize = 68;
const VERSION: u32 = 2;
/// Length of pages of version 1, which lack the set number.
const WITHOUT_SET: usize = 64;

/// The content of a first page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// The identity of the disk.
    pub(super) identity: u128,
    /// The master, and how far the disk is used.
    pub(super) kept: DiskOwnerRecord,
}

/// What the first bytes of a disk are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DiskPageContent {
    /// A valid page.
    Page(Page),
    /// A page of an older program, which stored no master; the disk's identity.
    Old(u128),
    /// Only zeros: a new disk.
    Nothing,
    /// A page with a wrong checksum.
    Damaged,
    /// A page of a newer program; its version.
    Newer(u32),
    /// Something other than a page.
    Other,
}

impl Page {
    pub(super) fn bytes(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..16].copy_from_slice(MAGIC);
        bytes[16..32].copy_from_slice(&self.identity.to_be_bytes());
        bytes[32..36].copy_from_slice(&VERSION.to_be_bytes());
        bytes[40..56].copy_from_slice(&self.kept.master.to_be_bytes());
        bytes[56..64].copy_from_slice(&self.kept.used.to_be_bytes());
        bytes[64..].copy_from_slice(&self.kept.last_set.to_be_bytes());
        let checksum = checksum(&bytes);
        bytes[36..40].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(&[&bytes[..36], &bytes[40..]].concat())
}

/// Interprets the first bytes of a disk; bytes beyond its end are zeros.
pub(super) fn parse_page(bytes: &[u8; LENGTH]) -> DiskPageContent {
    let part = |from: usize, to: usize| {
        bytes[from..to]
            .iter()
            .fold(0, |number, byte| number << 8 | u128::from(*byte))
    };
    if bytes.iter().all(|byte| *byte == 0) {
        return DiskPageContent::Nothing;
    }
    if !bytes.starts_with(MAGIC) {
        return DiskPageContent::Other;
    }
    let identity = part(16, 32);
    match part(32, 36) as u32 {
        0 if bytes[36..].iter().all(|byte| *byte == 0) => DiskPageContent::Old(identity),
        version @ (VERSION | 1) => {
            let length = if version == VERSION {
                LENGTH
            } else {
                WITHOUT_SET
            };
            if part(36, 40) as u32 != checksum(&bytes[..length]) {
                return DiskPageContent::Damaged;
            }
            let last_set = if version == VERSION {
                part(64, 68) as u32
            } else {
                0
            };
            DiskPageContent::Page(Page {
                identity,
                kept: DiskOwnerRecord {
                    master: part(40, 56),
                    used: part(56, 64) as u64,
                    last_set,
                },
            })
        }
        0 => DiskPageContent::Damaged,
        newer => DiskPageContent::Newer(newer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_comes_back_and_every_damaged_byte_is_noticed() {
        let page = Page {
            identity: u128::MAX - 5,
            kept: DiskOwnerRecord {
                master: 1 << 99,
                used: 1 << 40,
                last_set: 9,
            },
        };
        let bytes = page.bytes();
        assert_eq!(parse_page(&bytes), DiskPageContent::Page(page.clone()));
        for at in 0..LENGTH {
            let mut damaged = bytes;
            damaged[at] ^= 0x40;
            assert_ne!(
                parse_page(&damaged),
                DiskPageContent::Page(page.clone()),
                "{at}"
            );
            assert!(
                !matches!(
                    parse_page(&damaged),
                    DiskPageContent::Page(_) | DiskPageContent::Old(_) | DiskPageContent::Nothing
                ),
                "{at}"
            );
        }
    }

    #[test]
    fn pages_of_older_programs_are_known() {
        let mut old = [0; LENGTH];
        assert_eq!(parse_page(&old), DiskPageContent::Nothing);
        old[..16].copy_from_slice(MAGIC);
        old[31] = 7;
        assert_eq!(parse_page(&old), DiskPageContent::Old(7));
        old[35] = 3;
        assert_eq!(parse_page(&old), DiskPageContent::Newer(3));
        old[35] = 1;
        old[56..64].copy_from_slice(&4096_u64.to_be_bytes());
        let sum = checksum(&old[..WITHOUT_SET]);
        old[36..40].copy_from_slice(&sum.to_be_bytes());
        let kept = DiskOwnerRecord {
            master: 0,
            used: 4096,
            last_set: 0,
        };
        assert_eq!(
            parse_page(&old),
            DiskPageContent::Page(Page { identity: 7, kept })
        );
        assert_eq!(parse_page(&[b'x'; LENGTH]), DiskPageContent::Other);
    }
}
