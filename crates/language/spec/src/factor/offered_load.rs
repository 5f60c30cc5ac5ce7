//! A specification whose first part is offered load at given rates, or none of its own, in place of the arrivals that it has.

use super::level_edit::{LevelEdit, apply_edits};
use super::written_spec::{WrittenSpec, with_parsed};
use crate::diagnostic::TextSpan;
use crate::prelude::PRELUDE;
use crate::spelling::{self, application_key};
use crate::tree::{
    Argument, Base, CountItem, DataItem, DistributionItem, MeantTiming, PartItem, ProcedureItem,
    SizeItem, SpecItem, Specification, Statement, TimingItem,
};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use stackline_core::error::{Error, Result};

/// The variable that has the offered rates.
pub const OFFERED: &str = "offered";

/// What load the first part is offered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OfferedLoad<'r> {
    /// The next operation of a pair begins when the one before has ended.
    Closed,
    /// Rates per second of all pairs together, as values of the variable [`OFFERED`].
    Rates {
        /// The rates.
        per_second: &'r [f64],
        /// Whether operations come at random moments (Poisson), not evenly.
        is_poisson: bool,
    },
}

/// How long and how often a text is run at each rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadExtent {
    /// The number of runs.
    pub runs: u32,
    /// The length of a run, s; absent to keep the one that is written.
    pub seconds: Option<f64>,
}

/// What a text says of the load that it makes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WrittenLoad {
    /// Whether arrivals come at random moments: gaps have an exponential distribution.
    pub is_poisson: bool,
    /// Whether the length of a run is written.
    pub has_time_limit: bool,
    /// The number of runs; absent where it is a variable.
    pub runs: Option<u32>,
}

/// What the text says of the load on its first part.
///
/// # Errors
/// As [`with_offered_load`].
pub fn written_load(source: &str) -> Result<WrittenLoad> {
    with_parsed(source, |written| {
        let (specification, part) = loaded(&written)?;
        let pace = pace_of(&written, part)?;
        let drawn = pace.written.map(|at| &part.timings[at].drawn);
        let is_poisson =
            |drawn: &DistributionItem| spelling::fold(&drawn.name.text) == "exponential";
        Ok(WrittenLoad {
            is_poisson: drawn.is_some_and(is_poisson),
            has_time_limit: specification.time_limit.is_some(),
            runs: written.text(specification.runs.span).trim().parse().ok(),
        })
    })
}

/// The text whose first part is offered that load, without a number of data units: its runs last as long as `extent` says.
///
/// # Errors
/// If the text has not exactly one specification, or nothing in its first part waits for a moment.
pub fn with_offered_load(
    source: &str,
    load: OfferedLoad<'_>,
    extent: LoadExtent,
) -> Result<String> {
    let edits = with_parsed(source, |written| {
        let (specification, part) = loaded(&written)?;
        let pace = pace_of(&written, part)?;
        let mut edits = alloc::vec![LevelEdit::replace(
            specification.runs.span,
            extent.runs.to_string()
        )];
        edits.extend(count_edit(part));
        edits.extend(pace_edits(part, &pace, load));
        match (&specification.time_limit, extent.seconds) {
            (Some(limit), Some(seconds)) => {
                edits.push(LevelEdit::replace(limit.span, format!("{seconds} s")));
            }
            (None, Some(seconds)) => {
                edits.push(LevelEdit::behind(
                    part.span,
                    format!(" timelimit {seconds} s"),
                ));
            }
            (_, None) => {}
        }
        if let OfferedLoad::Rates { per_second, .. } = load {
            let values: Vec<String> = per_second.iter().map(ToString::to_string).collect();
            let sweep = format!("; {OFFERED} = {}", values.join(", "));
            edits.push(LevelEdit::behind(end_of(specification), sweep));
        }
        Ok(edits)
    })?;
    Ok(apply_edits(source, edits))
}

/// The one specification of a text and its first part.
fn loaded<'w>(written: &'w WrittenSpec<'_>) -> Result<(&'w Specification, &'w PartItem)> {
    let mut all = written.tree.items.iter().filter_map(|item| match item {
        SpecItem::Specification(specification) => Some(specification.as_ref()),
        _ => None,
    });
    let (first, second) = (all.next(), all.next());
    let Some(specification) = first else {
        return Err(Error::input("the text has no measurement to load")
            .hint("write one, as in `5 8 rr 32 timelimit 2`"));
    };
    if second.is_some() {
        return Err(Error::input("several measurements would be loaded at once")
            .hint("write one measurement; `--line N` chooses the one that begins on line N"));
    }
    if specification
        .sweeps
        .iter()
        .any(|sweep| sweep.name.text == OFFERED)
    {
        return Err(
            Error::input(format!("the variable `{OFFERED}` is swept already"))
                .hint("`load` offers the rates: leave the variable out"),
        );
    }
    specification
        .parts
        .first()
        .map(|part| (specification, part))
        .ok_or_else(|| Error::input("the measurement has no part"))
}

/// The timing that paces a part.
struct PaceOfPart {
    /// The names of all timings of the procedure.
    names: Vec<String>,
    /// For each timing of the part, its index among the names.
    slots: Vec<usize>,
    /// The timing of the part that is the pace, if one is written.
    written: Option<usize>,
}

fn pace_of(written: &WrittenSpec<'_>, part: &PartItem) -> Result<PaceOfPart> {
    let own = pace_in(written, part);
    let found = match own {
        Some(found) => Some(found),
        None => with_parsed(PRELUDE, |prelude| Ok(pace_in(&prelude, part)))?,
    };
    let Some((names, Some(index))) = found else {
        let name = &part.application.text;
        let message =
            format!("`{name}` cannot be offered a rate: nothing in it waits for a moment");
        return Err(Error::input(message).hint(
            "a procedure of your own is paced by a timing: `procedure p(arrival) { initiator { ... Pace(arrival); ... } ... }`",
        ));
    };
    let mut slots: Vec<usize> = Vec::new();
    for timing in &part.timings {
        let meant = match &timing.meant {
            MeantTiming::Next => None,
            MeantTiming::Pace => Some(index),
            MeantTiming::Named(word) => names.iter().position(|name| *name == word.text),
        };
        let free = (0..).find(|slot| !slots.contains(slot));
        slots.push(meant.or(free).unwrap_or(0));
    }
    let at = slots.iter().position(|slot| *slot == index);
    let swept = |timing: &TimingItem| {
        let mut parameters = timing.drawn.parameters.iter();
        parameters.any(|value| matches!(value.base, Base::Variable(_)))
    };
    if at.is_some_and(|at| swept(&part.timings[at])) {
        return Err(Error::input("the rate of the first part is a variable")
            .hint("`load` offers the rates: leave the rate out"));
    }
    Ok(PaceOfPart {
        names,
        slots,
        written: at,
    })
}

/// The names of the timings of the part's procedure, and the index of the one that its first `Pace` waits for.
fn pace_in(written: &WrittenSpec<'_>, part: &PartItem) -> Option<(Vec<String>, Option<usize>)> {
    let key = application_key(&part.application.text);
    let procedure = written.tree.items.iter().find_map(|item| match item {
        SpecItem::Procedure(procedure) if application_key(&procedure.name.text) == key => {
            Some(procedure)
        }
        _ => None,
    })?;
    let names: Vec<String> = procedure
        .timings
        .iter()
        .map(|word| spelling::fold(&word.text))
        .collect();
    let paced = first_pace(procedure).map(spelling::fold);
    let index = paced.and_then(|paced| names.iter().position(|name| *name == paced));
    Some((names, index))
}

fn first_pace(procedure: &ProcedureItem) -> Option<&str> {
    fn search(steps: &[Statement]) -> Option<&str> {
        steps.iter().find_map(|step| match step {
            Statement::Repeat(_, body, _) => search(body),
            Statement::Call("Pace", arguments, _) => match arguments.first() {
                Some(Argument::Word(name)) => Some(name.text.as_str()),
                _ => None,
            },
            Statement::Call(..) => None,
        })
    }
    let sides = [&procedure.initiator, &procedure.responder];
    sides.into_iter().flatten().find_map(|side| search(side))
}

/// Removes the number or the amount of data units.
fn count_edit(part: &PartItem) -> Option<LevelEdit> {
    let data: &DataItem = part.data.as_ref()?;
    let last = match data.reply.as_ref().unwrap_or(&data.unit) {
        SizeItem::Value(value) => value.span,
        SizeItem::Drawn(drawn) => drawn.span,
    };
    let count = match &data.count {
        CountItem::Times(value) | CountItem::Amount(value) => value.span,
        CountItem::Open => return None,
    };
    Some(LevelEdit::without(TextSpan {
        start: last.end,
        ..count
    }))
}

/// Puts the load in the place of the written pace. Other timings get their names, because their places may change.
fn pace_edits(part: &PartItem, pace: &PaceOfPart, load: OfferedLoad<'_>) -> Vec<LevelEdit> {
    let text = match load {
        OfferedLoad::Closed => String::new(),
        OfferedLoad::Rates { is_poisson, .. } => {
            let word = if is_poisson { "poisson" } else { "rate" };
            format!("{word} <{OFFERED}>/s total")
        }
    };
    let mut edits = Vec::new();
    for (at, (timing, slot)) in part.timings.iter().zip(&pace.slots).enumerate() {
        if pace.written == Some(at) {
            edits.push(LevelEdit::replace(timing.span, text.clone()));
        } else if let (MeantTiming::Next, Some(name)) = (&timing.meant, pace.names.get(*slot)) {
            edits.push(LevelEdit::before(timing.span, format!("{name} ")));
        }
    }
    if pace.written.is_none() && !text.is_empty() {
        edits.push(LevelEdit::behind(part.span, format!(" {text}")));
    }
    edits
}

/// Behind the last sweep, else behind the last part.
fn end_of(specification: &Specification) -> TextSpan {
    let sweep = specification.sweeps.last().map(|sweep| sweep.span);
    let part = specification.parts.last().map(|part| part.span);
    sweep.or(part).unwrap_or(specification.span)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWICE: OfferedLoad<'_> = OfferedLoad::Rates {
        per_second: &[100.0, 250.5],
        is_poisson: false,
    };

    fn offered(text: &str, load: OfferedLoad<'_>, seconds: Option<f64>) -> String {
        with_offered_load(text, load, LoadExtent { runs: 3, seconds }).unwrap()
    }

    #[test]
    fn a_rate_takes_the_place_of_the_arrivals_and_the_rest_stays() {
        let closed = OfferedLoad::Closed;
        assert_eq!(
            offered("1 8 rr 32*1000 over udp;", TWICE, Some(2.0)),
            "3 8 rr 32 over udp rate <offered>/s total timelimit 2 s; offered = 100, 250.5;"
        );
        assert_eq!(
            offered(
                "1 timelimit 9 rr 32, 64 exponential(1 ms) constant(2 ms)",
                TWICE,
                Some(0.5)
            ),
            "3 timelimit 0.5 s rr 32, 64 rate <offered>/s total service constant(2 ms); offered = 100, 250.5"
        );
        assert_eq!(
            offered(
                "1 rr N*9 2000/s constant(2 ms) timelimit 1; N = 32;",
                closed,
                None
            ),
            "3 rr N  service constant(2 ms) timelimit 1; N = 32;"
        );
        assert_eq!(
            offered(
                "1 background: rr 32*10 service 1 ms | bulk_put 64 KiB;",
                TWICE,
                None
            ),
            "3 background: rr 32 service 1 ms rate <offered>/s total | bulk_put 64 KiB; offered = 100, 250.5;"
        );
    }

    #[test]
    fn random_arrivals_are_seen() {
        let is = |text: &str| written_load(text).unwrap().is_poisson;
        assert!(is("1 rr 32*10 exponential(1 ms)"));
        assert!(is("1 rr 32*10 service 1 ms poisson 5/s"));
        assert!(!is("1 rr 32*10 constant(1 ms) exponential(1 ms)"));
        assert!(!is("1 rr 32*10"));
        let written = written_load("7 timelimit 2 rr 32").unwrap();
        assert_eq!((written.runs, written.has_time_limit), (Some(7), true));
    }

    #[test]
    fn what_cannot_be_offered_a_rate() {
        let why = |text: &str| {
            let extent = LoadExtent {
                runs: 1,
                seconds: None,
            };
            with_offered_load(text, TWICE, extent).unwrap_err().message
        };
        assert_eq!(why("host a;"), "the text has no measurement to load");
        assert_eq!(
            why("1 rr 32*9; 1 rr 64*9;"),
            "several measurements would be loaded at once"
        );
        assert_eq!(
            why("1 rr 32*9 R/s; R = 5;"),
            "the rate of the first part is a variable"
        );
        let own = "procedure p { initiator { ConnectRequest; StartMeasurement; StopMeasurement; DisconnectRequest; }
            responder { AwaitConnectIndication; AwaitDisconnectIndication; } }";
        assert_eq!(
            why(&format!("{own} 1 p 0*1;")),
            "`p` cannot be offered a rate: nothing in it waits for a moment"
        );
    }
}
