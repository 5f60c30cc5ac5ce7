//! Checks stacks and their options against the tables of the stacks that exist.

use super::checker::Checker;
use super::evaluate::Bindings;
use crate::diagnostic::{Diagnostic, DiagnosticReport};
use crate::spelling::fold;
use crate::tree::{Base, OptionItem, OptionText, PartItem, SpecUnit, SpecValue, StackItem};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use stackline_core::catalogue::{
    Available, OptionKind, OptionTable, OptionValue, StackTable, describe_exclusion,
    describe_missing_option, describe_required_option, suggest_completion,
};
use stackline_core::plan::Stack;
use stackline_core::procedure::{OperationCall, PairSide, Procedure};

impl Checker<'_> {
    /// Checks that the initiator does not wait for data that the stack never sends.
    pub(crate) fn answered(&mut self, item: &PartItem, procedure: &Procedure, table: &StackTable) {
        if !table.one_way {
            return;
        }
        let calls = procedure.calls(PairSide::Initiator);
        let waits = |call: &&OperationCall| {
            matches!(
                call,
                OperationCall::StartBulkGet
                    | OperationCall::AwaitDataIndication(_)
                    | OperationCall::RpcCall(..)
            )
        };
        if let Some(call) = calls.into_iter().find(waits) {
            let message = format!("over `{}`, the responder never sends", table.name);
            let what = format!("{} waits for the responder", call.name());
            let diagnostic = Diagnostic::error(item.application.span, message, what);
            self.report.push(
                diagnostic
                    .hint("send from the initiator, as `bulk_put` does, or choose another stack"),
            );
        }
    }
}

/// The table of a stack that is written, or a diagnostic if there is none.
pub(crate) fn table<'t>(
    item: &StackItem,
    stacks: &'t [StackTable],
) -> Result<&'t StackTable, Diagnostic> {
    find(&item.name.text, stacks).ok_or_else(|| {
        let message = format!("unknown stack `{}`", item.name.text);
        let hint = format!(
            "the stacks are {}",
            listed(stacks.iter().map(|table| table.name))
        );
        Diagnostic::error(item.name.span, message, "expected a stack name").did_you_mean(
            &item.name.text,
            stacks.iter().map(|table| table.name),
            hint,
        )
    })
}

/// The table of that name.
pub(crate) fn find<'t>(name: &str, stacks: &'t [StackTable]) -> Option<&'t StackTable> {
    stacks.iter().find(|table| fold(table.name) == fold(name))
}

fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        "none".to_string()
    } else {
        names.join(", ")
    }
}

/// Reports unknown names, wrong kinds and double options. `elsewhere` is another world, which may take what this one does not.
pub(crate) fn verify(
    item: &StackItem,
    stacks: &[StackTable],
    elsewhere: Option<&Available<'_>>,
    report: &mut DiagnosticReport,
) {
    let Err(mut diagnostic) = resolve(item, stacks, Bindings(&[]), report) else {
        return;
    };
    let hint = diagnostic.hint.get_or_insert_default();
    // A word that is nearly right is no word of another world, unless it is exactly the name of a stack there.
    let is_there = |there: &Available<'_>| find(&item.name.text, there.stacks).is_some();
    let is_named = find(&item.name.text, stacks).is_none() && elsewhere.is_some_and(is_there);
    let there = elsewhere.filter(|_| is_named || !hint.starts_with("did you mean"));
    if let Some(there) = there.filter(|there| takes(item, there)) {
        if is_named {
            hint.clear();
            diagnostic.message = format!("`{}` does not run in this world", item.name.text);
            diagnostic.label = "a stack of another world".to_string();
        }
        let (first, world) = (if hint.is_empty() { "" } else { "; " }, there.can.world);
        hint.push_str(&format!(
            "{first}the {world} world supports it: `in {world}`, or `--in {world}`"
        ));
    }
    diagnostic.hint = diagnostic.hint.filter(|hint| !hint.is_empty());
    report.push(diagnostic);
}

/// Whether a world has this stack with these options.
fn takes(item: &StackItem, there: &Available<'_>) -> bool {
    resolve(
        item,
        there.stacks,
        Bindings(&[]),
        &mut DiagnosticReport::default(),
    )
    .is_ok()
}

/// The stack with its options, in the form of a plan. Every mistake but the last is reported here.
pub(crate) fn resolve(
    item: &StackItem,
    stacks: &[StackTable],
    bindings: Bindings<'_>,
    report: &mut DiagnosticReport,
) -> Result<Stack, Diagnostic> {
    let table = table(item, stacks)?;
    let mut options: BTreeMap<String, OptionValue> = BTreeMap::new();
    let mut failed: Option<Diagnostic> = None;
    let mut unnamed = table.required.iter();
    for written in &item.options {
        let known = match is_unnamed(written) {
            true => next_unnamed(written, table, unnamed.next().copied()),
            false => named(written, table),
        };
        let value = known.and_then(|option| {
            let value = one(written, option, table.name, bindings)?;
            Ok((option.name, value))
        });
        let mistake = match value {
            Ok((name, value)) => options.insert(name.to_string(), value).map(|_| {
                let message = format!("the option `{name}` is given twice");
                Diagnostic::error(written.name.span, message, "already given")
                    .hint("keep one of them")
            }),
            Err(mistake) => Some(mistake),
        };
        if let Some(mistake) = mistake
            && let Some(earlier) = failed.replace(mistake)
        {
            report.push(earlier);
        }
    }
    if let Some(mistake) = failed {
        return Err(mistake);
    }
    let stack = table.stack(options);
    match together(item, table, &stack) {
        None => Ok(stack),
        Some(mistake) => Err(mistake),
    }
}

/// The diagnostic for options that exclude each other, for one that is missing, or for one that has no effect without another.
fn together(item: &StackItem, table: &StackTable, stack: &Stack) -> Option<Diagnostic> {
    // An entry may have a word behind its name.
    let name = |entry: &str| fold(entry.split(' ').next().unwrap_or(entry));
    let last = |names: &[String]| {
        let written = item
            .options
            .iter()
            .rev()
            .find(|option| names.contains(&fold(&option.name.text)));
        written.map_or(item.name.span, |option| option.name.span)
    };
    if let Some((one, other)) = table.conflict(stack) {
        let span = last(&[name(one), name(other)]);
        let diagnostic = Diagnostic::error(
            span,
            describe_exclusion(table.name, one, other),
            "use either this one or the other",
        );
        return Some(diagnostic.hint("keep one of them"));
    }
    if let Some(missing) = table.missing(stack) {
        let message = describe_required_option(table.name, missing);
        let diagnostic = Diagnostic::error(item.name.span, message, "expected it in this stack");
        return Some(diagnostic.hint(format!("write `{}`", table.form())));
    }
    let (one, other) = table.lack(stack)?;
    let diagnostic = Diagnostic::error(
        last(&[name(one)]),
        describe_missing_option(one, other),
        "this option needs the other one",
    );
    Some(diagnostic.hint(suggest_completion(one, other)))
}

/// Whether it is a text without a name.
const fn is_unnamed(item: &OptionItem) -> bool {
    item.name.text.is_empty()
}

/// The option that a text without a name stands for: the next one that has to be written.
fn next_unnamed(
    item: &OptionItem,
    table: &StackTable,
    next: Option<&'static str>,
) -> Result<&'static OptionTable, Diagnostic> {
    next.and_then(|name| table.option(name)).ok_or_else(|| {
        let message = match table.required.len() {
            0 => format!("the stack `{}` takes no text without a name", table.name),
            _ => format!(
                "the stack `{}` takes no further text without a name",
                table.name
            ),
        };
        let hint = format!(
            "its options: {}",
            listed(table.options.iter().map(|o| o.name))
        );
        Diagnostic::error(item.name.span, message, "expected an option of this stack").hint(hint)
    })
}

/// The option of the written name.
fn named(item: &OptionItem, table: &StackTable) -> Result<&'static OptionTable, Diagnostic> {
    let name = &item.name;
    let mut options = table.options.iter();
    if let Some(option) = options.find(|option| fold(option.name) == fold(&name.text)) {
        return Ok(option);
    }
    let message = format!("the stack `{}` has no option `{}`", table.name, name.text);
    let hint = match (table.options, table.required) {
        ([], _) => format!("write `{}` alone; it has no options", table.name),
        (_, [_, ..]) if item.value.is_none() => {
            format!("write texts in quotation marks, as in `{}`", table.form())
        }
        (options, _) => format!(
            "its options: {}",
            listed(options.iter().map(|option| option.name))
        ),
    };
    let diagnostic = Diagnostic::error(name.span, message, "expected an option of this stack");
    Err(diagnostic.did_you_mean(
        &name.text,
        table.options.iter().map(|option| option.name),
        hint,
    ))
}

/// The value that is written for an option of this stack.
fn one(
    item: &OptionItem,
    option: &OptionTable,
    stack: &str,
    bindings: Bindings<'_>,
) -> Result<OptionValue, Diagnostic> {
    Ok(match (&item.value, option.kind) {
        (None, OptionKind::Flag) => OptionValue::Set,
        (None, _) => return Err(wrong(option, item, "needs a value")),
        (Some(value), OptionKind::Flag) => {
            let off = match value {
                OptionText::Word(word) | OptionText::Quoted(word) => {
                    matches!(fold(&word.text).as_str(), "off" | "no" | "false")
                }
                OptionText::Value(value) => matches!(value.base, Base::Number(0.0)),
            };
            let mistake = wrong(option, item, "takes no value");
            return Err(if off {
                mistake.hint(format!("omit `{}` to turn it off", option.name))
            } else {
                mistake
            });
        }
        (Some(OptionText::Value(value)), _) => number(stack, option, item, value, bindings)?,
        (Some(OptionText::Quoted(text)), OptionKind::Text(_)) => {
            let value = OptionValue::Text(text.text.clone());
            if !option.kind.takes(&value) {
                return Err(wrong(option, item, "needs a text within its bounds"));
            }
            value
        }
        (Some(OptionText::Word(word) | OptionText::Quoted(word)), OptionKind::Name) => {
            OptionValue::Word(word.text.clone())
        }
        (Some(OptionText::Word(word) | OptionText::Quoted(word)), OptionKind::Word(words)) => {
            let Some(known) = words.iter().find(|known| fold(known) == fold(&word.text)) else {
                let message = format!(
                    "`{}` is not a value of the option `{}`",
                    word.text, option.name
                );
                let hint = format!("its values: {}", listed(words.iter().copied()));
                return Err(
                    Diagnostic::error(word.span, message, "expected one of its values")
                        .did_you_mean(&word.text, words.iter().copied(), hint),
                );
            };
            OptionValue::Word((*known).to_string())
        }
        (Some(OptionText::Word(_) | OptionText::Quoted(_)), _) => {
            return Err(wrong(option, item, "needs a different kind of value"));
        }
    })
}

fn number(
    stack: &str,
    option: &OptionTable,
    item: &OptionItem,
    value: &SpecValue,
    bindings: Bindings<'_>,
) -> Result<OptionValue, Diagnostic> {
    let kind = option.kind;
    let what = format!("the option `{}`", option.name);
    let bounds =
        |mistake: Diagnostic| mistake.hint(format!("`{}` takes {}", option.name, kind.values()));
    // Before variables have values only their place is checked.
    let open = matches!(&value.base, Base::Variable(name) if bindings.get(name).is_none());
    match (kind, value.unit) {
        (OptionKind::Bytes(..) | OptionKind::Number(..), _) if open => Ok(OptionValue::Number(1)),
        (OptionKind::Bytes(least, most), SpecUnit::None | SpecUnit::Size(_)) => Ok(
            OptionValue::Number(bindings.whole(value, &what, least, most).map_err(bounds)?),
        ),
        (OptionKind::Number(least, most), SpecUnit::None) => Ok(OptionValue::Number(
            bindings.whole(value, &what, least, most).map_err(bounds)?,
        )),
        (OptionKind::Time, SpecUnit::None | SpecUnit::Time(_)) => {
            Ok(OptionValue::Seconds(bindings.number(value)))
        }
        _ if matches!(value.base, Base::Variable(_)) => Err(swept_word(stack, option, item, value)),
        _ => Err(wrong(option, item, "needs a different kind of value")),
    }
}

/// The diagnostic for a variable where a word or a text is expected.
fn swept_word(
    stack: &str,
    option: &OptionTable,
    item: &OptionItem,
    value: &SpecValue,
) -> Diagnostic {
    let name = option.name;
    let (what, one, other) = match option.kind {
        OptionKind::Word([one, other, ..]) => ("word", *one, *other),
        OptionKind::Text(_) => ("text", "\"a\"", "\"b\""),
        _ => ("word", "cubic", "bbr"),
    };
    let message = format!("the option `{name}` takes a {what}, and {what}s cannot be swept");
    Diagnostic::error(item.name.span.to(value.span), message, "a variable stands for numbers")
        .hint(format!("list the stack once for each {what}: `over {stack}({name} = {one}), {stack}({name} = {other})`"))
}

fn wrong(option: &OptionTable, item: &OptionItem, what: &str) -> Diagnostic {
    let value = item.value.as_ref().map(OptionText::span);
    let span = value.map_or(item.name.span, |value| item.name.span.to(value));
    let name = option.name;
    let such_as = match option.kind {
        OptionKind::Flag => format!("write `{name}` alone"),
        OptionKind::Bytes(..) => format!("write a size, as in `{name} = 64 KiB`"),
        OptionKind::Number(least, most) => {
            format!("write a whole number from {least} to {most}, as in `{name} = {least}`")
        }
        OptionKind::Time => format!("write a time, as in `{name} = 5 ms`"),
        OptionKind::Word(words) => format!("write one of {}", listed(words.iter().copied())),
        OptionKind::Name => format!("write a name, as in `{name} = cubic`"),
        OptionKind::Text(most) => format!(
            "write a text of 1 to {most} bytes in quotation marks, as in `{name} = \"...\"`"
        ),
    };
    Diagnostic::error(span, format!("the option `{name}` {what}"), "this option").hint(such_as)
}
