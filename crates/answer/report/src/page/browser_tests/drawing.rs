//! The page reads what was written and draws it: few lines one by one, many as a density, a session with its servers.

use super::{colours, opened, origin, text};
use crate::page::content;
use crate::testing::traced;
use serde_json::{Value, json};
use stackline_testing::browser::Browser;
use std::path::Path;

pub(super) fn it_reads_what_was_written(browser: &mut Browser, directory: &Path) {
    let traced = traced::large(200);
    opened(browser, directory, &traced);
    let lifelines = &traced.lifelines;
    let read = browser.eval(
        "({ lines: Array.from({ length: stackline.model.lines }, (_, line) => [stackline.model.unit(line), stackline.model.count[line], \
         stackline.model.marks[line], stackline.model.outcome[line]]), at: Array.from(stackline.model.at), \
         data: Array.from({ length: stackline.model.loose }, (_, event) => [0, 2, 4, 7].map((field) => stackline.model.value(event, field))) })",
    );
    for (line, written) in read["lines"]
        .as_array()
        .unwrap()
        .iter()
        .zip(&lifelines.lines)
    {
        let outcome = content::outcome(written.outcome).0;
        assert_eq!(
            *line,
            json!([written.unit, written.count, written.mark_count, outcome])
        );
    }
    let mut event = 0;
    for line in &lifelines.lines {
        for passage in lifelines
            .passages_of(line)
            .iter()
            .chain(lifelines.marks_of(line))
        {
            assert_eq!(
                read["at"][event].as_f64().unwrap(),
                (passage.at_ns - origin(&traced)) as f64
            );
            let value = |field| match traced.events.value(passage.row as usize, field) {
                stackline_events::EventValue::Absent => Value::Null,
                stackline_events::EventValue::Number(number) => number.into(),
                stackline_events::EventValue::Text(text) => text.into(),
            };
            assert_eq!(
                read["data"][event],
                json!([value(0), value(2), value(4), value(7)]),
                "event {event}"
            );
            event += 1;
        }
    }
    assert_eq!(event, read["data"].as_array().unwrap().len());
}

pub(super) fn few_lines_are_drawn(browser: &mut Browser, directory: &Path) {
    opened(browser, directory, &traced::large(60));
    assert_eq!(browser.eval("stackline.picture.seen.dense"), false);
    let seen = colours(browser, "fine");
    for colour in ["0,114,178", "213,94,0", "0,158,115"] {
        assert!(
            seen[colour].as_u64().unwrap_or(0) > 300,
            "{colour}: {}",
            seen[colour]
        );
    }
}

pub(super) fn many_lines_are_drawn(browser: &mut Browser, directory: &Path) {
    opened(browser, directory, &traced::large(20_000));
    browser.eval("stackline.picture.view.reset(); stackline.picture.change()");
    browser.drawn();
    assert_eq!(
        browser.eval("[stackline.picture.seen.dense, stackline.picture.seen.lines]"),
        json!([true, 20_000])
    );
    let seen = colours(browser, "density");
    let pixels: u64 = seen
        .as_object()
        .unwrap()
        .values()
        .map(|n| n.as_u64().unwrap())
        .sum();
    assert!(pixels > 200_000, "{pixels}");
    assert!(text(browser, "#status").contains("20 000 lines"));
}

pub(super) fn a_session(browser: &mut Browser, directory: &Path) {
    opened(browser, directory, &traced::session());
    browser.eval("stackline.picture.view.reset(); stackline.picture.change()");
    browser.drawn();
    assert!(browser.complaints.is_empty(), "{:?}", browser.complaints);
    // A colour for each server, lines of given up blocks apart, what was sent again on top, bars below it.
    let legend = text(browser, "#legend");
    assert!(
        ["s1", "s2", "flushed"]
            .iter()
            .all(|word| legend.contains(word)),
        "{legend}"
    );
    let lanes = browser
        .eval("[stackline.picture.marks, stackline.picture.blocked].map((lanes) => lanes.map((lane) => lane.name))");
    assert_eq!(
        lanes,
        json!([["retransmitted"], ["s1 blocked", "s2 blocked"]])
    );
    // In the middle of the bars, and beside them.
    let pixels = browser.eval(
        "(() => { const { picture } = stackline, { layout } = picture, dots = Math.min(3, devicePixelRatio || 1); \
         const base = document.getElementById('base').getContext('2d'); \
         return [1, 2].map((row) => [440e6, 200e6].map((at) => [...base.getImageData(picture.scale()(at) * dots, (layout.marks + row * 18 + 8) * dots, 1, 1).data].slice(0, 3))); })()",
    );
    assert_eq!(
        pixels,
        json!([
            [[0, 114, 178], [255, 255, 255]],
            [[213, 94, 0], [255, 255, 255]]
        ])
    );
    let operation = text(browser, "#operation");
    assert!(
        operation.contains("START_READ to END_READ") && operation.contains("idle"),
        "{operation}"
    );
    let bars = browser.eval("document.querySelectorAll('#operation .profile').length");
    assert_eq!(bars, 2, "{operation}");
    assert!(
        text(browser, "#together").starts_with("Several of 2 were blocked at once for "),
        "{operation}"
    );
    // Of runs that measure there is no such part.
    opened(browser, directory, &traced::few());
    assert_eq!(
        browser.eval("document.getElementById('operation').hidden"),
        true
    );
}
