//! Checks one part with its variables filled in: sizes, counts, hosts, and what its stack can carry.

use super::checker::Checker;
use super::clauses::find_effective_clause;
use super::evaluate::{Bindings, MOST_CORES};
use super::expansion::SweepCombination;
use super::procedure::LARGEST_UNIT;
use super::{far_end, stack, termination};
use crate::diagnostic::{Diagnostic, TextSpan};
use crate::tree::{
    AccessItem, Base, ClauseKind, CountItem, DataItem, PartItem, SizeItem, SpecUnit, SpecValue,
    Specification,
};
use alloc::format;
use alloc::string::ToString;
use stackline_core::catalogue::StackTable;
use stackline_core::plan::{
    self, Composer, DataAccess, DataSpec, MeasurementPart, Size, Stack, UnitCount, Via,
};
use stackline_core::procedure::{
    CountArgument, OperationCall, PairSide, Procedure, ProcedureStep, SizeArgument,
};

const MOST_REPLICAS: u64 = 10_000;
const MOST_UNITS: u64 = 1_000_000_000_000;

impl Checker<'_> {
    /// The part; `None` when no pair does it or there is a mistake, which is reported.
    pub(crate) fn part(
        &mut self,
        specification: &Specification,
        index: usize,
        chosen: &SweepCombination<'_>,
    ) -> Option<MeasurementPart> {
        let item = specification.parts.get(index)?;
        let (_, stack) = chosen.stacks.get(index)?;
        let procedure = self.timed_program(item)?;
        let replicas = self.replicas(item, chosen.bindings)?;
        let table = self
            .table(specification, item, stack)?
            .with_options_of(stack);
        // Unwrapped only at the end, so that the checks below report, too.
        let mut data = self.part_data(specification, index, &procedure, chosen.bindings);
        if let Some(data) = &mut data {
            self.carried(item, &procedure, data, &table);
            self.last_carried(item, &procedure, data, &table);
            data.least_drawn = least(&procedure, &table);
        }
        self.protocol_serves(item, &procedure, &table);
        self.answered(item, &procedure, &table);
        self.placed(item, &table);
        let accesses = self.accesses(item, &procedure, &table);
        self.destination(item, stack, replicas);
        let cpu = self.cores(specification, item, chosen.bindings);
        let (source, destination) = accesses?;
        Some(MeasurementPart {
            text: self.part_text(specification, index, chosen),
            replicas: u32::try_from(replicas).ok()?,
            from: item.from.as_ref().map(|word| word.text.clone()),
            to: item.to.as_ref().map(|word| word.text.clone()),
            procedure,
            data: data?,
            source,
            destination,
            stack: stack.clone(),
            cpu: cpu?,
            background: is_load(specification, index),
        })
        // Without pairs, the part does not take part in this combination.
        .filter(|part| part.replicas > 0)
    }

    /// The data specification of a part; mistakes are reported.
    pub(crate) fn part_data(
        &mut self,
        specification: &Specification,
        index: usize,
        procedure: &Procedure,
        bindings: Bindings<'_>,
    ) -> Option<DataSpec> {
        let ends = is_load(specification, index) || specification.time_limit.is_some();
        self.data(specification.parts.get(index)?, procedure, bindings, ends)
    }

    fn replicas(&mut self, item: &PartItem, bindings: Bindings<'_>) -> Option<u64> {
        let Some(value) = &item.replicas else {
            return Some(1);
        };
        // A swept number may begin at 0; a written 0 is a mistake.
        let least = u64::from(matches!(value.base, Base::Number(_)));
        self.report
            .keep(bindings.whole(value, "the number of pairs", least, MOST_REPLICAS))
    }

    /// The stack's table; only that of the default stack can be missing here.
    fn table(
        &mut self,
        specification: &Specification,
        item: &PartItem,
        stack: &Stack,
    ) -> Option<StackTable> {
        let found = stack::find(&stack.name, self.tables(specification)).copied();
        if found.is_none() {
            let message = format!("unknown default stack `{}`", stack.name);
            let diagnostic =
                Diagnostic::error(item.application.span, message, "no stack is named here");
            self.report
                .push(diagnostic.hint("name one, as in `over udp`"));
        }
        found
    }

    fn data(
        &mut self,
        item: &PartItem,
        procedure: &Procedure,
        bindings: Bindings<'_>,
        ends: bool,
    ) -> Option<DataSpec> {
        let Some(data) = &item.data else {
            let name = &procedure.name;
            let such_as = if procedure.carries_data() {
                "1024*1000"
            } else {
                "0*1000"
            };
            let message = format!("`{name}` needs the size and number of its data units");
            let diagnostic =
                Diagnostic::error(item.application.span, message, "expected a size after this");
            self.report
                .push(diagnostic.hint(format!("write `{} {such_as}`", item.application.text)));
            return None;
        };
        // A server may be asked without a body.
        let least = u64::from(procedure.carries_data() && far_end::written(item).is_none());
        let unit = self.size(&data.unit, bindings, least);
        let reply = match &data.reply {
            None => unit.clone(),
            Some(reply) => {
                self.second_size(procedure, data, reply);
                self.size(reply, bindings, least)
            }
        };
        let count = self.count(item, data, procedure, bindings, ends);
        let timings = self.timings(item, procedure, bindings);
        let whole = DataSpec {
            unit: unit?,
            reply: reply?,
            count: count?,
            takes_turns: timings.as_ref().is_some_and(|timings| timings.takes_turns),
            timings: timings?.drawn,
            least_drawn: plan::any_size(),
        };
        if let Some(trouble) = termination::check_termination(procedure, &whole, data.span) {
            self.report.push(trouble);
            return None;
        }
        Some(whole)
    }

    fn size(&mut self, size: &SizeItem, bindings: Bindings<'_>, least: u64) -> Option<Size> {
        const WHAT: &str = "the size of a data unit";
        match size {
            SizeItem::Value(value) => {
                let result = bindings.whole(value, WHAT, least, LARGEST_UNIT);
                self.report.keep(result).map(Size::Bytes)
            }
            SizeItem::Drawn(drawn) => {
                let result = bindings.distribution(drawn, &mut self.files);
                let distribution = self.report.keep(result)?;
                #[expect(clippy::cast_precision_loss, reason = "a power of two")]
                if distribution.bounds().1 > LARGEST_UNIT as f64 {
                    let message = format!("{WHAT} must be at most {LARGEST_UNIT}");
                    self.report
                        .push(Diagnostic::error(drawn.span, message, "this can be more"));
                    return None;
                }
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "within bounds, not negative"
                )]
                Some(match distribution.constant() {
                    Some(bytes) => Size::Bytes(((bytes + 0.5) as u64).max(least)),
                    None => Size::Drawn(distribution),
                })
            }
        }
    }

    fn second_size(&mut self, procedure: &Procedure, data: &DataItem, reply: &SizeItem) {
        let mut calls = procedure.calls(PairSide::Initiator);
        calls.extend(procedure.calls(PairSide::Responder));
        if !calls
            .into_iter()
            .any(|call| call.sizes().contains(&Some(SizeArgument::Reply)))
        {
            let span = match reply {
                SizeItem::Value(value) => value.span,
                SizeItem::Drawn(drawn) => drawn.span,
            };
            let message = format!(
                "`{}` has one size for its data units, not two",
                procedure.name
            );
            let diagnostic = Diagnostic::error(data.span.to(span), message, "expected one size");
            self.report.push(diagnostic.hint("omit the second size"));
        }
    }

    fn count(
        &mut self,
        item: &PartItem,
        data: &DataItem,
        procedure: &Procedure,
        bindings: Bindings<'_>,
        ends: bool,
    ) -> Option<UnitCount> {
        if let Some(count) = self.whole_file(item, data, procedure) {
            return count;
        }
        match &data.count {
            CountItem::Times(value) => {
                let result = bindings.whole(value, "the number of data units", 1, MOST_UNITS);
                self.report.keep(result).map(UnitCount::Units)
            }
            CountItem::Amount(value) => self.amount(value, data, bindings),
            CountItem::Open if ends => Some(UnitCount::Unlimited),
            // Nothing in it depends on the number: it ends by itself.
            CountItem::Open if !counts(&procedure.initiator) && !counts(&procedure.responder) => {
                Some(UnitCount::Units(1))
            }
            CountItem::Open => {
                let message = "this part would never end";
                let diagnostic = Diagnostic::error(
                    item.span,
                    message,
                    "no number of data units and no time limit",
                );
                let amount = match &data.unit {
                    SizeItem::Value(unit) if data.reply.is_none() => bindings.number(unit),
                    _ => 0.0,
                };
                let hint = if let Some(AccessItem::File(_)) = &item.source {
                    "write `< whole file NAME` to send that file once, or a number of units such as `*1000`"
                } else if amount > f64::from(1 << 20) {
                    "write the size of a data unit before the amount of data, as in `64 KiB 1 GB`"
                } else {
                    "write `timelimit 5` after the number of runs, or a number of units such as `*1000`"
                };
                self.report.push(diagnostic.hint(hint));
                None
            }
        }
    }

    /// Whether as much is sent as a FILE holds; `Some(None)` where that cannot be, which is reported.
    fn whole_file(
        &mut self,
        item: &PartItem,
        data: &DataItem,
        procedure: &Procedure,
    ) -> Option<Option<UnitCount>> {
        if let Some(AccessItem::WholeFile(name)) = &item.destination {
            let diagnostic = Diagnostic::error(
                name.span,
                "a FILE after `>` has no length yet",
                "it receives whatever is sent",
            );
            self.report
                .push(diagnostic.hint(format!("write `> file {}`", name.text)));
            return Some(None);
        }
        let Some(AccessItem::WholeFile(name)) = &item.source else {
            return None;
        };
        let sends = |side: PairSide| {
            procedure.calls(side).iter().any(|call| {
                matches!(
                    call,
                    OperationCall::DataRequest(_) | OperationCall::ReadFile(_)
                )
            })
        };
        let trouble = if !matches!(data.count, CountItem::Open) {
            Some((
                "specify either the whole FILE or a number of data units, not both",
                "omit `whole`, or omit the number or amount",
            ))
        } else if sends(PairSide::Initiator) && sends(PairSide::Responder) {
            Some((
                "both sides send, so it is not clear whose FILE is meant",
                "write the total amount after the size of a data unit, as in `64 KiB 1 GB`",
            ))
        } else {
            None
        };
        let Some((message, hint)) = trouble else {
            return Some(Some(UnitCount::WholeFile));
        };
        self.report
            .push(Diagnostic::error(name.span, message, "a whole FILE").hint(hint));
        Some(None)
    }

    /// Checks that the stack can carry the last data unit of an amount, which is shorter than the others.
    fn last_carried(
        &mut self,
        item: &PartItem,
        procedure: &Procedure,
        data: &DataSpec,
        table: &StackTable,
    ) {
        let least = least(procedure, table);
        let (UnitCount::Amount(amount), Some(written), true) = (data.count, &item.data, least > 1)
        else {
            return;
        };
        let name = table.name;
        let refused = match (&data.unit, data.last_unit()) {
            (Size::Drawn(_), _) => Some((
                "the last data unit could be truncated to any size".to_string(),
                "a number of units, as in `*1000`".into(),
            )),
            (Size::Bytes(unit), Some(last)) if last < least => {
                let whole = (amount / unit * unit).max(*unit);
                Some((
                    format!("the last data unit would be {last} B"),
                    format!("whole units, `{unit} {whole} B`"),
                ))
            }
            _ => None,
        };
        if let Some((label, right)) = refused {
            let message = format!("`{name}` carries data units of at least {least} bytes here");
            let diagnostic = Diagnostic::error(written.span, message, label);
            self.report.push(diagnostic.hint(format!("write {right}")));
        }
    }

    fn amount(
        &mut self,
        value: &SpecValue,
        data: &DataItem,
        bindings: Bindings<'_>,
    ) -> Option<UnitCount> {
        if matches!(&data.unit, SizeItem::Value(unit) if bindings.number(unit) == 0.0) {
            let message = "units of size 0 never add up to an amount";
            let diagnostic = Diagnostic::error(value.span, message, "an amount in bytes");
            self.report
                .push(diagnostic.hint("write a number of units, as in `0*1000`"));
            return None;
        }
        if let (Base::Number(bytes), SpecUnit::None) = (&value.base, &value.unit) {
            let message = format!("the amount of data is interpreted as {bytes} B");
            let diagnostic = Diagnostic::warning(value.span, message, "no unit");
            self.report.push(diagnostic.hint(format!(
                "write `{bytes} B`, or `*{bytes}` for that many data units"
            )));
        }
        let result = bindings.whole(value, "the amount of data", 1, 1_000_000_000_000_000);
        self.report.keep(result).map(UnitCount::Amount)
    }

    /// Checks that the stack can carry units of these sizes.
    fn carried(
        &mut self,
        item: &PartItem,
        procedure: &Procedure,
        data: &DataSpec,
        table: &StackTable,
    ) {
        if !procedure.carries_data() {
            return;
        }
        let calls = procedure.calls(PairSide::Initiator);
        let least = least(procedure, table);
        let spans = item.data.as_ref().map(|data| {
            let span = |size: &SizeItem| match size {
                SizeItem::Value(value) => value.span,
                SizeItem::Drawn(drawn) => drawn.span,
            };
            (
                span(&data.unit),
                data.reply.as_ref().map_or(span(&data.unit), span),
            )
        });
        let Some((unit, reply)) = spans else { return };
        self.within(range(&data.unit), unit, least, table);
        self.within(range(&data.reply), reply, least, table);
        for bytes in calls.into_iter().flat_map(OperationCall::sizes).flatten() {
            if let SizeArgument::Bytes(bytes) = bytes {
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "compared with limits far below 2^53"
                )]
                self.within(
                    (bytes as f64, bytes as f64),
                    item.application.span,
                    least,
                    table,
                );
            }
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "limits of stacks are far below 2^53, or no limits at all"
    )]
    fn within(&mut self, sizes: (f64, f64), span: TextSpan, least: u64, table: &StackTable) {
        let (low, high, name) = (sizes.0, sizes.1, table.name);
        if low < least as f64 {
            let message = format!("`{name}` carries data units of at least {least} bytes here");
            let diagnostic = Diagnostic::error(span, message, format!("this can be {low}"));
            self.report
                .push(diagnostic.hint(format!("write {least} or more")));
        }
        if high > table.largest_unit as f64 {
            let message = format!(
                "`{name}` carries data units of at most {} bytes",
                table.largest_unit
            );
            let diagnostic = Diagnostic::error(span, message, format!("this can be {high}"));
            self.report.push(
                diagnostic.hint("send smaller units, or choose a stack that carries a byte stream"),
            );
        }
    }

    /// Checks that both ends are on hosts that the stack permits.
    fn placed(&mut self, item: &PartItem, table: &StackTable) {
        let same =
            item.from.as_ref().map(|word| &word.text) == item.to.as_ref().map(|word| &word.text);
        if !table.one_host || same {
            return;
        }
        let far = [&item.from, &item.to].into_iter().flatten().find(|word| {
            self.hosts
                .get(&word.text)
                .is_some_and(|host| !matches!(host.via, Via::Local))
        });
        if let Some(word) = far {
            let message = format!("`{}` works only within one host", table.name);
            let diagnostic = Diagnostic::error(word.span, message, "this host is another machine");
            self.report
                .push(diagnostic.hint("choose a stack that crosses a network, such as `over tcp`"));
        }
    }

    fn accesses(
        &mut self,
        item: &PartItem,
        procedure: &Procedure,
        table: &StackTable,
    ) -> Option<(DataAccess, DataAccess)> {
        let before = self.report.errors();
        let (source, destination) = (
            access(item.source.as_ref()),
            access(item.destination.as_ref()),
        );
        for (end, reading) in [(&item.source, true), (&item.destination, false)] {
            if let Some(name) = end.as_ref().and_then(AccessItem::file) {
                self.file_end(&name.text, name.span, reading, procedure, table);
            }
        }
        if table.own_data && [&source, &destination].contains(&&DataAccess::VirtualMemory) {
            let message = format!(
                "over `{}`, no data comes from stackline's memory",
                table.name
            );
            let label = "its programs make the data units";
            let diagnostic = Diagnostic::error(item.application.span, message, label);
            self.report
                .push(diagnostic.hint("omit `virtual memory`, or choose another stack"));
        }
        let mut calls = procedure.calls(PairSide::Initiator);
        calls.extend(procedure.calls(PairSide::Responder));
        let reads = calls
            .iter()
            .any(|call| matches!(call, OperationCall::ReadFile(_)));
        let writes = calls
            .iter()
            .any(|call| matches!(call, OperationCall::WriteFile(_)));
        for (needed, end, sign, name) in [
            (reads, &source, '<', "ReadFile"),
            (writes, &destination, '>', "WriteFile"),
        ] {
            if needed && !matches!(end, DataAccess::File(_)) {
                let message = format!("`{}` uses {name}, but no FILE is given", procedure.name);
                let diagnostic = Diagnostic::error(
                    item.application.span,
                    message,
                    format!("expected `{sign} file NAME`"),
                );
                self.report
                    .push(diagnostic.hint(format!("write `{sign} file NAME` after the sizes")));
            }
        }
        (self.report.errors() == before).then_some((source, destination))
    }

    fn file_end(
        &mut self,
        name: &str,
        span: TextSpan,
        reading: bool,
        procedure: &Procedure,
        table: &StackTable,
    ) {
        let mut calls = procedure.calls(PairSide::Initiator);
        calls.extend(procedure.calls(PairSide::Responder));
        let used = calls.iter().any(|call| match call {
            OperationCall::DataRequest(_) | OperationCall::ReadFile(_) => reading,
            OperationCall::AwaitDataIndication(_) | OperationCall::WriteFile(_) => !reading,
            _ => false,
        });
        let diagnostic = if !table.files {
            let message = format!("`{}` does not carry files", table.name);
            Diagnostic::error(span, message, "a FILE").hint("use `memory`, or another stack")
        } else if !used {
            let message = format!("`{}` does not use a FILE", procedure.name);
            Diagnostic::error(span, message, "a FILE")
                .hint("use files with bulk transfers, ReadFile or WriteFile")
        } else if name.is_empty()
            || name.starts_with('/')
            || name.split('/').any(|step| step == "..")
        {
            Diagnostic::error(
                span,
                "a FILE must be in the directory that the host's agent may use",
                "expected a name within it",
            )
            .hint("specify the directory with `host NAME files \"DIRECTORY\";` and give a name within it here")
        } else {
            return;
        };
        self.report.push(diagnostic);
    }

    fn cores<'s>(
        &mut self,
        specification: &'s Specification,
        item: &'s PartItem,
        bindings: Bindings<'_>,
    ) -> Option<(Option<usize>, Option<usize>)> {
        if let Some((initiator, responder)) = self.overrides.cpu {
            return Some((Some(initiator), Some(responder)));
        }
        let pick = |kind: &'s ClauseKind| {
            if let ClauseKind::Cpu(first, second) = kind {
                Some((first, second))
            } else {
                None
            }
        };
        let Some(((first, second), _)) = find_effective_clause(specification, item, pick) else {
            return Some((None, None));
        };
        let mut core = |value: &SpecValue| {
            let result = bindings.whole(value, "the core number", 0, MOST_CORES);
            self.report
                .keep(result)
                .and_then(|core| usize::try_from(core).ok())
        };
        let initiator = core(first)?;
        let responder = second.as_ref().map_or(Some(initiator), core)?;
        Some((Some(initiator), Some(responder)))
    }
}

fn access(item: Option<&AccessItem>) -> DataAccess {
    match item {
        None | Some(AccessItem::Memory) => DataAccess::Memory,
        Some(AccessItem::VirtualMemory) => DataAccess::VirtualMemory,
        Some(AccessItem::File(name) | AccessItem::WholeFile(name)) => {
            DataAccess::File(name.text.clone())
        }
    }
}

/// The smallest data unit of a procedure over a stack.
fn least(procedure: &Procedure, table: &StackTable) -> u64 {
    let bulk = procedure
        .calls(PairSide::Initiator)
        .into_iter()
        .any(|c| matches!(c, OperationCall::StartBulkGet | OperationCall::StartBulkPut));
    if bulk {
        table.least_unit.max(table.least_bulk_unit)
    } else {
        table.least_unit
    }
}

/// Whether a part is background load, which is not measured.
fn is_load(specification: &Specification, index: usize) -> bool {
    matches!(
        specification.composer,
        Composer::Background | Composer::PriorityBackground
    ) && index > 0
}

/// Whether a repeat goes by the data specification's count.
fn counts(steps: &[ProcedureStep]) -> bool {
    steps.iter().any(|step| match step {
        ProcedureStep::Call(_) => false,
        ProcedureStep::Repeat(CountArgument::Count, _) => true,
        ProcedureStep::Repeat(CountArgument::Times(_), body) => counts(body),
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "compared with limits far below 2^53"
)]
fn range(size: &Size) -> (f64, f64) {
    match size {
        Size::Bytes(bytes) => (*bytes as f64, *bytes as f64),
        Size::Drawn(distribution) => {
            // A draw is at least one byte.
            let (low, high) = distribution.bounds();
            (low.max(1.0), high.max(1.0))
        }
    }
}
