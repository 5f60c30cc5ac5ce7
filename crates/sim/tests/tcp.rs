//! TCP in virtual time.
mod common;
use common::{WAN, run, throughput};

#[test]
fn it_runs() {
    let outcome = run(&format!("{WAN}1 from a to b bulk_get 10000*100 over tcp across wan in simulated;"));
    assert_eq!(outcome.records[0].initiator.received_bytes, 1_000_000, "{outcome:#?}");
    assert!(throughput(&outcome.records[0]) > 0.0);
}
