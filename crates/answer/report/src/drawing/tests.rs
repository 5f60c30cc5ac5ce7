//! Pictures of networks: against a golden file, and that nothing in them overlaps.

use super::*;
use crate::testing::golden;
use crate::testing::networks::{crowd, dumbbell, everything, link, network};

#[test]
fn a_dumbbell_is_drawn() {
    golden("net-dumbbell.svg", &drawing(&dumbbell()).unwrap());
}

fn named(hosts: &[&str], switches: &[&str], links: &[(&str, &str)]) -> Network {
    let links = links.iter().map(|(a, b)| link(a, b, 1e9, 1e-3)).collect();
    network("x", hosts, switches, links)
}

#[test]
fn nothing_overlaps() {
    let leaves: Vec<String> = (0..10).map(|at| format!("h{at}")).collect();
    let leaves: Vec<&str> = leaves.iter().map(String::as_str).collect();
    let star: Vec<(&str, &str)> = leaves.iter().map(|leaf| (*leaf, "s0")).collect();
    let switches = ["s0", "s1", "s2", "s3", "s4"];
    let chain: Vec<(&str, &str)> = switches.windows(2).map(|pair| (pair[0], pair[1])).collect();
    let mut chained = chain.clone();
    chained.extend([("a", "s0"), ("b", "s2"), ("c", "s4")]);
    let ring = [&chained[..], &[("s4", "s0")]].concat();
    let three = ["a", "b", "c"];
    let networks = [
        named(&["a"], &[], &[]),
        named(&["a", "b"], &[], &[("a", "b")]),
        named(&leaves, &["s0"], &star),
        named(&three, &switches, &chained),
        named(&three, &switches, &ring),
        named(&three, &[], &[("a", "b"), ("b", "c"), ("c", "a")]),
        dumbbell(),
        everything(),
        crowd(60, 6),
    ];
    for network in networks {
        let scene = TopologyScene::from_network(&network);
        let points: Vec<DrawingPoint> = scene.shapes.iter().map(|shape| shape.middle).collect();
        let mut again = TopologyScene::from_network(&network);
        assert_eq!(again.stand(&points), 0, "{}", heading(&network));
        assert_eq!(
            scene.svg(&network),
            again.svg(&network),
            "one network, one picture"
        );
    }
}

#[test]
fn large_networks_are_refused() {
    assert!(drawing(&crowd(MOST_NODES, 6)).is_none());
}

#[test]
fn a_hostile_name_stays_text() {
    let svg = drawing(&named(&["<script>\"&"], &[], &[])).unwrap();
    assert!(svg.contains("&lt;script&gt;&quot;&amp;") && !svg.contains("<script>"));
}
