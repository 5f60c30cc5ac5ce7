//! The table as a person sees it.

use super::*;
use crate::notes::{Weight, notes};
use crate::testing::emulated::emulated;
use crate::testing::{a_plan, connected, golden, records, summaries};
use stackline_analyze::summarise;

#[test]
fn a_run_at_a_glance() {
    let wake_up = "a sleeping thread on this machine wakes up 52.0 us after its data has come";
    let notes = vec![
        Note::new(Weight::Always, "kept in runs/1"),
        Note::new(Weight::Detail, wake_up),
    ];
    let text = table(
        &summaries(),
        &TableOptions {
            notes: notes.clone(),
            ..TableOptions::default()
        },
    );
    golden("table.txt", &text);
    assert!(
        text.lines().all(|line| grid::width(line) <= WIDTH),
        "{text}"
    );
    assert!(!text.contains('\x1b'));
    let few = table(
        &summaries(),
        &TableOptions {
            notes,
            most_notes: Some(3),
            ..TableOptions::default()
        },
    );
    golden("table-few-notes.txt", &few);
}

#[test]
fn percentiles_as_requested() {
    let percentiles = vec![Percentile::Percent(90.0), Percentile::Percent(99.9)];
    let text = table(
        &summaries()[1..2],
        &TableOptions {
            percentiles,
            ..TableOptions::default()
        },
    );
    assert!(
        text.contains("p90 / p99.9") && text.contains("80.9 us / 2.00 ms"),
        "{text}"
    );
}

#[test]
fn colour_only_where_asked() {
    let text = table(
        &summaries(),
        &TableOptions {
            colour: true,
            ..TableOptions::default()
        },
    );
    assert!(text.starts_with("\x1b[1m") && text.contains("\x1b[33m"));
}

#[test]
fn nothing_measured() {
    assert_eq!(
        table(&[], &TableOptions::default()),
        "nothing was measured\n"
    );
    golden(
        "table-no-runs.txt",
        &table(&summarise(&a_plan(), &[]), &TableOptions::default()),
    );
}

#[test]
fn one_run_has_no_interval() {
    let one = summarise(&a_plan(), &records()[..1]);
    golden(
        "table-one-run.txt",
        &table(&one[..1], &TableOptions::default()),
    );
}

#[test]
fn connections_have_their_cost() {
    let (plan, records) = connected();
    let text = table(&summarise(&plan, &records), &TableOptions::default());
    golden("table-connections.txt", &text);
    assert!(text.contains("us/conn"));
}

#[test]
fn a_modelled_network_says_what_it_did() {
    let (plan, records) = emulated();
    let text = table(&summarise(&plan, &records), &TableOptions::default());
    golden("table-network.txt", &text);
    assert!(
        text.contains("! overload (runs: 1 of 3; the figures reflect the machine)"),
        "{text}"
    );
    assert!(
        text.contains("dropped at edge>udjat: 12 of 3000 packets (queue full) [row 1]"),
        "{text}"
    );
    assert!(
        text.contains("and 3 more ports that dropped, marked or duplicated packets [row 2]"),
        "{text}"
    );
    let kept = "emulator: departures late by 200 ns (median), 14.0 us (p99), 90.0 us (max); 3 frames lost; its own round";
    let unwrapped = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unwrapped.contains(kept), "{text}");
}

#[test]
fn cells_and_packets_are_distinguished() {
    let port = |cells| stackline_analyze::PortSummary {
        name: "khons>edge".into(),
        runs: 1,
        offered: 3000,
        packets: 3000,
        dropped: 1,
        drops: [("bit error on the link".to_owned(), 1)].into(),
        cells,
        cells_dropped: true,
        ..Default::default()
    };
    let said = |cells| {
        let network = stackline_analyze::NetworkSummary {
            ports: vec![port(cells)],
            ..Default::default()
        };
        notes(&[Summary {
            runs: 1,
            network: Some(network),
            ..Summary::default()
        }])
        .remove(0)
        .text
    };
    assert_eq!(
        said(true),
        "dropped at khons>edge: 1 of 3000 cells (bit error on the link)"
    );
    assert_eq!(
        said(false),
        "dropped at khons>edge: 1 cell, with 3000 packets forwarded (bit error on the link)"
    );
}

#[test]
fn connections_with_calls_are_transactions_with_their_time() {
    let (plan, mut records) = connected();
    for record in &mut records {
        record.calls = crate::testing::histogram(&[(20_000, 10)]);
    }
    let text = table(&summarise(&plan, &records), &TableOptions::default());
    // Five connections in 400 us.
    let said = "transactions (connect, calls, disconnect): mean 80.0 us, of which connect and disconnect take 59.9 us; 12.5 k/s";
    assert!(
        text.split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .contains(said),
        "{text}"
    );
    assert!(text.contains("calls/s"), "{text}");
    let (plan, records) = connected();
    assert!(!table(&summarise(&plan, &records), &TableOptions::default()).contains("transactions"));
}

#[test]
fn rows_that_count_different_things_say_what() {
    let (plan, records) = connected();
    let both: Vec<Summary> = summaries()
        .into_iter()
        .chain(summarise(&plan, &records))
        .collect();
    let text = table(&both, &TableOptions::default());
    assert!(
        text.contains("per s") && text.contains("12.5 k conns") && text.contains(" calls  "),
        "{text}"
    );
}

#[test]
fn a_transfer_says_how_long_it_took() {
    let mut summary = summaries().remove(0);
    let text = |summary: &Summary| table(std::slice::from_ref(summary), &TableOptions::default());
    assert!(summary.throughput_bit_s.is_some() && !text(&summary).contains("whole transfer"));
    summary.is_transfer = true;
    let mean = units::format_time(summary.elapsed_s.unwrap().mean);
    assert!(
        text(&summary).contains(&format!("time for the whole transfer: mean {mean} (")),
        "{}",
        text(&summary)
    );
}

#[test]
fn marks_say_from_where_they_count() {
    let times = summaries()[1].response_s.unwrap();
    let marks = ["once", "a", "b", "a -> b", "a -> a"]
        .map(|name| (name.to_owned(), times))
        .into();
    let text = table(
        &[Summary {
            marks,
            ..summaries().remove(1)
        }],
        &TableOptions::default(),
    );
    for said in [
        "the start to mark once: mean",
        "mark a to mark b: mean",
        "one pass, from mark a back to mark a: mean",
    ] {
        assert!(text.contains(said), "no `{said}` in {text}");
    }
    // Passed again and again, it has no one time from the start.
    assert!(
        text.contains("the start to mark b") && !text.contains("the start to mark a:"),
        "{text}"
    );
}

#[test]
fn what_a_rate_is_over_is_said_where_runs_differ() {
    let mut summary = summaries().remove(1);
    let says = |s: &Summary| {
        table(std::slice::from_ref(s), &TableOptions::default())
            .contains("a rate weights runs equally")
    };
    (summary.normalised_sd, summary.main) = (Some(0.04), Some(RunMetric::Response));
    assert!(!says(&summary));
    summary.normalised_sd = Some(0.4);
    assert!(says(&summary));
}

#[test]
fn callers_that_fell_behind_are_said_among_the_first() {
    let mut summary = summaries().remove(1);
    assert!(!table(&[summary.clone()], &TableOptions::default()).contains("backlog"));
    let response = summary.response_s.as_mut().unwrap();
    (response.mean, summary.backlog_s) = (11.2, Some(11.0));
    let text = table(
        &[summary],
        &TableOptions {
            most_notes: Some(3),
            ..TableOptions::default()
        },
    );
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("of the mean time of 11.2 s, 11.0 s is the caller's backlog"),
        "{text}"
    );
    assert!(text.contains("the call itself took 200 ms"), "{text}");
}

#[test]
fn figures_that_spread_far_fit_a_screen() {
    let row = |cells: [&str; 7]| cells.map(str::to_owned).to_vec();
    let head = row(["", "", "n", "mean ± 95 %", "median / p99", "calls/s", "CPU"]);
    let spread = figure::range(RunMetric::Throughput, 14.2e6, 1.35e9);
    let cells = [
        row([
            "10",
            "tcp(nodelay, receive = spin)",
            "2",
            "78.9 (0..984.2) Mbit/s",
            "7.45 us / 24.0 ms",
            "9.63 k",
            "2563 us/call",
        ]),
        row([
            "11",
            "bulk_get 1 KiB*50",
            "10",
            "684 (0..9199) Mbit/s",
            &spread,
            "43.2 k",
            "5.31 s/GB",
        ]),
    ];
    let columns = Columns::measure(&head, &cells);
    let lines: Vec<String> = cells.iter().flat_map(|row| columns.row(row)).collect();
    assert!(
        lines.iter().all(|line| grid::width(line) <= WIDTH),
        "{lines:#?}"
    );
}

#[test]
fn a_run_without_chance_is_deterministic_and_has_no_interval() {
    let mut summary = summaries().remove(1);
    (summary.main, summary.world) = (Some(RunMetric::Response), World::Simulated);
    let response = summary.response_s.as_mut().unwrap();
    (response.mean, response.ci95) = (0.2, Some((0.2, 0.2)));
    let text = table(&[summary.clone()], &TableOptions::default());
    assert!(text.contains("200 ms") && !text.contains("± 0"), "{text}");
    assert!(text.contains("deterministic"), "{text}");
    summary.response_s.as_mut().unwrap().ci95 = Some((0.19, 0.21));
    let text = table(&[summary.clone()], &TableOptions::default());
    assert!(
        text.contains('±') && !text.contains("deterministic"),
        "{text}"
    );
    // Equal means of real runs are chance.
    summary.world = World::Live;
    summary.response_s.as_mut().unwrap().ci95 = Some((0.2, 0.2));
    let text = table(&[summary], &TableOptions::default());
    assert!(!text.contains("deterministic"), "{text}");
}
