//! Links that let packets overtake one another.

use super::*;
use stackline_core::network::Jitter;

/// Half of the link is used, so much was sent again and so much was lost; the link may let packets overtake one another.
fn resent(again: u64, lost: u64, reorder: bool) -> Given {
    used(0.5).with(|given| {
        let mut links = given.plan.networks[0].links.iter_mut();
        links.find(|link| link.ends.1 == "b").unwrap().jitter = Some(Jitter {
            distribution: Distribution::Uniform(0.0, 0.02),
            reorder,
            correlation: 0.0,
        });
        given.transport(|transport| transport.retransmits = again);
        let reason = "lost on the link".to_owned();
        let drops = (lost > 0).then_some((reason, lost));
        given
            .port()
            .for_each(|port| port.drops = drops.clone().into_iter().collect());
    })
}

#[test]
fn what_was_sent_again_and_not_lost_is_reordering_with_its_number() {
    let found = resent(300, 0, true).found();
    assert_eq!(found[0].kind, "reordering", "{found:?}");
    let sentence = &found[0].sentence;
    assert!(
        sentence.starts_with("packets overtake one another on the link s>b: of 300 retransmitted packets, 300 had not been lost"),
        "{sentence}"
    );
    assert!(
        found.iter().all(|finding| finding.kind != "link_loss"),
        "{found:?}"
    );
    // In order, as many were lost somewhere, or nobody knows why.
    assert!(!resent(300, 0, false).kinds().contains(&"reordering"));
    assert!(!resent(300, 300, true).kinds().contains(&"reordering"));
    assert!(!resent(2, 0, true).kinds().contains(&"reordering"));
}

#[test]
fn of_losses_beside_it_each_has_its_part() {
    let found = resent(300, 30, true).found();
    let share = |kind: &str| {
        let one = found.iter().find(|finding| finding.kind == kind);
        one.map_or(0.0, |finding| finding.share)
    };
    assert!(share("link_loss") > share("reordering"), "{found:?}");
    assert!(share("reordering") >= LEAST, "{found:?}");
    assert!(share("link_loss") + share("reordering") <= 0.5, "{found:?}");
}

#[test]
fn in_order_a_link_has_the_mean_delay_that_it_had() {
    let given = resent(300, 0, true);
    let change = PlanChange::InOrder(("s".into(), "b".into()));
    let changed = change.applied(&given.plan, 0).unwrap();
    let mut links = changed.networks[0].links.iter();
    let link = links.find(|link| link.ends.1 == "b").unwrap();
    assert_eq!(
        (link.delay, &link.jitter),
        (Duration::from_seconds(0.02), &None)
    );
    assert_eq!(change.applied(&changed, 0), None);
}
