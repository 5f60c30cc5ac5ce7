//! What the measured parts of a measurement are at a level: stack, options, sizes, pairs, hosts, variables.

use super::edit::Edit;
use super::level::Level;
use super::written::Written;
use crate::diagnostic::Span;
use crate::token::Kind;
use crate::tree::{
    ClauseKind, Item, OptionItem, OptionText, PartItem, Side, SizeItem, Specification, StackItem,
    Value,
};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use stackline_core::error::{Error, Result};
use stackline_core::plan::Composer;

/// What can be varied of any specification.
const KNOWN: [&str; 9] = [
    "bandwidth",
    "delay",
    "loss",
    "queue",
    "mtu",
    "cpu",
    "buffer",
    "stack",
    "clients",
];

fn specifications<'w>(written: &'w Written<'_>) -> impl Iterator<Item = &'w Specification> {
    written.tree.items.iter().filter_map(|item| match item {
        Item::Specification(specification) => Some(specification.as_ref()),
        _ => None,
    })
}

/// The parts that are measured.
fn parts(specification: &Specification) -> &[PartItem] {
    let background = matches!(
        specification.composer,
        Composer::Background | Composer::PriorityBackground
    );
    let measured = if background {
        1
    } else {
        specification.parts.len()
    };
    &specification.parts[..measured.min(specification.parts.len())]
}

/// The stacks of a list, and where the list stands; `None` where none is written.
fn written_stacks(clauses: &[crate::tree::Clause]) -> Option<(&[StackItem], Span)> {
    clauses.iter().find_map(|clause| match &clause.kind {
        ClauseKind::Over(stacks) => Some((stacks.as_slice(), clause.span)),
        _ => None,
    })
}

/// Where the stacks of each measured part are said, or could be.
fn lists<'s>(specification: &'s Specification) -> Vec<(Option<&'s [StackItem]>, Span)> {
    if let Some((stacks, span)) = written_stacks(&specification.clauses) {
        return vec![(Some(stacks), span)];
    }
    let of = |part: &'s PartItem| match written_stacks(&part.clauses) {
        Some((stacks, span)) => (Some(stacks), span),
        None => (None, part.span),
    };
    parts(specification).iter().map(of).collect()
}

/// The stack.
pub(super) fn stack(written: &Written<'_>, level: &Level) -> Result<Vec<Edit>> {
    let Level::Text(text) = level else {
        return Err(Error::input("there are no multiples of a stack")
            .hint("write levels, as in `stack = tcp, quic`"));
    };
    let all = specifications(written)
        .flat_map(lists)
        .map(|(stacks, span)| match stacks {
            Some(_) => Edit::replace(span, format!("over {text}")),
            None => Edit::behind(span, format!(" over {text}")),
        });
    Ok(all.collect())
}

/// The size of data units.
pub(super) fn size(written: &Written<'_>, level: &Level) -> Result<Vec<Edit>> {
    let mut edits = Vec::new();
    for part in specifications(written).flat_map(parts) {
        let Some(data) = &part.data else {
            return Err(Error::input("no size of data units is written")
                .hint("write one, as in `rr 32*1000`"));
        };
        edits.push(match (&data.unit, level) {
            (SizeItem::Value(value), _) => Edit::replace(value.span, written.value(value, level)?),
            (SizeItem::Drawn(drawn), Level::Text(text)) => Edit::replace(drawn.span, text.clone()),
            (SizeItem::Drawn(_), _) => {
                let hint = "write levels, as in `size = uniform(1, 100), uniform(1, 1000)`";
                return Err(
                    Error::input("there are no multiples of sizes that are drawn").hint(hint),
                );
            }
        });
    }
    Ok(edits)
}

/// The number of pairs.
pub(super) fn clients(written: &Written<'_>, level: &Level) -> Result<Vec<Edit>> {
    let mut edits = Vec::new();
    for part in specifications(written).flat_map(parts) {
        edits.push(match (&part.replicas, level) {
            (Some(value), _) => Edit::replace(value.span, written.value(value, level)?),
            (None, Level::Times(times)) => Edit::before(part.span, format!("{times} ")),
            (None, _) => Edit::before(part.span, format!("{level} ")),
        });
    }
    Ok(edits)
}

/// The host of one side.
pub(super) fn place(written: &Written<'_>, side: Side, level: &Level) -> Result<Vec<Edit>> {
    let word = if side == Side::From { "from" } else { "to" };
    let Level::Text(text) = level else {
        return Err(Error::input("there are no multiples of a host")
            .hint(format!("write levels, as in `{word} = a, b`")));
    };
    let mut edits = Vec::new();
    for part in specifications(written).flat_map(parts) {
        let host = if side == Side::From {
            &part.from
        } else {
            &part.to
        };
        let Some(host) = host else {
            let message = format!("the specification names no host behind `{word}`");
            return Err(Error::input(message).hint("write both, as in `from a to b rr 32*1000`"));
        };
        edits.push(Edit::replace(host.span, text.clone()));
    }
    Ok(edits)
}

/// A variable, else an option of the stack.
pub(super) fn named(written: &Written<'_>, name: &str, level: &Level) -> Result<Vec<Edit>> {
    let sweeps: Vec<_> = specifications(written)
        .flat_map(|item| &item.sweeps)
        .filter(|sweep| sweep.name.text == name)
        .collect();
    if sweeps.is_empty() {
        if let Some(meant) = KNOWN
            .iter()
            .find(|known| strsim::osa_distance(name, known) == 1)
        {
            return Err(Error::input(format!("there is no `{name}` to vary"))
                .hint(format!("did you mean `{meant}`?")));
        }
        return option(written, name, level);
    }
    let mut edits = Vec::new();
    for sweep in sweeps {
        let text = match (level, sweep.values.as_slice()) {
            (Level::Times(times), [(_, _, span)]) => {
                let value = sweep_value(written, *span);
                written.value(&value, &Level::Times(*times))?
            }
            (Level::Times(_), _) => {
                let message = format!(
                    "the variable `{name}` has several values, of which there is no multiple"
                );
                return Err(
                    Error::input(message).hint(format!("write levels, as in `{name} = 1, 8`"))
                );
            }
            _ => level.to_string(),
        };
        edits.push(Edit::replace(sweep.span, format!("{name} = {text}")));
    }
    Ok(edits)
}

/// A value of a sweep as it is written.
fn sweep_value(written: &Written<'_>, span: Span) -> Value {
    let number = match written.kind(written.token_from(span.start)) {
        Kind::Number(number) => number,
        _ => 0.0,
    };
    Value {
        base: crate::tree::Base::Number(number),
        unit: crate::tree::Unit::None,
        span,
    }
}

/// An option of the stack: set, or with `off` left out.
fn option(written: &Written<'_>, name: &str, level: &Level) -> Result<Vec<Edit>> {
    let mut edits = Vec::new();
    for (stacks, span) in specifications(written).flat_map(lists) {
        match stacks {
            None if is_off(level) => {}
            None => {
                edits.push(Edit::behind(
                    span,
                    format!(" over tcp({})", setting(name, level)?),
                ));
            }
            Some(stacks) => {
                for stack in stacks {
                    edits.extend(option_of(written, stack, name, level)?);
                }
            }
        }
    }
    Ok(edits)
}

fn is_off(level: &Level) -> bool {
    matches!(level, Level::Text(text) if text == "off")
}

/// An option as it is written at a level; a multiple needs one that is there.
fn setting(name: &str, level: &Level) -> Result<String> {
    match level {
        Level::Text(text) if text == "on" => Ok(name.to_string()),
        Level::Text(text) => Ok(format!("{name} = {text}")),
        _ => Err(Error::input(format!(
            "neither a variable nor an option `{name}` is written of which there were a multiple"
        ))
        .hint(format!("write levels, as in `{name} = 64 KiB, 1 MiB`"))),
    }
}

fn option_of(
    written: &Written<'_>,
    stack: &StackItem,
    name: &str,
    level: &Level,
) -> Result<Option<Edit>> {
    let at = stack
        .options
        .iter()
        .position(|option| option.name.text == name);
    let Some(at) = at else {
        if is_off(level) {
            return Ok(None);
        }
        let new = setting(name, level)?;
        return Ok(Some(match stack.options.first() {
            Some(first) => Edit::before(first.name.span, format!("{new}, ")),
            None => Edit::behind(stack.name.span, format!("({new})")),
        }));
    };
    let option = &stack.options[at];
    let whole = option.name.span.to(end_of(option));
    if is_off(level) {
        return Ok(Some(without(written, stack, at, whole)));
    }
    let text: String = match (&option.value, level) {
        (Some(OptionText::Value(value)), Level::Times(_)) => {
            format!("{name} = {}", written.value(value, level)?)
        }
        _ => setting(name, level)?,
    };
    Ok(Some(Edit::replace(whole, text)))
}

fn end_of(option: &OptionItem) -> Span {
    match &option.value {
        Some(OptionText::Value(value)) => value.span,
        Some(OptionText::Word(word)) => word.span,
        None => option.name.span,
    }
}

/// Takes an option away with its comma, or with the parentheses where it is the only one.
fn without(written: &Written<'_>, stack: &StackItem, at: usize, whole: Span) -> Edit {
    let first = written.token_from(whole.start);
    let behind = written.token_from(whole.end);
    let last = at + 1 == stack.options.len();
    match (stack.options.len(), last) {
        (1, _) => Edit::without(written.span(first - 1).to(written.span(behind))),
        (_, true) => Edit::without(written.span(first - 1).to(whole)),
        // With the comma and the space behind it.
        _ => Edit::without(Span {
            end: written.span(behind + 1).start,
            ..whole
        }),
    }
}
