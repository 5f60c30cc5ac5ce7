//! A thousand pairs at once.

use crate::support::{Place, number};
use std::collections::BTreeMap;

#[test]
fn a_thousand_pairs_take_little_memory() {
    let place = Place::new();
    let started = place.start(&mut place.command(&["run", "--json", "-e", "2 parallel: 1000 request_response 32*100"]));
    // The peak is the kernel's own; it only has to be read while the process is there.
    let mut peaks = BTreeMap::new();
    while !place.processes().is_empty() {
        for process in place.processes() {
            let peak = peaks.entry(process).or_insert(0);
            *peak = process.peak_memory().max(*peak);
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let json = started.finish().json();
    assert_eq!(number(&json, "/measurements/0/response_s/n"), 2.0 * 1000.0 * 100.0);
    assert_eq!(peaks.len(), 3, "{peaks:?}");
    // Optimised, 113 MB; without, each step of an endpoint has a frame of its own on its thread's stack.
    let most = if cfg!(debug_assertions) { 300 } else { 150 };
    assert!(peaks.values().sum::<u64>() < most << 20, "{peaks:?}");
}
