//! The purpose of reservation: without it, packets of several messages fill all buffers and no message is complete
//! (2.3; RFC 626 on the lockup that occurred in spite of it).

use super::network_setup::{
    BEGINS_S, LINE, add_fake_host, full_message_sender, instant_at, line, network,
};
use crate::printed_and_here::nothing_printed;
use stackline_core::random::Seed;
use stackline_core::time::Duration;
use stackline_proto::papers::imp::ImpOptions;
use stackline_report::sheet::{Sheet, SheetCell};
use stackline_sim::papers::imps::traffic::ImpTrafficRun;

/// Four sources send to one destination: their total rate in the first and in the last of several minutes, kbit/s.
fn run(options: ImpOptions, seed: u64) -> (f64, f64) {
    let sources = 4;
    let lines = (0..sources)
        .map(|source| line((source + 1, 0), LINE, 10.0))
        .collect();
    let mut plan = network(&vec![options; usize::from(sources) + 1], lines);
    let senders: Vec<_> = (0..sources)
        .map(|source| {
            full_message_sender(
                add_fake_host(&mut plan, source + 1),
                add_fake_host(&mut plan, 0),
                8,
            )
        })
        .collect();
    let mut run = ImpTrafficRun::new(&plan, &senders, Seed::root(seed));
    let sum = |run: &mut ImpTrafficRun, from: f64, to: f64| {
        let results = run.run((instant_at(BEGINS_S + from), instant_at(BEGINS_S + to)));
        let of_all: u64 = results.iter().map(|result| result.delivered.1).sum();
        of_all as f64
    };
    let first = sum(&mut run, 0.0, 60.0);
    run.until(instant_at(BEGINS_S + 240.0));
    let before: u64 = (0..senders.len())
        .map(|sender| run.result(sender).delivered.1)
        .sum();
    let last = sum(&mut run, 240.0, 300.0) - before as f64;
    let minute = Duration::from_seconds(60.0).seconds() * 1e3;
    (first / minute, last / minute)
}

/// The sheet.
pub(super) fn sheet(seed: u64) -> Sheet {
    let mut sheet = Sheet::new(
        "Lockup",
        "four sources sending to one 516, kbit/s in total: first and fifth minute",
        &[("case", "case"), ("first", "first"), ("fifth", "fifth")],
    );
    let known = ImpOptions::default();
    for (case, options) in [
        ("space reserved", known),
        (
            "no reservation, buffers for 3 messages",
            ImpOptions {
                reservation: false,
                ..known
            },
        ),
        (
            "reserved, 2 blocks for reassembly (RFC 626)",
            ImpOptions {
                reassembly_blocks: Some(2),
                ..known
            },
        ),
    ] {
        let (first, last) = run(options, seed);
        sheet.rows.push(vec![
            SheetCell::text(case),
            SheetCell::Number(first, 1),
            SheetCell::Number(last, 1),
        ]);
    }
    sheet
        .note(nothing_printed("the report describes what reservation prevents, but gives no numbers"))
        .note("Without reservation, the destination fills with parts of messages that can never be completed; the \
               packets that would complete them wait in the neighbours' channels. Too few blocks slow these streams \
               down but do not lock them up: RFC 626's lockup needed more than that.")
}
