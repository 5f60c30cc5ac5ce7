//! Servers and masters that are down, blocks that are damaged: the status that says so, until all is there again.

use super::support::{all, restarted};
use crate::common::{self, Site, content, set, start_master};
use crate::http::{Http, start};
use stackline_blockserver::disk::BlockDisk;
use stackline_blockserver::gateway::{self, limits::Patience};
use stackline_testing::wait_until;
use std::io::Read;

#[test]
fn a_server_that_is_down_is_503_until_it_is_there_again() {
    let mut site = Site::new(2);
    site.load(&set("map", 10, 1)).unwrap();
    let gateway = start(&site);
    let mut http = Http::to(gateway.address());
    assert_eq!(http.get("/map/0").status, 200);
    site.servers[1].stop();
    site.wait_for(1);
    let statuses: Vec<u16> = (0..10)
        .map(|number| http.get(&format!("/map/{number}")).status)
        .collect();
    assert_eq!(
        statuses.iter().filter(|status| **status == 503).count(),
        5,
        "{statuses:?}"
    );
    let gone = statuses.iter().position(|status| *status == 503).unwrap();
    assert_eq!(
        http.get(&format!("/map/{gone}")).text(),
        format!("503: block {gone} of map: no running server has it\n")
    );
    assert_eq!(http.get("/map").status, 503);
    // The old one lets go of its disks when its last thread has gone.
    drop(site.servers.pop());
    wait_until("its disks are free", || {
        (0..2).all(|disk| BlockDisk::open(&site.disk(1, disk), false, None).is_ok())
    });
    site.servers.push(site.start_server(1));
    site.wait_for(2);
    http.until(&format!("/map/{gone}"), 200);
    assert!(http.get("/map").body == all(&set("map", 10, 1)));
}

#[test]
fn without_a_master_open_sets_are_read_and_others_are_503() {
    let mut site = Site::new(1);
    site.load(&set("open", 10, 1)).unwrap();
    site.load(&set("other", 10, 1)).unwrap();
    let gateway = start(&site);
    let mut http = Http::to(gateway.address());
    assert_eq!(http.get("/open/0").status, 200);
    let address = site.master.address();
    site.master.stop();
    http.until("/", 503);
    let answer = http.get("/other/1");
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("1"))
    );
    assert!(
        answer.text().contains(&address.to_string()),
        "{}",
        answer.text()
    );
    assert_eq!(http.get("/open/5").body, content(5, 8192));
    // When it is there again, all is as it was.
    site.master = restarted(&site, address);
    site.wait_for(1);
    http.until("/other/1", 200);
    assert_eq!(http.get("/open/6").body, content(6, 8192));
}

#[test]
fn it_may_be_there_before_its_master() {
    let directory = tempfile::tempdir().unwrap();
    let free = std::net::TcpListener::bind(std::net::SocketAddr::from(common::ANYWHERE))
        .unwrap()
        .local_addr()
        .unwrap();
    let options = gateway::GatewayOptions {
        listen: common::ANYWHERE.into(),
        master: free.to_string(),
        patience: Patience::default(),
        connections: 8,
        room: gateway::limits::ROOM,
    };
    let gateway = gateway::start(options).unwrap();
    let mut http = Http::to(gateway.address());
    let answer = http.get("/");
    assert_eq!(answer.status, 503);
    assert!(
        answer.text().contains(&free.to_string()),
        "{}",
        answer.text()
    );
    let key = stackline_blockserver::key::generate_key().unwrap();
    let master = start_master(directory.path(), &key, free);
    http.until("/", 200);
    master.stop();
}

#[test]
fn a_corrupt_block_is_502() {
    use std::os::unix::fs::FileExt;
    let site = Site::new(1);
    site.load(&set("map", 4, 1)).unwrap();
    let client = site.client(stackline_blockserver::client::BlockClientOptions::default());
    let open = client.open("map").unwrap();
    let place = client.map(open.id, 2, 1).unwrap()[0].places[0].clone();
    let disk = site
        .disk(0, usize::from(place.disk))
        .join("stackline.blocks");
    std::fs::OpenOptions::new()
        .write(true)
        .open(disk)
        .unwrap()
        .write_at(b"damage", place.offset + 100)
        .unwrap();
    let gateway = start(&site);
    let mut http = Http::to(gateway.address());
    let answer = http.get("/map/2");
    assert_eq!(
        (answer.status, answer.text()),
        (
            502,
            "502: block 2 of map: the block read differs from the one written\n".into()
        )
    );
    assert_eq!(http.get("/map/1").status, 200);
}

#[test]
fn a_range_that_fails_midway_ends_early() {
    use std::os::unix::fs::FileExt;
    let site = Site::new(1);
    let about = set("map", 500, 1);
    site.load(&about).unwrap();
    let client = site.client(stackline_blockserver::client::BlockClientOptions::default());
    let open = client.open("map").unwrap();
    let place = client.map(open.id, 300, 1).unwrap()[0].places[0].clone();
    let disk = site
        .disk(0, usize::from(place.disk))
        .join("stackline.blocks");
    std::fs::OpenOptions::new()
        .write(true)
        .open(disk)
        .unwrap()
        .write_at(b"damage", place.offset + 100)
        .unwrap();
    let gateway = start(&site);
    let mut http = Http::to(gateway.address());
    http.send("GET /map HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(http.head().unwrap().status, 200);
    let mut body = Vec::new();
    // All before the damage, nothing of it, and then the end of the connection, in whatever way.
    let _ = http.0.read_to_end(&mut body);
    assert!(
        body.len() <= 300 * 8192 && body == all(&about)[..body.len()],
        "{}",
        body.len()
    );
    assert_eq!(
        Http::to(gateway.address())
            .ask("GET", "/map", "Range: bytes=2457600-2457700\r\n")
            .status,
        502
    );
    assert_eq!(
        Http::to(gateway.address())
            .ask("GET", "/map", "Range: bytes=0-2457599\r\n")
            .body
            .len(),
        2_457_600
    );
}
