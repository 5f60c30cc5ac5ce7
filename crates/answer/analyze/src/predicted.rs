//! Pairs predictions with the measurements of a run, and makes predictions from simulated runs. The closed-form formulas are in
//! `stackline_model`.

use crate::statistics::{SampleStatistics, to_f64};
use crate::summary::{RunMetric, Summary};
pub use stackline_model::prediction::{
    FigureUnit, IntermediateValue, PartPrediction, PredictedFigure, PredictedQuantity,
    PredictionOutcome,
};

/// The measurement that belongs to a prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredCounterpart {
    /// Statistics of the predicted quantity, in its unit: throughput over runs, response and connect times over calls.
    pub statistics: SampleStatistics,
    /// Measured mean over predicted figure.
    pub ratio: Option<f64>,
}

/// A prediction with its measurement, if there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicted {
    /// The prediction.
    pub prediction: PartPrediction,
    /// What was measured of the same part.
    pub measured: Option<MeasuredCounterpart>,
}

impl Predicted {
    /// The predicted metric; `None` if no formula covers the case.
    #[must_use]
    pub fn metric(&self) -> Option<RunMetric> {
        self.prediction
            .answer()
            .map(|answer| metric(answer.quantity))
    }
}

const fn metric(quantity: PredictedQuantity) -> RunMetric {
    match quantity {
        PredictedQuantity::Throughput => RunMetric::Throughput,
        PredictedQuantity::Response => RunMetric::Response,
        PredictedQuantity::Connect => RunMetric::Connect,
    }
}

/// A prediction from simulated runs, for a part that no formula covers (`reason` says why): their median, and an interval in which
/// nine of ten further runs lie. `wanted` is the number of runs asked for. `None` if nothing was measured, or too few runs that
/// differ.
#[must_use]
pub fn by_simulation(reason: &str, summary: &Summary, wanted: u64) -> Option<PredictionOutcome> {
    let quantities = [
        (PredictedQuantity::Response, summary.response_s.is_some()),
        (PredictedQuantity::Connect, summary.connect_s.is_some()),
        (
            PredictedQuantity::Throughput,
            summary.throughput_bit_s.is_some(),
        ),
    ];
    let (quantity, _) = quantities.into_iter().find(|(_, is)| *is)?;
    let statistics = SampleStatistics::from_values(summary.values(metric(quantity)))?;
    let spread = statistics
        .sd
        .filter(|_| statistics.mean > 0.0)
        .map_or(0.0, |sd| sd / statistics.mean);
    if statistics.n < wanted.min(2) || (statistics.n < wanted && spread > EQUAL) {
        return None;
    }
    let value = statistics.median;
    let values = vec![
        IntermediateValue {
            name: "simulated runs",
            value: to_f64(statistics.n),
            unit: FigureUnit::Count,
            source: "with different seeds; the figure is their median",
        },
        IntermediateValue {
            name: "standard deviation",
            value: spread,
            unit: FigureUnit::Share,
            source: "of single runs, relative to the mean",
        },
    ];
    Some(PredictionOutcome::Predicted(PredictedFigure {
        quantity,
        value,
        // What a simulation leaves out takes time in reality, so only the slower end of the interval is widened.
        interval: match quantity {
            PredictedQuantity::Throughput => {
                [statistics.min.min(value * (1.0 - LEFT_OUT)), statistics.max]
            }
            PredictedQuantity::Response | PredictedQuantity::Connect => {
                [statistics.min, statistics.max.max(value * (1.0 + LEFT_OUT))]
            }
        },
        limit: SIMULATED,
        values,
        assumptions: vec![format!(
            "simulated, because no closed-form formula covers this case: {reason}"
        )],
        moved: None,
    }))
}

/// The number of simulated runs: the next run lies between the least and the greatest of n with probability `(n - 1) / (n + 1)`,
/// which is 0.9 for 19.
pub const RUNS: u64 = 19;
/// Runs whose standard deviation over the mean is at most this count as equal: then two of them are enough.
const EQUAL: f64 = 0.002;
/// The share of the time that a simulated run may leave out of a real one.
const LEFT_OUT: f64 = 0.03;

/// The `limit` of a figure that comes from simulated runs instead of a formula.
pub const SIMULATED: &str = "simulated";

/// Pairs each prediction with the summary of the same measurement, part and stack, each summary once. Texts differ if the world was
/// given on the command line; so predictions that find no equal text are paired by their place in the plan.
#[must_use]
pub fn pair_with_summaries(
    predictions: Vec<PartPrediction>,
    summaries: &[Summary],
) -> Vec<Predicted> {
    let mut left: Vec<Option<&Summary>> = summaries
        .iter()
        .filter(|s| !s.background)
        .map(Some)
        .collect();
    let same_text = |p: &PartPrediction, s: &Summary| s.text == p.text && s.part == p.part;
    let same_place = |p: &PartPrediction, s: &Summary| {
        (s.measurement, s.part_index, &s.application)
            == (p.measurement, p.part_index, &p.application)
    };
    let mut find = |p: &PartPrediction, same: fn(&PartPrediction, &Summary) -> bool| {
        let found = left
            .iter_mut()
            .find(|slot| slot.is_some_and(|s| s.stack == p.stack && same(p, s)));
        found.and_then(Option::take)
    };
    let first: Vec<Option<&Summary>> = predictions.iter().map(|p| find(p, same_text)).collect();
    let both = predictions.into_iter().zip(first);
    both.map(|(prediction, found)| {
        let found = found.or_else(|| find(&prediction, same_place));
        let measured = found.and_then(|summary| measured(&prediction, summary));
        Predicted {
            prediction,
            measured,
        }
    })
    .collect()
}

fn measured(prediction: &PartPrediction, summary: &Summary) -> Option<MeasuredCounterpart> {
    let answer = prediction.answer()?;
    let statistics = match answer.quantity {
        PredictedQuantity::Throughput => summary.throughput_bit_s,
        PredictedQuantity::Response => summary.response_s,
        PredictedQuantity::Connect => summary.connect_s,
    }?;
    let ratio = (answer.value > 0.0).then(|| statistics.mean / answer.value);
    Some(MeasuredCounterpart { statistics, ratio })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_core::plan::World;

    fn prediction(text: &str, outcome: PredictionOutcome) -> PartPrediction {
        PartPrediction {
            measurement: 0,
            part_index: Some(0),
            text: text.into(),
            part: text.into(),
            application: "rr".into(),
            stack: "tcp".into(),
            world: World::Live,
            network: None,
            outcome,
        }
    }

    fn response(value: f64) -> PredictionOutcome {
        let (quantity, limit) = (PredictedQuantity::Response, "propagation");
        PredictionOutcome::Predicted(PredictedFigure {
            quantity,
            value,
            interval: [value, value],
            limit,
            values: vec![],
            assumptions: vec![],
            moved: None,
        })
    }

    fn summary(text: &str, times: &[f64]) -> Summary {
        let response_s = SampleStatistics::from_values(times);
        Summary {
            text: text.into(),
            part: text.into(),
            stack: "tcp".into(),
            response_s,
            ..Summary::default()
        }
    }

    #[test]
    fn each_prediction_gets_one_summary() {
        let all = vec![
            prediction("x", response(0.02)),
            prediction("y", response(0.02)),
            prediction("x", response(0.04)),
        ];
        let found = pair_with_summaries(all, &[summary("x", &[0.01, 0.03]), summary("x", &[0.02])]);
        let ratios: Vec<Option<f64>> = found
            .iter()
            .map(|p| p.measured.as_ref().and_then(|m| m.ratio))
            .collect();
        assert_eq!(ratios, [Some(1.0), None, Some(0.5)]);
        assert_eq!(found[0].metric(), Some(RunMetric::Response));
    }

    #[test]
    fn another_world_is_found_by_position() {
        let elsewhere = Summary {
            part_index: Some(0),
            application: "rr".into(),
            ..summary("x in emulated", &[0.03])
        };
        let found = |application: &str| {
            let summary = Summary {
                application: application.into(),
                ..elsewhere.clone()
            };
            pair_with_summaries(vec![prediction("x", response(0.02))], &[summary])
                .remove(0)
                .measured
                .is_some()
        };
        assert!(found("rr") && !found("bulk_get"));
    }

    #[test]
    fn without_a_prediction_nothing_is_compared() {
        let found = pair_with_summaries(
            vec![prediction("x", PredictionOutcome::NotCovered("so".into()))],
            &[summary("x", &[1.0])],
        );
        assert_eq!((found[0].metric(), &found[0].measured), (None, &None));
    }
}
