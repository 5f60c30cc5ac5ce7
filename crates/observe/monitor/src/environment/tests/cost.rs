//! The cost of a snapshot of this host. The promise of docs/SPECIFICATION.md is for optimised code; these bounds are wider.

use super::super::{EnvironmentSampler, difference, static_environment};
use std::time::{Duration, Instant};

/// The best of several, so that a busy neighbour does not fail the test.
fn least(mut work: impl FnMut()) -> Duration {
    let once = |_| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..20).map(once).min().unwrap_or(Duration::MAX)
}

#[test]
fn snapshots_are_cheap() {
    let sampler = EnvironmentSampler::new();
    let fixed = least(|| drop(static_environment()));
    let sample = least(|| drop(sampler.sample()));
    let json = least(|| drop(sampler.sample().to_json()));
    let fresh = least(|| drop(EnvironmentSampler::new()));
    println!("static {fixed:?}, dynamic {sample:?}, with JSON {json:?}, a new sampler {fresh:?}");
    assert!(fixed < Duration::from_millis(50), "{fixed:?}");
    assert!(sample < Duration::from_millis(10), "{sample:?}");
}

#[test]
fn this_host_has_facts() {
    let (sampler, fixed) = (EnvironmentSampler::new(), static_environment());
    assert!(fixed["system"]["kernel"].is_string());
    let before = sampler.sample();
    assert!(before.to_json()["memory"]["free_bytes"].is_number());
    let value = difference(&before, &sampler.sample());
    assert!(value["interval_s"].is_number());
}
