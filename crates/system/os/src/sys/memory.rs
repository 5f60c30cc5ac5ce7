//! Sets up the allocator of glibc.

/// Blocks of this many bytes and more get memory mappings of their own, whose pages cost nothing until they are touched and are returned
/// to the system when the block is freed. By default glibc raises this bound when the first such block is freed, and keeps later ones.
#[cfg(target_env = "gnu")]
const OWN_MAP: libc::c_int = 64 << 10;

/// Fixes that bound for this process, so that memory which one step has freed is not kept in addition to what the next step allocates.
pub fn keep_large_blocks_apart() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets a parameter of the allocator, which locks itself. A refusal only costs memory.
    let _ = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_MAP) };
}
