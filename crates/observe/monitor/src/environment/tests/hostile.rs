//! Whatever a file holds, every parser returns and a sample is taken.

use super::super::difference;
use super::super::dynamic::EnvironmentSampler;
use super::super::fixed;
use super::tree::Tree;
use crate::parse::{
    block, bracketed_word, cpuinfo, interfaces, limits, list_length, loadavg, name_values,
};
use crate::parse::{pressure, softnet, stat};
use proptest::prelude::*;
use stackline_os::root_directory::Root;
use stackline_os::{cgroup_formats, mounts};

/// Texts like those of a kernel: its words, blanks and colons, numbers up to and beyond the limits.
fn kernel_like() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("cpu".to_owned()),
        Just("cpu0".to_owned()),
        Just("intr".to_owned()),
        Just("softirq".to_owned()),
        Just("Tcp:".to_owned()),
        Just("lo:".to_owned()),
        Just("some".to_owned()),
        Just("avg10=".to_owned()),
        Just("total=18446744073709551615".to_owned()),
        Just("nr_periods".to_owned()),
        Just("throttled_usec".to_owned()),
        Just("MemTotal:".to_owned()),
        Just("kB".to_owned()),
        Just("-".to_owned()),
        Just("[".to_owned()),
        Just("]".to_owned()),
        Just("18446744073709551615".to_owned()),
        Just("-9223372036854775808".to_owned()),
        Just("NaN".to_owned()),
        Just("/a/../b".to_owned()),
        any::<u64>().prop_map(|n| n.to_string()),
        "\\PC{0,6}",
    ];
    let separator = prop_oneof![4 => Just(" "), 2 => Just("\n"), 1 => Just(":"), 1 => Just("/"), 1 => Just(",")];
    proptest::collection::vec((word, separator), 0..60).prop_map(|parts| {
        parts
            .into_iter()
            .flat_map(|(word, separator)| [word, separator.to_owned()])
            .collect()
    })
}

fn parse_everything(text: &str) {
    let stat = stat::parse(text);
    _ = stat.all.map(|times| (times.busy(), times.total()));
    _ = (
        cpuinfo::parse(text),
        name_values::meminfo(text),
        name_values::counters(text),
        block::parse(text),
    );
    _ = (
        interfaces::parse(text),
        softnet::parse(text),
        loadavg::parse(text),
        limits::parse(text, "Max"),
    );
    _ = (
        pressure::parse(text, "some"),
        cgroup_formats::parse_paths(text),
        cgroup_formats::parse_quota(text),
        cgroup_formats::throttling(text),
    );
    _ = (
        list_length(text),
        bracketed_word(text),
        name_values::assignment(text, "A"),
    );
    _ = mounts::find_mount(&mounts::parse(text), text).cloned();
}

proptest! {
    #[test]
    fn parsers_return(text in kernel_like()) {
        parse_everything(&text);
    }

    #[test]
    fn parsers_return_for_any_text(text in any::<String>()) {
        parse_everything(&text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn samples_of_hostile_files_are_json(text in kernel_like()) {
        let tree = Tree::of_one_text(&text);
        let sampler = EnvironmentSampler::under_root(Root::at(tree.path()));
        let (before, after) = (sampler.sample(), sampler.sample());
        prop_assert!(serde_json::to_string(&before.to_json()).is_ok());
        prop_assert!(serde_json::to_string(&difference(&before, &after)).is_ok());
        prop_assert!(serde_json::to_string(&fixed::describe(&Root::at(tree.path()))).is_ok());
    }
}
