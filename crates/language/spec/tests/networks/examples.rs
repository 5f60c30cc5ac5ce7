//! The networks of the examples: right in every world, and as their sources have them.

use crate::common::{self, clean, examples, shown};
use stackline_core::network::NetworkLink;
use stackline_core::plan::World;
use stackline_spec::{Available, CheckContext, Overrides, check};

#[test]
fn every_example_is_right_in_every_world() {
    let stacks = common::stacks_of_examples();
    for (name, text) in examples() {
        for world in [None, Some(World::Simulated), Some(World::Emulated)] {
            let worlds = common::context()
                .worlds
                .iter()
                .map(|world| Available {
                    stacks: &stacks,
                    ..*world
                })
                .collect::<Vec<_>>();
            let context = CheckContext {
                worlds: &worlds,
                ..common::context()
            };
            let checked = check(
                &text,
                &context,
                &Overrides {
                    world,
                    ..Overrides::default()
                },
            );
            if name == "arpanet.stackline" && world == Some(World::Emulated) {
                assert!(
                    shown(&text, &checked.diagnostics).contains("consists of IMPs"),
                    "IMPs are simulated"
                );
                continue;
            }
            let Some(plan) = checked.plan else {
                panic!("{name}: {}", shown(&text, &checked.diagnostics))
            };
            assert!(!plan.measurements.is_empty(), "{name}");
            for measurement in &plan.measurements {
                let usual = if plan.networks.is_empty() {
                    World::Live
                } else {
                    World::Simulated
                };
                assert_eq!(
                    measurement.world,
                    world.unwrap_or(usual),
                    "{name} leaves the world to the command line"
                );
                assert_eq!(
                    measurement.across.is_some(),
                    !plan.networks.is_empty(),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn the_profiles_are_as_their_sources_have_them() {
    // kbit/s to the client and from it, ms there and back.
    const SOURCES: [(&str, f64, f64, f64); 11] = [
        ("dial_up", 49.0, 30.0, 120.0),
        ("edge", 240.0, 200.0, 840.0),
        ("three_g", 1600.0, 768.0, 300.0),
        ("three_g_fast", 1600.0, 768.0, 150.0),
        ("four_g", 9000.0, 9000.0, 170.0),
        ("lte", 12_000.0, 12_000.0, 70.0),
        ("dsl", 1500.0, 384.0, 50.0),
        ("cable", 5000.0, 1000.0, 28.0),
        ("wifi", 30_000.0, 15_000.0, 2.0),
        ("satellite_geo", 19_730.0, 2430.0, 558.0),
        ("leo", 104_710.0, 14_840.0, 45.0),
    ];
    let plan = clean(include_str!("../../../../../examples/profiles.stackline"));
    let found = plan.networks.iter().map(|network| {
        let [down, up] = &network.links[..] else {
            panic!("{}", network.name)
        };
        assert_eq!(
            (down.ends.1.as_str(), up.ends.0.as_str()),
            ("client", "client")
        );
        let rate = |link: &NetworkLink| {
            link.rate
                .mean_bit_s()
                .map_or(0.0, |rate| (rate / 1e3).round())
        };
        (
            network.name.as_str(),
            rate(down),
            rate(up),
            (down.delay.seconds() + up.delay.seconds()) * 1e3,
        )
    });
    assert_eq!(found.collect::<Vec<_>>(), SOURCES);
    let crossed: Vec<&str> = plan
        .measurements
        .iter()
        .filter_map(|m| m.across.as_deref())
        .collect();
    assert_eq!(
        crossed,
        SOURCES.map(|(name, ..)| name),
        "each has its measurement"
    );
}
