//! A run as one self-contained HTML page, `report.html`.
//!
//! The files in `crates/answer/report/page` are its markup, style and ES modules; [`module_bundle`] makes one script of these. The
//! run's data are in the page as one block of base64 ([`markup_safe_data`]), so that no name in them can become markup; the page's
//! script inserts them as text. A Content-Security-Policy allows only this script and this style, by their digests: no network, no
//! other script.

mod content;
mod markup_safe_data;
mod module_bundle;
mod packed_columns;
mod request_trees;
mod requests_by_name;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use serde_json::Value;
use stackline_analyze::findings::{AccountedRequest, Finding, NamedRequests};
use stackline_analyze::lifelines::Lifelines;
pub use stackline_analyze::loaded_run::origin_ns;
use stackline_core::trace_index::Index;
use stackline_events::EventTable;

/// What a page shows.
#[derive(Clone, Copy, Debug)]
pub struct Content<'c> {
    /// The run's name.
    pub title: &'c str,
    /// When it started, as text; empty if not known.
    pub started: &'c str,
    /// The run and its summaries as JSON, from [`crate::json()`](fn@crate::json).
    pub run: &'c Value,
    /// Its summaries as text, from [`crate::table`](fn@crate::table).
    pub printed: &'c str,
    /// The specification as it was given.
    pub specification: &'c str,
    /// The environment: properties of the machines.
    pub environment: &'c Value,
    /// What limits the run, the most important first.
    pub findings: &'c [Finding],
    /// Clocks, flows and runs of the events.
    pub index: &'c Index,
    /// The events, each host's in the time of its own clock.
    pub events: &'c EventTable,
    /// Their lifelines.
    pub lifelines: &'c Lifelines,
    /// The causes of the time of requests of other programs.
    pub requests: &'c [AccountedRequest],
    /// Requests of other programs by name.
    pub named: &'c [NamedRequests],
    /// The most events on lifelines that the page may hold, and as many others.
    pub most_events: usize,
}

/// Events that are read at once for a page, and that it holds on lifelines, unless a flag sets another number; some ten bytes each.
pub use stackline_analyze::loaded_run::MOST_EVENTS;

const MARKUP: &str = include_str!("../page/page.html");
const STYLE: &str = include_str!("../page/page.css");

macro_rules! modules {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("../page/", $name)))),*] };
}

/// The modules, each after those that it imports.
const MODULES: &[module_bundle::Module] = modules![
    "pack.js",
    "format.js",
    "dom.js",
    "model.js",
    "choice.js",
    "segments.js",
    "colours.js",
    "view.js",
    "visible.js",
    "raster.js",
    "lanes.js",
    "layout.js",
    "furniture.js",
    "picture.js",
    "controls.js",
    "filters.js",
    "breakdown.js",
    "waterfall.js",
    "panels.js",
    "main.js",
];

/// The page as HTML.
///
/// # Errors
/// If a module of the page has unsupported syntax: a mistake in this crate, which its tests find.
pub fn page(content: &Content<'_>) -> Result<String, String> {
    let script = module_bundle::bundle(MODULES)?;
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'",
        source(&script),
        source(STYLE)
    );
    let mut page = String::new();
    // The markup is split at its placeholders; inserted text is never searched for further ones.
    let mut rest = MARKUP;
    for (place, text) in [
        ("<!--policy-->", policy.as_str()),
        ("<!--style-->", STYLE),
        ("<!--data-->", &content::pack_content(content)),
        ("<!--script-->", &script),
    ] {
        let (before, after) = rest
            .split_once(place)
            .ok_or_else(|| format!("page.html has no {place}"))?;
        page.push_str(before);
        page.push_str(text);
        rest = after;
    }
    page.push_str(rest);
    Ok(page)
}

/// The time of an event in reference time, ns.
fn reference_ns(index: &Index, events: &EventTable, row: usize) -> u64 {
    let at_ns = events.at_ns[row];
    index
        .hosts
        .get(events.host(row))
        .map_or(at_ns, |host| host.clock.reference_ns(at_ns))
}

/// The digest by which a Content-Security-Policy allows an inline script or style.
fn source(text: &str) -> String {
    format!(
        "sha256-{}",
        STANDARD.encode(digest(&SHA256, text.as_bytes()))
    )
}

#[cfg(test)]
mod browser_tests;
#[cfg(test)]
mod tests;
