//! The series of a run as curves over time, and what is not among them.

use stackline_analyze::curves::{Curve, CurveAxis, CurveKind, CurvePoint, CurveSet};
use stackline_analyze::time_series::{SeriesLine, SeriesPanel, TimeSeries};
use stackline_core::units::{Quantity, counted};
use std::collections::BTreeMap;

/// The lines of a panel as curves, each value in the middle of its interval.
pub(super) fn curves_of(panel: &SeriesPanel) -> CurveSet {
    let curve = |line: &SeriesLine| Curve {
        name: line.name.clone(),
        number: None,
        panel: 0,
        points: line
            .points
            .iter()
            .map(|point| CurvePoint {
                x: point.middle_s(),
                y: point.value,
                n: 1,
                ..CurvePoint::default()
            })
            .collect(),
    };
    CurveSet {
        kind: CurveKind::Sweep,
        x: CurveAxis {
            name: "time since the clock started".into(),
            quantity: Quantity::Time,
            unit: "",
        },
        y: CurveAxis {
            name: panel.kind.title().into(),
            quantity: panel.kind.quantity(),
            unit: "",
        },
        by: None,
        panels: vec![String::new()],
        curves: panel.lines.iter().map(curve).collect(),
        left_out: BTreeMap::new(),
    }
}

/// What the reader has to know: what is not shown, and why.
#[must_use]
pub fn series_notes(series: &TimeSeries) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for absent in series.absent.iter().filter(|absent| absent.is_notable) {
        let word = absent.kind.word();
        match reasons.iter_mut().find(|one| one.0 == absent.reason) {
            Some(one) => one.1.push(word),
            None => reasons.push((&absent.reason, vec![word])),
        }
    }
    let reasons = reasons.into_iter();
    let mut notes: Vec<String> = reasons
        .map(|(reason, kinds)| format!("not shown: {} ({reason})", kinds.join(", ")))
        .collect();
    for panel in series.panels.iter().filter(|panel| panel.left_out > 0) {
        let lines = counted(panel.left_out as u64, "line");
        notes.push(format!(
            "{}: {lines} with lower values left out",
            panel.kind.word()
        ));
    }
    notes
}
