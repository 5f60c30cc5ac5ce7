//! One disk server sends blocks of 48 KiB as UDP datagrams (UDP_SEGMENT) to the client library (UDP_GRO), eight in flight, beside
//! a bare loop of the same two options over the same blocks. In turns, medians.
//! `cargo bench -p stackline-blockserver --bench datagrams [-- ROUNDS]`.
#![allow(clippy::unwrap_used, reason = "what a benchmark cannot do ends it")]

#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "a part of what the tests have"
)]
#[path = "../tests/blocks/common.rs"]
mod common;

mod rounds;

use common::Site;
use nix::sys::socket::{MsgFlags, getsockopt, recv, send, setsockopt, sockopt};
use rounds::ours::{self, Ours, Reading};
use rounds::{Figures, Peer, own_cpu};
use stackline_blocks::wire::message::BlockDataTransport;
use stackline_blockserver::client::BlockClientOptions;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Bytes of a block, blocks that are asked for in turn, and blocks in flight.
pub(crate) const BLOCK: usize = 48 << 10;
const BLOCKS: u64 = 1024;
const IN_FLIGHT: u64 = 8;
/// Blocks of a round.
const ROUND: u64 = 40_000;
/// Headers of IPv4 and UDP; the most that a datagram is on a path that takes more.
const HEADERS: usize = 28;
const LONGEST: usize = 32_500;

/// Requests of 8 bytes, blocks from memory; nothing is put together.
struct Bare;

impl Peer for Bare {
    fn name(&self) -> String {
        "bare loop".into()
    }

    fn round(&mut self) -> Figures {
        let (serving, asking) = (
            UdpSocket::bind("127.0.0.1:0").unwrap(),
            UdpSocket::bind("127.0.0.1:0").unwrap(),
        );
        serving.connect(asking.local_addr().unwrap()).unwrap();
        asking.connect(serving.local_addr().unwrap()).unwrap();
        let mtu = getsockopt(&serving, sockopt::IpMtu).unwrap() as usize;
        setsockopt(
            &serving,
            sockopt::UdpGsoSegment,
            &((mtu - HEADERS).min(LONGEST) as i32),
        )
        .unwrap();
        setsockopt(&asking, sockopt::UdpGroSegment, &true).unwrap();
        socket2::SockRef::from(&asking)
            .set_recv_buffer_size(4 << 20)
            .unwrap();
        asking
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let server = std::thread::spawn(move || {
            let memory = vec![1_u8; BLOCK * BLOCKS as usize];
            let (mut requests, cpu) = ([0; 8 * IN_FLIGHT as usize], own_cpu());
            loop {
                let count = serving.recv(&mut requests).unwrap();
                if count == 0 {
                    return own_cpu() - cpu;
                }
                for request in requests[..count].chunks_exact(8) {
                    let at =
                        (u64::from_be_bytes(request.try_into().unwrap()) % BLOCKS) as usize * BLOCK;
                    send(
                        serving.as_raw_fd(),
                        &memory[at..at + BLOCK],
                        MsgFlags::empty(),
                    )
                    .unwrap();
                }
            }
        });
        let mut memory = vec![0; 1 << 16];
        let (begun, mut asked, mut bytes) = (Instant::now(), 0, 0);
        while bytes < ROUND as usize * BLOCK {
            let came = (bytes / BLOCK) as u64;
            while asked < ROUND && asked - came <= IN_FLIGHT / 2 {
                let requests: Vec<u8> = (asked..asked + IN_FLIGHT / 2)
                    .flat_map(u64::to_be_bytes)
                    .collect();
                asked += IN_FLIGHT / 2;
                asking.send(&requests).unwrap();
            }
            bytes += recv(asking.as_raw_fd(), &mut memory, MsgFlags::empty()).unwrap();
        }
        let wall = begun.elapsed();
        asking.send(&[]).unwrap();
        Figures {
            blocks: ROUND,
            wall,
            server_cpu_s: server.join().unwrap(),
        }
    }
}

fn main() {
    let rounds = rounds::asked_for();
    let site = Site::new(1);
    ours::load(&site, BLOCKS);
    let reading = Reading {
        round: ROUND,
        in_flight: IN_FLIGHT,
        number: |at| at % BLOCKS,
    };
    let options = BlockClientOptions {
        transport: BlockDataTransport::Udp,
        ..ours::discarding()
    };
    let ours = Ours {
        name: "stackline, UDP".into(),
        site,
        options,
        reading,
        threads: &["client", "disk", "master"],
    };
    let mut peers: Vec<Box<dyn Peer>> = vec![Box::new(ours), Box::new(Bare)];
    let all = rounds::in_turns(&mut peers, rounds);
    println!(
        "{ROUND} blocks of {BLOCK} B a round, {IN_FLIGHT} in flight, {rounds} rounds in turns; medians (least to most)"
    );
    rounds::print(&peers, &all);
    let (rate, least, most) = rounds::ratio(&all[0], &all[1], Figures::gigabytes_a_second);
    println!("throughput of stackline by that of the bare loop: {rate:.2} ({least:.2}..{most:.2})");
}
