//! `stackline query`: SQL over runs. The engine is a separate program, `stackline-query`, because it takes much longer
//! to build than everything else; here it is only found and started.

use crate::exit::{Error, Exit, Result};
use crate::{flags, output};
use stackline_runs::directory_of;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The engine's program name.
const PROGRAM: &str = "stackline-query";

/// Replaces this process by the engine.
pub(crate) fn query(flags: &flags::Query) -> Result {
    if flags
        .words
        .iter()
        .all(|word| word == "--help" || word == "-h")
    {
        let command = flags::command_line().find_subcommand("query").cloned();
        let mut command = command
            .unwrap_or_default()
            .disable_help_flag(true)
            .bin_name("stackline query");
        output::print(&command.render_long_help().to_string())?;
        return Ok(Exit::Done);
    }
    // The engine takes directories; `last` and names of runs are resolved here.
    let words = flags.words.iter().map(|word| {
        directory_of(Path::new(word))
            .map_or_else(|| word.clone(), |directory| directory.into_os_string())
    });
    let beside = std::env::current_exe()
        .ok()
        .map(|this| this.with_file_name(PROGRAM))
        .filter(|path| path.is_file());
    // `exec` returns only if the program could not be started.
    let cause = Command::new(beside.unwrap_or_else(|| PathBuf::from(PROGRAM)))
        .args(words)
        .exec();
    if cause.kind() == ErrorKind::NotFound {
        let what = format!("cannot find `{PROGRAM}` next to this program or in PATH");
        return Err(Error::environment(what).hint(
            "build it once with `cargo install --path crates/query`; DuckDB, polars and pandas can read the run's files too",
        ));
    }
    Err(Error::environment(format!(
        "cannot start `{PROGRAM}`: {cause}"
    )))
}
