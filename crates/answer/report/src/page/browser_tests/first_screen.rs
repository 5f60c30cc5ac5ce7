//! What is seen first: what was measured, how much, why, and where; also of a run without events.

use super::{opened, text, written};
use crate::testing::traced::{self, TracedFixture};
use serde_json::json;
use stackline_testing::browser::Browser;
use std::path::Path;

pub(super) fn it_opens(browser: &mut Browser, directory: &Path) {
    let traced = traced::few();
    opened(browser, directory, &traced);
    assert_eq!(browser.complaints, [""; 0]);
    assert_eq!(text(browser, "#answer"), traced.findings[0].sentence);
    assert_eq!(browser.eval("document.title"), "rr: stackline");
    assert!(
        text(browser, "#status").contains("3 lines"),
        "{}",
        text(browser, "#status")
    );
    assert!(browser.picture().len() > 10_000);
}

/// On a screen of 1280 by 800 pixels, without scrolling.
pub(super) fn the_first_screen(browser: &mut Browser, directory: &Path) {
    let mut traced = traced::large(300);
    let whole = "3 parallel: from khons to udjat bulk_put 32*1000 over tcp | from edc to udjat bulk_put 32*1000 over quic";
    let row = traced.run["measurements"][0].clone();
    let parts = [
        ("from khons to udjat bulk_put 32*1000 over tcp", "tcp"),
        ("from edc to udjat bulk_put 32*1000 over quic", "quic"),
        ("all", ""),
    ];
    traced.run["measurements"] = parts
        .map(|(part, stack)| {
            let mut row = row.clone();
            (row["text"], row["part"], row["stack"]) = (whole.into(), part.into(), stack.into());
            row
        })
        .to_vec()
        .into();
    traced.title = whole.into();
    let path = written(directory, &traced);
    browser.open(&path, 1280, 800, false);
    let shown = "document.getElementById('picture').getBoundingClientRect().bottom <= innerHeight && scrollY === 0";
    assert_eq!(
        browser.eval(shown),
        true,
        "the lifelines end below the screen"
    );
    let order = "[...document.querySelectorAll('#title, #measured, #answer, #parts, .strip, #legend, #picture')].every((one, at, all) => \
                 one.getBoundingClientRect().height > 0 && (at < 4 || one.getBoundingClientRect().top >= all[at - 1].getBoundingClientRect().top))";
    assert_eq!(browser.eval(order), true);
    let rows = "[...document.querySelectorAll('#parts tbody th')].map((one) => one.textContent)";
    let expected = [
        "from khons to udjat bulk_put 32*1000",
        "from edc to udjat bulk_put 32*1000",
        "all together",
    ];
    assert_eq!(browser.eval(rows), json!(expected));
    assert!(text(browser, "#measured").starts_with("2026-11-22 18:54:16 UTC, simulated world"));
    let often = format!(
        "document.querySelector('main').textContent.split({}).length - 1",
        json!(whole)
    );
    assert_eq!(browser.eval(&often), 1, "the specification stands once");
}

pub(super) fn copies_share_a_row(browser: &mut Browser, directory: &Path) {
    let mut traced = traced::large(60);
    // The same way from another host: the lines of one flow.
    let copies: Vec<_> = traced
        .lifelines
        .points
        .iter()
        .filter(|point| point.host == "khons")
        .cloned()
        .collect();
    let first = traced.lifelines.points.len() as u32;
    traced
        .lifelines
        .points
        .extend(
            copies
                .into_iter()
                .map(|point| stackline_analyze::lifelines::LifelinePoint {
                    host: "edc".into(),
                    place: point.place.replace("khons", "edc"),
                    ..point
                }),
        );
    for line in traced
        .lifelines
        .lines
        .iter()
        .filter(|line| line.flow == Some(1))
    {
        for passage in &mut traced.lifelines.passages[line.first as usize..line.first as usize + 5]
        {
            passage.point += first;
        }
    }
    opened(browser, directory, &traced);
    let rows = browser.eval("new Set(stackline.picture.layout.rows).size");
    assert_eq!(rows, 10, "one row a stage, not one a host");
    assert_eq!(
        browser.eval("stackline.model.head.stages.places[stackline.model.stage[0]]"),
        "khons, edc"
    );
}

pub(super) fn without_events(browser: &mut Browser, directory: &Path) {
    let large = traced::large(10);
    let traced = TracedFixture {
        title: "bare".into(),
        run: large.run.clone(),
        ..TracedFixture::default()
    };
    browser.complaints.clear();
    let path = written(directory, &traced);
    browser.open(&path, 1280, 800, false);
    assert_eq!(browser.complaints, [""; 0]);
    assert!(text(browser, "#undrawn").contains("kept no events"));
    for part in ["picture", "breakdown", "segments"] {
        assert_eq!(
            browser.eval(&format!(
                "document.getElementById('{part}').getBoundingClientRect().height"
            )),
            0,
            "{part}"
        );
    }
    assert!(text(browser, "#parts").contains("18.1 Mbit/s"));
    let order = "document.getElementById('findings').compareDocumentPosition(document.getElementById('lifelines')) & 4";
    assert_eq!(
        browser.eval(order),
        4,
        "findings come before what is missing"
    );
    let ranges = "document.querySelectorAll('#parts .range .mean').length > 0";
    assert_eq!(browser.eval(ranges), true);
}
