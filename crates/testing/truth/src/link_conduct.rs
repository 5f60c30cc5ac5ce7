//! What the link in the middle does to packets beside carrying them: its queue's discipline, jitter, rates that change, outages.
//! Draws only.

use crate::dice::ScenarioDice;
use serde::Serialize;

/// What a link does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LinkConduct {
    /// The word for the discipline of its queue; none is drop-tail.
    pub discipline: &'static str,
    /// What is added to the delay of each packet.
    pub jitter: Option<LinkJitter>,
    /// Another rate, in turn with its own.
    pub rate_steps: Option<LinkRateSteps>,
    /// A time in which it carries nothing.
    pub outage: Option<PlantedOutage>,
}

/// An exponential addition to the delay of each packet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LinkJitter {
    /// Its mean, s.
    pub mean_s: f64,
    /// Whether packets overtake one another.
    pub reorders: bool,
}

/// Two rates in turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LinkRateSteps {
    /// The other over its own.
    pub factor: f64,
    /// How long each holds, s.
    pub step_s: f64,
}

/// A time without service.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PlantedOutage {
    /// When it begins, s.
    pub at_s: f64,
    /// How long it lasts, s.
    pub lasts_s: f64,
    /// Whether all packets are lost meanwhile, instead of waiting before the link.
    pub loses: bool,
}

impl LinkConduct {
    /// What healthy paths have.
    pub(crate) fn drawn(dice: &mut ScenarioDice, trip_s: f64) -> Self {
        let mut conduct = Self::default();
        if dice.chance(0.2) {
            conduct.discipline = dice
                .one(&["codel", "fq_codel", "pie", "red"])
                .unwrap_or_default();
        }
        if dice.chance(0.08) {
            let mean_s = trip_s * dice.log(0.02, 0.3);
            conduct.jitter = Some(LinkJitter {
                mean_s,
                reorders: false,
            });
        }
        if dice.chance(0.08) {
            conduct.rate_steps = Some(LinkRateSteps {
                factor: dice.log(0.3, 1.0),
                step_s: trip_s.max(0.01) * dice.log(2.0, 30.0),
            });
        }
        conduct
    }

    pub(crate) fn plant_outage(&mut self, dice: &mut ScenarioDice, run_s: f64) {
        self.outage = Some(PlantedOutage {
            at_s: run_s * dice.between(0.1, 0.7),
            lasts_s: (run_s * dice.log(0.1, 1.5)).clamp(0.02, 5.0),
            loses: dice.chance(0.5),
        });
    }

    pub(crate) fn plant_reordering(&mut self, dice: &mut ScenarioDice, trip_s: f64) {
        self.jitter = Some(LinkJitter {
            mean_s: trip_s * dice.log(0.03, 0.6),
            reorders: true,
        });
    }
}
