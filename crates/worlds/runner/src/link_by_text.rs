//! Reads new values of a link (rate, delay, loss, queue) from text, with the rules of the specification language.
//!
//! Mistakes point into the value that the user wrote. Which values a running network can change is decided by the
//! emulator.

use crate::spec_source::{FlagMistake, plan_of_flag};
use stackline_core::error::Error;
use stackline_core::network::{Discipline, LinkQueue, LinkRate, Network, NetworkLink};

/// New values of a link, as texts of the language.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkValues {
    /// The new rate.
    pub rate: Option<String>,
    /// The new propagation delay.
    pub delay: Option<String>,
    /// The new loss model.
    pub loss: Option<String>,
    /// The new queue: its limit and discipline.
    pub queue: Option<String>,
}

/// The name of a link by its ends, as the language writes it: `a - b` or `a -> b`.
#[must_use]
pub fn link_name(link: &NetworkLink) -> String {
    format!(
        "{} {} {}",
        link.ends.0,
        if link.one_way { "->" } else { "-" },
        link.ends.1
    )
}

/// The first few items of a list, and the number of the others.
#[must_use]
pub fn shortened(all: &[String]) -> String {
    const MOST: usize = 8;
    let shown = all
        .iter()
        .take(MOST)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if all.len() > MOST {
        format!("{shown} and {} more", all.len() - MOST)
    } else {
        shown
    }
}

/// Clauses of a link that cannot be changed while its network is up.
const UNCHANGED: [&str; 7] = [
    "mtu",
    "jitter",
    "duplicate",
    "shape",
    "police",
    "dscp",
    "reorder",
];

/// Reads a text such as `link client - edge 100 Mbit/s`. Returns the index of the link and the link with the new
/// values; what the text leaves out stays.
///
/// # Errors
/// What is wrong with the text.
pub fn link_of_text(network: &Network, text: &str) -> Result<(usize, NetworkLink), FlagMistake> {
    let example = "--try 'link client - edge 100 Mbit/s'";
    let wrong = || {
        Error::input(format!("`{text}` is not a valid link"))
            .hint(format!("write it as in a specification: `{example}`"))
    };
    let words: Vec<&str> = text
        .trim()
        .trim_end_matches(';')
        .split_whitespace()
        .collect();
    let ["link", first, arrow @ ("-" | "->"), second, rest @ ..] = &words[..] else {
        return Err(wrong().into());
    };
    let at = link_named(network, &format!("{first}{arrow}{second}"))?;
    if let Some(other) = words.iter().find(|word| UNCHANGED.contains(word)) {
        return Err(Error::input(format!(
            "the `{other}` of a link cannot be changed while programs run on its network"
        ))
        .hint("only rate, delay, loss and queue can be changed")
        .into());
    }
    // The language wants a delay behind a rate; without one the old delay stays.
    let is_time = |word: &&str| {
        let unit = ["ns", "us", "ms", "s"]
            .iter()
            .find_map(|unit| word.strip_suffix(unit));
        unit.is_some_and(|number| number.is_empty() || number.parse::<f64>().is_ok())
    };
    let has_delay = words.iter().any(is_time);
    let behind_rate = rest
        .iter()
        .position(|word| ["loss", "queue"].contains(word))
        .unwrap_or(rest.len());
    let (rate, more) = rest.split_at(behind_rate);
    let delay = if has_delay { "" } else { " 0 s " };
    let value = [&rate.join(" "), delay, &more.join(" ")].join(" ");
    let plan = plan_of_flag(
        "--try",
        ["network try { host a, b; link a - b ", &value, "; }"],
        example,
    )?;
    let [Network { links, .. }] = &plan.networks[..] else {
        return Err(wrong().into());
    };
    let [new] = &links[..] else {
        return Err(wrong().into());
    };
    let mut result = network.links[at].clone();
    result.rate = new.rate.clone();
    if has_delay {
        (result.delay, result.delays) = (new.delay, new.delays.clone());
    }
    if words.contains(&"loss") {
        result.loss = new.loss.clone();
    }
    if words.contains(&"queue") {
        result.queue.clone_from(&new.queue);
    }
    Ok((at, result))
}

/// The index of the link that a word names by its ends.
///
/// # Errors
/// When no link or several links have that name.
pub fn link_named(network: &Network, word: &str) -> Result<usize, Error> {
    let plain: String = word.chars().filter(|c| !c.is_whitespace()).collect();
    let means = |link: &NetworkLink| {
        let (first, second) = &link.ends;
        let one_way = [format!("{first}->{second}"), format!("{first}>{second}")];
        let both = [format!("{first}-{second}"), format!("{second}-{first}")];
        one_way.contains(&plain) || !link.one_way && both.contains(&plain)
    };
    let found: Vec<usize> = (0..)
        .zip(&network.links)
        .filter(|(_, link)| means(link))
        .map(|(at, _)| at)
        .collect();
    match found[..] {
        [one] if !network.links[one].one_way && plain.contains('>') => {
            let (first, second) = &network.links[one].ends;
            let message =
                format!("the link {first}-{second} has one set of values for both directions");
            Err(Error::input(message).hint(format!(
                "write `{first} - {second}` to change both, or declare two links, `link {first} -> {second}` and `link {second} -> {first}`"
            )))
        }
        [one] => Ok(one),
        [] => {
            let name = |link: &NetworkLink| link_name(link).replace(' ', "");
            let names: Vec<String> = network.links.iter().map(name).collect();
            let message = format!("the network {} has no link {word}", network.name);
            Err(Error::input(message).hint(format!("its links: {}", shortened(&names))))
        }
        ref several => {
            let message = format!(
                "{} links of the network {} are named {word}",
                several.len(),
                network.name
            );
            Err(Error::input(message)
                .hint("parallel links cannot be changed individually while the network is up"))
        }
    }
}

/// A flag that changes one value of a link.
#[derive(Clone, Copy)]
struct LinkFlag {
    name: &'static str,
    /// The text of a link before the value.
    before: &'static str,
    /// The text of a link behind the value.
    after: &'static str,
    example: &'static str,
}

const RATE: LinkFlag = LinkFlag {
    name: "--rate",
    before: "",
    after: " 0 s",
    example: "--rate '2 Mbit/s'",
};
const DELAY: LinkFlag = LinkFlag {
    name: "--delay",
    before: "unlimited ",
    after: "",
    example: "--delay '80 ms'",
};
const LOSS: LinkFlag = LinkFlag {
    name: "--loss",
    before: "unlimited 0 s loss ",
    after: "",
    example: "--loss 1%",
};
const QUEUE: LinkFlag = LinkFlag {
    name: "--queue",
    before: "unlimited 0 s queue ",
    after: "",
    example: "--queue '32 KiB'",
};

/// The link with the new values.
///
/// # Errors
/// What is wrong with a value, or that there is none.
pub fn link_with(
    values: &LinkValues,
    network: &Network,
    link: &NetworkLink,
) -> Result<NetworkLink, FlagMistake> {
    if *values == LinkValues::default() {
        let hint = "specify a change, as in `--rate '2 Mbit/s' --delay '80 ms' --loss 1% --queue '32 KiB'`";
        return Err(Error::input("there is nothing to change").hint(hint).into());
    }
    let mut result = link.clone();
    if let Some(text) = &values.rate {
        result.rate = alone(RATE, text, |new, read| new.rate = read.rate.clone())?.rate;
    }
    if let Some(text) = &values.delay {
        let new = alone(DELAY, text, |new, read| {
            (new.delay, new.delays) = (read.delay, read.delays.clone())
        })?;
        (result.delay, result.delays) = (new.delay, new.delays);
    }
    if let Some(text) = &values.loss {
        result.loss = alone(LOSS, text, |new, read| new.loss = read.loss.clone())?.loss;
    }
    if let Some(text) = &values.queue {
        let read = alone(QUEUE, text, |new, read| new.queue = read.queue.clone())?.queue;
        let ends = [&link.ends.0, &link.ends.1];
        let own = network
            .switches
            .iter()
            .filter(|switch| ends.contains(&&switch.name))
            .find_map(|s| s.queue.as_ref());
        result.queue = read.map(|queue| limited(text, &queue, link.queue.as_ref().or(own)));
    }
    Ok(result)
}

/// Reads a link in which only the flag's value is given. `take` copies the field that the value may set; if the text
/// sets more, it is an error.
fn alone(
    flag: LinkFlag,
    value: &str,
    take: fn(&mut NetworkLink, &NetworkLink),
) -> Result<NetworkLink, FlagMistake> {
    let LinkFlag {
        name,
        before,
        after,
        example,
    } = flag;
    const LINK: &str = "network set { host a, b; link a - b ";
    let plan = plan_of_flag(
        name,
        [&format!("{LINK}{before}"), value, &format!("{after}; }}")],
        example,
    )?;
    if let [Network { hosts, links, .. }] = &plan.networks[..]
        && let ([_, _], [read]) = (&hosts[..], &links[..])
    {
        let mut new = NetworkLink {
            ends: ("a".into(), "b".into()),
            rate: LinkRate::Unlimited,
            ..NetworkLink::default()
        };
        take(&mut new, read);
        if new == *read {
            return Ok(new);
        }
    }
    Err(Error::input(format!("{name} takes a single value"))
        .hint(format!("give each flag one value, as in `{example}`"))
        .into())
}

/// The queue of the link with new limits; the old discipline stays if the text names none.
fn limited(text: &str, new: &LinkQueue, old: Option<&LinkQueue>) -> LinkQueue {
    let named = new.discipline != Discipline::DropTail || new.ecn || text.contains("drop_tail");
    match old {
        Some(old) if !named => LinkQueue {
            discipline: old.discipline,
            ecn: old.ecn,
            classes: old.classes.clone(),
            ..new.clone()
        },
        _ => new.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_core::time::Duration;

    #[test]
    fn what_the_text_of_a_link_leaves_out_stays() {
        let text = "network n { host a, b; router r; link a - r 10 Mbit/s 5 ms loss 2%; link r - b 1 Gbit/s 1 ms; }";
        let network = &plan_of_flag("-e", ["", text, ""], "").unwrap().networks[0];
        let changed = |text: &str| link_of_text(network, text).unwrap();
        let (at, link) = changed("link a - r 100 Mbit/s");
        assert_eq!(
            (at, link.delay, &link.loss),
            (0, Duration(5_000_000), &network.links[0].loss)
        );
        assert_ne!(link.rate, network.links[0].rate);
        let (at, link) = changed("link b - r 1 Gbit/s 20ms;");
        assert_eq!((at, link.delay), (1, Duration(20_000_000)));
        let (_, link) = changed("link a - r 1 Mbit/s loss 10% queue 20 KiB");
        assert_eq!(link.delay, Duration(5_000_000));
        assert!(link.loss != network.links[0].loss && link.queue.is_some());
        for wrong in [
            "a - r 1 Mbit/s",
            "link a - b 1 Mbit/s",
            "link a - r 1 Mbit/s mtu 400",
            "link a - r",
            "link",
        ] {
            assert!(link_of_text(network, wrong).is_err(), "{wrong}");
        }
    }
}
