//! What the gateway adds: blocks of 48 KiB over loopback from one server's memory, by HTTP and by the client library.
//!
//! `cargo bench -p stackline-blockserver --bench gateway`. Everything is in one process and on the same cores: master,
//! server, gateway and clients. Compare rows with each other, not with other machines.
#![allow(clippy::unwrap_used, reason = "what a benchmark cannot do ends it")]

#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "a part of what the tests have"
)]
#[path = "../tests/blocks/common.rs"]
mod common;
#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "a part of what the tests have"
)]
#[path = "../tests/blocks/http.rs"]
mod http;

use common::{Site, set};
use http::Http;
use stackline_blocks::set::BlockSet;
use stackline_blockserver::client::BlockClientOptions;
use stackline_blockserver::range_read;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const BLOCK: u32 = 48 << 10;
const BLOCKS: u64 = 1000;
const ROUND: Duration = Duration::from_secs(2);
const ROUNDS: usize = 3;

/// Blocks a second, with so many connections that each ask for one block after the other, or one range of many.
fn by_http(
    address: SocketAddr,
    connections: u64,
    path: impl Fn(u64) -> String + Sync,
    each: u64,
) -> f64 {
    let (count, begun) = (AtomicU64::new(0), Instant::now());
    std::thread::scope(|scope| {
        for connection in 0..connections {
            let (count, path) = (&count, &path);
            scope.spawn(move || {
                let mut http = Http::to(address);
                let mut number = connection * 131;
                while begun.elapsed() < ROUND {
                    let answer = http.get(&path(number % BLOCKS));
                    assert_eq!(answer.status, 200);
                    count.fetch_add(each, Ordering::Relaxed);
                    number += 1;
                }
            });
        }
    });
    count.into_inner() as f64 / begun.elapsed().as_secs_f64()
}

fn by_client(site: &Site) -> f64 {
    let client = site.client(BlockClientOptions::default());
    let open = client.open("map").unwrap();
    let (mut count, begun) = (0, Instant::now());
    while begun.elapsed() < ROUND {
        let take = |_, _| Ok(());
        range_read::read_range(&client, &open, 0, BLOCKS, take).unwrap();
        count += BLOCKS;
    }
    count as f64 / begun.elapsed().as_secs_f64()
}

fn main() {
    let site = Site::new(1);
    site.load(&BlockSet {
        block_size: BLOCK,
        bytes: BLOCKS * u64::from(BLOCK),
        ..set("map", 1, 1)
    })
    .unwrap();
    let gateway = http::start(&site);
    let address = gateway.address();
    let block = |number: u64| format!("/map/{number}");
    let whole = |_: u64| "/map".to_string();
    // All of it into the server's memory.
    by_client(&site);
    type Row<'r> = (&'r str, Box<dyn Fn() -> f64 + 'r>);
    let rows: [Row<'_>; 6] = [
        ("client library, all at once", Box::new(|| by_client(&site))),
        (
            "gateway, 1 connection, a block at a time",
            Box::new(|| by_http(address, 1, block, 1)),
        ),
        (
            "gateway, 8 connections, a block at a time",
            Box::new(|| by_http(address, 8, block, 1)),
        ),
        (
            "gateway, 64 connections, a block at a time",
            Box::new(|| by_http(address, 64, block, 1)),
        ),
        (
            "gateway, 1 connection, the whole set",
            Box::new(|| by_http(address, 1, whole, BLOCKS)),
        ),
        (
            "gateway, 4 connections, the whole set",
            Box::new(|| by_http(address, 4, whole, BLOCKS)),
        ),
    ];
    let mut figures = vec![Vec::new(); rows.len()];
    // In turns, so that what the machine does besides meets all of them.
    for _ in 0..ROUNDS {
        for (figures, (_, measure)) in figures.iter_mut().zip(&rows) {
            figures.push(measure());
        }
    }
    for (figures, (name, _)) in figures.iter_mut().zip(&rows) {
        figures.sort_by(f64::total_cmp);
        let middle = figures[ROUNDS / 2];
        let (least, most) = (figures[0], figures[ROUNDS - 1]);
        println!(
            "{name:45} {middle:8.0} blocks/s ({least:.0} to {most:.0}), {:6.0} MB/s",
            middle * f64::from(BLOCK) / 1e6
        );
    }
}
