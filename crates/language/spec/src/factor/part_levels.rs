//! The edits that set properties of the measured parts to a level: stack, stack options, sizes of data units, pairs,
//! hosts, variables.

use super::level::FactorLevel;
use super::level_edit::LevelEdit;
use super::written_spec::WrittenSpec;
use crate::diagnostic::TextSpan;
use crate::token::TokenKind;
use crate::tree::{
    ClauseKind, FactorSide, OptionItem, OptionText, PartItem, SizeItem, SpecItem, SpecValue,
    Specification, StackItem,
};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use stackline_core::error::{Error, Result};
use stackline_core::plan::Composer;

/// Words of properties, for a hint when a factor's name is one of them misspelt.
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

fn specifications<'w>(written: &'w WrittenSpec<'_>) -> impl Iterator<Item = &'w Specification> {
    written.tree.items.iter().filter_map(|item| match item {
        SpecItem::Specification(specification) => Some(specification.as_ref()),
        _ => None,
    })
}

/// The parts that are measured: with a background composer only the first.
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

/// The stacks of an `over` clause and the clause's span; `None` if there is none.
fn written_stacks(clauses: &[crate::tree::Clause]) -> Option<(&[StackItem], TextSpan)> {
    clauses.iter().find_map(|clause| match &clause.kind {
        ClauseKind::Over(stacks) => Some((stacks.as_slice(), clause.span)),
        _ => None,
    })
}

/// The `over` clause of the whole specification, or of each measured part: its stacks and its span. Without a clause,
/// the part's span, behind which one can be written.
fn lists<'s>(specification: &'s Specification) -> Vec<(Option<&'s [StackItem]>, TextSpan)> {
    if let Some((stacks, span)) = written_stacks(&specification.clauses) {
        return vec![(Some(stacks), span)];
    }
    let of = |part: &'s PartItem| match written_stacks(&part.clauses) {
        Some((stacks, span)) => (Some(stacks), span),
        None => (None, part.span),
    };
    parts(specification).iter().map(of).collect()
}

/// The edits that replace the stacks of all measured parts.
pub(super) fn stack(written: &WrittenSpec<'_>, level: &FactorLevel) -> Result<Vec<LevelEdit>> {
    let FactorLevel::Text(text) = level else {
        return Err(Error::input("a stack cannot be multiplied")
            .hint("write levels, as in `stack = tcp, quic`"));
    };
    let all = specifications(written)
        .flat_map(lists)
        .map(|(stacks, span)| match stacks {
            Some(_) => LevelEdit::replace(span, format!("over {text}")),
            None => LevelEdit::behind(span, format!(" over {text}")),
        });
    Ok(all.collect())
}

/// The edits for the size of data units of all measured parts.
pub(super) fn size(written: &WrittenSpec<'_>, level: &FactorLevel) -> Result<Vec<LevelEdit>> {
    let mut edits = Vec::new();
    for part in specifications(written).flat_map(parts) {
        let Some(data) = &part.data else {
            return Err(Error::input("no data unit size is specified")
                .hint("write one, as in `rr 32*1000`"));
        };
        edits.push(match (&data.unit, level) {
            (SizeItem::Value(value), _) => {
                LevelEdit::replace(value.span, written.value(value, level)?)
            }
            (SizeItem::Drawn(drawn), FactorLevel::Text(text)) => {
                LevelEdit::replace(drawn.span, text.clone())
            }
            (SizeItem::Drawn(_), _) => {
                let hint = "write levels, as in `size = uniform(1, 100), uniform(1, 1000)`";
                return Err(Error::input("random sizes cannot be multiplied").hint(hint));
            }
        });
    }
    Ok(edits)
}

/// The edits for the number of pairs of all measured parts.
pub(super) fn clients(written: &WrittenSpec<'_>, level: &FactorLevel) -> Result<Vec<LevelEdit>> {
    let mut edits = Vec::new();
    for part in specifications(written).flat_map(parts) {
        edits.push(match (&part.replicas, level) {
            (Some(value), _) => LevelEdit::replace(value.span, written.value(value, level)?),
            (None, FactorLevel::Times(times)) => LevelEdit::before(part.span, format!("{times} ")),
            (None, _) => LevelEdit::before(part.span, format!("{level} ")),
        });
    }
    Ok(edits)
}

/// The edits for the host of one side of all measured parts.
pub(super) fn edit_host(
    written: &WrittenSpec<'_>,
    side: FactorSide,
    level: &FactorLevel,
) -> Result<Vec<LevelEdit>> {
    let word = if side == FactorSide::From {
        "from"
    } else {
        "to"
    };
    let FactorLevel::Text(text) = level else {
        return Err(Error::input("a host cannot be multiplied")
            .hint(format!("write levels, as in `{word} = a, b`")));
    };
    let mut edits = Vec::new();
    for part in specifications(written).flat_map(parts) {
        let host = if side == FactorSide::From {
            &part.from
        } else {
            &part.to
        };
        let Some(host) = host else {
            let message = format!("the specification names no host after `{word}`");
            return Err(
                Error::input(message).hint("write both hosts, as in `from a to b rr 32*1000`")
            );
        };
        edits.push(LevelEdit::replace(host.span, text.clone()));
    }
    Ok(edits)
}

/// The edits for a variable; if none has that name, for an option of the stack.
pub(super) fn edit_variable(
    written: &WrittenSpec<'_>,
    name: &str,
    level: &FactorLevel,
) -> Result<Vec<LevelEdit>> {
    let sweeps: Vec<_> = specifications(written)
        .flat_map(|item| &item.sweeps)
        .filter(|sweep| sweep.name.text == name)
        .collect();
    if sweeps.is_empty() {
        if let Some(meant) = KNOWN
            .iter()
            .find(|known| strsim::osa_distance(name, known) == 1)
        {
            return Err(Error::input(format!(
                "`{name}` is not in the specification and cannot be varied"
            ))
            .hint(format!("did you mean `{meant}`?")));
        }
        return option(written, name, level);
    }
    let mut edits = Vec::new();
    for sweep in sweeps {
        let text = match (level, sweep.values.as_slice()) {
            (FactorLevel::Times(times), [(_, _, span)]) => {
                let value = sweep_value(written, *span);
                written.value(&value, &FactorLevel::Times(*times))?
            }
            (FactorLevel::Times(_), _) => {
                let message =
                    format!("the variable `{name}` has several values and cannot be multiplied");
                return Err(
                    Error::input(message).hint(format!("write levels, as in `{name} = 1, 8`"))
                );
            }
            _ => level.to_string(),
        };
        edits.push(LevelEdit::replace(sweep.span, format!("{name} = {text}")));
    }
    Ok(edits)
}

/// The number of a sweep's value as it is written. Its unit is not read: the span includes the unit's text.
fn sweep_value(written: &WrittenSpec<'_>, span: TextSpan) -> SpecValue {
    let number = match written.kind(written.token_from(span.start)) {
        TokenKind::Number(number) => number,
        _ => 0.0,
    };
    SpecValue {
        base: crate::tree::Base::Number(number),
        unit: crate::tree::SpecUnit::None,
        span,
    }
}

/// The edits for an option of the stack, which the level `off` removes.
fn option(written: &WrittenSpec<'_>, name: &str, level: &FactorLevel) -> Result<Vec<LevelEdit>> {
    let mut edits = Vec::new();
    for (stacks, span) in specifications(written).flat_map(lists) {
        match stacks {
            None if is_off(level) => {}
            None => {
                edits.push(LevelEdit::behind(
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

/// Whether the level is the text `off`.
fn is_off(level: &FactorLevel) -> bool {
    matches!(level, FactorLevel::Text(text) if text == "off")
}

/// The text of an option at a level. A multiple is an error: it needs a written value.
fn setting(name: &str, level: &FactorLevel) -> Result<String> {
    match level {
        FactorLevel::Text(text) if text == "on" => Ok(name.to_string()),
        FactorLevel::Text(text) => Ok(format!("{name} = {text}")),
        _ => Err(Error::input(format!(
            "the specification has neither a variable nor an option `{name}` to multiply"
        ))
        .hint(format!("write levels, as in `{name} = 64 KiB, 1 MiB`"))),
    }
}

fn option_of(
    written: &WrittenSpec<'_>,
    stack: &StackItem,
    name: &str,
    level: &FactorLevel,
) -> Result<Option<LevelEdit>> {
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
            Some(first) => LevelEdit::before(first.name.span, format!("{new}, ")),
            None => LevelEdit::behind(stack.name.span, format!("({new})")),
        }));
    };
    let option = &stack.options[at];
    let whole = option.name.span.to(end_of(option));
    if is_off(level) {
        return Ok(Some(without(written, stack, at, whole)));
    }
    let text: String = match (&option.value, level) {
        (Some(OptionText::Value(value)), FactorLevel::Times(_)) => {
            format!("{name} = {}", written.value(value, level)?)
        }
        _ => setting(name, level)?,
    };
    Ok(Some(LevelEdit::replace(whole, text)))
}

/// The span of the option's last word.
fn end_of(option: &OptionItem) -> TextSpan {
    let value = option.value.as_ref();
    value.map_or(option.name.span, OptionText::span)
}

/// Removes an option with its comma, or with the parentheses if it is the only one. `at` is its index, `whole` its
/// span.
fn without(written: &WrittenSpec<'_>, stack: &StackItem, at: usize, whole: TextSpan) -> LevelEdit {
    let first = written.token_from(whole.start);
    let behind = written.token_from(whole.end);
    let last = at + 1 == stack.options.len();
    match (stack.options.len(), last) {
        (1, _) => LevelEdit::without(written.span(first - 1).to(written.span(behind))),
        (_, true) => LevelEdit::without(written.span(first - 1).to(whole)),
        // The comma and the space behind the option go too.
        _ => LevelEdit::without(TextSpan {
            end: written.span(behind + 1).start,
            ..whole
        }),
    }
}
