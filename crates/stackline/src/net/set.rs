//! `stackline net set`: changes a link of a network that is up. Each flag's value is read as the language reads it.
//!
//! A mistake is shown in the value that was written. What a network that is up can change, the emulator decides.

use super::up::{joined, link_name, shortened};
use crate::exit::{Error, Exit, Result};
use crate::flags::NetSet;
use crate::output;
use crate::source::Source;
use stackline_core::network::{Discipline, Link, Network, Queue, Rate};

/// Changes a link of a network that is up.
pub(super) fn set(flags: &NetSet) -> Result {
    let (mut emulation, description) = joined(&flags.network)?;
    let network = &description.network;
    let link = link_named(network, &flags.link)?;
    let new = changed(flags, network, &network.links[link])?;
    emulation.change(link, new)?;
    output::print(&format!("link {} of network {} is changed\n", link_name(&network.links[link]), network.name))?;
    Ok(Exit::Done)
}

/// The link that the names of its ends mean.
fn link_named(network: &Network, word: &str) -> Result<usize> {
    let plain: String = word.chars().filter(|c| !c.is_whitespace()).collect();
    let means = |link: &Link| {
        let (first, second) = &link.ends;
        let one_way = [format!("{first}->{second}"), format!("{first}>{second}")];
        let both = [format!("{first}-{second}"), format!("{second}-{first}")];
        one_way.contains(&plain) || !link.one_way && both.contains(&plain)
    };
    let found: Vec<usize> = (0..).zip(&network.links).filter(|(_, link)| means(link)).map(|(at, _)| at).collect();
    match found[..] {
        [one] => Ok(one),
        [] => {
            let name = |link: &Link| link_name(link).replace(' ', "");
            let names: Vec<String> = network.links.iter().map(name).collect();
            let message = format!("the network {} has no link {word}", network.name);
            Err(Error::input(message).hint(format!("its links are {}", shortened(&names))))
        }
        ref several => {
            let message = format!("{} links of the network {} are named {word}", several.len(), network.name);
            Err(Error::input(message).hint("a link of several between two nodes cannot be changed while they are up"))
        }
    }
}

/// A flag with what stands before its value in the text of a link, what behind it, and an example.
type Place = (&'static str, &'static str, &'static str, &'static str);

const RATE: Place = ("--rate", "", " 0 s", "--rate '2 Mbit/s'");
const DELAY: Place = ("--delay", "unlimited ", "", "--delay '80 ms'");
const LOSS: Place = ("--loss", "unlimited 0 s loss ", "", "--loss 1%");
const QUEUE: Place = ("--queue", "unlimited 0 s queue ", "", "--queue '32 KiB'");

/// The link with what the flags say.
fn changed(flags: &NetSet, network: &Network, link: &Link) -> Result<Link> {
    if [&flags.rate, &flags.delay, &flags.loss, &flags.queue].iter().all(|flag| flag.is_none()) {
        let hint = "say what, as in `--rate '2 Mbit/s' --delay '80 ms' --loss 1% --queue '32 KiB'`";
        return Err(Error::input("there is nothing to change").hint(hint));
    }
    let mut result = link.clone();
    if let Some(text) = &flags.rate {
        result.rate = alone(RATE, text, |new, read| new.rate = read.rate.clone())?.rate;
    }
    if let Some(text) = &flags.delay {
        let new = alone(DELAY, text, |new, read| (new.delay, new.delays) = (read.delay, read.delays.clone()))?;
        (result.delay, result.delays) = (new.delay, new.delays);
    }
    if let Some(text) = &flags.loss {
        result.loss = alone(LOSS, text, |new, read| new.loss = read.loss.clone())?.loss;
    }
    if let Some(text) = &flags.queue {
        let read = alone(QUEUE, text, |new, read| new.queue = read.queue.clone())?.queue;
        let ends = [&link.ends.0, &link.ends.1];
        let own = network.switches.iter().filter(|switch| ends.contains(&&switch.name)).find_map(|s| s.queue.as_ref());
        result.queue = read.map(|queue| limited(text, &queue, link.queue.as_ref().or(own)));
    }
    Ok(result)
}

/// A link of which that value alone is written; `take` copies what the value may give, and all else is too much.
fn alone((flag, before, after, example): Place, value: &str, take: fn(&mut Link, &Link)) -> Result<Link> {
    const LINK: &str = "network set { host a, b; link a - b ";
    let plan = Source::value(flag, [&format!("{LINK}{before}"), value, &format!("{after}; }}")], example)?;
    if let [Network { hosts, links, .. }] = &plan.networks[..]
        && let ([_, _], [read]) = (&hosts[..], &links[..])
    {
        let mut new = Link { ends: ("a".into(), "b".into()), rate: Rate::Unlimited, ..Link::default() };
        take(&mut new, read);
        if new == *read {
            return Ok(new);
        }
    }
    Err(Error::input(format!("{flag} holds more than its value")).hint(format!("one value each, as in `{example}`")))
}

/// The queue of the link with new limits; a discipline that is not named stays.
fn limited(text: &str, new: &Queue, old: Option<&Queue>) -> Queue {
    let named = new.discipline != Discipline::DropTail || new.ecn || text.contains("drop_tail");
    match old {
        Some(old) if !named => Queue { discipline: old.discipline, ecn: old.ecn, ..new.clone() },
        _ => new.clone(),
    }
}
