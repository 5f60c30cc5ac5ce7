//! Reproduces the paper table by table.

use super::cell_deviations::{self, Judged};
use super::{doubts, factors, internet, local_display, memory, printed, transport};
use crate::paper::{PaperTables, Reproduction, ReproductionSettings};
use stackline_core::error::Result;
use stackline_report::paper::PaperReport;
use stackline_report::sheet::Sheet;
use std::cell::OnceCell;

/// A list of one table.
fn one(sheet: Result<Sheet>) -> Result<Vec<Sheet>> {
    sheet.map(|sheet| vec![sheet])
}

/// The report with its title and notes.
fn report(sheets: Vec<Sheet>) -> PaperReport {
    PaperReport {
        name: "vsystem".into(),
        title: "Lantz, Nowicki and Theimer 1985: an empirical study of distributed application performance".into(),
        notes: vec![
            "Client, agents and display run in virtual time on hosts whose processor costs are those of the profile (`--profile`); the display takes 0.53 ms per request, 5 us per pixel of a line, 0.76 ms per rectangle, 8.2 ms more for a single line or an answer, and 12.2 ms more for a single rectangle. Nothing is random."
                .into(),
            "PUP is a separate protocol (packets of 200 bytes, a window of one), with a copy of each packet on the VAX and Telser's work above it. Its text is sent in packets of one 80-character line, and the workstation of the earlier programs takes 14 ms for each packet and each acknowledgement. That limits text to 1600 characters per second, but not vectors: the same path carries 210 vectors of 20 bytes (4200 bytes) per second, and the VAX cannot produce them any faster."
                .into(),
        ],
        exhibits: Vec::new(),
        sheets,
    }
}

/// All wanted tables.
pub(super) fn reproduce(settings: &ReproductionSettings<'_>) -> Result<Reproduction> {
    // The tables of rates are simulated together and only once, as several of them share experiments.
    let all = OnceCell::new();
    let judged = || -> Result<&Vec<Judged>> {
        if all.get().is_none() {
            let wanted = |table: &printed::VSystemTable| {
                settings.wants(table.name) || settings.wants("Judgement")
            };
            let _ = all.set(cell_deviations::simulate(
                printed::tables().into_iter().filter(wanted).collect(),
            )?);
        }
        Ok(all.get_or_init(Vec::new))
    };
    let table = |name: &'static str| {
        move || -> Result<Vec<Sheet>> {
            Ok(judged()?
                .iter()
                .filter(|judged| judged.table.name == name)
                .map(Judged::sheet)
                .collect())
        }
    };
    let gains = || {
        Ok(vec![cell_deviations::gains(&cell_deviations::simulate(
            vec![printed::levels()],
        )?)])
    };
    let parts: [PaperTables<'_>; 27] = [
        (&["Table 3-1"], &table("Table 3-1")),
        (&["Table 3-2"], &table("Table 3-2")),
        (&["Table 4-1"], &table("Table 4-1")),
        (&["Table 4-2"], &table("Table 4-2")),
        (&["Table 4-3"], &table("Table 4-3")),
        (&["Table 4-4"], &table("Table 4-4")),
        (&["Table 5-1"], &table("Table 5-1")),
        (&["5.1 to 5.3"], &gains),
        (&["Table 5-2"], &|| Ok(vec![memory::sheet()])),
        (&["Table 6-1"], &table("Table 6-1")),
        (&["Table 6-2"], &table("Table 6-2")),
        (&["6 early reply"], &|| one(transport::replies())),
        (&["7.1 buffers"], &|| one(transport::buffers())),
        (&["7.1 allocation"], &|| one(transport::allocation())),
        (&["7.2 timers"], &|| one(transport::timers())),
        (&["7.3 best case"], &|| one(transport::best())),
        (&["7.3 silly windows"], &|| one(transport::silly())),
        (&["Table 8-1"], &table("Table 8-1")),
        (&["Table 8-2"], &table("Table 8-2")),
        (&["9.1 blocks"], &|| one(transport::blocks())),
        (&["9.2 internet server"], &|| one(internet::sheet())),
        (&["9.3 useless packets"], &|| one(transport::polluted())),
        (
            &["9.4 interface", "9.4 losses"],
            &transport::small_interface,
        ),
        (&["Judgement"], &|| {
            Ok(vec![cell_deviations::summary(judged()?)])
        }),
        (&["Factors"], &|| one(factors::sheet())),
        (&["Contradictions"], &|| Ok(vec![doubts::sheet()])),
        (&[local_display::NAME], &|| {
            Ok(vec![local_display::sheet(settings.measured.as_ref())])
        }),
    ];
    let sheets = settings.sheets(&[], &parts)?;
    Ok(Reproduction {
        charts: Vec::new(),
        tables: report(sheets),
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

    fn number(cell: &SheetCell) -> f64 {
        if let SheetCell::Number(value, _) = cell {
            *value
        } else {
            f64::NAN
        }
    }

    #[test]
    fn every_printed_cell_is_there_and_one_in_three_at_most_sets_the_profile() {
        let tables = printed::tables();
        assert_eq!(
            tables.iter().map(|table| table.cells.len()).sum::<usize>(),
            110
        );
        let summary = made("Judgement").remove(0);
        for row in &summary.rows {
            assert!(3.0 * number(&row[2]) <= number(&row[1]), "{row:?}");
        }
        let all = summary.rows.last().unwrap();
        assert!(number(&all[5]) >= 80.0, "{all:?}");
        assert!(number(&all[7]) / number(&all[6]) > 0.9, "{all:?}");
    }

    #[test]
    fn a_serial_line_is_as_printed_and_a_remote_host_beats_a_local_program() {
        let sheet = made("Table 8-2").remove(0);
        let within = sheet
            .rows
            .iter()
            .filter(|row| number(&row[5]).abs() <= 10.0)
            .count();
        assert_eq!(within, 15);
        let sheet = made("Table 4-3").remove(0);
        assert!(
            number(&sheet.rows[1][3]) > 1.3 * number(&sheet.rows[0][3]),
            "{:?}",
            sheet.rows
        );
    }

    /// What rows of tables simulate, by what they are called.
    fn simulated(sheets: &[Sheet], what: &str) -> f64 {
        let rows = sheets.iter().flat_map(|sheet| &sheet.rows);
        let found = rows
            .into_iter()
            .find(|row| matches!(&row[0], SheetCell::Text(name) if name.starts_with(what)));
        number(&found.unwrap_or_else(|| panic!("{what}"))[3])
    }

    #[test]
    fn one_figure_sets_the_transport_and_others_follow() {
        let sheets = made("7");
        assert!((simulated(&sheets, "kbit/s with packets of 1000") - 450.0).abs() < 5.0);
        assert!(simulated(&sheets, "times slower with a 30 ms timeout") > 2.0);
        assert!((9.0..11.0).contains(&simulated(
            &sheets,
            "% slower with a 4 s timeout instead of 0.25 s"
        )));
        assert!((0.5..3.0).contains(&simulated(&sheets, "% slower, ack timer of 0")));
        assert!((2.5..3.5).contains(&simulated(&sheets, "% faster with packets of 1000")));
        assert!(simulated(&sheets, "times slower, read 10 bytes at a time") > 5.0);
        let buffers = sheets
            .iter()
            .find(|sheet| sheet.name == "7.1 buffers")
            .unwrap();
        let unkept: Vec<bool> = buffers
            .rows
            .iter()
            .map(|row| number(&row[2]) > 20.0)
            .collect();
        assert_eq!(unkept, [false, true, false, false, false, true, false]);
    }

    #[test]
    fn larger_blocks_gain_and_larger_windows_lose() {
        let sheets = made("9");
        assert!((12.0..20.0).contains(&simulated(&sheets, "% faster with blocks of 4 KB")));
        assert!((5000.0..=6000.0).contains(&simulated(&sheets, "10 MHz to 8 MHz")));
        let polluted = sheets
            .iter()
            .find(|sheet| sheet.name == "9.3 useless packets")
            .unwrap();
        assert!(
            polluted
                .rows
                .windows(2)
                .all(|two| number(&two[1][2]) < number(&two[0][2])),
            "{:?}",
            polluted.rows
        );
        let replies = made("6 ").remove(0);
        assert!(
            replies.rows.iter().all(|row| number(&row[4]) > 20.0),
            "{:?}",
            replies.rows
        );
    }

    #[test]
    fn of_two_processors_the_busier_one_gives_most_and_bandwidth_nothing() {
        let sheet = made("Factors").remove(0);
        let names: Vec<String> = sheet
            .rows
            .iter()
            .map(|row| {
                if let SheetCell::Text(name) = &row[0] {
                    name.clone()
                } else {
                    String::new()
                }
            })
            .collect();
        let place = |name: &str| names.iter().position(|own| own.starts_with(name));
        assert!(
            place("workstation") < place("remote") && place("remote") < place("transport"),
            "{names:?}"
        );
        assert_eq!(place("bandwidth"), Some(4));
    }
}
