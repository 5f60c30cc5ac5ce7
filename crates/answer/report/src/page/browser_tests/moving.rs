//! What is in view: zoomed by wheel and keys, moved by dragging and keys, complete wherever clocks are wrong.

use super::{opened, place, view};
use crate::testing::traced;
use serde_json::json;
use stackline_testing::browser::Browser;
use std::path::Path;

pub(super) fn wheel_and_keys_zoom(browser: &mut Browser, directory: &Path) {
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

pub(super) fn dragging_and_keys_move(browser: &mut Browser, directory: &Path) {
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

/// In every third line the last point is long before the first: the clock of its host is wrong.
pub(super) fn earlier_ends_stay_in_view(browser: &mut Browser, directory: &Path) {
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
