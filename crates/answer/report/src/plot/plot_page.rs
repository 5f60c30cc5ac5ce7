//! Curves as one HTML file: the picture and the points as a table. It loads nothing and has no script.

use super::plot_rows::{head, rows};
use crate::markup_escape::escaped;
use crate::scene::VectorScene;
use crate::scene::picture_file::PictureFileFormat;
use stackline_analyze::curves::CurveSet;
use std::fmt::Write;

const STYLE: &str = "\
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;background:#fff;color:#1f2933}\
svg{width:100%;height:auto;max-width:46rem}table{border-collapse:collapse;font-size:13px}\
th,td{padding:.15rem .7rem;text-align:right;border-bottom:1px solid #dde3ea}th.name,td.name{text-align:left}\
@media(prefers-color-scheme:dark){body{background:#14181d;color:#e4e7eb}th,td{border-color:#2b333d}}";

/// The page. `notes` stand below the picture.
///
/// # Errors
/// If the picture cannot be encoded: one sentence.
pub fn plot_page(
    title: &str,
    set: &CurveSet,
    picture: &VectorScene,
    notes: &[String],
) -> Result<String, String> {
    page_with_rows(title, picture, notes, &head(set), rows(set))
}

/// A page with a picture, its notes, and rows below their names.
///
/// # Errors
/// If the picture cannot be encoded: one sentence.
pub(super) fn page_with_rows(
    title: &str,
    picture: &VectorScene,
    notes: &[String],
    names: &[String],
    rows: impl Iterator<Item = Vec<String>>,
) -> Result<String, String> {
    let svg = String::from_utf8(picture.encode(PictureFileFormat::Svg)?);
    let svg = svg.map_err(|_| "the picture has bytes that are not text".to_owned())?;
    let title = escaped(title);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n<h1>{title}</h1>\n{svg}"
    );
    for note in notes {
        let _ = writeln!(page, "<p>{}</p>", escaped(note));
    }
    page += &table(names, rows);
    page += "</body>\n</html>\n";
    Ok(page)
}

/// The points, in base units.
fn table(names: &[String], rows: impl Iterator<Item = Vec<String>>) -> String {
    // Names are aligned to the left.
    let class = |at: usize| match names[at].as_str() {
        "line" | "panel" | "series" => " class=\"name\"",
        _ => "",
    };
    let mut text = String::from("<table>\n<thead><tr>");
    for (at, name) in names.iter().enumerate() {
        let _ = write!(text, "<th{}>{}</th>", class(at), escaped(name));
    }
    text += "</tr></thead>\n<tbody>\n";
    for cells in rows {
        text += "<tr>";
        for (at, cell) in cells.iter().enumerate() {
            let _ = write!(text, "<td{}>{}</td>", class(at), escaped(cell));
        }
        text += "</tr>\n";
    }
    let units = "Sizes are in bytes, times in seconds, rates in bit/s, shares in percent.";
    let _ = writeln!(text, "</tbody>\n</table>\n<p>{units}</p>");
    text
}
