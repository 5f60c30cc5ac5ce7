//! The steps of a benchmark procedure as text, with the sizes and delays of a part filled in.

use stackline_core::plan::{DataSpec, Size, UnitCount};
use stackline_core::procedure::{
    CountArgument, DelayArgument, OperationCall, ProcedureStep, SizeArgument,
};
use stackline_core::units;

/// One line for each step, indented by two spaces per level.
pub(crate) fn steps(steps: &[ProcedureStep], data: &DataSpec) -> Vec<String> {
    steps.iter().flat_map(|step| one(step, data)).collect()
}

fn one(step: &ProcedureStep, data: &DataSpec) -> Vec<String> {
    match step {
        ProcedureStep::Call(call) => vec![self::call(call, data)],
        ProcedureStep::Repeat(count, body) => {
            let body = steps(body, data)
                .into_iter()
                .map(|line| format!("  {line}"));
            std::iter::once(times(*count, data)).chain(body).collect()
        }
    }
}

fn times(count: CountArgument, data: &DataSpec) -> String {
    match (count, data.count) {
        (CountArgument::Times(n), _) | (CountArgument::Count, UnitCount::Units(n)) => {
            format!("repeat {n} times")
        }
        (CountArgument::Count, UnitCount::Amount(bytes)) => {
            format!("repeat for a total of {}", units::format_size(bytes))
        }
        (CountArgument::Count, UnitCount::WholeFile) => "repeat for the whole file".to_owned(),
        (CountArgument::Count, UnitCount::Unlimited) => "repeat until the run ends".to_owned(),
    }
}

fn call(call: &OperationCall, data: &DataSpec) -> String {
    let name = call.name();
    match call {
        OperationCall::DataRequest(size)
        | OperationCall::AwaitDataIndication(size)
        | OperationCall::RpcAwaitCallInd(size)
        | OperationCall::RpcReturn(size)
        | OperationCall::ReadFile(size)
        | OperationCall::WriteFile(size) => format!("{name} {}", argument(*size, data)),
        OperationCall::RpcCall(request, response) => {
            format!(
                "{name} {} -> {}",
                argument(*request, data),
                argument(*response, data)
            )
        }
        OperationCall::Delay(wait) | OperationCall::Pace(wait) => {
            format!("{name} {}", delay(wait, data))
        }
        OperationCall::Mark(mark) => format!("{name} {mark}"),
        _ => name.to_owned(),
    }
}

fn argument(argument: SizeArgument, data: &DataSpec) -> String {
    match argument {
        SizeArgument::Unit => size(&data.unit, data.least_drawn),
        SizeArgument::Reply => size(&data.reply, data.least_drawn),
        SizeArgument::Bytes(bytes) => units::format_size(bytes),
    }
}

/// A size with its unit.
pub(crate) fn size(size: &Size, least: u64) -> String {
    match size {
        Size::Bytes(bytes) => units::format_size(*bytes),
        Size::Drawn(distribution) if least > 1 => format!("{distribution} B, at least {least} B"),
        Size::Drawn(distribution) => format!("{distribution} B"),
    }
}

fn delay(argument: &DelayArgument, data: &DataSpec) -> String {
    let drawn = match argument {
        DelayArgument::Timing(index) => data.timings.get(*index),
        DelayArgument::Drawn(distribution) => Some(distribution),
    };
    match drawn.map(|distribution| (distribution, distribution.constant())) {
        None => "none".to_owned(),
        Some((_, Some(seconds))) => units::format_time(seconds),
        Some((distribution, None)) => format!("{distribution} s"),
    }
}
