//! Mean and standard deviation of many transfers under loss.

use super::experiment::BlastExperiment;
use super::gaps::Gaps;
use super::simulated_transfer::{BlastTransferResult, walk};
use stackline_core::error::{Error, Result};
use stackline_core::random::Seed;
use std::collections::BTreeMap;

/// How many transfers are simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Enough {
    /// The least number of transfers.
    pub least: u64,
    /// Transfers go on until the standard error of the standard deviation is at most this share of it, and until each packet of
    /// a transfer has been lost often enough for that.
    pub precision: f64,
    /// The greatest number of transfers, even if `precision` is not reached.
    pub most: u64,
}

impl Default for Enough {
    /// At least 10,000 transfers, a precision of 1 percent, at most 10^10 transfers.
    fn default() -> Self {
        Self {
            least: 10_000,
            precision: 0.01,
            most: 10_000_000_000,
        }
    }
}

/// The times of many transfers, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransferStatistics {
    /// How many there were.
    pub transfers: u64,
    /// How many of them were walked (simulated packet by packet); each other one takes the same time as a walked one with the same loss.
    pub walked: u64,
    /// The time of a transfer without a loss.
    pub error_free_s: f64,
    /// The mean.
    pub mean_s: f64,
    /// The standard error of the mean.
    pub mean_error_s: f64,
    /// The standard deviation.
    pub sd_s: f64,
    /// The standard error of the standard deviation.
    pub sd_error_s: f64,
}

/// Sums of the powers of transfers' times, less the error-free time so that little is lost to rounding.
#[derive(Clone, Copy, Debug, Default)]
struct TransferPowerSums {
    /// The number of transfers.
    n: u64,
    /// The sums of the first to fourth powers.
    powers: [f64; 4],
}

impl TransferPowerSums {
    /// Adds a transfer that took `beyond` seconds more than an error-free one.
    fn add(&mut self, beyond: f64) {
        self.n += 1;
        let mut power = 1.0;
        for sum in &mut self.powers {
            power *= beyond;
            *sum += power;
        }
    }

    /// Mean, variance and fourth central moment.
    fn moments(&self) -> (f64, f64, f64) {
        let n = self.n.max(1) as f64;
        let [one, two, three, four] = self.powers.map(|sum| sum / n);
        let variance = (two - one * one).max(0.0);
        let fourth = four - 4.0 * one * three + 6.0 * one * one * two - 3.0 * one.powi(4);
        (one, variance * n / (n - 1.0).max(1.0), fourth.max(0.0))
    }

    fn statistics(&self, error_free_s: f64, walked: u64) -> TransferStatistics {
        let (beyond, variance, fourth) = self.moments();
        let (n, sd_s) = (self.n.max(1) as f64, variance.sqrt());
        let sd_error_s = if sd_s > 0.0 {
            ((fourth - variance * variance).max(0.0) / n).sqrt() / (2.0 * sd_s)
        } else {
            0.0
        };
        let (mean_s, mean_error_s) = (error_free_s + beyond, sd_s / n.sqrt());
        TransferStatistics {
            transfers: self.n,
            walked,
            error_free_s,
            mean_s,
            mean_error_s,
            sd_s,
            sd_error_s,
        }
    }
}

impl BlastExperiment<'_> {
    /// Many transfers, each packet of which is lost with probability `loss` (0 to below 1), until there are enough.
    ///
    /// # Errors
    /// An [`Error`] when `loss` is no such probability, or a transfer does not end ([`BlastExperiment::error_free`]).
    pub fn under_loss(&self, loss: f64, seed: Seed, enough: Enough) -> Result<TransferStatistics> {
        if !(0.0..1.0).contains(&loss) {
            return Err(
                Error::input(format!("{loss} is not a valid loss probability")).hint(
                    "use a value of at least 0 and less than 1: if everything is lost, no transfer finishes",
                ),
            );
        }
        let error_free = self.error_free()?;
        let mut many = Many {
            experiment: self,
            gaps: Gaps::new(loss, seed.child("loss")),
            error_free,
            single: BTreeMap::new(),
            sums: TransferPowerSums::default(),
            walked: 1,
        };
        // The rarest event on which the deviation depends is the loss of one particular packet. It has to happen often enough
        // before the observed deviation can be trusted.
        let often = 1.0 / (4.0 * enough.precision * enough.precision);
        let often = if loss > 0.0 { (often / loss) as u64 } else { 0 };
        let least = often.max(enough.least).max(1).min(enough.most);
        let error_free_s = error_free.elapsed.seconds();
        loop {
            many.up_to(least.max(many.sums.n + many.sums.n / 4).min(enough.most))?;
            let found = many.sums.statistics(error_free_s, many.walked);
            if found.transfers >= enough.most || found.sd_error_s <= enough.precision * found.sd_s {
                return Ok(found);
            }
        }
    }
}

/// Transfers one after another, which share one sequence of losses.
struct Many<'m> {
    experiment: &'m BlastExperiment<'m>,
    gaps: Gaps,
    error_free: BlastTransferResult,
    /// The results of transfers that lost only one packet, by the place of that packet among the arrivals.
    single: BTreeMap<u64, BlastTransferResult>,
    sums: TransferPowerSums,
    /// Transfers that were simulated packet by packet.
    walked: u64,
}

impl Many<'_> {
    /// Adds transfers until there are `transfers`. Those without a loss are only counted.
    fn up_to(&mut self, transfers: u64) -> Result<()> {
        let each = self.error_free.arrivals;
        while self.sums.n < transfers {
            let whole = (self.gaps.left() / each).min(transfers - self.sums.n);
            self.sums.n += whole;
            self.gaps.pass(whole * each);
            if self.sums.n < transfers {
                let elapsed = self.lossy()?;
                self.sums.add(elapsed);
            }
        }
        Ok(())
    }

    /// The next transfer, which loses at least one packet: its time beyond the error-free time, in seconds.
    fn lossy(&mut self) -> Result<f64> {
        let place = self.gaps.left();
        let known = self.single.get(&place);
        // Do all later packets of the transfer arrive, so that this is its only loss?
        let mut after = self.gaps.clone();
        after.pass(place);
        after.lost();
        let transfer = match known {
            Some(single) if after.left() >= single.arrivals - place - 1 => {
                after.pass(single.arrivals - place - 1);
                self.gaps = after;
                *single
            }
            _ => {
                let (mut losses, gaps) = (0_u32, &mut self.gaps);
                let transfer = walk(self.experiment, u64::MAX, || {
                    let lost = gaps.lost();
                    losses += u32::from(lost);
                    lost
                })?;
                self.walked += 1;
                if losses == 1 {
                    self.single.insert(place, transfer);
                }
                transfer
            }
        };
        Ok(transfer.elapsed.seconds() - self.error_free.elapsed.seconds())
    }
}
