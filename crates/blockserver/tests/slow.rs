//! A client that reads nothing for a while: what its newer list supersedes is not begun once the list has reached the server.

#![allow(clippy::unwrap_used, reason = "what helpers of a test cannot do fails the test")]

mod common;

use common::{Site, set};
use stackline_blocks::server::Counts;
use stackline_blocks::wire::data::{Attach, Entry, Requests};
use stackline_blocks::wire::greeting::Role;
use stackline_blocks::wire::message::{Message, Transport};
use stackline_blockserver::client::Options;
use stackline_blockserver::connection::{self, Halves};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const SESSION: u128 = 77;
const BLOCKS: u32 = 1000;

fn attached(site: &Site) -> Halves {
    let address = site.servers[0].address().to_string();
    let (mut receiver, mut sender) = connection::connect(&address, Role::Data, None, Some(16 << 10)).unwrap();
    let (transport, port, age, pace) = (Transport::Tcp as u8, 0, 0, 0);
    sender.message(&Attach { session: SESSION, transport, port, age, pace }.into()).unwrap();
    assert!(matches!(receiver.message(), Ok(Message::Attached(_))));
    (receiver, sender)
}

fn list(serial: u64, entries: Vec<Entry>) -> Message {
    let (first_unit, stamps) = (serial * 10_000, [1, 2, 3]);
    Requests { session: SESSION, set: 0, serial, supersedes: true, report: true, first_unit, stamps, entries }.into()
}

/// Waits for what will be.
fn until(site: &Site, is_so: impl Fn(Counts) -> bool) -> Counts {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let counts = site.servers[0].counts();
        if is_so(counts) {
            return counts;
        }
        assert!(Instant::now() < end, "{counts:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn nothing_superseded_is_begun_for_a_client_that_does_not_read() {
    let site = Site::new(1);
    site.load(&set("map", u64::from(BLOCKS), 1)).unwrap();
    let client = site.client(Options::default());
    let open = client.open("map").unwrap();
    let rows = client.map(open.id, 0, u64::from(BLOCKS)).unwrap();
    let entry = |(index, number): (u32, u32)| {
        let row = &rows[number as usize];
        let (disk, offset, checksum) = (row.places[0].disk, row.places[0].offset, row.checksum);
        let number = u64::from(number);
        Entry { index, number, disk, offset, length: open.about.length(number), checksum }
    };
    let (mut receiver, mut sender) = attached(&site);
    sender.message(&list(1, (0..BLOCKS).map(|number| entry((number, number))).collect())).unwrap();
    until(&site, |counts| counts.read + counts.cached >= u64::from(BLOCKS) && counts.written > 0);
    sender.message(&list(2, vec![entry((0, 7))])).unwrap();
    let counts = until(&site, |counts| counts.requested == u64::from(BLOCKS) + 1);
    // Now it reads: each block of the first list has come whole, or it is told that it was discarded.
    let (mut came, mut discarded) = (BTreeSet::new(), BTreeSet::new());
    loop {
        match receiver.message().unwrap() {
            Message::BlockHead(head) => {
                receiver.data(&mut vec![0; head.length as usize]).unwrap();
                if head.serial == 2 {
                    break;
                }
                assert!(came.insert((head.unit - 10_000) as u32), "{head:?} came twice");
            }
            Message::Flushed(flushed) => discarded.extend(flushed.blocks.iter().map(|block| block.index)),
            other => panic!("{other:?}"),
        }
    }
    assert!(came.len() as u64 <= counts.written && came.is_disjoint(&discarded), "{came:?}, {discarded:?}");
    assert_eq!(came.len() + discarded.len(), BLOCKS as usize);
    assert!(discarded.len() > BLOCKS as usize / 2, "{}", discarded.len());
}
