//! Small text files below a root directory: `/` on a live host, a copied tree in tests. It never writes.

use crate::kernel_file::{self, LONGEST};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::PathBuf;

/// The directory that holds `proc`, `sys` and `etc`.
pub(crate) struct Root {
    prefix: PathBuf,
}

impl Root {
    /// The tree of this host.
    pub(crate) fn system() -> Self {
        Self {
            prefix: PathBuf::from("/"),
        }
    }

    /// A tree somewhere else.
    #[cfg(test)]
    pub(crate) fn at(prefix: &std::path::Path) -> Self {
        Self {
            prefix: prefix.to_owned(),
        }
    }

    /// The text of a file, or why it cannot be read.
    pub(crate) fn text(&self, path: &str) -> Result<String, String> {
        self.head(path, LONGEST as u64)
    }

    /// The first bytes of a file.
    pub(crate) fn head(&self, path: &str, bytes: u64) -> Result<String, String> {
        let mut head = Vec::with_capacity(4096);
        File::open(self.prefix.join(path))
            .and_then(|file| file.take(bytes).read_to_end(&mut head))
            .map_err(|error| reason(path, &error))?;
        Ok(String::from_utf8(head)
            .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
    }

    /// The text of a file of one line, without blanks around it.
    pub(crate) fn line(&self, path: &str) -> Result<String, String> {
        let text = self.text(path)?;
        match text.trim() {
            "" => Err(format!("/{path} is empty")),
            line => Ok(line.to_owned()),
        }
    }

    /// The names in a directory, sorted.
    pub(crate) fn names(&self, path: &str) -> Result<Vec<String>, String> {
        let entries = fs::read_dir(self.prefix.join(path)).map_err(|error| reason(path, &error))?;
        let mut names: Vec<String> = entries
            .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
            .collect();
        names.sort();
        Ok(names)
    }

    /// The last part of a link's target.
    pub(crate) fn link_name(&self, path: &str) -> Result<String, String> {
        let target = fs::read_link(self.prefix.join(path)).map_err(|error| reason(path, &error))?;
        target
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .ok_or_else(|| format!("/{path} has no target"))
    }

    /// Whether a file exists.
    pub(crate) fn exists(&self, path: &str) -> bool {
        self.prefix.join(path).exists()
    }
}

/// Why a file below the root cannot be read.
fn reason(path: &str, error: &io::Error) -> String {
    kernel_file::describe_file_error(&format!("/{path}"), error)
}
