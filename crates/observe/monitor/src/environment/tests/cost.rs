//! The cost of a snapshot of this host, in reads; what it takes of time is a promise of docs/PROMISES.md and is measured there.

use super::super::{EnvironmentSampler, difference, static_environment};

/// How often the kernel was read from by this thread until now.
fn reads() -> u64 {
    let io = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    let count = io.lines().find_map(|line| line.strip_prefix("syscr: "));
    count.unwrap().parse().unwrap()
}

/// How many reads some work takes, but for those of [`reads`] itself.
fn reads_of(work: impl Fn()) -> u64 {
    let between = |work: &dyn Fn()| {
        let before = reads();
        work();
        reads() - before
    };
    between(&work) - between(&|| ())
}

#[test]
fn snapshots_are_cheap() {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let sampler = EnvironmentSampler::new();
    let fixed = reads_of(|| drop(static_environment()));
    let sample = reads_of(|| drop(sampler.sample()));
    let json = reads_of(|| drop(sampler.sample().to_json()));
    let fresh = reads_of(|| drop(EnvironmentSampler::new()));
    println!("static {fixed}, dynamic {sample}, with JSON {json}, a new sampler {fresh}");
    // Files of the machine, of each core and of each interface are read once.
    assert!(fixed <= 400 + 40 * cores, "{fixed} reads");
    assert!(sample <= 60 + 8 * cores, "{sample} reads");
    assert_eq!(json, sample, "what was read is not read again to be shown");
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
