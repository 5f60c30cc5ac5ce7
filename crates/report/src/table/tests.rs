//! The table as a person sees it.

use super::*;
use crate::testing::{a_plan, connected, golden, records, summaries};
use stackline_analyze::summarise;

#[test]
fn a_run_at_a_glance() {
    let notes = vec!["a sleeping thread on this machine wakes up 52.0 us after its data has come".to_owned()];
    let text = table(&summaries(), &TableOptions { colour: false, notes });
    golden("table.txt", &text);
    assert!(text.lines().all(|line| grid::width(line) <= WIDTH + 8), "{text}");
    assert!(!text.contains('\x1b'));
}

#[test]
fn colour_only_where_asked() {
    let text = table(&summaries(), &TableOptions { colour: true, notes: vec![] });
    assert!(text.starts_with("\x1b[1m") && text.contains("\x1b[33m"));
}

#[test]
fn nothing_measured() {
    assert_eq!(table(&[], &TableOptions::default()), "nothing was measured\n");
    golden("table-no-runs.txt", &table(&summarise(&a_plan(), &[]), &TableOptions::default()));
}

#[test]
fn one_run_has_no_interval() {
    let one = summarise(&a_plan(), &records()[..1]);
    golden("table-one-run.txt", &table(&one[..1], &TableOptions::default()));
}

#[test]
fn connections_have_their_cost() {
    let (plan, records) = connected();
    let text = table(&summarise(&plan, &records), &TableOptions::default());
    golden("table-connections.txt", &text);
    assert!(text.contains("us/conn"));
}
