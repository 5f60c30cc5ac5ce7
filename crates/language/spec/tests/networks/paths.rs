//! Paths between hosts: in a network of twenty thousand, and over as many links as a packet can cross.

use crate::common::{checked, clean, mistake};

/// A data centre: it would take minutes if any step visited all the others.
#[test]
fn twenty_thousand_hosts() {
    const HOSTS: usize = 20_000;
    let star = |n: usize| format!("host h{n}; link h{n} - s{} 1 Gbit/s 1 ms;\n", n % 2);
    let hosts: String = (0..HOSTS).map(star).collect();
    let switches = "switch s0; switch s1; link s0 - s1 10 Gbit/s 1 ms;";
    let last = HOSTS - 1;
    let plan = clean(&format!(
        "network w {{ {switches}\n{hosts} }} 1 from h0 to h{last} rr 1*1 across w in simulated"
    ));
    assert_eq!(
        (plan.networks[0].hosts.len(), plan.networks[0].links.len()),
        (HOSTS, HOSTS + 1)
    );
    let apart = "switch s0; switch s1; link s0 -> s1 10 Gbit/s 1 ms;";
    let lost = mistake(&format!(
        "network w {{ {apart}\n{hosts} }} 1 from h0 to h{last} rr 1*1 across w in simulated"
    ));
    assert!(
        lost.starts_with("error: no path leads from `h1` to `h0`"),
        "{lost}"
    );
}

#[test]
fn a_path_has_as_many_links_as_a_packet_can_cross() {
    let chain = |switches: usize| {
        let names: Vec<String> = (0..switches).map(|n| format!("s{n}")).collect();
        let nodes: Vec<&str> = ["a"]
            .into_iter()
            .chain(names.iter().map(String::as_str))
            .chain(["b"])
            .collect();
        let links: String = nodes
            .windows(2)
            .map(|ends| format!("link {} - {} 1 Gbit/s 1 ms; ", ends[0], ends[1]))
            .collect();
        let names = names.join(", ");
        format!(
            "network n {{ host a, b; switch {names}; {links} }} 1 from a to b rr 1*1 across n in simulated;"
        )
    };
    assert!(checked(&chain(63)).plan.is_some());
    let mistakes = checked(&chain(64)).diagnostics;
    assert!(
        mistakes
            .iter()
            .any(|m| m.message.contains("65 links") && m.hint.is_some()),
        "{mistakes:?}"
    );
}
