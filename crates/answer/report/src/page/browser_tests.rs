//! The page in a real browser: headless Chromium, one tab, one scenario after the other. Skipped, with a word, where there is
//! none.

mod accounts;
mod choosing;
mod drawing;
mod first_screen;
mod hostile_names;
mod moving;
mod readers;
mod speed;

use super::page;
use crate::testing::traced::TracedFixture;
use accounts::{
    it_says_what_the_command_says, requests_have_their_account, the_breakdown_adds_up,
    waits_are_no_links,
};
use choosing::{
    a_click_selects, a_finding_without_units_marks_its_events, a_finding_zooms, filters_choose,
    keys_select, measurements_are_apart,
};
use drawing::{a_session, few_lines_are_drawn, it_reads_what_was_written, many_lines_are_drawn};
use first_screen::{copies_share_a_row, it_opens, the_first_screen, without_events};
use hostile_names::hostile_names_are_inert;
use moving::{dragging_and_keys_move, earlier_ends_stay_in_view, wheel_and_keys_zoom};
use readers::{dark_and_light, it_fits, it_is_accessible};
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

fn origin(traced: &TracedFixture) -> u64 {
    super::origin_ns(&traced.index, &traced.events, &traced.lifelines)
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
