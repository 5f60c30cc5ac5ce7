//! Clients that do not read, say nothing, or say it slowly: they take bounded memory and places, and who holds the key is served.

use crate::common::{ANYWHERE, Site, set};
use stackline_blocks::limits;
use stackline_blocks::set::BlockSet;
use stackline_blocks::wire::VERSION;
use stackline_blocks::wire::handshake::{BlockHello, BlockPeerRole, MAGIC};
use stackline_blocks::wire::master_messages::Map;
use stackline_blocks::wire::message::Message;
use stackline_blockserver::client::{BlockClient, BlockClientOptions};
use stackline_blockserver::connection::{self, BlockConnectionHalves};
use stackline_blockserver::connection_slots::BlockConnectionLimits;
use stackline_blockserver::{master, server};
use stackline_testing::wait_for;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A client without a key that asks for answers of some 200 KiB and reads none.
fn asks_and_does_not_read(master: &str, questions: u32) -> BlockConnectionHalves {
    let (receiver, mut sender) =
        connection::connect(master, BlockPeerRole::Client, None, Some(4096)).unwrap();
    sender
        .stream()
        .set_write_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    for request in 1..=questions {
        let map = Map {
            request,
            set: 1,
            first: 0,
            count: limits::LONGEST_BATCH as u32,
        };
        // It is not read of it any more: so far so good.
        if sender.message(&map.into()).is_err() {
            break;
        }
    }
    (receiver, sender)
}

/// A site with a set whose map is one large answer.
fn mapped(say: fn(&str)) -> Site {
    let mut site = Site::new(0);
    site.master.stop();
    let (key, places) = (Some(site.key.clone()), BlockConnectionLimits::default());
    let options = master::BlockMasterOptions {
        listen: ANYWHERE.into(),
        key,
        places,
        say,
    };
    site.master = master::start(options, &site.directory.path().join("mapped")).unwrap();
    site.servers.push(site.start_server(0));
    site.wait_for(1);
    let blocks = limits::LONGEST_BATCH as u64;
    site.load(&BlockSet {
        block_size: 512,
        bytes: blocks * 512,
        ..set("map", 1, 1)
    })
    .unwrap();
    site
}

#[test]
fn twelve_clients_that_do_not_read_answers_hold_little() {
    let site = mapped(|_| {});
    let address = site.master.address().to_string();
    let held: Vec<BlockConnectionHalves> = (0..12)
        .map(|_| asks_and_does_not_read(&address, 1000))
        .collect();
    // Each waits for itself: what is queued for it, and one answer more.
    wait_for("answers wait for all of them", || {
        (site.master.most_waiting() >= 12 * limits::ANSWERS).then_some(())
    });
    assert_eq!(
        site.client(BlockClientOptions::default())
            .list()
            .unwrap()
            .0
            .len(),
        1
    );
    let most = site.master.most_waiting();
    assert!(
        most <= 12 * (limits::ANSWERS + (256 << 10)) + (1 << 20),
        "{most}"
    );
    drop(held);
}

static CLOSED: AtomicUsize = AtomicUsize::new(0);

#[test]
fn all_clients_that_do_not_read_together_hold_a_bounded_amount() {
    let site = mapped(|words| {
        CLOSED.fetch_add(
            usize::from(words.contains("left too much data unread")),
            Ordering::SeqCst,
        );
    });
    let address = site.master.address().to_string();
    let held: Vec<BlockConnectionHalves> = (0..90)
        .map(|_| asks_and_does_not_read(&address, 60))
        .collect();
    wait_for("one of them is closed", || {
        (CLOSED.load(Ordering::SeqCst) > 0).then_some(())
    });
    assert_eq!(
        site.client(BlockClientOptions::default())
            .list()
            .unwrap()
            .0
            .len(),
        1
    );
    let most = site.master.most_waiting();
    assert!(
        most > limits::ALL_ANSWERS && most <= limits::ALL_ANSWERS + (2 << 20),
        "{most}"
    );
    drop(held);
}

#[test]
fn a_byte_each_second_is_no_greeting() {
    let site = Site::new(1);
    let hello = Message::from(BlockHello {
        magic: MAGIC,
        version: VERSION,
        role: BlockPeerRole::Client,
        nonce: [7; 16],
    })
    .bytes();
    std::thread::scope(|scope| {
        for address in [site.master.address(), site.servers[0].address()] {
            let hello = &hello;
            scope.spawn(move || {
                let mut stream = TcpStream::connect(address).unwrap();
                stream
                    .set_read_timeout(Some(Duration::from_secs(1)))
                    .unwrap();
                let is_over = |stream: &mut TcpStream| match stream.read(&mut [0; 100]) {
                    Ok(0) => true,
                    Ok(_) => panic!("it was greeted"),
                    Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
                };
                let sent = hello.iter().take_while(|byte| {
                    stream.write_all(&[**byte]).is_ok() && !is_over(&mut stream)
                });
                let sent = sent.count();
                assert!(
                    sent >= 2 && sent < hello.len() - 5,
                    "{sent} of {}",
                    hello.len()
                );
            });
        }
    });
}

#[test]
fn who_proves_the_key_gets_a_place_however_many_strangers_and_readers_there_are() {
    let mut site = Site::new(0);
    let places = BlockConnectionLimits {
        strangers: 8,
        readers: 16,
        trusted: 3,
    };
    site.master.stop();
    let options = master::BlockMasterOptions {
        listen: ANYWHERE.into(),
        key: Some(site.key.clone()),
        places,
        say: |_| {},
    };
    site.master = master::start(options, &site.directory.path().join("small")).unwrap();
    site.servers
        .push(site.start_server_with(0, |options| server::DiskServerOptions { places, ..options }));
    site.wait_for(1);
    let (master, server) = (site.master.address(), site.servers[0].address());
    let first = site.client(BlockClientOptions::default());
    first.list().unwrap();
    // Many that say nothing, and many that say that they read and then nothing.
    let silent: Vec<TcpStream> = [master, server]
        .iter()
        .cycle()
        .take(60)
        .map(|to| TcpStream::connect(to).unwrap())
        .collect();
    let idle = |role: BlockPeerRole, to: std::net::SocketAddr| {
        move |_: u32| connection::connect(&to.to_string(), role, None, None).unwrap()
    };
    let readers: Vec<BlockConnectionHalves> =
        (0..60).map(idle(BlockPeerRole::Client, master)).collect();
    let attached: Vec<BlockConnectionHalves> =
        (0..60).map(idle(BlockPeerRole::Data, server)).collect();
    // With the key: the server, and a loader that writes to it.
    site.load(&set("map", 20, 1)).unwrap();
    // The idlest reader had to go, and knows why; the newest is still there.
    let error = wait_for("the first reader gets an error", || first.list().err());
    assert!(
        error
            .message
            .contains("the master has reached its limit of 16 readers"),
        "{error:?}"
    );
    // As many loaders as it takes, and one more, which is told so.
    let loaders: Vec<BlockClient> = wait_for("the loader of before has gone", || {
        let loaders: Vec<BlockClient> = (0..2).map(|_| site.loader()).collect();
        loaders
            .iter()
            .all(|loader| loader.list().is_ok())
            .then_some(loaders)
    });
    let error = site.loader().list().unwrap_err();
    assert!(
        error
            .message
            .contains("the master has reached its limit of 3 loaders and servers"),
        "{error:?}"
    );
    drop((silent, readers, attached, loaders));
}

#[test]
fn messages_that_never_become_whole_hold_little() {
    let site = Site::new(1);
    // A list as long as one may be, without its end: one longer is refused at its head.
    let (_receiver, sender) = connection::connect(
        &site.master.address().to_string(),
        BlockPeerRole::Client,
        None,
        None,
    )
    .unwrap();
    let mut stream = sender.stream();
    let length = (limits::LONGEST_QUESTION + 2) as u32;
    stream
        .write_all(&[&length.to_be_bytes()[..], &[19], &[0; 60]].concat())
        .unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    assert_eq!(stream.read(&mut [0; 10]).unwrap_or(0), 0, "it is closed");
    site.client(BlockClientOptions::default()).list().unwrap();
}
