//! How the allocator gives and takes memory.

/// Blocks from this size on are maps of their own: their pages cost nothing until they are touched and go back when they
/// are freed. Left alone, glibc raises the bound with the first block freed and then clears and keeps every later one.
#[cfg(target_env = "gnu")]
const OWN_MAP: libc::c_int = 64 << 10;

/// Holds for this process from now on: what one step of it freed is not kept beside what the next step takes.
pub fn keep_large_blocks_apart() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets a parameter of the allocator, which locks itself. A refusal only costs memory.
    let _ = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_MAP) };
}
