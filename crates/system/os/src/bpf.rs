//! An assembler for programs of classic BPF, by which the kernel decides what it keeps of a packet, or what it does with a system call. A
//! program is written as steps with jumps to later steps or to one of two ends; this file computes the jump distances.

use crate::sys::socket_option;
use libc::sock_filter;
use std::io;
use std::os::fd::BorrowedFd;

/// How many bytes a step loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BpfWidth {
    /// One byte.
    Byte,
    /// Two bytes in network order.
    Half,
    /// Four bytes in network order.
    Word,
}

/// Where the program goes on after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BpfJump {
    /// Skips this many of the following steps.
    Skip(usize),
    /// The program's first end.
    Accept,
    /// The program's second end.
    Reject,
}

impl BpfJump {
    /// The next step.
    pub const NEXT: Self = Self::Skip(0);
}

/// A step of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BpfStep {
    /// Loads the value at an offset in the packet. Negative offsets address the kernel's own data on the packet (SKF_AD_OFF).
    Load(BpfWidth, i32),
    /// Compares the loaded value with this number: where to go on if they are equal, and where if not.
    IsEqual(u32, BpfJump, BpfJump),
    /// Tests whether the loaded value has one of these bits: where to go on if so, and where if not.
    HasAny(u32, BpfJump, BpfJump),
}

/// The step that goes on with the next if the loaded value is this number, and otherwise goes to the second end.
#[must_use]
pub const fn require_equal(value: u32) -> BpfStep {
    BpfStep::IsEqual(value, BpfJump::NEXT, BpfJump::Reject)
}

/// An assembled program.
#[derive(Clone, Debug)]
pub struct BpfProgram(Vec<sock_filter>);

impl BpfProgram {
    /// Assembles the steps, followed by the two ends, at which the program returns `accept` and `reject`. After the last step the program
    /// goes on to the first end.
    ///
    /// # Errors
    /// `InvalidInput` if a jump is longer than the 255 instructions that BPF permits.
    pub fn assemble(steps: &[BpfStep], accept: u32, reject: u32) -> io::Result<Self> {
        let distance = |at: usize, to: BpfJump| {
            let steps = match to {
                BpfJump::Skip(steps) => steps,
                BpfJump::Accept => steps.len() - at - 1,
                BpfJump::Reject => steps.len() - at,
            };
            u8::try_from(steps).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
        };
        let mut program = Vec::with_capacity(steps.len() + 2);
        for (at, step) in steps.iter().enumerate() {
            let (code, yes, no, k) = match *step {
                BpfStep::Load(width, offset) => {
                    let size = match width {
                        BpfWidth::Byte => libc::BPF_B,
                        BpfWidth::Half => libc::BPF_H,
                        BpfWidth::Word => libc::BPF_W,
                    };
                    let code = libc::BPF_LD | libc::BPF_ABS | size;
                    (code, 0, 0, offset.cast_unsigned())
                }
                BpfStep::IsEqual(value, yes, no) => {
                    let code = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
                    (code, distance(at, yes)?, distance(at, no)?, value)
                }
                BpfStep::HasAny(bits, yes, no) => {
                    let code = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
                    (code, distance(at, yes)?, distance(at, no)?, bits)
                }
            };
            program.push(instruction(code, yes, no, k));
        }
        let end = |value| instruction(libc::BPF_RET | libc::BPF_K, 0, 0, value);
        program.extend([accept, reject].map(end));
        Ok(Self(program))
    }

    /// The instructions in the kernel's format.
    #[must_use]
    pub fn instructions(&self) -> &[sock_filter] {
        &self.0
    }

    /// Attaches the program to a socket: the kernel passes on only packets for which it returns more than 0, cut to that many bytes.
    ///
    /// # Errors
    /// The kernel's.
    pub fn attach(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        socket_option::attach_filter(socket, &self.0)
    }

    /// Interprets the program on these bytes, for tests of programs, and returns its result. A load beyond the end returns 0, as in the
    /// kernel.
    #[must_use]
    pub fn run(&self, bytes: &[u8]) -> u32 {
        let (mut at, mut word) = (0, 0);
        while let Some(step) = self.0.get(at) {
            at += 1;
            let code = u32::from(step.code);
            let jumps = match code & 0x07 {
                libc::BPF_LD => {
                    let count = match code & 0x18 {
                        libc::BPF_B => 1,
                        libc::BPF_H => 2,
                        _ => 4,
                    };
                    let loaded = bytes
                        .get(step.k as usize..)
                        .and_then(|rest| rest.get(..count));
                    let Some(loaded) = loaded else { return 0 };
                    word = loaded
                        .iter()
                        .fold(0, |word, byte| word << 8 | u32::from(*byte));
                    continue;
                }
                libc::BPF_RET => return step.k,
                _ if code & 0xf0 == libc::BPF_JSET => word & step.k != 0,
                _ => word == step.k,
            };
            at += usize::from(if jumps { step.jt } else { step.jf });
        }
        0
    }
}

const fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_go_where_they_say() {
        let steps = [
            BpfStep::Load(BpfWidth::Half, 1),
            BpfStep::IsEqual(0x0102, BpfJump::Accept, BpfJump::NEXT),
            BpfStep::IsEqual(0x0304, BpfJump::Skip(1), BpfJump::NEXT),
            BpfStep::HasAny(0x8000, BpfJump::NEXT, BpfJump::Reject),
            BpfStep::Load(BpfWidth::Byte, 0),
            require_equal(7),
        ];
        let program = BpfProgram::assemble(&steps, 100, 3).unwrap();
        for (bytes, returns) in [
            ([0, 1, 2], 100),
            ([7, 3, 4], 100),
            ([6, 3, 4], 3),
            ([7, 0x80, 0], 100),
            ([7, 0x40, 0], 3),
        ] {
            assert_eq!(program.run(&bytes), returns, "{bytes:?}");
        }
        assert_eq!(program.run(&[7]), 0, "too short");
    }

    #[test]
    fn a_jump_that_is_too_long_is_refused() {
        let steps = [BpfStep::IsEqual(1, BpfJump::Reject, BpfJump::NEXT); 256];
        assert!(BpfProgram::assemble(&steps[..255], 1, 0).is_ok());
        assert!(BpfProgram::assemble(&steps, 1, 0).is_err());
    }
}
