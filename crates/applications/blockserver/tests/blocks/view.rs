//! The page that shows a picture, in a real browser: headless Chromium. Skipped, with a word, where there is none.

use crate::common::Site;
use crate::http;
use serde_json::{Value, json};
use stackline_testing::browser::Browser;

/// Opens the page in a window of that size, and waits until all in view is drawn.
fn open(browser: &mut Browser, address: &str, width: u32, height: u32) {
    let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
    browser.call("Emulation.setDeviceMetricsOverride", size);
    browser.call(
        "Page.navigate",
        json!({"url": format!("http://{address}/map/view")}),
    );
    browser.until("globalThis.stackline && stackline.stats.delivered > 0 && stackline.idle()");
}

/// The colour at a point of the canvas.
fn colour(browser: &mut Browser, x: u32, y: u32) -> Value {
    browser.eval(&format!(
        "[...document.getElementById('canvas').getContext('2d').getImageData({x}, {y}, 1, 1).data]"
    ))
}

/// What the tile of a point in the picture has there, by its level.
fn expected(about: &stackline_blocks::set::BlockSet, level: u8, x: u32, y: u32) -> Value {
    let picture = about.picture.clone().unwrap();
    let (x, y, side) = (x >> level, y >> level, u32::from(picture.tile));
    let tile = stackline_blocks::pyramid::Tile {
        level,
        row: y / side,
        column: x / side,
    };
    let pixels = http::pixels(&picture, picture.number(tile).unwrap());
    let at = 3 * ((y % side) * side + x % side) as usize;
    json!([pixels[at], pixels[at + 1], pixels[at + 2], 255])
}

#[test]
fn the_page_in_chromium() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let site = Site::new(2);
    let about = http::picture("map", 4000, 3000, 128);
    http::load_picture(&site, &about);
    let gateway = http::start(&site);
    let address = gateway.address().to_string();
    open(&mut browser, &address, 1280, 800);
    assert_eq!(browser.complaints, [""; 0]);
    // All of it is in view, and nothing was asked for in vain.
    assert_eq!(browser.eval("stackline.stats.superseded"), 0);
    assert_eq!(
        browser.eval(
            "stackline.view.scale === byId('place').getBoundingClientRect().height / set.height"
        ),
        true
    );
    shoot(&mut browser, "whole-1280");

    // At its full resolution a pixel of the window is one of the picture.
    let look = "Object.assign(stackline.view, { x: 1000, y: 900, scale: 1 }); stackline.move(0, 0)";
    browser.eval(look);
    browser.until("stackline.idle() && stackline.kept.has('0/7/7')");
    let middle = browser.eval("[canvas.width / 2, canvas.height / 2].map(Math.round)");
    let (x, y) = (
        middle[0].as_u64().unwrap() as u32,
        middle[1].as_u64().unwrap() as u32,
    );
    assert_eq!(
        colour(&mut browser, x + 5, y + 9),
        expected(&about, 0, 1005, 909)
    );
    assert_eq!(
        colour(&mut browser, x - 300, y - 200),
        expected(&about, 0, 700, 700)
    );

    // Dragged with the mouse, the picture follows it, and what comes into view is fetched and drawn.
    let before = browser.eval("stackline.stats.delivered").as_u64().unwrap();
    browser.mouse("mousePressed", 900.0, 500.0, json!({}));
    for step in 1..=8 {
        browser.mouse(
            "mouseMoved",
            900.0 - 100.0 * f64::from(step),
            500.0,
            json!({"buttons": 1}),
        );
    }
    browser.mouse("mouseReleased", 100.0, 500.0, json!({}));
    browser.until("stackline.view.x === 1800 && stackline.idle()");
    assert!(browser.eval("stackline.stats.delivered").as_u64().unwrap() > before);
    assert_eq!(
        colour(&mut browser, x + 500, y + 9),
        expected(&about, 0, 2300, 909)
    );
    shoot(&mut browser, "panned-1280");

    // What is asked for and leaves the view before it comes is superseded: here at once, in one script.
    browser.eval(
        "for (let i = 0; i < 30; i++) stackline.move(i % 2 ? -1500 : 1500, i % 3 ? -900 : 900)",
    );
    assert!(browser.eval("stackline.stats.superseded").as_u64().unwrap() > 20);
    browser.until("stackline.idle()");
    assert_eq!(browser.eval("stackline.stats.failed"), 0);
    let shown = browser.eval("document.querySelector('footer').textContent");
    let shown = shown.as_str().unwrap();
    assert!(
        shown.contains("superseded")
            && shown.contains("median latency")
            && shown.contains("network"),
        "{shown}"
    );

    // The wheel zooms about the pointer; keys do what buttons do.
    browser.eval(look);
    browser.mouse(
        "mouseWheel",
        640.0,
        400.0,
        json!({"deltaX": 0, "deltaY": 240, "button": "none"}),
    );
    browser.until("Math.abs(stackline.view.scale - 0.5) < 1e-9 && stackline.idle()");
    browser.eval("document.getElementById('all').click()");
    browser.until("stackline.idle() && stackline.view.x === 2000");
    // It was this test that read the canvas back.
    browser
        .complaints
        .retain(|words| !words.contains("willReadFrequently"));
    assert_eq!(browser.complaints, [""; 0]);

    // Nothing scrolls on a narrow screen.
    open(&mut browser, &address, 400, 700);
    let fits = "document.documentElement.scrollWidth <= 400 && document.documentElement.scrollHeight <= 700";
    assert_eq!(browser.eval(fits), true);
    shoot(&mut browser, "whole-400");

    // A server that is gone is told in words, and tiles come once it is there.
    site.servers
        .iter()
        .for_each(stackline_blockserver::server::RunningDiskServer::stop);
    site.wait_for(0);
    browser.eval(
        "Object.assign(stackline.view, { x: 3000, y: 2500, scale: 1 }); stackline.move(0, 0)",
    );
    browser.until(
        "document.getElementById('trouble').textContent.includes('no running server has it')",
    );
    assert!(browser.eval("stackline.stats.failed").as_u64().unwrap() > 0);
}

/// Keeps what the window shows, where somebody asks for it.
fn shoot(browser: &mut Browser, name: &str) {
    let Some(directory) = std::env::var_os("STACKLINE_SHOTS") else {
        return;
    };
    let picture = browser.picture();
    std::fs::write(
        std::path::Path::new(&directory).join(format!("{name}.png")),
        picture,
    )
    .unwrap();
}
