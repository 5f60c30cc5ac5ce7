//! A disk or a session that goes.

use super::*;

#[test]
fn a_disk_that_goes_fails_what_is_wanted_of_it_and_nothing_else() {
    let mut server = server(0);
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0, 1, 2]))
        .unwrap();
    let woken = server.set_disk(0, false);
    assert_eq!(woken.connections, [1]);
    let failed: Vec<u64> = written(&mut server, 1, 1)
        .into_iter()
        .map(|what| match what {
            Words(Message::Failed(failed)) if failed.why == Why::Disk as u8 => failed.number,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(failed, [0, 2]);
    assert_eq!(
        (read(&mut server, 2, 0), read(&mut server, 2, 1)),
        (None, Some(1))
    );
    server
        .requests(ms(3), ms(3), list(SESSION, 2, &[4]))
        .unwrap();
    assert!(matches!(
        &written(&mut server, 4, 1)[..],
        [Words(Message::Failed(_))] | [Words(Message::Flushed(_)), ..]
    ));
}

#[test]
fn a_session_that_ends_leaves_nothing() {
    let mut server = server(1 << 20);
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0, 2]))
        .unwrap();
    let mut woken = Woken::default();
    let what = server.next_read(ms(1), 0, &mut woken).unwrap();
    server.detach(1);
    assert_eq!(
        server.read_done(ms(5), what.spot, Ok("block 0".into())),
        Woken::default()
    );
    assert_eq!(server.next_read(ms(6), 0, &mut woken), None);
    // What was read for it is in memory for others.
    server.requests(ms(7), ms(7), list(OTHER, 1, &[0])).unwrap();
    assert_eq!(written(&mut server, 8, 2), [Block(0)]);
}
