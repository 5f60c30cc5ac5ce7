//! The steps of a benchmark procedure as text, with the sizes and delays of a part filled in.

use stackline_core::plan::{Count, Data, Size};
use stackline_core::program::{Call, CountArgument, DelayArgument, SizeArgument, Step};
use stackline_core::units;

/// One line a step, indented by two spaces a level.
pub(crate) fn steps(steps: &[Step], data: &Data) -> Vec<String> {
    steps.iter().flat_map(|step| one(step, data)).collect()
}

fn one(step: &Step, data: &Data) -> Vec<String> {
    match step {
        Step::Call(call) => vec![self::call(call, data)],
        Step::Repeat(count, body) => {
            let body = steps(body, data)
                .into_iter()
                .map(|line| format!("  {line}"));
            std::iter::once(times(*count, data)).chain(body).collect()
        }
    }
}

fn times(count: CountArgument, data: &Data) -> String {
    match (count, data.count) {
        (CountArgument::Times(n), _) | (CountArgument::Count, Count::Units(n)) => {
            format!("repeat {n} times")
        }
        (CountArgument::Count, Count::Amount(bytes)) => {
            format!("repeat until {} are done", units::size(bytes))
        }
        (CountArgument::Count, Count::WholeFile) => {
            "repeat until the whole file is done".to_owned()
        }
        (CountArgument::Count, Count::Unlimited) => "repeat until the end".to_owned(),
    }
}

fn call(call: &Call, data: &Data) -> String {
    let name = call.name();
    match call {
        Call::DataRequest(size)
        | Call::AwaitDataIndication(size)
        | Call::RpcAwaitCallInd(size)
        | Call::RpcReturn(size)
        | Call::ReadFile(size)
        | Call::WriteFile(size) => format!("{name} {}", argument(*size, data)),
        Call::RpcCall(request, response) => {
            format!(
                "{name} {} -> {}",
                argument(*request, data),
                argument(*response, data)
            )
        }
        Call::Delay(wait) | Call::Pace(wait) => format!("{name} {}", delay(wait, data)),
        Call::Mark(mark) => format!("{name} {mark}"),
        _ => name.to_owned(),
    }
}

fn argument(argument: SizeArgument, data: &Data) -> String {
    match argument {
        SizeArgument::Unit => size(&data.unit, data.least_drawn),
        SizeArgument::Reply => size(&data.reply, data.least_drawn),
        SizeArgument::Bytes(bytes) => units::size(bytes),
    }
}

/// A size with its unit.
pub(crate) fn size(size: &Size, least: u64) -> String {
    match size {
        Size::Bytes(bytes) => units::size(*bytes),
        Size::Drawn(distribution) if least > 1 => format!("{distribution} B, at least {least} B"),
        Size::Drawn(distribution) => format!("{distribution} B"),
    }
}

fn delay(argument: &DelayArgument, data: &Data) -> String {
    let drawn = match argument {
        DelayArgument::Timing(index) => data.timings.get(*index),
        DelayArgument::Drawn(distribution) => Some(distribution),
    };
    match drawn.map(|distribution| (distribution, distribution.constant())) {
        None => "none".to_owned(),
        Some((_, Some(seconds))) => units::time(seconds),
        Some((distribution, None)) => format!("{distribution} s"),
    }
}
