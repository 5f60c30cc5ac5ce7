//! Builds the classic BPF program that the kernel runs on each packet: which packets are kept, and how many bytes of each. It sees
//! no link header, and does not look behind the second header of IP.

use super::options::CaptureOptions;
use stackline_os::bpf::BpfJump::{self, Accept, Reject, Skip};
use stackline_os::bpf::BpfStep::{self, IsEqual, Load};
use stackline_os::bpf::BpfWidth::{Byte, Word};
use stackline_os::bpf::{BpfProgram, require_equal};
use std::io;

/// The most interfaces that can be named: a jump in the program is at most 255 steps long.
const MOST_INTERFACES: usize = 200;

const TCP: u32 = libc::IPPROTO_TCP as u32;
const UDP: u32 = libc::IPPROTO_UDP as u32;
/// Extension headers of IPv6 whose first byte is the number of the next header: hop-by-hop, routing, fragment, destination options.
const EXTENSIONS: [u32; 4] = [0, 43, 44, 60];

/// The program that accepts packets of these interfaces (by index; empty: all) and of the protocols in `options`.
pub(super) fn program(options: &CaptureOptions, interfaces: &[u32]) -> io::Result<BpfProgram> {
    if interfaces.len() > MOST_INTERFACES {
        let why = format!("at most {MOST_INTERFACES} interfaces can be captured by name");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let mut steps = of_interfaces(interfaces);
    steps.extend(one_of_two());
    // The steps that follow compare what was loaded last.
    steps.push(Load(Word, libc::SKF_AD_OFF + libc::SKF_AD_PROTOCOL));
    steps.extend(if options.tcp_udp_only {
        tcp_and_udp()
    } else {
        ip()
    });
    BpfProgram::assemble(&steps, options.snaplen.max(1), 0)
}

/// Steps that reject packets of other interfaces.
fn of_interfaces(interfaces: &[u32]) -> Vec<BpfStep> {
    let Some((last, others)) = interfaces.split_last() else {
        return Vec::new();
    };
    let mut steps = vec![Load(Word, libc::SKF_AD_OFF + libc::SKF_AD_IFINDEX)];
    steps.extend(
        others
            .iter()
            .enumerate()
            .map(|(at, index)| IsEqual(*index, Skip(others.len() - at), BpfJump::NEXT)),
    );
    steps.push(require_equal(*last));
    steps
}

/// Steps for the loopback interface, where each packet is seen twice: the outgoing one is rejected, the incoming one kept.
fn one_of_two() -> [BpfStep; 4] {
    [
        Load(Word, libc::SKF_AD_OFF + libc::SKF_AD_HATYPE),
        IsEqual(u32::from(libc::ARPHRD_LOOPBACK), BpfJump::NEXT, Skip(2)),
        Load(Word, libc::SKF_AD_OFF + libc::SKF_AD_PKTTYPE),
        IsEqual(u32::from(libc::PACKET_OUTGOING), Reject, BpfJump::NEXT),
    ]
}

/// Steps that accept IPv4 and IPv6 only.
fn ip() -> Vec<BpfStep> {
    vec![
        IsEqual(libc::ETH_P_IP as u32, Accept, BpfJump::NEXT),
        IsEqual(libc::ETH_P_IPV6 as u32, Accept, Reject),
    ]
}

/// Steps that accept TCP and UDP only, in IPv6 behind at most one extension header. The offsets are those of the protocol byte in
/// IPv4 (9), in IPv6 (6), and in the extension header behind it (40).
fn tcp_and_udp() -> Vec<BpfStep> {
    let mut steps = vec![
        IsEqual(libc::ETH_P_IP as u32, BpfJump::NEXT, Skip(3)),
        Load(Byte, 9),
        IsEqual(TCP, Accept, BpfJump::NEXT),
        IsEqual(UDP, Accept, Reject),
        require_equal(libc::ETH_P_IPV6 as u32),
        Load(Byte, 6),
        IsEqual(TCP, Accept, BpfJump::NEXT),
        IsEqual(UDP, Accept, BpfJump::NEXT),
    ];
    let [others @ .., last] = EXTENSIONS;
    steps.extend(
        others
            .iter()
            .enumerate()
            .map(|(at, next)| IsEqual(*next, Skip(others.len() - at), BpfJump::NEXT)),
    );
    steps.push(require_equal(last));
    steps.extend([
        Load(Byte, 40),
        IsEqual(TCP, Accept, BpfJump::NEXT),
        IsEqual(UDP, Accept, Reject),
    ]);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_jump_stays_inside_the_longest_program() {
        let interfaces: Vec<u32> = (0..MOST_INTERFACES as u32).collect();
        let program = program(&CaptureOptions::default(), &interfaces).unwrap();
        for (at, step) in program.instructions().iter().enumerate() {
            let furthest = usize::from(step.jt.max(step.jf));
            assert!(
                at + furthest < program.instructions().len(),
                "step {at} goes {furthest} on"
            );
        }
        assert!(
            program.instructions().len() <= 256,
            "a jump from the first step to the last is {} long",
            program.instructions().len()
        );
        assert!(super::program(&CaptureOptions::default(), &[7; MOST_INTERFACES + 1]).is_err());
    }
}
