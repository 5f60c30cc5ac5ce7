//! Requests that wait for a lock, and what its holders do meanwhile.

use super::requests::{Planted, found};
use super::*;

/// Ten requests of 20 ms by one thread that waits for a lock for 18 ms, while a request of another thread is served; `held`: what the
/// holders did for 17 ms, as a field of `LOCK_HOLDER`.
fn waiting(held: Option<usize>) -> Finding {
    const MS: i64 = super::MS as i64;
    let mut requests = Vec::new();
    for number in 1..=10 {
        let report = Planted {
            name: "GET /report",
            work: vec![(1, 8), (2, MS)],
            is_apart: true,
            ..Planted::new(30 * number, &[("work", 25)])
        };
        let page = Planted {
            name: "GET /page",
            work: vec![(1, 7), (4, 18 * MS), (2, MS)],
            holders: held.map_or_else(Vec::new, |field| vec![(1, 8), (field, 17 * MS)]),
            is_apart: true,
            ..Planted::new(30 * number - 1, &[("work", 20)])
        };
        requests.extend([report, page]);
    }
    let mut all = found(&requests).into_iter();
    all.find(|one| one.kind == "server_lock").unwrap()
}

#[test]
fn the_holders_of_a_lock_are_named_by_what_they_do_and_for_what() {
    let cases = [
        (2, "compute", "several locks"),
        (3, "wait for a core", "more cores"),
        (5, "wait for the disk", "release a lock"),
        (6, "sleep", "release a lock"),
        (7, "wait for a socket", "release a lock"),
    ];
    for (field, does, attempt) in cases {
        let lock = waiting(Some(field));
        let said = format!(
            "; the threads that end these waits serve GET /report and {does} for 94 % of that time"
        );
        assert!(lock.sentence.ends_with(&said), "{}", lock.sentence);
        assert!(format!("{:?}", lock.tries).contains(attempt), "{lock:?}");
    }
    let unknown = waiting(None);
    assert!(
        !unknown.sentence.contains("end these waits"),
        "{}",
        unknown.sentence
    );
}
