//! Control of a conversation in datagrams, repeated and answered, and the count of its units.

use super::*;
use alloc::vec::Vec;
use proptest::prelude::*;

/// A conversation with a request made at zero, and sent.
fn asking(kind: DatagramControl) -> DatagramConversation {
    let mut end = DatagramConversation::new();
    end.request(Instant(0), kind);
    assert!(matches!(end.poll(Instant(0)), ControlStep::Send(sent, _) if sent == kind as u8));
    end
}

/// When an end without a peer sends control, and when it gives up.
fn alone(kind: DatagramControl) -> (Vec<u64>, u64) {
    let mut end = asking(kind);
    let mut sent = alloc::vec![0];
    loop {
        let now = end.deadline().unwrap();
        match end.poll(now) {
            ControlStep::Send(..) => sent.push(now.0),
            ControlStep::GivenUp => return (sent, now.0),
            step => panic!("{step:?}"),
        }
    }
}

fn unit(end: &mut DatagramConversation, number: u64) -> DatagramUnit {
    end.handle_unit(&number.to_le_bytes(), 100)
}

#[test]
fn control_is_repeated_at_doubled_intervals_and_given_up() {
    let (sent, given_up) = alone(DatagramControl::Start);
    assert_eq!(sent[..5], [0, 200_000, 600_000, 1_400_000, 3_000_000]);
    let longest = sent.windows(2).map(|pair| pair[1] - pair[0]).max();
    assert_eq!(longest, Some(LAST_REPEAT.0));
    assert!((PATIENCE.0..PATIENCE.0 + LAST_REPEAT.0).contains(&given_up));
    let (_, given_up) = alone(DatagramControl::Bye);
    assert!((FAREWELL.0..FAREWELL.0 + LAST_REPEAT.0).contains(&given_up));
    let (_, given_up) = alone(DatagramControl::End);
    assert!((LAST_PATIENCE.0..LAST_PATIENCE.0 + LAST_REPEAT.0).contains(&given_up));
}

#[test]
fn a_far_peer_gets_the_time_for_its_farewell() {
    let mut end = asking(DatagramControl::Hello);
    end.handle_control(DatagramControl::Hello as u8 | ANSWER, 0);
    let far = Instant(600_000_000);
    assert_eq!(end.poll(far), ControlStep::Answered);
    end.request(far, DatagramControl::Bye);
    let given_up = loop {
        let now = end.deadline().unwrap();
        if end.poll(now) == ControlStep::GivenUp {
            break now;
        }
    };
    assert!(given_up.since(far).0 >= 4 * 600_000_000, "{given_up:?}");
}

#[test]
fn control_is_not_repeated_before_its_time_nor_after_its_answer() {
    let mut end = asking(DatagramControl::Hello);
    assert_eq!(
        (end.poll(Instant(199_999)), end.deadline()),
        (ControlStep::Wait, Some(Instant(200_000)))
    );
    assert_eq!(
        end.handle_control(DatagramControl::Start as u8 | ANSWER, 0),
        None
    );
    assert_eq!(end.poll(Instant(199_999)), ControlStep::Wait);
    assert_eq!(
        end.handle_control(DatagramControl::Hello as u8 | ANSWER, 0),
        None
    );
    assert_eq!(
        (end.poll(Instant(199_999)), end.deadline()),
        (ControlStep::Answered, None)
    );
}

#[test]
fn what_can_only_follow_an_answer_is_one() {
    let mut end = asking(DatagramControl::Start);
    unit(&mut end, 0);
    assert_eq!(end.poll(Instant(1)), ControlStep::Answered);
    let mut end = asking(DatagramControl::End);
    end.handle_control(DatagramControl::Start as u8, 1);
    assert_eq!(end.poll(Instant(1)), ControlStep::Answered);
    let mut end = asking(DatagramControl::Bye);
    end.handle_control(DatagramControl::Bye as u8, 0);
    assert_eq!(end.poll(Instant(1)), ControlStep::Answered);
    let mut end = asking(DatagramControl::Hello);
    unit(&mut end, 0);
    assert_eq!(end.poll(Instant(1)), ControlStep::Wait);
}

#[test]
fn a_peer_that_has_closed_gets_one_end_and_one_bye() {
    let mut end = DatagramConversation::new();
    end.handle_control(DatagramControl::Bye as u8, 0);
    for kind in [DatagramControl::End, DatagramControl::Bye] {
        end.request(Instant(0), kind);
        assert!(matches!(end.poll(Instant(0)), ControlStep::Send(..)));
        assert_eq!(end.poll(Instant(200_000)), ControlStep::Answered);
    }
    assert!(end.end_sent());
}

#[test]
fn every_control_is_answered_and_a_repeated_one_changes_nothing() {
    let mut end = DatagramConversation::new();
    for kind in [
        DatagramControl::Hello,
        DatagramControl::Start,
        DatagramControl::End,
        DatagramControl::Bye,
    ] {
        for _ in 0..2 {
            let value = if kind == DatagramControl::End {
                (1 << COUNT_BITS) | 7
            } else {
                1
            };
            assert_eq!(
                end.handle_control(kind as u8, value),
                Some(kind as u8 | ANSWER)
            );
        }
        assert_eq!(end.take_started(), kind == DatagramControl::Start);
    }
    assert_eq!(
        (end.peer_sent(), end.is_closed(), end.handle_control(9, 0)),
        (Some(7), true, None)
    );
}

#[test]
fn the_end_of_an_earlier_transfer_ends_no_later_one() {
    let mut end = DatagramConversation::new();
    end.handle_control(DatagramControl::Start as u8, 2);
    end.handle_control(DatagramControl::End as u8, (1 << COUNT_BITS) | 5);
    assert_eq!((end.has_ended(), end.peer_sent()), (false, None));
    end.handle_control(DatagramControl::End as u8, (2 << COUNT_BITS) | 9);
    assert_eq!((end.has_ended(), end.peer_sent()), (true, Some(9)));
}

#[test]
fn the_first_hello_forgets_what_came_before_it() {
    let mut end = DatagramConversation::new();
    unit(&mut end, 3);
    end.handle_control(DatagramControl::Bye as u8, 4);
    end.handle_control(DatagramControl::Hello as u8, 0);
    assert_eq!(
        (
            end.units(9),
            end.received_bytes(),
            end.is_closed(),
            end.losses()
        ),
        (0, Some(0), false, None)
    );
    unit(&mut end, 0);
    end.handle_control(DatagramControl::Hello as u8, 0);
    assert_eq!(end.units(9), 1);
}

#[test]
fn a_refusal_closes_unless_hello_waits_for_its_answer() {
    let mut end = asking(DatagramControl::Hello);
    end.refused();
    assert!(!end.is_closed());
    end.handle_control(DatagramControl::Hello as u8 | ANSWER, 0);
    assert_eq!(end.poll(Instant(1)), ControlStep::Answered);
    end.refused();
    assert!(end.is_closed());
}

#[test]
fn units_are_counted_once_and_taken_as_they_are_wanted() {
    let mut end = DatagramConversation::new();
    let kinds = [0, 2, 2, 1].map(|number| unit(&mut end, number));
    assert_eq!(
        kinds,
        [
            DatagramUnit::Numbered(0),
            DatagramUnit::Numbered(2),
            DatagramUnit::Repeated,
            DatagramUnit::Numbered(1)
        ]
    );
    assert_eq!(end.handle_unit(&[1, 2], 2), DatagramUnit::Unnumbered);
    assert_eq!(
        (end.received_bytes(), end.has_units(4), end.has_units(5)),
        (Some(302), true, false)
    );
    assert_eq!((end.take_units(3), end.take_units(3)), (3, 1));
    end.handle_control(DatagramControl::Bye as u8, 4);
    assert_eq!(
        end.losses(),
        Some(UnitLosses {
            lost: 1,
            duplicated: 1,
            reordered: 1
        })
    );
}

#[test]
fn only_the_answer_to_the_present_call_is_taken() {
    let mut end = DatagramConversation::new();
    let first = end.call();
    end.call_lost();
    let second = end.call();
    assert_eq!((first, second), (1, 2));
    assert!(!end.take_answer(second, NUMBER));
    unit(&mut end, first);
    assert!(!end.take_answer(second, NUMBER));
    unit(&mut end, second);
    assert!(end.take_answer(second, NUMBER) && !end.take_answer(second, NUMBER));
    assert_eq!(
        (end.losses().map(|losses| losses.lost), end.received_bytes()),
        (Some(1), None)
    );
    // Of a short one as many bytes as there are.
    let third = end.call();
    end.handle_unit(&[3, 0, 0], 3);
    assert!(end.head_bytes() == 3 && end.take_answer(third, 3));
}

#[test]
fn a_call_counts_once_and_a_strangers_never() {
    let mut end = DatagramConversation::new();
    end.await_call();
    let arrive = |end: &mut DatagramConversation, number: u64, bytes: usize| {
        end.handle_unit(&number.to_le_bytes()[..bytes], 9)
    };
    for (number, kind) in [
        (1, DatagramUnit::Call),
        (1, DatagramUnit::Repeated),
        (3, DatagramUnit::Call),
        (2, DatagramUnit::Repeated),
        (1 << 50, DatagramUnit::Repeated),
    ] {
        assert_eq!(arrive(&mut end, number, NUMBER), kind, "{number}");
    }
    assert_eq!((end.take_units(9), u64::from_le_bytes(*end.head())), (2, 3));
    // Numbers go round; of a call of one byte soon.
    let mut end = DatagramConversation::new();
    end.await_call();
    for number in 1..1000 {
        assert_eq!(arrive(&mut end, number, 1), DatagramUnit::Call, "{number}");
        assert_eq!(
            arrive(&mut end, number, 1),
            DatagramUnit::Repeated,
            "{number}"
        );
    }
    end.last_call = NUMBERS - 1;
    assert_eq!(arrive(&mut end, 0, NUMBER), DatagramUnit::Call);
    // Data units between calls go on from the number of the call.
    end.await_units();
    assert_eq!(
        [0, 1, 1].map(|number| arrive(&mut end, number, NUMBER)),
        [DatagramUnit::Call; 3]
    );
}

/// Sends control over a network that takes a moment and loses what `lost` says, each way. Whether it was answered.
fn exchange(
    ends: (&mut DatagramConversation, &mut DatagramConversation),
    kind: DatagramControl,
    lost: &mut impl FnMut() -> bool,
) -> bool {
    let (near, far) = ends;
    let mut now = Instant(0);
    near.request(now, kind);
    loop {
        match near.poll(now) {
            ControlStep::Send(kind, value) if !lost() => match far.handle_control(kind, value) {
                Some(answer) if !lost() => assert_eq!(near.handle_control(answer, 0), None),
                _ => now = near.deadline().unwrap(),
            },
            ControlStep::Send(..) => now = near.deadline().unwrap(),
            ControlStep::Wait => panic!("nothing has come"),
            ControlStep::Answered => return true,
            ControlStep::GivenUp => return false,
        }
    }
}

proptest! {
    #[test]
    fn what_the_network_loses_is_counted(units in proptest::collection::vec(any::<bool>(), 0..200), control in any::<u64>()) {
        // The last two of eight control datagrams arrive: a request and its answer.
        let mut turn = 0;
        let mut lost = || {
            turn += 1;
            turn % 8 < 6 && control >> (turn % 64) & 1 > 0
        };
        let (mut near, mut far) = (DatagramConversation::new(), DatagramConversation::new());
        prop_assert!(exchange((&mut near, &mut far), DatagramControl::Hello, &mut lost));
        prop_assert!(exchange((&mut near, &mut far), DatagramControl::Start, &mut lost));
        prop_assert!(far.take_started());
        for arrives in &units {
            if *arrives {
                unit(&mut far, near.next_number());
            }
            near.sent(1);
        }
        prop_assert!(exchange((&mut near, &mut far), DatagramControl::End, &mut lost));
        prop_assert!(near.end_sent() && far.has_ended() && !far.is_closed());
        prop_assert!(exchange((&mut near, &mut far), DatagramControl::Bye, &mut lost));
        let missing = units.iter().filter(|arrives| !**arrives).count() as u64;
        prop_assert_eq!(far.losses(), Some(UnitLosses { lost: missing, ..UnitLosses::default() }));
        prop_assert_eq!(far.take_units(u64::MAX), units.len() as u64 - missing);
    }
}
