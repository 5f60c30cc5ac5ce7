//! Checks the timings of a part: which timing of the procedure each is for, and what they are with their variables filled in.

use super::checker::Checker;
use super::evaluate::Bindings;
use crate::diagnostic::Diagnostic;
use crate::spelling;
use crate::tree::{MeantTiming, PartItem, TimingItem};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use stackline_core::distribution::Distribution;
use stackline_core::procedure::{DelayArgument, OperationCall, PairSide, Procedure};

/// The timings of a part in the order of its procedure.
pub(super) struct PartTimings {
    pub(super) drawn: Vec<Distribution>,
    /// Whether all pairs share one constant rate.
    pub(super) takes_turns: bool,
}

/// For each timing of a part, its index among those of the procedure. Without a name it is the first that none before it is for.
pub(super) fn timing_slots(
    item: &PartItem,
    procedure: &Procedure,
) -> Vec<Result<usize, Diagnostic>> {
    let mut taken = Vec::new();
    let slot = |timing: &TimingItem| {
        let free = |taken: &[usize]| (0..).find(|slot| !taken.contains(slot)).unwrap_or(0);
        let slot = meant_slot(timing, procedure).unwrap_or_else(|| Ok(free(&taken)));
        taken.extend(slot.as_ref().ok());
        slot
    };
    item.timings.iter().map(slot).collect()
}

/// The index of the timing that is named; `None` where none is.
fn meant_slot(timing: &TimingItem, procedure: &Procedure) -> Option<Result<usize, Diagnostic>> {
    match &timing.meant {
        MeantTiming::Next => None,
        MeantTiming::Pace => {
            let paced = procedure.pacing_timing();
            Some(paced.ok_or_else(|| unpaced(timing, procedure)))
        }
        MeantTiming::Named(word) => {
            let is_meant = |name: &String| spelling::fold(name) == word.text;
            let found = procedure.timings.iter().position(is_meant);
            Some(found.ok_or_else(|| unnamed(timing, &word.text, procedure)))
        }
    }
}

/// A rate for a procedure whose operations begin when those before them have ended.
fn unpaced(timing: &TimingItem, procedure: &Procedure) -> Diagnostic {
    let message = format!(
        "`{}` has no rate: nothing in it waits for a moment",
        procedure.name
    );
    let diagnostic = Diagnostic::error(timing.span, message, "a rate of operations");
    diagnostic.hint(
        "a procedure is paced by a timing, as in `procedure p(arrival) { ... Pace(arrival); ... }`",
    )
}

fn unnamed(timing: &TimingItem, name: &str, procedure: &Procedure) -> Diagnostic {
    let message = format!("`{}` has no timing `{name}`", procedure.name);
    let diagnostic = Diagnostic::error(timing.span, message, "a timing of another procedure");
    diagnostic.hint(match procedure.timings.as_slice() {
        [] => "omit it".to_string(),
        names => format!("its timings, in order: {}", names.join(", ")),
    })
}

impl Checker<'_> {
    /// The program of a part, without the operations of timings that are left out although a later one is given: so
    /// `rr 32*1000 service 2 ms` has no arrivals.
    pub(super) fn timed_program(&self, item: &PartItem) -> Option<Procedure> {
        let procedure = self.program(item)?;
        let given: Vec<usize> = timing_slots(item, &procedure)
            .into_iter()
            .filter_map(Result::ok)
            .collect();
        let last = given.iter().max().copied().unwrap_or(0);
        let left_out = (0..last).rev().filter(|index| !given.contains(index));
        Some(left_out.fold(procedure, |program, index| program.without_timing(index)))
    }

    /// The timings of a part for its program as [`Self::timed_program`] makes it. Mistakes are reported.
    pub(super) fn timings(
        &mut self,
        item: &PartItem,
        procedure: &Procedure,
        bindings: Bindings<'_>,
    ) -> Option<PartTimings> {
        self.too_many(item, procedure);
        let mut placed: Vec<Option<Distribution>> = vec![None; item.timings.len()];
        let mut takes_turns = false;
        let mut is_whole = true;
        for (timing, slot) in item.timings.iter().zip(timing_slots(item, procedure)) {
            let slot = self.report.keep(slot);
            let drawn = bindings.distribution(&timing.drawn, &mut self.files);
            let drawn = self.report.keep(drawn);
            let (Some(slot), Some(drawn)) = (slot, drawn) else {
                is_whole = false;
                continue;
            };
            self.paced_at_once(item, timing, slot, &drawn, procedure);
            if slot >= placed.len() {
                placed.resize(slot + 1, None);
            }
            if placed[slot].is_some() {
                self.report.push(given_twice(timing, slot, procedure));
                is_whole = false;
            }
            takes_turns |= timing.is_total && drawn.constant().is_some();
            placed[slot] = Some(match timing.is_total {
                true => shared(drawn, pairs(item, bindings)),
                false => drawn,
            });
        }
        is_whole.then(|| PartTimings {
            drawn: placed.into_iter().flatten().collect(),
            takes_turns,
        })
    }

    fn too_many(&mut self, item: &PartItem, procedure: &Procedure) {
        let named = procedure.timings.len();
        let Some(one_too_many) = item.timings.get(named) else {
            return;
        };
        let message = format!(
            "`{}` takes {}; {} given",
            procedure.name,
            counted_timings(named),
            item.timings.len()
        );
        let diagnostic = Diagnostic::error(one_too_many.drawn.span, message, "one too many");
        self.report.push(match procedure.timings.as_slice() {
            [] => diagnostic.hint("omit it"),
            names => diagnostic.hint(format!("its timings, in order: {}", names.join(", "))),
        });
    }

    /// A pace without a wait: every moment is the clock's start, so each operation counts the time of all before it.
    fn paced_at_once(
        &mut self,
        item: &PartItem,
        timing: &TimingItem,
        slot: usize,
        drawn: &Distribution,
        procedure: &Procedure,
    ) {
        let paced = OperationCall::Pace(DelayArgument::Timing(slot));
        let is_paced = [PairSide::Initiator, PairSide::Responder]
            .into_iter()
            .any(|side| procedure.calls(side).contains(&&paced));
        if drawn.constant() != Some(0.0) || !is_paced {
            return;
        }
        let message =
            "all operations begin at once, so each time includes waiting for earlier ones";
        let diagnostic =
            Diagnostic::warning(timing.drawn.span, message, "no time between operations");
        let is_last = item.timings.last().is_some_and(|last| last.at == timing.at);
        self.report.push(diagnostic.hint(if is_last {
            "omit the timing, so that each operation begins when the previous one has ended"
        } else {
            "omit it and name the others, as in `service 2 ms`, so that each operation begins when the previous one has ended"
        }));
    }
}

fn given_twice(timing: &TimingItem, slot: usize, procedure: &Procedure) -> Diagnostic {
    let name = procedure.timings.get(slot).map_or("", String::as_str);
    let message = format!("the timing `{name}` is given twice");
    let diagnostic = Diagnostic::error(timing.span, message, "given before");
    diagnostic.hint("write one of them")
}

/// The number of pairs of a part.
fn pairs(item: &PartItem, bindings: Bindings<'_>) -> f64 {
    let written = item.replicas.as_ref();
    written.map_or(1.0, |value| bindings.number(value)).max(1.0)
}

/// The gaps of one of so many pairs which share a rate.
fn shared(gaps: Distribution, pairs: f64) -> Distribution {
    match gaps {
        Distribution::Constant(gap) => Distribution::Constant(gap * pairs),
        Distribution::Exponential(mean) => Distribution::Exponential(mean * pairs),
        other => other,
    }
}

fn counted_timings(number: usize) -> String {
    match number {
        0 => "no timings".to_string(),
        1 => "1 timing".to_string(),
        _ => format!("{number} timings"),
    }
}
