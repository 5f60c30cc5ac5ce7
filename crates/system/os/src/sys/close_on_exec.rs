//! Keeps this process's descriptors from programs that it starts.

use nix::libc;

/// Marks all open descriptors above standard error as close-on-exec, so that no program inherits them: one may hold a secret, or give
/// access to what only this user may use.
pub fn keep_from_programs() {
    // SAFETY: it changes a flag of descriptors and touches no memory. Kernels before 5.11 refuse it.
    if unsafe {
        // By its number: not every C library has it.
        libc::syscall(
            libc::SYS_close_range,
            3,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    } == 0
    {
        return;
    }
    let open = std::fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    let open = open.filter_map(|entry| entry.file_name().to_str()?.parse::<libc::c_int>().ok());
    for descriptor in open
        .filter(|descriptor| *descriptor > 2)
        .collect::<Vec<_>>()
    {
        // SAFETY: as above; one that is not open any more is refused.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

    #[test]
    fn a_descriptor_that_was_inherited_is_not_passed_on() {
        let secret = std::fs::File::open("/proc/self/stat").unwrap();
        fcntl_setfd(&secret, FdFlags::empty()).unwrap();
        keep_from_programs();
        assert_eq!(fcntl_getfd(&secret).unwrap(), FdFlags::CLOEXEC);
        assert_eq!(fcntl_getfd(std::io::stderr()).unwrap(), FdFlags::empty());
    }
}
