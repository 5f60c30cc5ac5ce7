//! The gateway as HTTP clients meet it, good and bad ones.

#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

mod common;
mod http;

use common::{Site, content, set, start_master};
use http::{Http, load_picture, options, picture, pixels, records, start};
use stackline_blocks::set::BlockSet;
use stackline_blockserver::disk::BlockDisk;
use stackline_blockserver::gateway::{self, limits::Patience};
use stackline_blockserver::load::{self, BlockSource};
use stackline_testing::wait_until;
use std::io::{Read, Write};
use std::time::Duration;

/// All bytes of a set of [`common::set`].
fn all(about: &BlockSet) -> Vec<u8> {
    (0..about.blocks())
        .flat_map(|number| content(number, about.length(number) as usize))
        .collect()
}

/// The terms of Server-Timing with a duration, ms.
fn terms(header: &str) -> Vec<(String, f64)> {
    let terms = header
        .split(", ")
        .filter_map(|term| term.split_once(";dur="));
    terms
        .map(|(name, ms)| {
            (
                name.to_owned(),
                ms.split(';').next().unwrap().parse().unwrap(),
            )
        })
        .collect()
}

#[test]
fn a_block_comes_with_its_hops() {
    let site = Site::new(2);
    site.load(&set("map", 10, 1)).unwrap();
    let gateway = start(&site);
    let mut http = Http::to(gateway.address());
    let answer = http.get("/map/3");
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, Some("application/octet-stream"))
    );
    assert_eq!(answer.body, content(3, 8192));
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    let header = answer.header("server-timing").unwrap();
    let hops = terms(header);
    let names: Vec<&str> = hops.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "gateway", "master", "queue", "read", "write", "network", "total"
        ]
    );
    let sum: f64 = hops[..6].iter().map(|(_, ms)| ms).sum();
    // Each is rounded to a microsecond.
    assert!((sum - hops[6].1).abs() < 0.005, "{header}");
    assert!(header.ends_with("from;desc=\"disk\""), "{header}");
    let again = http.get("/map/3");
    assert!(
        again
            .header("server-timing")
            .unwrap()
            .ends_with("from;desc=\"memory\"")
    );
    // The last block is shorter.
    assert_eq!(http.get("/map/9").body, content(9, 8092));
}

#[test]
fn what_is_not_there_is_404() {
    let site = Site::new(1);
    site.load(&set("map", 10, 1)).unwrap();
    let gateway = start(&site);
    let mut http = Http::to(gateway.address());
    for path in [
        "/other",
        "/other/1",
        "/map/10",
        "/map/1x",
        "/map/view",
        "/map/tile/0/0/0.png",
        "/../etc/passwd",
        "/map/%2e",
        "/favicon.ico",
    ] {
        let answer = http.get(path);
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.text().starts_with("404: "), "{}", answer.text());
        assert!(answer.text().len() < 200);
    }
    assert_eq!(
        http.get("/map/10").text(),
        "404: block 10 of map: the set has no such block\n"
    );
    assert_eq!(http.get("/other").text(), "404: unknown set other\n");
}

#[test]
fn it_only_reads() {
    let site = Site::new(1);
    site.load(&set("map", 10, 1)).unwrap();
    let gateway = start(&site);
    let mut http = Http::to(gateway.address());
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE", "SOMETHING"] {
        let answer = http.ask(method, "/map/1", "");
        assert_eq!(
            (answer.status, answer.header("allow")),
            (405, Some("GET, HEAD, OPTIONS")),
            "{method}"
        );
    }
    let answer = http.ask(
        "OPTIONS",
        "/map",
        "Origin: http://a\r\nAccess-Control-Request-Headers: range\r\n",
    );
    assert_eq!(
        (answer.status, answer.header("access-control-allow-headers")),
        (204, Some("Range, If-None-Match"))
    );
    // A body is refused, and what may follow it is not taken for a request.
    http.send("GET /map/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
    let answer = http.answer(false).unwrap();
    assert_eq!(
        (answer.status, answer.header("connection")),
        (413, Some("close"))
    );
    assert!(http.head().is_none());
}

#[test]
fn one_range_at_a_time_is_served() {
    let site = Site::new(2);
    let about = set("map", 500, 1);
    site.load(&about).unwrap();
    let gateway = start(&site);
    let mut http = Http::to(gateway.address());
    let (bytes, last) = (all(&about), about.bytes - 1);
    for (range, first, end) in [
        ("0-0", 0, 0),
        ("8191-8192", 8191, 8192),
        ("100-99999", 100, 99_999),
        ("4000000-", 4_000_000, last),
        ("-10000", last - 9999, last),
        ("0-", 0, last),
        ("8192-99999999999", 8192, last),
    ] {
        let answer = http.ask("GET", "/map", &format!("Range: bytes={range}\r\n"));
        assert_eq!(answer.status, 206, "{range}");
        let expected = format!("bytes {first}-{end}/{}", about.bytes);
        assert_eq!(answer.header("content-range"), Some(expected.as_str()));
        assert!(
            answer.body == bytes[first as usize..=end as usize],
            "{range}"
        );
        let blocks = end / 8192 - first / 8192 + 1;
        let timing = answer.header("server-timing").unwrap();
        assert!(
            timing.starts_with(&format!("blocks;desc=\"{blocks}\", slowest;dur=")),
            "{timing}"
        );
    }
    for range in ["4096000-", "-0", "0-1,3-4"] {
        let answer = http.ask("GET", "/map", &format!("Range: bytes={range}\r\n"));
        let expected = format!("bytes */{}", about.bytes);
        assert_eq!(
            (answer.status, answer.header("content-range")),
            (416, Some(expected.as_str())),
            "{range}"
        );
    }
    // Without a range, with one that is none, and with one that hangs on a tag that no set has.
    for headers in [
        "",
        "Range: bytes=9-1\r\n",
        "Range: bytes=0-9\r\nIf-Range: \"x\"\r\n",
    ] {
        let answer = http.ask("GET", "/map", headers);
        assert_eq!(
            (answer.status, answer.header("accept-ranges")),
            (200, Some("bytes"))
        );
        assert!(answer.body == bytes, "{headers}");
    }
}

#[test]
fn head_tells_the_length_and_reads_nothing() {
    let site = Site::new(1);
    let about = set("map", 10, 1);
    site.load(&about).unwrap();
    let gateway = start(&site);
    let mut http = Http::to(gateway.address());
    let get = http.get("/map/9");
    let head = http.ask("HEAD", "/map/9", "");
    for name in ["content-length", "etag", "content-type", "cache-control"] {
        assert_eq!(head.header(name), get.header(name), "{name}");
    }
    assert_eq!(
        (head.status, head.header("content-length")),
        (200, Some("8092"))
    );
    let whole = http.ask("HEAD", "/map", "Range: bytes=0-5\r\n");
    assert_eq!(
        (whole.status, whole.header("content-length")),
        (200, Some(about.bytes.to_string().as_str()))
    );
    assert_eq!(http.ask("HEAD", "/map/10", "").status, 404);
    assert_eq!(http.ask("HEAD", "/", "").status, 200);
    assert!(http.get("/").text().contains("\"map\""));
}

#[test]
fn what_a_client_has_is_not_sent_again_until_it_changes() {
    let site = Site::new(1);
    site.load(&set("map", 10, 1)).unwrap();
    let gateway = start(&site);
    let mut http = Http::to(gateway.address());
    let tag = http.get("/map/3").header("etag").unwrap().to_owned();
    let ask = |http: &mut Http, tag: &str| {
        http.ask("GET", "/map/3", &format!("If-None-Match: {tag}\r\n"))
    };
    for known in [tag.as_str(), "*", &format!("\"other\", W/{tag}")] {
        let answer = ask(&mut http, known);
        assert_eq!(
            (answer.status, answer.header("etag")),
            (304, Some(tag.as_str()))
        );
    }
    assert_eq!(ask(&mut http, "\"other\"").status, 200);
    let insist = |http: &mut Http, path: &str, tag: &str| {
        http.ask("GET", path, &format!("If-Match: {tag}\r\n"))
            .status
    };
    assert_eq!(insist(&mut http, "/map/3", &tag), 200);
    assert_eq!(insist(&mut http, "/map/3", "\"other\""), 412);
    assert_eq!(
        (
            insist(&mut http, "/map", &tag),
            insist(&mut http, "/map", "*")
        ),
        (412, 200)
    );
    // The set is loaded anew with other blocks under the same name.
    site.loader().delete("map").unwrap();
    assert_eq!(ask(&mut http, &tag).status, 404);
    assert_eq!(http.get("/map/3").status, 404);
    struct Other;
    impl BlockSource for Other {
        fn block(&mut self, _: u64, into: &mut Vec<u8>) -> stackline_core::error::Result<()> {
            into.extend([7; 8192]);
            Ok(())
        }
    }
    let about = BlockSet {
        bytes: 5 * 8192,
        ..set("map", 5, 1)
    };
    load::load(&site.loader(), &site.key, &about, &mut Other, None, |_| {
        Ok(())
    })
    .unwrap();
    let changed = ask(&mut http, &tag);
    assert_eq!((changed.status, changed.body), (200, vec![7; 8192]));
    assert_eq!(http.get("/map/7").status, 404);
    assert!(http.get("/map").body == vec![7; 5 * 8192]);
}

#[test]
fn a_set_that_was_loaded_anew_is_noticed_by_blocks_and_ranges() {
    let site = Site::new(1);
    let gateway = start(&site);
    let mut http = Http::to(gateway.address());
    for blocks in [10, 20, 15] {
        let about = set("map", blocks, 1);
        site.load(&about).unwrap();
        assert_eq!(http.get("/map/3").body, content(3, 8192));
        site.loader().delete("map").unwrap();
        site.load(&set("map", blocks + 1, 1)).unwrap();
        assert!(http.get("/map").body == all(&set("map", blocks + 1, 1)));
        site.loader().delete("map").unwrap();
    }
}

#[test]
fn connections_are_kept_and_pipelined() {
    let site = Site::new(2);
    site.load(&set("map", 40, 1)).unwrap();
    let gateway = start(&site);
    let mut http = Http::to(gateway.address());
    let requests: String = (0..40)
        .map(|number| format!("GET /map/{number} HTTP/1.1\r\nHost: x\r\n\r\n"))
        .collect();
    http.send(&requests);
    for number in 0..39 {
        assert_eq!(http.answer(false).unwrap().body, content(number, 8192));
    }
    assert_eq!(http.answer(false).unwrap().body, content(39, 8092));
    assert_eq!(
        http.ask("GET", "/map/1", "Connection: close\r\n").status,
        200
    );
    assert!(http.head().is_none());
    // HTTP/1.0 is answered and closed.
    let mut old = Http::to(gateway.address());
    old.send("GET /map/2 HTTP/1.0\r\n\r\n");
    assert_eq!(old.answer(false).unwrap().body, content(2, 8192));
    assert!(old.head().is_none());
}

#[test]
fn many_clients_get_what_they_asked_for() {
    let site = Site::new(2);
    site.load(&set("map", 100, 1)).unwrap();
    let gateway = start(&site);
    let address = gateway.address();
    std::thread::scope(|scope| {
        for client in 0..32_u64 {
            scope.spawn(move || {
                let mut http = Http::to(address);
                // Each begins elsewhere and half of them want what another one wants at that time.
                for step in 0..60 {
                    let number = (client / 2 * 3 + step) % 99;
                    assert_eq!(
                        http.get(&format!("/map/{number}")).body,
                        content(number, 8192)
                    );
                }
            });
        }
    });
}

#[test]
fn who_gives_up_leaves_nothing_behind() {
    let site = Site::new(1);
    let about = BlockSet {
        block_size: 1 << 20,
        bytes: 64 << 20,
        ..set("large", 1, 1)
    };
    site.load(&about).unwrap();
    let gateway = start(&site);
    for _ in 0..30 {
        let mut http = Http::to(gateway.address());
        http.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
        assert_eq!(http.head().unwrap().status, 200);
        let mut some = [0; 100];
        http.0.read_exact(&mut some).unwrap();
        // And one that goes before it is answered.
        Http::to(gateway.address()).send("GET /large/7 HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    let mut http = Http::to(gateway.address());
    for number in 0..64 {
        assert_eq!(http.get(&format!("/large/{number}")).body.len(), 1 << 20);
    }
}

#[test]
fn a_request_that_is_given_up_is_waited_for_no_more() {
    // A master that takes connections and says nothing: what is asked for is waited for.
    let silent = std::net::TcpListener::bind(std::net::SocketAddr::from(common::ANYWHERE)).unwrap();
    let options = gateway::GatewayOptions {
        listen: common::ANYWHERE.into(),
        master: silent.local_addr().unwrap().to_string(),
        patience: Patience::default(),
        connections: 4,
        room: gateway::limits::ROOM,
    };
    let gateway = gateway::start(options).unwrap();
    let asked = || {
        let mut http = Http::to(gateway.address());
        http.send("GET /map/1 HTTP/1.1\r\nHost: x\r\n\r\n");
        http
    };
    let status = || {
        let mut http = Http::to(gateway.address());
        // It may be refused before it was sent.
        let _ = http
            .0
            .get_mut()
            .write_all(b"PUT / HTTP/1.1\r\nHost: x\r\n\r\n");
        http.answer(false).map(|answer| answer.status)
    };
    // One whose request was not read yet is idle, and may have given way.
    let is_open = |http: &Http| {
        http.0.get_ref().set_nonblocking(true).unwrap();
        http.0
            .get_ref()
            .peek(&mut [0])
            .is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    let mut asking: Vec<Http> = Vec::new();
    loop {
        asking.retain(is_open);
        asking.extend((asking.len()..4).map(|_| asked()));
        if status() == Some(503) {
            break;
        }
    }
    // All places are taken by those who wait; three of them give up.
    let waiting = asking.remove(0);
    drop(asking);
    while status() != Some(405) {}
    // Their places are free before what they had asked for was answered, or refused.
    assert!(is_open(&waiting));
}

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

fn restarted(
    site: &Site,
    address: std::net::SocketAddr,
) -> stackline_blockserver::master::RunningMaster {
    let data = site.directory.path().join("master");
    common::master_again(&data, &site.key, address)
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

#[test]
fn more_sets_than_one_session_may_open_are_read() {
    let site = Site::new(1);
    let gateway = start(&site);
    let mut http = Http::to(gateway.address());
    for number in 0..70 {
        let name = format!("set{number}");
        site.load(&set(&name, 1, 1)).unwrap();
        assert_eq!(
            http.get(&format!("/{name}/0")).body,
            content(0, 8092),
            "{name}"
        );
    }
    assert_eq!(http.get("/set0/0").body, content(0, 8092));
}

#[test]
fn the_idlest_connection_beyond_the_limit_is_closed() {
    let site = Site::new(1);
    let gateway = gateway::start(gateway::GatewayOptions {
        connections: 4,
        ..options(&site)
    })
    .unwrap();
    let mut held: Vec<Http> = (0..4).map(|_| Http::to(gateway.address())).collect();
    for http in &mut held {
        assert_eq!(http.get("/").status, 200);
    }
    // As many strangers as may say nothing, and whoever asks gets an answer.
    let _silent: Vec<Http> = (0..40).map(|_| Http::to(gateway.address())).collect();
    let mut asks = Http::to(gateway.address());
    assert_eq!(asks.get("/").status, 200);
    assert!(
        held.iter_mut().all(|http| http.head().is_none()),
        "idle connections were closed"
    );
}

#[test]
fn slow_clients_are_let_go() {
    let site = Site::new(1);
    let about = BlockSet {
        block_size: 1 << 20,
        bytes: 64 << 20,
        ..set("large", 1, 1)
    };
    site.load(&about).unwrap();
    let short = Duration::from_millis(300);
    let patience = Patience {
        head: short,
        stall: short,
        ..Patience::default()
    };
    let gateway = gateway::start(gateway::GatewayOptions {
        patience,
        ..options(&site)
    })
    .unwrap();
    // One that never asks, one that never ends its head, one that was served once.
    let silent = Http::to(gateway.address());
    let mut dripping = Http::to(gateway.address());
    dripping.send("GET / HTTP/1.1\r\nHo");
    let mut served = Http::to(gateway.address());
    assert_eq!(served.get("/").status, 200);
    for (mut http, what) in [
        (silent, "silent"),
        (dripping, "dripping"),
        (served, "served"),
    ] {
        let mut rest = Vec::new();
        // Closed, perhaps with a 408 before; a time-out of the test would be an error.
        http.0
            .read_to_end(&mut rest)
            .unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    // One that takes nothing of what it asked for: it gets what the system had taken, and no more.
    let mut lazy = Http::to(gateway.address());
    lazy.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    std::thread::sleep(short * 5);
    let mut came = 0;
    let mut some = vec![0; 1 << 16];
    while let Ok(count @ 1..) = lazy.0.read(&mut some) {
        came += count;
    }
    assert!(came < 64 << 20, "{came}");
}

#[test]
fn what_is_no_http_is_refused() {
    let site = Site::new(1);
    site.load(&set("map", 10, 1)).unwrap();
    let gateway = start(&site);
    let long = format!(
        "GET /map/1 HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n",
        "a".repeat(40_000)
    );
    let many: String = (0..80).map(|n| format!("X{n}: 1\r\n")).collect();
    let many = format!("GET /map/1 HTTP/1.1\r\nHost: x\r\n{many}\r\n");
    let target = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a/".repeat(30_000));
    for (what, statuses) in [
        (long.as_str(), &[431][..]),
        (&many, &[431]),
        (&target, &[414, 431]),
        ("GET /map/1 HTTP/9.9\r\nHost: x\r\n\r\n", &[400]),
        ("GET /map/1 HTTP/1.1 \r\nHost: x\r\n\r\n", &[400]),
        ("GET /map/1\r\nHost: x\r\n\r\n", &[400]),
        ("nonsense\r\n\r\n", &[400]),
        ("GET /map/1 HTTP/1.1\r\n\r\n", &[400]),
        ("GET /map/1 HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", &[400]),
        ("GET /map/1 HTTP/1.1\r\nHost: x\r\nhost: y\r\n\r\n", &[400]),
        ("GET /map/1 HTTP/1.1\r\nHost: a/b@c\r\n\r\n", &[400]),
        ("GET /map/1 HTTP/1.1\r\nHost: x y\r\n\r\n", &[400]),
        ("GET /map/1 HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", &[400]),
        ("GET /map/1 HTTP/1.1\r\nHost : x\r\n\r\n", &[400]),
        (
            "GET /map/1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
            &[400],
        ),
        (
            "GET /map/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            &[400],
        ),
        (
            "GET /map/1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
            &[400],
        ),
        (
            "GET /map/1 HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
            &[400],
        ),
        (
            "GET /map/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            &[400],
        ),
    ] {
        let mut http = Http::to(gateway.address());
        // It may be refused before it was sent whole.
        let _ = http.0.get_mut().write_all(what.as_bytes());
        let words = &what[..what.len().min(80)];
        match http.head() {
            Some(answer) => assert!(
                statuses.contains(&answer.status),
                "{words:?}: {}",
                answer.status
            ),
            // Refused before it was sent whole, the connection may be reset with what was said.
            None => assert!(
                what.len() > 10_000 || statuses == [400],
                "{words:?}: no answer"
            ),
        }
    }
    // What is good by the same rules.
    for what in [
        "GET /map/1 HTTP/1.0\r\n\r\n",
        "GET http://x/map/1 HTTP/1.1\r\nHost: [::1]:80\r\n\r\n",
    ] {
        let mut http = Http::to(gateway.address());
        http.send(what);
        assert_eq!(http.answer(false).unwrap().status, 200, "{what}");
    }
    // Bytes of a generator, whatever they are.
    for seed in 0..200_u64 {
        let mut http = Http::to(gateway.address());
        let bytes: Vec<u8> = (0..300_u64)
            .map(|at| ((seed * 7919 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
            .collect();
        let _ = http.0.get_mut().write_all(&bytes);
    }
    assert_eq!(Http::to(gateway.address()).get("/map/1").status, 200);
}

#[test]
fn tiles_are_pictures() {
    let site = Site::new(2);
    let about = picture("map", 1000, 300, 64);
    load_picture(&site, &about);
    let pyramid = about.picture.clone().unwrap();
    let gateway = start(&site);
    let mut http = Http::to(gateway.address());
    for number in 0..pyramid.tiles() {
        let tile = pyramid.tile(number).unwrap();
        let answer = http.get(&format!(
            "/map/tile/{}/{}/{}.png",
            tile.level, tile.row, tile.column
        ));
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some("image/png"))
        );
        let mut reader = png::Decoder::new(std::io::Cursor::new(&answer.body))
            .read_info()
            .unwrap();
        let mut back = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut back).unwrap();
        assert!(back == pixels(&pyramid, number), "{tile:?}");
        // Map viewers count zoom from the whole picture, and columns before rows.
        let zoom = pyramid.levels() - 1 - tile.level;
        let same = http.get(&format!("/map/xyz/{zoom}/{}/{}.png", tile.column, tile.row));
        assert!(same.body == answer.body);
    }
    let answer = http.get("/map/tile/0/1/2.png");
    assert!(
        answer
            .header("server-timing")
            .unwrap()
            .contains(", png;dur=")
    );
    let tag = answer.header("etag").unwrap();
    assert_eq!(
        http.ask(
            "GET",
            "/map/tile/0/1/2.png",
            &format!("If-None-Match: {tag}\r\n")
        )
        .status,
        304
    );
    let length = answer.body.len().to_string();
    let head = http.ask("HEAD", "/map/tile/0/1/2.png", "");
    assert_eq!(
        (head.status, head.header("content-length")),
        (200, Some(length.as_str()))
    );
    for path in [
        "/map/tile/0/5/0.png",
        "/map/tile/0/0/16.png",
        "/map/tile/9/0/0.png",
        "/map/xyz/9/0/0.png",
    ] {
        assert_eq!(http.get(path).status, 404, "{path}");
    }
}

#[test]
fn sets_are_listed_for_programs_and_people() {
    let site = Site::new(1);
    site.load(&set("plain", 10, 1)).unwrap();
    load_picture(&site, &picture("map", 200, 100, 64));
    let gateway = start(&site);
    let mut http = Http::to(gateway.address());
    let json: serde_json::Value = serde_json::from_slice(&http.get("/").body).unwrap();
    assert_eq!(json["sets"][0]["name"], "plain");
    assert_eq!(json["sets"][0]["blocks"], 10);
    assert_eq!(json["sets"][1]["picture"]["width"], 200);
    assert_eq!(json["servers"][0]["up"], true);
    let page = http.ask("GET", "/", "Accept: text/html,*/*\r\n");
    assert!(
        page.header("content-type")
            .unwrap()
            .starts_with("text/html")
    );
    assert!(
        page.text().contains("<a href=\"/map/view\">200"),
        "{}",
        page.text()
    );
    let view = http.get("/map/view");
    let policy = view.header("content-security-policy").unwrap();
    let nonce = policy
        .split("'nonce-")
        .nth(1)
        .unwrap()
        .split('\'')
        .next()
        .unwrap();
    assert!(
        view.text().contains(&format!("<script nonce=\"{nonce}\">")) && !view.text().contains("{{")
    );
    assert!(!view.text().contains("http://") && !view.text().contains("https://"));
    assert_ne!(
        http.get("/map/view").body,
        view.body,
        "the nonce is drawn anew"
    );
}

#[test]
fn a_list_streams_its_blocks() {
    let site = Site::new(2);
    site.load(&set("map", 100, 1)).unwrap();
    let gateway = start(&site);
    let mut http = Http::to(gateway.address());
    let answer = http.get("/map/blocks?numbers=5,90-99,200&viewer=me");
    assert_eq!(
        (answer.status, answer.header("cache-control")),
        (200, Some("no-store"))
    );
    let mut came = records(&answer.body);
    assert_eq!(came.pop(), Some((u64::MAX, 200, Vec::new())));
    came.sort();
    let numbers: Vec<u64> = came.iter().map(|record| record.0).collect();
    assert_eq!(numbers, [5, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 200]);
    for (number, status, data) in &came[..11] {
        assert_eq!(
            (*status, data),
            (
                200,
                &content(*number, if *number == 99 { 8092 } else { 8192 })
            )
        );
    }
    assert_eq!(came[11].1, 404);
    assert_eq!(
        String::from_utf8_lossy(&came[11].2),
        "block 200 of map: the set has no such block"
    );
    assert_eq!(
        records(&http.get("/map/blocks").body),
        [(u64::MAX, 200, Vec::new())]
    );
    assert_eq!(http.get("/map/blocks?numbers=9-1").status, 400);
    // The number that marks the end is no block's; the one before it is like any other.
    let end = u64::MAX;
    for numbers in [
        format!("{end}"),
        format!("0,{end}"),
        format!("{}-{end}", end - 1),
    ] {
        let answer = http.get(&format!("/map/blocks?numbers={numbers}"));
        assert_eq!(answer.status, 400, "{numbers}");
        assert_eq!(
            answer.text(),
            format!("400: {end} is not a block number: it marks the end of a list\n")
        );
    }
    let last = records(&http.get(&format!("/map/blocks?numbers={}", end - 1)).body);
    assert_eq!(
        (last[0].0, last[0].1, last[1].0, last[1].1),
        (end - 1, 404, end, 200)
    );
    assert_eq!(http.get(&format!("/map/{end}")).status, 404);
    assert_eq!(http.get("/other/blocks?numbers=1").status, 404);
}

#[test]
fn a_list_supersedes_the_one_before_of_its_viewer_alone() {
    let site = Site::new(2);
    let about = BlockSet {
        block_size: 1 << 20,
        bytes: 64 << 20,
        ..set("large", 1, 1)
    };
    site.load(&about).unwrap();
    let gateway = start(&site);
    let open = |viewer: &str| {
        let mut http = Http::to(gateway.address());
        http.send(&format!(
            "GET /large/blocks?numbers=0-63&viewer={viewer} HTTP/1.1\r\nHost: x\r\n\r\n"
        ));
        assert_eq!(http.head().unwrap().status, 200);
        http
    };
    // Nobody takes what comes, so neither list can end by itself.
    let (first, other) = (open("me"), open("other"));
    let newer = Http::to(gateway.address()).get("/large/blocks?numbers=7&viewer=me");
    assert_eq!(records(&newer.body).len(), 2);
    let rest = |mut http: Http| {
        let mut body = Vec::new();
        while let Some(chunk) = http.chunk() {
            body.extend(chunk);
        }
        records(&body)
    };
    let (first, other) = (rest(first), rest(other));
    let (last, blocks) = first.split_last().unwrap();
    assert_eq!((last.0, last.1), (u64::MAX, 409));
    assert!(blocks.len() < 64, "{}", blocks.len());
    assert_eq!((other.len(), other.last().unwrap().1), (65, 200));
}

#[test]
fn no_level_of_a_picture_does_harm() {
    let site = Site::new(1);
    let about = picture("map", 1000, 300, 64);
    load_picture(&site, &about);
    let levels = about.picture.clone().unwrap().levels();
    let gateway = start(&site);
    let mut http = Http::to(gateway.address());
    for level in 0..=255_u8 {
        let expected = if level < levels { 200 } else { 404 };
        assert_eq!(
            http.get(&format!("/map/tile/{level}/0/0.png")).status,
            expected,
            "level {level}"
        );
        assert_eq!(
            http.get(&format!("/map/xyz/{level}/0/0.png")).status,
            expected,
            "zoom {level}"
        );
    }
    let last = u32::MAX;
    assert_eq!(
        http.get(&format!("/map/tile/0/{last}/{last}.png")).status,
        404
    );
}

/// A set of one byte again and again.
struct Same(u8);

impl BlockSource for Same {
    fn block(&mut self, _: u64, into: &mut Vec<u8>) -> stackline_core::error::Result<()> {
        into.extend([self.0; 8192]);
        Ok(())
    }
}

#[test]
fn what_was_deleted_is_gone_at_once_also_after_the_master_was_started_again() {
    let mut site = Site::new(1);
    let gateway = start(&site);
    let mut http = Http::to(gateway.address());
    let mut tags = std::collections::BTreeSet::new();
    // Once with the same content: what somebody keeps of the old set is not taken for the new one.
    for byte in [1_u8, 2, 2] {
        let about = BlockSet {
            bytes: 4 * 8192,
            ..set("s", 4, 1)
        };
        load::load(
            &site.loader(),
            &site.key,
            &about,
            &mut Same(byte),
            None,
            |_| Ok(()),
        )
        .unwrap();
        assert!(http.get("/s").body == vec![byte; 4 * 8192]);
        let answer = http.get("/s/1");
        assert_eq!(answer.body, vec![byte; 8192]);
        assert_eq!(answer.header("cache-control"), Some("public, no-cache"));
        for old in &tags {
            assert_eq!(
                http.ask("GET", "/s/1", &format!("If-None-Match: {old}\r\n"))
                    .status,
                200
            );
        }
        let tag = answer.header("etag").unwrap().to_owned();
        assert!(tags.insert(tag.clone()), "{tag} again");
        let address = site.master.address();
        site.master.stop();
        // Without its master it is read on.
        assert_eq!(http.get("/s/2").body, vec![byte; 8192]);
        site.master = restarted(&site, address);
        site.wait_for(1);
        site.loader().delete("s").unwrap();
        for path in ["/s", "/s/1", "/s/3"] {
            assert_eq!(http.get(path).status, 404, "{path}");
        }
        assert_eq!(
            http.ask("GET", "/s/1", &format!("If-None-Match: {tag}\r\n"))
                .status,
            404
        );
    }
}

#[test]
fn what_was_deleted_is_gone_also_where_a_server_is_gone_around() {
    let site = Site::new(2);
    let gateway = start(&site);
    let mut http = Http::to(gateway.address());
    site.load(&set("s", 4, 2)).unwrap();
    assert_eq!(http.get("/s/1").status, 200);
    site.servers[1].stop();
    site.wait_for(1);
    assert_eq!(http.get("/s/1").body, content(1, 8192));
    site.loader().delete("s").unwrap();
    // The gateway hears of it as everybody who has the set open does.
    http.until("/s/1", 404);
    site.load(&set("s", 3, 1)).unwrap();
    assert_eq!(http.get("/s/2").body, content(2, 8092));
    assert_eq!(http.get("/s/3").status, 404);
}

#[test]
fn clients_that_do_not_read_hold_a_bounded_amount_together_and_are_closed() {
    let site = Site::new(1);
    let about = BlockSet {
        block_size: 1 << 20,
        bytes: 24 << 20,
        ..set("large", 1, 1)
    };
    site.load(&about).unwrap();
    let room = 8 << 20;
    // Blocks may wait for longer than usual: it is not the speed of this machine that is looked at.
    let patience = Patience {
        block: Duration::from_secs(120),
        ..options(&site).patience
    };
    let gateway = gateway::start(gateway::GatewayOptions {
        room,
        patience,
        ..options(&site)
    })
    .unwrap();
    // Each from another block on: clients that stall at the same block hold it together, and that would be little.
    let lazy: Vec<std::net::TcpStream> = (0..60)
        .map(|client| {
            let socket =
                socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
            socket.set_recv_buffer_size(4096).unwrap();
            socket.connect(&gateway.address().into()).unwrap();
            let mut stream = std::net::TcpStream::from(socket);
            let from = (client % 20) << 20;
            let asked = format!("GET /large HTTP/1.1\r\nHost: x\r\nRange: bytes={from}-\r\n\r\n");
            stream.write_all(asked.as_bytes()).unwrap();
            stream
        })
        .collect();
    // They take all there is, until somebody waits for it.
    let mut http = Http::to(gateway.address());
    for number in 0..24 {
        assert_eq!(
            http.get(&format!("/large/{number}")).body.len(),
            1 << 20,
            "block {number}"
        );
    }
    assert!(http.get("/").text().contains("\"large\""));
    // On a busy machine lists move for longer before they stall.
    wait_until("somebody is closed who takes nothing", || {
        assert_eq!(http.get("/large/0").body.len(), 1 << 20);
        gateway.closed_for_room() > 0
    });
    let held = gateway.most_held();
    assert!(held <= room && held > room / 2, "{held} bytes held");
    drop(lazy);
}
