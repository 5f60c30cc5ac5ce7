//! `inputs.json`: what a specification was given beside its text, so that the run can be made again elsewhere.

use crate::replace::replace_inside_with;
use crate::{Error, files};
use serde::{Deserialize, Serialize};
use stackline_core::plan::World;
use stackline_core::run_schedule::RunOrder;
use std::collections::BTreeMap;
use std::path::Path;

/// The flags that replaced parts of a specification or asked for records, and the files that it names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunInputs {
    /// Stacks in place of the specification's (`--over`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// The world in place of the specification's (`--in`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub world: Option<World>,
    /// How hosts are reached (`--host`), each `NAME=WHERE`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// The seed in place of the specification's (`--seed`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The cores of both ends (`--cpu`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpu: Vec<usize>,
    /// First and last seed, where every run was made with each (`--seeds`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds: Option<(u64, u64)>,
    /// The order in which the runs are made; absent where it is that of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<RunOrder>,
    /// Whether each run is made twice (`--check-determinism`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub check_determinism: bool,
    /// Whether events were kept (`--trace`).
    pub trace: bool,
    /// The length of the intervals whose sums were kept, ns (`--interval`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_ns: Option<u64>,
    /// Places whose packets were kept (`--capture`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capture: Vec<String>,
    /// The texts of the files that the specification names, such as distributions and traces, by that name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

impl RunInputs {
    /// Reads those of a run directory; `None` where the run has none, as one of an earlier version.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn read(run: &Path) -> Result<Option<Self>, Error> {
        let path = run.join(files::INPUTS);
        if !files::is_there(&path) {
            return Ok(None);
        }
        let text = files::read(&path)?;
        serde_json::from_str(&text).map_err(|cause| Error::reading(&path, &cause))
    }

    pub(crate) fn write(&self, run: &Path) -> Result<(), Error> {
        let path = run.join(files::INPUTS);
        let text =
            serde_json::to_string_pretty(self).map_err(|cause| Error::writing(&path, &cause))?;
        replace_inside_with(&path, format!("{text}\n").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_read_as_they_were_written_and_may_be_missing() {
        let run = tempfile::tempdir().unwrap();
        assert_eq!(RunInputs::read(run.path()).unwrap(), None);
        let inputs = RunInputs {
            world: Some(World::Simulated),
            seeds: Some((1, 9)),
            trace: true,
            files: [("lte.trace".to_owned(), "0\n10\n".to_owned())].into(),
            ..RunInputs::default()
        };
        inputs.write(run.path()).unwrap();
        assert_eq!(RunInputs::read(run.path()).unwrap(), Some(inputs));
        std::fs::write(run.path().join(files::INPUTS), "{\"seed\": -1}").unwrap();
        assert!(RunInputs::read(run.path()).is_err());
    }
}
