//! Lines are selected by clicks and keys, filters and the links of findings, measurement by measurement.

use super::{colours, opened, origin, place, text, view};
use crate::testing::traced;
use serde_json::json;
use stackline_testing::browser::Browser;
use std::path::Path;

pub(super) fn a_click_selects(browser: &mut Browser, directory: &Path) {
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

pub(super) fn keys_select(browser: &mut Browser, directory: &Path) {
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

pub(super) fn filters_choose(browser: &mut Browser, directory: &Path) {
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

pub(super) fn a_finding_zooms(browser: &mut Browser, directory: &Path) {
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

pub(super) fn a_finding_without_units_marks_its_events(browser: &mut Browser, directory: &Path) {
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
    // What is looked for is counted, and what is not there is said.
    let mut look_for = |name: &str| {
        browser.eval(&format!(
            "(() => {{ const input = document.querySelector('#find'); input.value = {}; \
             input.dispatchEvent(new KeyboardEvent('keydown', {{ key: 'Enter' }})); }})()",
            json!(name)
        ));
        text(browser, "#tools [role=status]")
    };
    assert_eq!(look_for("no such request"), "nothing found");
    assert!(look_for("unit 1 of flow 0").starts_with("1 of "));
}

pub(super) fn measurements_are_apart(browser: &mut Browser, directory: &Path) {
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
