//! `keywords`: the catalogue as it is, one of its rows, and none.

use crate::support::Place;
use stackline_events::catalogue::ENTRIES;
use stackline_events::catalogue::block_rows::BLOCK_ENTRIES;

#[test]
fn every_keyword_is_printed_with_its_fields() {
    let place = Place::new();
    let (text, json) = (
        place.stackline(&["keywords"]),
        place.stackline(&["keywords", "--json"]).json(),
    );
    let rows = json["keywords"].as_array().unwrap();
    assert_eq!(rows.len(), ENTRIES.len() + BLOCK_ENTRIES.len());
    for (entry, row) in ENTRIES.iter().chain(BLOCK_ENTRIES).zip(rows) {
        assert_eq!(
            *row,
            serde_json::json!({"keyword": entry.keyword, "data": entry.data, "help": entry.help})
        );
        assert!(
            text.succeeds().out.contains(&entry.data.join("; ")),
            "{}",
            entry.keyword
        );
    }
}

#[test]
fn one_keyword_is_printed_alone_in_either_case() {
    let place = Place::new();
    let output = place.stackline(&["keywords", "clock_step"]);
    assert_eq!(
        output.succeeds().out,
        "CLOCK_STEP       the wall clock of a host was set\n                 by_ns\n"
    );
    place
        .stackline(&["keywords", "CLOCK_STOP"])
        .fails(2, &["unknown keyword CLOCK_STOP"])
        .hints("stackline keywords");
}
