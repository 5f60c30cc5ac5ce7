//! Any datagrams, in any order: nothing but a token is taken for control, and the counts agree with a set of numbers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stackline_proto::datagram::control::read_control;
use stackline_proto::datagram::loss_counter::Sequence;
use std::collections::BTreeSet;

/// Numbers this far behind the highest are always told apart.
const NEAR: u64 = 60_000;

/// Each step of two bytes moves the number a little or far; the top bit of a number is never set on the wire.
fn numbers(bytes: &[u8]) -> Vec<u64> {
    let mut at = 0_u64;
    let step = |pair: &[u8]| {
        let [how, far] = [pair[0], pair[1]];
        let far = u64::from(far) << ((how >> 2) % 40);
        at = match how & 3 {
            0 => at + 1,
            1 => at.saturating_sub(far),
            2 => (at + far) % (1 << 62),
            _ => at,
        };
        at
    };
    bytes.chunks_exact(2).map(step).collect()
}

fuzz_target!(|bytes: &[u8]| {
    let token = [0x85; 16];
    let control = read_control(bytes, &token);
    assert_eq!(control.is_some(), bytes.len() == 25 && bytes[..16] == token);

    let numbers = numbers(bytes);
    let sent = numbers.iter().max().map_or(0, |most| most + 1);
    let mut sequence = Sequence::new();
    let new: Vec<bool> = numbers.iter().map(|number| sequence.arrived(*number)).collect();
    let losses = sequence.losses(sent);
    let mut seen = BTreeSet::new();
    let mut highest = 0;
    for (number, new) in numbers.iter().zip(&new) {
        let first = seen.insert(*number);
        assert!(first || !new, "{number} twice");
        assert!(*new || !first || highest - number > NEAR, "{number} is new");
        highest = highest.max(*number);
    }
    let unique = new.iter().filter(|new| **new).count() as u64;
    assert_eq!(losses.lost, sent - unique);
    assert!(losses.duplicated + unique <= numbers.len() as u64);
});
