//! The one directory under which an agent may open files. The kernel keeps paths inside it (`openat2` with `RESOLVE_BENEATH`).

use crate::error::{Error, Result};
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::Mode;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The directory that an agent may open files under; without one it may open none.
#[derive(Clone, Debug, Default)]
pub struct AgentFileDirectory {
    directory: Option<PathBuf>,
}

impl AgentFileDirectory {
    /// Permits files under `directory` only.
    #[must_use]
    pub fn under(directory: Option<&Path>) -> Self {
        Self {
            directory: directory.map(Path::to_path_buf),
        }
    }

    /// Opens a file to read data units from. Returns it with its length in bytes.
    ///
    /// # Errors
    /// An [`Error`] when it is not permitted, missing, unreadable, empty or not a plain file.
    pub fn source(&self, name: &str) -> Result<(File, u64)> {
        let file = self.open(name, OFlag::O_RDONLY)?;
        let length = plain(&file, name)?;
        if length == 0 {
            return Err(Error::environment(format!(
                "FILE {name} is empty: there is nothing to send"
            )));
        }
        Ok((file, length))
    }

    /// Opens, creates or empties a file to write data units to.
    ///
    /// # Errors
    /// An [`Error`] when it is not permitted or cannot be written.
    pub fn destination(&self, name: &str) -> Result<File> {
        let file = self.open(name, OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_TRUNC)?;
        plain(&file, name)?;
        Ok(file)
    }

    fn open(&self, name: &str, flags: OFlag) -> Result<File> {
        let Some(directory) = &self.directory else {
            return Err(Error::environment(format!("FILE {name} is not permitted: this agent was given no directory"))
                .hint("specify the directory that it may access: `run --files DIR`, or `host NAME files \"DIR\" ...;`"));
        };
        let root = opened(directory)?;
        // An absolute path is permitted if it lies under the directory.
        let relative = Path::new(name)
            .strip_prefix(directory)
            .unwrap_or(Path::new(name));
        // Without O_NONBLOCK, opening a named pipe would block until another process opens its other end.
        let mut how = OpenHow::new()
            .flags(flags | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)
            .resolve(ResolveFlag::RESOLVE_BENEATH);
        if flags.contains(OFlag::O_CREAT) {
            how = how.mode(Mode::from_bits_truncate(0o644));
        }
        openat2(&root, relative, how).map(File::from).map_err(|e| {
            let failure = Error::environment(format!(
                "cannot open FILE {name} under {}: {e}",
                directory.display()
            ));
            match e {
                nix::errno::Errno::EXDEV => {
                    failure.hint("agents access only paths under the directory given with --files")
                }
                nix::errno::Errno::ENOENT => {
                    failure.hint("names are relative to the directory given with --files")
                }
                _ => failure,
            }
        })
    }
}

/// Opens the directory. `O_DIRECTORY` makes this fail at once for anything else, such as a named pipe, which could block.
fn opened(directory: &Path) -> Result<File> {
    File::options()
        .read(true)
        .custom_flags(OFlag::O_DIRECTORY.bits())
        .open(directory)
        .map_err(|e| {
            Error::environment(format!(
                "cannot open the directory {}: {e}",
                directory.display()
            ))
            .hint("--files takes an existing directory on the agent's host")
        })
}

/// The length of a regular file, bytes; an error for anything else.
fn plain(file: &File, name: &str) -> Result<u64> {
    let about = file
        .metadata()
        .map_err(|e| Error::environment(format!("cannot read FILE {name}: {e}")))?;
    if !about.is_file() {
        return Err(Error::environment(format!(
            "FILE {name} is not a regular file"
        )));
    }
    Ok(about.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_permitted_without_a_directory() {
        let failure = AgentFileDirectory::default().source("x").unwrap_err();
        assert!(failure.hint.unwrap().contains("--files"));
    }

    #[test]
    fn paths_cannot_leave_the_directory() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("in"), b"data").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.path().join("link")).unwrap();
        let files = AgentFileDirectory::under(Some(root.path()));
        assert_eq!(files.source("in").unwrap().1, 4);
        assert_eq!(
            files
                .source(root.path().join("in").to_str().unwrap())
                .unwrap()
                .1,
            4
        );
        for name in ["../x", "/etc/passwd", "link", "missing", "."] {
            assert!(files.source(name).is_err(), "{name}");
        }
        assert!(files.destination("../x").is_err());
        assert!(files.destination("out").is_ok());
    }
}
