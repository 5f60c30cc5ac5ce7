//! The header Server-Timing (W3C, Server Timing): how the time of a block was spent, from its stamps.
//!
//! The stamps are of three clocks: the gateway's, the master's, the server's. Each term except `network` is the difference of two stamps of
//! the same clock. `network` is the sum of the three ways (to the master, to the server, back), in which the differences between the clocks
//! cancel; a single way could only be computed if these were known.

use super::block_requests::GatewayBlock;
use stackline_blocks::wire::server_messages::BlockHead;
use std::fmt::Write;

/// How the time of a block was spent, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hops {
    /// In the gateway, before it was requested.
    pub(super) gateway: u64,
    /// In the master.
    pub(super) master: u64,
    /// In the server's read queue.
    pub(super) queue: u64,
    /// While it was read.
    pub(super) read: u64,
    /// In the server's write queue.
    pub(super) write: u64,
    /// On the three ways over the network.
    pub(super) network: u64,
    /// From the arrival of the HTTP request to the arrival of the whole block.
    pub(super) total: u64,
}

impl Hops {
    /// The times of a block that came at the moment `at` for a request that came at the moment `entered`, ns of the gateway's clock.
    pub(super) fn new(head: &BlockHead, entered: u64, at: u64) -> Self {
        let gateway = head.app_send.saturating_sub(entered);
        let master = head.master_out.saturating_sub(head.master_in);
        let queue = head.start_read.saturating_sub(head.server_in);
        let read = head.end_read.saturating_sub(head.start_read);
        let write = head.start_write.saturating_sub(head.end_read);
        // A request that joined when the block was in flight waited for less.
        let total = at.saturating_sub(entered);
        let away = at.saturating_sub(head.app_send);
        let network = away.saturating_sub(master + queue + read + write);
        Self {
            gateway,
            master,
            queue,
            read,
            write,
            network,
            total,
        }
    }
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// The header for one block.
pub(super) fn format_block_timing(came: &GatewayBlock, entered: u64) -> String {
    let hops = Hops::new(&came.head, entered, came.at);
    let mut header = String::new();
    for (name, ns) in [
        ("gateway", hops.gateway),
        ("master", hops.master),
        ("queue", hops.queue),
        ("read", hops.read),
        ("write", hops.write),
        ("network", hops.network),
        ("total", hops.total),
    ] {
        let _ = write!(header, "{name};dur={:.3}, ", ms(ns));
    }
    let from = if came.head.cached { "memory" } else { "disk" };
    let _ = write!(
        header,
        "server;desc=\"{}\", from;desc=\"{from}\"",
        came.head.server
    );
    header
}

/// The header for a range: the number of its blocks, and the slowest of those that were awaited before the answer began.
pub(super) fn format_range_timing(blocks: u64, waited: u64, slowest: u64) -> String {
    format!(
        "blocks;desc=\"{blocks}\", slowest;dur={:.3};desc=\"of the first {waited}\"",
        ms(slowest)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn head(ahead: u64) -> BlockHead {
        let (app_send, master_in, master_out) = (1000, 5_000_000 + 1100, 5_000_000 + 1150);
        let (server_in, start_read, end_read) = (ahead + 1250, ahead + 1270, ahead + 1870);
        BlockHead {
            unit: 1,
            set: 1,
            number: 1,
            serial: 1,
            length: 1,
            checksum: 0,
            server: 0,
            disk: 0,
            cached: false,
            app_send,
            master_in,
            master_out,
            server_in,
            start_read,
            end_read,
            start_write: ahead + 1875,
            before: 0,
            before_end_write: 0,
        }
    }

    #[test]
    fn terms_add_up_and_do_not_depend_on_the_clocks() {
        for ahead in [0, 77_000_000_000] {
            let hops = Hops::new(&head(ahead), 900, 2200);
            let terms = [
                hops.gateway,
                hops.master,
                hops.queue,
                hops.read,
                hops.write,
                hops.network,
            ];
            assert_eq!(terms, [100, 50, 20, 600, 5, 525]);
            assert_eq!(terms.iter().sum::<u64>(), hops.total);
        }
    }

    #[test]
    fn who_joined_late_waited_for_less() {
        let hops = Hops::new(&head(0), 2000, 2200);
        assert_eq!((hops.gateway, hops.total), (0, 200));
    }
}
