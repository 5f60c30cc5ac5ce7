//! Outages: times in which a link carries nothing according to its specification, because its rate is 0, it loses everything, or the host
//! at one of its ends is down.

use stackline_core::network::{LinkRate, LossModel, Network, NetworkLink};
use stackline_core::time::Duration;
use stackline_core::units;

/// One direction of a link that carries nothing at times.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LinkOutage {
    /// The name of the port, from node to node: `khons>edge`.
    pub(crate) place: String,
    /// The node where this direction begins, and the one where it ends.
    pub(crate) ends: (String, String),
    /// Why it carries nothing.
    pub(crate) reason: OutageReason,
    /// Begin and end of each outage, as time since a run's network began.
    pub(crate) times: Vec<(Duration, Duration)>,
}

/// Why a link carries nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OutageReason {
    /// Its rate is 0.
    NoRate,
    /// It loses everything.
    LosesAll,
    /// The host at one of its ends is down.
    HostDown(String),
}

impl LinkOutage {
    /// The outages of the link from the first of these nodes to the second, until `end`, the end of the longest run; `None` if it has none.
    pub(crate) fn find(network: &Network, ends: &(String, String), end: Duration) -> Option<Self> {
        let same = |link: &&NetworkLink| {
            let back = (&link.ends.1, &link.ends.0) == (&ends.0, &ends.1);
            link.ends == *ends || (back && !link.one_way)
        };
        let link = network.links.iter().find(same)?;
        let of_link = || {
            let (reason, times) = match (&link.rate, &link.loss) {
                (LinkRate::Schedule(rates), _)
                    if rates.steps.iter().any(|(_, rate)| is_zero(rate)) =>
                {
                    (OutageReason::NoRate, rates.times_where(end, is_zero))
                }
                (_, LossModel::Schedule(losses)) => {
                    (OutageReason::LosesAll, losses.times_where(end, loses_all))
                }
                _ => return None,
            };
            Some((reason, times))
        };
        let of_host = || {
            let mut hosts = network.hosts.iter();
            let host = hosts
                .find(|host| [&ends.0, &ends.1].contains(&&host.name) && host.down.is_some())?;
            let down = host.down?;
            let to = down.to.unwrap_or(end).min(end);
            let reason = OutageReason::HostDown(host.name.clone());
            Some((reason, vec![(down.from, to)]))
        };
        let (reason, mut times) = of_link().or_else(of_host)?;
        times.retain(|(from, to)| from < to);
        (!times.is_empty()).then(|| Self {
            place: format!("{}>{}", ends.0, ends.1),
            ends: ends.clone(),
            reason,
            times,
        })
    }

    /// Whether a moment, as time since the run's network began, lies within an outage.
    pub(crate) fn holds(&self, since: Duration) -> bool {
        self.between(since, since).next().is_some()
    }

    /// The outages that overlap with the time between these two moments.
    pub(crate) fn between(
        &self,
        from: Duration,
        to: Duration,
    ) -> impl Iterator<Item = (Duration, Duration)> {
        let first = self.times.partition_point(|(_, end)| *end <= from);
        let times = self.times[first..].iter().copied();
        times.take_while(move |(begin, _)| *begin <= to)
    }

    /// How much of the time between two moments lies within outages, s.
    pub(crate) fn seconds_between(&self, from: Duration, to: Duration) -> f64 {
        let within = |(begin, end): (Duration, Duration)| {
            end.min(to).0.saturating_sub(begin.max(from).0) as f64 / 1e9
        };
        self.between(from, to).map(within).sum()
    }

    /// The outages until a moment in words: `carries nothing from 1.00 s to 2.20 s (its rate is 0)`.
    pub(crate) fn words(&self, until: Duration) -> String {
        let why = match &self.reason {
            OutageReason::NoRate => "its rate is 0".to_owned(),
            OutageReason::LosesAll => "it loses everything".to_owned(),
            OutageReason::HostDown(host) => format!("{host} is down"),
        };
        let times: Vec<_> = self.between(Duration(0), until).collect();
        let when = |(from, to): &(Duration, Duration)| {
            let word = |time: &Duration| units::format_time(time.seconds());
            format!("from {} to {}", word(from), word(to))
        };
        match times.as_slice() {
            [] => format!("carries no traffic at times ({why})"),
            [one] => format!("carries nothing {} ({why})", when(one)),
            [first, ..] => format!(
                "carries nothing in {} periods, the first {} ({why})",
                times.len(),
                when(first)
            ),
        }
    }
}

/// Whether a rate is 0.
fn is_zero(rate: &f64) -> bool {
    *rate <= 0.0
}

/// Whether a loss model loses every packet.
fn loses_all(loss: &LossModel) -> bool {
    match loss {
        LossModel::Independent(share) => *share >= 1.0,
        LossModel::GilbertElliott {
            loss_good,
            loss_bad,
            ..
        } => *loss_good >= 1.0 && *loss_bad >= 1.0,
        LossModel::Every(n) => *n == 1,
        LossModel::FourStates(chain) => chain.mean_loss() >= 1.0,
        LossModel::None | LossModel::BitErrors(_) | LossModel::List(_) | LossModel::Schedule(_) => {
            false
        }
    }
}

/// Removes outages from a link's schedules: a step in which it carries nothing gets the rate or the loss of the step before it (the first
/// usable one for steps at the beginning).
pub(crate) fn without_outages(link: &mut NetworkLink) {
    if let LinkRate::Schedule(rates) = &mut link.rate {
        let usual = rates
            .steps
            .iter()
            .map(|(_, rate)| *rate)
            .find(|rate| !is_zero(rate));
        let mut before = usual.unwrap_or(0.0);
        for (_, rate) in &mut rates.steps {
            if is_zero(rate) {
                *rate = before;
            }
            before = *rate;
        }
    }
    if let LossModel::Schedule(losses) = &mut link.loss {
        let mut losing = losses.steps.iter().map(|(_, loss)| loss);
        let usual = losing.find(|loss| !loses_all(loss)).cloned();
        let mut before = usual.unwrap_or_default();
        for (_, loss) in &mut losses.steps {
            if loses_all(loss) {
                *loss = before.clone();
            }
            before = loss.clone();
        }
    }
}

/// Removes the losses of a link, except the steps of a schedule in which it loses everything: those are outages.
pub(crate) fn without_losses(link: &mut NetworkLink) {
    match &mut link.loss {
        LossModel::Schedule(losses) => {
            let steps = losses.steps.iter_mut().map(|(_, loss)| loss);
            steps
                .filter(|loss| !loses_all(loss))
                .for_each(|loss| *loss = LossModel::None);
        }
        loss => *loss = LossModel::None,
    }
}
