//! A client that reads nothing for a while: what its newer list supersedes is not begun once the list has reached the server.

use crate::common::{Site, set};
use stackline_blocks::server::DiskServerCounts;
use stackline_blocks::wire::handshake::BlockPeerRole;
use stackline_blocks::wire::message::{BlockDataTransport, Message};
use stackline_blocks::wire::server_messages::{Attach, BlockListEntry, ServerBlockRequests};
use stackline_blockserver::client::BlockClientOptions;
use stackline_blockserver::connection::{self, BlockConnectionHalves};
use stackline_testing::wait_for;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const SESSION: u128 = 77;
const BLOCKS: u32 = 1000;
/// Lists, and blocks of each.
const LISTS: u64 = 20;
const LIST: u32 = 40;

fn attached(site: &Site) -> BlockConnectionHalves {
    let address = site.servers[0].address().to_string();
    let (mut receiver, mut sender) =
        connection::connect(&address, BlockPeerRole::Data, None, Some(16 << 10)).unwrap();
    let (transport, port, age, pace) = (BlockDataTransport::Tcp as u8, 0, 0, 0);
    sender
        .message(
            &Attach {
                session: SESSION,
                transport,
                port,
                age,
                pace,
            }
            .into(),
        )
        .unwrap();
    assert!(matches!(receiver.message(), Ok(Message::Attached(attached)) if attached.parts));
    (receiver, sender)
}

fn list(serial: u64, entries: Vec<BlockListEntry>) -> Message {
    let (first_unit, stamps) = (serial * 10_000, [1, 2, 3]);
    ServerBlockRequests {
        session: SESSION,
        set: 0,
        serial,
        supersedes: true,
        report: true,
        first_unit,
        stamps,
        entries,
    }
    .into()
}

/// An entry of a list: its place there, and the number of its block.
fn entries(site: &Site) -> impl Fn((u32, u32)) -> BlockListEntry {
    let client = site.client(BlockClientOptions::default());
    let open = client.open("map").unwrap();
    let rows = client.map(open.id, 0, u64::from(BLOCKS)).unwrap();
    move |(index, number)| {
        let row = &rows[number as usize];
        let (disk, offset, checksum) = (row.places[0].disk, row.places[0].offset, row.checksum);
        let number = u64::from(number);
        BlockListEntry {
            index,
            number,
            disk,
            offset,
            length: open.about.length(number),
            checksum,
        }
    }
}

/// Waits for what will be.
fn until(site: &Site, is_so: impl Fn(DiskServerCounts) -> bool) -> DiskServerCounts {
    wait_for("the counts are so", || {
        Some(site.servers[0].counts()).filter(|counts| is_so(*counts))
    })
}

#[test]
fn nothing_superseded_is_begun_for_a_client_that_does_not_read() {
    let site = Site::new(1);
    site.load(&set("map", u64::from(BLOCKS), 1)).unwrap();
    let entry = entries(&site);
    let (mut receiver, mut sender) = attached(&site);
    sender
        .message(&list(
            1,
            (0..BLOCKS).map(|number| entry((number, number))).collect(),
        ))
        .unwrap();
    until(&site, |counts| {
        counts.read + counts.cached >= u64::from(BLOCKS) && counts.written > 0
    });
    sender.message(&list(2, vec![entry((0, 7))])).unwrap();
    let counts = until(&site, |counts| counts.requested == u64::from(BLOCKS) + 1);
    // Now it reads: each block of the first list has come whole, or it is told that it was discarded.
    let (mut came, mut discarded, mut cut) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    loop {
        match receiver.message().unwrap() {
            Message::BlockHead(head) => {
                let mut data = vec![0; head.length as usize];
                if !receiver.parts(&mut data).unwrap() {
                    cut.insert((head.unit - 10_000) as u32);
                    continue;
                }
                assert_eq!(crc32fast::hash(&data), head.checksum, "{head:?}");
                if head.serial == 2 {
                    break;
                }
                assert!(
                    came.insert((head.unit - 10_000) as u32),
                    "{head:?} came twice"
                );
            }
            Message::Flushed(flushed) => {
                let reported = flushed.blocks.iter().map(|block| block.index);
                reported.for_each(|index| {
                    assert!(discarded.insert(index), "{index} is reported twice")
                });
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(
        came.len() as u64 <= counts.written && came.is_disjoint(&discarded),
        "{came:?}, {discarded:?}"
    );
    assert_eq!(came.len() + discarded.len(), BLOCKS as usize);
    assert!(cut.len() <= 1 && cut.is_subset(&discarded), "{cut:?}");
    assert!(discarded.len() > BLOCKS as usize / 2, "{}", discarded.len());
}

#[test]
fn what_is_in_flight_to_a_slow_reader_is_cut_off_and_reported() {
    let site = Site::new(1);
    site.load(&set("map", u64::from(BLOCKS), 1)).unwrap();
    let entry = entries(&site);
    let (mut receiver, mut sender) = attached(&site);
    let (mut came, mut discarded, mut cut) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    // Each list asks for other blocks than the one before it, and comes while one of that is under way.
    for serial in 1..=LISTS {
        let blocks = if serial == LISTS { 1 } else { LIST };
        let first = (serial as u32 * LIST) % (BLOCKS - LIST);
        sender
            .message(&list(
                serial,
                (0..blocks)
                    .map(|index| entry((index, first + index)))
                    .collect(),
            ))
            .unwrap();
        let until = Instant::now() + Duration::from_millis(90);
        while Instant::now() < until || serial == LISTS {
            match receiver.message().unwrap() {
                Message::BlockHead(head) => {
                    let mut data = vec![0; head.length as usize];
                    if !receiver.parts(&mut data).unwrap() {
                        cut.insert(head.unit);
                    } else {
                        assert_eq!(crc32fast::hash(&data), head.checksum, "{head:?}");
                        assert!(came.insert(head.unit), "{head:?} came twice");
                        if head.serial == LISTS {
                            break;
                        }
                    }
                }
                Message::Flushed(flushed) => {
                    for block in flushed.blocks {
                        let unit = flushed.first_unit + u64::from(block.index);
                        assert!(discarded.insert(unit), "{unit} is reported twice");
                    }
                }
                other => panic!("{other:?}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    assert!(
        came.is_disjoint(&discarded) && cut.is_subset(&discarded),
        "{came:?}, {cut:?}, {discarded:?}"
    );
    assert_eq!(
        came.len() + discarded.len(),
        ((LISTS - 1) * u64::from(LIST) + 1) as usize
    );
    assert!(
        !cut.is_empty(),
        "{} came, {} were discarded",
        came.len(),
        discarded.len()
    );
}
