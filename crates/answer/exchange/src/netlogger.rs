//! Reads NetLogger's lines of `name=value` in both forms: ULM (Universal Logger Message, draft-abela-ulm), with `DATE`, `HOST`, `PROG`
//! and `NL.EVNT`, and BP (the later "best practices"), with `ts` and `event`.
//!
//! A value with blanks is quoted, and `\"` in it is a quotation mark; there is no other escape. The event's first data field is what
//! identifies the unit (the field `guid`, or the first whose name is or ends in `id` behind a separator); the fields follow as
//! `name=value` in their order. The event's name is redacted like all foreign names, the data is not. Fields that a line lacks stay
//! absent; lines that are not of the form are counted.

use crate::{Imported, keyword_of_others, moment};
use stackline_events::EventValue;
use stackline_redact::foreign_names;
use std::borrow::Cow;

/// The two forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetLoggerForm {
    /// `DATE=20000330112320.957943 HOST=h PROG=p LVL=Usage NL.EVNT=X SIZE=49332`.
    Ulm,
    /// `ts=2010-04-19T18:26:43.123456Z event=x level=Info key=value`.
    Bp,
}

/// A field: its name and its value.
type NetLoggerField<'l> = (&'l str, Cow<'l, str>);

/// The longest line, in bytes.
const LONGEST: usize = 1 << 20;

/// The form of a log, from its first line that is neither empty nor a comment.
#[must_use]
pub fn recognise(first: &[u8]) -> Option<NetLoggerForm> {
    let text = String::from_utf8_lossy(first);
    let line = text.lines().find(|line| says_something(line))?;
    // The line may be cut off at the end of `first`.
    let names: Vec<&str> = line
        .split_ascii_whitespace()
        .filter_map(|word| Some(word.split_once('=')?.0))
        .collect();
    let has = |name: &str| names.iter().any(|other| other.eq_ignore_ascii_case(name));
    if names.first()?.eq_ignore_ascii_case("DATE") && has("NL.EVNT") {
        return Some(NetLoggerForm::Ulm);
    }
    (names.first()? == &"ts" && has("event")).then_some(NetLoggerForm::Bp)
}

/// Reads a log. Lines that are not of the form become mistakes. With `contents`, event names are kept unredacted.
#[must_use]
pub fn read(bytes: &[u8], form: NetLoggerForm, contents: bool) -> Imported {
    let mut imported = Imported::default();
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let text = match std::str::from_utf8(line) {
            Ok(text) if line.len() <= LONGEST => text,
            Ok(_) => {
                imported.mistake(format!("line {} is longer than 1 MiB", number + 1));
                continue;
            }
            Err(_) => {
                imported.mistake(format!("line {} is not UTF-8", number + 1));
                continue;
            }
        };
        if says_something(text)
            && let Err(what) = take(text, form, contents, &mut imported)
        {
            imported.mistake(format!("line {}: {what}", number + 1));
        }
    }
    imported
}

/// Whether a line is neither empty nor a comment.
fn says_something(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#')
}

/// Adds the event of a line.
fn take(
    line: &str,
    form: NetLoggerForm,
    contents: bool,
    imported: &mut Imported,
) -> Result<(), String> {
    let fields = fields(line)?;
    let [date, event] = match form {
        NetLoggerForm::Ulm => ["DATE", "NL.EVNT"],
        NetLoggerForm::Bp => ["ts", "event"],
    };
    let find = |name: &str| {
        fields
            .iter()
            .find(|field| field.0.eq_ignore_ascii_case(name))
            .map(|field| &field.1)
    };
    let at = find(date).ok_or_else(|| format!("{date} is missing"))?;
    let name = find(event)
        .filter(|name| !name.is_empty())
        .ok_or_else(|| format!("{event} is missing"))?;
    let name = if contents {
        name.clone().into_owned()
    } else {
        foreign_names::redact_foreign_name(name)
    };
    let moment = match form {
        NetLoggerForm::Ulm => of_digits(at),
        NetLoggerForm::Bp => moment::of_rfc3339(at).or_else(|| of_seconds(at)),
    };
    let at_ns = moment
        .and_then(|ns| i64::try_from(ns).ok())
        .and_then(|ns| u64::try_from(ns).ok());
    let at_ns = at_ns.ok_or_else(|| format!("{date}={at} is not a time between 1970 and 2262"))?;
    let host = find("HOST")
        .filter(|host| !host.is_empty())
        .map_or("unknown", |host| host);
    let unit = fields
        .iter()
        .find(|field| identifies(field.0))
        .map_or("", |field| &field.1);
    let keyword = keyword_of_others(&[&name], "", &mut imported.left_out);
    let written = |field: &&NetLoggerField<'_>| {
        let is = |name: &str| field.0.eq_ignore_ascii_case(name);
        let is_said = is(event) && name == keyword;
        !is_said && !is(date) && !is("HOST")
    };
    let rest = fields.iter().filter(written).map(|(field, value)| {
        let value = if field.eq_ignore_ascii_case(event) {
            Cow::Borrowed(&name[..])
        } else {
            value.clone()
        };
        format!("{field}={value}")
    });
    let data: Vec<String> = std::iter::once(unit.to_owned()).chain(rest).collect();
    let values: Vec<EventValue<'_>> = data.iter().map(|field| EventValue::parse(field)).collect();
    imported.table.push(&keyword, host, at_ns, &values);
    Ok(())
}

/// Whether a field of this name identifies the unit of an event.
fn identifies(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "guid" || name.rsplit(['.', '_', '-']).next() == Some("id")
}

/// All fields of a line.
fn fields(line: &str) -> Result<Vec<NetLoggerField<'_>>, String> {
    let (mut fields, mut rest) = (Vec::new(), line.trim());
    while !rest.is_empty() {
        let (name, behind) = rest
            .split_once('=')
            .ok_or_else(|| format!("expected NAME=VALUE, found `{}`", first_of(rest)))?;
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(format!("expected NAME=VALUE, found `{}`", first_of(rest)));
        }
        let (value, behind) = match behind.strip_prefix('"') {
            Some(quoted) => quoted_value(quoted)
                .ok_or_else(|| format!("the quoted value of {name} is not closed"))?,
            None => {
                let end = behind.find(char::is_whitespace).unwrap_or(behind.len());
                (Cow::Borrowed(&behind[..end]), &behind[end..])
            }
        };
        fields.push((name, value));
        rest = behind.trim_start();
    }
    Ok(fields)
}

/// The first word of a text, for a message; at most 40 characters.
fn first_of(text: &str) -> String {
    text.split_whitespace()
        .next()
        .unwrap_or_default()
        .chars()
        .take(40)
        .collect()
}

/// A quoted value up to its closing quotation mark, and the text behind it.
fn quoted_value(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let closes = |at: &usize| !text[..*at].ends_with('\\');
    let end = text.match_indices('"').map(|(at, _)| at).find(closes)?;
    let value = &text[..end];
    let value = if value.contains("\\\"") {
        Cow::Owned(value.replace("\\\"", "\""))
    } else {
        Cow::Borrowed(value)
    };
    Some((value, &text[end + 1..]))
}

/// Parses `20000330112320.957943`, UTC, to ns since 1970.
fn of_digits(text: &str) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if whole.len() != 14 || !whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = |from: usize, to: usize| whole[from..to].parse::<i128>().unwrap_or(-1);
    let moment = moment::since_1970(
        [part(0, 4), part(4, 6), part(6, 8)],
        [part(8, 10), part(10, 12), part(12, 14)],
    )?;
    Some(moment + moment::fraction_ns(fraction)?)
}

/// Parses `1271701603.123456`, seconds since 1970, to ns since 1970.
fn of_seconds(text: &str) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let seconds = whole
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| whole.parse::<u32>().ok())??;
    Some(i128::from(seconds) * 1_000_000_000 + moment::fraction_ns(fraction)?)
}

#[cfg(test)]
mod tests;
