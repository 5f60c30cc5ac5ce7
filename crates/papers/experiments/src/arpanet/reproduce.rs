//! Reproduces the report table by table.

use super::{
    calculated, charts, hosts, in_flight, internal, line_experiments, lockup, paths, scale,
    terminals,
};
use crate::paper::{PaperTables, Reproduction, ReproductionSettings};
use stackline_core::error::Result;
use stackline_report::paper::PaperReport;

/// Makes all tables that are wanted.
pub(super) fn reproduce(settings: &ReproductionSettings<'_>) -> Result<Reproduction> {
    let seed = settings.seed;
    let parts: [PaperTables<'_>; 20] = [
        (&["Table 1"], &|| Ok(vec![in_flight::table()])),
        (&["Table 1, simulated"], &|| {
            Ok(vec![in_flight::simulated(seed)])
        }),
        (&["Table 1, bounds"], &|| Ok(vec![in_flight::bounds(seed)])),
        (&["2.1.2"], &|| Ok(vec![calculated::lines()])),
        (&["Table 2"], &|| Ok(vec![terminals::table()])),
        (&["Table 2, simulated"], &|| {
            Ok(vec![terminals::simulated()])
        }),
        (&["Table 3A", "Table 3B"], &|| {
            Ok(vec![internal::rates(seed), internal::derived()])
        }),
        (&["Table 4"], &|| Ok(vec![line_experiments::pairs(seed)])),
        (&["Table 5A", "Table 5B"], &|| {
            paths::sheets().map(Vec::from)
        }),
        (&["2.2.1.4"], &|| Ok(vec![line_experiments::sources(seed)])),
        (&["2.2.1.4, shared"], &|| {
            Ok(vec![line_experiments::shared(seed)])
        }),
        (&["2.2.1.5"], &|| {
            Ok(vec![line_experiments::splitting(seed)])
        }),
        (&["2.2.1.5, paths"], &|| Ok(vec![calculated::paths()])),
        (&["2.2.1.6"], &|| Ok(vec![line_experiments::fast(seed)])),
        (&["Table 6A", "Table 6B"], &|| {
            Ok(vec![hosts::tenex(), hosts::netspd()])
        }),
        (&["Table 7"], &|| Ok(vec![hosts::table_7()])),
        (&["Lockup"], &|| Ok(vec![lockup::sheet(seed)])),
        (&["Scale"], &|| Ok(vec![scale::sheet(seed)])),
        (&["Figure 1"], &|| Ok(vec![charts::figure_1()])),
        (&["Figure 2"], &|| Ok(vec![charts::figure_2()])),
    ];
    let sheets = settings.sheets(&[], &parts)?;
    let tables = PaperReport {
        name: "arpanet".into(),
        title: "BBN Report 2499, 1973: throughput of the ARPANET".into(),
        notes: vec![
            "IMPs are modelled with the line protocol, routing and reservation of that time, and a processor with the report's cycle counts; rates in kbit/s count only host data. Fitted values are marked as such."
                .into(),
            format!("Random values depend on the seed {seed}."),
        ],
        exhibits: Vec::new(),
        sheets,
    };
    Ok(Reproduction {
        charts: charts::charts(),
        tables,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_report::sheet::{Sheet, SheetCell};

    fn made(only: &str) -> Vec<Sheet> {
        let settings = ReproductionSettings {
            seed: 1,
            transfers: 1,
            most_seeds: None,
            precision: 0.1,
            measured: None,
            only: Some(only),
            progress: &|_, _| {},
        };
        reproduce(&settings).unwrap().tables.sheets
    }

    fn note(sheet: &Sheet) -> &str {
        sheet.notes.first().map_or("", String::as_str)
    }

    #[test]
    fn formulas_give_what_is_printed() {
        let formulas = in_flight::table();
        assert!(
            note(&formulas).starts_with("192 of 192 entries"),
            "{}",
            note(&formulas)
        );
        let terminals = terminals::table();
        assert!(
            note(&terminals).starts_with("94 of 98 values"),
            "{}",
            note(&terminals)
        );
    }

    #[test]
    fn the_map_has_the_printed_path_lengths_by_its_own_routing() {
        let number = |cell: &SheetCell| {
            if let SheetCell::Number(value, _) = cell {
                *value
            } else {
                f64::NAN
            }
        };
        let sheets = made("Table 5");
        assert_eq!(sheets.len(), 2);
        for row in sheets.iter().flat_map(|sheet| &sheet.rows) {
            assert_eq!(number(&row[1]), number(&row[2]), "{row:?}");
        }
    }
}
