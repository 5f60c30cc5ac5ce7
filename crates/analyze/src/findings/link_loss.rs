//! Packets that a link itself loses.

use super::context::{Context, percent};
use super::{Finding, Kind, LEAST, retransmission_stall};
use crate::statistics::real;

pub(super) fn find(context: &Context<'_>) -> Option<Finding> {
    let (measurement, losses) = (&context.measurement, &context.losses);
    let here = |place: &&super::losses::Place| place.on_the_link;
    let part: f64 = losses.places.iter().filter(here).map(|place| place.part).sum();
    let worst = losses.places.iter().filter(here).max_by(|a, b| a.part.total_cmp(&b.part))?;
    let (port, share) = (&measurement.ports[worst.port], losses.share * part);
    if share < LEAST {
        return None;
    }
    let rate = real(port.link_drops()) / real(port.packets.max(1));
    let sentence = format!(
        "the link {} loses packets ({} of {}, {:.2} %), which costs {} of the time",
        port.name,
        port.link_drops(),
        port.packets,
        100.0 * rate,
        percent(share)
    );
    let finding = context.finding(Kind::LinkLoss, share, losses.confidence, sentence);
    let finding = finding.because(
        measurement.log.evidence(format!("{}: {}; {}", port.name, port.reasons(), losses.reckoned), &worst.rows),
    );
    Some(
        retransmission_stall::consequences(context, finding)
            .attempt(format!(
                "repair the link {} (cable, radio, errors of the interface), or correct errors on it",
                port.name
            ))
            .attempt("a stack that falls less for a loss: `tcp(congestion = bbr)` live, `blast(selective)`"),
    )
}
