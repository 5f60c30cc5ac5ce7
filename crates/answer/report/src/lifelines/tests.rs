//! Lifelines of small logs, as they are printed.

use super::{Shown, lifelines, lifelines_json};
use crate::testing::golden;
use stackline_analyze::assemble::{LifelineOptions, lifelines as assembled};
use stackline_analyze::lifeline_statistics::{LifelineQuery, LifelineStatistics};
use stackline_events::text::EventTextReader;
use stackline_events::{EventTable, EventValue};
use std::collections::HashMap;

fn shown(table: &EventTable, grouped: bool) -> (String, serde_json::Value) {
    let made = assembled(table, None, &LifelineOptions::default());
    let statistics = LifelineStatistics::from_lifelines(
        &made,
        None,
        LifelineQuery {
            grouped,
            bytes: Some(49_152),
            slowest: 1,
        },
    );
    let notes = ["2 events of s1 were lost.".to_owned()];
    let shown = Shown {
        lifelines: &made,
        statistics: &statistics,
        requests: None,
        names: &HashMap::new(),
        by: "server",
        notes: &notes,
    };
    (lifelines(&shown), lifelines_json(&shown, false))
}

/// Blocks of two servers as in Figures 4 and 6 of the paper: every 200 ms a list; the second server's clock is behind.
fn magic() -> EventTable {
    let mut table = EventTable::default();
    let mut push = |keyword: &str, host: &str, ms: u64, block: i64| {
        let behind = if host == "s2" { 7_500_000 } else { 0 };
        table.push(
            keyword,
            host,
            1_000_000_000 + ms * 1_000_000 - behind,
            &[EventValue::Number(block)],
        );
    };
    for list in 0..6_u64 {
        for (number, server) in [(0, "s1"), (1, "s2"), (2, "s1"), (3, "s2")] {
            let (at, block) = (list * 200, (list * 4 + number) as i64);
            let late = number / 2 * 23;
            push("DPSS_APP_SEND", "app", at, block);
            push("DPSS_SERV_IN", server, at + 8, block);
            let cached = block == 10;
            if !cached {
                push("DPSS_START_READ", server, at + 13, block);
            }
            // One is still to be read, one to be sent, when the next list comes; one is lost on its way.
            if block == 6 {
                continue;
            }
            if !cached {
                push("DPSS_END_READ", server, at + 35 + late / 2, block);
            }
            if block == 12 {
                continue;
            }
            let written = if cached { at + 13 } else { at + 43 + late };
            push("DPSS_START_WRITE", server, written, block);
            if block != 13 {
                push("DPSS_APP_RECEIVE", "app", written + 23, block);
            }
        }
    }
    table
}

#[test]
fn the_paper_s_situation_is_printed() {
    golden("lifelines-magic.txt", &shown(&magic(), true).0);
}

#[test]
fn as_json_it_says_the_same() {
    let json = shown(&magic(), false).1;
    golden(
        "lifelines-magic.json",
        &(serde_json::to_string_pretty(&json).unwrap() + "\n"),
    );
}

#[test]
fn a_retransmission_stands_on_the_line_it_delayed() {
    let log = "\
APP_SEND; khons; 0; 0; 0; 0; 16; 1448
SOCK_SEND; khons; 0; 2000; 0; 0; 16; 1448
SOCK_SENT; khons; 0; 9000; 0; 0; 16; 1448
NET_ENQUEUE; khons; 0; 10000; ; 0; 16; 1448; khons>x; khons>udjat; 0; 1; 1; 1500; 1500
NET_DROP; x; 0; 130000; ; 0; 16; 1448; x>udjat; khons>udjat; 0; 1; 1; 1500; queue full
TCP_RETRANSMIT; khons; 0; 200010000; ; 0; 16; 1448; rto; 1
SOCK_RECEIVED; udjat; 0; 200260000; 0; 0; 16; 1448
APP_RECEIVED; udjat; 0; 200262000; 0; 0; 16; 1448
";
    let mut table = EventTable::default();
    EventTextReader::new(log.as_bytes(), "log").for_each(|event| table.push_event(&event.unwrap()));
    golden("lifelines-retransmission.txt", &shown(&table, false).0);
}

#[test]
fn a_run_without_units_says_so() {
    assert_eq!(
        shown(&EventTable::default(), false).0,
        "no event refers to a data unit\n"
    );
}

#[test]
fn gnuplot_gets_one_block_of_rows_a_line() {
    let made = assembled(&magic(), None, &LifelineOptions::default());
    let statistics = LifelineStatistics::from_lifelines(&made, None, LifelineQuery::default());
    let files = super::lifelines_gnuplot(&Shown {
        lifelines: &made,
        statistics: &statistics,
        requests: None,
        names: &HashMap::new(),
        by: "server",
        notes: &[],
    });
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "lifelines.gp",
            "lines-0.dat",
            "flushed-0.dat",
            "lines-1.dat",
            "flushed-1.dat",
            "marks.dat"
        ]
    );
    let blocks = |text: &str| {
        text.split("\n\n")
            .filter(|block| block.lines().any(|line| !line.starts_with('#')))
            .count()
    };
    assert_eq!(
        files[1..5]
            .iter()
            .map(|(_, text)| blocks(text))
            .collect::<Vec<_>>(),
        [10, 2, 12, 0]
    );
    golden("lifelines-magic.gp", &files[0].1);
}

/// Of twelve senders nobody reads each one's rows: they are one row a stage.
#[test]
fn of_many_hosts_a_stage_is_one_row() {
    let mut table = EventTable::default();
    for unit in 0..24_i64 {
        let (host, at) = (format!("c{}", unit % 12), unit as u64 * 1_000_000);
        let port = format!("{host}>s");
        let bytes = [
            EventValue::Number(unit),
            EventValue::Number(unit % 12 * 2),
            EventValue::Number(unit / 12 * 100),
            EventValue::Number(100),
        ];
        table.push("APP_SEND", &host, at, &bytes);
        for (keyword, later) in [("NET_ENQUEUE", 10_000), ("NET_DEQUEUE", 30_000)] {
            table.push(
                keyword,
                &host,
                at + later,
                &[&bytes[..], &[EventValue::Text(&port)]].concat(),
            );
        }
        table.push("APP_RECEIVED", "srv", at + 100_000, &bytes);
    }
    let (text, json) = shown(&table, false);
    let from = text.find("where the time went").unwrap();
    let rows: Vec<&str> = text[from..]
        .lines()
        .take_while(|line| !line.is_empty())
        .skip(1)
        .collect();
    let names: Vec<&str> = rows
        .iter()
        .map(|row| row.split("  ").find(|cell| !cell.is_empty()).unwrap())
        .collect();
    let expected = [
        "APP_SEND 12 hosts",
        "protocol hold 12 hosts",
        "queue 12 links",
        "link 12 links",
        "first to last, units that arrived",
    ];
    assert_eq!(names, expected);
    assert_eq!(json["by_stage"]["segments"][1]["ns"]["n"], 24);
    assert_eq!(json["segments"].as_array().unwrap().len(), 36);
}
