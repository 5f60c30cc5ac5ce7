//! Reproduces Zwaenepoel (1985). Each row is built with the printed value and the values of the formulas; the columns `here`
//! (measured on this machine) and `simulated` are filled in afterwards.

use super::case::Hosts;
use super::formulas::BlastCostModel;
use super::measure::Measurements;
use super::profile::Profiles;
use super::{charts, figures, interfaces, measured_column, simulated, tables};
use crate::paper::{PaperTables, Reproduction, ReproductionSettings};
use crate::printed_and_here::{self, PrintedFigure};
use stackline_core::error::Result;
use stackline_report::paper::{Exhibit, PaperFigure, PaperReport, PaperRow};

/// All wanted tables with all columns, and the charts.
pub(super) fn reproduce(settings: &ReproductionSettings<'_>) -> Result<Reproduction> {
    let profiles = Profiles::read()?;
    let hosts = Hosts::from_profiles(&profiles)?;
    let mut sheets = tables::sheets(&hosts);
    sheets.extend(figures::sheets(&hosts));
    let names: Vec<_> = sheets.iter().map(|sheet| sheet.name).collect();
    sheets.retain(|sheet| settings.wants(sheet.name));
    if let Some(output) = &settings.measured {
        measured_column::fill(&mut sheets, &Measurements::read(output.as_deref()));
    }
    simulated::fill(
        sheets.iter_mut().flat_map(|sheet| &mut sheet.lines),
        &profiles,
        settings,
    )?;
    for line in sheets.iter_mut().flat_map(|sheet| &mut sheet.lines) {
        compare_with_print(&mut line.row);
    }
    let parts: [PaperTables<'_>; 3] = [
        (&["Ratios"], &|| Ok(vec![tables::ratios()])),
        (&["Interfaces"], &|| {
            interfaces::interfaces().map(|sheet| vec![sheet])
        }),
        (&["Full speed"], &|| {
            interfaces::full_speed().map(|sheet| vec![sheet])
        }),
    ];
    let others = settings.sheets(&names, &parts)?;
    let tables = PaperReport {
        name: "blast".into(),
        title: "Zwaenepoel 1985: Protocols for large data transfers over local networks".into(),
        notes: vec![
            costs(&hosts),
            format!("Random values depend on the seed {}.", settings.seed),
        ],
        exhibits: sheets.into_iter().map(Exhibit::from).collect(),
        sheets: others,
    };
    let mut charts: Vec<_> = charts::charts(&tables).into();
    charts.retain(|(file, _)| {
        settings.wants(&file.replace("figure-", "Figure ").replace(".svg", ""))
    });
    Ok(Reproduction { charts, tables })
}

/// Fills in by how many percent the simulated value differs from the printed one; where nothing is simulated, the value of the formula.
fn compare_with_print(row: &mut PaperRow) {
    let here = row
        .simulated
        .map(|simulated| simulated.seconds)
        .or(row.profile)
        .or(row.formula);
    if let (Some(PaperFigure::Here(_, printed)), Some(here)) = (&row.printed, here) {
        row.off_percent = PrintedFigure::Figure(*printed).off_percent(here);
        row.why = row
            .off_percent
            .and_then(|off| printed_and_here::reason(off, None).map(str::to_owned));
    }
}

/// The note with the costs of the profiles.
fn costs(hosts: &Hosts) -> String {
    let ms = |seconds: f64| format!("{} ms", (seconds * 1e7).round() / 1e4);
    let BlastCostModel {
        copy_data,
        copy_ack,
        send_data,
        send_ack,
        latency,
    } = hosts.standalone;
    format!(
        "Host profiles (--profile prints them): C {}, Ca {}, T {}, Ta {}, latency {}; in the V kernel, C {}, Ca {}.",
        ms(copy_data),
        ms(copy_ack),
        ms(send_data),
        ms(send_ack),
        ms(latency),
        ms(hosts.kernel.copy_data),
        ms(hosts.kernel.copy_ack)
    )
}
