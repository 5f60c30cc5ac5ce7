//! Reads the addresses of a process's network namespace from `/proc` (proc(5)). It does not enter the namespace.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// All addresses of the network namespace of a process.
///
/// # Errors
/// When the process is not there, or its namespace may not be seen.
pub fn addresses_of(pid: u32) -> io::Result<Vec<IpAddr>> {
    let four = fs::read_to_string(format!("/proc/{pid}/net/fib_trie"))?;
    let six = fs::read_to_string(format!("/proc/{pid}/net/if_inet6")).unwrap_or_default();
    let mut all: Vec<IpAddr> = addresses_of_4(&four)
        .map(IpAddr::from)
        .chain(addresses_of_6(&six).map(IpAddr::from))
        .collect();
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// The local addresses of a routing trie (`fib_trie`): a leaf `|-- ADDRESS`, with its kind on a line below.
fn addresses_of_4(text: &str) -> impl Iterator<Item = Ipv4Addr> {
    let mut leaf = None;
    text.lines().filter_map(move |line| {
        let line = line.trim_start();
        if let Some(address) = line.strip_prefix("|-- ") {
            leaf = address.trim().parse().ok();
            return None;
        }
        leaf.filter(|_| line.trim_end() == "/32 host LOCAL")
    })
}

/// The addresses of a list (`if_inet6`) with one address a line, in 32 hexadecimal digits.
fn addresses_of_6(text: &str) -> impl Iterator<Item = Ipv6Addr> {
    let line = |line: &str| {
        let digits = line.split_ascii_whitespace().next()?;
        let number = u128::from_str_radix(digits, 16).ok()?;
        (digits.len() == 32).then(|| Ipv6Addr::from(number))
    };
    text.lines().filter_map(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_kernel_are_read() {
        let trie = "Local:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.88.0.2\n        /32 host LOCAL\n     |-- 10.88.255.255\n        /32 link BROADCAST\n";
        let all: Vec<_> = addresses_of_4(trie).collect();
        assert_eq!(all, [Ipv4Addr::new(10, 88, 0, 2)]);
        let list = "00000000000000000000000000000001 01 80 10 80       lo\nx\n01 01\n";
        let all: Vec<_> = addresses_of_6(list).collect();
        assert_eq!(all, [Ipv6Addr::LOCALHOST]);
    }

    #[test]
    fn this_process_has_a_loopback() {
        let all = addresses_of(std::process::id()).unwrap();
        assert!(all.iter().any(IpAddr::is_loopback), "{all:?}");
    }
}
