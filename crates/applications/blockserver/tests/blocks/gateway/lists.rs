//! Lists of blocks in one answer, each superseding the one before of its viewer.

use crate::common::{Site, content, set};
use crate::http::{Http, records, start};
use stackline_blocks::set::BlockSet;

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
