//! Compiles a procedure's tree: checks arguments, sides, the measured interval and connections.
//!
//! Whether the two sides match is checked in [`super::side_matching`].

use super::evaluate::{Bindings, fixed};
use super::referenced_files::SpecFiles;
use super::side_matching;
use super::spanned_step::{SpannedStep, StepKind};
use crate::diagnostic::{Diagnostic, DiagnosticReport, TextSpan};
use crate::spelling;
use crate::tree::{Argument, ProcedureItem, SpecUnit, SpecValue, Statement, Word};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::procedure::{
    CountArgument, DelayArgument, OPERATIONS, OperationArguments, OperationCall, PairSide,
    Procedure, ProcedureStep, SizeArgument,
};

/// Largest size of a data unit, 1 TiB.
pub(crate) const LARGEST_UNIT: u64 = 1 << 40;

struct Compiler<'c, 'f> {
    timings: &'c [Word],
    used: Vec<bool>,
    side: PairSide,
    report: &'c mut DiagnosticReport,
    files: &'c mut SpecFiles<'f>,
}

/// The compiled procedure, if it has no mistake.
pub(crate) fn compile(
    item: &ProcedureItem,
    report: &mut DiagnosticReport,
    files: &mut SpecFiles<'_>,
) -> Option<Procedure> {
    let before = report.errors();
    let mut compiler = Compiler {
        timings: &item.timings,
        used: alloc::vec![false; item.timings.len()],
        side: PairSide::Initiator,
        report,
        files,
    };
    let initiator = compiler.side(item, PairSide::Initiator);
    let responder = compiler.side(item, PairSide::Responder);
    let unused: Vec<&Word> = item
        .timings
        .iter()
        .zip(&compiler.used)
        .filter(|(_, used)| !**used)
        .map(|(word, _)| word)
        .collect();
    if item.broken || report.errors() > before {
        return None;
    }
    for word in unused {
        let message = format!("the timing `{}` is never used", word.text);
        report.push(Diagnostic::warning(
            word.span,
            message,
            "no Delay or Pace uses it",
        ));
    }
    measured(&initiator, item, report);
    side_matching::connections(&initiator, report);
    if report.errors() == before {
        side_matching::compare(&initiator, &responder, item.name.span, report);
    }
    (report.errors() == before).then(|| Procedure {
        name: spelling::application_text(&item.name.text),
        timings: item.timings.iter().map(|word| word.text.clone()).collect(),
        initiator: steps(initiator),
        responder: steps(responder),
    })
}

fn steps(placed: Vec<SpannedStep>) -> Vec<ProcedureStep> {
    placed
        .into_iter()
        .map(|placed| match placed.kind {
            StepKind::Call(call) => ProcedureStep::Call(call),
            StepKind::Repeat(count, body) => ProcedureStep::Repeat(count, steps(body)),
        })
        .collect()
}

/// Checks that there is one StartMeasurement, and one StopMeasurement after it, outside any repeat.
fn measured(initiator: &[SpannedStep], item: &ProcedureItem, report: &mut DiagnosticReport) {
    let outer = |wanted: &OperationCall| -> Vec<usize> {
        let calls = initiator.iter().enumerate();
        calls
            .filter(|(_, p)| matches!(&p.kind, StepKind::Call(call) if call == wanted))
            .map(|(index, _)| index)
            .collect()
    };
    let name = &item.name;
    if let Some(span) = within_repeat(initiator, false) {
        report.push(
            Diagnostic::error(
                span,
                "the measured interval begins or ends inside a repeat",
                "expected outside any repeat",
            )
            .hint("put StartMeasurement and StopMeasurement around the repeat"),
        );
        return;
    }
    let (starts, stops) = (
        outer(&OperationCall::StartMeasurement),
        outer(&OperationCall::StopMeasurement),
    );
    let right = matches!((starts.as_slice(), stops.as_slice()), ([start], [stop]) if start < stop);
    if !right {
        let message = format!(
            "the initiator of `{}` must measure exactly one interval",
            name.text
        );
        report.push(
            Diagnostic::error(
                name.span,
                message,
                "expected one StartMeasurement, followed by one StopMeasurement",
            )
            .hint(
                "put `StartMeasurement;` and `StopMeasurement;` around the operations to be timed",
            ),
        );
    }
}

fn within_repeat(steps: &[SpannedStep], inside: bool) -> Option<TextSpan> {
    steps.iter().find_map(|placed| match &placed.kind {
        StepKind::Repeat(_, body) => within_repeat(body, true),
        StepKind::Call(OperationCall::StartMeasurement | OperationCall::StopMeasurement)
            if inside =>
        {
            Some(placed.span)
        }
        StepKind::Call(_) => None,
    })
}

/// The hint for a responder that calls another host.
const CHAIN: &str = "a chain of calls through an intermediate host cannot be specified; use `Delay` at the responder to represent the hosts behind it";

impl Compiler<'_, '_> {
    fn side(&mut self, item: &ProcedureItem, side: PairSide) -> Vec<SpannedStep> {
        self.side = side;
        let (statements, word) = match side {
            PairSide::Initiator => (&item.initiator, "initiator"),
            PairSide::Responder => (&item.responder, "responder"),
        };
        let Some(statements) = statements else {
            if !item.broken {
                let message = format!("the procedure `{}` has no {word}", item.name.text);
                let label = format!("expected `{word} {{ ... }}` in it");
                self.report
                    .push(Diagnostic::error(item.name.span, message, label));
            }
            return Vec::new();
        };
        self.statements(statements)
    }

    fn statements(&mut self, statements: &[Statement]) -> Vec<SpannedStep> {
        let mut placed = Vec::new();
        for statement in statements {
            match self.statement(statement) {
                Ok(step) => placed.push(step),
                Err(diagnostic) => self.report.push(diagnostic),
            }
        }
        placed
    }

    fn statement(&mut self, statement: &Statement) -> Result<SpannedStep, Diagnostic> {
        match statement {
            Statement::Repeat(times, body, span) => {
                let count = match times {
                    None => CountArgument::Count,
                    Some(value) => CountArgument::Times(fixed(
                        value,
                        "the repeat count",
                        1,
                        1_000_000_000_000,
                    )?),
                };
                Ok(SpannedStep {
                    span: *span,
                    kind: StepKind::Repeat(count, self.statements(body)),
                })
            }
            Statement::Call(name, arguments, span) => Ok(SpannedStep {
                span: *span,
                kind: StepKind::Call(self.call(name, arguments, *span)?),
            }),
        }
    }

    fn call(
        &mut self,
        name: &'static str,
        arguments: &[Argument],
        span: TextSpan,
    ) -> Result<OperationCall, Diagnostic> {
        let (takes, side) = OPERATIONS
            .iter()
            .find(|(known, ..)| *known == name)
            .map_or((OperationArguments::Nothing, None), |(_, takes, side)| {
                (*takes, *side)
            });
        if side.is_some_and(|side| side != self.side) {
            let (here, there) = match self.side {
                PairSide::Initiator => ("initiator", "responder"),
                PairSide::Responder => ("responder", "initiator"),
            };
            let message = format!("`{name}` is not an operation of the {here}");
            let diagnostic =
                Diagnostic::error(span, message, format!("only the {there} may do this"));
            return Err(if name == "RPCCall" {
                diagnostic.hint(CHAIN)
            } else {
                diagnostic
            });
        }
        let most = match takes {
            OperationArguments::Nothing => 0,
            OperationArguments::TwoSizes => 2,
            OperationArguments::Size | OperationArguments::Delay | OperationArguments::Name => 1,
        };
        if arguments.len() > most {
            let message = format!("`{name}` takes {}", plural(most));
            return Err(Diagnostic::error(
                span,
                message,
                format!("{} given", arguments.len()),
            ));
        }
        let size = |at: usize, otherwise: SizeArgument| {
            arguments.get(at).map_or(Ok(otherwise), size_argument)
        };
        use SizeArgument::{Reply, Unit};
        Ok(match name {
            "DataRequest" => OperationCall::DataRequest(size(0, Unit)?),
            "AwaitDataIndication" => OperationCall::AwaitDataIndication(size(0, Unit)?),
            "RPCCall" => OperationCall::RpcCall(size(0, Unit)?, size(1, Reply)?),
            "RPCAwaitCallInd" => OperationCall::RpcAwaitCallInd(size(0, Unit)?),
            "RPCReturn" => OperationCall::RpcReturn(size(0, Reply)?),
            "ReadFile" => OperationCall::ReadFile(size(0, Unit)?),
            "WriteFile" => OperationCall::WriteFile(size(0, Unit)?),
            "Delay" => OperationCall::Delay(self.delay(name, arguments, span)?),
            "Pace" => OperationCall::Pace(self.delay(name, arguments, span)?),
            "Mark" => OperationCall::Mark(mark(arguments, span)?),
            _ => plain(name),
        })
    }

    fn delay(
        &mut self,
        name: &str,
        arguments: &[Argument],
        span: TextSpan,
    ) -> Result<DelayArgument, Diagnostic> {
        match arguments.first() {
            Some(Argument::Drawn(drawn)) => Ok(DelayArgument::Drawn(
                Bindings(&[]).distribution(drawn, self.files)?,
            )),
            Some(Argument::Word(word)) => {
                let position = self
                    .timings
                    .iter()
                    .position(|timing| timing.text == word.text);
                if let Some(index) = position {
                    if let Some(used) = self.used.get_mut(index) {
                        *used = true;
                    }
                    return Ok(DelayArgument::Timing(index));
                }
                let message = format!("unknown timing `{}`", word.text);
                let hint = format!(
                    "list it after the procedure's name, as in `procedure name({}) {{`",
                    word.text
                );
                let known: Vec<&str> = self
                    .timings
                    .iter()
                    .map(|timing| timing.text.as_str())
                    .collect();
                Err(
                    Diagnostic::error(word.span, message, "expected a timing or a distribution")
                        .did_you_mean(&word.text, known, hint),
                )
            }
            Some(Argument::Value(value)) => {
                let message = format!("`{name}` takes a timing or a distribution");
                let seconds = Bindings(&[]).number(value);
                Err(Diagnostic::error(value.span, message, "this is a number")
                    .hint(format!("write `{name}(constant({seconds}))`")))
            }
            None => {
                let message = format!("`{name}` takes a timing or a distribution");
                Err(Diagnostic::error(span, message, "no argument is given")
                    .hint(format!("write `{name}(constant(1 ms))`, or name a timing")))
            }
        }
    }
}

fn plural(number: usize) -> String {
    match number {
        0 => "no arguments".into(),
        1 => "one argument".into(),
        _ => format!("{number} arguments"),
    }
}

fn size_argument(argument: &Argument) -> Result<SizeArgument, Diagnostic> {
    match argument {
        Argument::Word(word) if spelling::fold(&word.text) == "unit" => Ok(SizeArgument::Unit),
        Argument::Word(word) if spelling::fold(&word.text) == "reply" => Ok(SizeArgument::Reply),
        Argument::Value(
            value @ SpecValue {
                unit: SpecUnit::None | SpecUnit::Size(_),
                ..
            },
        ) => Ok(SizeArgument::Bytes(fixed(
            value,
            "the size of a data unit",
            1,
            LARGEST_UNIT,
        )?)),
        Argument::Value(value) => Err(no_size(value.span)),
        Argument::Drawn(drawn) => Err(no_size(drawn.span)),
        Argument::Word(word) => {
            Err(no_size(word.span).did_you_mean(&word.text, ["unit", "reply"], SIZES))
        }
    }
}

const SIZES: &str = "write `unit`, `reply`, or a number of bytes such as `64 KiB`";

fn no_size(span: TextSpan) -> Diagnostic {
    Diagnostic::error(
        span,
        "this is not a size",
        "expected `unit`, `reply` or a number of bytes",
    )
    .hint(SIZES)
}

fn mark(arguments: &[Argument], span: TextSpan) -> Result<String, Diagnostic> {
    match arguments.first() {
        Some(Argument::Word(word)) => Ok(word.text.clone()),
        _ => Err(Diagnostic::error(
            span,
            "`Mark` takes a name",
            "expected a name, as in `Mark(halfway)`",
        )),
    }
}

fn plain(name: &str) -> OperationCall {
    const PLAIN: &[OperationCall] = &[
        OperationCall::ConnectRequest,
        OperationCall::AwaitConnectIndication,
        OperationCall::DisconnectRequest,
        OperationCall::AwaitDisconnectIndication,
        OperationCall::StartBulkGet,
        OperationCall::AwaitStartBulkGet,
        OperationCall::StopBulkGet,
        OperationCall::AwaitStopBulkGet,
        OperationCall::StartBulkPut,
        OperationCall::AwaitStartBulkPut,
        OperationCall::StopBulkPut,
        OperationCall::AwaitStopBulkPut,
        OperationCall::StartMeasurement,
    ];
    PLAIN
        .iter()
        .find(|call| call.name() == name)
        .cloned()
        .unwrap_or(OperationCall::StopMeasurement)
}
