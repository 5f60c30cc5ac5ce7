//! Names that are markup or scripts do nothing.

use super::opened;
use crate::testing::traced::{self, HOSTILE};
use serde_json::{Value, json};
use stackline_testing::browser::Browser;
use std::path::Path;

pub(super) fn hostile_names_are_inert(browser: &mut Browser, directory: &Path) {
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
