//! The calls of ptrace(2) and seccomp(2) for which `nix` has no safe function.

use nix::unistd::Pid;
use stackline_os::bpf::{BpfJump, BpfProgram, BpfStep, BpfWidth};
use std::io;

/// Why and where a thread is stopped at a system call: `struct ptrace_syscall_info` of ptrace(2) as words of 8 bytes. Byte 0 says
/// where it is stopped; from byte 24 on are the call's number and arguments, or its result. It is written out here, as not every C
/// library defines it.
struct SyscallStop([u64; 11]);

impl SyscallStop {
    /// `PTRACE_GET_SYSCALL_INFO`.
    const GET: libc::c_uint = 0x420e;
    /// `PTRACE_SYSCALL_INFO_EXIT`: stopped at the exit of a call.
    const AT_EXIT: u8 = 2;
    /// `PTRACE_SYSCALL_INFO_SECCOMP`: stopped by the filter at the entry of a call.
    const AT_FILTER: u8 = 3;
    /// The index of the first word that depends on where the thread is stopped.
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

/// The system call at whose entry the filter has stopped a thread: its number and arguments.
pub(crate) fn read_call_entry(thread: Pid) -> Option<(i64, [u64; 6])> {
    let stop = SyscallStop::read(thread).filter(|stop| stop.is_at(SyscallStop::AT_FILTER))?;
    let (number, arguments) = stop.0[SyscallStop::PART..].split_first()?;
    Some((number.cast_signed(), *arguments.first_chunk()?))
}

/// The result of the system call at whose exit a thread is stopped.
pub(crate) fn read_call_result(thread: Pid) -> Option<i64> {
    let stop = SyscallStop::read(thread).filter(|stop| stop.is_at(SyscallStop::AT_EXIT))?;
    Some(stop.0[SyscallStop::PART].cast_signed())
}

/// Waits until a traced thread stops or ends. Returns the thread, and its status as the kernel gives it: `nix` cannot represent a
/// status with a real-time signal, and glibc uses two of these.
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

/// Lets a stopped thread go on until its next stop, and delivers a signal to it (0: none).
pub(crate) fn go_on(thread: Pid, signal: libc::c_int) {
    // SAFETY: the call takes no pointer of this process; a thread that is gone is an error and nothing else.
    unsafe { libc::ptrace(libc::PTRACE_CONT, thread.as_raw(), 0, signal) };
}

/// Leaves a thread in its group-stop (PTRACE_LISTEN); SIGCONT continues it.
pub(crate) fn listen(thread: Pid) {
    /// `PTRACE_LISTEN`.
    const LISTEN: libc::c_uint = 0x4208;
    // SAFETY: the call takes no pointer of this process; a thread that is gone is an error and nothing else.
    unsafe { libc::ptrace(LISTEN as _, thread.as_raw(), 0, 0) };
}

/// Installs a filter by which this thread, and all that it starts, stops at these system calls for its tracer; without a tracer, the
/// calls fail. Calls of programs for another processor architecture are not stopped.
pub(crate) fn stop_at(calls: &[u32]) -> io::Result<()> {
    let filter = filter(calls)?;
    let filter = filter.instructions();
    let length = u16::try_from(filter.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog {
        len: length,
        filter: filter.as_ptr().cast_mut(),
    };
    // Without it, only a privileged process may install a filter (seccomp(2)).
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

/// The kernel's number of this processor architecture (`AUDIT_ARCH_*` of `linux/audit.h`); `None` if it is not supported.
const PROCESSOR: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xC000_003E)
} else if cfg!(target_arch = "aarch64") {
    Some(0xC000_00B7)
} else {
    None
};

/// Builds the filter over `struct seccomp_data`, which has the call's number at offset 0, and the processor architecture at offset
/// 4. Its jump `Reject` ends in SECCOMP_RET_TRACE.
fn filter(calls: &[u32]) -> io::Result<BpfProgram> {
    let processor = PROCESSOR.ok_or(io::ErrorKind::Unsupported)?;
    let mut steps = vec![
        // First the architecture: the numbers of calls differ between them.
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
