//! Where the time went: segments as the command has them, breakdowns that add up, requests as findings account for them.

use super::{opened, text};
use crate::testing::traced::{self, TracedFixture};
use serde_json::json;
use stackline_testing::browser::Browser;
use std::path::Path;

pub(super) fn it_says_what_the_command_says(browser: &mut Browser, directory: &Path) {
    let traced = traced::large(1_000);
    opened(browser, directory, &traced);
    let line = traced
        .lifelines
        .lines
        .iter()
        .find(|line| line.flow == Some(1))
        .unwrap();
    let (flow, number, _) = stackline_events::unit_ids::parts(line.unit.number().unwrap());
    let name = browser.eval(&format!(
        "stackline.model.name(stackline.model.find({}))",
        json!(line.unit)
    ));
    assert_eq!(name, format!("unit {number} of flow {flow}"));
    let read = browser.eval(
        "stackline.segments().map(({ from, to, sorted, share, waits }) => [from, to, sorted.length,          ...[0.5, 0.9, 0.99].map((one) => stackline.percentile(sorted, one)), share, !!waits])",
    );
    let expected = stackline_analyze::segments::segments(&traced.lifelines, None, false);
    assert_eq!(read.as_array().unwrap().len(), expected.len());
    for one in expected {
        let found = read
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row[0] == one.from && row[1] == one.to && row[7] == one.waits)
            .unwrap();
        assert_eq!(found[2], one.ns.n);
        let figures = [
            one.ns.median_ns,
            one.ns.p90_ns,
            one.ns.p99_ns,
            one.share * 1e6,
        ];
        let theirs =
            [3, 4, 5, 6].map(|at| found[at].as_f64().unwrap() * if at == 6 { 1e6 } else { 1.0 });
        let near = figures
            .iter()
            .zip(theirs)
            .all(|(a, b)| (a - b).abs() < 0.01);
        assert!(near, "{figures:?} {theirs:?}");
    }
}

pub(super) fn the_breakdown_adds_up(browser: &mut Browser, directory: &Path) {
    let traced = traced::large(999);
    opened(browser, directory, &traced);
    browser.until("document.querySelector('#breakdown table')");
    let time = |line: &stackline_analyze::lifelines::Lifeline| {
        let passages = traced.lifelines.passages_of(line);
        passages[passages.len() - 1].at_ns - passages[0].at_ns
    };
    let came = |line: &&stackline_analyze::lifelines::Lifeline| line.has_arrived();
    let lines = traced.lifelines.lines.iter().filter(came);
    let mut times: Vec<u64> = lines.map(time).collect();
    times.sort_unstable();
    let rank = |share: f64| times[(share * times.len() as f64).ceil() as usize - 1];
    let (median, p99) = (rank(0.5), rank(0.99));
    let said = text(browser, "#bars");
    let short = |ns: u64| stackline_core::units::format_time(ns as f64 * 1e-9);
    assert!(
        said.contains(&format!("The median unit: {}", short(median))),
        "{said}"
    );
    assert!(
        said.contains(&format!("percentile: {}", short(p99))),
        "{} {said}",
        short(p99)
    );
    let widths = browser.eval(
        "[...document.querySelectorAll('.strip')].map((strip) => [...strip.children].reduce((sum, one) => sum + parseFloat(one.style.width), 0))",
    );
    assert!(
        widths
            .as_array()
            .unwrap()
            .iter()
            .all(|sum| (sum.as_f64().unwrap() - 100.0).abs() < 0.1),
        "{widths}"
    );
}

pub(super) fn waits_are_no_links(browser: &mut Browser, directory: &Path) {
    opened(browser, directory, &traced::waiting());
    browser.until("document.querySelector('#breakdown table')");
    let said = text(browser, "#bars");
    for words in [
        "The median unit: 350 ms",
        "system calls and the host: 9.00 ms",
        "the protocol: 320 ms",
        "in queues: 1.00 ms",
        "on links: 20.0 ms",
    ] {
        assert!(said.contains(words), "no `{words}` in {said}");
    }
    let pieces = text(browser, "#breakdown table");
    assert!(pieces.contains("wait for retransmission"), "{pieces}");
}

pub(super) fn requests_have_their_account(browser: &mut Browser, directory: &Path) {
    let traced = TracedFixture {
        requests: traced::accounted(),
        ..traced::few()
    };
    opened(browser, directory, &traced);
    browser.until("document.querySelector('#breakdown table')");
    let said = text(browser, "#bars");
    // The whole time of the request, not that from its first event on.
    for words in [
        "percentile: 50.0 us",
        "server nginx on udjat: 40.0 us (100 %)",
    ] {
        assert!(said.contains(words), "no `{words}` in {said}");
    }
    // The second is made for the first, and has its bar in the time of that.
    assert!(text(browser, "#waterfall").starts_with("One request, hop by hop"));
    let bars = browser.eval(
        "[...document.querySelectorAll('#waterfall .track span')].map((bar) => [bar.style.left, bar.title.split(': ')[1]])",
    );
    assert_eq!(
        bars[0],
        json!([
            "0%",
            "50.0 us, wait for retransmission 60 % (khons > udjat)"
        ])
    );
    assert_eq!(bars[1][1], "40.0 us, server 100 % (nginx on udjat)");
    let awaited = browser.eval("document.querySelectorAll('#waterfall .awaited').length");
    assert_eq!(awaited, 2, "the first waits for the second");
    assert_eq!(
        text(browser, "#waterfall .ticks span:last-child"),
        "50.0 us"
    );
    let pieces = text(browser, "#breakdown table");
    for words in [
        "wait for retransmission khons > udjat",
        "30.0 us (60 %)",
        "server nginx on udjat",
    ] {
        assert!(pieces.contains(words), "no `{words}` in {pieces}");
    }
    let table = text(browser, "#segments-body");
    assert!(
        table.contains("as accounted for in the findings") && table.contains("67 %"),
        "{table}"
    );
}
