//! Pictures as files of a directory.

use crate::exit::{Error, Result};
use stackline_report::Chart;
use std::path::Path;

/// The directory that pictures go into; made at once where it is not there, so that nothing is computed in vain.
pub(super) fn directory(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|error| failed(path, &error))
}

/// Writes each chart into the directory; the paths of the files.
pub(super) fn write(directory: &Path, charts: &[(&str, Chart)]) -> Result<Vec<String>> {
    let each = charts.iter().map(|(name, chart)| {
        let path = directory.join(name);
        std::fs::write(&path, stackline_report::chart(chart)).map_err(|error| failed(&path, &error))?;
        Ok(path.display().to_string())
    });
    each.collect()
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    Error::environment(format!("{} cannot be written: {error}", path.display()))
        .hint("--pictures takes a directory that you may write to")
}
