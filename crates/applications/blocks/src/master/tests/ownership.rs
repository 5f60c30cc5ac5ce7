//! Disks of another master, or of a newer copy of this one, are refused until they are taken over.

use super::{OURS, comes, next_place, remembering, reserves, set, to, why};
use crate::master::{ALIGNMENT, MasterChange};
use crate::wire::master_messages::DiskOwnerRecord;
use crate::wire::message::{Message, Why};
use alloc::string::String;
use alloc::vec::Vec;

const THEIRS: u128 = 78;
const PIECE: u64 = 16 << 20;

#[test]
fn a_master_writes_only_where_it_gave_out_the_space() {
    for (remembers, master, used, is_taken) in [
        // Nobody's, and empty ones of any master.
        (None, 0, ALIGNMENT, true),
        (None, THEIRS, ALIGNMENT, true),
        (Some(PIECE), OURS, ALIGNMENT, true),
        // Its own.
        (Some(PIECE), OURS, PIECE, true),
        // Another one's, whether this one has seen the disk before or not: its file is another, or empty.
        (None, THEIRS, 8192, false),
        (Some(PIECE), THEIRS, 8192, false),
        // More than it remembers: its file is an old copy, or was emptied.
        (Some(PIECE), OURS, PIECE + 1, false),
        (None, OURS, 8192, false),
        // Of a version whose disks kept no master: the one that remembers it, and enough of it.
        (Some(PIECE), 0, PIECE, true),
        (Some(PIECE), 0, PIECE + 1, false),
        (None, 0, 8192, false),
        (None, THEIRS, u64::MAX, false),
    ] {
        let mut ours = remembering(OURS, remembers);
        let actions = comes(
            &mut ours,
            1,
            DiskOwnerRecord {
                master,
                used,
                last_set: 0,
            },
            false,
        );
        let case = (remembers, master, used);
        assert_eq!(
            why(&actions, 1),
            (!is_taken).then_some(Why::Foreign),
            "{case:?}"
        );
        if is_taken {
            assert!(
                matches!(to(&actions, 1)[..], [Message::Joined(joined)] if joined.master == OURS),
                "{case:?}"
            );
            assert!(next_place(&mut ours).unwrap() >= used, "{case:?}");
        } else {
            assert_eq!(
                (&actions.closes[..], actions.notes.len()),
                (&[1][..], 1),
                "{case:?}"
            );
            assert!(
                actions.notes[0].contains("/a of the server a")
                    && actions.notes[0].contains("--adopt")
            );
            assert_eq!(next_place(&mut ours), Err(Why::Full), "{case:?}");
            // It comes again and again: whoever runs the master reads it once.
            assert_eq!(
                comes(
                    &mut ours,
                    2,
                    DiskOwnerRecord {
                        master,
                        used,
                        last_set: 0
                    },
                    false
                )
                .notes,
                Vec::<String>::new()
            );
            // Taken over, it is used behind what this master knows of it.
            let adopted = comes(
                &mut ours,
                3,
                DiskOwnerRecord {
                    master,
                    used,
                    last_set: 0,
                },
                true,
            );
            assert_eq!(why(&adopted, 3), None, "{case:?}");
            if used < 1 << 30 {
                let least = if master == THEIRS {
                    remembers.unwrap_or(ALIGNMENT)
                } else {
                    used
                };
                assert_eq!(
                    next_place(&mut ours),
                    Ok(least.next_multiple_of(ALIGNMENT)),
                    "{case:?}"
                );
            }
        }
    }
}

#[test]
fn an_old_copy_of_a_master_does_not_know_all_sets_of_its_disk() {
    let mut copy = remembering(OURS, Some(PIECE));
    copy.remember(MasterChange::Set {
        id: 1,
        about: set(2, 1),
        sealed: true,
    });
    let kept = |last_set| DiskOwnerRecord {
        master: OURS,
        used: 8192,
        last_set,
    };
    assert_eq!(why(&comes(&mut copy, 1, kept(1), false), 1), None);
    copy.disconnected(1);
    let refused = comes(&mut copy, 2, kept(4), false);
    assert_eq!(why(&refused, 2), Some(Why::Foreign));
    assert!(
        refused.notes[0].contains("set number 4, but this master remembers none above 1"),
        "{refused:?}"
    );
    // Taken over, the numbers of the sets that it has forgotten are not used again.
    let adopted = comes(&mut copy, 3, kept(4), true);
    assert_eq!(why(&adopted, 3), None);
    assert!(adopted.changes.contains(&MasterChange::Master {
        identity: OURS,
        last_set: 4
    }));
    reserves(&mut copy, 1, 20, "next", 1);
    assert_eq!(copy.set("next"), Some(5));
}
