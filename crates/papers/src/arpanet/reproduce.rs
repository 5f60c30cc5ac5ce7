//! The report made again, table by table.

use super::{hosts, in_flight, internal, lines, lockup, paths, scale, terminals};
use crate::paper::{Reproduction, Settings};
use stackline_core::error::Result;
use stackline_report::paper::Paper;
use stackline_report::sheet::Sheet;

/// Makes some of the tables.
type Part<'a> = &'a dyn Fn() -> Result<Vec<Sheet>>;

/// All tables that are wanted.
pub(super) fn reproduce(settings: &Settings<'_>) -> Result<Reproduction> {
    let seed = settings.seed;
    let parts: [(&[&str], Part<'_>); 16] = [
        (&["Table 1"], &|| Ok(vec![in_flight::table()])),
        (&["Table 1, simulated"], &|| Ok(vec![in_flight::simulated(seed)])),
        (&["Table 1, bounds"], &|| Ok(vec![in_flight::bounds(seed)])),
        (&["Table 2"], &|| Ok(vec![terminals::table()])),
        (&["Table 2, simulated"], &|| Ok(vec![terminals::simulated()])),
        (&["Table 3A", "Table 3B"], &|| Ok(vec![internal::rates(seed), internal::derived()])),
        (&["Table 4"], &|| Ok(vec![lines::pairs(seed)])),
        (&["Table 5A", "Table 5B"], &|| paths::sheets().map(Vec::from)),
        (&["2.2.1.4"], &|| Ok(vec![lines::sources(seed)])),
        (&["2.2.1.4, shared"], &|| Ok(vec![lines::shared(seed)])),
        (&["2.2.1.5"], &|| Ok(vec![lines::splitting(seed)])),
        (&["2.2.1.6"], &|| Ok(vec![lines::fast(seed)])),
        (&["Table 6A", "Table 6B"], &|| Ok(vec![hosts::tenex(), hosts::netspd()])),
        (&["Table 7"], &|| Ok(vec![hosts::tapes()])),
        (&["Lockup"], &|| Ok(vec![lockup::sheet(seed)])),
        (&["Scale"], &|| Ok(vec![scale::sheet(seed)])),
    ];
    let mut sheets = Vec::new();
    let wanted: Vec<_> = parts.iter().filter(|(names, _)| names.iter().any(|name| settings.wants(name))).collect();
    for (done, (_, part)) in wanted.iter().enumerate() {
        (settings.progress)(done, wanted.len());
        sheets.extend(part()?.into_iter().filter(|sheet| settings.wants(&sheet.name)));
    }
    let tables = Paper {
        name: "arpanet".into(),
        title: "BBN Report 2499, 1973: throughput of the ARPANET".into(),
        notes: vec![
            "IMPs are machines with the line protocol, routing and reservation of the time, and a processor whose cycles are the \
             report's; kbit/s are data of hosts. What is fitted says so."
                .into(),
            format!("What is drawn hangs on the seed {seed}."),
        ],
        exhibits: Vec::new(),
        sheets,
    };
    Ok(Reproduction { charts: Vec::new(), tables })
}
