//! Bounds of what waits: for slow readers, for those who read nothing, and for lists without end.

use super::*;

#[test]
fn a_slow_reader_has_bounded_memory_and_goes_on_later() {
    let mut server = server(1 << 30);
    let length = (limits::WRITE_QUEUE / 4) as u32;
    let mut wanted = list(SESSION, 1, &[0, 2, 4, 6, 8, 10, 12]);
    wanted
        .entries
        .iter_mut()
        .for_each(|entry| entry.length = length);
    server.requests(ms(0), ms(0), wanted).unwrap();
    let mut woken = Woken::default();
    let mut reads = 0;
    while let Some(what) = server.next_read(ms(1), 0, &mut woken) {
        server.read_done(ms(1), what.spot, Ok("a block".into()));
        reads += 1;
    }
    assert_eq!(reads, 4);
    let mut woken = Woken::default();
    assert!(server.next_write(ms(2), 1, &mut woken).is_some());
    assert_eq!(woken.disks, [0]);
    assert!(server.next_read(ms(3), 0, &mut woken).is_some());
}

#[test]
fn old_blocks_are_dropped_where_they_have_an_age() {
    let mut server = server(0);
    server.attach(SESSION, 1, Some(50_000_000)).unwrap();
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &[0, 2]))
        .unwrap();
    read(&mut server, 1, 0);
    assert_eq!(written(&mut server, 50, 1), [Block(0)]);
    read(&mut server, 30, 0);
    assert_eq!(written(&mut server, 51, 1), []);
    assert_eq!(server.counts().aged, 1);
}

#[test]
fn what_is_more_than_allowed_is_refused_whole() {
    let mut server = server(0);
    let many: Vec<u64> = (0..limits::MOST_REQUESTED_BLOCKS as u64 + 1).collect();
    assert_eq!(
        server.requests(ms(0), ms(0), list(SESSION, 1, &many)),
        Err(Why::Limit)
    );
    assert_eq!(server.counts().requested, 0);
    server
        .requests(ms(0), ms(0), list(SESSION, 1, &many[1..]))
        .unwrap();
}

#[test]
fn those_who_read_nothing_leave_room_for_others_and_none_is_forgotten() {
    let mut server = DiskServerMachine::new(3, 1, 0);
    let length = 1 << 20;
    let wants = |session: u128, blocks: u64| {
        let entry = |index: u64| {
            let offset = (session as u64 * 1000 + index) * u64::from(length);
            BlockListEntry {
                index: index as u32,
                number: index,
                disk: 0,
                offset,
                length,
                checksum: 0,
            }
        };
        let (first_unit, stamps) = (session as u64 * 1000, [1, 2, 3]);
        let entries = (0..blocks).map(entry).collect();
        ServerBlockRequests {
            session,
            set: 1,
            serial: 1,
            supersedes: true,
            report: true,
            first_unit,
            stamps,
            entries,
        }
    };
    let read_all = |server: &mut DiskServerMachine<String>| {
        let mut woken = Woken::default();
        while let Some(read) = server.next_read(ms(1), 0, &mut woken) {
            server.read_done(ms(2), read.spot, Ok(String::new()));
            assert!(server.waiting_bytes() <= limits::WRITE_QUEUES);
        }
    };
    // Three times as many as could each have all that one may have.
    let clients = 3 * (limits::WRITE_QUEUES / limits::WRITE_QUEUE) as u128;
    for session in 1..=clients {
        server.attach(session, session as u64, None).unwrap();
        server.requests(ms(0), ms(0), wants(session, 40)).unwrap();
        read_all(&mut server);
    }
    assert!(
        server.waiting_bytes() > limits::WRITE_QUEUES / 3,
        "{}",
        server.waiting_bytes()
    );
    // Who comes now gets a block at once.
    let (late, connection) = (clients + 1, 5000);
    server.attach(late, connection, None).unwrap();
    server.requests(ms(3), ms(3), wants(late, 1)).unwrap();
    read_all(&mut server);
    assert_eq!(server.to_write(connection), 1);
    // And once everybody reads, or goes, all comes.
    let mut woken = Woken::default();
    server.forget(1);
    let mut came = 0;
    while (2..=clients).any(|session| server.to_write(session as u64) > 0) {
        for session in 2..=clients {
            while let Some(Write::Block(head, _)) =
                server.next_write(ms(4), session as u64, &mut woken)
            {
                server.write_done(ms(4), session as u64, head.unit);
                came += 1;
            }
            read_all(&mut server);
        }
    }
    assert_eq!(
        (came, server.is_crowded()),
        (40 * (clients as u64 - 1), false)
    );
    assert_eq!(server.waiting_bytes(), u64::from(length), "what came late");
}

#[test]
fn a_client_that_hears_nothing_of_what_was_discarded_asks_for_nothing_more() {
    let mut server = server(0);
    let blocks: Vec<u64> = (0..8192).collect();
    let lists = (1..).take_while(|serial| {
        server
            .requests(ms(0), ms(0), list(SESSION, *serial, &blocks))
            .is_ok()
    });
    let taken = lists.count() as u64;
    assert!(
        taken > limits::WORDS / (16 * 8192) / 2 && taken < limits::WORDS / (16 * 8192) + 10,
        "{taken}"
    );
    assert_eq!(server.counts().refused, 8192);
    written(&mut server, 1, 1);
    assert!(
        server
            .requests(ms(2), ms(2), list(SESSION, 5000, &blocks))
            .is_ok()
    );
    // Numbers that begin near their end do no harm.
    let last = ServerBlockRequests {
        first_unit: u64::MAX,
        ..list(SESSION, 5001, &[1, 2])
    };
    server.requests(ms(3), ms(3), last).unwrap();
    assert_eq!(
        (read(&mut server, 4, 1), read(&mut server, 4, 0)),
        (Some(1), Some(2))
    );
    written(&mut server, 5, 1);
}
