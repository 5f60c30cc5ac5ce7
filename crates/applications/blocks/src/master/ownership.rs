//! Ownership of disks: a master writes to a disk only if it was the master that allocated the space in use there.
//!
//! A disk's first page stores the identity of its master, how far its space is used, and the highest number of a set on it. A master with
//! another identity, or one that remembers less than the disk holds (an old copy of its file, or none), would allocate places where blocks
//! of others lie, and use set numbers again.

use super::disk_space::{ALIGNMENT, Space};
use crate::wire::master_messages::DiskOwnerRecord;
use crate::wire::server_messages::DiskInfo;
use alloc::format;
use alloc::string::String;

/// What an operator can do when a disk is refused.
pub const HINT: &str = "start the master with the --data directory that it used when the disk was filled, or take over the disk with `stackline blocks serve --adopt`, which loses any blocks on it that this master does not know about";

/// The identity of a master and the highest set number it has used.
pub(super) struct MasterIdentity {
    pub(super) identity: u128,
    /// The highest number that a set has had.
    pub(super) last_set: u32,
}

/// Why the master must not write to this disk, or `None` if it may. `kept` is what the disk's first page says, `before` what the master
/// remembers of the disk.
pub(super) fn objection(
    own: &MasterIdentity,
    server: &str,
    disk: &DiskInfo,
    kept: &DiskOwnerRecord,
    before: Option<&Space>,
) -> Option<String> {
    let given_out = before.map_or(ALIGNMENT, |space| space.remembered.max(ALIGNMENT));
    let is_empty = kept.used <= ALIGNMENT;
    if disk.identity == 0
        || is_empty
        || (kept.master == own.identity && kept.used <= given_out && kept.last_set <= own.last_set)
    {
        return None;
    }
    let which = format!("the disk {} of the server {server}", disk.path);
    match kept.master {
        // The disk is of a version that stored no master: its blocks are this master's if it remembers the disk and has allocated as much.
        0 if before.is_some() && kept.used <= given_out => None,
        0 => Some(format!(
            "{which} holds blocks, but neither its first page nor this master identifies their owner"
        )),
        master if master == own.identity && kept.used <= given_out => Some(format!(
            "{which} holds blocks of set number {}, but this master remembers none above {}: the master's data is an old copy",
            kept.last_set, own.last_set
        )),
        master if master == own.identity => Some(format!(
            "{which} is in use up to byte {}, but this master remembers only {given_out}: it has lost part of its record of allocated space",
            kept.used
        )),
        _ => Some(format!(
            "{which} belongs to another master, which uses it up to byte {}",
            kept.used
        )),
    }
}

/// The offset (bytes) from which the master allocates on a disk that it may write to or takes over: after all space that is its own, or
/// whose owner is unknown.
pub(super) fn goes_on(own: u128, disk: &DiskInfo, kept: &DiskOwnerRecord, remembered: u64) -> u64 {
    let is_kept = kept.master == own || (kept.master == 0 && kept.used <= disk.capacity);
    let used = if is_kept {
        kept.used
            .checked_next_multiple_of(ALIGNMENT)
            .unwrap_or(u64::MAX)
    } else {
        0
    };
    remembered.max(used).max(ALIGNMENT)
}
