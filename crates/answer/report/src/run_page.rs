//! The page of a run that was read: its figures, connections, findings, lifelines.

use crate::connections::connections as connections_table;
use crate::json::{ReportHeader, json as run_json};
use crate::ncc::imp_map;
use crate::notes::{Note, Weight};
use crate::page::{Content, page};
use crate::plot::{PlotWidth, line_picture, series_picture};
use crate::scene::picture_file::PictureFileFormat;
use crate::table::{TableOptions, table};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use stackline_analyze::captured_connections::find_captured_connections;
use stackline_analyze::curves::{CurveQuestion, CurveRun, curves};
use stackline_analyze::findings::{AnalysisInput, Finding, account_requests, find_named_requests};
use stackline_analyze::loaded_run::LoadedRun;
use stackline_analyze::time_series::{SeriesQuestion, time_series};
use stackline_analyze::{imps, scope, summarise};
use stackline_core::network::Network;

/// The page of a run whose events are in memory, as HTML.
///
/// # Errors
/// As those of [`page()`].
pub fn run_page(
    loaded: &LoadedRun,
    findings: &[Finding],
    most_events: usize,
) -> Result<String, String> {
    let run = &loaded.run;
    let title = run.title();
    let drawn = CurveRun {
        name: title.clone(),
        summaries: summarise(&run.plan, &run.records),
    };
    let summaries = &drawn.summaries;
    let note = loaded.note("report");
    let input = loaded.input();
    let mut about = run_json(&ReportHeader::from_run(run), summaries, &[]);
    // For a run without measurements: where it came from, and what was looked for.
    about["origin"] = scope::origin(&input).map(|origin| origin.words()).into();
    about["scope"] = scope::scope(&input).into();
    about["curve"] = curve(&drawn);
    about["series"] = series(&input);
    if run.plan.networks.iter().any(Network::has_imps) {
        about["map"] = imp_map(&run.plan.networks, &imps::reports(&loaded.events)).into();
    }
    let connections = find_captured_connections(&loaded.events);
    let printed = if summaries.is_empty() {
        let table = if connections.is_empty() {
            String::new()
        } else {
            connections_table(&connections)
        };
        note.unwrap_or_default() + &table
    } else {
        let notes = note
            .map(|text| Note::new(Weight::Always, text))
            .into_iter()
            .collect();
        table(
            summaries,
            &TableOptions {
                notes,
                ..TableOptions::default()
            },
        )
    };
    let content = Content {
        title: &title,
        started: &run.started.replace('T', " ").replace('Z', " UTC"),
        run: &about,
        printed: &printed,
        specification: &run.specification,
        environment: &run.environment,
        findings,
        index: &loaded.index,
        events: &loaded.events,
        lifelines: &loaded.lifelines,
        requests: &account_requests(&input),
        named: &find_named_requests(&input),
        most_events,
    };
    page(&content)
}

/// What happened when in the first run of which that is known, as the address of a picture and its words; null if nothing is.
fn series(input: &AnalysisInput<'_>) -> Value {
    let Ok(series) = time_series(input, &SeriesQuestion::default()) else {
        return Value::Null;
    };
    let picture = series_picture(&series, PlotWidth::Double).encode(PictureFileFormat::Svg);
    let Some(picture) = picture.ok().filter(|_| !series.panels.is_empty()) else {
        return Value::Null;
    };
    let kinds: Vec<&str> = series
        .panels
        .iter()
        .map(|panel| panel.kind.word())
        .collect();
    json!({
        "picture": picture_address(&picture),
        "words": format!("{} over time, run {}", kinds.join(", "), series.run + 1),
    })
}

fn picture_address(svg: &[u8]) -> String {
    format!("data:image/svg+xml;base64,{}", STANDARD.encode(svg))
}

/// The default curve of a run with a sweep, as the address of a picture and its words; null without one.
fn curve(run: &CurveRun) -> Value {
    let Ok(set) = curves(std::slice::from_ref(run), &CurveQuestion::default()) else {
        return Value::Null;
    };
    let picture = line_picture(&set, PlotWidth::Double, None).encode(PictureFileFormat::Svg);
    let Ok(picture) = picture else {
        return Value::Null;
    };
    json!({
        "picture": picture_address(&picture),
        "words": format!("{} over {}", set.y.name, set.x.name),
        "notes": set.omissions(),
    })
}
