//! The key that writes need: a file with 64 hexadecimal digits that only its owner may read.

use stackline_blocks::wire::handshake::BlockWriteKey;
use stackline_core::error::{Error, Result};
use stackline_guard::{files, secret};
use std::io;
use std::path::{Path, PathBuf};

/// Bytes of the longest file of a key: its digits, and what an editor may put around them.
const LONGEST: u64 = 1024;

/// Where the key is unless another file is named: `$STACKLINE_BLOCKS_KEY`, else in the user's configuration directory.
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

/// What a connection draws for itself.
///
/// # Errors
/// When the kernel has no random bytes.
pub fn generate_nonce() -> io::Result<[u8; 16]> {
    random()
}

/// A number that cannot be guessed.
///
/// # Errors
/// As for [`generate_nonce`].
pub fn generate_identity() -> io::Result<u128> {
    Ok(u128::from_be_bytes(random()?))
}

/// A key that is kept nowhere.
///
/// # Errors
/// As for [`generate_nonce`].
pub fn generate_key() -> io::Result<BlockWriteKey> {
    Ok(BlockWriteKey(random()?))
}

/// Makes a key in a new file.
///
/// # Errors
/// When there is a file already, or none can be written.
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

/// Writes a key into a new file, which is there whole or not at all.
///
/// # Errors
/// What the system says.
pub fn write_key_file(path: &Path, key: &BlockWriteKey) -> io::Result<()> {
    let digits: String = key.0.iter().map(|byte| format!("{byte:02x}")).collect();
    secret::write_new(path, format!("{digits}\n").as_bytes())
}

/// Reads a key.
///
/// # Errors
/// When there is none, or the file holds something else.
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

/// The key of that file, or of the usual place where there is one. `say` hears it where other users may read it.
///
/// # Errors
/// As for [`read_key_file`]; none where no file was named and none is there.
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
