//! Selective blasts over UDP beside what else moves bulk from memory to memory, in one run, in turns, between two
//! network namespaces at MTU 1500 with a core for each side. As root:
//!
//! ```text
//! cargo bench -p stackline-transfer --bench peers -- [WORD...] [--quinn] [--udt] [--steered] [--rounds N] [--mib N]
//! ```
//!
//! Where packets are lost they go one by one; then the kernel does most of the receiver's work on the core of whoever
//! sends. `--steered` has each side's core do what is to be done for its side, as a host would; what the kernel drops
//! more because its backlog is full is counted and said.
//!
//! A word keeps the cases that have it in their name. Kernel TCP with CUBIC is always there. quinn is built (and
//! fetched) only when asked for, UDT only where Debian's `libudt-dev` is installed: neither is a dependency of the
//! workspace, each is a program of its own that runs in the same namespaces. Every turn begins with an open connection
//! and ends when the sender knows that everything is there; processor time is that of both ends, of all their threads.

#[path = "../bulk/blast.rs"]
#[allow(dead_code, reason = "the other benchmark has more ways of being used")]
mod blast;
mod loss;
#[path = "../bulk/measure.rs"]
mod measure;
#[path = "../bulk/net.rs"]
mod net;
mod outside;
mod table;
#[path = "../bulk/tcp.rs"]
mod tcp;

use measure::{Failure, Made, Mover, Side, measure, median};
use net::Pair;
use outside::Program;
use stackline_testing::bench_arguments::BenchArguments;
use std::process::ExitCode;
use table::Turn;

/// What is compared, and what is asked of it: how many times as fast as a peer, what part of its processor time, at
/// most.
pub(crate) struct Case {
    name: &'static str,
    /// Packets of 1000 that are lost on their way to the receiver.
    lost: f64,
    mib: usize,
    goals: &'static [Goal],
}

/// What is asked beside one peer.
pub(crate) struct Goal {
    peer: &'static str,
    faster: Option<f64>,
    processor: Option<f64>,
}

const CLEAN: [Goal; 3] = [
    Goal {
        peer: "tcp",
        faster: Some(1.0),
        processor: Some(1.1),
    },
    Goal {
        peer: "quinn",
        faster: None,
        processor: Some(0.2),
    },
    Goal {
        peer: "udt",
        faster: None,
        processor: Some(0.25),
    },
];
const LOSSY: [Goal; 2] = [
    Goal {
        peer: "tcp",
        faster: Some(1.0),
        processor: None,
    },
    Goal {
        peer: "quinn",
        faster: Some(3.0),
        processor: None,
    },
];
const CASES: [Case; 3] = [
    Case {
        name: "clean",
        lost: 0.0,
        mib: 512,
        goals: &CLEAN,
    },
    Case {
        name: "0.1 % lost",
        lost: 1.0,
        mib: 256,
        goals: &LOSSY,
    },
    Case {
        name: "1.0 % lost",
        lost: 10.0,
        mib: 256,
        goals: &LOSSY,
    },
];
const BLAST: Mover = Mover {
    name: "blast",
    listen: blast::usual::listen,
    connect: blast::usual::connect,
};
const TCP: Mover = Mover {
    name: "tcp",
    listen: tcp::listen,
    connect: tcp::connect,
};
const USAGE: &str = "cargo bench -p stackline-transfer --bench peers -- [WORD...] [--quinn] [--udt] [--steered] \
                     [--rounds N] [--mib N]";

struct Options {
    words: Vec<String>,
    quinn: bool,
    udt: bool,
    steered: bool,
    rounds: usize,
    mib: Option<usize>,
}

fn options() -> Result<Options, String> {
    let mut arguments = BenchArguments::read();
    Ok(Options {
        quinn: arguments.take_flag("--quinn"),
        udt: arguments.take_flag("--udt"),
        steered: arguments.take_flag("--steered"),
        rounds: arguments.take_number("--rounds", 5)?.max(1),
        mib: arguments
            .take_word("--mib")?
            .map(|mib| mib.parse().map_err(|_| "--mib takes a number"))
            .transpose()?,
        words: arguments.into_words()?,
    })
}

/// A mover and its turns, in the order of rounds.
pub(crate) struct Peer {
    name: &'static str,
    how: How,
    turns: Vec<Turn>,
    /// Packets that the kernel's backlog had no room for, in all turns.
    overflown: u64,
}

/// Where it runs: in threads of this program, or as two of another.
enum How {
    Inside(Mover),
    Outside(Program),
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(reason) => {
            eprintln!("error: {reason}\nhint: {USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut programs = Vec::new();
    for (name, wanted, build) in [
        ("quinn", options.quinn, outside::quinn as fn() -> _),
        ("udt", options.udt, outside::udt),
    ] {
        match if wanted {
            build()
        } else {
            Err(format!("--{name} was not said"))
        } {
            Ok(program) => programs.push(program),
            Err(reason) => println!("{name} left out: {reason}"),
        }
    }
    let is_wanted = |case: &&Case| {
        options
            .words
            .iter()
            .all(|word| case.name.contains(word.as_str()))
    };
    for case in CASES.iter().filter(is_wanted) {
        if let Err(reason) = compare(case, &programs, &options) {
            println!("{} left out: {reason}", case.name);
        }
    }
    ExitCode::SUCCESS
}

/// Carries out a case, all peers in turns, and prints it.
fn compare(case: &Case, programs: &[Program], options: &Options) -> Result<(), Failure> {
    let pair = Pair::new()?;
    if case.lost > 0.0 {
        loss::set(&pair, case.lost, options.steered)?;
    }
    let bytes = options.mib.unwrap_or(case.mib) << 20;
    let data: Vec<u8> = (0..bytes as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let mut into = vec![1; bytes];
    let peer = |name, how| Peer {
        name,
        how,
        turns: Vec::new(),
        overflown: 0,
    };
    let mut peers = vec![
        peer(BLAST.name, How::Inside(BLAST)),
        peer(TCP.name, How::Inside(TCP)),
    ];
    let named = |name: &str| case.goals.iter().any(|goal| goal.peer == name);
    let outside = programs.iter().filter(|program| named(program.name));
    peers.extend(outside.map(|program| peer(program.name, How::Outside(program.clone()))));
    for _ in 0..options.rounds {
        let take = |mut peer: Peer| {
            let before = loss::overflown();
            let turn = turn(&pair, &peer.how, &data, &mut into);
            peer.overflown += loss::overflown() - before;
            match turn {
                Ok(turn) => {
                    peer.turns.push(turn);
                    Some(peer)
                }
                Err(reason) => {
                    println!("{} left out of {}: {reason}", peer.name, case.name);
                    None
                }
            }
        };
        peers = peers.into_iter().filter_map(take).collect();
        peers.reverse(); // nobody is always first
    }
    if options.rounds % 2 == 1 {
        peers.reverse();
    }
    table::print(case, bytes, &peers);
    Ok(())
}

fn turn(pair: &Pair, how: &How, data: &[u8], into: &mut [u8]) -> Result<Turn, Failure> {
    let mover = match how {
        How::Outside(program) => return program.run(pair, data.len()),
        How::Inside(mover) => mover,
    };
    into.fill(0);
    let measured = measure(pair, mover, data, into, 1)?;
    if into != data {
        return Err("other bytes came".into());
    }
    let seconds = median(measured.transfers.iter().copied());
    Ok(Turn {
        seconds,
        sender: measured.sender,
        receiver: measured.receiver,
    })
}
