//! Networks as text and JSON, against golden files.

use crate::testing::golden;
use crate::testing::networks::{crowd, dumbbell, everything, host_paths};

#[test]
fn a_dumbbell_is_written_out() {
    let network = dumbbell();
    golden(
        "net-dumbbell.txt",
        &super::topology(&network, &host_paths(&network)),
    );
}

#[test]
fn what_differs_from_the_usual_is_said() {
    let network = everything();
    golden(
        "net-everything.txt",
        &super::topology(&network, &host_paths(&network)),
    );
}

#[test]
fn many_pairs_are_summed_up() {
    let network = crowd(60, 6);
    let text = super::topology(&network, &host_paths(&network));
    let (_, summary) = text.split_once("\n\n1770 pairs").unwrap();
    golden("net-crowd-pairs.txt", summary);
}

#[test]
fn as_data() {
    let network = everything();
    let value = super::topology_json(&network, &host_paths(&network));
    golden(
        "net-everything.json",
        &(serde_json::to_string_pretty(&value).unwrap() + "\n"),
    );
}

#[test]
fn addresses_end() {
    assert_eq!(super::address(0).as_deref(), Some("10.71.0.1"));
    assert_eq!(super::address(249).as_deref(), Some("10.71.0.250"));
    assert_eq!(super::address(250).as_deref(), Some("10.71.1.1"));
    assert_eq!(super::address(63_999).as_deref(), Some("10.71.255.250"));
    assert_eq!(super::address(64_000), None);
}
