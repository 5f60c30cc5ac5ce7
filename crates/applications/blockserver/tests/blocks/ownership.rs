//! A disk belongs to the master that gave out its space: another one writes nothing there, and says so.

use crate::common::{ANYWHERE, Site, content, set, try_master};
use stackline_blocks::wire::handshake::BlockPeerRole;
use stackline_blocks::wire::master_messages::DiskServerJoined;
use stackline_blocks::wire::message::Message;
use stackline_blocks::wire::server_messages::{StoreBlockRequest, Sync, Synced};
use stackline_blockserver::client::BlockClientOptions;
use stackline_blockserver::connection;
use stackline_blockserver::connection_slots::BlockConnectionLimits;
use stackline_blockserver::disk::BlockDisk;
use stackline_blockserver::{master, range_read, server};
use stackline_testing::wait_for;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;

/// What masters and servers of this file have said.
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn say(words: &str) {
    SAID.lock().unwrap().push(words.to_owned());
}

/// A master at that address that remembers there; the old one may still hold its file.
fn at(site: &Site, data: &Path, address: SocketAddr) -> master::RunningMaster {
    wait_for("the master starts", || {
        let (key, places) = (Some(site.key.clone()), BlockConnectionLimits::default());
        master::start(
            master::BlockMasterOptions {
                listen: address,
                key,
                places,
                say,
            },
            data,
        )
        .ok()
    })
}

/// How often disks below that directory were said to be another master's.
fn refusals(directory: &Path) -> usize {
    let (directory, said) = (directory.to_str().unwrap(), SAID.lock().unwrap());
    let is_one = |words: &&String| {
        words.contains(directory)
            && words.contains("belongs to another master")
            && words.contains("--adopt")
    };
    said.iter().filter(is_one).count()
}

fn read_back(site: &Site, name: &str) {
    let client = site.client(BlockClientOptions::default());
    let open = client.open(name).unwrap();
    let mut came = 0;
    range_read::read_range(&client, &open, 0, u64::MAX, |number, data| {
        assert_eq!(
            data,
            content(number, open.about.length(number) as usize),
            "block {number} of {name}"
        );
        came += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!(came, open.about.blocks());
}

#[test]
fn a_master_with_other_data_destroys_nothing_until_the_disks_are_taken_over() {
    let mut site = Site::new(0);
    let (address, directory) = (site.master.address(), site.directory.path().to_owned());
    site.servers
        .push(site.start_server_with(0, |options| server::DiskServerOptions { say, ..options }));
    site.wait_for(1);
    site.load(&set("a", 100, 1)).unwrap();

    // Once with an empty directory, once with an empty file in the place of what it remembered.
    std::fs::create_dir_all(directory.join("empty")).unwrap();
    std::fs::write(directory.join("empty/master.redb"), b"").unwrap();
    // The server says what it has not said just before.
    for (other, times) in [("elsewhere", 2), ("empty", 3)] {
        site.master.stop();
        site.master = at(&site, &directory.join(other), address);
        wait_for("both sides say it", || {
            (refusals(&directory) >= times).then_some(())
        });
        let error = site.load(&set("b", 100, 1)).unwrap_err();
        assert!(error.message.contains("no disk server is up"), "{error:?}");
    }
    site.master.stop();
    site.master = at(&site, &directory.join("master"), address);
    site.wait_for(1);
    read_back(&site, "a");

    // Taken over on purpose, they are the other one's: then the first is refused.
    site.servers.pop().unwrap().stop();
    site.master.stop();
    site.master = at(&site, &directory.join("elsewhere"), address);
    let options = server::DiskServerOptions {
        say,
        adopt: true,
        ..site.options(0)
    };
    let disks = wait_for("the disks are free", || {
        let open = |disk| BlockDisk::open(&site.disk(0, disk), false, Some(1 << 30)).ok();
        Some(vec![open(0)?, open(1)?])
    });
    site.servers.push(server::start(options, disks).unwrap());
    site.wait_for(1);
    wait_for("it is said", || {
        SAID.lock()
            .unwrap()
            .iter()
            .any(|words| words.contains("took over the disk"))
            .then_some(())
    });
    site.load(&set("b", 100, 1)).unwrap();
    read_back(&site, "b");
    let before = refusals(&directory);
    site.master.stop();
    site.master = at(&site, &directory.join("master"), address);
    wait_for("it is refused", || {
        (refusals(&directory) > before).then_some(())
    });
}

#[test]
fn a_master_that_forgot_what_it_gave_out_is_refused() {
    let mut site = Site::new(1);
    let (address, data) = (site.master.address(), site.directory.path().join("master"));
    // Its file as it was before the load, as a backup has it.
    site.master.stop();
    let old = site.directory.path().join("old");
    std::fs::create_dir(&old).unwrap();
    wait_for("its file is free", || {
        try_master(&data, &site.key, ANYWHERE.into()).ok()
    })
    .stop();
    std::fs::copy(data.join("master.redb"), old.join("master.redb")).unwrap();
    site.master = at(&site, &data, address);
    site.wait_for(1);
    site.load(&set("a", 5000, 1)).unwrap();
    site.master.stop();
    site.master = at(&site, &old, address);
    wait_for("it is refused", || {
        let said = SAID.lock().unwrap();
        said.iter()
            .any(|words| words.contains("it has lost part of its record of allocated space"))
            .then_some(())
    });
    assert!(
        site.load(&set("b", 10, 1))
            .unwrap_err()
            .message
            .contains("no disk server is up")
    );
    site.master.stop();
    site.master = at(&site, &data, address);
    site.wait_for(1);
    read_back(&site, "a");
}

#[test]
fn numbers_of_sets_are_used_once_whatever_was_deleted_before_a_restart() {
    let mut site = Site::new(1);
    let (address, data) = (site.master.address(), site.directory.path().join("master"));
    site.load(&set("a", 3, 1)).unwrap();
    let before = site
        .client(BlockClientOptions::default())
        .open("a")
        .unwrap();
    site.loader().delete("a").unwrap();
    site.master.stop();
    site.master = at(&site, &data, address);
    site.wait_for(1);
    site.load(&set("a", 3, 1)).unwrap();
    let after = site
        .client(BlockClientOptions::default())
        .open("a")
        .unwrap();
    assert!(
        after.id > before.id && after.master == before.master && after.master != 0,
        "{before:?} {after:?}"
    );
}

/// Makes what is below a directory read-only for this thread and those that it starts: root may write whatever the mode is.
fn read_only(directory: &Path) {
    use nix::mount::{MsFlags, mount};
    use std::os::unix::fs::PermissionsExt;
    if nix::unistd::geteuid().is_root() {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS).unwrap();
        let nothing = None::<&str>;
        mount(
            nothing,
            "/",
            nothing,
            MsFlags::MS_REC | MsFlags::MS_PRIVATE,
            nothing,
        )
        .unwrap();
        mount(
            Some(directory),
            directory,
            nothing,
            MsFlags::MS_BIND,
            nothing,
        )
        .unwrap();
        let again = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
        mount(nothing, directory, nothing, again, nothing).unwrap();
    } else {
        let mode = std::fs::Permissions::from_mode(0o400);
        std::fs::set_permissions(directory.join("stackline.blocks"), mode).unwrap();
    }
}

#[test]
fn a_disk_that_cannot_be_written_is_read_and_the_others_serve_as_before() {
    let mut site = Site::new(1);
    site.load(&set("a", 40, 1)).unwrap();
    site.servers.pop().unwrap().stop();
    let server = std::thread::scope(|scope| {
        let (site, options) = (&site, site.options(0));
        let serve = move || {
            let first = wait_for("the first disk is free", || {
                BlockDisk::open(&site.disk(0, 0), false, Some(1 << 30)).ok()
            });
            drop(first);
            read_only(&site.disk(0, 0));
            let open = |disk| {
                wait_for("the disk is free", || {
                    BlockDisk::open(&site.disk(0, disk), false, Some(1 << 30)).ok()
                })
            };
            server::start(options, vec![open(0), open(1)]).unwrap()
        };
        scope.spawn(serve).join().unwrap()
    });
    site.servers.push(server);
    site.wait_for(1);
    let disks = site
        .client(BlockClientOptions::default())
        .list()
        .unwrap()
        .1
        .remove(0)
        .disks;
    assert_eq!(
        disks
            .iter()
            .map(|disk| (disk.up, disk.writable))
            .collect::<Vec<_>>(),
        [(true, false), (true, true)]
    );
    read_back(&site, "a");
    site.load(&set("b", 40, 1)).unwrap();
    read_back(&site, "b");
    let client = site.client(BlockClientOptions::default());
    let open = client.open("b").unwrap();
    let rows = client.map(open.id, 0, 40).unwrap();
    assert!(
        rows.iter()
            .all(|row| row.places.iter().all(|place| place.disk == 1))
    );
}

/// A master names a server to loaders as soon as it has taken it, and its answer to the server may be on its way then.
#[test]
fn a_loader_that_comes_before_the_masters_answer_is_not_refused() {
    const BLOCK: &[u8] = b"a block";
    let listener = std::net::TcpListener::bind(SocketAddr::from(ANYWHERE)).unwrap();
    let (site, master) = (Site::new(0), listener.local_addr().unwrap());
    let running = site.start_server_with(0, |options| server::DiskServerOptions {
        master: master.to_string(),
        ..options
    });
    let (stream, _) = listener.accept().unwrap();
    let (_, (mut from_server, mut to_server)) =
        connection::accept_connection(stream, Some(&site.key), None).unwrap();
    assert!(matches!(from_server.message(), Ok(Message::Join(_))));

    let address = running.address().to_string();
    let (mut answers, mut loader) =
        connection::connect(&address, BlockPeerRole::Writer, Some(&site.key), None).unwrap();
    let block = StoreBlockRequest {
        request: 1,
        disk: 0,
        offset: stackline_blocks::master::ALIGNMENT,
        length: BLOCK.len() as u32,
        checksum: crc32fast::hash(BLOCK),
    };
    loader.with_data(&block.into(), BLOCK).unwrap();
    loader.message(&Sync { request: 2, set: 1 }.into()).unwrap();
    // Long enough for the server to have read both.
    std::thread::sleep(std::time::Duration::from_millis(200));
    let joined = DiskServerJoined {
        server: 0,
        master: 42,
    };
    to_server.message(&joined.into()).unwrap();
    assert!(matches!(
        answers.message(),
        Ok(Message::Synced(Synced { request: 2 }))
    ));
    running.stop();
}
