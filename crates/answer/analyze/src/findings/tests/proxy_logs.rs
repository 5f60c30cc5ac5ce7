//! Time that the access log of a proxy gives to the servers behind it.

use super::requests::{Planted, table, ten};
use super::*;

#[test]
fn a_proxy_whose_log_says_so_waits_for_the_servers_behind_it() {
    let one = Planted::new(0, &[("there", 1), ("back", 1), ("work", 100)]);
    let sentence = |upstream_ms: i64| {
        let requests = ten(&one);
        let mut events = table(&requests);
        for (unit, request) in requests.iter().enumerate() {
            let values = [(unit as i64).into(), (upstream_ms * MS as i64).into()];
            events.push("REQUEST_UPSTREAM", "b", request.end_ms * MS, &values);
        }
        of_events(&events)[0].sentence.clone()
    };
    let waits = sentence(90);
    assert!(
        waits.contains("waits for the servers behind it, as its log says,")
            && waits.ends_with("; they take 90 % of it"),
        "{waits}"
    );
    // Its own time is the larger part: the log gives no reason to look behind it.
    assert!(sentence(20).contains("accounts for the time"));
}
