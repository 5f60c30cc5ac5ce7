//! Packets that a link itself loses.

use super::view::{View, percent};
use super::{Finding, Kind, LEAST, retransmission};
use crate::statistics::real;

pub(super) fn find(view: &View<'_>) -> Option<Finding> {
    let (scene, losses) = (&view.scene, &view.losses);
    let here = |place: &&super::losses::Place| place.on_the_link;
    let part: f64 = losses.places.iter().filter(here).map(|place| place.part).sum();
    let worst = losses.places.iter().filter(here).max_by(|a, b| a.part.total_cmp(&b.part))?;
    let (port, share) = (&scene.ports[worst.port], losses.share * part);
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
    let finding = view.finding(Kind::LinkLoss, share, losses.confidence, sentence);
    let finding = finding
        .because(scene.log.evidence(format!("{}: {}; {}", port.name, port.reasons(), losses.reckoned), &worst.rows));
    Some(
        retransmission::consequences(view, finding)
            .attempt(format!(
                "repair the link {} (cable, radio, errors of the interface), or correct errors on it",
                port.name
            ))
            .attempt("a stack that falls less for a loss: `tcp(congestion = bbr)` live, `blast(selective)`"),
    )
}
