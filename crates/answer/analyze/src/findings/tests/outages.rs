//! Links that carry nothing for a time.

use super::*;
use stackline_core::network::{LossModel, NetworkLink, StepSchedule};

fn seconds(at: f64) -> Duration {
    Duration::from_seconds(at)
}

fn narrow(given: &mut Given) -> &mut NetworkLink {
    let mut links = given.plan.networks[0].links.iter_mut();
    links.find(|link| link.ends.1 == "b").unwrap()
}

/// A link of 100 Mbit/s whose rate is 0 between these times.
fn without_rate(given: &mut Given, from: f64, to: f64) {
    narrow(given).rate = LinkRate::Schedule(RateSchedule {
        steps: vec![
            (Duration::ZERO, 1e8),
            (seconds(from), 0.0),
            (seconds(to), 1e8),
        ],
        period: None,
    });
}

/// A link that loses everything between these times.
fn loses_all(given: &mut Given, from: f64, to: f64) {
    narrow(given).loss = LossModel::Schedule(StepSchedule {
        steps: vec![
            (Duration::ZERO, LossModel::None),
            (seconds(from), LossModel::Independent(1.0)),
            (seconds(to), LossModel::None),
        ],
        period: None,
    });
}

#[test]
fn a_time_without_a_rate_is_an_outage_with_its_link_and_moment() {
    let found = used(0.5)
        .with(|given| without_rate(given, 2.0, 6.0))
        .found();
    assert_eq!(found[0].kind, "outage", "{found:?}");
    let sentence = &found[0].sentence;
    assert!(
        sentence.starts_with("the link s>b carries nothing from 2.00 s to 6.00 s (its rate is 0)"),
        "{sentence}"
    );
    assert!((found[0].share - 0.4).abs() < 0.01, "{found:?}");
    // A link that is full whenever it is up is full for the rest, and no time is in both.
    let whole = used(0.6)
        .with(|given| without_rate(given, 2.0, 6.0))
        .found();
    assert!(
        whole.iter().map(|finding| finding.share).sum::<f64>() < 1.01,
        "{whole:?}"
    );
}

#[test]
fn an_outage_beside_losses_takes_only_its_own_time_of_them() {
    let lossy = |given: &mut Given| {
        let drops = [("lost on the link".to_owned(), 50)];
        given
            .port()
            .for_each(|port| port.drops = drops.clone().into());
    };
    assert!(used(0.4).with(lossy).kinds().contains(&"link_loss"));
    let both = used(0.4)
        .with(lossy)
        .with(|given| without_rate(given, 2.0, 5.0));
    let found = both.found();
    let share = |kind: &str| {
        let one = found.iter().find(|finding| finding.kind == kind);
        one.map_or(0.0, |finding| finding.share)
    };
    assert!((share("outage") - 0.3).abs() < 0.01, "{found:?}");
    assert!(share("link_loss") <= 0.31, "{found:?}");
}

#[test]
fn a_kernel_counts_an_outage_for_a_full_window_and_the_finding_does_not() {
    let both = bulk(1, 10.0, 30_000_000, None).with(|given| {
        given.transport(|t| t.receive_window_limited_s = Some(9.8));
        without_rate(given, 2.0, 5.0);
    });
    let found = both.found();
    let window = found
        .iter()
        .find(|finding| finding.kind == "window_below_bdp")
        .unwrap();
    assert!((window.share - 0.7).abs() < 0.02, "{found:?}");
    assert!(
        window.sentence.contains("waits for it 70 % of the time"),
        "{found:?}"
    );
}

#[test]
fn what_is_lost_in_an_outage_is_no_loss_of_the_link() {
    let lost = |given: &mut Given| {
        let drops = [("lost on the link".to_owned(), 50)];
        given
            .port()
            .for_each(|port| port.drops = drops.clone().into());
        loses_all(given, 1.0, 6.0);
    };
    let kinds = used(0.5).with(lost).kinds();
    assert_eq!(kinds, ["outage"]);
}

#[test]
fn an_outage_after_the_run_or_before_its_end_by_little_is_not_named() {
    let late = used(0.95).with(|given| without_rate(given, 30.0, 40.0));
    assert_eq!(late.kinds(), ["network_limited"]);
    let short = used(0.8).with(|given| without_rate(given, 9.8, 11.0));
    assert_eq!(short.kinds(), NOTHING);
}

#[test]
fn a_flap_that_comes_again_counts_each_time() {
    let flaps = used(0.5).with(|given| {
        narrow(given).rate = LinkRate::Schedule(RateSchedule {
            steps: vec![(Duration::ZERO, 1e8), (seconds(1.7), 0.0)],
            period: Some(seconds(2.0)),
        });
    });
    let found = flaps.found();
    let sentence = &found[0].sentence;
    assert!(
        sentence.contains("carries nothing in 5 periods, the first from 1.70 s to 2.00 s"),
        "{found:?}"
    );
    assert!((found[0].share - 0.15).abs() < 0.01, "{found:?}");
}

#[test]
fn without_its_outage_a_link_has_the_rate_before_it() {
    let given = used(0.5).with(|given| without_rate(given, 0.0, 6.0));
    let change = PlanChange::NoOutage(("s".into(), "b".into()));
    let changed = change.applied(&given.plan, 0).unwrap();
    let link = changed.networks[0]
        .links
        .iter()
        .find(|link| link.ends.1 == "b");
    let LinkRate::Schedule(rates) = &link.unwrap().rate else {
        panic!("{link:?}");
    };
    assert!(rates.steps.iter().all(|(_, rate)| *rate > 0.0), "{rates:?}");
    assert_eq!(change.applied(&changed, 0), None);
}

/// A link that loses now and then, and everything for a time, has two causes, and each change takes one of them away.
#[test]
fn losses_and_an_outage_of_one_link_are_taken_away_one_by_one() {
    let given = used(0.5).with(|given| {
        loses_all(given, 1.0, 6.0);
        if let LossModel::Schedule(losses) = &mut narrow(given).loss {
            losses.steps[0].1 = LossModel::Independent(0.01);
            losses.steps[2].1 = LossModel::Independent(0.02);
        }
    });
    let left = |change: PlanChange| {
        let mut changed = change.applied(&given.plan, 0).unwrap();
        let mut links = changed.networks[0].links.drain(..);
        match links.find(|link| link.ends.1 == "b").unwrap().loss {
            LossModel::Schedule(losses) => losses.steps.into_iter().map(|(_, loss)| loss),
            other => panic!("{other:?}"),
        }
        .collect::<Vec<_>>()
    };
    let ends = || ("s".to_owned(), "b".to_owned());
    let (some, more) = (LossModel::Independent(0.01), LossModel::Independent(0.02));
    let all = LossModel::Independent(1.0);
    assert_eq!(
        left(PlanChange::NoOutage(ends())),
        [some.clone(), some, more]
    );
    let none = LossModel::None;
    assert_eq!(left(PlanChange::NoLoss(ends())), [none.clone(), all, none]);
}
