//! The key that writing needs: a file of 64 hexadecimal digits that only its owner may read.

use stackline_blocks::wire::handshake::BlockWriteKey;
use stackline_core::error::{Error, Result};
use stackline_guard::{files, secret};
use std::io;
use std::path::{Path, PathBuf};

/// The largest size of a key file, bytes: the digits, and what an editor may add.
const LONGEST: u64 = 1024;

/// The default path of the key: `$STACKLINE_BLOCKS_KEY`, else `stackline/blocks.key` in the user's configuration directory.
#[must_use]
pub fn usual_place() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("STACKLINE_BLOCKS_KEY") {
        return Some(named.into());
    }
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".config"));
    let configuration = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(home)?;
    Some(configuration.join("stackline").join("blocks.key"))
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

/// A random nonce for a connection's greeting.
///
/// # Errors
/// If the kernel provides no random bytes.
pub fn generate_nonce() -> io::Result<[u8; 16]> {
    random()
}

/// A random number of 128 bits that cannot be guessed.
///
/// # Errors
/// As for [`generate_nonce`].
pub fn generate_identity() -> io::Result<u128> {
    Ok(u128::from_be_bytes(random()?))
}

/// A new random key, which is not stored.
///
/// # Errors
/// As for [`generate_nonce`].
pub fn generate_key() -> io::Result<BlockWriteKey> {
    Ok(BlockWriteKey(random()?))
}

/// Creates a key in a new file.
///
/// # Errors
/// If the file exists, or cannot be written.
pub fn create_key_file(path: &Path) -> Result<()> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let hint = match read_key_file(path) {
                Ok(_) => {
                    "it holds a key: copy it to the other hosts, or remove it to create another"
                }
                Err(_) => "it does not hold a key: remove it first, or name another file",
            };
            Error::input(format!("{} already exists", path.display())).hint(hint)
        }
        _ => Error::environment(format!("cannot write the key {}: {error}", path.display())),
    };
    let key = generate_key().map_err(failed)?;
    write_key_file(path, &key).map_err(failed)
}

/// Writes a key into a new file, completely or not at all.
///
/// # Errors
/// The system's error.
pub fn write_key_file(path: &Path, key: &BlockWriteKey) -> io::Result<()> {
    let digits: String = key.0.iter().map(|byte| format!("{byte:02x}")).collect();
    secret::write_new(path, format!("{digits}\n").as_bytes())
}

/// Reads a key from a file.
///
/// # Errors
/// If there is no file, or it holds something else.
pub fn read_key_file(path: &Path) -> Result<BlockWriteKey> {
    let text = files::read_text(path, LONGEST).map_err(|error| {
        Error::input(format!("cannot read the key {}: {error}", path.display()))
            .hint("create one with `stackline blocks key`")
    })?;
    let digits = text.trim();
    let mut key = [0; 32];
    let whole = digits.len() == 64 && digits.is_ascii();
    let parsed = key.iter_mut().enumerate().all(|(at, byte)| {
        let pair = digits.get(2 * at..2 * at + 2);
        pair.and_then(|pair| u8::from_str_radix(pair, 16).ok())
            .map(|value| *byte = value)
            .is_some()
    });
    if whole && parsed {
        Ok(BlockWriteKey(key))
    } else {
        Err(
            Error::input(format!("{} does not hold a key", path.display()))
                .hint("a key is 64 hexadecimal digits"),
        )
    }
}

/// Reads the key from that file, or from the default path if there is one. `say` is called with a warning if other users may read it.
///
/// # Errors
/// As for [`read_key_file`]; `None` without an error if no file was named and none is at the default path.
pub fn find_key(named: Option<&Path>, say: impl FnOnce(&str)) -> Result<Option<BlockWriteKey>> {
    let Some(path) = named
        .map(Path::to_owned)
        .or_else(|| usual_place().filter(|path| path.exists()))
    else {
        return Ok(None);
    };
    let key = read_key_file(&path)?;
    if let Some(note) = secret::readable_by_others(&path) {
        say(&note);
    }
    Ok(Some(key))
}
