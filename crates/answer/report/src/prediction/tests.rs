//! Predictions as people and programs read them.

use super::*;
use crate::testing::golden;
use stackline_analyze::SampleStatistics;
use stackline_analyze::predicted::{
    IntermediateValue as Step, MeasuredCounterpart, PartPrediction, PredictedQuantity,
};
use stackline_core::plan::World;

fn predicted(
    measurement: usize,
    part: &str,
    outcome: PredictionOutcome,
    measured: Option<MeasuredCounterpart>,
) -> Predicted {
    let prediction = PartPrediction {
        measurement,
        part_index: Some(0),
        text: [
            "10 from a to b bulk_put 64 KiB*1000 over tcp across wan",
            "10 parallel across wan: rr 32*10 | mine 1*1",
        ][measurement]
            .into(),
        part: part.into(),
        application: "bulk_put".into(),
        stack: "tcp".into(),
        world: World::Simulated,
        network: Some("wan".into()),
        outcome,
    };
    Predicted {
        prediction,
        measured,
    }
}

fn step(name: &'static str, value: f64, unit: FigureUnit) -> Step {
    Step {
        name,
        value,
        unit,
        source: "where it is from",
    }
}

fn some() -> Vec<Predicted> {
    let values = vec![
        step("round trip time", 0.020_248, FigureUnit::Seconds),
        step("bandwidth-delay product", 244_330.4, FigureUnit::Bytes),
        step("useful share", 0.965_3, FigureUnit::Share),
        step("loss", 1e-6, FigureUnit::Share),
        step("bottleneck rate", 1e8, FigureUnit::BitPerSecond),
        step("flows on it", 4.0, FigureUnit::Count),
        step("average window under loss", 12.247, FigureUnit::Count),
    ];
    let assumptions = vec![
        "IPv4".to_owned(),
        "transfers at the same time share alike".to_owned(),
    ];
    let (quantity, limit) = (PredictedQuantity::Throughput, "rate");
    let bulk = PredictedFigure {
        quantity,
        value: 94.1e6,
        interval: [90e6, 96e6],
        limit,
        values,
        assumptions,
        moved: None,
    };
    let (quantity, limit, values) = (
        PredictedQuantity::Response,
        "propagation",
        vec![step("propagation", 0.02, FigureUnit::Seconds)],
    );
    let call = PredictedFigure {
        quantity,
        value: 0.020_03,
        interval: [0.019, 0.021],
        limit,
        values,
        assumptions: vec!["IPv4".to_owned()],
        moved: None,
    };
    let statistics = SampleStatistics::from_values(&[93.0e6, 94.0e6, 95.0e6]).unwrap();
    let measured = MeasuredCounterpart {
        ratio: Some(statistics.mean / 94.1e6),
        statistics,
    };
    vec![
        predicted(
            0,
            "bulk_put 64 KiB*1000",
            PredictionOutcome::Predicted(bulk),
            Some(measured),
        ),
        predicted(1, "rr 32*10", PredictionOutcome::Predicted(call), None),
        predicted(
            1,
            "mine 1*1",
            PredictionOutcome::NotCovered("no form covers what it does from Mark on".into()),
            None,
        ),
    ]
}

#[test]
fn predictions_alone_and_beside_a_run() {
    golden("prediction.txt", &prediction(&some(), false));
    golden("prediction-run.txt", &prediction(&some(), true));
    golden(
        "prediction.json",
        &format!("{:#}\n", prediction_json(&some())),
    );
}

#[test]
fn every_field_is_described() {
    let page = include_str!("../../../../../docs/JSON.md");
    let value = prediction_json(&some());
    let one = value["predictions"][0].as_object().unwrap();
    let step = one["values"][0].as_object().unwrap();
    for field in one.keys().chain(step.keys()) {
        assert!(
            page.contains(&format!("`{field}`")),
            "docs/JSON.md does not describe {field}"
        );
    }
}

#[test]
fn absent_is_null() {
    let value = prediction_json(&some());
    let refused = &value["predictions"][2];
    for field in ["predicted", "metric", "unit", "limit", "measured", "ratio"] {
        assert!(refused[field].is_null(), "{field}");
    }
    assert!(refused["not_covered"].is_string() && value["predictions"][0]["not_covered"].is_null());
}
