//! The paper made again, table by table.

use super::copies::Here;
use super::lab::Lab;
use super::{charts, copies, formulas, lan, latency, remedies, sweeps, table2, wan};
use crate::paper::{Reproduction, Settings};
use stackline_core::error::Result;
use stackline_report::paper::Paper;
use stackline_report::sheet::Sheet;

/// All tables and pictures.
pub(super) fn reproduce(settings: &Settings<'_>) -> Result<Reproduction> {
    let lab = Lab { seed: settings.seed };
    let here = settings.measured.as_ref().map(|output| Here::read(output.as_deref()));
    let measured = here.as_ref().and_then(|here| here.as_ref().ok());
    let parts: [&dyn Fn() -> Result<Vec<Sheet>>; 8] = [
        &|| Ok(vec![formulas::sheet()]),
        &|| latency::sheets(&lab).map(Vec::from),
        &|| Ok(vec![table2::sheet(&lab, measured)?, lan::sheet(&lab)?]),
        &|| wan::sheets(&lab).map(Vec::from),
        &|| remedies::sheets(&lab).map(Vec::from),
        &|| Ok(vec![sweeps::by_mtu(&lab)?]),
        &|| Ok(vec![sweeps::by_streams(&lab)?]),
        &|| Ok(here.iter().map(copies::sheet).collect()),
    ];
    let mut sheets = Vec::new();
    for (done, part) in parts.iter().enumerate() {
        (settings.progress)(done, parts.len());
        sheets.extend(part()?);
    }
    let tables = Paper {
        name: "magic".into(),
        title: "Tierney et al. 1996: a parallel block server over the MAGIC network".into(),
        notes: vec![
            "A viewer sends a list of blocks every 200 ms; a newer list supersedes the older. Master, disk servers and client \
             are those of `stackline blocks`, in virtual time over simulated TCP. 48 KiB are 0.39 Mbit."
                .into(),
            format!("What is drawn hangs on the seed {}.", settings.seed),
        ],
        exhibits: Vec::new(),
        sheets,
    };
    Ok(Reproduction { charts: charts::charts(&tables), tables })
}
