//! Checks that a program ends with the data it is given, and draws the same sizes on both sides.
//!
//! The cursor relies on this: a repeat that nothing ends would run for ever, and sides whose draws differ would
//! disagree about where a data unit ends.

use crate::diagnostic::{Diagnostic, TextSpan};
use alloc::format;
use stackline_core::plan::{DataSpec, Size, UnitCount};
use stackline_core::procedure::{
    CountArgument, OperationCall, Procedure, ProcedureStep, SizeArgument,
};

/// The first thing that would go wrong.
pub(crate) fn check_termination(
    procedure: &Procedure,
    data: &DataSpec,
    span: TextSpan,
) -> Option<Diagnostic> {
    let name = &procedure.name;
    let sides = [&procedure.initiator, &procedure.responder];
    let any = |bad: &dyn Fn(&[ProcedureStep]) -> bool| {
        sides.into_iter().any(|steps| any_counted(steps, bad))
    };
    let drawn = |size: &Size| matches!(size, Size::Drawn(_));
    if data.count == UnitCount::Unlimited && any(&|body| !any_call(body, &communicates)) {
        let message = format!("repeating `{name}` would never end");
        return Some(
            Diagnostic::error(span, message, "it only waits, so no time limit can end it")
                .hint("write a number of units, as in `*1000`"),
        );
    }
    let unsized_body = |body: &[ProcedureStep]| {
        !any_call(body, &|call| {
            call.sizes().contains(&Some(SizeArgument::Unit))
        })
    };
    if matches!(data.count, UnitCount::Amount(_) | UnitCount::WholeFile)
        && drawn(&data.unit)
        && any(&unsized_body)
    {
        let message = format!("repeating `{name}` would never reach the amount");
        return Some(
            Diagnostic::error(span, message, "none of its data units has this size")
                .hint("write a number of units, as in `*1000`"),
        );
    }
    let local = |call: &OperationCall| {
        matches!(
            call,
            OperationCall::ReadFile(SizeArgument::Unit)
                | OperationCall::WriteFile(SizeArgument::Unit)
        ) && drawn(&data.unit)
            || matches!(
                call,
                OperationCall::ReadFile(SizeArgument::Reply)
                    | OperationCall::WriteFile(SizeArgument::Reply)
            ) && drawn(&data.reply)
    };
    if sides.into_iter().any(|steps| any_call(steps, &local)) {
        let message = format!("`{name}` reads or writes a file in units of random size");
        let label = "the other side would draw different sizes";
        return Some(
            Diagnostic::error(span, message, label)
                .hint("give ReadFile and WriteFile a size in bytes, or write a fixed size here"),
        );
    }
    None
}

const fn communicates(call: &OperationCall) -> bool {
    call.drives().is_some()
}

/// Whether `bad` holds for the body of a repeat that goes by the data's count.
fn any_counted(steps: &[ProcedureStep], bad: &dyn Fn(&[ProcedureStep]) -> bool) -> bool {
    steps.iter().any(|step| match step {
        ProcedureStep::Call(_) => false,
        ProcedureStep::Repeat(count, body) => {
            (*count == CountArgument::Count && bad(body)) || any_counted(body, bad)
        }
    })
}

fn any_call(steps: &[ProcedureStep], is: &dyn Fn(&OperationCall) -> bool) -> bool {
    steps.iter().any(|step| match step {
        ProcedureStep::Call(call) => is(call),
        ProcedureStep::Repeat(_, body) => any_call(body, is),
    })
}
