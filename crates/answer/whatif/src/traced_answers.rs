//! The answers for a run that was just traced or imported: findings, requests, transfers.

use crate::advice;
use crate::simulated_runs::SimulationBudget;
use serde_json::json;
use stackline_analyze::findings::{
    Finding, NamedRequests, ObservedTransfer, find_named_requests, find_transfers,
};
use stackline_analyze::loaded_run::{LoadedRun, MOST_EVENTS};
use stackline_core::error::Result;
use stackline_core::plan::Plan;
use std::path::Path;

/// The results for a run that was just traced.
#[derive(Clone, Debug)]
pub struct TracedAnswers {
    /// What limits it, the most important first.
    pub findings: Vec<Finding>,
    /// The run's requests, grouped by name.
    pub requests: Vec<NamedRequests>,
    /// Transfers in which no request was recognised.
    pub transfers: Vec<ObservedTransfer>,
    /// The note that not all of its events were read, if so.
    pub note: Option<String>,
}

impl TracedAnswers {
    /// A summary of the run at this path: its requests and transfers, the first finding, and where to find the rest.
    #[must_use]
    pub fn lines(&self, path: &Path) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.requests.is_empty() {
            lines.push(stackline_report::named_requests(&self.requests));
        }
        if !self.transfers.is_empty() {
            lines.push(stackline_report::transfers(&self.transfers));
        }
        let run = path
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let (first, others) = self.findings.split_at(self.findings.len().min(1));
        lines.push(stackline_report::findings(&Plan::default(), first));
        if !others.is_empty() {
            let kinds: Vec<&str> = others.iter().map(|finding| finding.kind).collect();
            lines.push(format!(
                "and {} more ({}); see `stackline diagnose {run}`",
                others.len(),
                kinds.join(", ")
            ));
        }
        lines.push(format!(
            "kept in {}; see `stackline lifelines {run}`, `diagnose {run}` or `open {run}`",
            path.display()
        ));
        lines
            .iter()
            .map(|line| line.trim_end().to_owned())
            .collect()
    }
}

/// Diagnoses a run that was just traced and stores the findings in its directory.
///
/// # Errors
/// If the run cannot be read, or its findings cannot be written.
pub fn diagnose_traced(path: &Path) -> Result<TracedAnswers> {
    let loaded = LoadedRun::whatever(path, MOST_EVENTS)?;
    let findings = loaded.placed(advice::findings(&loaded, SimulationBudget::moment()));
    let requests = find_named_requests(&loaded.input());
    let mut json = stackline_report::findings_json(
        &loaded.run.path.display().to_string(),
        loaded.run.complete,
        &findings,
    );
    json["requests"] = json!(requests);
    let transfers = find_transfers(&loaded.input());
    json["transfers"] = json!(transfers);
    loaded.run.keep_findings(&json)?;
    Ok(TracedAnswers {
        findings,
        requests,
        transfers,
        note: loaded.note("diagnose"),
    })
}
