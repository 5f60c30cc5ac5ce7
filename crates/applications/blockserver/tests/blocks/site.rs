//! Master, servers and clients together, on loopback.

use crate::common;
use crate::common::{ANYWHERE, Site, content, set, start_master};
use stackline_blocks::wire::message::{BlockDataTransport, Why};
use stackline_blockserver::client::{BlockClient, BlockClientEvent, BlockClientOptions};
use stackline_blockserver::prediction::Predicting;
use stackline_blockserver::range_read;
use stackline_testing::wait_until;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::time::Duration;

const SOON: Option<Duration> = Some(Duration::from_secs(10));

/// Takes blocks until so many wanted ones came.
fn blocks(client: &BlockClient, count: usize) -> BTreeSet<u64> {
    let mut came = BTreeSet::new();
    while came.len() < count {
        match client.next(SOON) {
            Some(BlockClientEvent::Block(block)) if block.wanted => {
                assert_eq!(block.data, content(block.head.number, block.data.len()));
                came.insert(block.head.number);
            }
            Some(BlockClientEvent::Failed { number, why, .. }) => {
                panic!("block {number}: {}", why.words())
            }
            Some(_) => {}
            None => panic!("{} of {count} blocks came", came.len()),
        }
    }
    came
}

fn whole(client: &BlockClient, name: &str) -> u64 {
    let set = client.open(name).unwrap();
    let mut came = BTreeSet::new();
    range_read::read_range(client, &set, 0, u64::MAX, |number, data| {
        assert_eq!(data, content(number, set.about.length(number) as usize));
        assert!(came.insert(number), "block {number} came twice");
        Ok(())
    })
    .unwrap();
    came.len() as u64
}

#[test]
fn what_was_loaded_on_two_servers_comes_back() {
    let site = Site::new(2);
    let loaded = site.load(&set("map", 500, 1)).unwrap();
    assert_eq!((loaded.written, loaded.before), (500, 0));
    assert_eq!(
        whole(&site.client(BlockClientOptions::default()), "map"),
        500
    );
    let (sets, servers) = site.loader().list().unwrap();
    assert_eq!(
        (sets[0].written, sets[0].reachable, sets[0].sealed),
        (500, 500, true)
    );
    assert!(
        servers
            .iter()
            .all(|server| server.disks.iter().all(|disk| disk.used > 125 * 8192))
    );
}

#[test]
fn stamps_of_every_hop_come_with_the_block_in_order() {
    let site = Site::new(1);
    site.load(&set("map", 10, 1)).unwrap();
    let client = site.client(BlockClientOptions::default());
    let open = client.open("map").unwrap();
    client.request(open.id, vec![3], true).unwrap();
    let Some(BlockClientEvent::Block(block)) = client.next(SOON) else {
        panic!("a block")
    };
    let head = block.head;
    let stamps = [
        head.app_send,
        head.master_in,
        head.master_out,
        head.server_in,
        head.start_read,
        head.end_read,
        head.start_write,
        block.at.0,
    ];
    assert!(stamps.is_sorted() && stamps[0] > 0, "{stamps:?}");
    assert!(!head.cached);
    client.request(open.id, vec![3], true).unwrap();
    let Some(BlockClientEvent::Block(again)) = client.next(SOON) else {
        panic!("a block")
    };
    assert!(again.head.cached && again.head.unit > head.unit);
    assert_eq!(again.head.before, head.unit);
}

#[test]
fn blocks_come_by_every_transport() {
    let site = Site::new(2);
    site.load(&set("map", 100, 1)).unwrap();
    for transport in [
        BlockDataTransport::Udp,
        BlockDataTransport::Rtp,
        BlockDataTransport::Blast,
    ] {
        let client = site.client(BlockClientOptions {
            transport,
            ..BlockClientOptions::default()
        });
        let open = client.open("map").unwrap();
        client.request(open.id, (0..100).collect(), true).unwrap();
        assert_eq!(blocks(&client, 100).len(), 100, "{transport:?}");
    }
}

#[test]
fn a_server_that_dies_is_named_and_replicas_serve() {
    let site = Site::new(2);
    site.load(&set("safe", 200, 2)).unwrap();
    site.load(&set("single", 200, 1)).unwrap();
    let client = site.client(BlockClientOptions::default());
    let (safe, single) = (client.open("safe").unwrap(), client.open("single").unwrap());
    site.servers[1].stop();
    let gone = std::iter::from_fn(|| client.next(SOON)).find_map(|event| match event {
        BlockClientEvent::ServerGone { name, .. } => Some(name),
        _ => None,
    });
    assert_eq!(gone.as_deref(), Some("server1"));
    site.wait_for(1);
    client.request(safe.id, (0..200).collect(), true).unwrap();
    assert_eq!(blocks(&client, 200).len(), 200);
    // Without a copy elsewhere its blocks are reported, and the others keep coming.
    client.request(single.id, (0..200).collect(), true).unwrap();
    let (mut came, mut failed) = (0, 0);
    while came + failed < 200 {
        match client.next(SOON) {
            Some(BlockClientEvent::Block(_)) => came += 1,
            Some(BlockClientEvent::Failed { why, .. }) => {
                assert_eq!(why, Why::NoServer);
                failed += 1;
            }
            Some(_) => {}
            None => panic!("{came} came and {failed} failed"),
        }
    }
    assert_eq!((came, failed), (100, 100));
}

#[test]
fn a_server_killed_while_it_sends_loses_nothing_that_has_a_copy() {
    let site = Site::new(2);
    site.load(&set("safe", 400, 2)).unwrap();
    let client = site.client(BlockClientOptions::default());
    let open = client.open("safe").unwrap();
    client.request(open.id, (0..400).collect(), true).unwrap();
    site.servers[0].stop();
    assert_eq!(blocks(&client, 400).len(), 400);
}

#[test]
fn clients_go_on_when_the_master_is_gone() {
    let site = Site::new(2);
    site.load(&set("map", 50, 1)).unwrap();
    let client = site.client(BlockClientOptions::default());
    let open = client.open("map").unwrap();
    site.master.stop();
    assert!(
        std::iter::from_fn(|| client.next(SOON))
            .any(|event| matches!(event, BlockClientEvent::MasterGone))
    );
    client.request(open.id, (0..50).collect(), true).unwrap();
    assert_eq!(blocks(&client, 50).len(), 50);
    let error = client.open("other").unwrap_err();
    assert!(error.message.contains("master is gone"), "{error:?}");
}

#[test]
fn a_corrupt_block_is_served_by_its_replica_or_named() {
    let site = Site::new(2);
    site.load(&set("safe", 4, 2)).unwrap();
    site.load(&set("single", 4, 1)).unwrap();
    let client = site.client(BlockClientOptions::default());
    let (safe, single) = (client.open("safe").unwrap(), client.open("single").unwrap());
    let rows = [
        client.map(safe.id, 0, 4).unwrap(),
        client.map(single.id, 0, 4).unwrap(),
    ]
    .concat();
    for row in rows {
        let place = &row.places[0];
        let disk = site
            .disk(usize::from(place.server), usize::from(place.disk))
            .join("stackline.blocks");
        let file = std::fs::OpenOptions::new().write(true).open(disk).unwrap();
        file.write_at(b"damage", place.offset + 100).unwrap();
    }
    client.request(safe.id, (0..4).collect(), true).unwrap();
    assert_eq!(blocks(&client, 4).len(), 4);
    client.request(single.id, vec![2], true).unwrap();
    let failed = std::iter::from_fn(|| client.next(SOON)).find_map(|event| match event {
        BlockClientEvent::Failed { number, why, .. } => Some((number, why)),
        _ => None,
    });
    assert_eq!(failed, Some((2, Why::Corrupt)));
}

#[test]
fn a_disk_that_disappears_is_reported_and_the_others_serve() {
    let site = Site::new(1);
    site.load(&set("map", 20, 1)).unwrap();
    std::fs::remove_dir_all(site.disk(0, 0)).unwrap();
    let client = site.client(BlockClientOptions::default());
    wait_until("the disk is down", || {
        !client.list().unwrap().1[0].disks[0].up
    });
    let open = client.open("map").unwrap();
    client.request(open.id, (0..20).collect(), true).unwrap();
    let (mut came, mut failed) = (0, 0);
    while came + failed < 20 {
        match client.next(SOON) {
            Some(BlockClientEvent::Block(_)) => came += 1,
            Some(BlockClientEvent::Failed { .. }) => failed += 1,
            Some(_) => {}
            None => panic!("{came} came and {failed} failed"),
        }
    }
    assert_eq!((came, failed), (10, 10));
}

#[test]
fn a_master_that_starts_again_knows_everything() {
    let mut site = Site::new(2);
    site.load(&set("map", 100, 1)).unwrap();
    let address = site.master.address();
    site.master.stop();
    let data = site.directory.path().join("master");
    site.master = common::master_again(&data, &site.key, address);
    site.wait_for(2);
    assert_eq!(
        whole(&site.client(BlockClientOptions::default()), "map"),
        100
    );
}

#[test]
fn loads_of_one_name_do_not_mix() {
    let site = Site::new(1);
    let (first, second) = (site.loader(), site.loader());
    let about = set("map", 10, 1);
    let other = stackline_blocks::set::BlockSet {
        bytes: 5 * 8192,
        ..about.clone()
    };
    let slow = stackline_blockserver::load::load(
        &first,
        &site.key,
        &about,
        &mut common::Drawn,
        None,
        |_| {
            let error = stackline_blockserver::load::load(
                &second,
                &site.key,
                &other,
                &mut common::Drawn,
                None,
                |_| Ok(()),
            );
            assert!(
                error
                    .unwrap_err()
                    .message
                    .contains("another client is loading")
            );
            Ok(())
        },
    );
    assert_eq!(slow.unwrap().written, 10);
    assert!(
        site.load(&other)
            .unwrap_err()
            .message
            .contains("already exists")
    );
    first.delete("map").unwrap();
    site.load(&other).unwrap();
}

#[test]
fn a_load_that_was_ended_goes_on_where_it_was() {
    let site = Site::new(1);
    let about = stackline_blocks::set::BlockSet {
        block_size: 1 << 20,
        bytes: 40 << 20,
        ..set("map", 1, 1)
    };
    let mut batches = 0;
    let ended = stackline_blockserver::load::load(
        &site.loader(),
        &site.key,
        &about,
        &mut common::Drawn,
        None,
        |_| {
            batches += 1;
            if batches == 2 {
                Err(stackline_core::error::Error::interrupted())
            } else {
                Ok(())
            }
        },
    );
    assert!(ended.is_err());
    let loaded = loop {
        // The master lets the set go when it has seen that its loader is gone.
        match site.load(&about) {
            Err(error) if error.message.contains("another client is loading") => {
                std::thread::sleep(Duration::from_millis(10))
            }
            other => break other.unwrap(),
        }
    };
    assert_eq!((loaded.before, loaded.written), (32, 8));
}

#[test]
fn writing_needs_the_key() {
    let site = Site::new(1);
    let other = stackline_blockserver::key::generate_key().unwrap();
    let address = site.master.address().to_string();
    let error = BlockClient::connect(
        &address,
        BlockClientOptions {
            key: Some(other),
            ..BlockClientOptions::default()
        },
    )
    .unwrap_err();
    assert!(error.message.contains("key"), "{error:?}");
    let reader = site.client(BlockClientOptions::default());
    let error = reader.delete("map").unwrap_err();
    assert!(error.message.contains("read-only"), "{error:?}");
}

#[test]
fn hostile_peers_are_closed_and_harm_nobody() {
    let site = Site::new(1);
    site.load(&set("map", 10, 1)).unwrap();
    let hello = |version: u16, role: u8| {
        [
            &[0, 0, 0, 24, 1][..],
            b"SLBK",
            &version.to_be_bytes(),
            &[role],
            &[9; 16],
        ]
        .concat()
    };
    let requests: Vec<Vec<u8>> = vec![
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0xff; 4096],
        vec![0; 4096],
        hello(2, 0),
        hello(3, 77),
        [hello(3, 0), vec![0, 0x0f, 0xff, 0xff, 19]].concat(),
        [hello(3, 0), vec![0, 0, 0, 1, 200]].concat(),
        [hello(3, 3), vec![0, 0, 0, 5, 19, 1, 2, 3, 4]].concat(),
    ];
    for address in [site.master.address(), site.servers[0].address()] {
        for bytes in &requests {
            let mut stream = TcpStream::connect(address).unwrap();
            let _ = stream.write_all(bytes);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            stream.set_read_timeout(SOON).unwrap();
            // Whatever it answers, it closes.
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            assert!(answer.len() < 2000);
        }
    }
    assert_eq!(
        whole(&site.client(BlockClientOptions::default()), "map"),
        10
    );
}

#[test]
fn a_newer_version_is_named() {
    let site = Site::new(0);
    let mut stream = TcpStream::connect(site.master.address()).unwrap();
    stream
        .write_all(&[&[0, 0, 0, 24, 1][..], b"SLBK", &[0, 9, 0], &[9; 16]].concat())
        .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let words = String::from_utf8_lossy(&answer);
    assert!(
        words.contains("speaks version 4, the connecting side 9"),
        "{words}"
    );
}

#[test]
fn a_superseded_list_is_discarded_at_the_server() {
    let site = Site::new(1);
    site.load(&set("map", 4000, 1)).unwrap();
    // The first list takes four seconds at this pace: the second finds most of it.
    let pace = Some(8 << 20);
    let client = site.client(BlockClientOptions {
        report: true,
        transport: BlockDataTransport::Udp,
        pace,
        ..BlockClientOptions::default()
    });
    let open = client.open("map").unwrap();
    client.request(open.id, (0..4000).collect(), true).unwrap();
    client.request(open.id, vec![7], true).unwrap();
    // What came before the second list was asked for was wanted then: it is told before anything that came after.
    let (mut wanted, mut flushed, mut is_before) = (Vec::new(), 0, true);
    while wanted.is_empty() || flushed == 0 {
        match client.next(SOON) {
            Some(BlockClientEvent::Block(block))
                if block.wanted && is_before && block.head.number != 7 => {}
            Some(BlockClientEvent::Block(block)) => {
                is_before = false;
                wanted.extend(block.wanted.then_some(block.head.number));
            }
            Some(BlockClientEvent::Flushed(list)) => {
                is_before = false;
                flushed += list.blocks.len();
            }
            Some(_) => {}
            None => panic!("{wanted:?}, {flushed}"),
        }
    }
    assert_eq!(wanted, [7]);
    let sent = site.servers[0].counts().written as usize;
    assert!(sent + flushed >= 4000 && flushed > 1000, "{sent} {flushed}");
}

#[test]
fn a_thousand_clients_read_at_once() {
    let site = Site::new(1);
    site.load(&set("map", 20, 1)).unwrap();
    let site = &site;
    std::thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(move || {
                let clients: Vec<BlockClient> = (0..100)
                    .map(|_| site.client(BlockClientOptions::default()))
                    .collect();
                let opens: Vec<_> = clients
                    .iter()
                    .map(|client| client.open("map").unwrap().id)
                    .collect();
                for (client, open) in clients.iter().zip(opens) {
                    client.request(open, (0..20).collect(), true).unwrap();
                }
                for client in &clients {
                    assert_eq!(blocks(client, 20).len(), 20);
                }
            });
        }
    });
}

#[test]
fn a_second_master_or_server_at_one_place_is_refused() {
    let site = Site::new(1);
    let address = site.master.address();
    let error =
        common::try_master(&site.directory.path().join("other"), &site.key, address).unwrap_err();
    assert!(error.message.contains("cannot listen"), "{error:?}");
    let _unused = start_master(
        &site.directory.path().join("third"),
        &site.key,
        ANYWHERE.into(),
    );
}

#[test]
fn what_was_predicted_is_there_when_it_is_asked_for() {
    let site = Site::new(1);
    site.load(&set("map", 100, 1)).unwrap();
    let client = site.client(BlockClientOptions::default());
    let open = client.open("map").unwrap();
    let mut viewer = Predicting::new(&client, &open, |list: &[u64]| {
        list.iter().map(|block| block + 10).collect()
    });
    let came = |viewer: &mut Predicting<'_, _>, count: usize| -> Vec<u64> {
        let mut came: Vec<u64> = (0..count)
            .map(|_| match viewer.next(SOON) {
                Some(BlockClientEvent::Block(block)) => block.head.number,
                other => panic!("{other:?}"),
            })
            .collect();
        came.sort_unstable();
        came
    };
    viewer.request(vec![1, 2, 3]).unwrap();
    assert_eq!(came(&mut viewer, 3), [1, 2, 3]);
    // Those that were predicted come behind them, and are not given.
    while viewer.counts().1 < 3 {
        assert!(viewer.next(Some(Duration::from_millis(50))).is_none());
    }
    viewer.request(vec![11, 12, 40]).unwrap();
    assert_eq!(came(&mut viewer, 3), [11, 12, 40]);
    assert_eq!(viewer.counts().0, 2);
    // Beyond the set nothing is predicted.
    viewer.request(vec![95]).unwrap();
    assert_eq!(came(&mut viewer, 1), [95]);
}

#[test]
fn what_is_left_of_a_read_that_was_ended_early_is_not_wanted() {
    let site = Site::new(2);
    site.load(&set("map", 600, 1)).unwrap();
    let client = site.client(BlockClientOptions::default());
    let open = client.open("map").unwrap();
    let mut taken = 0;
    let ended = range_read::read_range(&client, &open, 0, 600, |_, _| {
        taken += 1;
        if taken < 5 {
            Ok(())
        } else {
            Err(stackline_core::error::Error::interrupted())
        }
    });
    assert!(ended.is_err());
    assert_eq!(client.waiting(open.id), 0);
    // Some of it has come and waits to be taken.
    std::thread::sleep(Duration::from_millis(200));
    client.request(open.id, vec![7, 599, 7], true).unwrap();
    // The blocks may be here before the next line: at most two are still waited for.
    assert!(
        client.waiting(open.id) <= 2,
        "what is asked for twice is wanted once"
    );
    let mut wanted = BTreeSet::new();
    while let Some(event) = client.next(Some(Duration::from_millis(500))) {
        if let BlockClientEvent::Block(block) = event
            && block.wanted
        {
            assert!(wanted.insert(block.head.number));
        }
    }
    assert_eq!(wanted, BTreeSet::from([7, 599]));
}
