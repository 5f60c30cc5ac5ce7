//! Checks whether a program that is to be served can be started, before anybody asks for it. It starts none.

use rustix::fs::{Access, access};
use stackline_core::error::{Error, Result};
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where programs without a path are searched if `PATH` is not set.
const USUAL: &str = "/bin:/usr/bin";

/// Checks that a program can be started.
///
/// # Errors
/// If no program is named, there is none of that name, or it is not executable.
pub fn check(program: &[String]) -> Result<()> {
    let name = program
        .first()
        .ok_or_else(|| Error::input("no program specified"))?;
    let places = places(name);
    if places.iter().any(|place| is_executable(place)) {
        return Ok(());
    }
    match places.iter().find(|place| place.exists()) {
        Some(place) if place.is_dir() => Err(Error::input(format!(
            "cannot start {name}: it is a directory"
        ))
        .hint("specify a program in it")),
        Some(place) => Err(
            Error::input(format!("cannot start {name}: it is not executable"))
                .hint(format!("make it executable with `chmod +x {}`", place.display())),
        ),
        None if name.contains('/') => Err(Error::input(format!(
            "cannot start {name}: no such file"
        ))
        .hint("name an existing file, or a program in PATH")),
        None => Err(Error::input(format!(
            "cannot start {name}: no directory in PATH contains it"
        ))
        .hint("check that it is installed; for a program elsewhere, include its directory, as in ./PROGRAM")),
    }
}

/// The paths at which a program of that name may be.
fn places(name: &str) -> Vec<PathBuf> {
    if name.contains('/') {
        return vec![PathBuf::from(name)];
    }
    let path = env::var_os("PATH").unwrap_or_else(|| OsString::from(USUAL));
    env::split_paths(&path)
        .map(|directory| directory.join(name))
        .collect()
}

fn is_executable(place: &Path) -> bool {
    place.is_file() && access(place, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn startable_programs_are_recognised() {
        let check = |name: &str| check(&[name.to_owned()]).map_err(|error| error.message);
        assert_eq!((check("sh"), check("/bin/sh")), (Ok(()), Ok(())));
        assert!(
            check("no-such-program")
                .unwrap_err()
                .contains("no directory in PATH contains it")
        );
        assert!(
            check("/no/such/program")
                .unwrap_err()
                .contains("no such file")
        );
        assert!(check("/etc/passwd").unwrap_err().contains("not executable"));
        assert!(check("/etc").unwrap_err().contains("a directory"));
    }
}
