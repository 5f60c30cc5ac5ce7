//! The edits that set a property of links to a level.

use super::level::FactorLevel;
use super::level_edit::LevelEdit;
use super::written_spec::WrittenSpec;
use crate::diagnostic::TextSpan;
use crate::tree::{
    DelayItem, LinkItem, LinkProperty, LossItem, QueueLimit, RateItem, SpecItem, SpecValue,
};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use stackline_core::error::{Error, Result};
use stackline_core::network::DEFAULT_MTU;

/// The edits for a property of the link between `ends`, or of all links.
pub(super) fn edits(
    written: &WrittenSpec<'_>,
    property: LinkProperty,
    ends: Option<&(String, String)>,
    level: &FactorLevel,
) -> Result<Vec<LevelEdit>> {
    let networks = written.tree.items.iter().filter_map(|item| match item {
        SpecItem::Network(network) => Some(network),
        _ => None,
    });
    let all: Vec<&LinkItem> = networks.flat_map(|network| &network.links).collect();
    let joins = |link: &&&LinkItem| {
        let Some((first, second)) = ends else {
            return true;
        };
        let (one, other) = (&link.ends.0.text, &link.ends.1.text);
        (one == first && other == second) || (one == second && other == first)
    };
    let chosen: Vec<&&LinkItem> = all.iter().filter(joins).collect();
    if chosen.is_empty() {
        return Err(no_such(&all, ends));
    }
    if ends.is_some() {
        for link in &chosen {
            written.stands_alone(&link.ends.0)?;
        }
    }
    let (mut edits, mut refused) = (Vec::new(), None);
    for link in chosen {
        match of_one(written, property, link, level) {
            Ok(some) => edits.extend(some),
            Err(error) => refused = Some(error),
        }
    }
    // A factor of all links concerns those whose property can be varied; one of a single link must be possible.
    match refused {
        Some(error) if ends.is_some() || edits.is_empty() => Err(error),
        _ => Ok(edits),
    }
}

fn no_such(all: &[&LinkItem], ends: Option<&(String, String)>) -> Error {
    let Some((first, second)) = ends else {
        let hint = "declare a network and add `across NAME`; networks exist in the simulated and emulated worlds";
        return Error::input("no declared network has links to vary").hint(hint);
    };
    let names: Vec<String> = all
        .iter()
        .take(8)
        .map(|link| format!("`{} - {}`", link.ends.0.text, link.ends.1.text))
        .collect();
    let error = Error::input(format!("no link connects `{first}` and `{second}`"));
    if names.is_empty() {
        error.hint("declare a network")
    } else {
        error.hint(format!("known links: {}", names.join(", ")))
    }
}

/// The edits for a property of one link.
fn of_one(
    written: &WrittenSpec<'_>,
    property: LinkProperty,
    link: &LinkItem,
    level: &FactorLevel,
) -> Result<Vec<LevelEdit>> {
    let name = format!("the link {} - {}", link.ends.0.text, link.ends.1.text);
    written.is_of_this_text(&link.ends.0)?;
    match (property, level) {
        (LinkProperty::Bandwidth, _) => rate(written, link, level, &name),
        (LinkProperty::Delay, _) => delay(written, link, level),
        (LinkProperty::Loss, _) => loss(written, link, level, &name),
        (LinkProperty::Queue, _) => queue(written, link, level, &name),
        (LinkProperty::Mtu, FactorLevel::Times(times)) if link.mtu.is_none() => {
            #[expect(clippy::cast_precision_loss, reason = "1500")]
            let bytes = DEFAULT_MTU as f64 * times;
            Ok(vec![clause(link, format!(" mtu {bytes}"))])
        }
        (LinkProperty::Mtu, _) => match &link.mtu {
            Some(value) => replaced(written, value, level),
            None => Ok(vec![clause(link, format!(" mtu {level}"))]),
        },
    }
}

/// The error of a link that has no value of the property to multiply.
fn nothing_to_multiply(
    name: &str,
    what: &str,
    property: LinkProperty,
    such_as: &str,
) -> Result<Vec<LevelEdit>> {
    let hint = format!("write levels, as in `{} = {such_as}`", property.word());
    Err(Error::input(format!("{name} has no {what} to multiply")).hint(hint))
}

fn replaced(
    written: &WrittenSpec<'_>,
    value: &SpecValue,
    level: &FactorLevel,
) -> Result<Vec<LevelEdit>> {
    let text = written.value(value, level)?;
    Ok(vec![LevelEdit::replace(value.span, text)])
}

fn loss(
    written: &WrittenSpec<'_>,
    link: &LinkItem,
    level: &FactorLevel,
    name: &str,
) -> Result<Vec<LevelEdit>> {
    match (&link.loss, level) {
        (Some(LossItem::Share(value) | LossItem::BitErrors(value)), FactorLevel::Times(_)) => {
            replaced(written, value, level)
        }
        (Some(LossItem::Share(value)), FactorLevel::Text(text)) => {
            Ok(vec![LevelEdit::replace(value.span, text.clone())])
        }
        (Some(_), _) => Err(Error::input(format!(
            "the loss of {name} is not a percentage of packets"
        ))
        .hint("write one, as in `loss 1%`")),
        (None, FactorLevel::Text(text)) => Ok(vec![clause(link, format!(" loss {text}"))]),
        (None, _) => nothing_to_multiply(name, "loss", LinkProperty::Loss, "0%, 1%"),
    }
}

fn queue(
    written: &WrittenSpec<'_>,
    link: &LinkItem,
    level: &FactorLevel,
    name: &str,
) -> Result<Vec<LevelEdit>> {
    let limit = link.queue.as_ref().and_then(|queue| queue.limit.as_ref());
    match (limit, level) {
        (Some(QueueLimit::Bytes(value) | QueueLimit::Packets(value)), FactorLevel::Times(_)) => {
            replaced(written, value, level)
        }
        (Some(QueueLimit::Bytes(value)), FactorLevel::Text(text)) => {
            Ok(vec![LevelEdit::replace(value.span, text.clone())])
        }
        (Some(QueueLimit::Packets(value)), FactorLevel::Text(text)) => {
            // The word `packets` behind the number is replaced too.
            let packets = written.span(written.token_from(value.span.end));
            let span = value.span.to(packets);
            Ok(vec![LevelEdit::replace(span, text.clone())])
        }
        (None, FactorLevel::Text(text)) => Ok(vec![match &link.queue {
            Some(queue) => LevelEdit::behind(first_word(written, queue.span), format!(" {text}")),
            None => clause(link, format!(" queue {text}")),
        }]),
        _ => nothing_to_multiply(
            name,
            "specified queue size",
            LinkProperty::Queue,
            "100 packets, 1000 packets",
        ),
    }
}

/// The span of the first token in a span.
fn first_word(written: &WrittenSpec<'_>, span: TextSpan) -> TextSpan {
    written.span(written.token_from(span.start))
}

/// Inserts a clause directly behind the link's delay.
fn clause(link: &LinkItem, text: String) -> LevelEdit {
    let delay = match &link.delay {
        DelayItem::Constant(value) => value.span,
        DelayItem::Schedule(schedule) => schedule.span,
    };
    LevelEdit::behind(delay, text)
}

fn rate(
    written: &WrittenSpec<'_>,
    link: &LinkItem,
    level: &FactorLevel,
    name: &str,
) -> Result<Vec<LevelEdit>> {
    match (&link.rate, level) {
        (RateItem::Constant(value), _) => Ok(vec![LevelEdit::replace(
            value.span,
            written.value(value, level)?,
        )]),
        (RateItem::Schedule(schedule), FactorLevel::Times(_)) => {
            let each = schedule
                .steps
                .iter()
                .map(|(_, rate)| Ok(LevelEdit::replace(rate.span, written.value(rate, level)?)));
            each.collect()
        }
        (RateItem::Schedule(schedule), _) => {
            Ok(vec![LevelEdit::replace(schedule.span, level.to_string())])
        }
        (RateItem::Unlimited, FactorLevel::Times(_)) => Err(Error::input(format!(
            "{name} has an unlimited rate, which cannot be multiplied"
        ))
        .hint("write levels, as in `bandwidth = 10 Mbit/s, 100 Mbit/s`")),
        (RateItem::Unlimited, _) => {
            let word = written.span(written.token_from(link.ends.1.span.end));
            Ok(vec![LevelEdit::replace(word, level.to_string())])
        }
        (RateItem::Trace(_), _) => Err(Error::input(format!("the rate of {name} is a trace"))
            .hint("write a rate or a schedule instead")),
    }
}

fn delay(
    written: &WrittenSpec<'_>,
    link: &LinkItem,
    level: &FactorLevel,
) -> Result<Vec<LevelEdit>> {
    match (&link.delay, level) {
        (DelayItem::Constant(value), _) => Ok(vec![LevelEdit::replace(
            value.span,
            written.value(value, level)?,
        )]),
        (DelayItem::Schedule(schedule), FactorLevel::Times(_)) => {
            let each = schedule
                .steps
                .iter()
                .map(|(_, delay)| Ok(LevelEdit::replace(delay.span, written.value(delay, level)?)));
            each.collect()
        }
        (DelayItem::Schedule(schedule), _) => {
            Ok(vec![LevelEdit::replace(schedule.span, level.to_string())])
        }
    }
}
