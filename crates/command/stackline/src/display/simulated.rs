//! `display bench --across`: the benchmark in virtual time, with client and display on hosts of a simulated network; with `--beside`, of
//! two clients at once.
//! `display factors`: which factors matter there.

use super::rates::{levels, pictures, show};
use crate::checked_plan::Specification as _;
use crate::declared_network::network_of;
use crate::exit::{Error, Exit, Result};
use crate::factors;
use crate::flags::{DisplayBench, DisplayFactors, SpecTextFlags};
use crate::output;
use stackline_displayserver::bench::{self, DisplayBenchResult, rate_rows};
use stackline_displayserver::experiment::combinations::DisplaySubject;
use stackline_displayserver::experiment::factors::{DisplayFactorsOptions, display_factors};
use stackline_displayserver::experiment::testbed::{DisplayTestbed, no_rate};
use stackline_displayserver::experiment::two_clients::measure_two_clients;
use stackline_displayserver::simulated::{DisplayRequestPaths, measure, trace};
use stackline_report::display::{DisplayRateRow, display_json};
use stackline_runner::spec_source::SpecSource;
use stackline_runs::events::keep_run;
use stackline_whatif::experiment::Experiment;
use std::time::{SystemTime, UNIX_EPOCH};

/// Simulates the benchmark that the flags describe.
pub(super) fn bench(flags: &DisplayBench) -> Result {
    let own = &flags.simulated;
    let scene = own.scene.options();
    let network = network_of(own.across.as_deref(), scene.network.as_deref())?;
    let testbed = DisplayTestbed::from_flags(&scene, network)?;
    if let Some(beside) = &own.beside {
        return two_clients(flags, &testbed, beside);
    }
    let mut paths = own.keep.is_some().then(DisplayRequestPaths::default);
    let all = measured(flags, &testbed, paths.as_mut())?;
    if all.iter().all(|one| one.trials.is_empty()) {
        return Err(no_rate());
    }
    let place = format!("{}, simulated", testbed.place());
    let rows: Vec<DisplayRateRow> = rate_rows(&all)
        .into_iter()
        .map(|row| testbed.explained(row))
        .collect();
    let (Some(name), Some(paths)) = (&own.keep, paths) else {
        return show(&place, &rows, flags.json);
    };
    let zero = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64);
    let run = keep_run(name, own.sharing.access(), testbed.client(), |emit| {
        paths.emit_events(&testbed.network, zero, emit)
    })?;
    if flags.json {
        let mut value = display_json(&place, &rows);
        value["run"] = run.into();
        output::json(&value, false)?;
    } else {
        show(&place, &rows, false)?;
        output::print(&format!(
            "\nkept in {run}; see `stackline lifelines last`, `diagnose last` or `open`\n"
        ))?;
    }
    Ok(Exit::Done)
}

fn measured(
    flags: &DisplayBench,
    testbed: &DisplayTestbed,
    mut paths: Option<&mut DisplayRequestPaths>,
) -> Result<Vec<DisplayBenchResult>> {
    let (scene, trials) = (testbed.scene(1), usize::from(flags.trials));
    let mut all = Vec::new();
    for picture in &pictures(flags) {
        let rates = bench::rates(picture, &levels(flags));
        all.extend(match &mut paths {
            Some(paths) => trace(&scene, picture, &rates, trials, paths)?,
            None => measure(&scene, picture, &rates, trials)?,
        });
    }
    Ok(all)
}

/// Prints the rates of two clients that draw at the same time; the second one's internet server is at `beside`.
fn two_clients(flags: &DisplayBench, testbed: &DisplayTestbed, beside: &str) -> Result {
    let trials = usize::from(flags.trials);
    let [one, other] =
        measure_two_clients(testbed, &pictures(flags), &levels(flags), trials, beside)?;
    if flags.json {
        let mut value = display_json(&one.place, &one.rows);
        value["beside"] = display_json(&other.place, &other.rows);
        return output::json(&value, false).map(|()| Exit::Done);
    }
    show(&one.place, &one.rows, false)?;
    output::print("\n")?;
    show(&other.place, &other.rows, false)
}

/// Simulates all combinations and reports the effect of each factor.
pub(super) fn factors(flags: &DisplayFactors) -> Result {
    let source = SpecSource::read(&flags.across)?;
    // Checked first, so that mistakes are printed with their places.
    source.declarations(&SpecTextFlags::default())?;
    let declared = stackline_spec::factors(&source.text).unwrap_or_default();
    if flags.factors.is_empty() && declared.is_empty() {
        return Err(Error::input("no factor was given").hint(
            "specify some, as in `--factor 'cpu of vax x 2' --factor 'level = pipelined, batched'`",
        ));
    }
    let varied = factors::parse_factors(&flags.factors, &source)?;
    let subject = DisplaySubject::new(source, flags.scene.options(), flags.level, &varied)?;
    let experiment = Experiment::new(subject, varied)?;
    let wanted = &flags.experiment;
    let options = DisplayFactorsOptions {
        picture: flags.picture.picture(),
        trials: usize::from(flags.trials),
        design: wanted.design,
        within: wanted.budget,
        replicates: flags.replicates,
        scale: wanted.model,
        prices: factors::prices(wanted, &experiment.factors)?,
        spend: wanted.spend,
        limits: !flags.no_limits,
    };
    let outcome = display_factors(experiment, &options)?;
    if let Some(directory) = &wanted.pictures {
        factors::draw(&outcome, directory)?;
    }
    factors::show(&outcome, flags.json)
}
