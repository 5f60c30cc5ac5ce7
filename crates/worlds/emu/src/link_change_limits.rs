//! Checks changes of a link while its network is up: its rate, delay, loss and queue limits may change; all else is refused.

use crate::error::{Error, Result};
use stackline_core::network::{LinkQueue, Network, NetworkLink};

/// Checks whether link number `link` of a network that is up can become `new`. An error says why it cannot.
pub(crate) fn check_link_change(network: &Network, link: usize, new: &NetworkLink) -> Result<()> {
    let Some(before) = network.links.get(link) else {
        return Err(Error::input(format!(
            "the network {} has no link {link}",
            network.name
        )));
    };
    let refused = |what: &str| {
        let message = format!("{what} of a link cannot be changed while its network is up");
        let hint = format!(
            "run `stackline net down {}`, change the specification, and run `stackline net up` again",
            network.name
        );
        Err(Error::input(message).hint(hint))
    };
    let kept = NetworkLink {
        rate: before.rate.clone(),
        delay: before.delay,
        delays: before.delays.clone(),
        loss: before.loss.clone(),
        queue: before.queue.clone(),
        ..new.clone()
    };
    if kept != *before {
        return refused("the ends, MTU, jitter, duplication, reordering, shaper, policer and DSCP");
    }
    let ends = [&before.ends.0, &before.ends.1];
    let mut switches = network
        .switches
        .iter()
        .filter(|switch| ends.contains(&&switch.name));
    let own = switches.find_map(|switch| switch.queue.as_ref());
    let plain = LinkQueue::default();
    let queue = |link: &NetworkLink| link.queue.clone().or(own.cloned()).unwrap_or(plain.clone());
    let (old, now) = (queue(before), queue(new));
    if (old.discipline, old.ecn, &old.classes) != (now.discipline, now.ecn, &now.classes) {
        return refused("the queue discipline");
    }
    Ok(())
}

/// The links that differ between two states of a network: the number of each, and the link as it was before.
pub(crate) fn changed_links(before: &Network, now: &Network) -> Vec<(usize, NetworkLink)> {
    let both = before.links.iter().zip(&now.links).enumerate();
    both.filter(|(_, (was, is))| was != is)
        .map(|(at, (was, _))| (at, was.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_core::network::{Discipline, LinkRate, LossModel, NetworkSwitch};
    use stackline_core::time::Duration;

    #[test]
    fn figures_may_change_and_what_the_hosts_see_may_not() {
        let link = NetworkLink {
            ends: ("a".into(), "s".into()),
            rate: LinkRate::Constant(1e6),
            ..NetworkLink::default()
        };
        let codel = Discipline::CoDel {
            target: Duration(5),
            interval: Duration(9),
        };
        let queue = |discipline| {
            Some(LinkQueue {
                limit_bytes: Some(9000),
                discipline,
                ..LinkQueue::default()
            })
        };
        let switch = NetworkSwitch {
            name: "s".into(),
            queue: queue(codel),
            ..NetworkSwitch::default()
        };
        let network = Network {
            links: vec![link.clone()],
            switches: vec![switch],
            ..Network::default()
        };
        let figures = NetworkLink {
            rate: LinkRate::Unlimited,
            delay: Duration(9),
            loss: LossModel::Every(2),
            ..link.clone()
        };
        assert_eq!(check_link_change(&network, 0, &figures), Ok(()));
        assert_eq!(
            check_link_change(
                &network,
                0,
                &NetworkLink {
                    queue: queue(codel),
                    ..link.clone()
                }
            ),
            Ok(())
        );
        let refusals = [
            (
                0,
                NetworkLink {
                    mtu_bytes: Some(900),
                    ..link.clone()
                },
                "MTU",
            ),
            (
                0,
                NetworkLink {
                    queue: queue(Discipline::DropTail),
                    ..link.clone()
                },
                "the queue discipline",
            ),
            (1, link, "no link 1"),
        ];
        for (number, new, words) in refusals {
            let refusal = check_link_change(&network, number, &new).unwrap_err();
            assert!(refusal.message.contains(words), "{refusal}");
        }
    }
}
