//! The options of netem: delay, losses, duplicates, rate. tc-netem(8); `net/sched/sch_netem.c` of Linux.

use super::super::network_text::{LinkText, NetworkText, shown};
use super::super::shell_words::{
    WordReader, rate_text, rounded, tc_number, tc_percent, tc_rate, tc_time, time_text,
};
use super::{read_as, unknown};
use stackline_core::error::{Error, Result};

/// Packets that netem holds when no limit is written.
const DEFAULT_LIMIT: u64 = 1000;

/// What a line says behind the word `netem`. Shares are in per cent, times in seconds.
#[derive(Debug, Default)]
pub(super) struct NetemOptions {
    delay: f64,
    jitter: f64,
    /// With the previous packet's delay.
    correlation: Option<f64>,
    normal: bool,
    /// Behind the word `loss`.
    loss: Option<String>,
    /// A plain loss.
    loss_share: f64,
    corrupt: f64,
    duplicate: f64,
    /// `reorder 25% correlation 50%`
    reorder: Option<String>,
    gap: Option<u64>,
    rate: Option<f64>,
    limit: Option<u64>,
}

impl NetemOptions {
    pub(super) fn read(reader: &mut WordReader<'_>) -> Result<Self> {
        let mut options = Self::default();
        while let Some(word) = reader.next() {
            options.option(word, reader)?;
        }
        if options.reorder.is_some() && options.delay == 0.0 {
            let error = Error::input("netem refuses `reorder` without a delay");
            return Err(error.hint("add `delay 10ms`: chosen packets skip the delay"));
        }
        Ok(options)
    }

    fn option(&mut self, word: &str, reader: &mut WordReader<'_>) -> Result<()> {
        match word {
            "delay" | "latency" => {
                self.delay = read_as(word, reader.value(word)?, tc_time)?;
                self.jitter = reader.maybe(tc_time).unwrap_or_default();
                if self.jitter > 0.0 {
                    self.correlation = reader.maybe(tc_percent).filter(|share| *share > 0.0);
                }
            }
            "distribution" => match reader.value(word)? {
                "normal" => self.normal = true,
                "uniform" => self.normal = false,
                other => {
                    let message = format!(
                        "netem's distribution `{}` is a table of its own",
                        shown(other)
                    );
                    return Err(Error::input(message).hint("write `jitter pareto(...)` or `jitter empirical(file \"NAME\")` in the language"));
                }
            },
            "loss" | "drop" => self.losses(word, reader)?,
            "corrupt" => self.corrupt = self.without_correlation(word, reader)?,
            "duplicate" => self.duplicate = self.without_correlation(word, reader)?,
            "reorder" => {
                let share = read_as(word, reader.value(word)?, tc_percent)?;
                let correlation = reader.maybe(tc_percent).filter(|share| *share > 0.0);
                let also =
                    correlation.map_or(String::new(), |share| format!(" correlation {share}%"));
                self.reorder = Some(format!("reorder {share}%{also}"));
            }
            "gap" => self.gap = Some(read_as(word, reader.value(word)?, tc_number)?),
            "limit" => self.limit = Some(read_as(word, reader.value(word)?, tc_number)?),
            "rate" => {
                self.rate = Some(read_as(word, reader.value(word)?, tc_rate)?);
                if reader.maybe(tc_number).is_some_and(|overhead| overhead > 0) {
                    let error = Error::input("netem's overhead of each packet has no equivalent");
                    return Err(error.hint("omit it and write `charge frames` (18 bytes) or `charge wire` (38 bytes) behind the link"));
                }
            }
            "seed" => _ = reader.value(word)?,
            "slot" | "ecn" => {
                let message = format!("`{word}` of netem has no equivalent");
                return Err(Error::input(message).hint("omit it; for links with slots write `schedule(...)` as the rate, for marks `queue ... ecn`"));
            }
            _ => return Err(unknown("netem", word)),
        }
        Ok(())
    }

    /// A percentage; a correlation with the previous packet's is refused.
    fn without_correlation(&self, word: &str, reader: &mut WordReader<'_>) -> Result<f64> {
        let share = read_as(word, reader.value(word)?, tc_percent)?;
        match reader.maybe(tc_percent) {
            Some(correlation) if correlation > 0.0 => {
                let message = format!("a correlation of `{word}` has no equivalent");
                Err(Error::input(message).hint(
                    "for losses in bursts write `loss gemodel 1% 25%` or `loss state 1% 25%`",
                ))
            }
            _ => Ok(share),
        }
    }

    /// `loss 1%`, `loss random 1%`, `loss state p13 ...`, `loss gemodel p ...`.
    fn losses(&mut self, word: &str, reader: &mut WordReader<'_>) -> Result<()> {
        let model = match reader.peek() {
            Some(model @ ("state" | "gemodel")) => model,
            Some("random") => {
                reader.next();
                self.loss_share = self.without_correlation(word, reader)?;
                return Ok(());
            }
            _ => {
                self.loss_share = self.without_correlation(word, reader)?;
                return Ok(());
            }
        };
        reader.next();
        let most = if model == "state" { 5 } else { 4 };
        let mut shares = Vec::new();
        while let Some(share) = (shares.len() < most)
            .then(|| reader.maybe(tc_percent))
            .flatten()
        {
            shares.push(format!("{share}%"));
        }
        if shares.is_empty() {
            return Err(Error::input(format!("`loss {model}` needs a percentage")));
        }
        self.loss = Some(format!("loss {model}({})", shares.join(", ")));
        Ok(())
    }

    /// Writes the link's rate, delay and clauses; `limited` if netem's limit holds what waits for its rate.
    pub(super) fn write(
        &self,
        link: &mut LinkText,
        limited: bool,
        network: &mut NetworkText,
    ) -> Result<()> {
        if let Some(rate) = self.rate {
            link.rate = rate_text(rate);
            network.comment(format!("tc's rate is {rate} bit/s: `mbit` is a million bit/s, `mbps` would be a million bytes."));
        }
        let jitter = self.jitter_clause();
        link.delay = time_text(jitter.as_ref().map_or(self.delay, |jitter| jitter.0));
        link.clauses.extend(jitter.map(|jitter| jitter.1));
        if self.jitter > 0.0 {
            self.explain_jitter(network);
        }
        self.write_losses(link, network)?;
        if self.duplicate > 0.0 {
            link.clauses.push(format!("duplicate {}%", self.duplicate));
        }
        if let Some(reorder) = &self.reorder {
            let gap = self.gap.map_or(String::new(), |gap| format!(" gap {gap}"));
            link.clauses.push(format!("{reorder}{gap}"));
        }
        self.write_limit(link, limited, network);
        Ok(())
    }

    /// The part of the delay that all packets have, in seconds, and the clause for the rest. netem draws the whole
    /// delay and takes what is below zero for zero.
    fn jitter_clause(&self) -> Option<(f64, String)> {
        if self.jitter == 0.0 {
            return None;
        }
        // netem's table of the normal distribution ends at four deviations.
        let below = if self.normal {
            4.0 * self.jitter
        } else {
            self.jitter
        };
        let fixed = (self.delay - below).max(0.0);
        let drawn = if self.normal {
            format!(
                "normal({}, {})",
                time_text(self.delay - fixed),
                time_text(self.jitter)
            )
        } else {
            format!(
                "uniform(0, {})",
                time_text(self.delay + self.jitter - fixed)
            )
        };
        let correlation = self
            .correlation
            .map_or(String::new(), |share| format!(" correlation {share}%"));
        let order = if self.rate.is_some() {
            ""
        } else {
            " reordering"
        };
        Some((fixed, format!("jitter {drawn}{correlation}{order}")))
    }

    fn explain_jitter(&self, network: &mut NetworkText) {
        let (delay, jitter) = (time_text(self.delay), time_text(self.jitter));
        network.comment(if self.rate.is_some() {
            format!("netem keeps packets in order where it has a rate, in spite of the jitter of {jitter}.")
        } else {
            format!("netem reorders: `delay {delay} {jitter}` draws a delay for each packet, and packets that are closer together than the jitter overtake each other. Omit `reordering` for a queue that keeps them in order.")
        });
        if self.jitter > self.delay && !self.normal {
            network.comment(format!("netem would take no time for the draws below zero; here all delays up to {} are equally likely.", time_text(self.delay + self.jitter)));
        }
    }

    /// Losses and corrupted packets: one with a wrong bit is dropped by its receiver.
    fn write_losses(&self, link: &mut LinkText, network: &mut NetworkText) -> Result<()> {
        if self.corrupt > 0.0 && self.loss.is_some() {
            let error = Error::input("`corrupt` beside a model of losses has no equivalent");
            return Err(
                error.hint("omit `corrupt`: packets with a wrong bit are lost at their receiver")
            );
        }
        let kept = (1.0 - self.loss_share / 100.0) * (1.0 - self.corrupt / 100.0);
        let share = rounded((1.0 - kept) * 100.0);
        if self.corrupt > 0.0 {
            network.comment("A packet that netem corrupts has one wrong bit: its receiver drops it, so it is a loss here.");
        }
        let clause = self
            .loss
            .clone()
            .or((share > 0.0).then(|| format!("loss {share}%")));
        if clause.is_some() && self.rate.is_some() {
            network.comment("netem drops before its queue, so that a lost packet takes no time of the rate; here a lost packet is transmitted first.");
        }
        link.clauses.extend(clause);
        Ok(())
    }

    /// netem's limit counts the packets that wait for the rate and those that are on their way.
    fn write_limit(&self, link: &mut LinkText, limited: bool, network: &mut NetworkText) {
        let limit = self.limit.unwrap_or(DEFAULT_LIMIT);
        let given = if self.limit.is_some() {
            ""
        } else {
            ", its default"
        };
        if self.rate.is_some() && limited {
            link.clauses.push(format!("queue {limit} packets"));
            network.comment(format!("netem holds {limit} packets{given}; those in flight count too, here only those that wait."));
        } else if self.rate.is_none() && self.delay > 0.0 {
            #[expect(clippy::cast_precision_loss, reason = "a number of packets")]
            let most = limit as f64 * 1500.0 * 8.0 / self.delay;
            network.comment(format!("netem holds {limit} packets{given}: with this delay it passes at most {} of packets of 1500 bytes and drops what exceeds that; here nothing limits what is in flight.", rate_text(rounded(most))));
        }
    }
}
