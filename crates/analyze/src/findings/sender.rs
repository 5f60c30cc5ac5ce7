//! Sender-limited: the sending host lets go no more than it does.

use super::view::{View, percent};
use super::{Finding, Kind};

pub(super) fn find(view: &View<'_>) -> Option<Finding> {
    let scene = &view.scene;
    let port = scene.ports.iter().filter(|port| port.paced && port.streams > 0 && port.packets > 0);
    let port = port.max_by(|a, b| a.busy_s().total_cmp(&b.busy_s()))?;
    let busy = scene.busy(port);
    // A sender that is paced to its part of a full link gives it no less than the link takes.
    let full = scene.fullest().is_some_and(|port| scene.busy(port) >= super::network::FULL);
    if busy < super::network::FULL || full {
        return None;
    }
    let host = &port.hop.ends.0;
    let sentence = format!(
        "the sender limits: the interface of {host} lets no more than {} go, and does so {} of the time",
        port.rate(),
        percent(busy)
    );
    let figure = format!("{}: {} packets paced to {}", port.name, port.packets, port.rate());
    let finding = view.finding(Kind::SenderLimited, busy, 0.95, sentence).because(scene.figure(figure));
    Some(finding.attempt(format!("a faster `pace` at {host}, if the links behind it can take it")))
}
