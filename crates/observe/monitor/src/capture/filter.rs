//! The program that the kernel runs on each packet, in classic BPF: which are kept, and how much of each. It sees no link
//! header, and never looks behind the second header of IP.

use super::options::CaptureOptions;
use libc::sock_filter;
use std::io;

/// Most interfaces that can be named: a jump is at most 255 steps long.
const MOST_INTERFACES: usize = 200;

const TCP: u32 = libc::IPPROTO_TCP as u32;
const UDP: u32 = libc::IPPROTO_UDP as u32;
/// Headers of IPv6 that name the next header in their first byte: hop by hop, routing, fragment, destination.
const EXTENSIONS: [u32; 4] = [0, 43, 44, 60];

/// What a step does next.
#[derive(Clone, Copy)]
enum To {
    /// The step behind the next so many.
    Over(usize),
    Keep,
    Drop,
}
use To::{Drop, Keep, Over};
const NEXT: To = Over(0);

/// A step of the program.
enum FilterInstruction {
    /// Loads so many bytes (`BPF_B`, `BPF_W`) from an offset.
    Load(u32, i32),
    /// Whether what was loaded is this number, and what then and otherwise.
    Is(u32, To, To),
}
use FilterInstruction::{Is, Load};

/// The program for these numbers of interfaces; none of them is all of them.
pub(super) fn program(
    options: &CaptureOptions,
    interfaces: &[u32],
) -> io::Result<Vec<sock_filter>> {
    if interfaces.len() > MOST_INTERFACES {
        let why = format!("at most {MOST_INTERFACES} interfaces can be captured by name");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let mut steps = of_interfaces(interfaces);
    steps.extend(one_of_two());
    steps.push(Load(libc::BPF_W, libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL));
    steps.extend(if options.tcp_udp_only {
        tcp_and_udp()
    } else {
        ip()
    });
    Ok(assembled(&steps, options.snaplen.max(1)))
}

fn of_interfaces(interfaces: &[u32]) -> Vec<FilterInstruction> {
    let Some((last, others)) = interfaces.split_last() else {
        return Vec::new();
    };
    let mut steps = vec![Load(libc::BPF_W, libc::SKF_AD_OFF + libc::SKF_AD_IFINDEX)];
    steps.extend(
        others
            .iter()
            .enumerate()
            .map(|(at, index)| Is(*index, Over(others.len() - at), NEXT)),
    );
    steps.push(Is(*last, NEXT, Drop));
    steps
}

/// On the loopback interface each packet comes by twice: what goes out is dropped, what comes in kept.
fn one_of_two() -> [FilterInstruction; 4] {
    [
        Load(libc::BPF_W, libc::SKF_AD_OFF + libc::SKF_AD_HATYPE),
        Is(u32::from(libc::ARPHRD_LOOPBACK), NEXT, Over(2)),
        Load(libc::BPF_W, libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE),
        Is(u32::from(libc::PACKET_OUTGOING), Drop, NEXT),
    ]
}

fn ip() -> Vec<FilterInstruction> {
    vec![
        Is(libc::ETH_P_IP as u32, Keep, NEXT),
        Is(libc::ETH_P_IPV6 as u32, Keep, Drop),
    ]
}

fn tcp_and_udp() -> Vec<FilterInstruction> {
    let mut steps = vec![
        Is(libc::ETH_P_IP as u32, NEXT, Over(3)),
        Load(libc::BPF_B, 9),
        Is(TCP, Keep, NEXT),
        Is(UDP, Keep, Drop),
        Is(libc::ETH_P_IPV6 as u32, NEXT, Drop),
        Load(libc::BPF_B, 6),
        Is(TCP, Keep, NEXT),
        Is(UDP, Keep, NEXT),
    ];
    let [others @ .., last] = EXTENSIONS;
    steps.extend(
        others
            .iter()
            .enumerate()
            .map(|(at, next)| Is(*next, Over(others.len() - at), NEXT)),
    );
    steps.push(Is(last, NEXT, Drop));
    steps.extend([
        Load(libc::BPF_B, 40),
        Is(TCP, Keep, NEXT),
        Is(UDP, Keep, Drop),
    ]);
    steps
}

/// The steps, and behind them the two returns they go to.
fn assembled(steps: &[FilterInstruction], snaplen: u32) -> Vec<sock_filter> {
    let instruction = |code: u32, jt, jf, k| sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let step = |(at, step): (usize, &FilterInstruction)| {
        // No program is longer than a jump: see `MOST_INTERFACES`.
        let distance = |to: To| match to {
            Over(steps) => steps as u8,
            Keep => (steps.len() - at - 1) as u8,
            Drop => (steps.len() - at) as u8,
        };
        match *step {
            Load(size, offset) => {
                instruction(libc::BPF_LD | libc::BPF_ABS | size, 0, 0, offset as u32)
            }
            Is(number, yes, no) => instruction(
                libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
                distance(yes),
                distance(no),
                number,
            ),
        }
    };
    let mut program: Vec<_> = steps.iter().enumerate().map(step).collect();
    program.extend([snaplen, 0].map(|kept| instruction(libc::BPF_RET | libc::BPF_K, 0, 0, kept)));
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_jump_stays_inside_the_longest_program() {
        let interfaces: Vec<u32> = (0..MOST_INTERFACES as u32).collect();
        let program = program(&CaptureOptions::default(), &interfaces).unwrap();
        for (at, step) in program.iter().enumerate() {
            let furthest = usize::from(step.jt.max(step.jf));
            assert!(
                at + furthest < program.len(),
                "step {at} goes {furthest} on"
            );
        }
        assert!(
            program.len() <= 256,
            "a jump from the first step to the last is {} long",
            program.len()
        );
        assert!(super::program(&CaptureOptions::default(), &[7; MOST_INTERFACES + 1]).is_err());
    }
}
