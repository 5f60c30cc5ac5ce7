//! A log of blocks read from a parallel block server over a wide-area network, as the MAGIC testbed had it: eight points for
//! each block, sixteen connections to four servers, stalls with their retransmissions. The same seed, the same bytes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{Result, Write};

const CONNECTIONS: u64 = 16;
const SERVERS: u64 = 4;
const BLOCK: u64 = 49_152;
/// Between two blocks, ns: 1250 of them in a second.
const EVERY: u64 = 800_000;
const BEGIN: u64 = 1_764_000_000_000_000_000;

/// The points a block passes: keyword, whether the client, the master or a server says it, mean time since the point before, ns.
const POINTS: [(&str, Place, u64); 8] = [
    ("APP_SEND_REQUEST", Place::Client, 0),
    ("DPSS_MASTER_IN", Place::Master, 1_500_000),
    ("DPSS_SERV_IN", Place::Server, 2_000_000),
    ("DPSS_START_READ", Place::Server, 700_000),
    ("DPSS_END_READ", Place::Server, 9_000_000),
    ("DPSS_START_WRITE", Place::Server, 400_000),
    ("DPSS_END_WRITE", Place::Server, 3_000_000),
    ("APP_RECEIVE", Place::Client, 6_000_000),
];

#[derive(Clone, Copy)]
enum Place {
    Client,
    Master,
    Server,
}

/// Splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Half the mean for certain, the rest exponential.
    fn around(&mut self, mean: u64) -> u64 {
        let uniform = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        mean / 2 + (-(1.0 - uniform).ln() * (mean / 2) as f64) as u64
    }
}

/// Writes the log of so many blocks, in the order of time; how many lines. One block in 517 stalls for a retransmission of its own,
/// one in 2019 at the disk; further retransmissions stall nothing.
pub(crate) fn write(blocks: u64, seed: u64, to: &mut impl Write) -> Result<u64> {
    let mut random = Random(seed);
    let mut waiting: BinaryHeap<Reverse<(u64, u64, String)>> = BinaryHeap::new();
    let (mut lines, mut made) = (0, 0);
    for block in 0..blocks {
        let start = BEGIN + block * EVERY + random.below(EVERY);
        while let Some(Reverse((at, ..))) = waiting.peek()
            && *at < BEGIN + block * EVERY
        {
            lines += 1;
            if let Some(Reverse((.., line))) = waiting.pop() {
                to.write_all(line.as_bytes())?;
            }
        }
        let mut put = |at: u64, line: String| {
            made += 1;
            waiting.push(Reverse((at, made, line)));
        };
        let connection = random.below(CONNECTIONS);
        let (server, offset) = (connection % SERVERS, block / CONNECTIONS * BLOCK);
        let stalls = random.below(517) == 0;
        let slow_disk = !stalls && random.below(2019) == 0;
        let mut at = start;
        for (index, (keyword, place, mean)) in POINTS.iter().enumerate() {
            if *mean > 0 {
                at += random.around(*mean);
            }
            if index == 4 && slow_disk {
                at += 1_000_000_000 + random.below(500_000_000);
            }
            if index == 7 && stalls {
                put(
                    at + 200_000_000,
                    retransmission(server, at + 200_000_000, connection, offset),
                );
                at += 1_000_000_000 + random.below(500_000_000);
            }
            let host = match place {
                Place::Client => "tv-sim.magic.net".to_owned(),
                Place::Master => "dpss-master.magic.net".to_owned(),
                Place::Server => format!("dpss{}.lbl.magic.net", server + 1),
            };
            let (seconds, nanos) = (at / 1_000_000_000, at % 1_000_000_000);
            let data = format!(
                "{block}; {}; {offset}; {BLOCK}; 42; 7; disk{}",
                connection * 2 + 1,
                block % 5
            );
            put(
                at,
                format!("{keyword}; {host}; {seconds}; {nanos}; {data}\n"),
            );
        }
        if random.below(84) == 0 {
            let (at, connection) = (start + random.below(40_000_000), random.below(CONNECTIONS));
            let away = offset.saturating_sub(BLOCK * 40);
            put(
                at,
                retransmission(connection % SERVERS, at, connection, away),
            );
        }
    }
    while let Some(Reverse((.., line))) = waiting.pop() {
        lines += 1;
        to.write_all(line.as_bytes())?;
    }
    to.flush()?;
    Ok(lines)
}

fn retransmission(server: u64, at: u64, connection: u64, offset: u64) -> String {
    let (seconds, nanos) = (at / 1_000_000_000, at % 1_000_000_000);
    let stream = connection * 2 + 1;
    format!(
        "TCP_RETRANSMIT; dpss{}.lbl.magic.net; {seconds}; {nanos}; ; {stream}; {offset}; 1448; timeout\n",
        server + 1
    )
}
