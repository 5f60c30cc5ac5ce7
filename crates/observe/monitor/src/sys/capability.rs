//! Drops a capability of the calling thread (capabilities(7)).

use std::io;

/// `_LINUX_CAPABILITY_VERSION_3`: sets of 64 bits.
const VERSION: u32 = 0x2008_0522;

/// `struct __user_cap_header_struct`; thread 0 is the calling one.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    thread: i32,
}

/// 32 bits of each capability set (`struct __user_cap_data_struct`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapabilitySets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Drops `CAP_SYS_RESOURCE` from the effective set of this thread; other threads of the process keep it.
pub(crate) fn set_resource_aside() -> io::Result<()> {
    /// The number of `CAP_SYS_RESOURCE` in linux/capability.h.
    const RESOURCE: u32 = 24;
    let mut header = CapabilityHeader {
        version: VERSION,
        thread: 0,
    };
    let mut sets = [CapabilitySets::default(); 2];
    // SAFETY: both point to structures of the layout that this version has, which outlive the call.
    let got = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) };
    if got < 0 {
        return Err(io::Error::last_os_error());
    }
    sets[0].effective &= !(1 << RESOURCE);
    // SAFETY: as above; the kernel only reads them.
    let set = unsafe { libc::syscall(libc::SYS_capset, &raw mut header, sets.as_ptr()) };
    if set < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
