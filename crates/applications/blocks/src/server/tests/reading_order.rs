//! What is read of disks, in which order, and written as it comes.

use super::*;
use alloc::vec;

#[test]
fn blocks_are_read_by_disk_and_written_as_they_come() {
    let mut server = server(1 << 20);
    let woken = server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0, 1, 2]))
        .unwrap();
    assert_eq!(
        woken,
        Woken {
            disks: vec![0, 1],
            connections: vec![]
        }
    );
    assert_eq!(read(&mut server, 1, 1), Some(1));
    assert_eq!(written(&mut server, 12, 1), [Block(1)]);
    assert_eq!(
        (
            read(&mut server, 13, 0),
            read(&mut server, 24, 0),
            read(&mut server, 35, 0)
        ),
        (Some(0), Some(2), None)
    );
    assert_eq!(written(&mut server, 40, 1), [Block(0), Block(2)]);
}

#[test]
fn sessions_take_turns_at_a_disk() {
    let mut server = server(0);
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0, 2, 4]))
        .unwrap();
    server
        .requests(ms(1), ms(1), list(OTHER, 1, &[10, 12]))
        .unwrap();
    let order: Vec<_> = core::iter::from_fn(|| read(&mut server, 2, 0)).collect();
    assert_eq!(order, [0, 10, 2, 12, 4]);
}

#[test]
fn a_block_that_two_want_is_read_once() {
    let mut server = server(0);
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0]))
        .unwrap();
    server.requests(ms(0), ms(0), list(OTHER, 1, &[0])).unwrap();
    let mut woken = Woken::default();
    let what = server.next_read(ms(1), 0, &mut woken).unwrap();
    assert_eq!(server.next_read(ms(1), 0, &mut woken), None);
    let woken = server.read_done(ms(9), what.spot, Ok("block 0".into()));
    assert_eq!(woken.connections, [1, 2]);
    assert_eq!(
        (written(&mut server, 10, 1), written(&mut server, 10, 2)),
        (vec![Block(0)], vec![Block(0)])
    );
}
