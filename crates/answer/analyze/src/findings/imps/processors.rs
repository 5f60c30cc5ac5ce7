//! Processors of IMPs (packet switches of the ARPANET) at their limit, from the IMPs' own reports: busy all the time, or too slow for the
//! packets that arrive on their lines, which they refuse (BBN 2499, 2.1 to 2.3).

use crate::findings::change::PlanChange;
use crate::findings::environment::processors::FULL;
use crate::findings::environment::processors::SaturatedProcessor;
use crate::findings::finding::{Advice, LEAST, percent};
use crate::findings::measured::measurement::FindingMeasurement;
use crate::imps::{ImpAnalysis, ImpLineTotals};
use crate::statistics::to_f64;
use stackline_core::network::{ImpMachine, ImpSettings, Network, NetworkSwitch};
use stackline_core::units;

/// The IMP with the worst processor: at its limit, or so slow that it refuses packets that arrive on its lines.
pub(crate) fn processor(
    measurement: &FindingMeasurement<'_>,
    network: &Network,
) -> Option<SaturatedProcessor> {
    if !network.has_imps() {
        return None;
    }
    let reports = crate::imps::reports(measurement.log.input.events);
    let imps = network
        .switches
        .iter()
        .filter_map(|switch| Some((switch, switch.imp.as_ref()?)));
    let found = imps.filter_map(|(switch, imp)| {
        full(measurement, &reports, switch, imp)
            .or_else(|| refuses(measurement, &reports, switch, imp))
    });
    found.max_by(|one, other| one.share.total_cmp(&other.share))
}

/// An IMP whose processor is busy nearly all the time.
fn full(
    measurement: &FindingMeasurement<'_>,
    reports: &ImpAnalysis,
    switch: &NetworkSwitch,
    imp: &ImpSettings,
) -> Option<SaturatedProcessor> {
    let name = &switch.name;
    let reported = reports
        .imps
        .get(name)
        .filter(|reported| reported.seconds > 0.0)?;
    // The mean over all reports: the first one is from before there was much traffic, and the last covers only a part of its interval.
    let busy = reported.busy.0;
    (busy >= FULL).then(|| SaturatedProcessor {
        share: busy.min(1.0),
        host: name.clone(),
        sentence: format!(
            "the processor of IMP {name} ({}) is at its limit: it is busy {} of the time",
            machine(imp),
            percent(busy)
        ),
        evidence: measurement.figure(format!(
            "{name} reported its processor as {} busy on average, {} at most",
            percent(busy),
            percent(reported.busy.1.min(1.0))
        )),
        tries: vec![faster(name, imp)],
        confidence: 0.9,
    })
}

/// An IMP that refuses packets from one of its lines: these are retransmitted after 125 ms, and occupy their channel until then.
fn refuses(
    measurement: &FindingMeasurement<'_>,
    reports: &ImpAnalysis,
    switch: &NetworkSwitch,
    imp: &ImpSettings,
) -> Option<SaturatedProcessor> {
    let name = &switch.name;
    let into = reports
        .lines
        .iter()
        .filter(|(port, line)| port.ends_with(&format!(">{name}")) && line.packets > 0);
    let (port, line) = into.max_by(|one, other| again(one.1).total_cmp(&again(other.1)))?;
    let reported = reports.imps.get(name)?;
    let share = 1.0 - line.busy.0;
    (again(line) >= REFUSED && reported.busy.0 >= WORKS && share >= LEAST).then(|| SaturatedProcessor {
        share,
        host: name.clone(),
        sentence: format!(
            "the processor of IMP {name} ({}) is too slow for its lines: {} of the packets over {port} are retransmitted, each {} later",
            machine(imp), percent(again(line)), units::format_time(ImpSettings::AGAIN_AFTER.seconds())
        ),
        evidence: measurement.figure(format!(
            "{port}: {} of {} packets retransmitted; line {} busy, {name} {} busy",
            line.again, line.packets, percent(line.busy.0), percent(reported.busy.0)
        )),
        tries: vec![faster(name, imp)],
        confidence: 0.7,
    })
}

/// The least share of retransmitted packets on a line that shows that the IMP is too slow.
const REFUSED: f64 = 0.05;
/// The least share of the time in which the processor of such an IMP is busy.
const WORKS: f64 = 0.3;

/// The share of a line's packets that were retransmitted.
fn again(line: &ImpLineTotals) -> f64 {
    to_f64(line.again) / to_f64(line.packets.max(1))
}

/// The name of an IMP's machine in the specification language.
fn machine(imp: &ImpSettings) -> &'static str {
    ImpMachine::ALL
        .iter()
        .find(|(_, machine)| *machine == imp.machine)
        .map_or("516", |(name, _)| name)
}

fn faster(name: &str, imp: &ImpSettings) -> Advice {
    let next = if imp.machine == ImpMachine::H516 {
        ImpMachine::Free
    } else {
        ImpMachine::H516
    };
    let change = PlanChange::Machine(name.to_owned(), next);
    let word = if next == ImpMachine::Free {
        "free"
    } else {
        "516"
    };
    Advice {
        change: Some(change),
        ..Advice::new(format!("a faster machine: `imp {name} {word}`"))
    }
}
