//! Times that travel with blocks, and the end of each write, which a later block reports.

use super::*;

#[test]
fn stamps_travel_with_the_block() {
    let mut server = server(0);
    server
        .requests(ms(5), ms(5), list(SESSION, 1, &[2]))
        .unwrap();
    let mut woken = Woken::default();
    let what = server.next_read(ms(6), 0, &mut woken).unwrap();
    let woken = server.read_done(ms(28), what.spot, Ok("block 2".into()));
    assert_eq!(woken.connections, [1]);
    let mut woken = Woken::default();
    let Some(Write::Block(head, _)) = server.next_write(ms(30), 1, &mut woken) else {
        panic!("a block")
    };
    assert_eq!((head.unit, head.server, head.cached), (100, 3, false));
    assert_eq!((head.app_send, head.master_in, head.master_out), (1, 2, 3));
    let at = [
        head.server_in,
        head.start_read,
        head.end_read,
        head.start_write,
    ]
    .map(|ns| ns / 1_000_000);
    assert_eq!(at, [5, 6, 28, 30]);
    server.write_done(ms(33), 1, head.unit);
    server
        .requests(ms(40), ms(40), list(SESSION, 2, &[4]))
        .unwrap();
    read(&mut server, 41, 0);
    let Some(Write::Block(head, _)) = server.next_write(ms(60), 1, &mut woken) else {
        panic!("a block")
    };
    assert_eq!((head.before, head.before_end_write), (100, 33_000_000));
}

#[test]
fn the_end_of_every_write_is_reported_once() {
    let mut server = server(0);
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0, 2, 4, 6]))
        .unwrap();
    let mut reported = Vec::new();
    let mut write = |server: &mut DiskServerMachine<String>, now: u64, count: usize| {
        let mut woken = Woken::default();
        let writes = core::iter::from_fn(|| server.next_write(ms(now), 1, &mut woken));
        let heads = writes.take(count).map(|write| match write {
            Write::Block(head, _) => head,
            Write::Words(words) => panic!("{words:?}"),
        });
        let heads: Vec<BlockHead> = heads.collect();
        reported.extend(
            heads
                .iter()
                .filter(|head| head.before > 0)
                .map(|head| (head.before, head.before_end_write)),
        );
        heads
    };
    while read(&mut server, 1, 0).is_some() {}
    for head in write(&mut server, 20, 2) {
        server.write_done(ms(head.unit), 1, head.unit);
    }
    // One is given back: what it reported is reported again.
    assert_eq!(write(&mut server, 30, 2).len(), 2);
    server.not_begun(1, None);
    assert_eq!(write(&mut server, 31, 2).len(), 2);
    assert_eq!(reported, [(100, 100_000_000), (101, 101_000_000)].repeat(2));
}

#[test]
fn of_blocks_that_were_handed_over_together_the_last_is_reported() {
    let mut server = server(0);
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0, 2, 4, 6]))
        .unwrap();
    while read(&mut server, 1, 0).is_some() {}
    let mut woken = Woken::default();
    let mut next = |server: &mut DiskServerMachine<String>, now: u64| match server.next_write(
        ms(now),
        1,
        &mut woken,
    ) {
        Some(Write::Block(head, _)) => (head.unit, head.before, head.before_end_write),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        (next(&mut server, 20), next(&mut server, 20)),
        ((100, 0, 0), (101, 0, 0))
    );
    server.write_done(ms(22), 1, 100);
    server.write_done(ms(22), 1, 101);
    assert_eq!(next(&mut server, 23), (102, 101, 22_000_000));
    server.write_done(ms(24), 1, 102);
    assert_eq!(next(&mut server, 25), (103, 102, 24_000_000));
}
