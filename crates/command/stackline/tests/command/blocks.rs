//! `blocks`: what is loaded on servers comes back; what cannot be is said in a sentence.

use crate::support::blocks::{Site, content};
use crate::support::{Place, noise, number, until};
use nix::sys::signal::Signal;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;

#[test]
fn terrain_is_loaded_on_two_servers_and_comes_back() {
    let site = Site::new(2);
    let loaded = site.blocks(&["load", "land", "terrain:500x300:7"]);
    assert!(
        loaded
            .succeeds()
            .out
            .starts_with("loaded land: 17 blocks, 816 KiB in "),
        "{}",
        loaded.out
    );
    assert_eq!(loaded.err, "", "silent in a pipe");
    let read = site.blocks(&["get", "land", "-o", "land.tiles"]);
    assert!(
        read.succeeds()
            .out
            .starts_with("read land: 17 blocks, 816 KiB in "),
        "{}",
        read.out
    );
    // Made again where it is not: the same bytes on a single server of another place.
    let other = Site::new(1);
    other
        .blocks(&["load", "land", "terrain:500x300:7", "--placement", "hash"])
        .succeeds();
    other
        .blocks(&["get", "land", "-o", "land.tiles"])
        .succeeds();
    assert!(content(&site.place, "land.tiles") == content(&other.place, "land.tiles"));

    site.blocks(&["get", "land", "--tile", "1/1/1", "-o", "tile.png"])
        .succeeds();
    let mut reader = png::Decoder::new(std::io::Cursor::new(content(&site.place, "tile.png")))
        .read_info()
        .unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((info.width, info.height), (128, 128));
    // Four by three tiles of level 0 come before level 1 of two by two.
    assert!(pixels[..] == content(&site.place, "land.tiles")[15 * 49_152..][..49_152]);
    site.blocks(&["get", "land", "--tile", "9/0/0", "-o", "x.png"])
        .fails(2, &["no tile 9/0/0"])
        .hints("0 to 2");
}

#[test]
fn a_directory_is_made_again() {
    let site = Site::new(2);
    let (long, short) = (noise(300_000, 1), noise(700, 2));
    site.place.write("in/deep/er/long", &long);
    site.place.write("in/short", &short);
    site.place.write("in/none", "");
    site.place.script("in/run", "#!/bin/sh\necho it runs\n");
    fs::create_dir(site.place.path("in/empty")).unwrap();
    site.blocks(&["load", "files", "in", "--block", "4KiB", "--replicas", "2"])
        .succeeds();
    let read = site.blocks(&["get", "files", "-o", "out"]);
    assert!(read.succeeds().out.ends_with(" to out\n"), "{}", read.out);
    assert!(
        content(&site.place, "out/deep/er/long") == long
            && content(&site.place, "out/short") == short
    );
    assert_eq!(content(&site.place, "out/none"), b"");
    assert!(site.place.path("out/empty").is_dir());
    let ran = std::process::Command::new(site.place.path("out/run"))
        .output()
        .unwrap();
    assert_eq!(ran.stdout, b"it runs\n");
    site.blocks(&["get", "files", "-o", "out"])
        .fails(2, &["out already exists"]);
    let left: Vec<_> = fs::read_dir(site.place.path(""))
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert!(
        left.iter()
            .all(|name| !name.to_string_lossy().starts_with(".blocks-")),
        "{left:?}"
    );

    // Several sources are a directory too.
    site.blocks(&["load", "two", "in/short", "in/deep"])
        .succeeds();
    site.blocks(&["get", "two", "-o", "again"]).succeeds();
    assert!(
        content(&site.place, "again/deep/er/long") == long
            && content(&site.place, "again/short") == short
    );
}

#[test]
fn parts_of_a_file_are_read() {
    let site = Site::new(1);
    let data = noise(20_000, 3);
    site.place.write("data", &data);
    site.blocks(&[
        "load",
        "data",
        "data",
        "--block",
        "4k",
        "--placement",
        "given:0,1,1",
    ])
    .succeeds();
    let read = site.blocks(&["get", "data", "--blocks", "1..2", "-o", "part"]);
    assert!(
        read.succeeds()
            .out
            .starts_with("read data: 2 blocks, 8 KiB in "),
        "{}",
        read.out
    );
    assert!(content(&site.place, "part") == data[4096..3 * 4096]);
    assert!(
        site.blocks(&["get", "data", "--blocks", "4..4"])
            .succeeds()
            .out
            .contains("1 block, 3616 B")
    );
    site.blocks(&["get", "data", "--blocks", "0..5"])
        .fails(2, &["no block 5"])
        .hints("0..4");
    let list = site.blocks(&["list", "--json"]).json();
    assert_eq!(list["sets"][0]["placement"], "given");
    // One block of every three on the first disk: 0 and 3, of 4 KiB each, behind the first page.
    let used = |disk: usize| number(&list, &format!("/servers/0/disks/{disk}/used_bytes"));
    assert_eq!((used(0), used(1)), (3.0 * 4096.0, 4.0 * 4096.0));
}

#[test]
fn pictures_become_pyramids() {
    let site = Site::new(1);
    let (width, height) = (200_u32, 150_u32);
    let pixels: Vec<u8> = (0..height)
        .flat_map(|y| (0..width).flat_map(move |x| [x as u8, y as u8, 99]))
        .collect();
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder
        .write_header()
        .unwrap()
        .write_image_data(&pixels)
        .unwrap();
    site.place.write("map.png", &bytes);
    site.blocks(&["load", "map", "map.png"]).succeeds();
    site.blocks(&["get", "map", "-o", "tiles"]).succeeds();
    let tiles = content(&site.place, "tiles");
    assert_eq!(tiles.len(), 5 * 49_152);
    // The pixel at 130, 140 is in the second tile of the second row, and in the one tile above.
    assert_eq!(
        tiles[3 * 49_152 + (12 * 128 + 2) * 3..][..3],
        [130, 140, 99]
    );
    assert_eq!(
        tiles[4 * 49_152 + (70 * 128 + 65) * 3..][..3],
        [131, 141, 99]
    );
    site.blocks(&["load", "plain", "map.png", "--plain"])
        .succeeds();
    site.blocks(&["get", "plain", "-o", "back.png"]).succeeds();
    assert!(content(&site.place, "back.png") == bytes);
    site.place.write("cut.png", &bytes[..60]);
    site.blocks(&["load", "cut", "cut.png"])
        .fails(2, &["cut.png", "cannot read"])
        .hints("--plain");
    site.blocks(&["load", "b", "map.png", "--block", "4k"])
        .fails(2, &["tiles"]);
}

#[test]
fn the_list_shows_sets_servers_and_disks() {
    let mut site = Site::new(2);
    site.blocks(&["load", "land", "terrain:300x300"]).succeeds();
    let list = site.blocks(&["list", "--json"]).json();
    let set = &list["sets"][0];
    assert_eq!(
        (&set["name"], &set["complete"], &set["placement"]),
        (&"land".into(), &true.into(), &"tiles".into())
    );
    let numbers = [
        "blocks",
        "bytes",
        "block_bytes",
        "written_blocks",
        "reachable_blocks",
        "replicas",
    ];
    assert_eq!(
        numbers.map(|name| number(set, &format!("/{name}"))),
        [14.0, 688_128.0, 49_152.0, 14.0, 14.0, 1.0]
    );
    assert_eq!(number(set, "/picture/levels"), 3.0);
    let servers = list["servers"].as_array().unwrap();
    assert_eq!(servers.len(), 2);
    for server in servers {
        assert_eq!(
            (&server["up"], server["disks"].as_array().unwrap().len()),
            (&true.into(), 2)
        );
        assert_eq!(
            number(server, "/disks/0/capacity_bytes"),
            (64_u64 << 30) as f64
        );
    }
    let text = site.blocks(&["list"]);
    assert!(
        text.succeeds().out.contains(
            "land  14      672 KiB  48 KiB  all        1       tiles      300x300, 3 levels"
        ),
        "{}",
        text.out
    );

    site.servers[1].kill();
    let list = until("the server is down", || {
        let list = site.blocks(&["list", "--json"]).json();
        (list["servers"][1]["up"] == false).then_some(list)
    });
    assert!(number(&list["sets"][0], "/reachable_blocks") < 14.0);
    site.blocks(&["get", "land"])
        .fails(1, &["blocks of land: 1, 3", "no running server has it"])
        .hints("blocks list");
    site.blocks(&["delete", "land"]).succeeds();
    site.blocks(&["get", "land"])
        .fails(2, &["unknown set land"])
        .hints("blocks list");
    site.blocks(&["delete", "land"])
        .fails(2, &["unknown set land"]);
}

#[test]
fn a_load_that_is_ended_says_that_it_goes_on() {
    let site = Site::new(1);
    let data = noise(8 << 20, 5);
    site.place.write("data", &data);
    let loading = ["load", "data", "data", "--block", "4k", "--batch", "4k"];
    let started = site.place.start(&mut site.command(&loading));
    until("a block is acknowledged", || {
        let sets = site.client()?.list().ok()?.0;
        sets.first()
            .is_some_and(|set| set.written > 0)
            .then_some(())
    });
    started.process().signal(Signal::SIGINT);
    started
        .finish()
        .fails(130, &["interrupted before it was complete"])
        .hints("resume");
    site.blocks(&["get", "data"]).fails(1, &["cannot read"]);
    // The same source goes on, another one of the same size does not.
    let mut other = data.clone();
    other[0] ^= 1;
    site.place.write("other", &other);
    let refused = ["load", "data", "other", "--block", "4k"];
    until("the first loader is forgotten", || {
        (!site.blocks(&refused).err.contains("somebody else")).then_some(())
    });
    site.blocks(&refused)
        .fails(2, &["created with different content"])
        .hints("blocks delete");
    let done = site.blocks(&["load", "data", "data", "--block", "4k"]);
    assert!(
        done.succeeds()
            .out
            .contains(" of 2048 blocks already existed)"),
        "{}",
        done.out
    );
    site.blocks(&["get", "data", "-o", "back"]).succeeds();
    assert!(content(&site.place, "back") == data);
    site.blocks(&["load", "data", "data", "--block", "4k"])
        .fails(2, &["already exists"]);
}

#[test]
fn what_cannot_be_loaded() {
    let site = Site::new(1);
    site.place.write("empty", "");
    site.place.write("data", "some");
    for (arguments, words, hint) in [
        (
            &["load", "a", "nothing"][..],
            "cannot read nothing",
            "a source is",
        ),
        (&["load", "a", "empty"], "empty", "at least one byte"),
        (&["load", "a/b", "data"], "cannot create the set a/b", ""),
        (
            &["load", "a", "terrain:5"],
            "invalid terrain",
            "terrain:WIDTHxHEIGHT",
        ),
        (
            &["load", "a", "data", "--block", "100"],
            "100 bytes",
            "512 B to 16 MiB",
        ),
        (
            &["load", "a", "data", "--placement", "tiles"],
            "only a picture",
            "round-robin",
        ),
        (
            &["load", "a", "data", "--placement", "given:7"],
            "names disk 7, but the number of disks is 2",
            "numbered from 0",
        ),
        (
            &["load", "a", "data", "--placement", "far"],
            "unknown placement far",
            "hash",
        ),
        (
            &["load", "a", "data", "data"],
            "two sources have the name data",
            "",
        ),
        (
            &["load", "a", "data", "--key", "nowhere"],
            "cannot read the key nowhere",
            "blocks key",
        ),
        (
            &["load", "a", "data", "--key", "data"],
            "data does not hold a key",
            "64 hexadecimal",
        ),
    ] {
        let finished = site.blocks(arguments);
        finished.fails(2, &[words]);
        assert!(
            hint.is_empty() || finished.err.contains(hint),
            "{}",
            finished.err
        );
    }
    assert_eq!(
        site.blocks(&["list", "--json"]).json()["sets"],
        serde_json::json!([])
    );
    site.blocks(&["key", "other"]).succeeds();
    site.blocks(&["load", "a", "data", "--key", "other"])
        .fails(3, &["the keys differ"])
        .hints("same key file");
    site.blocks(&["key", "other"]).fails(2, &["already exists"]);
}

#[test]
fn full_disks_and_missing_servers() {
    let mut site = Site::new(0);
    site.place.write("data", noise(1 << 20, 1));
    site.blocks(&["load", "a", "data"])
        .fails(3, &["no disk server is up"]);
    site.servers.push(site.start_server(0, "100KiB"));
    site.is_ready();
    site.blocks(&["load", "a", "data"])
        .fails(3, &["no space for block"])
        .hints("add a server or a disk");
    site.blocks(&["load", "b", "data", "--replicas", "4"])
        .fails(3, &["4 copies need 4 disks; 2 are up"]);
    // Nothing is left of a set of which nothing was acknowledged.
    assert_eq!(
        site.blocks(&["list", "--json"]).json()["sets"],
        serde_json::json!([])
    );
}

#[test]
fn what_cannot_serve() {
    let site = Site::new(1);
    let address = site.master.address.clone();
    site.blocks(&["master", "--listen", &address, "--data", "other"])
        .fails(3, &["cannot listen"])
        .hints("--listen");
    site.blocks(&["master", "--listen", "127.0.0.1:0", "--data", "m"])
        .fails(3, &["cannot open"])
        .hints("--data");
    site.place.write("letter", "dear reader");
    site.blocks(&["serve", "--disk", "letter"])
        .fails(2, &["holds something other"])
        .hints("nothing was written");
    assert_eq!(content(&site.place, "letter"), b"dear reader");
    site.blocks(&["serve", "--disk", "s0/0"])
        .fails(2, &["another server is using the disk"]);
    site.blocks(&["serve", "--disk", "nowhere"])
        .fails(3, &["cannot use the disk nowhere"])
        .hints("create it first");
    let without = &mut site.command(&["serve", "--disk", "s0/1"]);
    without.env("STACKLINE_BLOCKS_KEY", site.place.path("nokey"));
    site.place
        .finish(without)
        .fails(2, &["a key is needed"])
        .hints("blocks key");
}

#[test]
fn a_master_that_is_not_there_or_something_else() {
    let place = Place::new();
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    place
        .stackline(&["blocks", "list", "--master", &free])
        .fails(3, &["cannot reach"])
        .hints("check that the server is running");
    place
        .stackline(&["blocks", "list", "--master", "no address"])
        .fails(2, &["is not a valid address"]);
    let answers = |answer: Vec<u8>| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut hello = [0; 28];
            stream.read_exact(&mut hello).unwrap();
            stream.write_all(&answer).unwrap();
        });
        let finished = place.stackline(&["blocks", "list", "--json", "--master", &address]);
        thread.join().unwrap();
        finished
    };
    answers(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()).fails(3, &["is not a block server"]);
    let why = stackline_blocks::wire::message::Why::Version as u8;
    let words = "the listening side speaks version 9, the connecting side 1".to_owned();
    let refused = stackline_blocks::wire::master_messages::BlockRequestRefused {
        request: 0,
        why,
        words,
    };
    let newer = answers(stackline_blocks::wire::Message::from(refused).bytes());
    newer.fails(3, &["version 9"]).hints("same version");
    let json: serde_json::Value = serde_json::from_str(&newer.out).unwrap();
    assert_eq!(json["ok"], false);
}

#[test]
fn a_master_without_a_key_serves_and_ends_when_it_is_asked() {
    let mut site = Site::new(1);
    site.place.write("data", noise(100_000, 1));
    site.blocks(&["load", "data", "data", "--replicas", "2"])
        .succeeds();
    site.master.kill();
    let mut command = site.command(&["master", "--listen", &site.master.address, "--data", "m"]);
    command
        .env("STACKLINE_BLOCKS_KEY", site.place.path("nokey"))
        .env("STACKLINE_RUNS", site.place.path("served"));
    let started = site.place.start(&mut command);
    let list = until("the master is back", || {
        let listed = site.blocks(&["list", "--json"]);
        (listed.status.code() == Some(0)).then(|| listed.json())
    });
    assert_eq!(
        (&list["sets"][0]["name"], &list["servers"][0]["up"]),
        (&"data".into(), &false.into())
    );
    site.blocks(&["load", "more", "data"])
        .fails(3, &["the listening side has no key"]);
    started.process().signal(Signal::SIGTERM);
    let finished = started.finish();
    assert_eq!(
        (finished.status.code(), finished.out.trim()),
        (Some(0), &*site.master.address)
    );
    assert!(
        finished
            .err
            .contains("note: without a key, nothing can be written"),
        "{}",
        finished.err
    );
}

#[test]
fn a_server_that_hangs_is_named_and_gone_around() {
    let site = Site::new(2);
    site.place.write("data", noise(1 << 20, 5));
    site.blocks(&["load", "safe", "data", "--replicas", "2"])
        .succeeds();
    site.blocks(&["load", "single", "data"]).succeeds();
    site.servers[1].process().signal(Signal::SIGSTOP);
    let read = site.blocks(&["get", "safe"]);
    let named = format!(
        "note: server s1 at {}: it did not answer",
        site.servers[1].address
    );
    assert!(read.succeeds().err.contains(&named), "{}", read.err);
    let lost = site.blocks(&["get", "single"]);
    assert!(
        lost.err.contains("blocks of single: 1") && lost.err.contains(&named),
        "{}",
        lost.err
    );
    assert_eq!(lost.status.code(), Some(1));
    site.blocks(&["load", "third", "data", "--replicas", "2"])
        .fails(3, &["server s1 at", "does not answer"]);
    // The master hears nothing of it.
    let is_up = |up: bool| {
        let list = site.blocks(&["list", "--json"]).json();
        (list["servers"][1]["up"] == up).then_some(())
    };
    until("it counts as down", || is_up(false));
    assert_eq!(site.blocks(&["get", "safe"]).succeeds().err, "");
    site.servers[1].process().signal(Signal::SIGCONT);
    until("it is up again", || is_up(true));
    site.blocks(&["get", "single"]).succeeds();
}

#[test]
fn damaged_copies_are_reported() {
    let site = Site::new(2);
    site.place.write("data", noise(400_000, 5));
    site.blocks(&["load", "safe", "data", "--block", "4k", "--replicas", "2"])
        .succeeds();
    site.blocks(&["load", "single", "data", "--block", "4k"])
        .succeeds();
    for disk in ["0", "1"] {
        let path = site.place.path(&format!("s0/{disk}/stackline.blocks"));
        let mut bytes = fs::read(&path).unwrap();
        bytes[4096..].fill(7);
        fs::write(&path, bytes).unwrap();
    }
    let read = site.blocks(&["get", "safe"]);
    assert!(
        read.succeeds()
            .err
            .contains(" blocks came from another copy: server s0, disk s0/0 holds damaged"),
        "{}",
        read.err
    );
    let lost = site.blocks(&["get", "single"]);
    assert_eq!(lost.status.code(), Some(1));
    assert!(
        lost.err.contains("blocks of single: 0, 2, 4"),
        "{}",
        lost.err
    );
    assert!(
        lost.err
            .contains("hint: damaged copies are on server s0, disk s0/0; server s0, disk s0/1"),
        "{}",
        lost.err
    );
    until("the master has heard of it", || {
        let list = site.blocks(&["list", "--json"]).json();
        (number(&list, "/servers/0/disks/0/damaged_copies") > 20.0).then_some(())
    });
    assert!(site.blocks(&["list"]).out.contains(" damaged copies found"));
}

#[test]
fn ctrl_c_is_heard_while_a_master_says_nothing() {
    // It takes connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let place = Place::new();
    let mut command = place.command(&["blocks", "get", "map", "--master", &address]);
    let child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let (mut connection, _) = silent.accept().unwrap();
    // It has said who it is: from now on it waits, with Ctrl-C already listened for.
    connection.read_exact(&mut [0; 28]).unwrap();
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap()),
        Signal::SIGINT,
    )
    .unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(
        ended.status.code(),
        Some(130),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    // Its own patience of 5 s would be another end.
    assert!(String::from_utf8_lossy(&ended.stderr).contains("interrupted before it was complete"));
}

#[test]
fn a_master_with_other_data_leaves_what_is_on_the_disks() {
    let mut site = Site::new(1);
    let data = noise(100_000, 5);
    site.place.write("data", &data);
    site.blocks(&["load", "a", "data"]).succeeds();
    site.restart_master("elsewhere");
    site.blocks(&["load", "b", "data"])
        .fails(3, &["no disk server is up"]);
    site.restart_master("m");
    site.is_ready();
    site.blocks(&["get", "a", "-o", "back"]).succeeds();
    assert!(content(&site.place, "back") == data);
    let list = site.blocks(&["list", "--json"]).json();
    assert_eq!(list["servers"][0]["disks"][0]["writable"], true);
}

#[test]
fn what_cannot_be_a_source_is_not_waited_for() {
    let site = Site::new(1);
    nix::unistd::mkfifo(&site.place.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    site.blocks(&["load", "a", "pipe"])
        .fails(2, &["is not a file, directory or block device"])
        .hints("of a pipe");
    site.blocks(&["load", "a", "/dev/zero"])
        .fails(2, &["is not a file, directory or block device"]);
    site.blocks(&["replay", "--trace", "/dev/zero"])
        .fails(2, &["it is a device"]);
    site.place.write("data", noise(1000, 1));
    site.blocks(&["load", "a", "data", "--placement", "given:/dev/zero"])
        .fails(2, &["it is a device"]);
    let mut command = site.command(&["list"]);
    command.args(["--master", &site.master.address]);
    site.place.finish(&mut command).succeeds();
}
