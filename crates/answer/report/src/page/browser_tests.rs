//! The page in a real browser: headless Chromium, one tab, one scenario after the other. Skipped, with a word, where there is
//! none.

use super::page;
use crate::testing::traced::{self, HOSTILE, TracedFixture};
use serde_json::{Value, json};
use stackline_testing::browser::Browser;
use std::path::{Path, PathBuf};

type Scenario = fn(&mut Browser, &Path);

#[test]
fn the_page_in_chromium() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let scenarios: [(&str, Scenario); 25] = [
        (
            "it opens without a complaint and says what limits",
            it_opens,
        ),
        (
            "the first screen says what, how much, why and where",
            the_first_screen,
        ),
        ("copies of a point share a row", copies_share_a_row),
        (
            "a run without events has a sentence and no empty picture",
            without_events,
        ),
        (
            "what it reads is what was written",
            it_reads_what_was_written,
        ),
        (
            "few lines are drawn one by one, in their colours",
            few_lines_are_drawn,
        ),
        ("many lines are drawn as a density", many_lines_are_drawn),
        (
            "a session shows when servers were blocked and what they did",
            a_session,
        ),
        ("wheel and keys zoom", wheel_and_keys_zoom),
        (
            "dragging and keys move, also on the strip of the whole run",
            dragging_and_keys_move,
        ),
        (
            "a click selects a line and shows its events",
            a_click_selects,
        ),
        ("keys select lines", keys_select),
        ("filters choose lines", filters_choose),
        (
            "a finding's link zooms to its evidence and selects its units",
            a_finding_zooms,
        ),
        (
            "a finding's events are marked and listed where it has no units",
            a_finding_without_units_marks_its_events,
        ),
        (
            "names and percentiles are those of the command",
            it_says_what_the_command_says,
        ),
        (
            "lines whose clocks are wrong stay in view",
            earlier_ends_stay_in_view,
        ),
        (
            "measurements are shown apart, and can be chosen",
            measurements_are_apart,
        ),
        (
            "where the time of one unit went adds up",
            the_breakdown_adds_up,
        ),
        (
            "a wait belongs to no link, and the median covers only units that arrived",
            waits_are_no_links,
        ),
        (
            "requests have the account that findings have",
            requests_have_their_account,
        ),
        ("dark as the system says, and by the button", dark_and_light),
        ("hostile names are inert", hostile_names_are_inert),
        (
            "nothing scrolls sideways on narrow and wide screens, and it prints",
            it_fits,
        ),
        (
            "everything that can be used has a name, and the picture has a table",
            it_is_accessible,
        ),
    ];
    for (name, scenario) in scenarios {
        eprintln!("{name}");
        scenario(&mut browser, directory.path());
    }
}

/// Writes a page and opens it.
fn opened(browser: &mut Browser, directory: &Path, traced: &TracedFixture) {
    let path = written(directory, traced);
    browser.complaints.clear();
    browser.open(&path, 1200, 900, false);
}

fn written(directory: &Path, traced: &TracedFixture) -> PathBuf {
    let path = directory.join("report.html");
    std::fs::write(&path, page(&traced.content()).unwrap()).unwrap();
    path
}

fn text(browser: &mut Browser, selector: &str) -> String {
    let text = browser.eval(&format!(
        "document.querySelector({}).textContent",
        json!(selector)
    ));
    text.as_str().unwrap_or_default().to_owned()
}

/// What is in view, ns.
fn view(browser: &mut Browser) -> (f64, f64) {
    let view = browser.eval("[stackline.picture.view.from, stackline.picture.view.to]");
    (view[0].as_f64().unwrap(), view[1].as_f64().unwrap())
}

/// Where a passage of a line is in the window.
fn place(browser: &mut Browser, line: u32, passage: u32) -> (f64, f64) {
    browser.eval("document.getElementById('picture').scrollIntoView()");
    let place = browser.eval(&format!(
        "(() => {{ const {{ picture, model }} = stackline, {{ layout }} = picture; const event = model.first[{line}] + {passage}; \
         const box = picture.over.getBoundingClientRect(); \
         return [box.left + picture.scale()(model.at[event]), box.top + layout.bottom - (layout.rows[model.kind[event]] + 0.5) * layout.row]; }})()"
    ));
    // The browser rounds where a wheel is turned.
    (
        place[0].as_f64().unwrap().round(),
        place[1].as_f64().unwrap().round(),
    )
}

/// Colours in the rows of lines: how many pixels have each, the paper left out.
fn colours(browser: &mut Browser, layer: &str) -> Value {
    browser.eval(&format!(
        "(() => {{ const canvas = stackline.picture.{layer}, counts = {{}}; \
         const {{ data }} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height); \
         for (let i = 0; i < data.length; i += 4) if (data[i + 3]) {{ const c = [data[i], data[i + 1], data[i + 2]]; counts[c] = (counts[c] ?? 0) + 1; }} \
         return counts; }})()"
    ))
}

fn it_opens(browser: &mut Browser, directory: &Path) {
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
fn the_first_screen(browser: &mut Browser, directory: &Path) {
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

fn copies_share_a_row(browser: &mut Browser, directory: &Path) {
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

fn without_events(browser: &mut Browser, directory: &Path) {
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

fn it_reads_what_was_written(browser: &mut Browser, directory: &Path) {
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
        let outcome = super::content::outcome(written.outcome).0;
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

fn origin(traced: &TracedFixture) -> u64 {
    super::origin_ns(&traced.index, &traced.events, &traced.lifelines)
}

fn few_lines_are_drawn(browser: &mut Browser, directory: &Path) {
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

fn many_lines_are_drawn(browser: &mut Browser, directory: &Path) {
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

fn a_session(browser: &mut Browser, directory: &Path) {
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

fn wheel_and_keys_zoom(browser: &mut Browser, directory: &Path) {
    opened(browser, directory, &traced::large(300));
    let (x, y) = place(browser, 70, 5);
    browser.click(x + 2.0, 15.0 + y);
    let before = view(browser);
    let moment = |browser: &mut Browser| {
        let left = browser
            .eval("stackline.picture.over.getBoundingClientRect().left")
            .as_f64()
            .unwrap();
        browser
            .eval(&format!("stackline.picture.moment({})", x - left))
            .as_f64()
            .unwrap()
    };
    let at = moment(browser);
    browser.mouse(
        "mouseWheel",
        x,
        y,
        json!({"deltaX": 0, "deltaY": -300, "button": "none"}),
    );
    browser.until(&format!(
        "stackline.picture.view.to - stackline.picture.view.from < {}",
        (before.1 - before.0) * 0.9
    ));
    browser.drawn();
    assert!(
        (moment(browser) - at).abs() < 2.0,
        "the moment under the pointer stays"
    );
    let wheel = view(browser);
    browser.key("+");
    let plus = view(browser);
    assert!(((plus.1 - plus.0) * 1.5 - (wheel.1 - wheel.0)).abs() < 2.0);
    browser.key("-");
    browser.key("0");
    let all = view(browser);
    assert!(all.0 < 0.0 && all.1 >= browser.eval("stackline.model.total").as_f64().unwrap());
    browser.eval("stackline.picture.over.blur()");
    let scrolled = browser.eval("scrollY");
    browser.mouse(
        "mouseWheel",
        x,
        y,
        json!({"deltaX": 0, "deltaY": -300, "button": "none"}),
    );
    browser.until(&format!("scrollY < {scrolled}"));
    assert_eq!(
        view(browser),
        all,
        "without the focus the wheel moves the page"
    );
}

fn dragging_and_keys_move(browser: &mut Browser, directory: &Path) {
    opened(browser, directory, &traced::large(3_000));
    let (x, y) = place(browser, 520, 3);
    let before = view(browser);
    browser.mouse("mouseMoved", x, y, json!({}));
    browser.mouse("mousePressed", x, y, json!({}));
    browser.mouse("mouseMoved", x + 100.0, y, json!({}));
    browser.mouse("mouseReleased", x + 100.0, y, json!({}));
    browser.drawn();
    let dragged = view(browser);
    let wide = browser
        .eval("stackline.picture.layout.right - stackline.picture.layout.left")
        .as_f64()
        .unwrap();
    let expected = before.0 - (before.1 - before.0) * 100.0 / wide;
    assert!(
        (dragged.0 - expected).abs() < (before.1 - before.0) * 0.001,
        "{before:?} {dragged:?}"
    );
    assert_eq!(
        browser.eval("stackline.picture.selected.length"),
        0,
        "what was dragged was no click"
    );
    browser.key("ArrowRight");
    let moved = view(browser);
    assert!((moved.0 - dragged.0 - (dragged.1 - dragged.0) * 0.1).abs() < 2.0);
    let strip = browser.eval(
        "(() => { const { picture } = stackline, { layout } = picture; const box = picture.over.getBoundingClientRect(); \
         return [box.left + layout.left + (layout.right - layout.left) * 0.25, box.top + layout.overview + 8]; })()",
    );
    browser.click(strip[0].as_f64().unwrap(), strip[1].as_f64().unwrap());
    let total = browser.eval("stackline.model.total").as_f64().unwrap();
    let jumped = view(browser);
    assert!(
        ((jumped.0 + jumped.1) / 2.0 - total / 4.0).abs() < total * 0.01,
        "{jumped:?} of {total}"
    );
}

fn a_click_selects(browser: &mut Browser, directory: &Path) {
    let traced = traced::few();
    opened(browser, directory, &traced);
    let (x, y) = place(browser, 1, 1);
    browser.click(x, y);
    assert_eq!(browser.eval("stackline.picture.selected"), json!([1]));
    assert_eq!(text(browser, "#selected h3"), "Unit 1 of flow 0: 90.0 us");
    assert_eq!(
        browser.eval("document.querySelectorAll('#selected tbody tr').length"),
        4
    );
    let row = text(browser, "#selected tbody tr:nth-child(2)");
    assert!(
        row.contains("APP_INDICATION") && row.contains("offset 48") && row.contains("+30.0 us"),
        "{row}"
    );
    let (x, y) = place(browser, 2, 1);
    browser.click(x, y);
    let table = text(browser, "#selected");
    assert!(
        table.contains("never arrived; last seen at APP_INDICATION udjat")
            && table.contains("queue full"),
        "{table}"
    );
    let drawn = colours(browser, "over");
    assert!(
        drawn["0,0,0"].as_u64().unwrap_or(0) > 50,
        "the selected line stands out: {drawn}"
    );
    browser.click(x, y + 60.0);
    assert_eq!(browser.eval("stackline.picture.selected"), json!([]));
}

fn keys_select(browser: &mut Browser, directory: &Path) {
    opened(browser, directory, &traced::few());
    browser.eval("stackline.picture.over.focus()");
    browser.key("ArrowDown");
    browser.key("ArrowDown");
    assert_eq!(browser.eval("stackline.picture.selected"), json!([1]));
    browser.key("ArrowUp");
    assert_eq!(browser.eval("stackline.picture.selected"), json!([0]));
    browser.key("Enter");
    let (from, to) = view(browser);
    assert!(
        from < 0.0 && to > 30_000.0 && to - from < 60_000.0,
        "{from} {to}"
    );
    browser.key("Escape");
    assert_eq!(browser.eval("stackline.picture.selected"), json!([]));
    assert_eq!(text(browser, "#selected"), "");
}

/// Sets a field of the filters as a user does.
fn set(browser: &mut Browser, label: &str, value: &str) {
    let found = browser.eval(&format!(
        "(() => {{ const label = [...document.querySelectorAll('#filters label')].find((one) => one.textContent.startsWith({})); \
         const input = label?.querySelector('select, input'); if (!input) return false; input.value = {}; \
         input.dispatchEvent(new Event('input', {{ bubbles: true }})); return true; }})()",
        json!(label),
        json!(value)
    ));
    assert_eq!(found, true, "{label}");
    browser.drawn();
}

fn filters_choose(browser: &mut Browser, directory: &Path) {
    let traced = traced::large(3_000);
    opened(browser, directory, &traced);
    browser.eval("stackline.picture.view.reset(); stackline.picture.change()");
    let chosen = |browser: &mut Browser| {
        browser
            .eval("stackline.picture.mask.reduce((sum, one) => sum + one, 0)")
            .as_u64()
            .unwrap()
    };
    assert_eq!(chosen(browser), 3_000);
    let lost = traced
        .lifelines
        .lines
        .iter()
        .filter(|line| line.count == 6)
        .count() as u64;
    set(browser, "Outcome", "4");
    assert_eq!(chosen(browser), lost);
    assert_eq!(
        browser
            .eval("stackline.picture.seen.lines")
            .as_u64()
            .unwrap(),
        lost
    );
    set(browser, "Host", "udjat");
    assert_eq!(
        chosen(browser),
        0,
        "what was dropped at edge never came to udjat"
    );
    browser.eval("document.querySelector('#filters [type=reset]').click()");
    browser.until("stackline.picture.mask.every(Boolean)");
    set(browser, "Stack", "quic");
    assert_eq!(chosen(browser), 1_000);
    browser.until(
        "[...document.querySelectorAll('#filters option')].some((one) => one.value === '5>6')",
    );
    set(browser, "Segment", "5>6");
    set(browser, "at least", "800");
    let passages = |line| traced.lifelines.passages_of(line);
    let slow = traced
        .lifelines
        .lines
        .iter()
        .filter(|line| line.flow == Some(1) && line.count > 6);
    let slow = slow
        .filter(|line| passages(line)[6].at_ns - passages(line)[5].at_ns >= 800_000)
        .count() as u64;
    assert!(slow > 10 && chosen(browser) == slow, "{slow}");
    browser.until(&format!(
        "document.getElementById('segments-about').textContent.includes(' {slow} selected')"
    ));
}

fn a_finding_zooms(browser: &mut Browser, directory: &Path) {
    let traced = traced::large(3_000);
    opened(browser, directory, &traced);
    set(browser, "Outcome", "2");
    browser.eval("document.querySelector('#findings .link').click()");
    browser.drawn();
    let evidence = &traced.findings[0].evidence[0];
    let (from, to) = view(browser);
    let expected = (
        (evidence.from_ns - origin(&traced)) as f64,
        (evidence.to_ns - origin(&traced)) as f64,
    );
    assert!(
        from < expected.0 && to > expected.1 && to - from < 2.0 * (expected.1 - expected.0),
        "{from} {to} {expected:?}"
    );
    let units =
        browser.eval("stackline.picture.selected.map((line) => stackline.model.unit(line))");
    assert_eq!(units, json!(evidence.units));
    assert_eq!(browser.eval("document.activeElement.id"), "over");
}

fn a_finding_without_units_marks_its_events(browser: &mut Browser, directory: &Path) {
    let mut traced = traced::few();
    traced
        .events
        .push("PROCESS_PAUSED", "khons", traced::ORIGIN_NS + 250_000, &[]);
    let place = (0..traced.events.len())
        .filter(|row| traced.events.host(*row) == "khons")
        .count() as u32
        - 1;
    let evidence = &mut traced.findings[0].evidence[0];
    evidence.what = "the responder stood still".into();
    (evidence.units, evidence.events) = (
        Vec::new(),
        vec![("khons".into(), place), ("nobody".into(), 0)],
    );
    opened(browser, directory, &traced);
    browser.eval("document.querySelector('#findings .link').click()");
    browser.drawn();
    let keywords = "stackline.picture.pointed.map((event) => stackline.model.kinds[stackline.model.kind[event]][0])";
    assert_eq!(browser.eval(keywords), json!(["PROCESS_PAUSED"]));
    let said = text(browser, "#selected");
    assert!(
        said.contains("The responder stood still") && said.contains("PROCESS_PAUSED"),
        "{said}"
    );
    browser.eval("stackline.picture.view.reset(); stackline.picture.change()");
    browser.drawn();
    let drawn = colours(browser, "over");
    assert!(
        drawn["198,47,29"].as_u64().unwrap_or(0) > 50,
        "an upright line: {drawn}"
    );
    browser.key("Escape");
    assert_eq!(browser.eval("stackline.picture.pointed"), json!([]));
}

fn it_says_what_the_command_says(browser: &mut Browser, directory: &Path) {
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

/// In every third line the last point is long before the first: the clock of its host is wrong.
fn earlier_ends_stay_in_view(browser: &mut Browser, directory: &Path) {
    let mut traced = traced::many(300);
    for line in traced.lifelines.lines.iter().step_by(3) {
        traced.lifelines.passages[line.first as usize + 3].at_ns -= 1_000_000;
    }
    opened(browser, directory, &traced);
    assert_eq!(
        browser.eval(
            "stackline.model.start.every((at, line, all) => line === 0 || all[line - 1] <= at)"
        ),
        true
    );
    for from in [0, 3_000_000, 7_500_000] {
        let read = browser.eval(&format!(
            "(() => {{ const {{ view, visible, mask }} = stackline.picture, {{ model }} = stackline; view.show({from}, {from} + 400000, 0); \
             const seen = []; visible.each(view, mask, 0, false, (line) => seen.push(line)); \
             const all = [...mask.keys()].filter((line) => model.end[line] >= view.from && model.start[line] <= view.to); \
             return [seen.sort((a, b) => a - b), all]; }})()"
        ));
        assert_eq!(read[0], read[1], "from {from} ns");
        assert!(!read[1].as_array().unwrap().is_empty());
    }
}

fn measurements_are_apart(browser: &mut Browser, directory: &Path) {
    let mut traced = traced::large(300);
    for flow in &mut traced.index.flows[1..] {
        flow.measurement = 1;
    }
    opened(browser, directory, &traced);
    browser.until("document.querySelector('#breakdown table')");
    let chosen = "[stackline.picture.mask.reduce((sum, one) => sum + one, 0), document.getElementById('measurement').value, \
                  document.getElementById('answer').textContent]";
    let sentence = &traced.findings[0].sentence;
    assert_eq!(
        browser.eval(chosen),
        json!([100, "0", sentence]),
        "the one that the first finding is about"
    );
    let choose = |value: &str| {
        format!(
            "(() => {{ const select = document.getElementById('measurement'); select.value = '{value}'; \
             select.dispatchEvent(new Event('input', {{ bubbles: true }})); }})()"
        )
    };
    browser.eval(&choose("1"));
    browser.until("document.getElementById('answer').textContent.includes('of the median')");
    let seen = browser.eval(chosen);
    assert_eq!((&seen[0], &seen[1]), (&json!(200), &json!("1")));
    let said = seen[2].as_str().unwrap();
    assert!(said.ends_with("went here: link edge>udjat."), "{said}");
    browser.eval(&choose(""));
    browser.until("!document.getElementById('answer').textContent.includes('of the median')");
    assert_eq!(browser.eval(chosen), json!([300, "", sentence]));
}

fn the_breakdown_adds_up(browser: &mut Browser, directory: &Path) {
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

fn waits_are_no_links(browser: &mut Browser, directory: &Path) {
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

fn requests_have_their_account(browser: &mut Browser, directory: &Path) {
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
        json!(["0%", "50.0 us, wait for retransmission 60 %"])
    );
    assert_eq!(bars[1][1], "40.0 us, server 100 %");
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

fn dark_and_light(browser: &mut Browser, directory: &Path) {
    let path = written(directory, &traced::few());
    browser.open(&path, 1200, 900, true);
    let ground = "getComputedStyle(document.body).backgroundColor";
    assert_eq!(browser.eval(ground), "rgb(20, 24, 29)");
    let dark = colours(browser, "base");
    assert!(
        dark["20,24,29"].as_u64().unwrap_or(0) > 10_000,
        "the picture is dark too"
    );
    browser.eval("document.getElementById('theme').click()");
    browser.drawn();
    assert_eq!(browser.eval(ground), "rgb(255, 255, 255)");
    let light = colours(browser, "base");
    assert!(light["255,255,255"].as_u64().unwrap_or(0) > 10_000);
}

fn hostile_names_are_inert(browser: &mut Browser, directory: &Path) {
    opened(browser, directory, &traced::hostile());
    browser.eval("stackline.select([0]); for (const one of document.querySelectorAll('details')) one.open = true");
    browser.drawn();
    assert_eq!(
        browser.complaints, [""; 0],
        "no dialog, no request, no script refused"
    );
    assert_eq!(
        browser.eval("document.querySelectorAll('img, iframe, object, embed').length"),
        0
    );
    assert_eq!(browser.eval("document.scripts.length"), 2);
    for part in [
        "#title",
        "#answer",
        "#findings",
        "#selected",
        "#segments",
        "#environment",
    ] {
        browser.until(&format!(
            "document.querySelector({}).textContent.includes({})",
            json!(part),
            json!(HOSTILE)
        ));
    }
    // The policy holds even against markup that got in somehow.
    browser.eval(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.broken = 1\">'); \
         const script = document.createElement('script'); script.textContent = 'window.broken = 2'; document.body.append(script); \
         fetch('file:///etc/hostname').then(() => { window.broken = 3; }, () => {}).then(() => new Promise((done) => setTimeout(done, 50)))",
    );
    assert_eq!(browser.eval("window.broken ?? null"), Value::Null);
    assert!(!browser.complaints.is_empty(), "the policy refuses them");
    browser.complaints.clear();
}

fn it_fits(browser: &mut Browser, directory: &Path) {
    let path = written(directory, &traced::large(500));
    for (width, dark) in [(400, false), (2560, true)] {
        browser.open(&path, width, 900, dark);
        browser.eval("stackline.select([0]); document.getElementById('in-view').open = true");
        browser.drawn();
        let wide = browser
            .eval("document.scrollingElement.scrollWidth")
            .as_u64()
            .unwrap();
        assert!(wide <= u64::from(width), "{wide} on a screen of {width}");
        let drawn = colours(browser, "fine");
        assert!(drawn.as_object().unwrap().len() > 3, "{width}");
    }
    browser.eval("dispatchEvent(new Event('beforeprint'))");
    assert_eq!(
        browser.eval("[stackline.picture.dark, stackline.picture.layout.width <= 700]"),
        json!([false, true])
    );
    browser.eval("dispatchEvent(new Event('afterprint'))");
    browser.drawn();
    assert_eq!(
        browser.eval("[stackline.picture.dark, stackline.picture.layout.width > 2000]"),
        json!([true, true])
    );
    let printed = browser.call("Page.printToPDF", json!({"printBackground": true}));
    assert!(printed["data"].as_str().unwrap().len() > 10_000);
}

fn it_is_accessible(browser: &mut Browser, directory: &Path) {
    opened(browser, directory, &traced::large(500));
    browser.eval("stackline.select([3]); document.getElementById('in-view').open = true");
    browser.until("document.querySelectorAll('#in-view tbody tr').length > 10");
    let tree = browser.call("Accessibility.getFullAXTree", json!({}));
    let nodes = tree["nodes"].as_array().unwrap();
    let role = |node: &Value| {
        node["role"]["value"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let usable = [
        "button",
        "combobox",
        "textbox",
        "spinbutton",
        "checkbox",
        "application",
        "table",
        "region",
        "image",
    ];
    for node in nodes
        .iter()
        .filter(|node| node["ignored"] == false && usable.contains(&role(node).as_str()))
    {
        let name = node["name"]["value"].as_str().unwrap_or_default();
        assert!(
            !name.trim().is_empty(),
            "a {} without a name: {node}",
            role(node)
        );
    }
    assert!(
        nodes.iter().any(|node| role(node) == "application"),
        "the picture"
    );
    assert!(
        nodes.iter().any(|node| role(node) == "status"),
        "what is in view is announced"
    );
    browser.eval("document.querySelector('#in-view tbody button').click()");
    browser.drawn();
    assert!(browser.eval("stackline.picture.selected.length") == 1);
    assert_eq!(browser.eval("stackline.picture.over.tabIndex"), 0);
}

/// Moves and zooms for so many frames at a share of the run; how long each took to compute, and from frame to frame, ms.
const FRAMES: &str = "(async (share, frames) => { const p = stackline.picture, t = p.model.total, work = [], gaps = []; \
    p.view.show(t * 0.2, t * (0.2 + share * 0.7)); p.change(); await new Promise((done) => setTimeout(done, 500)); \
    const frame = p.frame.bind(p); p.frame = () => { const begun = performance.now(); frame(); work.push(performance.now() - begun); }; \
    let last = 0; for (let i = 0; i < frames; i++) await new Promise((done) => requestAnimationFrame((now) => { \
      if (last) gaps.push(now - last); last = now; \
      if (i % 2) p.view.zoom(i % 4 === 1 ? 0.97 : 1.03, (p.view.from + p.view.to) / 2); else p.view.pan(0.004); p.change(); done(); })); \
    delete p.frame; const at = (a, q) => a.sort((x, y) => x - y)[Math.floor((a.length - 1) * q)]; \
    return [work, gaps].map((a) => [0.5, 0.95, 0.99, 1].map((q) => at(a, q))); })";

/// The figures of docs/VALIDATION.md.
#[test]
#[ignore = "measures: cargo test -p stackline-report page_speed -- --ignored --nocapture"]
fn page_speed() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let traced = traced::large(100_000);
    let begun = std::time::Instant::now();
    let path = written(directory.path(), &traced);
    let (events, size) = (traced.events.len(), std::fs::metadata(&path).unwrap().len());
    println!(
        "{} lines, {events} events: made in {:?}, {size} bytes",
        traced.lifelines.lines.len(),
        begun.elapsed()
    );
    browser.call("Performance.enable", json!({"timeDomain": "threadTicks"}));
    let (mut opened, mut cpu) = (Vec::new(), Vec::new());
    for _ in 0..15 {
        // A page that is opened counts from zero.
        browser.open(&path, 1280, 900, false);
        opened.push(
            browser
                .eval("stackline.picture.firstDrawn")
                .as_f64()
                .unwrap(),
        );
        cpu.push(busy(&mut browser));
    }
    for (what, values) in [
        ("to the first drawn frame, wall", &mut opened),
        ("until all is there, CPU", &mut cpu),
    ] {
        values.sort_by(f64::total_cmp);
        println!(
            "from navigation {what}: median {:.0} ms ({:.0}..{:.0}, n = 15)",
            values[7], values[0], values[14]
        );
    }
    for share in [1.0, 0.1, 0.01, 0.001] {
        let before = busy(&mut browser);
        let frames = browser.eval(&format!("{FRAMES}({share}, 300)"));
        let cpu = (busy(&mut browser) - before) / 300.0;
        let row = |of: usize| {
            let at = |q: usize| frames[of][q].as_f64().unwrap();
            format!(
                "median {:.1}, p95 {:.1}, p99 {:.1}, largest {:.1} ms",
                at(0),
                at(1),
                at(2),
                at(3)
            )
        };
        println!(
            "{share} of the run in view, 300 frames: {cpu:.1} ms CPU each; script {}; frame to frame {}",
            row(0),
            row(1)
        );
    }
}

/// CPU time of the page's main thread, ms.
fn busy(browser: &mut Browser) -> f64 {
    let metrics = browser.call("Performance.getMetrics", json!({}));
    let metric = metrics["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .find(|metric| metric["name"] == "TaskDuration");
    metric.unwrap()["value"].as_f64().unwrap() * 1e3
}
