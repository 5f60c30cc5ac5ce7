//! Networks: what is written to what is meant.

#[path = "../common/mod.rs"]
mod common;
mod examples;
mod hosts;
mod imps;
mod links;
mod paths;
mod queues;
mod repeated;
mod rewritten;

use common::plan;
use stackline_core::network::{Network, NetworkLink};

const MS: u64 = 1_000_000;

fn network(body: &str) -> Network {
    plan(&format!("network w {{ {body} }} 1 rr 1*1;"))
        .networks
        .remove(0)
}

/// The first link, between two hosts, with what stands behind its ends.
fn link(rest: &str) -> NetworkLink {
    network(&format!("host a, b; link a - b {rest};"))
        .links
        .remove(0)
}
