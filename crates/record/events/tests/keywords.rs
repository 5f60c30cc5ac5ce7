//! The table of keywords in docs/EVENTS.md is the catalogue's; `UPDATE_GOLDEN=1` writes it anew.

use stackline_events::catalogue::{ENTRIES, Layer};
use std::fmt::Write;
use std::path::Path;

const BEGIN: &str = "<!-- keywords: from the catalogue -->\n";
const END: &str = "<!-- end of keywords -->\n";

fn layer(layer: Layer) -> &'static str {
    match layer {
        Layer::Application => "application",
        Layer::Socket => "socket",
        Layer::Protocol => "protocol",
        Layer::Network => "network",
        Layer::Display => "display",
        Layer::Monitor => "monitor",
        Layer::Tool => "stackline",
    }
}

fn table() -> String {
    let mut table =
        String::from("| keyword | from | data | what happened |\n| --- | --- | --- | --- |\n");
    for entry in ENTRIES {
        let (keyword, from, help) = (
            entry.keyword,
            layer(entry.layer),
            entry.help.replace('|', "\\|"),
        );
        let _ = writeln!(
            table,
            "| `{keyword}` | {from} | {} | {help} |",
            entry.data.join("; ")
        );
    }
    table
}

#[test]
fn the_documented_keywords_are_the_catalogue() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/EVENTS.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("a marked table");
    let (documented, after) = rest.split_once(END).expect("its end");
    if documented != table() && std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{}{END}{after}", table())).unwrap();
        return;
    }
    assert!(
        documented == table(),
        "docs/EVENTS.md, Keywords: `UPDATE_GOLDEN=1 cargo test -p stackline-events` writes it anew"
    );
}
