//! The same requests in findings, in the table by name, in lifelines and on the page: one account, and nothing that cannot be.

use super::request_account::nothing;
use super::requests::{Planted, chain_of_five, planted_causes, table, ten};
use super::*;
use crate::findings::{AccountedRequest, account_requests, find_named_requests, spread_requests};
use proptest::prelude::*;

fn given(requests: &[Planted]) -> Given {
    Given {
        events: table(requests),
        ..nothing()
    }
}

fn accounts(given: &Given) -> Vec<AccountedRequest> {
    account_requests(&given.input())
}

/// What no account may have: parts below zero, or that are more than all of it.
fn assert_possible(all: &[AccountedRequest]) {
    for request in all {
        let sum: i64 = request.parts.iter().map(|(_, ns)| *ns).sum();
        assert!(request.parts.iter().all(|(_, ns)| *ns > 0), "{request:?}");
        assert!(sum <= request.total_ns.max(0), "{request:?}");
    }
}

#[test]
fn findings_table_and_lifelines_have_one_account() {
    for (planted, kind) in planted_causes() {
        let given = given(&ten(&planted));
        let (found, all) = (given.found(), accounts(&given));
        assert_possible(&all);
        let times = spread_requests(all.iter()).unwrap();
        let takes = found[0].takes.clone().unwrap();
        // What took most by lifelines is what the first finding is about, with the same amount.
        let most = &times.causes[0];
        let most_s = most.ns.mean_ns * most.ns.n as f64 / 1e9;
        assert!(
            (most_s - takes.total_s).abs() < 1e-6,
            "{kind}: {most:?} {takes:?}"
        );
        assert!((most.share - found[0].share).abs() < 1e-6, "{kind}");
        let whole_s = times.whole.mean_ns * times.whole.n as f64 / 1e9;
        assert!((whole_s - takes.of_s).abs() < 1e-6, "{kind}");
        // And the table gives most to whom the lifelines give it, but where it names no single one.
        let named = &find_named_requests(&given.input())[0];
        let is_named = ["network", "losses", "set-up"].contains(&named.most_of_it.as_str());
        assert!(
            is_named || most.cause.place == named.most_of_it,
            "{kind}: {most:?} {named:?}"
        );
        assert!(named.share >= most.share - 1e-9, "{kind}: {named:?}");
        // One line of each request.
        assert_eq!((all.len(), times.whole.n), (10, 10), "{kind}");
    }
}

#[test]
fn a_chain_is_one_request_with_its_children() {
    let requests = chain_of_five();
    let given = given(&requests);
    let all = accounts(&given);
    assert_possible(&all);
    let times = spread_requests(all.iter()).unwrap();
    // One request, whose time is mostly the way to whom its server asks.
    assert_eq!((times.whole.n, times.whole.max_ns), (1, 60 * MS as i64));
    let most = &times.causes[0];
    assert_eq!(
        (most.cause.cause, most.cause.place.as_str()),
        ("distance", "b > c")
    );
    assert_eq!(most.ns.max_ns, 50 * MS as i64);
    assert!(times.causes.iter().map(|cause| cause.share).sum::<f64>() <= 1.0 + 1e-9);
}

proptest! {
    #[test]
    fn whatever_a_log_says_no_part_is_longer_than_its_request(
        parts in prop::collection::vec((0..11_usize, -50..500_i64), 1..8),
        network in prop::collection::vec((1..14_usize, -50..500_i64), 0..6),
        work in prop::collection::vec((2..13_usize, -50..500_i64), 0..6),
        bytes in 0..2_000_000_i64, rounds in 0..4_i64,
    ) {
        const PARTS: [&str; 11] = [
            "lookup", "connect", "handshake", "client", "hold", "there", "unread", "work", "sending", "back", "client_unread",
        ];
        let ns = |fields: &[(usize, i64)]| fields.iter().map(|(at, ms)| (*at, ms * MS as i64)).collect::<Vec<_>>();
        let mut known = BTreeMap::new();
        parts.iter().for_each(|(at, ms)| { known.insert(*at, *ms); });
        let parts: Vec<_> = known.into_iter().map(|(at, ms)| (PARTS[at], ms)).collect();
        let one = Planted {
            network: ns(&network),
            work: ns(&work),
            bytes: (100, bytes),
            rounds,
            ..Planted::new(0, &parts)
        };
        let given = given(&[Planted { end_ms: 9000, ..one.clone() }, Planted { end_ms: 20_000, ..one }]);
        assert_possible(&accounts(&given));
    }
}
