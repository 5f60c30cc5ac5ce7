//! Blocks, ranges and heads over HTTP, with the time that each hop took; anything but a read is refused.

use super::support::all;
use crate::common::{Site, content, set};
use crate::http::{Http, start};

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
