//! Loops, templates and sets of hosts: which nodes, links and pairs a text has.

use super::common::{mistake, plan};
use super::network;
use stackline_core::network::Network;
use stackline_core::plan::Composer;
use std::collections::{BTreeMap, VecDeque};

fn hosts(network: &Network) -> Vec<&str> {
    network
        .hosts
        .iter()
        .map(|host| host.name.as_str())
        .collect()
}

/// Hosts, switches, links.
fn counts(network: &Network) -> (usize, usize, usize) {
    (
        network.hosts.len(),
        network.switches.len(),
        network.links.len(),
    )
}

/// The length of the shortest paths between two nodes, in links, and how many there are. Hosts do not forward.
fn paths(network: &Network, from: &str, to: &str) -> (usize, usize) {
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for link in &network.links {
        next.entry(&link.ends.0).or_default().push(&link.ends.1);
        next.entry(&link.ends.1).or_default().push(&link.ends.0);
    }
    let mut known: BTreeMap<&str, (usize, usize)> = BTreeMap::from([(from, (0, 1))]);
    let mut open = VecDeque::from([from]);
    while let Some(node) = open.pop_front() {
        let (far, ways) = known[node];
        if node != from && hosts(network).contains(&node) {
            continue;
        }
        for other in &next[node] {
            match known.get_mut(other) {
                Some((length, more)) if *length == far + 1 => *more += ways,
                Some(_) => {}
                None => {
                    known.insert(other, (far + 1, ways));
                    open.push_back(other);
                }
            }
        }
    }
    known[to]
}

#[test]
fn a_loop_declares_what_its_statements_say_for_each_index() {
    let star =
        network("switch s; for i in 1..3 { host w[i]; link w[i] - s <i> Mbit/s (10*i+1) us; }");
    assert_eq!(hosts(&star), ["w[1]", "w[2]", "w[3]"]);
    assert_eq!(star.links[2].ends.0, "w[3]");
    assert_eq!(star.links[2].rate.mean_bit_s(), Some(3e6));
    assert_eq!(star.links[2].delay.0, 31_000);
}

#[test]
fn loops_in_loops_have_indices_that_depend_on_each_other() {
    let mesh = network(
        "host h; switch r[1]; link h - r[1] 1 Gbit/s 1 us; for i in 2..5 { switch r[i]; } for i in 1..5 { for j in i+1..5 { link r[i] - r[j] 1 Gbit/s 1 us; } }",
    );
    assert_eq!(counts(&mesh), (1, 5, 1 + 10));
    let ring = network(
        "host h; link h - r[0] 1 Gbit/s 1 us; for i in 0..4 { switch r[i]; link r[i] - r[(i+1)%5] 1 Gbit/s 1 us; }",
    );
    assert_eq!(ring.links[5].ends, ("r[4]".into(), "r[0]".into()));
}

#[test]
fn a_template_has_a_prefix_at_each_use() {
    let text = "template site(n, rate) { switch gw; for i in 1..n { host w[i]; link w[i] - gw rate 1 ms; } }
network wan { switch core; use site(2, 10 Mbit/s) as paris; for i in 1..2 { use site(i, 5 Mbit/s) as lyon[i]; link lyon[i].gw - core 1 Gbit/s 2 ms; }
  link paris.gw - core 1 Gbit/s 5 ms; }
1 from paris.w[2] to lyon[2].w[1] rr 1*1 across wan";
    let wan = plan(text).networks.remove(0);
    assert_eq!(
        hosts(&wan),
        [
            "paris.w[1]",
            "paris.w[2]",
            "lyon[1].w[1]",
            "lyon[2].w[1]",
            "lyon[2].w[2]"
        ]
    );
    assert_eq!(wan.links[0].rate.mean_bit_s(), Some(10e6));
}

#[test]
fn an_argument_may_be_swept() {
    let text = "network n { use star(3, <R>, 1 ms); } 1 from h[1] to h[2] rr 1*1 across n; R = 1 Mbit/s, 2 Mbit/s";
    let plan = plan(text);
    assert_eq!(plan.measurements.len(), 2);
    let rates: Vec<Option<f64>> = plan
        .networks
        .iter()
        .map(|n| n.links[0].rate.mean_bit_s())
        .collect();
    assert_eq!(rates, [Some(1e6), Some(2e6)]);
}

#[test]
fn predefined_templates_have_the_counts_of_their_closed_forms() {
    for n in [1, 2, 5] {
        let dumbbell = network(&format!(
            "use dumbbell({n}, 1 Gbit/s, 1 ms, 10 Mbit/s, 5 ms);"
        ));
        assert_eq!(counts(&dumbbell), (2 * n, 2, 2 * n + 1));
        assert_eq!(paths(&dumbbell, "left[1]", &format!("right[{n}]")), (3, 1));
        assert_eq!(
            counts(&network(&format!("use star({n}, 1 Gbit/s, 1 ms);"))),
            (n, 1, n)
        );
        let chain = network(&format!("use chain({n}, 1 Gbit/s, 1 ms);"));
        assert_eq!(counts(&chain), (n, n, 2 * n - 1));
    }
    let chain = network("use chain(6, 1 Gbit/s, 1 ms);");
    assert_eq!(paths(&chain, "h[1]", "h[6]"), (7, 1));
    let ring = network("use ring(6, 1 Gbit/s, 1 ms);");
    assert_eq!(
        (counts(&ring), paths(&ring, "h[1]", "h[4]")),
        ((6, 6, 12), (5, 2))
    );
    for (depth, fanout) in [(1_u32, 3_usize), (3, 2), (2, 4)] {
        let tree = network(&format!("use tree({depth}, {fanout}, 1 Gbit/s, 1 ms);"));
        let (leaves, inner) = (fanout.pow(depth), (fanout.pow(depth) - 1) / (fanout - 1));
        assert_eq!(counts(&tree), (leaves, inner, leaves + inner - 1));
        let far = paths(&tree, "h[1]", &format!("h[{leaves}]"));
        assert_eq!(far, (2 * depth as usize, 1));
    }
}

#[test]
fn networks_of_data_centres_have_the_counts_of_their_papers() {
    for k in [2, 4, 6, 8] {
        let fat = network(&format!("use fat_tree({k}, 1 Gbit/s, 10 us);"));
        assert_eq!(
            counts(&fat),
            (k * k * k / 4, 5 * k * k / 4, 3 * k * k * k / 4)
        );
        let other = format!("h[{k}][1][1]");
        assert_eq!(paths(&fat, "h[1][1][1]", &other), (6, k * k / 4));
        if k > 2 {
            assert_eq!(paths(&fat, "h[1][1][1]", "h[1][2][1]"), (4, k / 2));
        }
    }
    let (leaves, spines, n) = (4, 3, 5);
    let clos = network(&format!(
        "use clos({leaves}, {spines}, {n}, 1 Gbit/s, 10 us);"
    ));
    assert_eq!(
        counts(&clos),
        (leaves * n, leaves + spines, leaves * spines + leaves * n)
    );
    assert_eq!(paths(&clos, "h[1][1]", "h[4][5]"), (4, spines));
    for (a, p, h) in [(2, 1, 1), (4, 2, 2), (6, 3, 3)] {
        let dragonfly = network(&format!(
            "use dragonfly({a}, {p}, {h}, 1 Gbit/s, 10 us, 1 us);"
        ));
        let groups = a * h + 1;
        let links = groups * a * p + groups * a * (a - 1) / 2 + groups * (groups - 1) / 2;
        assert_eq!(counts(&dragonfly), (groups * a * p, groups * a, links));
        // Each router has p hosts, a - 1 others of its group and h other groups.
        for switch in &dragonfly.switches {
            let ends = dragonfly
                .links
                .iter()
                .flat_map(|link| [&link.ends.0, &link.ends.1]);
            assert_eq!(
                ends.filter(|end| **end == switch.name).count(),
                p + a - 1 + h
            );
        }
        let (length, _) = paths(
            &dragonfly,
            "h[0][0][1]",
            &format!("h[{}][{}][1]", groups - 1, a - 1),
        );
        assert!(
            (3..=5).contains(&length),
            "at most local, global, local: {length}"
        );
    }
}

/// The pairs of the only measurement.
fn pairs(text: &str) -> Vec<String> {
    let plan = plan(&format!(
        "network n {{ switch s; host sink; link sink - s 1 Gbit/s 1 us; for i in 1..4 {{ host w[i], v[i]; link w[i] - s 1 Gbit/s 1 us; link v[i] - s 1 Gbit/s 1 us; }} }} {text}"
    ));
    let parts = &plan.measurements[0].parts;
    let name = |end: &Option<String>| end.clone().unwrap_or_default();
    parts
        .iter()
        .map(|part| format!("{} {}", name(&part.from), name(&part.to)))
        .collect()
}

#[test]
fn sets_of_hosts_become_pairs() {
    let incast = pairs("1 from w[*] to sink bulk_put 1000*10 across n");
    assert_eq!(incast, ["w[1] sink", "w[2] sink", "w[3] sink", "w[4] sink"]);
    assert_eq!(
        pairs("1 from w[2..3] to v[1..2] pairwise rr 1*1 across n"),
        ["w[2] v[1]", "w[3] v[2]"]
    );
    assert_eq!(pairs("1 from w[1..2] to v[1..2] rr 1*1 across n").len(), 4);
    let all = pairs("1 from w[*] to w[*] rr 1*1 across n");
    assert_eq!(all.len(), 4 * 3);
    let drawn = pairs("1 from w[*] to w[*] permutation rr 1*1 across n");
    assert_eq!(drawn.len(), 4);
    let sends = |host: &str| drawn.iter().filter(|pair| pair.ends_with(host)).count();
    assert!(
        (1..=4).all(|at| sends(&format!(" w[{at}]")) == 1),
        "{drawn:?}"
    );
}

#[test]
fn a_set_is_one_total_unless_it_says_otherwise() {
    let base = "network n { use star(3, 1 Gbit/s, 1 ms); } ";
    let one = plan(&format!(
        "{base} 1 from h[2..3] to h[1] bulk_put 1000*10 over tcp, udp across n"
    ));
    assert_eq!(
        one.measurements.len(),
        2,
        "stacks do not multiply with the pairs"
    );
    assert_eq!(one.measurements[0].composer, Composer::Total);
    let text = &one.measurements[0].text;
    assert_eq!(
        text,
        "1 over tcp across n: from h[2..3] to h[1] bulk_put 1000*10"
    );
    let again = plan(&format!("{base} {text}"));
    assert_eq!(again.measurements[0].parts, one.measurements[0].parts);
    let each = plan(&format!(
        "{base} 1 parallel: from h[2..3] to h[1] bulk_put 1000*10 across n"
    ));
    assert_eq!(each.measurements[0].composer, Composer::Parallel);
}

#[test]
fn five_thousand_links_are_a_text_like_others() {
    let big = network("switch s; for i in 1..5000 { host w[i]; link w[i] - s 1 Gbit/s 10 us; }");
    assert_eq!(counts(&big), (5000, 1, 5000));
}

#[test]
fn repetition_is_bounded() {
    for text in [
        "network n { for i in 1..1000000000 { } } 1 rr 1*1",
        "network n { for i in 1..30000 { for j in 1..30000 { host w[i][j]; } } } 1 rr 1*1",
        "template t(n) { for i in 1..n { host a[i]; } } template u(n) { for i in 1..n { use t(n) as x[i]; } } network n { use u(20000); } 1 rr 1*1",
    ] {
        assert!(mistake(text).contains("too many statements"), "{text}");
    }
    let loops: String = (0..100)
        .map(|at| format!("for i{at} in 1..2 {{ "))
        .collect();
    let deep = format!("network n {{ {loops} {} }} 1 rr 1*1", "}".repeat(100));
    assert!(mistake(&deep).contains("too deep"));
}
