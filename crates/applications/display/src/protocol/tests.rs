//! Messages of the display's protocol as bytes and back, and bytes that are none.

use super::*;

#[test]
fn requests_come_back_as_they_went() {
    let item = DisplayItem::drawn(DisplayItemKind::Text, 5, (-1, 2), (3, -4)).stippled(3);
    let all = [
        DisplayRequest::Hello {
            version: VERSION,
            token: b"0123456789abcdef",
        },
        DisplayRequest::DefineSymbol(1),
        DisplayRequest::EditSymbol(2),
        DisplayRequest::EndSymbol,
        DisplayRequest::DeleteSymbol(u32::MAX),
        DisplayRequest::AddItem(item, b"letters"),
        DisplayRequest::ChangeItem(DisplayItem::call(9, 8, 7, 6), b""),
        DisplayRequest::DeleteItem(4),
        DisplayRequest::CreateWindow(1, (800, 600), b"title"),
        DisplayRequest::DisplayView(1, 2, (-3, 4), 512),
        DisplayRequest::CloseWindow(1),
        DisplayRequest::BeginBatch,
        DisplayRequest::EndBatch,
        DisplayRequest::Sync(77),
    ];
    let mut bytes = Vec::new();
    all.iter()
        .zip([true, false].into_iter().cycle())
        .for_each(|(one, wants)| write_request(&mut bytes, one, wants));
    let mut rest = bytes.as_slice();
    for (one, wants) in all.iter().zip([true, false].into_iter().cycle()) {
        let (read, wanted, length) = parse_request(rest).unwrap().unwrap();
        assert_eq!((&read, wanted), (one, wants));
        assert_eq!(parse_request(&rest[..length - 1]), Ok(None));
        rest = &rest[length..];
    }
    assert!(rest.is_empty());
    let mut vector = Vec::new();
    write_request(
        &mut vector,
        &DisplayRequest::AddItem(
            DisplayItem::drawn(DisplayItemKind::Vector, 1, (0, 0), (9, 9)),
            b"",
        ),
        false,
    );
    assert_eq!(vector.len(), 20);
}

#[test]
fn plain_items_together_are_the_bytes_of_each() {
    let items = [1, 2, 3].map(|id| {
        (
            DisplayItem::drawn(DisplayItemKind::Rectangle, id, (-1, 2), (9, -9)).stippled(1),
            Vec::new(),
        )
    });
    let (mut together, mut each) = (vec![7], vec![7]);
    assert!(put_plain(&mut together, &items));
    items.iter().for_each(|(item, held)| {
        write_request(&mut each, &DisplayRequest::AddItem(*item, held), false)
    });
    assert_eq!(together, each);
    let letters = (
        DisplayItem::drawn(DisplayItemKind::Text, 9, (1, 2), (0, 0)),
        b"letters".to_vec(),
    );
    assert!(!put_plain(
        &mut together,
        &[&items[..], &[letters]].concat()
    ));
    assert_eq!(together, each);
}

#[test]
fn answers_come_back_as_they_went() {
    let all = [
        DisplayAnswer::Welcome {
            credit: 1 << 20,
            client: 7,
        },
        DisplayAnswer::Done,
        DisplayAnswer::Refused { request: 9, why: 4 },
        DisplayAnswer::Credit(65_536),
        DisplayAnswer::Synced {
            token: 3,
            stamps: Stamps {
                parsed: 1,
                stored: 2,
                rendered: 3,
                presented: u64::MAX,
            },
        },
        DisplayAnswer::Input {
            window: 1,
            input: DisplayInput::Press(-5, 6),
            dropped: 1 << 16,
            hits: vec![(1, 2), (3, 4)],
        },
        DisplayAnswer::Input {
            window: 1,
            input: DisplayInput::Key(0x1f600),
            dropped: 0,
            hits: Vec::new(),
        },
    ];
    let mut bytes = Vec::new();
    all.iter().for_each(|one| one.put(&mut bytes));
    let mut rest = bytes.as_slice();
    for one in &all {
        let (read, length) = DisplayAnswer::take(rest).unwrap().unwrap();
        assert_eq!(&read, one);
        rest = &rest[length..];
    }
}

#[test]
fn malformed_messages_are_distinguished() {
    assert_eq!(
        parse_request(&[2, 0, 0, 3]),
        Err(MalformedDisplayMessage::Length)
    );
    assert_eq!(
        parse_request(&[99, 0, 0, 4]),
        Err(MalformedDisplayMessage::Operation(99))
    );
    assert_eq!(
        parse_request(&[4, 0, 0, 5, 0]),
        Err(MalformedDisplayMessage::Form(4))
    );
    assert_eq!(parse_request(b"GET / HTTP/1.1\r\n"), Ok(None));
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
        let (mut rest, mut answers) = (bytes.as_slice(), bytes.as_slice());
        while let Ok(Some((_, _, length))) = parse_request(rest) {
            rest = &rest[length..];
        }
        while let Ok(Some((_, length))) = DisplayAnswer::take(answers) {
            answers = &answers[length..];
        }
    }
}
