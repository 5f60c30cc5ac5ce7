//! The capabilities of the thread that calls (capabilities(7)): one of them may be set aside.

use std::io;

/// `_LINUX_CAPABILITY_VERSION_3`: sets of 64 bits.
const VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    thread: i32,
}

/// 32 bits of each set.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapabilitySets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// This thread no longer uses `CAP_SYS_RESOURCE`; other threads of the process do.
pub(crate) fn set_resource_aside() -> io::Result<()> {
    /// Its number in linux/capability.h.
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
