//! What distinguishes the rows of results from each other: swept variables, stacks, runs and what else varies.

use crate::curves::curve_set::CurveRun;
use crate::summary::Summary;
use stackline_core::plan::VariableUnit;
use stackline_core::units::{Quantity, format_time};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Traits that are left out of names where the others distinguish the rows as well, in this order.
const REDUNDANT: [&str; 6] = ["line", "part", "hosts", "network", "world", "application"];
/// Numbers of a row that are an axis if they are asked for.
const NUMBERS: [&str; 3] = ["replicas", "unit_bytes", "reply_bytes"];

/// A property of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RowTrait<'s> {
    /// Its name: that of a variable, or `stack`, `run`...
    pub(super) name: &'s str,
    /// Its value as people read it.
    pub(super) value: Cow<'s, str>,
    /// The value in its base unit, if it is a number.
    pub(super) number: Option<f64>,
    /// What the number is about.
    pub(super) quantity: Quantity,
}

/// A row of results with what distinguishes it.
#[derive(Clone, Debug)]
pub(super) struct CurveRow<'s> {
    pub(super) summary: &'s Summary,
    pub(super) traits: Vec<RowTrait<'s>>,
}

impl<'s> CurveRow<'s> {
    /// Its trait of this name.
    pub(super) fn trait_named(&self, name: &str) -> Option<&RowTrait<'s>> {
        self.traits.iter().find(|one| one.name == name)
    }

    /// The number of this name that may be an axis, in its base unit, and its quantity: of a variable, or of the row itself.
    pub(super) fn axis_number(&self, name: &str) -> Option<(f64, Quantity)> {
        #[expect(clippy::cast_precision_loss, reason = "sizes below 2^53")]
        let size = |value: Option<u64>| Some((value? as f64, Quantity::Size));
        match name {
            "replicas" => Some((f64::from(self.summary.replicas), Quantity::Number)),
            "unit_bytes" => size(self.summary.unit_bytes),
            "reply_bytes" => size(self.summary.reply_bytes),
            _ => {
                let known = self.trait_named(name)?;
                Some((known.number?, known.quantity))
            }
        }
    }

    /// Its values of these traits in a name: `tcp, L = 1 %`.
    pub(super) fn described(&self, names: &[&str]) -> String {
        let each = names.iter().filter_map(|name| self.trait_named(name));
        let words = each.map(|one| match (one.number, one.name) {
            (Some(_), name) => format!("{name} = {}", one.value),
            (None, "part") if one.value == "all" => "all parts".to_owned(),
            (None, "line" | "part") => format!("{} {}", one.name, one.value),
            (None, _) => one.value.to_string(),
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

/// The rows that were measured; `left_out` counts the others by reason.
pub(super) fn measured_rows<'s>(
    runs: &'s [CurveRun],
    left_out: &mut BTreeMap<String, usize>,
) -> Vec<CurveRow<'s>> {
    let mut rows = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let stacks = stacks_as_written(&run.summaries);
        // Runs of one name are distinguished by their place.
        let same = runs.iter().filter(|other| other.name == run.name).count() > 1;
        for (summary, stack) in run.summaries.iter().zip(stacks) {
            if summary.background {
                continue;
            }
            if summary.runs == 0 {
                *left_out.entry("nothing measured".to_owned()).or_default() += 1;
                continue;
            }
            let name = match same {
                true => Cow::Owned(format!("{} ({})", run.name, at + 1)),
                false => Cow::Borrowed(run.name.as_str()),
            };
            rows.push(row(summary, stack, name));
        }
    }
    rows
}

fn row<'s>(summary: &'s Summary, stack: String, run: Cow<'s, str>) -> CurveRow<'s> {
    let words = |name: &'static str, value: Cow<'s, str>| RowTrait {
        name,
        value,
        number: None,
        quantity: Quantity::Number,
    };
    let variables = summary.variables.iter().enumerate();
    let mut traits: Vec<RowTrait<'s>> = variables
        .map(|(at, (name, value))| {
            let unit = summary.variable_units.get(at).copied();
            let VariableUnit { quantity, factor } = unit.unwrap_or(VariableUnit::NUMBER);
            RowTrait {
                name,
                value: quantity.written(value * factor).into(),
                number: Some(value * factor),
                quantity,
            }
        })
        .collect();
    let network = summary.network.as_ref().map(|network| &network.name);
    let network = network.map_or("", |name| name.split('(').next().unwrap_or(name));
    let part = summary.part_index.map(|index| (index + 1).to_string());
    traits.extend([
        words("stack", stack.into()),
        words("run", run),
        words("application", summary.application.as_str().into()),
        words("part", part.map_or(Cow::Borrowed("all"), Cow::Owned)),
        words("network", network.into()),
        words("world", summary.world.to_string().into()),
        words(
            "hosts",
            format!("{} to {}", summary.from, summary.to).into(),
        ),
        words("line", summary.line.to_string().into()),
    ]);
    CurveRow { summary, traits }
}

/// What a stack's option is compared with, and where it stands.
type StackGroup = (usize, Option<usize>, String);

/// The stack of each row with names of variables in the place of their values, so that a swept option does not distinguish rows.
fn stacks_as_written(summaries: &[Summary]) -> Vec<String> {
    let mut groups: BTreeMap<StackGroup, Vec<usize>> = BTreeMap::new();
    for (at, summary) in summaries.iter().enumerate() {
        let form: Vec<&str> = options(&summary.stack).map(|(name, _)| name).collect();
        let group = (summary.line, summary.part_index, form.join(","));
        groups.entry(group).or_default().push(at);
    }
    let mut written: Vec<String> = summaries.iter().map(|one| one.stack.clone()).collect();
    for members in groups.values() {
        let first = &summaries[members[0]];
        let swept: Vec<Option<&str>> = (0..options(&first.stack).count())
            .map(|place| swept_option(summaries, members, place))
            .collect();
        if swept.iter().all(Option::is_none) {
            continue;
        }
        for at in members {
            let each = options(&summaries[*at].stack).zip(&swept);
            let mut texts = each.map(|((name, value), swept)| match (value, swept) {
                (Some(_), Some(variable)) => format!("{name} = {variable}"),
                (Some(value), None) => format!("{name} = {value}"),
                (None, _) => name.to_owned(),
            });
            let name = texts.next().unwrap_or_default();
            written[*at] = format!("{name}({})", texts.collect::<Vec<_>>().join(", "));
        }
    }
    written
}

/// The name of a stack, and its options with their values.
fn options(stack: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let (name, inside) = stack.split_once('(').unwrap_or((stack, ""));
    let inside = inside.strip_suffix(')').unwrap_or(inside);
    let each = inside.split(", ").filter(|option| !option.is_empty());
    let each = each.map(|option| match option.split_once(" = ") {
        Some((name, value)) => (name, Some(value)),
        None => (option, None),
    });
    std::iter::once((name, None)).chain(each)
}

/// The swept variable whose value the option at a place has in all these rows.
fn swept_option<'s>(summaries: &'s [Summary], members: &[usize], place: usize) -> Option<&'s str> {
    let first = &summaries[*members.first()?];
    let names = first.variables.iter().map(|(name, _)| name.as_str());
    let value_of = |at: usize, name: &str| {
        let mut known = summaries[at].variables.iter();
        let found = known.find(|(one, _)| one == name);
        found.map(|(_, value)| *value)
    };
    let mut swept = names.filter(|name| {
        let values = members.iter().filter_map(|at| value_of(*at, name));
        values.map(f64::to_bits).collect::<BTreeSet<_>>().len() > 1
    });
    swept.find(|name| {
        members.iter().all(|at| {
            let option = options(&summaries[*at].stack).nth(place);
            let option = option.and_then(|(_, value)| value);
            option
                .zip(value_of(*at, name))
                .is_some_and(|(text, value)| is_value(text, value))
        })
    })
}

/// Whether the text of an option is this number or time.
fn is_value(text: &str, value: f64) -> bool {
    text.parse::<f64>() == Ok(value) || text == format_time(value)
}

/// The names of the traits in which rows differ, without `x`; those that no name needs are left out, unless they are in `kept`.
pub(super) fn varying_traits<'s>(rows: &[CurveRow<'s>], x: &str, kept: &[&str]) -> Vec<&'s str> {
    let mut values: Vec<(&'s str, BTreeSet<&str>)> = Vec::new();
    for one in rows.iter().flat_map(|row| &row.traits) {
        match values.iter_mut().find(|(name, _)| *name == one.name) {
            Some((_, known)) => {
                known.insert(&one.value);
            }
            None => values.push((one.name, BTreeSet::from([one.value.as_ref()]))),
        }
    }
    // A row without a variable differs from those that have it.
    let has_all = |name: &str| rows.iter().all(|row| row.trait_named(name).is_some());
    let mut names: Vec<&'s str> = values
        .into_iter()
        .filter(|(name, known)| *name != x && (known.len() > 1 || !has_all(name)))
        .map(|(name, _)| name)
        .collect();
    for redundant in REDUNDANT {
        if kept.contains(&redundant) || !names.contains(&redundant) {
            continue;
        }
        let mut fewer = names.clone();
        fewer.retain(|name| *name != redundant);
        // A line of the text for each value of x is one curve.
        let across = if redundant == "line" { x } else { "" };
        if values_of(rows, across, &fewer) == values_of(rows, across, &names) {
            names = fewer;
        }
    }
    names
}

/// How many different values rows have of these traits together, and of `x` if it is one of theirs.
fn values_of(rows: &[CurveRow<'_>], x: &str, names: &[&str]) -> usize {
    let values = rows.iter().map(|row| {
        let x = row.axis_number(x).map(|(number, _)| number);
        let each = names.iter().map(|name| row.trait_named(name));
        let each = each.map(|one| one.map_or("", |one| one.value.as_ref()));
        (x.map(f64::to_bits), each.collect::<Vec<_>>())
    });
    values.collect::<BTreeSet<_>>().len()
}

/// The variables that have several values, with how many.
pub(super) fn swept_variables(rows: &[CurveRow<'_>]) -> Vec<(String, usize)> {
    let mut values: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for one in rows.iter().flat_map(|row| &row.traits) {
        if let Some(number) = one.number {
            values.entry(one.name).or_default().insert(number.to_bits());
        }
    }
    let several = values.into_iter().filter(|(_, values)| values.len() > 1);
    several
        .map(|(name, values)| (name.to_owned(), values.len()))
        .collect()
}

/// Whether rows have a number of this name although it is not swept.
pub(super) fn is_number_of_rows(name: &str) -> bool {
    NUMBERS.contains(&name)
}

/// The place of each value of a trait among all its values: numbers by size, words as they come.
pub(super) fn ranks(rows: &[CurveRow<'_>], name: &str) -> BTreeMap<String, usize> {
    let mut values: Vec<&RowTrait<'_>> = Vec::new();
    let mut met: BTreeSet<&str> = BTreeSet::new();
    for one in rows.iter().filter_map(|row| row.trait_named(name)) {
        if met.insert(one.value.as_ref()) {
            values.push(one);
        }
    }
    values.sort_by(|a, b| match (a.number, b.number) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => std::cmp::Ordering::Equal,
    });
    let values = values.into_iter().enumerate();
    values
        .map(|(at, one)| (one.value.to_string(), at))
        .collect()
}
