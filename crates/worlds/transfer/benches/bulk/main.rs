//! Transfers between two network namespaces at MTU 1500 beside kernel TCP with CUBIC: A B A B in one run, medians, processor
//! time of both threads beside wall time. `cargo bench -p stackline-transfer --bench bulk -- [ROUNDS] [NAME...]`, as root.
//!
//! Bulk is 1 GiB from memory to memory, every byte compared, with a core for each side; small is 64 KiB a time on a
//! connection that is open, until the sender knows that all of it is there. Names leave out what is not named.

mod blast;
mod measure;
mod net;
mod tcp;

use measure::{Failure, Made, Measured, Mover, Side, measure, median};
use net::Pair;
use stackline_testing::bench_arguments::BenchArguments;

/// Bytes of a bulk transfer, and of a small one.
const BULK: usize = 1 << 30;
const SMALL: usize = 64 << 10;
/// Small transfers in a round.
const TIMES: usize = 1000;

const MOVERS: [Mover; 5] = [
    Mover {
        name: "tcp",
        listen: tcp::listen,
        connect: tcp::connect,
    },
    Mover {
        name: "blast",
        listen: blast::usual::listen,
        connect: blast::usual::connect,
    },
    Mover {
        name: "spin",
        listen: blast::spin::listen,
        connect: blast::spin::connect,
    },
    Mover {
        name: "checked",
        listen: blast::check::listen,
        connect: blast::check::connect,
    },
    Mover {
        name: "sealed",
        listen: blast::seal::listen,
        connect: blast::seal::connect,
    },
];

/// One line for each mover, and each figure's ratio to the first one's.
fn print(movers: &[&Mover], all: &[Vec<Measured>], unit: &str, figure: impl Fn(&Measured) -> f64) {
    let of = |rounds: &[Measured], what: &dyn Fn(&Measured) -> f64| median(rounds.iter().map(what));
    let line = |rounds: &[Measured]| {
        let processor = of(rounds, &|m| m.sender + m.receiver);
        [
            of(rounds, &figure),
            of(rounds, &|m| m.sender),
            of(rounds, &|m| m.receiver),
            processor,
        ]
    };
    println!(
        "{:<10} {unit:>14} {:>10} {:>10} {:>10} {:>14} {:>10}",
        "", "sender s", "receiver s", "both s", "ratio", "of both"
    );
    let base = line(&all[0]);
    for (mover, rounds) in movers.iter().zip(all) {
        let [figure, sender, receiver, both] = line(rounds);
        let (ratio, of_both) = (figure / base[0], both / base[3]);
        let name = mover.name;
        println!(
            "{name:<10} {figure:>14.2} {sender:>10.3} {receiver:>10.3} {both:>10.3} {ratio:>14.2} {of_both:>10.2}"
        );
    }
}

fn main() -> Result<(), Failure> {
    let mut arguments = BenchArguments::read();
    let rounds = arguments.take_first_number().unwrap_or(9);
    let words = arguments.into_words()?;
    let named = |mover: &&Mover| words.iter().any(|word| word == mover.name);
    let any = MOVERS.iter().any(|mover| named(&mover));
    let movers: Vec<&Mover> = MOVERS
        .iter()
        .filter(|mover| !any || mover.name == "tcp" || named(mover))
        .collect();
    let pair = Pair::new()?;
    let data: Vec<u8> = (0..BULK as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let mut into = vec![1; BULK];
    let mut bulk = vec![Vec::new(); movers.len()];
    let mut small = bulk.clone();
    for _ in 0..rounds {
        for (number, mover) in movers.iter().enumerate() {
            into.fill(0);
            bulk[number].push(measure(&pair, mover, &data, &mut into, 1)?);
            assert!(into == data, "other bytes came by {}", mover.name);
            small[number].push(measure(
                &pair,
                mover,
                &data[..SMALL],
                &mut into[..SMALL],
                TIMES,
            )?);
        }
    }
    println!("1 GiB, MTU 1500, {rounds} rounds");
    print(&movers, &bulk, "Gbit/s", |m| {
        BULK as f64 * 8e-9 / median(m.transfers.iter().copied())
    });
    println!("\n64 KiB and one acknowledgement, {TIMES} times in each round");
    print(&movers, &small, "median us", |m| {
        1e6 * median(m.transfers.iter().copied())
    });
    Ok(())
}
