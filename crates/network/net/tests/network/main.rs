//! Networks small enough to be worked out by hand.

mod cells;
#[path = "../common/mod.rs"]
mod common;
mod interfaces;
mod links;
mod queues;
mod routers;
mod shaping;
mod trains;

use stackline_core::network::LinkQueue;

fn tail(bytes: u64) -> Option<LinkQueue> {
    Some(LinkQueue {
        limit_bytes: Some(bytes),
        ..LinkQueue::default()
    })
}
