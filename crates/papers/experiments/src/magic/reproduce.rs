//! Reproduces the paper table by table.

use super::memory_copies::MagicLocalFigures;
use super::session_runner::Lab;
use super::{
    charts, findings, formulas, lan, latency, memory_copies, remedies, sweeps, table2, wan,
};
use crate::paper::{PaperTables, Reproduction, ReproductionSettings};
use stackline_core::error::Result;
use stackline_report::paper::PaperReport;

/// All wanted tables, and the charts of those that have one.
pub(super) fn reproduce(settings: &ReproductionSettings<'_>) -> Result<Reproduction> {
    let lab = Lab {
        seed: settings.seed,
        most_seeds: settings.most_seeds,
    };
    let here = settings
        .measured
        .as_ref()
        .map(|output| MagicLocalFigures::read(output.as_deref()));
    let measured = here.as_ref().and_then(|here| here.as_ref().ok());
    let parts: [PaperTables<'_>; 10] = [
        (&["Formulas"], &|| Ok(vec![formulas::sheet()])),
        (&["4.2.3", "4.2.3, loaded", "Figure 3"], &|| {
            latency::sheets(&lab).map(Vec::from)
        }),
        (&["Table 2"], &|| Ok(vec![table2::sheet(&lab, measured)?])),
        (&["Figures 4 to 6"], &|| Ok(vec![lan::sheet(&lab)?])),
        (
            &[
                "Figures 8 to 10",
                "4.3.3",
                "4.3.3, published and here",
                "Assumptions",
            ],
            &|| wan::sheets(&lab).map(Vec::from),
        ),
        (&["4.3.4", "Today"], &|| {
            remedies::sheets(&lab).map(Vec::from)
        }),
        (&["Findings"], &|| Ok(vec![findings::sheet(&lab)?])),
        (&["Figure 11"], &|| Ok(vec![sweeps::by_mtu(&lab)?])),
        (&["Figure 13"], &|| Ok(vec![sweeps::by_streams(&lab)?])),
        (&["Figure 14"], &|| {
            Ok(here.iter().map(memory_copies::sheet).collect())
        }),
    ];
    let sheets = settings.sheets(&[], &parts)?;
    let tables = PaperReport {
        name: "magic".into(),
        title: "Tierney et al. 1996: a parallel block server over the MAGIC network".into(),
        notes: vec![
            "A viewer sends a list of blocks every 200 ms; a newer list supersedes the older one. The master, disk servers and client are those of `stackline blocks`, in virtual time over simulated TCP. A 48 KiB block is 0.39 Mbit."
                .into(),
            format!("Random values depend on the seed {}.", settings.seed),
        ],
        exhibits: Vec::new(),
        sheets,
    };
    Ok(Reproduction {
        charts: charts::charts(&tables),
        tables,
    })
}
