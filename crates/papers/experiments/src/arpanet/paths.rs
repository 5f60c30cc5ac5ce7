//! Table 5: how many hops all IMPs (the packet switches of the ARPANET) are from BBN, printed and by the routing of simulated IMPs.

use super::network_setup::{instant_at, map};
use super::printed::{PATHS, PATHS_WITHOUT, Row5};
use crate::printed_and_here::{self, PrintedFigure};
use stackline_core::error::Result;
use stackline_core::random::Seed;
use stackline_report::sheet::{Sheet, SheetCell};
use stackline_sim::papers::imps::ImpSubnet;
use stackline_sim::papers::imps::plan;

/// The number of IMPs at each distance from BBN, beginning with one hop, in the routing table of BBN's IMP after a minute. If `is_down`,
/// the line from BBN to Harvard is cut.
fn histogram(is_down: bool) -> Result<Vec<u32>> {
    let network = map()?;
    let (plan, _) = plan::plan_of_network(&network);
    let bbn = network
        .switches
        .iter()
        .position(|imp| imp.name == "BBN")
        .unwrap_or_default();
    // The lines between IMPs, in the plan's order. The other links begin at a host, whose name contains a hyphen; of the IMPs at which
    // a line begins, only Ames-TIP has one.
    let cut = network
        .links
        .iter()
        .filter(|link| !link.ends.0.contains('-') || link.ends.0 == "Ames-TIP");
    let line = cut
        .clone()
        .position(|link| link.ends.0 == "BBN" && link.ends.1 == "Harvard")
        .unwrap_or_default();
    let mut machines = ImpSubnet::new(&plan, Seed::root(1));
    machines.cut(line, is_down);
    machines.run(instant_at(60.0), |_, _, _, _| {});
    let mut found = Vec::new();
    for imp in 0..plan.imps.len() as u16 {
        if let Some(hops) = machines.imps()[bbn]
            .routing()
            .hops(imp)
            .filter(|hops| *hops > 0)
        {
            let hops = usize::from(hops);
            found.resize(found.len().max(hops), 0);
            found[hops - 1] += 1;
        }
    }
    Ok(found)
}

/// Tables 5A and 5B.
pub(super) fn sheets() -> Result<[Sheet; 2]> {
    Ok([
        sheet(
            "Table 5A",
            "path lengths from BBN, all lines up: number of IMPs, published and simulated",
            &PATHS,
            &histogram(false)?,
        ),
        sheet(
            "Table 5B",
            "the same with the line from BBN to Harvard down",
            &PATHS_WITHOUT,
            &histogram(true)?,
        ),
    ])
}

fn sheet(name: &str, title: &str, printed: &[Row5], found: &[u32]) -> Sheet {
    let columns = [
        ("hops", "hops"),
        ("printed", "published"),
        ("imps", "simulated"),
        ("printed_percent", "published %"),
        ("percent", "%"),
        ("printed_up_to", "published cumulative %"),
        ("up_to", "cumulative %"),
    ];
    let mut sheet = Sheet::new(name, title, &columns);
    sheet.columns.extend(printed_and_here::columns());
    let all: u32 = found.iter().sum();
    let percent = |count: u32| (100.0 * f64::from(count) / f64::from(all.max(1))).round();
    let mut sum = 0;
    for (at, [imps, share, _, up_to]) in printed.iter().enumerate() {
        let count = found.get(at).copied().unwrap_or(0);
        sum += count;
        let compared = [
            (*imps, f64::from(count)),
            (*share, percent(count)),
            (*up_to, percent(sum)),
        ];
        let differences = compared.into_iter().filter_map(|(printed, here)| {
            PrintedFigure::Figure(f64::from(printed)).off_percent(here)
        });
        let most = printed_and_here::largest(differences);
        let values = [at as u32 + 1, *imps, count, *share].map(f64::from);
        let mut row: Vec<SheetCell> = values
            .into_iter()
            .map(|value| SheetCell::Number(value, 0))
            .collect();
        row.extend(
            [percent(count), f64::from(*up_to), percent(sum)]
                .map(|value| SheetCell::Number(value, 0)),
        );
        row.extend(printed_and_here::cells_of_difference(most, None));
        sheet.rows.push(row);
    }
    sheet.note("Hop counts in the tables of BBN's IMP after a minute of routing. \"Off\" is the largest deviation in \
                a row.")
}
