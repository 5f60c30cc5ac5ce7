//! Runs the command itself.

use std::process::Command;

/// Where a program keeps its runs.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("there is room for temporary files"))
    }

    pub(crate) fn stackline(&self, words: &[&str]) -> Result<Vec<u8>, String> {
        let output = Command::new(env!("CARGO_BIN_EXE_stackline"))
            .args(words)
            .env("STACKLINE_RUNS", self.0.path())
            .output()
            .map_err(|error| error.to_string())?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }
}
