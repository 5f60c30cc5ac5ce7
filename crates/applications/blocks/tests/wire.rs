//! Messages come back as they were, and bytes that are none are refused without harm.

use proptest::prelude::*;
use stackline_blocks::placement::BlockPlacementPolicy;
use stackline_blocks::pyramid::Pyramid;
use stackline_blocks::set::BlockSet;
use stackline_blocks::wire::handshake::{BlockHello, BlockPeerRole, BlockWriteKey, MAGIC};
use stackline_blocks::wire::master_messages::{
    BlockCopyLocation, BlockInventoryReply, BlockListRequest, BlockMapEntry, Commit,
    CommittedBlock, Create, DiskOwnerRecord, DiskServerJoined, Gone, Join, Mapped,
    MissingBlocksNotice, OpenSetReply, ServerInfo, SetInfo,
};
use stackline_blocks::wire::message::{self, Message};
use stackline_blocks::wire::server_messages::{
    Attached, BLOCK_HEAD, BlockHead, BlockListEntry, Discarded, DiskInfo, Flushed,
    ServerBlockRequests,
};
use stackline_blocks::wire::{HEAD, MalformedBlockMessage, VERSION, block_parts};

fn disk() -> DiskInfo {
    DiskInfo {
        identity: 1 << 100,
        path: "/data/ä".into(),
        capacity: 1 << 40,
        used: 7,
        up: true,
        writable: true,
        damaged: 3,
    }
}

fn set(placement: BlockPlacementPolicy) -> BlockSet {
    let picture = Some(Pyramid {
        width: 9,
        height: 8,
        tile: 7,
        pixel_bytes: 3,
    });
    BlockSet {
        name: "kansas".into(),
        block_size: 49_152,
        bytes: 1 << 33,
        replicas: 2,
        placement,
        picture,
    }
}

fn head() -> BlockHead {
    BlockHead {
        unit: 1,
        set: 2,
        number: 3,
        serial: 4,
        length: 49_152,
        checksum: 5,
        server: 6,
        disk: 7,
        cached: true,
        app_send: 8,
        master_in: 9,
        master_out: 10,
        server_in: 11,
        start_read: 12,
        end_read: 13,
        start_write: 14,
        before: 15,
        before_end_write: 16,
    }
}

fn messages() -> Vec<Message> {
    let servers = vec![ServerInfo {
        id: 1,
        name: "a".into(),
        address: "10.0.0.1:7".into(),
        up: true,
        disks: vec![disk()],
    }];
    let place = BlockCopyLocation {
        server: 1,
        disk: 2,
        offset: 3,
    };
    let row = BlockMapEntry {
        checksum: 4,
        places: vec![place.clone(), place],
    };
    let kept = DiskOwnerRecord {
        master: 1 << 99,
        used: 4096,
        last_set: 0,
    };
    let entry = BlockListEntry {
        index: 1,
        number: 2,
        disk: 3,
        offset: 4,
        length: 5,
        checksum: 6,
    };
    let discarded = Discarded {
        index: 1,
        start_read: 2,
        end_read: 3,
        start_write: 4,
    };
    let placements = [
        BlockPlacementPolicy::RoundRobin,
        BlockPlacementPolicy::Random(9),
        BlockPlacementPolicy::Hash,
        BlockPlacementPolicy::Tiles,
        BlockPlacementPolicy::Given,
    ];
    let mut all: Vec<Message> = placements
        .map(|placement| {
            Create {
                request: 1,
                about: set(placement),
            }
            .into()
        })
        .into();
    all.extend([
        BlockHello {
            magic: MAGIC,
            version: VERSION,
            role: BlockPeerRole::Writer,
            nonce: [3; 16],
        }
        .into(),
        OpenSetReply {
            request: 1,
            session: u128::MAX,
            master: 9,
            set: 2,
            about: set(BlockPlacementPolicy::Tiles),
            servers,
        }
        .into(),
        BlockListRequest {
            set: 1,
            serial: 2,
            supersedes: true,
            report: false,
            first_unit: 3,
            app_send: 4,
            blocks: vec![5, 6],
        }
        .into(),
        MissingBlocksNotice {
            set: 1,
            serial: 2,
            why: 3,
            blocks: vec![],
        }
        .into(),
        Commit {
            request: 1,
            set: 2,
            blocks: vec![CommittedBlock { number: 1, row }],
            seal: true,
        }
        .into(),
        ServerBlockRequests {
            session: 1,
            set: 2,
            serial: 3,
            supersedes: true,
            report: true,
            first_unit: 4,
            stamps: [5, 6, 7],
            entries: vec![entry],
        }
        .into(),
        Flushed {
            set: 1,
            serial: 2,
            first_unit: 3,
            server: 4,
            stamps: [5, 6, 7],
            server_in: 8,
            at: 9,
            blocks: vec![discarded],
        }
        .into(),
        head().into(),
        Attached {
            server: 1,
            parts: false,
        }
        .into(),
        Join {
            name: "a".into(),
            address: "a:1".into(),
            disks: vec![disk()],
            kept: vec![kept],
            adopt: true,
        }
        .into(),
        DiskServerJoined {
            server: 1,
            master: 2,
        }
        .into(),
        Gone { set: 3 }.into(),
    ]);
    all
}

fn read(bytes: &[u8]) -> Result<Message, MalformedBlockMessage> {
    let length =
        message::parse_message_length(bytes[..4].try_into().expect("four bytes"), 1 << 20)?;
    assert_eq!(length + 4, bytes.len());
    Message::read(bytes[4], &bytes[HEAD..])
}

#[test]
fn messages_come_back_as_they_were() {
    for message in messages() {
        assert_eq!(read(&message.bytes()), Ok(message));
    }
}

#[test]
fn what_waits_weighs_at_least_what_it_has_on_the_wire() {
    let row = BlockMapEntry {
        checksum: 4,
        places: vec![
            BlockCopyLocation {
                server: 1,
                disk: 2,
                offset: 3
            };
            8
        ],
    };
    let server = ServerInfo {
        id: 1,
        name: "a".repeat(99),
        address: "b".repeat(99),
        up: true,
        disks: vec![disk(); 64],
    };
    let info = SetInfo {
        about: set(BlockPlacementPolicy::Hash),
        written: 1,
        reachable: 2,
        sealed: true,
    };
    let large: [Message; 2] = [
        Mapped {
            request: 1,
            set: 2,
            first: 3,
            rows: vec![row; 4096],
        }
        .into(),
        BlockInventoryReply {
            request: 1,
            sets: vec![info; 4096],
            servers: vec![server; 100],
        }
        .into(),
    ];
    for message in messages().into_iter().chain(large) {
        let (weight, bytes) = (message.weight(), message.bytes().len() as u64);
        assert!(
            weight >= bytes && weight <= 4 * bytes + 512,
            "{weight} {bytes}"
        );
    }
}

#[test]
fn every_shorter_and_longer_message_is_refused() {
    for message in messages() {
        let bytes = message.bytes();
        for length in HEAD..bytes.len() {
            assert!(
                Message::read(bytes[4], &bytes[HEAD..length]).is_err(),
                "{message:?} cut to {length}"
            );
        }
        let longer = [&bytes[HEAD..], &[0]].concat();
        assert_eq!(
            Message::read(bytes[4], &longer),
            Err(MalformedBlockMessage::Long)
        );
    }
}

#[test]
fn a_block_has_the_header_that_the_document_says() {
    assert_eq!(BLOCK_HEAD, 113);
    assert_eq!(Message::from(head()).bytes().len(), HEAD + BLOCK_HEAD);
}

#[test]
fn an_attached_connection_says_whether_data_come_in_parts() {
    let bytes = Message::from(Attached {
        server: 0x0102,
        parts: true,
    })
    .bytes();
    assert_eq!(bytes, [0, 0, 0, 4, 66, 1, 2, 1]);
}

#[test]
fn parts_are_no_longer_than_what_is_left_and_none_is_the_end() {
    assert_eq!(block_parts::encode_part_length(49_152), [0, 0, 0xc0, 0]);
    assert_eq!(
        block_parts::parse_part_length([0, 0, 0xc0, 0], 49_152),
        Ok(Some(49_152))
    );
    assert_eq!(
        block_parts::parse_part_length([0, 0, 0xc0, 0], 49_151),
        Err(MalformedBlockMessage::Field("part"))
    );
    assert_eq!(
        block_parts::parse_part_length(block_parts::CUT, 49_152),
        Ok(None)
    );
    assert_eq!(
        block_parts::parse_part_length([0xff; 4], usize::MAX),
        Ok(Some(0xffff_ffff))
    );
}

#[test]
fn a_list_cannot_announce_more_than_it_has() {
    // A list of blocks that says 4,294,967,295 and has none: refused before memory is taken for them.
    let mut bytes = Message::from(MissingBlocksNotice {
        set: 1,
        serial: 2,
        why: 3,
        blocks: vec![],
    })
    .bytes();
    let end = bytes.len();
    bytes[end - 4..].fill(0xff);
    assert_eq!(
        Message::read(bytes[4], &bytes[HEAD..]),
        Err(MalformedBlockMessage::Short)
    );
}

#[test]
fn a_proof_holds_for_its_key_role_side_and_nonces_only() {
    let (key, other) = (BlockWriteKey([1; 32]), BlockWriteKey([2; 32]));
    let (ours, theirs) = ([3; 16], [4; 16]);
    let proof = key.proof(false, BlockPeerRole::Writer, &ours, &theirs);
    assert!(key.verifies(&proof, false, BlockPeerRole::Writer, &ours, &theirs));
    assert!(!other.verifies(&proof, false, BlockPeerRole::Writer, &ours, &theirs));
    assert!(!key.verifies(&proof, true, BlockPeerRole::Writer, &ours, &theirs));
    assert!(!key.verifies(&proof, false, BlockPeerRole::Server, &ours, &theirs));
    assert!(!key.verifies(&proof, false, BlockPeerRole::Writer, &theirs, &ours));
}

proptest! {
    #[test]
    fn no_bytes_do_harm(kind in any::<u8>(), body in proptest::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(message) = Message::read(kind, &body) {
            // What is a message is written as it was read.
            prop_assert_eq!(&message.bytes()[HEAD..], &body[..]);
        }
    }
}
