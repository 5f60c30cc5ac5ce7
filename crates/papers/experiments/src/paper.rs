//! What the command needs to know of a paper, and what a paper gets from the command.

use stackline_core::error::{Error, Result};
use stackline_report::chart::Chart;
use stackline_report::paper::PaperReport as Tables;
use stackline_report::sheet::Sheet;

/// A paper whose experiments can be made again.
#[derive(Clone, Copy, Debug)]
pub struct PaperExperiment {
    /// What the command calls it.
    pub name: &'static str,
    /// Author, year and title, and which of its tables and figures there are.
    pub title: &'static str,
    /// Its host profiles, as networks of the language.
    pub profile: &'static str,
    /// Makes its tables and figures again.
    pub reproduce: fn(&ReproductionSettings<'_>) -> Result<Reproduction>,
    /// Runs its programs on this machine, so often, and gives their times as JSON; nothing where it has none. It may leave
    /// the machine's network, so its process has one thread and does nothing else.
    pub measure: Option<fn(u32) -> Result<serde_json::Value>>,
    /// The tables that have something of [`PaperExperiment::measure`].
    pub measured: &'static [&'static str],
    /// What of it is run over an emulated network and simulated alike; nothing where it has no such comparison.
    pub compare: Option<PaperComparison>,
}

/// Sessions that the command carries out in two worlds.
#[derive(Clone, Copy, Debug)]
pub struct PaperComparison {
    /// What is run.
    pub sessions: fn() -> Vec<PaperSession>,
    /// The table of what came of it: of each session what each run printed as JSON, simulated and emulated.
    pub sheet: fn(&[(PaperSession, Compared)]) -> Sheet,
}

/// A command line that both worlds understand.
#[derive(Clone, Debug)]
pub struct PaperSession {
    /// In the table.
    pub name: &'static str,
    /// The specification whose network it is run across.
    pub specification: String,
    /// The words of the command, without the specification, the world and the seed.
    pub words: Vec<String>,
}

/// What the runs of a session printed.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// In the simulated world, each with a seed of its own.
    pub simulated: Vec<serde_json::Value>,
    /// In the emulated world, or why a run came to nothing.
    pub emulated: Vec<std::result::Result<serde_json::Value, String>>,
}

/// How a paper is made again.
pub struct ReproductionSettings<'a> {
    /// Root of the randomness of what is simulated.
    pub seed: u64,
    /// Least transfers of each simulation that hangs on chance.
    pub transfers: u64,
    /// Most seeds of an experiment that is made with several; nothing: as many as it has.
    pub most_seeds: Option<u64>,
    /// The largest standard error of a standard deviation, as a share of it.
    pub precision: f64,
    /// What [`PaperExperiment::measure`] printed in a process of its own, or why it did not; nothing where it was not started.
    pub measured: Option<std::result::Result<Vec<u8>, String>>,
    /// Only the tables and figures whose names begin so, whatever their letters' case.
    pub only: Option<&'a str>,
    /// Gets how many parts of the work are done, and how many there are.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
}

/// Some of a paper's tables: their names, and what makes them.
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

/// A paper made again.
#[derive(Clone, Debug)]
pub struct Reproduction {
    /// Its tables and figures as rows.
    pub tables: Tables,
    /// Its figures as charts, by file name.
    pub charts: Vec<(&'static str, Chart)>,
}
