//! Sets that are deleted, or loaded anew under their name: no client takes what it has of the old one for the new one.

use super::support::{all, restarted};
use crate::common::{Site, content, set};
use crate::http::{Http, start};
use stackline_blocks::set::BlockSet;
use stackline_blockserver::load::{self, BlockSource};

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
    // The gateway is notified, as is every client that has the set open.
    http.until("/s/1", 404);
    site.load(&set("s", 3, 1)).unwrap();
    assert_eq!(http.get("/s/2").body, content(2, 8092));
    assert_eq!(http.get("/s/3").status, 404);
}
