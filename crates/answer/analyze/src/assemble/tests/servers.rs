//! The host that a line is grouped by: which of those it meets is the server.

use super::*;
use stackline_core::trace_index::RunFlow;

/// Blocks that two servers have, and a master that is asked for the name of each first.
#[test]
fn a_name_server_that_every_line_meets_is_not_the_server() {
    let mut log = String::new();
    for unit in 0..6 {
        let (at, server) = (unit * 1000, if unit % 2 == 0 { "s1" } else { "s2" });
        for (n, (keyword, host)) in [
            ("ask", "app"),
            ("name", "master"),
            ("read", server),
            ("got", "app"),
        ]
        .iter()
        .enumerate()
        {
            let _ = writeln!(log, "{keyword}; {host}; 1; {}; {unit}", at + n * 10);
        }
    }
    assert_eq!(
        lifelines(&table(&log), None, &LifelineOptions::default()).groups,
        ["s1", "s2"]
    );
    // Where there is only the one, it is the server.
    let alone = log.replace("s2", "s1").replace("master", "s1");
    assert_eq!(
        lifelines(&table(&alone), None, &LifelineOptions::default()).groups,
        ["s1"]
    );
}

#[test]
fn servers_that_begin_and_send_to_one_client_are_distinguished() {
    let between = |pairs: &[(&str, &str)]| {
        let mut log = String::new();
        let mut index = Index::default();
        for (id, (from, to)) in (0..).zip(pairs) {
            index.flows.push(RunFlow {
                id,
                hosts: ((*from).into(), (*to).into()),
                ..RunFlow::default()
            });
            let (unit, there) = (unit(id, 0), stream(id, EventStreamDirection::There));
            let _ = writeln!(log, "APP_SEND; {from}; 0; 100; {unit}; {there}; 0; 10");
            let _ = writeln!(log, "APP_RECEIVED; {to}; 0; 200; {unit}; {there}; 0; 10");
        }
        lifelines(&table(&log), Some(&index), &LifelineOptions::default()).groups
    };
    assert_eq!(between(&[("edc", "onyx"), ("usw", "onyx")]), ["edc", "usw"]);
    assert_eq!(between(&[("onyx", "edc"), ("onyx", "usw")]), ["edc", "usw"]);
    assert_eq!(between(&[("edc", "onyx"), ("edc", "onyx")]), ["onyx"]);
}
