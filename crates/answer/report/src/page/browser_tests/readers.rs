//! However the page is read: dark or light, on narrow and wide screens and paper, by keyboard and screen reader.

use super::{colours, opened, written};
use crate::testing::traced;
use serde_json::{Value, json};
use stackline_testing::browser::Browser;
use std::path::Path;

pub(super) fn dark_and_light(browser: &mut Browser, directory: &Path) {
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

pub(super) fn it_fits(browser: &mut Browser, directory: &Path) {
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

pub(super) fn it_is_accessible(browser: &mut Browser, directory: &Path) {
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
