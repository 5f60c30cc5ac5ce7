//! What the whole tree keeps to: arrows between crates and files, names and lengths, bounds that are counted, readers that are fuzzed.
//! One file a rule, all in one program, so that they read the tree side by side.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

mod tree;

mod architecture;
mod bounds;
mod conventions;
mod fuzz_targets;
mod rings;
