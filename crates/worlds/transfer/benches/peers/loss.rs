//! Loss on the way to the receiver: its namespace drops packets at random as they come in, each for itself.

use crate::Failure;
use crate::net::Pair;
use std::fs;

/// From now on `lost` packets of 1000 are lost. The sender's processor cuts what it sends into packets before they go
/// over the veth pair, and nothing joins them: what is dropped is one packet and not up to 64 KiB of them. `steered`:
/// packets are received on the core of their own side; else the kernel does that on the core of who sent them.
pub(crate) fn set(pair: &Pair, lost: f64, steered: bool) -> Result<(), Failure> {
    const HINT: &str = "hint: apt-get install ethtool nftables";
    let run = |side, program, words: &str| {
        let words: Vec<&str> = words.split_whitespace().collect();
        pair.run(side, program, &words)
            .map_err(|error| format!("{error}; {HINT}"))
    };
    for side in [0, 1] {
        run(
            side,
            "ethtool",
            "-K v0 tso off tx-udp-segmentation off gro off",
        )?;
        if steered {
            steer(pair, side)?;
        }
    }
    let below = (lost * 100.0) as u32;
    run(1, "nft", "add table netdev way")?;
    run(
        1,
        "nft",
        "add chain netdev way in { type filter hook ingress device v0 priority 0 ; }",
    )?;
    let rule = format!(
        "add rule netdev way in meta protocol ip numgen random mod 100000 < {below} counter drop"
    );
    Ok(run(1, "nft", &rule)?)
}

/// Receive packet steering to the core of a side. What `/sys` shows is of the namespace it was mounted in.
fn steer(pair: &Pair, side: usize) -> Result<(), Failure> {
    let cores = 1 << side;
    let script = format!(
        "mount -t sysfs none /sys && echo {cores:x} > /sys/class/net/v0/queues/rx-0/rps_cpus"
    );
    pair.run(side, "unshare", &["--mount", "sh", "-c", &script])
}

/// Packets dropped so far for lack of room in the backlogs of all cores, from any sender.
pub(crate) fn overflown() -> u64 {
    let lines = fs::read_to_string("/proc/net/softnet_stat").unwrap_or_default();
    let of = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
    lines.lines().filter_map(of).sum()
}
