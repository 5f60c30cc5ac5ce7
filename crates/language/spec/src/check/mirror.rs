//! Whether the two sides of a procedure fit together: a mismatch would let both wait for ever.
//!
//! Local operations do not matter here. An RPCCall is an RPCAwaitCallInd and an RPCReturn at the far side.

use super::step::{SpannedStep, StepKind};
use crate::diagnostic::{Diagnostic, Report, Span};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use stackline_core::program::{Call, CountArgument, SizeArgument};

/// A side without its local operations.
enum Shape {
    Call(Call, Span),
    Repeat(CountArgument, Vec<Self>, Span),
}

impl Shape {
    const fn span(&self) -> Span {
        match self {
            Self::Call(_, span) | Self::Repeat(_, _, span) => *span,
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Call(call, _) => format!("`{}`", described(call)),
            Self::Repeat(count, ..) => format!("`repeat {}`", counted(*count)),
        }
    }
}

fn counted(count: CountArgument) -> String {
    match count {
        CountArgument::Count => "count".to_string(),
        CountArgument::Times(times) => times.to_string(),
    }
}

fn sized(size: SizeArgument) -> String {
    match size {
        SizeArgument::Unit => "unit".to_string(),
        SizeArgument::Reply => "reply".to_string(),
        SizeArgument::Bytes(bytes) => bytes.to_string(),
    }
}

fn described(call: &Call) -> String {
    match call {
        Call::DataRequest(size)
        | Call::AwaitDataIndication(size)
        | Call::RpcAwaitCallInd(size)
        | Call::RpcReturn(size) => format!("{}({})", call.name(), sized(*size)),
        _ => call.name().to_string(),
    }
}

/// StepKind the far side has to do for it; nothing for a local operation.
fn mirrored(call: &Call) -> Vec<Call> {
    match call {
        Call::ConnectRequest => alloc::vec![Call::AwaitConnectIndication],
        Call::DisconnectRequest => alloc::vec![Call::AwaitDisconnectIndication],
        Call::StartBulkGet => alloc::vec![Call::AwaitStartBulkGet],
        Call::StopBulkGet => alloc::vec![Call::AwaitStopBulkGet],
        Call::StartBulkPut => alloc::vec![Call::AwaitStartBulkPut],
        Call::StopBulkPut => alloc::vec![Call::AwaitStopBulkPut],
        Call::DataRequest(size) => alloc::vec![Call::AwaitDataIndication(*size)],
        Call::AwaitDataIndication(size) => alloc::vec![Call::DataRequest(*size)],
        Call::RpcCall(request, response) => {
            alloc::vec![Call::RpcAwaitCallInd(*request), Call::RpcReturn(*response)]
        }
        _ => Vec::new(),
    }
}

fn shape(steps: &[SpannedStep], turn: bool) -> Vec<Shape> {
    let mut shapes = Vec::new();
    for step in steps {
        match &step.kind {
            StepKind::Call(call) if turn => {
                shapes.extend(
                    mirrored(call)
                        .into_iter()
                        .map(|call| Shape::Call(call, step.span)),
                );
            }
            StepKind::Call(call) if call.is_local() => {}
            StepKind::Call(call) => shapes.push(Shape::Call(call.clone(), step.span)),
            StepKind::Repeat(count, body) => {
                let body = shape(body, turn);
                if !body.is_empty() {
                    shapes.push(Shape::Repeat(*count, body, step.span));
                }
            }
        }
    }
    shapes
}

/// Reports the first place where the responder does not do what the initiator needs.
pub(crate) fn compare(
    initiator: &[SpannedStep],
    responder: &[SpannedStep],
    end: Span,
    report: &mut Report,
) {
    if let Some(mismatch) = differ(&shape(initiator, true), &shape(responder, false), end) {
        report.push(mismatch);
    }
}

fn differ(wanted: &[Shape], found: &[Shape], end: Span) -> Option<Diagnostic> {
    for index in 0..wanted.len().max(found.len()) {
        let mismatch = match (wanted.get(index), found.get(index)) {
            (Some(Shape::Call(a, _)), Some(Shape::Call(b, _))) if a == b => None,
            (Some(Shape::Repeat(a, inner, _)), Some(Shape::Repeat(b, body, span))) if a == b => {
                differ(inner, body, *span)
            }
            (Some(wanted), Some(found)) => {
                Some(mismatched(found.span(), Some(wanted), Some(found)))
            }
            (wanted, found) => {
                let span = found.map_or(end, Shape::span);
                Some(mismatched(span, wanted, found))
            }
        };
        if mismatch.is_some() {
            return mismatch;
        }
    }
    None
}

fn mismatched(span: Span, wanted: Option<&Shape>, found: Option<&Shape>) -> Diagnostic {
    let found = found.map_or("nothing more".to_string(), Shape::describe);
    let wanted = wanted.map_or("nothing more".to_string(), Shape::describe);
    let message = "the two sides do not fit together, operation by operation";
    Diagnostic::error(span, message, format!("the responder has {found} here, the initiator needs {wanted}"))
        .hint("each operation of the initiator needs its counterpart at the responder, in the same order and repeats")
}

/// StepKind the initiator may do now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Apart,
    Connected,
    Getting,
    Putting,
}

/// Reports operations outside a connection, and bulk transfers that do not nest.
pub(crate) fn connections(initiator: &[SpannedStep], report: &mut Report) {
    match walk(initiator, State::Apart) {
        Err(diagnostic) => report.push(diagnostic),
        Ok(State::Apart) => {}
        Ok(_) => {
            let span = initiator
                .last()
                .map_or(Span::default(), |placed| placed.span);
            report.push(
                Diagnostic::error(
                    span,
                    "the initiator ends while it is connected",
                    "expected DisconnectRequest behind this",
                )
                .hint("end both sides: `DisconnectRequest;` and `AwaitDisconnectIndication;`"),
            );
        }
    }
}

fn walk(steps: &[SpannedStep], mut state: State) -> Result<State, Diagnostic> {
    for step in steps {
        state = match &step.kind {
            StepKind::Call(call) => after(call, state, step.span)?,
            StepKind::Repeat(_, body) => {
                let then = walk(body, state)?;
                if then != state {
                    let message = "a pass of this repeat does not end as it began";
                    return Err(Diagnostic::error(
                        step.span,
                        message,
                        "connected before and not behind, or the reverse",
                    )
                    .hint("open and close a connection or a bulk transfer within the same block"));
                }
                state
            }
        };
    }
    Ok(state)
}

fn after(call: &Call, state: State, span: Span) -> Result<State, Diagnostic> {
    use State::{Apart, Connected, Getting, Putting};
    let refused = |message: String, label: &str| Err(Diagnostic::error(span, message, label));
    let name = call.name();
    match (call, state) {
        (call, state) if call.is_local() => Ok(state),
        (Call::ConnectRequest, Apart) => Ok(Connected),
        (Call::ConnectRequest, _) => refused(
            format!("`{name}` while already connected"),
            "expected DisconnectRequest before this",
        ),
        (_, Apart) => Err(Diagnostic::error(
            span,
            format!("`{name}` without a connection"),
            "expected ConnectRequest before this",
        )
        .hint("begin with `ConnectRequest;` and, at the responder, `AwaitConnectIndication;`")),
        (Call::DisconnectRequest, Connected) => Ok(Apart),
        (Call::StartBulkGet, Connected) => Ok(Getting),
        (Call::StartBulkPut, Connected) => Ok(Putting),
        (Call::StopBulkGet, Getting) | (Call::StopBulkPut, Putting) => Ok(Connected),
        (Call::AwaitDataIndication(_), Connected | Getting)
        | (Call::DataRequest(_), Connected | Putting) => Ok(state),
        (Call::RpcCall(..), Connected) => Ok(state),
        (_, Getting) => refused(
            format!("`{name}` within a bulk get"),
            "expected AwaitDataIndication or StopBulkGet",
        ),
        (_, Putting) => refused(
            format!("`{name}` within a bulk put"),
            "expected DataRequest or StopBulkPut",
        ),
        (_, Connected) => refused(
            format!("`{name}` outside a bulk transfer"),
            "expected its start before this",
        ),
    }
}
