//! The machine by itself: what is read and written after which lists.

mod bounded_memory;
mod departures;
mod reading_order;
mod stamps;
mod superseding;

use super::*;
use crate::wire::server_messages::BlockListEntry;
use alloc::string::String;

const SESSION: u128 = 7;
const OTHER: u128 = 8;
const KIB: u32 = 1024;

fn ms(ms: u64) -> Instant {
    Instant(ms * 1_000_000)
}

fn entry(index: u32, number: u64) -> BlockListEntry {
    BlockListEntry {
        index,
        number,
        disk: (number % 2) as u16,
        offset: number * 4096,
        length: 4 * KIB,
        checksum: 0,
    }
}

fn list(session: u128, serial: u64, blocks: &[u64]) -> ServerBlockRequests {
    let entries = blocks
        .iter()
        .enumerate()
        .map(|(index, number)| entry(index as u32, *number))
        .collect();
    let (first_unit, stamps) = (serial * 100, [1, 2, 3]);
    ServerBlockRequests {
        session,
        set: 1,
        serial,
        supersedes: true,
        report: true,
        first_unit,
        stamps,
        entries,
    }
}

/// A server with two disks whose blocks are texts.
fn server(cache: u64) -> DiskServerMachine<String> {
    let mut server = DiskServerMachine::new(3, 2, cache);
    server.attach(SESSION, 1, None).unwrap();
    server.attach(OTHER, 2, None).unwrap();
    server
}

/// Reads what a disk has to read next.
fn read(server: &mut DiskServerMachine<String>, now: u64, disk: u16) -> Option<u64> {
    let mut woken = Woken::default();
    let read = server.next_read(ms(now), disk, &mut woken)?;
    let number = read.spot.offset / 4096;
    server.read_done(
        ms(now + 10),
        read.spot,
        Ok(alloc::format!("block {number}")),
    );
    Some(number)
}

#[derive(Debug, PartialEq)]
enum Wrote {
    Block(u64),
    Words(Message),
}

use Wrote::{Block, Words};

/// What a connection writes next: numbers of blocks, words as they are.
fn written(server: &mut DiskServerMachine<String>, now: u64, connection: u64) -> Vec<Wrote> {
    let mut woken = Woken::default();
    let writes = core::iter::from_fn(|| server.next_write(ms(now), connection, &mut woken));
    let writes = writes.map(|write| match write {
        Write::Words(words) => Words(words),
        Write::Block(head, block) => {
            assert_eq!(block, alloc::format!("block {}", head.number));
            Block(head.number)
        }
    });
    writes.collect()
}
