//! A client that draws, is refused, sends half a message or nonsense; what is seen of it, in virtual time.

use super::*;
use crate::item::{DisplayItem, DisplayItemKind};
use crate::protocol::{DisplayRequest, write_request};

/// A client that writes requests and reads answers; time is the number of times it was asked.
struct Talk {
    display: DisplayMachine,
    client: ClientId,
    time: u64,
}

impl Talk {
    fn new(limits: DisplayClientLimits) -> Self {
        let mut display = DisplayMachine::new(limits, b"secret".to_vec());
        let client = display.connect();
        let mut talk = Self {
            display,
            client,
            time: 0,
        };
        let hello = DisplayRequest::Hello {
            version: VERSION,
            token: b"secret",
        };
        assert_eq!(
            talk.says(&[(hello, false)]),
            [DisplayAnswer::Welcome {
                credit: CREDIT,
                client: 1
            }]
        );
        talk
    }

    fn sends(&mut self, bytes: &[u8]) -> Result<Vec<DisplayAnswer>, DisplayEndReason> {
        let time = &mut self.time;
        self.display.receive(self.client, bytes, &mut || {
            *time += 1;
            *time
        })?;
        let out = self.display.output(self.client);
        let (mut rest, mut answers) = (out.as_slice(), Vec::new());
        while let Some((answer, length)) = DisplayAnswer::take(rest).unwrap() {
            answers.push(answer);
            rest = &rest[length..];
        }
        Ok(answers)
    }

    fn says(&mut self, requests: &[(DisplayRequest<'_>, bool)]) -> Vec<DisplayAnswer> {
        let mut bytes = Vec::new();
        requests
            .iter()
            .for_each(|(request, wants)| write_request(&mut bytes, request, *wants));
        self.sends(&bytes).unwrap()
    }

    fn at(&mut self, place: (i32, i32)) -> Option<u8> {
        self.display
            .draw(self.client, 1)
            .unwrap()
            .pixels()
            .at(place)
    }
}

const fn vector(id: u32, y: i16) -> DisplayRequest<'static> {
    DisplayRequest::AddItem(
        DisplayItem::drawn(DisplayItemKind::Vector, id, (0, y), (9, y)),
        b"",
    )
}

const WINDOW: [(DisplayRequest<'_>, bool); 2] = [
    (DisplayRequest::CreateWindow(1, (64, 64), b"one"), false),
    (DisplayRequest::DisplayView(1, 1, (0, 0), FULL_SIZE), false),
];

/// Hears of each step, so that each request is carried out by itself.
struct Each;

impl DisplayStepObserver for Each {
    fn now(&mut self) -> u64 {
        0
    }

    fn hears(&self) -> bool {
        true
    }
}

/// The end of a client that sent that in such pieces: its picture and its answers.
fn end_of(
    bytes: &[u8],
    piece: usize,
    watch: &mut dyn DisplayStepObserver,
) -> (Vec<u8>, u32, Vec<u8>, Option<Vec<u8>>) {
    let mut display = DisplayMachine::new(
        DisplayClientLimits {
            bytes: 400,
            ..DisplayClientLimits::default()
        },
        Vec::new(),
    );
    let client = display.connect();
    bytes
        .chunks(piece)
        .for_each(|piece| display.receive(client, piece, watch).unwrap());
    let seen = display
        .draw(client, 1)
        .map(|window| window.pixels().bytes().to_vec());
    let DisplayPictureRequests {
        bytes: picture,
        requests,
        ..
    } = display.picture(client);
    (picture, requests, display.output(client), seen)
}

proptest::proptest! {
    /// Items that are taken together, in whatever pieces they come, are what each by itself is; the same ones are refused.
    #[test]
    fn items_together_are_what_they_are_one_by_one(
        asked in proptest::collection::vec((0u32..30, 0u8..12, -5i16..70, 0u8..7), 0..60), piece in 1usize..300, is_growing: bool
    ) {
        let mut bytes = Vec::new();
        write_request(&mut bytes, &DisplayRequest::Hello { version: VERSION, token: b"" }, false);
        WINDOW.iter().for_each(|(request, _)| write_request(&mut bytes, request, false));
        write_request(&mut bytes, &DisplayRequest::DefineSymbol(1), false);
        for (at, (id, what, y, stipple)) in asked.into_iter().enumerate() {
            let id = if is_growing { at as u32 } else { id };
            let item = |kind| DisplayItem::drawn(kind, id, (0, y), (9, y + 4)).stippled(stipple);
            let request = match what {
                0 => DisplayRequest::AddItem(item(DisplayItemKind::Text), b"a"),
                1 => DisplayRequest::AddItem(DisplayItem::call(id, 2, 0, y), b""),
                2 => DisplayRequest::EndSymbol,
                3 => DisplayRequest::EditSymbol(1),
                4 => DisplayRequest::DeleteItem(id),
                5 => DisplayRequest::AddItem(item(DisplayItemKind::Vector), b"too much"),
                6 | 7 => DisplayRequest::AddItem(item(DisplayItemKind::Rectangle), b""),
                _ => DisplayRequest::AddItem(item(DisplayItemKind::Vector).stippled(0), b""),
            };
            write_request(&mut bytes, &request, y == 0);
        }
        write_request(&mut bytes, &DisplayRequest::Sync(1), false);
        let alone = end_of(&bytes, bytes.len(), &mut Each);
        proptest::prop_assert_eq!(&end_of(&bytes, bytes.len(), &mut || 0), &alone);
        proptest::prop_assert_eq!(&end_of(&bytes, piece, &mut || 0), &alone);
    }
}

#[test]
fn a_symbol_is_seen_when_it_is_done_and_not_before() {
    let mut talk = Talk::new(DisplayClientLimits::default());
    talk.says(&WINDOW);
    assert_eq!(
        talk.says(&[
            (DisplayRequest::DefineSymbol(1), true),
            (vector(1, 5), true)
        ]),
        [DisplayAnswer::Done, DisplayAnswer::Done]
    );
    assert_eq!(talk.at((3, 5)), Some(0));
    assert_eq!(
        talk.says(&[(DisplayRequest::EndSymbol, true)]),
        [DisplayAnswer::Done]
    );
    assert_eq!(talk.at((3, 5)), Some(1));
    // An edited symbol changes at once, item by item.
    talk.says(&[
        (DisplayRequest::EditSymbol(1), false),
        (vector(2, 7), false),
    ]);
    assert_eq!(talk.at((3, 7)), Some(1));
    talk.says(&[(DisplayRequest::DeleteItem(1), false)]);
    assert_eq!((talk.at((3, 5)), talk.at((3, 7))), (Some(0), Some(1)));
}

#[test]
fn a_batch_is_seen_at_once_and_half_of_one_never() {
    let mut talk = Talk::new(DisplayClientLimits::default());
    talk.says(&WINDOW);
    talk.says(&[
        (DisplayRequest::BeginBatch, false),
        (DisplayRequest::DefineSymbol(1), false),
        (vector(1, 5), false),
    ]);
    talk.says(&[(DisplayRequest::EndSymbol, false)]);
    let synced = talk.says(&[(DisplayRequest::Sync(9), false)]);
    assert!(
        matches!(synced[..], [DisplayAnswer::Synced { token: 9, .. }]),
        "{synced:?}"
    );
    assert_eq!(talk.at((3, 5)), Some(0));
    assert_eq!(
        talk.says(&[(DisplayRequest::EndBatch, true)]),
        [DisplayAnswer::Done]
    );
    assert_eq!(talk.at((3, 5)), Some(1));
}

/// Who looks on between pictures only sees by its count that a window is another.
#[test]
fn a_window_that_takes_the_place_of_another_counts_otherwise() {
    let mut talk = Talk::new(DisplayClientLimits::default());
    let made = [
        (DisplayRequest::CreateWindow(1, (10, 10), b"w"), false),
        (DisplayRequest::Sync(1), false),
    ];
    talk.says(&made);
    let before = talk.display.draw(talk.client, 1).unwrap().drawn;
    talk.says(&[
        (DisplayRequest::BeginBatch, false),
        (DisplayRequest::CloseWindow(1), false),
        made[0],
        (DisplayRequest::EndBatch, false),
    ]);
    assert_ne!(talk.display.draw(talk.client, 1).unwrap().drawn, before);
}

#[test]
fn what_a_batch_has_wrong_is_reported_at_its_end_by_its_own_numbers_and_the_rest_is_done() {
    let mut talk = Talk::new(DisplayClientLimits::default());
    talk.says(&WINDOW);
    // The window has 1 and 2.
    let kept = talk.says(&[
        (DisplayRequest::BeginBatch, false),
        (DisplayRequest::DefineSymbol(1), true),
        (vector(1, 5), false),
        (vector(1, 6), true),
        (DisplayRequest::DeleteItem(7), false),
        (DisplayRequest::EndSymbol, true),
    ]);
    assert_eq!(
        kept,
        [
            DisplayAnswer::Done,
            DisplayAnswer::Done,
            DisplayAnswer::Done
        ]
    );
    let synced = talk.says(&[(DisplayRequest::Sync(9), false)]);
    assert!(
        matches!(synced[..], [DisplayAnswer::Synced { token: 9, .. }]),
        "{synced:?}"
    );
    assert_eq!(talk.says(&[(DisplayRequest::DeleteSymbol(44), false)]), []);
    let refused = |request, why: DisplayRefusal| DisplayAnswer::Refused {
        request,
        why: why as u8,
    };
    let answers = talk.says(&[
        (DisplayRequest::EndBatch, true),
        (DisplayRequest::EndBatch, true),
    ]);
    let of_batch = [
        refused(6, DisplayRefusal::ItemExists),
        refused(7, DisplayRefusal::NoItem),
        refused(10, DisplayRefusal::NoSymbol),
    ];
    assert_eq!(
        answers,
        [
            &of_batch[..],
            &[DisplayAnswer::Done, refused(12, DisplayRefusal::Order)]
        ]
        .concat()
    );
    assert_eq!((talk.at((3, 5)), talk.at((3, 6))), (Some(1), Some(0)));
}

#[test]
fn symbols_are_called_with_places_scales_and_turns() {
    let mut talk = Talk::new(DisplayClientLimits::default());
    talk.says(&WINDOW);
    let call = |id, x, y, scale, turns| DisplayItem {
        x1: scale,
        y1: turns,
        ..DisplayItem::call(id, 2, x, y)
    };
    talk.says(&[
        (DisplayRequest::DefineSymbol(2), false),
        (
            DisplayRequest::AddItem(
                DisplayItem::drawn(DisplayItemKind::Vector, 1, (0, 0), (4, 0)),
                b"",
            ),
            false,
        ),
        (DisplayRequest::EndSymbol, false),
        (DisplayRequest::DefineSymbol(1), false),
        (DisplayRequest::AddItem(call(1, 10, 10, 512, 0), b""), false),
        (DisplayRequest::AddItem(call(2, 40, 40, 256, 1), b""), false),
        (DisplayRequest::EndSymbol, false),
    ]);
    assert_eq!(
        [(18, 10), (19, 10), (40, 44), (40, 45), (44, 40)].map(|at| talk.at(at)),
        [1, 0, 1, 0, 0].map(Some)
    );
    // One change of the called symbol changes all that is seen of it.
    let up = DisplayRequest::ChangeItem(
        DisplayItem::drawn(DisplayItemKind::Vector, 1, (0, 0), (0, 0)),
        b"",
    );
    talk.says(&[(DisplayRequest::EditSymbol(2), false), (up, false)]);
    assert_eq!(
        [(18, 10), (10, 10), (40, 44), (40, 40)].map(|at| talk.at(at)),
        [0, 1, 0, 1].map(Some)
    );
}

#[test]
fn what_is_wrong_is_reported_by_its_number_and_changes_nothing() {
    let mut talk = Talk::new(DisplayClientLimits {
        bytes: 200,
        symbols: 2,
        windows: 1,
    });
    let refused = |request, why: DisplayRefusal| DisplayAnswer::Refused {
        request,
        why: why as u8,
    };
    let answers = talk.says(&[
        (vector(1, 1), false),
        (DisplayRequest::EditSymbol(4), true),
        (DisplayRequest::DefineSymbol(1), false),
        (DisplayRequest::DefineSymbol(2), false),
        (
            DisplayRequest::AddItem(DisplayItem::call(1, 1, 0, 0), b""),
            false,
        ),
        (DisplayRequest::EndSymbol, true),
        (DisplayRequest::DisplayView(1, 1, (0, 0), 256), false),
        (DisplayRequest::CreateWindow(1, (0, 9), b""), false),
        (DisplayRequest::EndBatch, false),
    ]);
    let expected = [
        refused(1, DisplayRefusal::NoSymbol),
        refused(2, DisplayRefusal::NoSymbol),
        refused(4, DisplayRefusal::Order),
        refused(6, DisplayRefusal::Circle),
        refused(7, DisplayRefusal::NoWindow),
        refused(8, DisplayRefusal::Bytes),
        refused(9, DisplayRefusal::Order),
    ];
    assert_eq!(answers, expected);
    talk.says(&[(DisplayRequest::DefineSymbol(1), false)]);
    let answers = talk.says(
        &(1..=11)
            .map(|id| (vector(id, 1), false))
            .collect::<Vec<_>>(),
    );
    assert_eq!(answers, [refused(21, DisplayRefusal::Memory)]);
}

#[test]
fn windows_of_a_client_have_so_many_pixels_together() {
    let mut talk = Talk::new(DisplayClientLimits::default());
    let window = |number, side| {
        (
            DisplayRequest::CreateWindow(number, (side, side), b"w"),
            true,
        )
    };
    let full = [
        window(1, 4096),
        window(2, 4096),
        window(3, 4096),
        window(4, 4096),
    ];
    assert_eq!(
        talk.says(&full),
        [
            DisplayAnswer::Done,
            DisplayAnswer::Done,
            DisplayAnswer::Done,
            DisplayAnswer::Done
        ]
    );
    let memory = DisplayAnswer::Refused {
        request: 5,
        why: DisplayRefusal::Memory as u8,
    };
    // What takes another's place takes no more.
    assert_eq!(
        talk.says(&[window(5, 1), window(4, 4096)]),
        [memory, DisplayAnswer::Done]
    );
    assert_eq!(
        talk.says(&[window(4, 4000), window(5, 100)]),
        [DisplayAnswer::Done, DisplayAnswer::Done]
    );
}

#[test]
fn strangers_and_what_is_no_message_are_sent_away() {
    let mut display = DisplayMachine::new(DisplayClientLimits::default(), b"secret".to_vec());
    let mut says = |bytes: &[u8]| {
        let client = display.connect();
        display.receive(client, bytes, &mut || 0)
    };
    let mut wrong = Vec::new();
    write_request(
        &mut wrong,
        &DisplayRequest::Hello {
            version: VERSION,
            token: b"secrets",
        },
        false,
    );
    assert_eq!(says(&wrong), Err(DisplayEndReason::Stranger));
    let mut other = Vec::new();
    write_request(
        &mut other,
        &DisplayRequest::Hello {
            version: 9,
            token: b"secret",
        },
        false,
    );
    assert_eq!(says(&other), Err(DisplayEndReason::NotHello));
    assert_eq!(
        says(&[b"GET / HTTP/1.1\r\n".as_slice(), &[0; 100]].concat()),
        Err(DisplayEndReason::NotHello)
    );
    let mut talk = Talk::new(DisplayClientLimits::default());
    assert_eq!(
        talk.sends(&[0, 0, 0, 4]),
        Err(DisplayEndReason::Malformed(
            protocol::MalformedDisplayMessage::Operation(0)
        ))
    );
}

#[test]
fn credit_comes_back_and_a_message_may_come_in_pieces() {
    let mut talk = Talk::new(DisplayClientLimits {
        bytes: 64 << 20,
        ..DisplayClientLimits::default()
    });
    talk.says(&[(DisplayRequest::DefineSymbol(1), false)]);
    let mut bytes = Vec::new();
    (1..=30_000).for_each(|id| write_request(&mut bytes, &vector(id, 1), false));
    let mut answers = Vec::new();
    for piece in bytes.chunks(777) {
        answers.extend(talk.sends(piece).unwrap());
    }
    assert!(
        matches!(answers[..], [DisplayAnswer::Credit(more)] if more >= CREDIT / 2),
        "{answers:?}"
    );
    // The empty one and those after it: what came in pieces came whole.
    assert_eq!(
        talk.says(&[(DisplayRequest::EndSymbol, true)]),
        [DisplayAnswer::Done]
    );
    assert_eq!(talk.display.memory(talk.client), 600_000);
}

#[test]
fn input_finds_its_client_with_what_is_there_and_waits_for_it_no_longer_than_it_may() {
    let mut talk = Talk::new(DisplayClientLimits::default());
    talk.says(&WINDOW);
    talk.says(&[
        (DisplayRequest::DefineSymbol(1), false),
        (vector(7, 5), false),
        (DisplayRequest::EndSymbol, false),
    ]);
    talk.display
        .input(talk.client, 1, DisplayInput::Press(4, 6));
    let answers = talk.says(&[]);
    let press = DisplayAnswer::Input {
        window: 1,
        input: DisplayInput::Press(4, 6),
        dropped: 0,
        hits: vec![(1, 7)],
    };
    assert_eq!(answers, [press]);
    // The line goes on outside of what the window shows of it.
    talk.says(&[(DisplayRequest::DisplayView(1, 1, (60, 0), FULL_SIZE), false)]);
    for (x, hits) in [
        (63, vec![(1, 7)]),
        (64, vec![]),
        (66, vec![]),
        (-30_000, vec![]),
    ] {
        talk.display
            .input(talk.client, 1, DisplayInput::Release(x, 5));
        assert_eq!(
            talk.says(&[]),
            [DisplayAnswer::Input {
                window: 1,
                input: DisplayInput::Release(x, 5),
                dropped: 0,
                hits
            }]
        );
    }
    (0..300).for_each(|_| talk.display.input(talk.client, 1, DisplayInput::Key(97)));
    assert_eq!(talk.says(&[]).len(), MOST_EVENTS);
    talk.display.input(talk.client, 1, DisplayInput::Key(98));
    let answers = talk.says(&[]);
    assert!(
        matches!(answers[..], [DisplayAnswer::Input { dropped: 44, .. }]),
        "{answers:?}"
    );
}

#[test]
fn calls_of_calls_end_before_time_does() {
    let mut talk = Talk::new(DisplayClientLimits::default());
    talk.says(&WINDOW);
    // Each symbol calls the next twice, 40 deep: 2^40 vectors.
    for number in (1..=40u32).rev() {
        let called = number + 1;
        talk.says(&[
            (DisplayRequest::DefineSymbol(number), false),
            (
                DisplayRequest::AddItem(DisplayItem::call(1, called, 0, 0), b""),
                false,
            ),
            (
                DisplayRequest::AddItem(DisplayItem::call(2, called, 1, 0), b""),
                false,
            ),
            (DisplayRequest::EndSymbol, false),
        ]);
    }
    let drawn = talk.display.draw(talk.client, 1).unwrap();
    assert_eq!(drawn.items, (crate::draw::MOST_ITEMS, false));
}

proptest::proptest! {
    /// Whatever a client sends: no panic, and no more memory than it may have.
    #[test]
    fn any_bytes_leave_the_display_in_order(messages: Vec<(u8, u8, Vec<u8>)>) {
        let mut talk = Talk::new(DisplayClientLimits { bytes: 4096, symbols: 3, windows: 2 });
        for (operation, kind, body) in messages {
            let length = (4 + body.len()) as u16;
            let mut bytes = vec![(operation % 15) | (operation & 0x80), kind];
            bytes.extend(length.to_be_bytes());
            bytes.extend(body);
            if talk.sends(&bytes).is_err() {
                break;
            }
            talk.display.input(talk.client, 0, DisplayInput::Press(1, 1));
            proptest::prop_assert!(talk.display.memory(talk.client) <= 4096);
        }
    }
}

/// Steps of requests, in the order in which they are reported.
struct Steps(Vec<(DisplayRequestStep, u32)>);

impl DisplayStepObserver for Steps {
    fn now(&mut self) -> u64 {
        0
    }

    fn hears(&self) -> bool {
        true
    }

    fn passed(&mut self, step: DisplayRequestStep, client: ClientId, request: u32) {
        assert_eq!(client, ClientId(1));
        self.0.push((step, request));
    }
}

#[test]
fn every_step_of_every_request_is_reported() {
    let mut talk = Talk::new(DisplayClientLimits::default());
    let mut bytes = Vec::new();
    for request in [
        DisplayRequest::DefineSymbol(1),
        vector(1, 1),
        DisplayRequest::EndSymbol,
    ] {
        write_request(
            &mut bytes,
            &request,
            matches!(request, DisplayRequest::EndSymbol),
        );
    }
    let mut steps = Steps(Vec::new());
    talk.display
        .receive(talk.client, &bytes, &mut steps)
        .unwrap();
    let all = [1, 2, 3]
        .map(|request| {
            [
                (DisplayRequestStep::Parsed, request),
                (DisplayRequestStep::Stored, request),
            ]
        })
        .concat();
    let drawn = [1, 2, 3].map(|request| (DisplayRequestStep::Rendered, request));
    assert_eq!(steps.0, [&all[..], &drawn[..]].concat());
}

/// What one client takes another one of the same service cannot have, until it is given back.
#[test]
fn all_clients_of_a_service_share_its_memory() {
    let budget = DisplayMemoryBudget::new(100_000);
    let mut talks = [0, 1].map(|_| Talk::new(DisplayClientLimits::default()));
    for talk in &mut talks {
        talk.display =
            DisplayMachine::new(DisplayClientLimits::default(), Vec::new()).within(budget.clone());
        talk.client = talk.display.connect();
        talk.says(&[(
            DisplayRequest::Hello {
                version: VERSION,
                token: b"",
            },
            false,
        )]);
    }
    let [one, other] = &mut talks;
    let refused = |talk: &mut Talk, request: DisplayRequest<'_>| talk.says(&[(request, true)]);
    let is_memory =
        |answers: &[DisplayAnswer]| matches!(answers, [DisplayAnswer::Refused { why: 5, .. }]);
    assert!(!is_memory(&refused(
        one,
        DisplayRequest::CreateWindow(1, (300, 300), b"")
    )));
    assert!(is_memory(&refused(
        other,
        DisplayRequest::CreateWindow(1, (200, 200), b"")
    )));
    refused(other, DisplayRequest::DefineSymbol(1));
    let full = (1..)
        .find(|id| is_memory(&refused(other, vector(*id, 1))))
        .unwrap();
    // 10,000 bytes are 500 items.
    assert!(
        (450..=501).contains(&full) && budget.taken() <= 100_000,
        "{full} {}",
        budget.taken()
    );
    let (client, display) = (one.client, &mut one.display);
    display.disconnect(client);
    assert!(budget.taken() <= 10_000, "{}", budget.taken());
    assert!(!is_memory(&refused(
        other,
        DisplayRequest::CreateWindow(1, (200, 200), b"")
    )));
    assert!(
        is_memory(&refused(
            other,
            DisplayRequest::CreateWindow(2, (300, 300), b"")
        )),
        "no symbol is counted twice"
    );
}
