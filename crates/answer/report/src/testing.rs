//! A small run for the tests of this crate, and golden texts under `golden/` (`UPDATE_GOLDEN=1` writes them anew).

pub(crate) mod emulated;
pub(crate) mod networks;
pub(crate) mod traced;

use stackline_analyze::{Summary, summarise};
use stackline_core::catalogue::OptionValue;
use stackline_core::distribution::Distribution;
use stackline_core::plan::{
    Composer, DataAccess, DataSpec, HostPlan, Measurement, MeasurementPart, Plan, Size, Stack,
    StoppingCriterion, UnitCount, Via, Warmup, World, any_size,
};
use stackline_core::procedure::{
    CountArgument, DelayArgument, OperationCall, Procedure, ProcedureStep, SizeArgument,
};
use stackline_core::run_record::{
    Histogram, HostUsage, RunRecord, SideRecord, TransportRecord, Usage,
};
use stackline_core::time::Duration;
use std::collections::BTreeMap;
use std::path::Path;

pub(crate) fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{name} differs; it is now:\n{text}");
}

fn call(call: OperationCall) -> ProcedureStep {
    ProcedureStep::Call(call)
}

pub(crate) fn bulk_get() -> Procedure {
    let unit = SizeArgument::Unit;
    Procedure {
        name: "bulk_get".into(),
        timings: vec![],
        initiator: vec![
            call(OperationCall::ConnectRequest),
            call(OperationCall::StartMeasurement),
            call(OperationCall::StartBulkGet),
            ProcedureStep::Repeat(
                CountArgument::Count,
                vec![call(OperationCall::AwaitDataIndication(unit))],
            ),
            call(OperationCall::StopBulkGet),
            call(OperationCall::StopMeasurement),
            call(OperationCall::DisconnectRequest),
        ],
        responder: vec![
            call(OperationCall::AwaitConnectIndication),
            call(OperationCall::AwaitStartBulkGet),
            ProcedureStep::Repeat(
                CountArgument::Count,
                vec![call(OperationCall::DataRequest(unit))],
            ),
            call(OperationCall::AwaitStopBulkGet),
            call(OperationCall::AwaitDisconnectIndication),
        ],
    }
}

pub(crate) fn request_response() -> Procedure {
    let (unit, reply) = (SizeArgument::Unit, SizeArgument::Reply);
    let pace = OperationCall::Pace(DelayArgument::Timing(0));
    let calls = vec![call(pace), call(OperationCall::RpcCall(unit, reply))];
    let returns = vec![
        call(OperationCall::RpcAwaitCallInd(unit)),
        call(OperationCall::RpcReturn(reply)),
    ];
    Procedure {
        name: "request_response".into(),
        timings: vec!["pause".into()],
        initiator: vec![
            call(OperationCall::StartMeasurement),
            ProcedureStep::Repeat(CountArgument::Count, calls),
            call(OperationCall::StopMeasurement),
        ],
        responder: vec![ProcedureStep::Repeat(CountArgument::Count, returns)],
    }
}

fn part(text: &str, procedure: Procedure, unit: Size, count: u64, stack: Stack) -> MeasurementPart {
    MeasurementPart {
        text: text.into(),
        replicas: 1,
        from: Some("khons".into()),
        to: None,
        procedure,
        data: DataSpec {
            unit: unit.clone(),
            reply: unit,
            count: UnitCount::Units(count),
            timings: vec![],
            least_drawn: any_size(),
            takes_turns: false,
        },
        source: DataAccess::Memory,
        destination: DataAccess::Memory,
        stack,
        cpu: (None, Some(1)),
        background: false,
    }
}

pub(crate) fn get(stack: Stack) -> MeasurementPart {
    part(
        "bulk_get 1024*1000",
        bulk_get(),
        Size::Bytes(1024),
        1000,
        stack,
    )
}

fn calls(stack: Stack) -> MeasurementPart {
    let mut part = part(
        "rr 32*1000",
        request_response(),
        Size::Bytes(32),
        1000,
        stack,
    );
    part.data.reply = Size::Drawn(Distribution::Exponential(4096.0));
    part.data.timings = vec![Distribution::Constant(1e-3)];
    part
}

pub(crate) fn measurement(
    text: &str,
    composer: Composer,
    parts: Vec<MeasurementPart>,
) -> Measurement {
    Measurement {
        text: text.into(),
        line: 3,
        specification: 0,
        variables: vec![],
        variable_units: vec![],
        runs: 3,
        time_limit: None,
        until: None,
        warmup: Warmup::Runs(1),
        composer,
        world: World::Live,
        across: None,
        keeps_calls: false,
        interval: None,
        expectations: vec![],
        parts,
    }
}

pub(crate) fn tuned() -> Stack {
    let options = [
        ("congestion", OptionValue::Word("cubic".into())),
        ("receive_buffer", OptionValue::Number(65_536)),
    ];
    Stack {
        name: "tcp".into(),
        options: options.map(|(name, value)| (name.to_owned(), value)).into(),
        ..Stack::default()
    }
}

pub(crate) fn a_plan() -> Plan {
    let hosts = [
        (
            "khons",
            HostPlan {
                via: Via::Ssh("user@10.0.0.5".into()),
                address: Some("10.0.0.5".into()),
                cpu: Some(2),
                files: None,
                share: None,
            },
        ),
        ("udjat", HostPlan::default()),
    ];
    let tcp = || Stack::plain("tcp");
    let mut rr = measurement(
        "5 until 2% rr 32*1000 over tcp",
        Composer::Basic,
        vec![calls(tcp())],
    );
    rr.until = Some(StoppingCriterion {
        share: 0.02,
        at_most: 50,
    });
    rr.time_limit = Some(Duration::from_seconds(5.0));
    rr.variables = vec![("N".into(), 32.0)];
    let load = MeasurementPart {
        background: true,
        ..get(tuned())
    };
    Plan {
        seed: 42,
        hosts: hosts.map(|(name, host)| (name.to_owned(), host)).into(),
        networks: vec![],
        measurements: vec![
            measurement(
                "3 from khons bulk_get bytes 1024*1000 < memory > memory over tcp",
                Composer::Basic,
                vec![get(tcp())],
            ),
            rr,
            measurement(
                "3 background: rr 32*1000 | bulk_get 1024*1000",
                Composer::Background,
                vec![calls(tcp()), load],
            ),
            measurement(
                "3 parallel: bulk_get 1024*1000 | bulk_get 1024*1000",
                Composer::Parallel,
                vec![get(tcp()), get(tcp())],
            ),
        ],
    }
}

/// Two runs of five connections each, opened and closed by two hosts that are not this one.
pub(crate) fn connected() -> (Plan, Vec<RunRecord>) {
    let procedure = Procedure {
        name: "connect_disconnect".into(),
        timings: vec![],
        initiator: vec![ProcedureStep::Repeat(
            CountArgument::Count,
            vec![
                call(OperationCall::ConnectRequest),
                call(OperationCall::DisconnectRequest),
            ],
        )],
        responder: vec![],
    };
    let part = part(
        "connect_disconnect 0*5",
        procedure,
        Size::Bytes(0),
        5,
        Stack::plain("tcp"),
    );
    let text = "2 connect_disconnect 0*5 over tcp";
    let plan = Plan {
        measurements: vec![measurement(text, Composer::Basic, vec![part])],
        ..a_plan()
    };
    let usage = Usage {
        system_s: 120e-6,
        user_s: 30e-6,
        ..Usage::default()
    };
    let run = |run: u32| RunRecord {
        run,
        replicas: 1,
        elapsed_ns: 400_000,
        connects: histogram(&[(23_900, 4), (204_000 + u64::from(run), 1)]),
        initiator: SideRecord { usage, ..side() },
        responder: SideRecord { usage, ..side() },
        ..RunRecord::default()
    };
    (plan, vec![run(0), run(1)])
}

pub(crate) fn histogram(values: &[(u64, u64)]) -> Histogram {
    let sum = values.iter().map(|(value, n)| value * n).sum();
    let squares = values
        .iter()
        .map(|(value, n)| (*value as f64).powi(2) * *n as f64)
        .sum();
    let min_max = values
        .first()
        .zip(values.last())
        .map(|(first, last)| (first.0, last.0));
    Histogram {
        counts: values.to_vec(),
        sum,
        squares,
        min_max,
    }
}

fn side() -> SideRecord {
    let settings = [
        ("congestion", "cubic"),
        ("nodelay", "off"),
        ("mss", "65483 B"),
    ];
    SideRecord {
        usage: Usage {
            user_s: 0.01,
            system_s: 0.09,
            ..Usage::default()
        },
        settings: settings
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        cpu: Some((0, 2, false)),
        ..SideRecord::default()
    }
}

fn host() -> HostUsage {
    let reason = (
        "throttled_s".to_owned(),
        "no control group above this process counts throttling".to_owned(),
    );
    HostUsage {
        user_s: 0.05,
        system_s: 0.2,
        interrupt_s: 0.01,
        idle_s: 1.7,
        elapsed_s: 0.5,
        absent: [reason].into(),
        ..HostUsage::default()
    }
}

fn moved(measurement: usize, part: usize, run: u32, mb: u64) -> RunRecord {
    let transport = |retransmits, busy_s, send_buffer_limited_s| TransportRecord {
        retransmits,
        busy_s: Some(busy_s),
        receive_window_limited_s: Some(0.0),
        send_buffer_limited_s: Some(send_buffer_limited_s),
        ..TransportRecord::default()
    };
    let transport = Some((transport(0, 0.0, 0.0), transport(2, 0.4, 0.1)));
    let host = Some(host());
    let initiator = SideRecord {
        received_units: 1000,
        received_bytes: mb * 1_000_000,
        host: host.clone(),
        ..side()
    };
    let sent = SideRecord {
        sent_units: 1000,
        sent_bytes: mb * 1_000_000,
        ..side()
    };
    let responder = SideRecord {
        transport,
        cpu: Some((1, 1, true)),
        host,
        ..sent
    };
    RunRecord {
        measurement,
        part,
        run,
        replicas: 1,
        elapsed_ns: 500_000_000,
        initiator,
        responder,
        ..RunRecord::default()
    }
}

fn called(measurement: usize, run: u32, slow: u64) -> RunRecord {
    let calls = histogram(&[(6_400, 600), (80_000 + slow, 390), (2_000_000, 10)]);
    let absent = BTreeMap::from([("host".to_owned(), "/proc/stat cannot be read".to_owned())]);
    let lateness = histogram(&[(20_000, 1000)]);
    let (initiator, responder) = (side(), side());
    RunRecord {
        measurement,
        run,
        replicas: 1,
        elapsed_ns: 1_000_000_000,
        calls,
        lateness,
        initiator,
        responder,
        absent,
        ..RunRecord::default()
    }
}

pub(crate) fn records() -> Vec<RunRecord> {
    let bulk = [1100, 1130, 1290]
        .into_iter()
        .zip(0..)
        .map(|(mb, run)| moved(0, 0, run, mb));
    let rr = [0, 500, 900]
        .into_iter()
        .zip(0..)
        .map(|(slow, run)| called(1, run, slow));
    let mut all: Vec<RunRecord> = bulk.chain(rr).collect();
    all.extend([called(2, 0, 0), moved(2, 1, 0, 900)]);
    all.extend((0..4).map(|at| moved(3, at % 2, (at / 2) as u32, 600 + at as u64)));
    all.push(RunRecord {
        warmup: true,
        ..moved(0, 0, 0, 1)
    });
    all[0].initiator.lost = Some(5);
    all
}

pub(crate) fn summaries() -> Vec<Summary> {
    summarise(&a_plan(), &records())
}
