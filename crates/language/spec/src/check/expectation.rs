//! Checks the clause `expect`: that figures and findings exist, that units fit, and that the measurement can have what is
//! expected of it.

use super::checker::Checker;
use super::expansion::SweepCombination;
use super::stack;
use crate::alert_text::AlertTextCondition;
use crate::diagnostic::Diagnostic;
use crate::parse::expectation::unknown_figure;
use crate::tree::{
    Base, BoundItem, BoundSign, Clause, ClauseKind, ConditionItem, ExpectationItem, SpecUnit,
    Specification, Word,
};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use stackline_core::catalogue::StackTable;
use stackline_core::expectation::{
    BoundUnit, Expectation, ExpectedCondition, ExpectedFigure, FigureBound,
};
use stackline_core::finding_names::{FINDINGS_OF_MEASUREMENTS, FINDINGS_OF_PROGRAMS};
use stackline_core::plan::{Composer, MeasurementPart, World};
use stackline_core::procedure::{DelayArgument, OperationCall, PairSide, contains_call};
use stackline_core::units::{format_rate, format_time};

/// The figure that only alerts have: the share of probes that failed.
const FAILURES: &str = "failures";

/// What an expectation is about.
struct ExpectationTarget<'p> {
    /// The parts whose results are looked at.
    parts: Vec<&'p MeasurementPart>,
    /// The index of the part in the measurement; absent for all parts together.
    index: Option<usize>,
    /// Whether the parts are the measured ones of `parallel` or `total`, so that they can be compared.
    is_composed: bool,
    world: World,
}

impl Checker<'_> {
    /// The expectations of a measurement. `parts` are those of the specification; one that no pair runs is absent.
    pub(crate) fn expectations(
        &mut self,
        specification: &Specification,
        chosen: &SweepCombination<'_>,
        parts: &[Option<MeasurementPart>],
    ) -> Vec<Expectation> {
        let world = self.world(specification);
        let kept: Vec<&MeasurementPart> = parts.iter().flatten().collect();
        let is_total = specification.composer == Composer::Total;
        let mut found = Vec::new();
        for item in expected(&specification.clauses) {
            let measured = || kept.iter().enumerate().filter(|(_, part)| !part.background);
            let together = ExpectationTarget {
                parts: measured().map(|(_, part)| *part).collect(),
                index: None,
                is_composed: matches!(specification.composer, Composer::Parallel | Composer::Total),
                world,
            };
            if is_total || is_of_all(item) {
                found.extend(self.expectation(specification, item, &together, chosen));
                continue;
            }
            for (index, part) in measured() {
                let target = of_part(index, part, world);
                found.extend(self.expectation(specification, item, &target, chosen));
            }
        }
        let mut index = 0;
        for (written, part) in specification.parts.iter().zip(parts) {
            let Some(part) = part else { continue };
            for item in expected(&written.clauses) {
                if is_total && !part.background && !is_finding(item) {
                    self.report.push(of_a_part_of_total(item));
                    continue;
                }
                let target = of_part(index, part, world);
                found.extend(self.expectation(specification, item, &target, chosen));
            }
            index += 1;
        }
        found
    }

    fn expectation(
        &mut self,
        specification: &Specification,
        item: &ExpectationItem,
        target: &ExpectationTarget<'_>,
        chosen: &SweepCombination<'_>,
    ) -> Option<Expectation> {
        let judged = match &item.condition {
            ConditionItem::Finding(kind) => {
                finding(kind).map(|kind| (ExpectedCondition::Finding(kind), None))
            }
            ConditionItem::NoFinding(kind) => {
                finding(kind).map(|kind| (ExpectedCondition::NoFinding(kind), None))
            }
            ConditionItem::Figure(name, sign, bounds) => self
                .bounded(
                    specification,
                    item,
                    (name, *sign, bounds.as_slice()),
                    target,
                    chosen,
                )
                .map(|(figure, bound)| {
                    let text = rendered(figure, bound, bounds);
                    (ExpectedCondition::Figure(figure, bound), text)
                }),
        };
        let (condition, text) = self.report.keep(judged)?;
        let is_of_part = matches!(condition, ExpectedCondition::Figure(..));
        Some(Expectation {
            text: text.unwrap_or_else(|| self.marked.flat(item.at.clone(), &|_| None)),
            line: item.line,
            part: target.index.filter(|_| is_of_part),
            condition,
        })
    }

    fn bounded(
        &self,
        specification: &Specification,
        item: &ExpectationItem,
        written: (&Word, BoundSign, &[BoundItem]),
        target: &ExpectationTarget<'_>,
        chosen: &SweepCombination<'_>,
    ) -> Result<(ExpectedFigure, FigureBound), Diagnostic> {
        let (name, sign, bounds) = written;
        let figure = ExpectedFigure::named(&name.text).ok_or_else(|| unknown_figure(name))?;
        let values: Result<Vec<f64>, Diagnostic> = bounds
            .iter()
            .map(|bound| {
                fits(name, figure.unit(), bound)?;
                let number = chosen.bindings.number(&bound.value);
                let is_share = figure.unit() == BoundUnit::Share;
                Ok(if is_share { number / 100.0 } else { number })
            })
            .collect();
        let bound = figure_bound(item, sign, &values?)?;
        let tables = self.tables(specification);
        match lacking(figure, target, tables) {
            Some((message, hint)) => {
                let label = "this measurement has no such figure";
                Err(Diagnostic::error(item.span, message, label).hint(hint))
            }
            None => Ok((figure, bound)),
        }
    }
}

/// The bound that these values make, in the base unit of the figure.
fn figure_bound(
    item: &ExpectationItem,
    sign: BoundSign,
    values: &[f64],
) -> Result<FigureBound, Diagnostic> {
    Ok(match (sign, values) {
        (BoundSign::Within, [low, high]) if low > high => {
            let label = "the lower bound comes first";
            let message = "no figure can be within these bounds";
            return Err(Diagnostic::error(item.span, message, label).hint("swap the two"));
        }
        (BoundSign::Within, [low, high]) => FigureBound::Within(*low, *high),
        (BoundSign::AtMost, [bound, ..]) => FigureBound::AtMost(*bound),
        (BoundSign::Above, [bound, ..]) => FigureBound::Above(*bound),
        (BoundSign::AtLeast, [bound, ..]) => FigureBound::AtLeast(*bound),
        (_, bounds) => FigureBound::Below(bounds.first().copied().unwrap_or_default()),
    })
}

/// The condition of an alert. Its bounds are numbers: there are no variables outside a specification.
pub(crate) fn alert_condition(item: &ExpectationItem) -> Result<AlertTextCondition, Diagnostic> {
    let (name, sign, bounds) = match &item.condition {
        ConditionItem::Finding(kind) => {
            let condition = finding(kind).map(ExpectedCondition::Finding);
            return condition.map(AlertTextCondition::Expected);
        }
        ConditionItem::NoFinding(kind) => {
            let condition = finding(kind).map(ExpectedCondition::NoFinding);
            return condition.map(AlertTextCondition::Expected);
        }
        ConditionItem::Figure(name, sign, bounds) => (name, *sign, bounds),
    };
    let figure = ExpectedFigure::named(&name.text);
    let unit = match figure {
        Some(figure) => figure.unit(),
        None if name.text == FAILURES => BoundUnit::Share,
        None => return Err(unknown_figure(name)),
    };
    let value = |bound: &BoundItem| {
        fits(name, unit, bound)?;
        match &bound.value.base {
            Base::Number(number) if unit == BoundUnit::Share => Ok(number / 100.0),
            Base::Number(number) => Ok(number * bound.value.unit.factor()),
            Base::Variable(_) => {
                let message = "an alert has no variables";
                let label = "expected a number";
                Err(Diagnostic::error(bound.value.span, message, label)
                    .hint(format!("write `{}`", unit.example(20.0))))
            }
        }
    };
    let values: Result<Vec<f64>, Diagnostic> = bounds.iter().map(value).collect();
    let bound = figure_bound(item, sign, &values?)?;
    Ok(
        figure.map_or(AlertTextCondition::Failures(bound), |figure| {
            AlertTextCondition::Expected(ExpectedCondition::Figure(figure, bound))
        }),
    )
}

/// The expectations of these clauses.
fn expected(clauses: &[Clause]) -> impl Iterator<Item = &ExpectationItem> {
    clauses.iter().flat_map(|clause| match &clause.kind {
        ClauseKind::Expect(items) => items.as_slice(),
        _ => &[],
    })
}

fn of_part(index: usize, part: &MeasurementPart, world: World) -> ExpectationTarget<'_> {
    ExpectationTarget {
        parts: alloc::vec![part],
        index: Some(index),
        is_composed: false,
        world,
    }
}

const fn is_finding(item: &ExpectationItem) -> bool {
    !matches!(item.condition, ConditionItem::Figure(..))
}

/// Whether it is about the measurement and not about a part: findings, and how equally parts share.
fn is_of_all(item: &ExpectationItem) -> bool {
    match &item.condition {
        ConditionItem::Figure(name, ..) => name.text == "fairness",
        _ => true,
    }
}

fn of_a_part_of_total(item: &ExpectationItem) -> Diagnostic {
    let message = "the parts of `total` have one figure for all together";
    let label = "this is about one part";
    Diagnostic::error(item.span, message, label)
        .hint("write `expect` after `total`, or use `parallel`")
}

/// The kind of finding with that name.
fn finding(kind: &Word) -> Result<String, Diagnostic> {
    let name = kind.text.as_str();
    if FINDINGS_OF_MEASUREMENTS.contains(&name) {
        return Ok(name.to_string());
    }
    let label = "expected a kind of finding";
    let hint = "`stackline help findings` lists all kinds";
    if FINDINGS_OF_PROGRAMS.contains(&name) {
        let message = format!("`{name}` is found in traces of programs, not in measurements");
        return Err(Diagnostic::error(kind.span, message, label).hint(hint));
    }
    let message = format!("there is no kind of finding `{name}`");
    let known = FINDINGS_OF_MEASUREMENTS.iter().copied();
    Err(Diagnostic::error(kind.span, message, label).did_you_mean(name, known, hint))
}

/// Checks that the unit of a bound is that of the figure. A variable may have its unit in its values.
fn fits(name: &Word, unit: BoundUnit, bound: &BoundItem) -> Result<(), Diagnostic> {
    let written = match bound.value.unit {
        SpecUnit::None if bound.is_per_second => Some(BoundUnit::PerSecond),
        SpecUnit::PerSecond(_) => Some(BoundUnit::PerSecond),
        SpecUnit::None => None,
        SpecUnit::Time(_) => Some(BoundUnit::Time),
        SpecUnit::Rate(_) => Some(BoundUnit::Rate),
        SpecUnit::Percent => Some(BoundUnit::Share),
        SpecUnit::Size(_) => {
            let message = format!("`{}` is {}, not a size", name.text, unit.what());
            return Err(wrong_unit(message, unit, bound));
        }
    };
    let is_variable = matches!(bound.value.base, Base::Variable(_));
    match written {
        Some(written) if written == unit => Ok(()),
        None if unit == BoundUnit::Plain || is_variable => Ok(()),
        None => {
            let message = format!("`{}` is {} and needs its unit", name.text, unit.what());
            Err(wrong_unit(message, unit, bound))
        }
        Some(written) => {
            let message = format!("`{}` is {}, not {}", name.text, unit.what(), written.what());
            Err(wrong_unit(message, unit, bound))
        }
    }
}

fn wrong_unit(message: String, unit: BoundUnit, bound: &BoundItem) -> Diagnostic {
    let number = match bound.value.base {
        // Likely a share from 0 to 1.
        Base::Number(number) if unit == BoundUnit::Share && number < 1.0 => number * 100.0,
        Base::Number(number) => number,
        Base::Variable(_) => 20.0,
    };
    let label = match unit {
        BoundUnit::Plain => "expected a number without a unit".to_string(),
        _ => format!("expected {}", unit.what()),
    };
    Diagnostic::error(bound.value.span, message, label)
        .hint(format!("write `{}`", unit.example(number)))
}

/// The text of an expectation whose bound is a variable: its value with the figure's unit.
fn rendered(figure: ExpectedFigure, bound: FigureBound, written: &[BoundItem]) -> Option<String> {
    let is_variable = |item: &BoundItem| matches!(item.value.base, Base::Variable(_));
    if !written.iter().any(is_variable) {
        return None;
    }
    let value = |value: f64| match figure.unit() {
        BoundUnit::Time => format_time(value),
        BoundUnit::Rate => format_rate(value),
        BoundUnit::PerSecond => format!("{value}/s"),
        BoundUnit::Share => format!("{}%", value * 100.0),
        BoundUnit::Plain => format!("{value}"),
    };
    let name = figure.name();
    Some(match bound {
        FigureBound::Below(bound) => format!("{name} < {}", value(bound)),
        FigureBound::AtMost(bound) => format!("{name} <= {}", value(bound)),
        FigureBound::Above(bound) => format!("{name} > {}", value(bound)),
        FigureBound::AtLeast(bound) => format!("{name} >= {}", value(bound)),
        FigureBound::Within(low, high) => {
            format!("{name} within {} .. {}", value(low), value(high))
        }
    })
}

/// Why the measurement cannot have a figure, and what to expect instead; `None` if it can.
fn lacking(
    figure: ExpectedFigure,
    target: &ExpectationTarget<'_>,
    tables: &[StackTable],
) -> Option<(String, &'static str)> {
    use ExpectedFigure as Figure;
    let has = |test: fn(&OperationCall) -> bool| {
        let timed = |part: &&MeasurementPart| {
            let side = part.procedure.timed(PairSide::Initiator);
            contains_call(side, &test)
        };
        target.parts.iter().any(timed)
    };
    let calls = has(|call| matches!(call, OperationCall::RpcCall(..)));
    let connects = has(|call| matches!(call, OperationCall::ConnectRequest));
    let name = applications(target);
    let of_work = (
        format!("`{name}` makes no calls and opens no connections while the clock runs"),
        "expect `throughput` or `elapsed` of data that is moved; after `|`, a clause belongs to that part alone",
    );
    match figure {
        Figure::Mean | Figure::Min | Figure::Max | Figure::Percentile(_) | Figure::Rate => {
            (!calls && !connects).then_some(of_work)
        }
        Figure::Throughput => (!target.parts.iter().any(|part| moves_data(part))).then(|| {
            let message = format!("`{name}` moves no data units, so it has no throughput");
            (
                message,
                "expect `rate`, which is calls or connections per second",
            )
        }),
        Figure::Connect => (!connects).then(|| {
            let message = format!("`{name}` opens no connections while the clock runs");
            (
                message,
                "`connect_disconnect` measures the time of connecting",
            )
        }),
        Figure::Transaction | Figure::Transactions => (!calls || !connects).then(|| {
            let message = format!(
                "`{name}` does not open connections and make calls on them while the clock runs"
            );
            (message, "expect `mean` or `rate`")
        }),
        Figure::Loss | Figure::Lost | Figure::Duplicated | Figure::Reordered => {
            without_losses(target, tables)
        }
        Figure::Fairness => (!target.is_composed || target.parts.len() < 2).then(|| {
            let message = "`fairness` compares the parts of `parallel` or `total`";
            (
                message.to_string(),
                "write it after the composer, as in `parallel expect fairness > 0.9: A | B`",
            )
        }),
        Figure::Lateness => (!target.parts.iter().any(|part| is_paced(part))).then(|| {
            let message =
                format!("`{name}` has no intended moments here that it could be late for");
            (message, "give it a pace, such as `2000/s`")
        }),
        Figure::CpuPerGb | Figure::CpuPerCall => (target.world == World::Simulated).then(|| {
            let message = "programs take no processor time in the simulated world".to_string();
            (message, "use `in live` or `in emulated`")
        }),
        Figure::Elapsed => None,
    }
}

/// The application types of the parts, to stand between backquotes.
fn applications(target: &ExpectationTarget<'_>) -> String {
    let names = target.parts.iter().map(|part| part.procedure.name.as_str());
    names.collect::<Vec<_>>().join("` and `")
}

/// Why nothing is counted as lost: all stacks deliver everything.
fn without_losses(
    target: &ExpectationTarget<'_>,
    tables: &[StackTable],
) -> Option<(String, &'static str)> {
    let is_reliable = |part: &&MeasurementPart| {
        let table = stack::find(&part.stack.name, tables);
        table.is_some_and(|table| table.with_options_of(&part.stack).reliable)
    };
    let first = target.parts.first()?;
    target.parts.iter().all(is_reliable).then(|| {
        let message = format!(
            "`{}` delivers everything once and in order, so nothing is counted",
            first.stack.name
        );
        let hint = "expect `p99` or `throughput`, which losses change, or a finding such as `finding not queue_drop`";
        (message, hint)
    })
}

fn moves_data(part: &MeasurementPart) -> bool {
    let is_data = |call: &OperationCall| {
        matches!(
            call,
            OperationCall::DataRequest(_) | OperationCall::AwaitDataIndication(_)
        )
    };
    [PairSide::Initiator, PairSide::Responder]
        .into_iter()
        .any(|side| contains_call(part.procedure.side(side), &is_data))
}

/// Whether operations have intended moments: a pace whose timing is given.
fn is_paced(part: &MeasurementPart) -> bool {
    let is_pace = |call: &OperationCall| match call {
        OperationCall::Pace(DelayArgument::Timing(index)) => part.data.timings.len() > *index,
        OperationCall::Pace(_) => true,
        _ => false,
    };
    [PairSide::Initiator, PairSide::Responder]
        .into_iter()
        .any(|side| contains_call(part.procedure.side(side), &is_pace))
}
