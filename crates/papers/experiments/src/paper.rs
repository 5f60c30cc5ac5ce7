//! The interface between the command `reproduce` and a paper.

use stackline_core::error::{Error, Result};
use stackline_report::chart::Chart;
use stackline_report::paper::PaperReport as Tables;
use stackline_report::sheet::Sheet;

/// A paper whose experiments can be repeated.
#[derive(Clone, Copy, Debug)]
pub struct PaperExperiment {
    /// The paper's name on the command line.
    pub name: &'static str,
    /// Author, year and title, and the tables and figures that are reproduced.
    pub title: &'static str,
    /// The paper's host profiles, as networks of the language.
    pub profile: &'static str,
    /// Reproduces the tables and figures.
    pub reproduce: fn(&ReproductionSettings<'_>) -> Result<Reproduction>,
    /// Runs the paper's programs on this machine, the given number of times, and returns their times as JSON; absent
    /// where it has no programs. It may leave the machine's network namespace, so it is called in a process that has
    /// one thread and does nothing else.
    pub measure: Option<fn(u32) -> Result<serde_json::Value>>,
    /// Names of the tables that contain values of [`PaperExperiment::measure`].
    pub measured: &'static [&'static str],
    /// Sessions that are run both emulated and simulated; absent where there is no such comparison.
    pub compare: Option<PaperComparison>,
}

/// Sessions that the command carries out in both worlds.
#[derive(Clone, Copy, Debug)]
pub struct PaperComparison {
    /// The sessions.
    pub sessions: fn() -> Vec<PaperSession>,
    /// Makes the table of the results: for each session the JSON output of its runs, simulated and emulated.
    pub sheet: fn(&[(PaperSession, Compared)]) -> Sheet,
}

/// A session: a command line that is valid in both worlds.
#[derive(Clone, Debug)]
pub struct PaperSession {
    /// The session's name in the table.
    pub name: &'static str,
    /// The specification with the network of the session.
    pub specification: String,
    /// The arguments of the command, without specification, world and seed.
    pub words: Vec<String>,
}

/// The outputs of a session's runs.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// Outputs in the simulated world, each with a seed of its own.
    pub simulated: Vec<serde_json::Value>,
    /// Outputs in the emulated world, or the reason why a run failed.
    pub emulated: Vec<std::result::Result<serde_json::Value, String>>,
}

/// The settings of a reproduction.
pub struct ReproductionSettings<'a> {
    /// Root of the random seeds of simulations.
    pub seed: u64,
    /// Least number of transfers in each simulation that depends on chance.
    pub transfers: u64,
    /// Most seeds of an experiment that uses several; when absent, all that it has.
    pub most_seeds: Option<u64>,
    /// Largest standard error of a standard deviation, as a share of it.
    pub precision: f64,
    /// The output of [`PaperExperiment::measure`], which ran in a process of its own, or why it failed; absent where
    /// it was not started.
    pub measured: Option<std::result::Result<Vec<u8>, String>>,
    /// Only the tables and figures whose names begin with this, in upper or lower case.
    pub only: Option<&'a str>,
    /// Called with the number of parts of the work that are done, and of all parts.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
}

/// Some of a paper's tables: their names, and the function that makes them.
pub(crate) type PaperTables<'a> = (&'a [&'a str], &'a dyn Fn() -> Result<Vec<Sheet>>);

impl PaperExperiment {
    /// Whether something is measured for the tables whose names begin so.
    #[must_use]
    pub fn measures(&self, only: Option<&str>) -> bool {
        self.measured.iter().any(|name| begins(name, only))
    }
}

fn begins(name: &str, only: Option<&str>) -> bool {
    only.is_none_or(|only| name.to_lowercase().starts_with(&only.to_lowercase()))
}

impl ReproductionSettings<'_> {
    /// The sheets that are wanted, of parts that each make some, by their names.
    ///
    /// # Errors
    /// When neither they nor `others`, which are made elsewhere, have a name that is wanted; what a part fails with.
    pub(crate) fn sheets(&self, others: &[&str], parts: &[PaperTables<'_>]) -> Result<Vec<Sheet>> {
        let names: Vec<&str> = others
            .iter()
            .chain(parts.iter().flat_map(|(names, _)| *names))
            .copied()
            .collect();
        if let (Some(only), false) = (self.only, names.iter().any(|name| self.wants(name))) {
            return Err(Error::input(format!(
                "no table or figure has a name that starts with {only}"
            ))
            .hint(format!("choose one of: {}", names.join("; "))));
        }
        let is_wanted = |(names, _): &&PaperTables<'_>| names.iter().any(|name| self.wants(name));
        let wanted: Vec<_> = parts.iter().filter(is_wanted).collect();
        let mut sheets = Vec::new();
        for (done, (_, make)) in wanted.iter().enumerate() {
            (self.progress)(done, wanted.len());
            sheets.extend(make()?.into_iter().filter(|sheet| self.wants(&sheet.name)));
        }
        Ok(sheets)
    }

    /// Whether the table of that name is wanted.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        begins(name, self.only)
    }
}

/// A reproduced paper.
#[derive(Clone, Debug)]
pub struct Reproduction {
    /// The tables and figures as rows.
    pub tables: Tables,
    /// The figures as charts, by file name.
    pub charts: Vec<(&'static str, Chart)>,
}
