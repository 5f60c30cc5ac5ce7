//! How fast the page opens, moves and zooms: measured when it is asked for.

use super::written;
use crate::testing::traced;
use serde_json::json;
use stackline_testing::browser::Browser;

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
