//! `stackline keywords`: prints the keywords of stackline's own events with their fields, from the catalogue.

use crate::exit::{Error, Exit, Result};
use crate::flags;
use crate::output;
use serde_json::{Value, json};
use stackline_events::catalogue::CatalogueEntry;
use stackline_events::catalogue::block_rows::all_entries;

/// Lists the keywords, or prints one.
pub(crate) fn keywords(flags: &flags::KeywordsFlags) -> Result {
    let chosen: Vec<&CatalogueEntry> = match &flags.keyword {
        None => all_entries().collect(),
        Some(name) => vec![find(name)?],
    };
    if flags.json {
        let all: Vec<Value> = chosen.iter().map(|entry| value(entry)).collect();
        output::json(&json!({ "keywords": all }), false)?;
    } else {
        output::print(&chosen.iter().map(|entry| line(entry)).collect::<String>())?;
    }
    Ok(Exit::Done)
}

fn find(name: &str) -> Result<&'static CatalogueEntry> {
    all_entries().find(|entry| entry.keyword.eq_ignore_ascii_case(name)).ok_or_else(|| {
        Error::input(format!("unknown keyword {name}"))
            .hint("`stackline keywords` lists them all; events with other keywords are also kept and shown")
    })
}

fn value(entry: &CatalogueEntry) -> Value {
    json!({ "keyword": entry.keyword, "data": entry.data, "help": entry.help })
}

/// The text for a keyword: its name and description, and its fields on the next line.
fn line(entry: &CatalogueEntry) -> String {
    format!(
        "{:<16} {}\n{:<16} {}\n",
        entry.keyword,
        entry.help,
        "",
        entry.data.join("; ")
    )
}
