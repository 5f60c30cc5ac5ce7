//! A shared secret: where it comes from and how it is compared. It is never a command-line argument, which every user of a machine can
//! read.
//!
//! It comes from a file that the user names (or a descriptor: `/dev/fd/3`, `<(command)`), else from an environment variable, which
//! programs of the same user can read and child processes inherit, else from a file at the usual place, which
//! [`SecretSource::find_or_make`] creates.

use crate::files;
use rustix::process::geteuid;
use stackline_core::error::{Error, Result};
use std::fmt;
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// The longest secret, in bytes.
pub const LONGEST: usize = 255;
/// The shortest secret, in bytes: 8 random letters and digits are 47 bits, and a guesser can try about 32 secrets a second (see
/// [`crate::attempts`]).
pub const SHORTEST: usize = 8;

/// A secret: compared in constant time, never printed, wiped when it is dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// The secret with these bytes.
    ///
    /// # Errors
    /// If it is too short, too long, not UTF-8 text, or contains a control character, which could not be typed or sent on a line.
    pub fn new(bytes: Vec<u8>) -> Result<Self> {
        let bytes = Zeroizing::new(bytes);
        let wrong = |what: &str| {
            Error::input(format!("the secret {what}"))
                .hint(format!("use {SHORTEST} to {LONGEST} printable characters on one line; `head -c 24 /dev/urandom | base64` generates a secret"))
        };
        match bytes.len() {
            0 => Err(wrong("is empty")),
            length if length < SHORTEST => {
                Err(wrong(&format!("is too short: its length is {length}")))
            }
            length if length > LONGEST => Err(wrong("is too long")),
            _ => match std::str::from_utf8(&bytes) {
                Err(_) => Err(wrong("is not UTF-8 text")),
                Ok(text) if text.chars().any(char::is_control) => {
                    Err(wrong("contains a control character"))
                }
                Ok(_) => Ok(Self(bytes)),
            },
        }
    }

    /// A new random secret: 32 hexadecimal digits.
    ///
    /// # Errors
    /// If the kernel gives no random bytes.
    pub fn random() -> io::Result<Self> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        Ok(Self(Zeroizing::new(
            format!("{:032x}", u128::from_be_bytes(random)).into_bytes(),
        )))
    }

    /// The secret in the first line of a file, which may be a pipe or a descriptor.
    ///
    /// # Errors
    /// If the file cannot be read or the line is not a valid secret.
    pub fn of_file(path: &Path) -> Result<Self> {
        let bytes = files::read_bounded(path, 2 * LONGEST as u64).map_err(|cause| {
            Error::input(format!(
                "cannot read the secret in {}: {cause}",
                path.display()
            ))
        })?;
        let line = bytes
            .split(|byte| *byte == b'\n')
            .next()
            .unwrap_or_default();
        Self::new(line.strip_suffix(b"\r").unwrap_or(line).to_vec()).map_err(|error| Error {
            message: format!("{}: {}", path.display(), error.message),
            ..error
        })
    }

    /// The bytes, for sending the secret or for a proof made with it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether `claimed` is the secret, compared in a time that does not depend on where they differ.
    #[must_use]
    pub fn is(&self, claimed: &[u8]) -> bool {
        is_same(&self.0, claimed)
    }
}

/// Whether two secrets, such as tokens of a run, are the same, compared in a time that does not depend on where they differ.
#[must_use]
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

/// Where the secret of a service comes from.
#[derive(Clone, Debug)]
pub struct SecretSource<'s> {
    /// The file that the user named.
    pub file: Option<&'s Path>,
    /// The name of the environment variable.
    pub variable: &'s str,
    /// The name of the file at the usual place: `$XDG_CONFIG_HOME/stackline/NAME`, else `~/.config/stackline/NAME`.
    pub usual: &'s str,
}

/// A secret, and a note on where it comes from.
#[derive(Clone, Debug)]
pub struct FoundSecret {
    /// The secret.
    pub secret: Secret,
    /// A sentence to show to the user, for example that others can read the secret, or that a new file was created.
    pub note: Option<String>,
}

impl SecretSource<'_> {
    /// The secret; `None` if there is neither a named file, nor the variable, nor a file at the usual place.
    ///
    /// # Errors
    /// If the file or the variable does not contain a valid secret.
    pub fn find(&self) -> Result<Option<FoundSecret>> {
        if let Some(file) = self.file {
            return Secret::of_file(file).map(|secret| {
                Some(FoundSecret {
                    secret,
                    note: readable_by_others(file),
                })
            });
        }
        if let Some(value) = std::env::var_os(self.variable).filter(|value| !value.is_empty()) {
            let secret = Secret::new(value.into_encoded_bytes()).map_err(|error| Error {
                message: format!("{}: {}", self.variable, error.message),
                ..error
            })?;
            let note = format!(
                "the secret comes from {}, which child processes inherit; a file (--secret-file) is safer",
                self.variable
            );
            return Ok(Some(FoundSecret {
                secret,
                note: Some(note),
            }));
        }
        match self.usual_place().filter(|path| path.exists()) {
            Some(path) => Secret::of_file(&path).map(|secret| {
                Some(FoundSecret {
                    secret,
                    note: readable_by_others(&path),
                })
            }),
            None => Ok(None),
        }
    }

    /// The secret; if there is none, a new one, written to a file at the usual place.
    ///
    /// # Errors
    /// As for [`Self::find`], or if the file cannot be written.
    pub fn find_or_make(&self) -> Result<FoundSecret> {
        if let Some(found) = self.find()? {
            return Ok(found);
        }
        let path = self.usual_place().ok_or_else(|| {
            Error::input("there is no secret, and no home directory in which to create one").hint(
                format!("name a file with --secret-file, or set {}", self.variable),
            )
        })?;
        let failed = |cause: io::Error| {
            Error::environment(format!(
                "cannot write the secret to {}: {cause}",
                path.display()
            ))
            .hint("name another file with --secret-file")
        };
        let secret = Secret::random().map_err(failed)?;
        match write(&path, &secret) {
            // Another program has created the file meanwhile: use its secret.
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => self
                .find()?
                .ok_or_else(|| failed(io::ErrorKind::NotFound.into())),
            Err(cause) => Err(failed(cause)),
            Ok(()) => {
                let note = format!(
                    "created a new secret in {}; this user's programs find it there, but other machines need a copy",
                    path.display()
                );
                Ok(FoundSecret {
                    secret,
                    note: Some(note),
                })
            }
        }
    }

    fn usual_place(&self) -> Option<PathBuf> {
        let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".config"));
        let configuration = std::env::var_os("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .or_else(home)?;
        Some(configuration.join("stackline").join(self.usual))
    }
}

fn write(path: &Path, secret: &Secret) -> io::Result<()> {
    write_new(path, &[secret.bytes(), b"\n"].concat())
}

/// Writes a new file that only this user may read, and creates missing directories above it. The file appears atomically, and survives a
/// crash of the machine once this returns.
///
/// # Errors
/// The kernel's; `AlreadyExists` if a file is at the path.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let directory = if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    let mut file = tempfile::Builder::new()
        .prefix(".secret-")
        .tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path)
        .map(drop)
        .map_err(|error| error.error)?;
    files::sync_name(path)
}

/// A warning if other users can read a secret's file of this user.
#[must_use]
pub fn readable_by_others(path: &Path) -> Option<String> {
    let file = File::options()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
        .open(path)
        .ok()?;
    let about = file.metadata().ok()?;
    let is_open = about.is_file() && about.mode() & 0o044 != 0 && about.uid() == geteuid().as_raw();
    is_open.then(|| {
        format!(
            "other users can read the secret in {0}; protect it with `chmod 600 {0}`",
            path.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_compared_whole_and_printed_never() {
        let secret = Secret::new(b"correct horse".to_vec()).unwrap();
        assert!(secret.is(b"correct horse"));
        for other in [
            &b"correct hors"[..],
            b"correct horse ",
            b"",
            b"Correct horse",
        ] {
            assert!(!secret.is(other));
        }
        assert_eq!(format!("{secret:?}"), "Secret");
    }

    #[test]
    fn a_secret_has_a_least_length_and_no_control_characters() {
        for wrong in [
            &b""[..],
            b"short",
            b"with\0zero bytes",
            b"\xff\xfe\xfd not text",
            &[b'x'; LONGEST + 1],
        ] {
            assert!(Secret::new(wrong.to_vec()).unwrap_err().hint.is_some());
        }
        assert_ne!(
            Secret::random().unwrap().bytes(),
            Secret::random().unwrap().bytes()
        );
    }

    #[test]
    fn a_file_s_first_line_is_the_secret() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("directory/secret");
        let secret = Secret::random().unwrap();
        write(&path, &secret).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(Secret::of_file(&path).unwrap().is(secret.bytes()));
        assert!(readable_by_others(&path).is_none());
        assert_eq!(
            write(&path, &secret).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        let open = place.path().join("open");
        std::fs::write(&open, "first line\r\nsecond\n").unwrap();
        assert!(Secret::of_file(&open).unwrap().is(b"first line"));
        assert!(readable_by_others(&open).is_some());
        assert!(Secret::of_file(Path::new("/dev/zero")).is_err());
    }
}
