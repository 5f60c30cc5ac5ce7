//! Checks that the two sides of a procedure match: otherwise both could wait for each other for ever.
//!
//! Local operations are ignored. An RPCCall corresponds to an RPCAwaitCallInd and an RPCReturn at the other side.

use super::spanned_step::{SpannedStep, StepKind};
use crate::diagnostic::{Diagnostic, DiagnosticReport, TextSpan};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use stackline_core::procedure::{CountArgument, OperationCall, SizeArgument};

/// A side without its local operations.
enum SideOutline {
    Call(OperationCall, TextSpan),
    Repeat(CountArgument, Vec<Self>, TextSpan),
}

impl SideOutline {
    const fn span(&self) -> TextSpan {
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

fn described(call: &OperationCall) -> String {
    match call {
        OperationCall::DataRequest(size)
        | OperationCall::AwaitDataIndication(size)
        | OperationCall::RpcAwaitCallInd(size)
        | OperationCall::RpcReturn(size) => format!("{}({})", call.name(), sized(*size)),
        _ => call.name().to_string(),
    }
}

/// The operations of the other side that correspond to this one; none for a local operation.
fn mirrored(call: &OperationCall) -> Vec<OperationCall> {
    match call {
        OperationCall::ConnectRequest => alloc::vec![OperationCall::AwaitConnectIndication],
        OperationCall::DisconnectRequest => alloc::vec![OperationCall::AwaitDisconnectIndication],
        OperationCall::StartBulkGet => alloc::vec![OperationCall::AwaitStartBulkGet],
        OperationCall::StopBulkGet => alloc::vec![OperationCall::AwaitStopBulkGet],
        OperationCall::StartBulkPut => alloc::vec![OperationCall::AwaitStartBulkPut],
        OperationCall::StopBulkPut => alloc::vec![OperationCall::AwaitStopBulkPut],
        OperationCall::DataRequest(size) => alloc::vec![OperationCall::AwaitDataIndication(*size)],
        OperationCall::AwaitDataIndication(size) => alloc::vec![OperationCall::DataRequest(*size)],
        OperationCall::RpcCall(request, response) => {
            alloc::vec![
                OperationCall::RpcAwaitCallInd(*request),
                OperationCall::RpcReturn(*response)
            ]
        }
        _ => Vec::new(),
    }
}

fn shape(steps: &[SpannedStep], turn: bool) -> Vec<SideOutline> {
    let mut shapes = Vec::new();
    for step in steps {
        match &step.kind {
            StepKind::Call(call) if turn => {
                shapes.extend(
                    mirrored(call)
                        .into_iter()
                        .map(|call| SideOutline::Call(call, step.span)),
                );
            }
            StepKind::Call(call) if call.is_local() => {}
            StepKind::Call(call) => shapes.push(SideOutline::Call(call.clone(), step.span)),
            StepKind::Repeat(count, body) => {
                let body = shape(body, turn);
                if !body.is_empty() {
                    shapes.push(SideOutline::Repeat(*count, body, step.span));
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
    end: TextSpan,
    report: &mut DiagnosticReport,
) {
    if let Some(mismatch) = differ(&shape(initiator, true), &shape(responder, false), end) {
        report.push(mismatch);
    }
}

fn differ(wanted: &[SideOutline], found: &[SideOutline], end: TextSpan) -> Option<Diagnostic> {
    for index in 0..wanted.len().max(found.len()) {
        let mismatch = match (wanted.get(index), found.get(index)) {
            (Some(SideOutline::Call(a, _)), Some(SideOutline::Call(b, _))) if a == b => None,
            (Some(SideOutline::Repeat(a, inner, _)), Some(SideOutline::Repeat(b, body, span)))
                if a == b =>
            {
                differ(inner, body, *span)
            }
            (Some(wanted), Some(found)) => {
                Some(mismatched(found.span(), Some(wanted), Some(found)))
            }
            (wanted, found) => {
                let span = found.map_or(end, SideOutline::span);
                Some(mismatched(span, wanted, found))
            }
        };
        if mismatch.is_some() {
            return mismatch;
        }
    }
    None
}

fn mismatched(
    span: TextSpan,
    wanted: Option<&SideOutline>,
    found: Option<&SideOutline>,
) -> Diagnostic {
    let found = found.map_or("nothing more".to_string(), SideOutline::describe);
    let wanted = wanted.map_or("nothing more".to_string(), SideOutline::describe);
    let message = "the operations of the two sides do not match";
    Diagnostic::error(span, message, format!("the responder has {found} here, but the initiator needs {wanted}"))
        .hint("each operation of the initiator needs a counterpart at the responder, in the same order and with the same repeats")
}

/// What the initiator may do at this point.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MirrorState {
    Apart,
    Connected,
    Getting,
    Putting,
}

/// Reports operations outside a connection, and bulk transfers that do not nest.
pub(crate) fn connections(initiator: &[SpannedStep], report: &mut DiagnosticReport) {
    match walk(initiator, MirrorState::Apart) {
        Err(diagnostic) => report.push(diagnostic),
        Ok(MirrorState::Apart) => {}
        Ok(_) => {
            let span = initiator
                .last()
                .map_or(TextSpan::default(), |placed| placed.span);
            report.push(
                Diagnostic::error(
                    span,
                    "the initiator ends while it is still connected",
                    "expected DisconnectRequest after this",
                )
                .hint("end both sides: `DisconnectRequest;` and `AwaitDisconnectIndication;`"),
            );
        }
    }
}

fn walk(steps: &[SpannedStep], mut state: MirrorState) -> Result<MirrorState, Diagnostic> {
    for step in steps {
        state = match &step.kind {
            StepKind::Call(call) => after(call, state, step.span)?,
            StepKind::Repeat(_, body) => {
                let then = walk(body, state)?;
                if then != state {
                    let message = "this repeat does not end in the state in which it began";
                    return Err(Diagnostic::error(
                        step.span,
                        message,
                        "connected before but not after, or vice versa",
                    )
                    .hint("open and close a connection or a bulk transfer within the same block"));
                }
                state
            }
        };
    }
    Ok(state)
}

fn after(
    call: &OperationCall,
    state: MirrorState,
    span: TextSpan,
) -> Result<MirrorState, Diagnostic> {
    use MirrorState::{Apart, Connected, Getting, Putting};
    let refused = |message: String, label: &str| Err(Diagnostic::error(span, message, label));
    let name = call.name();
    match (call, state) {
        (call, state) if call.is_local() => Ok(state),
        (OperationCall::ConnectRequest, Apart) => Ok(Connected),
        (OperationCall::ConnectRequest, _) => refused(
            format!("`{name}` while already connected"),
            "expected DisconnectRequest before this",
        ),
        (_, Apart) => Err(Diagnostic::error(
            span,
            format!("`{name}` without a connection"),
            "expected ConnectRequest before this",
        )
        .hint("begin with `ConnectRequest;` and, at the responder, `AwaitConnectIndication;`")),
        (OperationCall::DisconnectRequest, Connected) => Ok(Apart),
        (OperationCall::StartBulkGet, Connected) => Ok(Getting),
        (OperationCall::StartBulkPut, Connected) => Ok(Putting),
        (OperationCall::StopBulkGet, Getting) | (OperationCall::StopBulkPut, Putting) => {
            Ok(Connected)
        }
        (OperationCall::AwaitDataIndication(_), Connected | Getting)
        | (OperationCall::DataRequest(_), Connected | Putting) => Ok(state),
        (OperationCall::RpcCall(..), Connected) => Ok(state),
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
            "this has no matching start before it",
        ),
    }
}
