//! What ptrace(2) and seccomp(2) need and `nix` has no safe call for. It decides nothing.

use nix::unistd::Pid;
use stackline_os::bpf::{BpfJump, BpfProgram, BpfStep, BpfWidth};
use std::io;

/// What the kernel says of a thread that stopped at a system call: `struct ptrace_syscall_info` of ptrace(2) as words of 8 bytes. Byte 0
/// says where it stopped; from byte 24 on stand number and arguments, or the result. Not every C library has its definition.
struct SyscallStop([u64; 11]);

impl SyscallStop {
    const GET: libc::c_uint = 0x420e;
    const AT_EXIT: u8 = 2;
    const AT_FILTER: u8 = 3;
    /// Where the part begins that depends on where it stopped.
    const PART: usize = 3;

    fn read(thread: Pid) -> Option<Self> {
        let mut words = [0; 11];
        let size = size_of_val(&words);
        // SAFETY: the kernel writes at most `size` bytes into the words, which are this function's.
        let length = unsafe {
            libc::ptrace(
                Self::GET as _,
                thread.as_raw(),
                size,
                (&raw mut words).cast::<libc::c_void>(),
            )
        };
        (length > 0).then_some(Self(words))
    }

    fn is_at(&self, place: u8) -> bool {
        self.0[0].to_ne_bytes()[0] == place
    }
}

/// The system call at whose entry a thread was stopped by its filter: number and arguments.
pub(crate) fn read_call_entry(thread: Pid) -> Option<(i64, [u64; 6])> {
    let stop = SyscallStop::read(thread).filter(|stop| stop.is_at(SyscallStop::AT_FILTER))?;
    let (number, arguments) = stop.0[SyscallStop::PART..].split_first()?;
    Some((number.cast_signed(), *arguments.first_chunk()?))
}

/// What the system call returns at whose end a thread was stopped.
pub(crate) fn read_call_result(thread: Pid) -> Option<i64> {
    let stop = SyscallStop::read(thread).filter(|stop| stop.is_at(SyscallStop::AT_EXIT))?;
    Some(stop.0[SyscallStop::PART].cast_signed())
}

/// Waits until a thread that is traced stops or ends: which, and its status as the kernel gives it. `nix` knows no status with a
/// signal of real time, of which threads of glibc use two.
pub(crate) fn wait() -> io::Result<(Pid, libc::c_int)> {
    let mut status = 0;
    // SAFETY: the kernel writes the status, which is this function's.
    let thread = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
    if thread < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok((Pid::from_raw(thread), status))
    }
}

/// Lets a thread go on until it is stopped again, with a signal or 0.
pub(crate) fn go_on(thread: Pid, signal: libc::c_int) {
    // SAFETY: the call takes no pointer of this process; a thread that is gone is an error and nothing else.
    unsafe { libc::ptrace(libc::PTRACE_CONT, thread.as_raw(), 0, signal) };
}

/// A thread that was stopped by a signal stays so, and can be continued by another.
pub(crate) fn listen(thread: Pid) {
    const LISTEN: libc::c_uint = 0x4208;
    // SAFETY: the call takes no pointer of this process; a thread that is gone is an error and nothing else.
    unsafe { libc::ptrace(LISTEN as _, thread.as_raw(), 0, 0) };
}

/// From now on this thread, and whatever it starts, stops at those system calls, where somebody traces it; where nobody does, they
/// fail. Calls of programs for another kind of processor go on as they are.
pub(crate) fn stop_at(calls: &[u32]) -> io::Result<()> {
    let filter = filter(calls)?;
    let filter = filter.instructions();
    let length = u16::try_from(filter.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog {
        len: length,
        filter: filter.as_ptr().cast_mut(),
    };
    nix::sys::prctl::set_no_new_privs()?;
    // SAFETY: the kernel reads the instructions, which live until it returns, and keeps a copy.
    let set = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        )
    };
    if set == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The number by which the kernel calls this kind of processor (`linux/audit.h`).
const PROCESSOR: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xC000_003E)
} else if cfg!(target_arch = "aarch64") {
    Some(0xC000_00B7)
} else {
    None
};

/// The filter, over `struct seccomp_data`: the number of the call at 0, of the processor at 4.
fn filter(calls: &[u32]) -> io::Result<BpfProgram> {
    let processor = PROCESSOR.ok_or(io::ErrorKind::Unsupported)?;
    let mut steps = vec![
        BpfStep::Load(BpfWidth::Word, 4),
        BpfStep::IsEqual(processor, BpfJump::NEXT, BpfJump::Accept),
        BpfStep::Load(BpfWidth::Word, 0),
    ];
    let stops = |call: &u32| BpfStep::IsEqual(*call, BpfJump::Reject, BpfJump::NEXT);
    steps.extend(calls.iter().map(stops));
    BpfProgram::assemble(&steps, libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_TRACE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the filter makes of a call.
    fn judged(filter: &BpfProgram, call: u32, processor: u32) -> u32 {
        filter.run(&[call.to_be_bytes(), processor.to_be_bytes()].concat())
    }

    #[test]
    fn only_the_calls_that_are_named_stop() {
        let filter = filter(&[0, 1, 45]).unwrap();
        let own = PROCESSOR.unwrap();
        for call in 0..400 {
            let stops = judged(&filter, call, own) == libc::SECCOMP_RET_TRACE;
            assert_eq!(stops, [0, 1, 45].contains(&call), "{call}");
            assert_eq!(
                judged(&filter, call, 0x4000_0003),
                libc::SECCOMP_RET_ALLOW,
                "another processor's"
            );
        }
    }
}
