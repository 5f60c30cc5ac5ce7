//! Functions that the standard library does not offer: the processor's counter, memory that the kernel provides when
//! it is first written, handlers around a fork, redirection of a descriptor. It is the only place in this crate with
//! unsafe code.
#![allow(unsafe_code)]

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::AtomicU64;

/// The processor's time-stamp counter. The processor may reorder loads and stores around it by a few cycles.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    // SAFETY: the instruction reads a register that every processor of this architecture has, and nothing else.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// On this architecture no counter is known to be cheaper than the clock; never called for stamps.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn ticks() -> u64 {
    0
}

/// Whether the processor says that its counter runs at a constant speed (CPUID 8000_0007, EDX bit 8).
#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe, reason = "later compilers call the instruction safe")]
pub(crate) fn ticks_are_steady() -> bool {
    use core::arch::x86_64::__cpuid;
    // SAFETY: every processor of this architecture has the instruction; the second leaf is asked only where there is one.
    unsafe { __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0 }
}

/// On this architecture no such counter is used.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn ticks_are_steady() -> bool {
    false
}

/// This many words of 0. The kernel provides memory for each page when it is first written.
pub(crate) fn zeroed(words: usize) -> Box<[AtomicU64]> {
    let words = Box::into_raw(vec![0_u64; words].into_boxed_slice());
    // SAFETY: the box was just given up; an AtomicU64 has the size of a u64 and, where both can be had, no more alignment
    // than the allocation was made with (checked below); every bit pattern is valid for both.
    unsafe { Box::from_raw(words as *mut [AtomicU64]) }
}

const _: () = assert!(
    align_of::<AtomicU64>() == align_of::<u64>() && size_of::<AtomicU64>() == size_of::<u64>()
);

/// Installs functions that are called in the thread that forks: before the fork, and after it in the parent and in the
/// child.
pub(crate) fn around_fork(
    before: extern "C" fn(),
    parent: extern "C" fn(),
    child: extern "C" fn(),
) {
    unsafe extern "C" {
        fn pthread_atfork(
            before: extern "C" fn(),
            parent: extern "C" fn(),
            child: extern "C" fn(),
        ) -> i32;
    }
    // SAFETY: the signature is that of POSIX; functions live as long as the process. Without memory it fails, and a child
    // then goes on writing into rings that nobody reads.
    let _ = unsafe { pthread_atfork(before, parent, child) };
}

/// Redirects a descriptor of this process to a file. Its owner may go on to use and close it.
pub(crate) fn lead_to(descriptor: RawFd, file: &File) {
    unsafe extern "C" {
        fn dup2(from: i32, to: i32) -> i32;
    }
    // SAFETY: the signature is that of POSIX; the one number is open, and no memory is concerned. When it fails the descriptor
    // stays what it is.
    let _ = unsafe { dup2(file.as_raw_fd(), descriptor) };
}
