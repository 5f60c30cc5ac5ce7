//! Messages of foreign programs that nobody answers: those that lie unread are named with their receiver.

use super::*;
use stackline_events::EventValue;

/// Messages to a server: how long each travels and how long it lies unread, ms; the server's thread sleeps meanwhile.
fn messages(all: &[(u64, u64)]) -> EventTable {
    let mut table = EventTable::default();
    for (number, (travels_ms, unread_ms)) in all.iter().enumerate() {
        let unit = EventValue::from(number as i64);
        let sent = 1000 * MS * (1 + number as u64);
        let arrived = sent + travels_ms * MS;
        let read = arrived + unread_ms * MS;
        let point = [unit, 0.into(), (number as i64 * 10).into(), 10.into()];
        table.push("APP_CALL", "a", sent, &point);
        table.push("NET_SEEN", "a", sent, &point);
        table.push("NET_SEEN", "b", arrived, &point);
        table.push("APP_RECEIVED", "b", read, &point);
        let what = ["one way", "WebSocket"].map(EventValue::from);
        let ends = ["text", "", "a", "b", "node", "python3"].map(EventValue::from);
        let said = [
            &[unit],
            &what[..],
            &[1.into()],
            &ends,
            &[10.into(), 0.into()],
        ]
        .concat();
        table.push("REQUEST", "a", sent, &said);
        if *unread_ms > 0 {
            const SLEEP: usize = 6;
            let mut wait = vec![EventValue::from(0); 13];
            (wait[0], wait[SLEEP]) = (unit, ((unread_ms * MS) as i64).into());
            table.push("REQUEST_WAIT", "a", sent, &wait);
        }
    }
    table
}

#[test]
fn who_leaves_messages_unread_is_named_with_what_it_does() {
    let prompt = [(5, 0); 20];
    let late = [&prompt[..], &[(5, 390), (5, 380), (5, 400)]].concat();
    let found = of_events(&messages(&late));
    assert_eq!(found[0].kind, "messages_unread", "{found:?}");
    let sentence = "messages lie unread at python3 on b: 3 of 23 for 390 ms each, 91 % of the time of all messages; its thread sleeps (a timed wait) meanwhile";
    assert_eq!(found[0].sentence, sentence);
    let of_others = |all: &[(u64, u64)]| {
        of_events(&messages(all))
            .iter()
            .any(|one| one.kind == "messages_unread")
    };
    assert!(!of_others(&prompt));
    // A way that takes long is no reader's fault, and two may be chance.
    assert!(!of_others(&[(400, 0); 10]));
    assert!(!of_others(&[(5, 390), (5, 390)]));
}
