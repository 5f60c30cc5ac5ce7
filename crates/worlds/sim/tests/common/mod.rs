//! Short ways to carry out a text in virtual time.
#![allow(dead_code, reason = "each test binary uses some of it")]

use stackline_core::random::Seed;
use stackline_core::run_record::RunRecord;
use stackline_sim::{
    CAPABILITIES, Error, SimRunLimits, SimRunOutcome, SimRunScene, carry_out, stack_tables,
};
use stackline_spec::{Available, CheckContext, Overrides, Severity, check};

/// 10 Mbit/s and 10 ms one way, without an end to its queue.
pub(crate) const WAN: &str = "network wan { host a, b; link a - b 10 Mbit/s 10 ms; }\n";

/// Seconds that so many bytes take at 10 Mbit/s.
pub(crate) fn on_the_link(bytes: f64) -> f64 {
    bytes * 8.0 / 10e6
}

/// Within a share of what is expected.
pub(crate) fn close(got: f64, expected: f64, share: f64) {
    assert!(
        (got - expected).abs() <= share * expected,
        "{got}, expected {expected} within {share}"
    );
}

/// Carries out every run of a text's first measurement.
pub(crate) fn runs(text: &str) -> Result<Vec<SimRunOutcome>, Error> {
    runs_within(text, SimRunLimits::default())
}

/// The same with other limits.
pub(crate) fn runs_within(text: &str, limits: SimRunLimits) -> Result<Vec<SimRunOutcome>, Error> {
    let stacks = stack_tables();
    let read_file = |_: &str| Err("no file".to_string());
    let worlds = [Available {
        can: CAPABILITIES,
        stacks: &stacks,
    }];
    let checked = check(
        text,
        &CheckContext {
            worlds: &worlds,
            read_file: &read_file,
            cores: &[],
        },
        &Overrides::default(),
    );
    let Some(plan) = checked.plan else {
        let first = checked
            .diagnostics
            .iter()
            .find(|diagnostic| diagnostic.severity == Severity::Error);
        let first = first.expect("without a plan there is an error");
        return Err(
            Error::input(first.message.clone()).hint(first.hint.clone().unwrap_or_default())
        );
    };
    let measurement = &plan.measurements[0];
    let name = measurement
        .across
        .as_deref()
        .expect("the text says `across`");
    let network = plan
        .networks
        .iter()
        .find(|network| network.name == name)
        .expect("a network of that name");
    let seed = Seed::root(plan.seed)
        .child("measurement")
        .index(0)
        .child("run");
    (0..measurement.runs)
        .map(|run| {
            let seed = seed.index(u64::from(run));
            let scene = SimRunScene {
                network,
                measurement,
                index: 0,
                run,
                warmup: false,
                seed,
                limits,
                interrupted: None,
            };
            carry_out(&scene, ()).map(|(outcome, ())| outcome)
        })
        .collect()
}

/// The first run of a text.
pub(crate) fn run(text: &str) -> SimRunOutcome {
    let mut outcomes = runs(text).unwrap_or_else(|failure| panic!("{text}\n{failure}"));
    outcomes.remove(0)
}

/// Why a text is not carried out.
pub(crate) fn refused(text: &str) -> Error {
    runs(text).expect_err("it is refused")
}

/// Throughput of a part in bit/s: data bytes over the longest period.
pub(crate) fn throughput(record: &RunRecord) -> f64 {
    record.data_bytes() as f64 * 8.0 / (record.elapsed_ns as f64 / 1e9)
}

/// Mean of a part's response times in seconds.
pub(crate) fn response(record: &RunRecord) -> f64 {
    record.calls.sum as f64 / record.calls.n() as f64 / 1e9
}

/// Everything arrives over each stack on each network, in every application type.
pub(crate) fn every_application_type(networks: &[&str], stacks: &[&str]) {
    for (network, stack) in networks
        .iter()
        .flat_map(|network| stacks.iter().map(move |stack| (network, stack)))
    {
        for what in [
            "bulk_get 10000*40",
            "bulk_put 10000*40",
            "stream 500*40 uniform(0, 5 ms)",
        ] {
            let record = run(&format!(
                "{network}1 from a to b {what} over {stack} across wan;"
            ))
            .records
            .remove(0);
            let expected = if what.starts_with("bulk") {
                400_000
            } else {
                20_000
            };
            assert_eq!(
                (record.data_bytes(), record.limited),
                (expected, false),
                "{what} over {stack}"
            );
            assert!(
                record.initiator.notes.is_empty() && record.responder.notes.is_empty(),
                "{record:?}"
            );
        }
        let calls = run(&format!(
            "{network}1 from a to b rr 32, 3000*40 over {stack} across wan;"
        ));
        assert_eq!(calls.records[0].calls.n(), 40, "{stack}");
        let connections = run(&format!(
            "{network}1 from a to b connect_disconnect 0*20 over {stack} across wan;"
        ));
        assert_eq!(connections.records[0].connects.n(), 20, "{stack}");
    }
}
