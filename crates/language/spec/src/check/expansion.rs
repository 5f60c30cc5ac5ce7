//! Expands a specification into measurements: one for each combination of swept values and stacks.

use super::checker::{Checker, Instead};
use super::clauses::clause_stacks;
use super::evaluate::Bindings;
use super::measurement_origin::{MeasurementOrigin, WrittenPart};
use super::{far_end, series, stack};
use crate::diagnostic::{Diagnostic, DiagnosticReport, TextSpan};
use crate::spelling::application_key;
use crate::tree::{SpecUnit, Specification, StackItem, Sweep};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use stackline_core::plan::{
    Composer, Measurement, MeasurementPart, Stack, StoppingCriterion, VariableUnit, Warmup,
    describe_swept_values,
};
use stackline_core::procedure::{PairSide, Procedure};

/// The stack when none is written.
const DEFAULT: &str = "tcp";
/// Most measurements of one text.
const MOST: usize = 10_000;
/// The work that a text may ask for in all: the number of measurements times what each of them copies.
pub(crate) const BUDGET: usize = 50_000_000;
/// Most runs of a measurement.
const MOST_RUNS: u64 = 1_000_000;

/// A stack, as an entry of one of the lists.
#[derive(Clone, Copy)]
pub(crate) struct StackOffer {
    /// The list: that of the command line, of the composer, of the part with an index, or none.
    pub(crate) from: StackSource,
    /// The index in the list.
    pub(crate) index: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum StackSource {
    CommandLine,
    Composer,
    Part(usize),
    /// None or one entry: the address of a far end says which stack it is.
    FarEnd,
    Default,
}

/// What multiplies in a specification.
struct SweepDesign {
    /// The values of each variable.
    sweeps: Vec<Vec<f64>>,
    /// What they are about; empty where all are plain numbers.
    units: Vec<VariableUnit>,
    /// The lists of stacks, with their lengths.
    lists: Vec<(StackSource, usize)>,
}

impl SweepDesign {
    /// How many combinations of stacks there are.
    fn stacks(&self) -> usize {
        self.lists.iter().map(|(_, length)| *length).product()
    }

    /// The values of the variables in a combination. Stacks vary fastest, so that those with the same values are neighbours.
    fn bound(&self, specification: &Specification, combination: usize) -> Vec<(String, f64)> {
        let variables = specification
            .sweeps
            .iter()
            .map(|sweep| sweep.name.text.clone());
        let row = combination / self.stacks().max(1);
        let values = digits(row, self.sweeps.iter().map(Vec::len));
        variables
            .zip(self.sweeps.iter().zip(values))
            .filter_map(|(name, (list, index))| list.get(index).map(|value| (name, *value)))
            .collect()
    }
}

/// What came of the measurements of one combination of stacks.
#[derive(Clone, Default)]
struct StackOutcome {
    has_measurement: bool,
    refused: Vec<RefusedRow>,
}

/// A measurement that is not possible: the values of its row, as in `N = 3, D = 5 ms`, and why.
#[derive(Clone)]
struct RefusedRow {
    row: String,
    why: Vec<Diagnostic>,
}

/// One combination: values of the variables and, for each part, its stack.
pub(crate) struct SweepCombination<'v> {
    pub(crate) bindings: Bindings<'v>,
    pub(crate) stacks: Vec<(StackOffer, Stack)>,
    pub(crate) sweeps: &'v [Sweep],
    /// What the values of the sweeps are about.
    pub(crate) units: &'v [VariableUnit],
}

impl SweepCombination<'_> {
    /// The value of a variable as it is written in a text: times have a unit.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let value = self.bindings.get(name)?;
        let mut sweeps = self.sweeps.iter();
        let is_time =
            |sweep: &&Sweep| sweep.name.text == name && matches!(sweep.unit, SpecUnit::Time(_));
        Some(match sweeps.find(is_time) {
            Some(sweep) => sweep.unit.written(value),
            None => format!("{value}"),
        })
    }
}

impl Checker<'_> {
    pub(crate) fn specification(&mut self, item: usize, specification: &Specification) {
        let sound = self.names(specification);
        let sweeps: Vec<Option<Vec<f64>>> = specification
            .sweeps
            .iter()
            .map(|sweep| series::values(sweep, self.report))
            .collect();
        let Some(sweeps) = sweeps.into_iter().collect::<Option<Vec<_>>>() else {
            return;
        };
        if !sound {
            return self.numbers(specification, &sweeps);
        }
        let lists = self.lists(specification);
        let variables = sweeps.iter().map(Vec::len).fold(1, usize::saturating_mul);
        let stacks = lists
            .iter()
            .map(|(_, length)| *length)
            .fold(1, usize::saturating_mul);
        let total = variables.saturating_mul(stacks);
        if !self.affordable(specification, total) {
            return;
        }
        let design = SweepDesign {
            units: self.variable_units(specification),
            sweeps,
            lists,
        };
        let refused = self.combinations(item, specification, &design);
        if self.report.errors() == 0 {
            self.loaded(specification, total - refused);
        }
    }

    /// Adds the measurement of each combination and returns how many were refused. If only some values of the variables are refused, the
    /// others remain; a stack that no value suits is a mistake of the text, and the first such mistake ends the check.
    fn combinations(
        &mut self,
        item: usize,
        specification: &Specification,
        design: &SweepDesign,
    ) -> usize {
        let stacks = design.stacks();
        let total = design.sweeps.iter().map(Vec::len).product::<usize>() * stacks;
        // By combination of stacks: whether one of its measurements is right, and what was wrong with the others.
        let mut outcomes = vec![StackOutcome::default(); stacks];
        for combination in 0..total {
            let before = self.report.mark();
            let is_right = self.combination(item, specification, design, combination);
            let Some(outcome) = outcomes.get_mut(combination % stacks.max(1)) else {
                break;
            };
            outcome.has_measurement |= is_right;
            if !is_right {
                let bound = design.bound(specification, combination);
                let row = describe_swept_values(&bound, &design.units);
                let why = self.report.take_since(before);
                outcome.refused.push(RefusedRow { row, why });
                // Nothing else can be right where nothing varies.
                if total == stacks {
                    break;
                }
            }
        }
        let mut refused = 0;
        for outcome in outcomes {
            refused += outcome.refused.len();
            self.report_refused(outcome);
        }
        refused
    }

    /// Reports what was wrong with the combinations of one stack: as warnings if others of it remain.
    fn report_refused(&mut self, outcome: StackOutcome) {
        let StackOutcome {
            has_measurement,
            refused,
        } = outcome;
        let reported = if has_measurement { refused.len() } else { 1 };
        for RefusedRow { row, why } in refused.into_iter().take(reported) {
            for diagnostic in why {
                self.report.push(if has_measurement {
                    diagnostic.leaves_out(&row)
                } else {
                    diagnostic
                });
            }
        }
    }

    /// When names are wrong already: what else can be said, with the first value of each variable.
    fn numbers(&mut self, specification: &Specification, sweeps: &[Vec<f64>]) {
        let bound = firsts(specification, sweeps);
        let bindings = Bindings(&bound);
        self.heads(specification, bindings);
        for (index, part) in specification.parts.iter().enumerate() {
            if let Some(procedure) = self.program(part) {
                self.part_data(specification, index, &procedure, bindings);
            }
        }
    }

    /// The lists of stacks that multiply, and their lengths.
    fn lists(&self, specification: &Specification) -> Vec<(StackSource, usize)> {
        let mut lists: Vec<(StackSource, usize)> = Vec::new();
        for part in 0..specification.parts.len() {
            let source = self.source(specification, part);
            if let (StackSource::CommandLine, Some(instead)) = (source, &self.instead) {
                return vec![(source, instead.stacks.len())];
            }
            if !lists.iter().any(|(known, _)| *known == source) {
                lists.push((source, offered(specification, source)));
            }
        }
        lists
    }

    fn affordable(&mut self, specification: &Specification, total: usize) -> bool {
        let span = specification.span;
        let too_many = |message: String| {
            Diagnostic::error(span, message, "including these sweeps and stacks")
                .hint("sweep fewer values, or split the input")
        };
        if self.plan.measurements.len().saturating_add(total) > MOST {
            self.report
                .push(too_many(format!("there are more than {MOST} measurements")));
            return false;
        }
        let crossed = self
            .crossed(specification)
            .and_then(|name| self.varied.get(name));
        let network = crossed.map_or(0, super::varied_network::VariedNetwork::weight);
        let weight = network
            + specification
                .parts
                .iter()
                .map(|part| self.weight(part))
                .sum::<usize>()
            + specification.at.len() * 8;
        match self.budget.checked_sub(weight.saturating_mul(total)) {
            Some(left) => self.budget = left,
            None => {
                self.report
                    .push(too_many("the measurements need too much memory".into()));
                return false;
            }
        }
        true
    }

    /// What a measurement copies for a part.
    fn weight(&mut self, part: &crate::tree::PartItem) -> usize {
        let key = application_key(&part.application.text);
        let program = match self.procedures.get(&key) {
            Some(Some(procedure)) => {
                procedure.calls(PairSide::Initiator).len()
                    + procedure.calls(PairSide::Responder).len()
            }
            _ => 0,
        };
        let drawn = part
            .timings
            .iter()
            .filter_map(|timing| timing.drawn.file.as_ref());
        let sizes = part
            .data
            .iter()
            .flat_map(|data| core::iter::once(&data.unit).chain(&data.reply));
        let drawn_sizes = sizes.filter_map(|size| match size {
            crate::tree::SizeItem::Drawn(drawn) => drawn.file.as_ref(),
            crate::tree::SizeItem::Value(_) => None,
        });
        let files: Vec<&crate::tree::Word> = drawn.chain(drawn_sizes).collect();
        let values: usize = files
            .into_iter()
            .map(|file| self.files.values(file).map_or(0, |values| values.len()))
            .sum();
        program * 4 + values * 2
    }

    /// One measurement; false when it has a mistake.
    fn combination(
        &mut self,
        item: usize,
        specification: &Specification,
        design: &SweepDesign,
        combination: usize,
    ) -> bool {
        let lists = &design.lists;
        let stacks = design.stacks();
        let bound = design.bound(specification, combination);
        let picks = digits(
            combination % stacks.max(1),
            lists.iter().map(|(_, length)| *length),
        );
        let before = self.report.errors();
        let bindings = Bindings(&bound);
        // Of all parts before any is given up: each mistake is to be reported.
        let chosen: Vec<(StackOffer, Option<Stack>)> = (0..specification.parts.len())
            .map(|part| {
                let from = self.source(specification, part);
                let at = lists
                    .iter()
                    .position(|(known, _)| *known == from)
                    .unwrap_or(0);
                let offer = StackOffer {
                    from,
                    index: picks.get(at).copied().unwrap_or(0),
                };
                let stack = match specification.parts.get(part) {
                    Some(item) if far_end::written(item).is_some() => {
                        self.far_end_stack(specification, item, bindings, offer.index)
                    }
                    _ => self.stack(specification, offer, bindings),
                };
                (offer, stack)
            })
            .collect();
        let chosen: Option<Vec<(StackOffer, Stack)>> = chosen
            .into_iter()
            .map(|(offer, stack)| stack.map(|stack| (offer, stack)))
            .collect();
        let Some(stacks) = chosen else { return false };
        if let Some((mut measurement, parts)) = self.measurement(
            specification,
            &SweepCombination {
                bindings,
                stacks,
                sweeps: &specification.sweeps,
                units: &design.units,
            },
        ) {
            measurement.specification = item;
            self.plan.measurements.push(measurement);
            self.origins.push(MeasurementOrigin { item, parts });
        }
        self.report.errors() == before
    }

    /// The list of stacks that a part draws from.
    fn source(&self, specification: &Specification, part: usize) -> StackSource {
        let item = specification.parts.get(part);
        if let Some(item) = item.filter(|item| far_end::written(item).is_some()) {
            match self.far_end_versions(specification, item) {
                0 | 1 => StackSource::FarEnd,
                _ if self.instead.is_some() => StackSource::CommandLine,
                _ => written_source(specification, part),
            }
        } else if self.instead.is_some() {
            StackSource::CommandLine
        } else {
            written_source(specification, part)
        }
    }

    fn stack(
        &mut self,
        specification: &Specification,
        offer: StackOffer,
        bindings: Bindings<'_>,
    ) -> Option<Stack> {
        if offer.from == StackSource::Default {
            let table = stack::find(DEFAULT, self.tables(specification));
            return Some(table.map_or_else(
                || Stack::plain(DEFAULT),
                |table| table.stack(BTreeMap::new()),
            ));
        }
        let tables = self.tables(specification);
        let item =
            stack_items(self.instead.as_ref(), specification, offer.from)?.get(offer.index)?;
        match stack::resolve(item, tables, bindings, self.report) {
            Ok(stack) => Some(stack),
            Err(mistake) => {
                self.report.push(mistake);
                None
            }
        }
    }

    fn stack_span(
        &self,
        specification: &Specification,
        chosen: &SweepCombination<'_>,
        part: usize,
    ) -> Option<TextSpan> {
        let (offer, _) = chosen.stacks.get(part)?;
        Some(
            stack_items(self.instead.as_ref(), specification, offer.from)?
                .get(offer.index)?
                .name
                .span,
        )
    }

    /// The measurement, and for each of its parts which of the specification it is, with the place of its stack.
    fn measurement(
        &mut self,
        specification: &Specification,
        chosen: &SweepCombination<'_>,
    ) -> Option<(Measurement, Vec<WrittenPart>)> {
        let first = specification.parts.first()?;
        let before = self.report.errors();
        // Unwrapped only further down, so that mistakes of the parts are reported, too.
        let head = self.heads(specification, chosen.bindings);
        let parts: Vec<Option<MeasurementPart>> = (0..specification.parts.len())
            .map(|index| self.part(specification, index, chosen))
            .collect();
        self.destinations(specification, &parts);
        self.shared_connections(specification, &parts);
        let across = self.network_with(specification, chosen.bindings);
        let expectations = self.expectations(specification, chosen, &parts);
        let text = self.measurement_text(specification, chosen, &parts);
        let (runs, time_limit, until, warmup) = head?;
        let kept = parts
            .iter()
            .enumerate()
            .filter(|(_, part)| part.is_some())
            .map(|(index, _)| index);
        let kept = kept
            .map(|index| (index, self.stack_span(specification, chosen, index)))
            .collect();
        let parts: Vec<MeasurementPart> = parts.into_iter().flatten().collect();
        if self.report.errors() > before {
            return None;
        }
        // Parts without pairs are left out, so that a load may remain alone.
        if parts.iter().all(|part| part.background) {
            let with: Vec<String> = chosen
                .bindings
                .0
                .iter()
                .map(|(name, value)| format!("{name} = {value}"))
                .collect();
            let message = match with.as_slice() {
                [] => "no part is left to measure".into(),
                with => format!("no part is left to measure (with {})", with.join(", ")),
            };
            let diagnostic = Diagnostic::error(first.span, message, "no pair runs this part");
            self.report
                .push(diagnostic.hint("start the number of pairs at 1"));
            return None;
        }
        let measurement = Measurement {
            text,
            line: specification.line,
            specification: 0,
            variables: chosen.bindings.0.to_vec(),
            variable_units: chosen.units.to_vec(),
            runs,
            time_limit,
            until,
            warmup,
            composer: specification.composer,
            world: self.world(specification),
            across,
            keeps_calls: self.overrides.keeps_calls,
            interval: None,
            expectations,
            parts,
        };
        Some((measurement, kept))
    }

    pub(crate) fn heads(
        &mut self,
        specification: &Specification,
        bindings: Bindings<'_>,
    ) -> Option<(
        u32,
        Option<stackline_core::time::Duration>,
        Option<StoppingCriterion>,
        Warmup,
    )> {
        let whole = |value, what, least, most, report: &mut DiagnosticReport| {
            report.keep(bindings.whole(value, what, least, most))
        };
        let runs = whole(
            &specification.runs,
            "the number of runs",
            1,
            MOST_RUNS,
            self.report,
        );
        let runs = runs.and_then(|runs| u32::try_from(runs).ok());
        let limit = specification
            .time_limit
            .as_ref()
            .map(|value| self.report.keep(bindings.time(value, "a time limit")));
        let until = specification.until.as_ref();
        let until = until
            .map(|(share, most)| self.until(share, most.as_ref(), runs.unwrap_or(1), bindings));
        let warmup = match &specification.warmup {
            None => Some(Warmup::Runs(0)),
            Some(value) if matches!(value.unit, SpecUnit::Time(_)) => self
                .report
                .keep(bindings.time(value, "a warm-up"))
                .map(Warmup::Time),
            Some(value) => whole(
                value,
                "the number of warm-up runs",
                0,
                MOST_RUNS,
                self.report,
            )
            .and_then(|runs| u32::try_from(runs).ok())
            .map(Warmup::Runs),
        };
        Some((runs?, flip(limit)?, flip(until)?, warmup?))
    }

    fn until(
        &mut self,
        share: &crate::tree::SpecValue,
        at_most: Option<&crate::tree::SpecValue>,
        runs: u32,
        bindings: Bindings<'_>,
    ) -> Option<StoppingCriterion> {
        let percent = bindings.number(share);
        if percent <= 0.0 || percent >= 100.0 {
            let message = format!("`until` takes a percentage between 0 and 100, not {percent}");
            self.report.push(Diagnostic::error(
                share.span,
                message,
                "expected a percentage such as `2%`",
            ));
            return None;
        }
        let at_most = match at_most {
            None => u64::from(runs).saturating_mul(10).max(100),
            Some(value) => self.report.keep(bindings.whole(
                value,
                "the maximum number of runs",
                u64::from(runs),
                MOST_RUNS * 10,
            ))?,
        };
        Some(StoppingCriterion {
            share: percent / 100.0,
            at_most: u32::try_from(at_most).ok()?,
        })
    }

    /// With every swept value all load is missing: then it is no background at all.
    fn loaded(&mut self, specification: &Specification, total: usize) {
        if !matches!(
            specification.composer,
            Composer::Background | Composer::PriorityBackground
        ) {
            return;
        }
        let first = self.plan.measurements.len().saturating_sub(total);
        let ours = self.plan.measurements.get(first..).unwrap_or_default();
        if specification.parts.len() > 1
            && !ours.is_empty()
            && ours.iter().all(|measurement| measurement.parts.len() < 2)
        {
            let message = "without a background load, only the first part is measured";
            let diagnostic = Diagnostic::warning(
                specification.span,
                message,
                "the load is zero for every value",
            );
            self.report
                .push(diagnostic.hint("include at least one number of pairs above 0"));
        }
    }

    /// The program of a part, known to exist.
    pub(crate) fn program(&self, part: &crate::tree::PartItem) -> Option<Procedure> {
        self.procedures
            .get(&application_key(&part.application.text))
            .cloned()
            .flatten()
    }
}

/// The first value of each variable.
pub(crate) fn firsts(specification: &Specification, sweeps: &[Vec<f64>]) -> Vec<(String, f64)> {
    let names = specification
        .sweeps
        .iter()
        .map(|sweep| sweep.name.text.clone());
    names
        .zip(sweeps)
        .filter_map(|(name, list)| Some((name, *list.first()?)))
        .collect()
}

/// `None` inside: a mistake.
const fn flip<T: Copy>(value: Option<Option<T>>) -> Option<Option<T>> {
    match value {
        None => Some(None),
        Some(None) => None,
        Some(Some(value)) => Some(Some(value)),
    }
}

/// The list of stacks that a source has; none for the default.
fn stack_items<'s>(
    instead: Option<&'s Instead<'_>>,
    specification: &'s Specification,
    from: StackSource,
) -> Option<&'s [StackItem]> {
    match from {
        StackSource::CommandLine => instead.map(|instead| instead.stacks.as_slice()),
        StackSource::Composer => specification
            .clauses
            .iter()
            .find_map(|clause| clause_stacks(&clause.kind)),
        StackSource::Part(part) => specification.parts.get(part).and_then(|part| {
            part.clauses
                .iter()
                .find_map(|clause| clause_stacks(&clause.kind))
        }),
        StackSource::FarEnd | StackSource::Default => None,
    }
}

/// The list of stacks that the text gives a part.
fn written_source(specification: &Specification, part: usize) -> StackSource {
    let own = specification.parts.get(part).is_some_and(|part| {
        part.clauses
            .iter()
            .any(|c| clause_stacks(&c.kind).is_some())
    });
    if own {
        StackSource::Part(part)
    } else if specification
        .clauses
        .iter()
        .any(|clause| clause_stacks(&clause.kind).is_some())
    {
        StackSource::Composer
    } else {
        StackSource::Default
    }
}

fn offered(specification: &Specification, source: StackSource) -> usize {
    stack_items(None, specification, source).map_or(1, <[_]>::len)
}

/// A number as digits of mixed bases, the first digit the slowest.
fn digits(number: usize, bases: impl DoubleEndedIterator<Item = usize>) -> Vec<usize> {
    let mut rest = number;
    let mut digits: Vec<usize> = bases
        .rev()
        .map(|base| {
            let digit = rest % base.max(1);
            rest /= base.max(1);
            digit
        })
        .collect();
    digits.reverse();
    digits
}
