//! Times in which a link carries nothing by its specification: a rate of 0, a loss of everything, a host that is down.

use stackline_core::network::{LinkRate, LossModel, Network, NetworkLink};
use stackline_core::time::Duration;
use stackline_core::units;

/// One direction of a link that carries nothing at times.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LinkOutage {
    /// Its name, as a port's: `khons>edge`.
    pub(crate) place: String,
    pub(crate) ends: (String, String),
    pub(crate) reason: OutageReason,
    /// From and to, since the beginning of a run's network.
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
    /// Of the link from the first of these nodes to the second, until the end of the longest run.
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

    /// Whether a moment of a run's network lies within it.
    pub(crate) fn holds(&self, since: Duration) -> bool {
        self.between(since, since).next().is_some()
    }

    /// The times of it that have a moment between these two.
    pub(crate) fn between(
        &self,
        from: Duration,
        to: Duration,
    ) -> impl Iterator<Item = (Duration, Duration)> {
        let first = self.times.partition_point(|(_, end)| *end <= from);
        let times = self.times[first..].iter().copied();
        times.take_while(move |(begin, _)| *begin <= to)
    }

    /// How much of the time between two moments it takes, s.
    pub(crate) fn seconds_between(&self, from: Duration, to: Duration) -> f64 {
        let within = |(begin, end): (Duration, Duration)| {
            end.min(to).0.saturating_sub(begin.max(from).0) as f64 / 1e9
        };
        self.between(from, to).map(within).sum()
    }

    /// What happened and when: `carries nothing from 1.00 s to 2.20 s (its rate is 0)`.
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

/// Whether nothing leaves at a rate.
fn is_zero(rate: &f64) -> bool {
    *rate <= 0.0
}

/// Whether nothing comes through by a model of losses.
fn loses_all(loss: &LossModel) -> bool {
    match loss {
        LossModel::Independent(share) => *share >= 1.0,
        LossModel::GilbertElliott {
            loss_good,
            loss_bad,
            ..
        } => *loss_good >= 1.0 && *loss_bad >= 1.0,
        LossModel::Every(n) => *n == 1,
        LossModel::None | LossModel::BitErrors(_) | LossModel::List(_) | LossModel::Schedule(_) => {
            false
        }
    }
}

/// The link with the rate or the loss of the step before in place of one in which it carries nothing.
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

/// The link without what it loses, but for times in which it loses everything.
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
