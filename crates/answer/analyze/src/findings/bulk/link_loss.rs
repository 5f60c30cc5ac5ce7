//! Packets that a link itself loses.

use crate::findings::bulk::shared::lost_data;
use crate::findings::change::PlanChange;
use crate::findings::event_log::FindingEventLog;
use crate::findings::finding::{Finding, LEAST, percent};
use crate::findings::followed_units::network;
use crate::findings::kind::{Find, FindingKind};
use crate::findings::measured::context::FindingContext;
use crate::findings::measured::measurement::FindingMeasurement;
use crate::findings::measured::path::PathPort;
use crate::statistics::to_f64;
use stackline_core::catalogue::FlowControl;
use stackline_core::network::Network;
use stackline_core::stack::OptionValue;
use stackline_core::units;

pub(crate) const KIND: FindingKind = FindingKind {
    name: "link_loss",
    meaning: "a link loses packets: this costs time, or more than 0.1 % of the data is lost",
    find: &[
        Find::Run(in_session),
        Find::Measurement(find),
        Find::Rest(for_good),
    ],
};

/// Finding of a session: a run without measurements, whose units are followed through events.
fn in_session(log: &FindingEventLog<'_>) -> Option<Finding> {
    network::link_loss(&KIND, log)
}

/// The finding about losses of links that cost time.
fn find(context: &FindingContext<'_>) -> Option<Finding> {
    let (measurement, losses) = (&context.measurement, &context.losses);
    let here = || losses.places.iter().filter(|place| place.on_the_link);
    let part: f64 = here().map(|place| place.part).sum();
    let worst = here().max_by(|a, b| a.part.total_cmp(&b.part))?;
    let (port, share) = (&measurement.ports[worst.port], losses.share * part);
    if share < LEAST {
        return None;
    }
    let rate = to_f64(port.link_drops()) / to_f64(port.packets.max(1));
    let sentence = format!(
        "the link {} loses packets ({} of {}, {:.2} %), which costs {} of the time",
        port.name,
        port.link_drops(),
        port.packets,
        100.0 * rate,
        percent(share)
    );
    let finding = KIND
        .finding(context, share, losses.confidence, sentence)
        .because(context.drops(worst));
    let finding = context
        .with_stalls(finding)
        .attempt_by(repair(port), PlanChange::NoLoss(port.hop.ends.clone()));
    if let Some(network) = measurement.network.filter(|network| network.has_imps()) {
        return Some(among_imps(measurement, network, port, finding));
    }
    let advice =
        "a stack that slows down less after a loss: `tcp(congestion = bbr)`, `blast(selective)`";
    let bbr = OptionValue::Word("bbr".to_owned());
    let part = measurement
        .parts
        .iter()
        .find(|part| part.plan.stack.facts.flow_control == FlowControl::KernelBuffers);
    Some(match part {
        Some(part) => finding.attempt_by(advice, PlanChange::Option(part.index, "congestion", bbr)),
        None => finding.attempt(advice),
    })
}

/// The finding between IMPs: they retransmit packets themselves, so if the line went down, the sentence says that instead of its losses.
fn among_imps(
    measurement: &FindingMeasurement<'_>,
    network: &Network,
    port: &PathPort,
    finding: Finding,
) -> Finding {
    let reports = crate::imps::reports(measurement.log.input.events);
    let of = |ends: (&str, &str)| reports.lines.get(&format!("{}>{}", ends.0, ends.1));
    let (a, b) = (port.hop.ends.0.as_str(), port.hop.ends.1.as_str());
    let down = [of((a, b)), of((b, a))]
        .into_iter()
        .flatten()
        .filter(|line| line.downs > 0);
    let Some(line) = down.min_by(|one, other| one.up_seconds.total_cmp(&other.up_seconds)) else {
        return finding;
    };
    let sentence = format!(
        "the line {} was up for only {} of {}, which costs {} of the time{}",
        port.name,
        units::format_time(line.up_seconds),
        units::format_time(line.seconds),
        percent(finding.share),
        if network.links.len() > 2 {
            "; messages took another path, or waited"
        } else {
            ""
        }
    );
    Finding {
        sentence,
        ..finding
    }
}

/// The finding about data that the link lost permanently, unless its losses are already a finding for the time that they cost.
fn for_good(context: &FindingContext<'_>, found: &[Finding]) -> Option<Finding> {
    if found.iter().any(|finding| finding.kind == KIND.name) {
        return None;
    }
    let (port, finding) =
        lost_data::find_most_lossy_port(context, &KIND, "the link", PathPort::link_drops, true)?;
    Some(
        finding
            .attempt(repair(port))
            .attempt(lost_data::ANOTHER_STACK),
    )
}

fn repair(port: &PathPort) -> String {
    format!(
        "repair the link {} (cable, radio, interface errors), or add error correction",
        port.name
    )
}
