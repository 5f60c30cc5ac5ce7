//! The edits that set processor speeds and shares of hosts, or buffers of switches, to a level.

use super::level::FactorLevel;
use super::level_edit::LevelEdit;
use super::written_spec::WrittenSpec;
use crate::token::TokenKind;
use crate::tree::{NetworkItem, NodeItem, SpecItem, SpecValue, SwitchItem, Word};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use stackline_core::error::{Error, Result};

fn networks<'w>(written: &'w WrittenSpec<'_>) -> impl Iterator<Item = &'w NetworkItem> {
    written.tree.items.iter().filter_map(|item| {
        if let SpecItem::Network(network) = item {
            Some(network)
        } else {
            None
        }
    })
}

/// The first 12 names, for a hint.
fn list<'n>(names: impl Iterator<Item = &'n Word>) -> String {
    names
        .take(12)
        .map(|word| format!("`{}`", word.text))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The edits for the processor speed of one host, or of all. Only hosts whose processor takes time are meant: those
/// with a written cost of copying or work, and the hosts `working`, which the caller gives work.
pub(super) fn cpu(
    written: &WrittenSpec<'_>,
    host: Option<&str>,
    level: &FactorLevel,
    working: &[&str],
) -> Result<Vec<LevelEdit>> {
    let items: Vec<&NodeItem> = networks(written)
        .flat_map(|network| &network.hosts)
        .collect();
    let names = |item: &NodeItem| {
        item.names
            .iter()
            .any(|word| host.is_none_or(|host| word.text == host))
    };
    let chosen: Vec<&&NodeItem> = items.iter().filter(|item| names(item)).collect();
    if chosen.is_empty() {
        return Err(no_host(written, host));
    }
    let works = |item: &NodeItem| item.names.iter().any(|word| working.contains(&&*word.text));
    let costs = |item: &&&NodeItem| item.copy.or(item.work).is_some() || works(item);
    let with_costs: Vec<&&NodeItem> = chosen.iter().filter(|item| costs(item)).copied().collect();
    if with_costs.is_empty() {
        let message = match host {
            Some(host) => {
                format!("processing on `{host}` takes no time: its cost is not specified")
            }
            None => {
                "processing on the network's hosts takes no time: its cost is not specified".into()
            }
        };
        return Err(Error::input(message)
            .hint(
                "specify the cost of program work, as in `host a { work 0.1 ms per message; }`, or of packet processing, as in `copy 20 us per packet, 1 ns per byte;`; for real and emulated processors, use `share of a = 50%, 100%`",
            ));
    }
    let mut edits = Vec::new();
    for item in with_costs {
        let only = item
            .names
            .iter()
            .find(|word| host.is_some_and(|host| word.text == host));
        edits.extend(edit_property(
            written,
            &item.names,
            only,
            &NodeProperty {
                word: "cpu",
                value: item.cpu.as_ref(),
                default: "1",
            },
            level,
        )?);
    }
    Ok(edits)
}

fn no_host(written: &WrittenSpec<'_>, host: Option<&str>) -> Error {
    let names = list(networks(written).flat_map(NetworkItem::host_names));
    match host {
        Some(host) if !names.is_empty() => Error::input(format!("no network has a host `{host}`"))
            .hint(format!("known hosts: {names}")),
        _ => Error::input("no declared network has hosts to vary")
            .hint("declare a network with hosts and add `across NAME`; only simulated hosts have processors to vary"),
    }
}

/// The edits for the buffer of one switch, or of all switches. A switch without a written buffer is an error.
pub(super) fn buffer(
    written: &WrittenSpec<'_>,
    switch: Option<&str>,
    level: &FactorLevel,
) -> Result<Vec<LevelEdit>> {
    let items: Vec<&SwitchItem> = networks(written)
        .flat_map(|network| &network.switches)
        .collect();
    let named = |item: &&SwitchItem| switch.is_none_or(|switch| item.name.text == switch);
    let chosen: Vec<&SwitchItem> = items.iter().copied().filter(named).collect();
    if chosen.is_empty() {
        let names = list(items.iter().map(|item| &item.name));
        let message = format!(
            "no network has {}",
            switch.map_or("a switch".into(), |name| format!("a switch `{name}`"))
        );
        let hint = if names.is_empty() {
            "declare one, as in `switch edge { buffer 64 KiB; }`".into()
        } else {
            format!("known switches: {names}")
        };
        return Err(Error::input(message).hint(hint));
    }
    let mut edits: Vec<LevelEdit> = Vec::new();
    let mut done = Vec::new();
    for item in chosen {
        let Some(value) = item.buffer.as_ref() else {
            let message = format!(
                "the buffer size of the switch `{}` is not specified",
                item.name.text
            );
            return Err(
                Error::input(message).hint("specify it, as in `switch edge { buffer 64 KiB; }`")
            );
        };
        // Switches that are declared together share what stands in the braces.
        if done.contains(&value.span) {
            continue;
        }
        done.push(value.span);
        let together = items.iter().filter(|other| {
            other
                .buffer
                .as_ref()
                .is_some_and(|its| its.span == value.span)
        });
        let names: Vec<Word> = together.map(|other| other.name.clone()).collect();
        let only = names
            .iter()
            .find(|word| switch.is_some_and(|switch| word.text == switch));
        edits.extend(edit_property(
            written,
            &names,
            only,
            &NodeProperty {
                word: "buffer",
                value: Some(value),
                default: "",
            },
            level,
        )?);
    }
    Ok(edits)
}

/// The edits for the processor share of one host, or of all: hosts of networks, and hosts declared outside networks.
pub(super) fn share(
    written: &WrittenSpec<'_>,
    host: Option<&str>,
    level: &FactorLevel,
) -> Result<Vec<LevelEdit>> {
    const ALL: &str = "100%";
    let is_meant = |names: &[Word]| {
        names
            .iter()
            .any(|word| host.is_none_or(|host| word.text == host))
    };
    let mut edits = Vec::new();
    for item in networks(written)
        .flat_map(|network| &network.hosts)
        .filter(|item| is_meant(&item.names))
    {
        let only = item
            .names
            .iter()
            .find(|word| host.is_some_and(|host| word.text == host));
        edits.extend(edit_property(
            written,
            &item.names,
            only,
            &NodeProperty {
                word: "share",
                value: item.share.as_ref(),
                default: ALL,
            },
            level,
        )?);
    }
    let machines = written.tree.items.iter().filter_map(|item| {
        if let SpecItem::Host(host) = item {
            Some(host)
        } else {
            None
        }
    });
    for item in machines.filter(|item| is_meant(&item.names)) {
        if host.is_some() && item.names.len() > 1 {
            let message = "the host is declared together with others";
            return Err(Error::input(message)
                .hint("write a separate declaration for the host whose share is varied"));
        }
        let text = at_level(written, item.share.as_ref(), ALL, level)?;
        edits.extend(match (&item.share, item.names.last()) {
            (Some(value), _) => Some(LevelEdit::replace(value.span, text)),
            (None, last) => last.map(|last| LevelEdit::behind(last.span, format!(" share {text}"))),
        });
    }
    if edits.is_empty() {
        let error = no_host(written, host);
        return Err(error.hint("declare one, as in `host b;` or in a network"));
    }
    Ok(edits)
}

/// The text of a property at a level; `default` is the value that holds where none is written.
fn at_level(
    written: &WrittenSpec<'_>,
    value: Option<&SpecValue>,
    default: &str,
    level: &FactorLevel,
) -> Result<String> {
    Ok(match (value, level) {
        (Some(value), _) => written.value(value, level)?,
        (None, FactorLevel::Times(times)) => {
            let digits = default.trim_end_matches('%');
            format!(
                "{}{}",
                digits.parse().unwrap_or(1.0) * times,
                default.get(digits.len()..).unwrap_or("")
            )
        }
        (None, _) => format!("{level}"),
    })
}

/// A property of hosts or switches as it is written.
struct NodeProperty<'t> {
    word: &'t str,
    value: Option<&'t SpecValue>,
    /// The value that holds where none is written.
    default: &'t str,
}

/// The edits for a property in the braces behind `names`: for all of them, or for the one named `only`, which then
/// gets a declaration of its own.
fn edit_property(
    written: &WrittenSpec<'_>,
    names: &[Word],
    only: Option<&Word>,
    property: &NodeProperty<'_>,
    level: &FactorLevel,
) -> Result<Vec<LevelEdit>> {
    let NodeProperty {
        word,
        value,
        default,
    } = *property;
    names
        .iter()
        .try_for_each(|name| written.is_of_this_text(name))?;
    only.map_or(Ok(()), |only| written.stands_alone(only))?;
    let text = at_level(written, value, default, level)?;
    let Some(last) = names.last() else {
        return Ok(Vec::new());
    };
    let open = written.token_from(last.span.end);
    let is_bare = written.kind(open) == TokenKind::Semicolon;
    let Some(only) = only.filter(|_| names.len() > 1) else {
        return Ok(vec![match value {
            Some(value) => LevelEdit::replace(value.span, text),
            None if is_bare => {
                LevelEdit::replace(written.span(open), format!(" {{ {word} {text}; }}"))
            }
            None => LevelEdit::behind(written.span(open), format!(" {word} {text};")),
        }]);
    };
    // One of several that share a block: it gets a declaration of its own with a copy of the block and its own value.
    let close = (open..)
        .find(|token| matches!(written.kind(*token), TokenKind::CloseBrace | TokenKind::End))
        .unwrap_or(open);
    let body = written.text(written.span(open).to(written.span(close)));
    let start = written.span(open).start;
    let own = match value {
        Some(value) => {
            let (from, to) = (value.span.start - start, value.span.end - start);
            format!(
                "{}{text}{}",
                body.get(..from).unwrap_or(""),
                body.get(to..).unwrap_or("")
            )
        }
        None if is_bare => format!("{{ {word} {text}; }}"),
        None => format!("{{ {word} {text};{}", body.get(1..).unwrap_or("")),
    };
    let first = written.token_from(names[0].span.start);
    let keyword = written.span(first.saturating_sub(1));
    let at = written.token_from(only.span.start);
    // The name is removed with the comma behind it, or the comma before it if it is the last.
    let gone = if only.span == last.span {
        written.span(at - 1).to(only.span)
    } else {
        only.span.to(written.span(at + 1))
    };
    let word = String::from(written.text(keyword));
    Ok(vec![
        LevelEdit::before(keyword, format!("{word} {} {own}\n", only.text)),
        LevelEdit::without(gone),
    ])
}
