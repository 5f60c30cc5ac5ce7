//! Reads small text files below a root directory: `/` on a live host, a copied tree in tests. Paths are relative to that root.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Most bytes read of a file; the rest of a longer one is ignored, so that memory stays bounded.
pub const LONGEST: usize = 1 << 20;

/// The directory that holds `proc`, `sys` and `etc`.
#[derive(Debug)]
pub struct Root {
    prefix: PathBuf,
}

impl Root {
    /// The tree of this host.
    #[must_use]
    pub fn system() -> Self {
        Self {
            prefix: PathBuf::from("/"),
        }
    }

    /// A tree somewhere else.
    #[must_use]
    pub fn at(prefix: &Path) -> Self {
        Self {
            prefix: prefix.to_owned(),
        }
    }

    /// The text of a file, or why it cannot be read.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn text(&self, path: &str) -> Result<String, String> {
        self.head(path, LONGEST as u64)
    }

    /// The first bytes of a file.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn head(&self, path: &str, bytes: u64) -> Result<String, String> {
        let mut head = Vec::with_capacity(4096);
        File::open(self.prefix.join(path))
            .and_then(|file| file.take(bytes).read_to_end(&mut head))
            .map_err(|error| below(path, &error))?;
        Ok(String::from_utf8(head)
            .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
    }

    /// The text of a file of one line, without white space around it.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn line(&self, path: &str) -> Result<String, String> {
        let text = self.text(path)?;
        match text.trim() {
            "" => Err(format!("/{path} is empty")),
            line => Ok(line.to_owned()),
        }
    }

    /// The names in a directory, sorted.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn names(&self, path: &str) -> Result<Vec<String>, String> {
        let entries = fs::read_dir(self.prefix.join(path)).map_err(|error| below(path, &error))?;
        let mut names: Vec<String> = entries
            .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
            .collect();
        names.sort();
        Ok(names)
    }

    /// The names of the directories in a directory, sorted; symbolic links are left out.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn directories(&self, path: &str) -> Result<Vec<String>, String> {
        let entries = fs::read_dir(self.prefix.join(path)).map_err(|error| below(path, &error))?;
        let mut names: Vec<String> = entries
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        Ok(names)
    }

    /// The whole target of a link.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn link(&self, path: &str) -> Result<PathBuf, String> {
        fs::read_link(self.prefix.join(path)).map_err(|error| below(path, &error))
    }

    /// The full path of a file of this tree.
    #[must_use]
    pub fn path(&self, path: &str) -> PathBuf {
        self.prefix.join(path)
    }

    /// The last part of a link's target.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn link_name(&self, path: &str) -> Result<String, String> {
        let target = fs::read_link(self.prefix.join(path)).map_err(|error| below(path, &error))?;
        target
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .ok_or_else(|| format!("the target of /{path} has no name"))
    }

    /// Whether a file exists.
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        self.prefix.join(path).exists()
    }
}

/// Why a file below the root cannot be read.
fn below(path: &str, error: &io::Error) -> String {
    describe_file_error(&format!("/{path}"), error)
}

/// Why a file cannot be read, without the error number that Rust appends.
#[must_use]
pub fn describe_file_error(path: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("{path} does not exist"),
        io::ErrorKind::PermissionDenied => format!("{path} is not readable"),
        io::ErrorKind::Unsupported => format!("{path} is disabled in this kernel"),
        _ => format!("{path}: {error}"),
    }
}
