//! Data units and messages come in the pieces that networks make of them.

use super::*;

/// A unit of these bytes as its sender cuts it.
fn write_unit(unit: &[u8], size: TpduSize, out: &mut Vec<u8>) {
    let mut framing = UnitFraming::default();
    framing.prepare(unit.len(), size);
    let mut index = 0;
    while let Some((head, piece)) = framing.piece(index) {
        out.extend_from_slice(head);
        out.extend_from_slice(&unit[piece]);
        index += 1;
    }
}

/// What a receiver finds in bytes that come so many at a time: the units, and how many messages came before each.
fn receive(bytes: &[u8], at_once: usize, size: TpduSize) -> (Vec<Vec<u8>>, Vec<FtamMessage>) {
    let mut receiver = FtamReceiver::new(size);
    let (mut units, mut messages) = (Vec::new(), Vec::new());
    let (mut unit, mut from, mut to) = (Vec::new(), 0, 0);
    loop {
        let (taken, received) = receiver.take(&bytes[from..to]).unwrap();
        from += taken;
        match received {
            FtamReceived::Nothing if to == bytes.len() => break,
            FtamReceived::Nothing => to = bytes.len().min(to + at_once),
            FtamReceived::Data { bytes: here, left } => {
                unit.extend_from_slice(&bytes[from - here..from]);
                if left == 0 {
                    units.push(core::mem::take(&mut unit));
                }
            }
            FtamReceived::Message => messages.push(receiver.message().unwrap()),
        }
    }
    assert_eq!((from, unit.len()), (bytes.len(), 0));
    (units, messages)
}

#[test]
fn units_and_messages_arrive_as_they_were_sent() {
    let proposed = [None, Some(128), Some(2048)];
    for size in proposed.map(TpduSize::within) {
        let units: Vec<Vec<u8>> = [0, 1, 94, 95, 96, 125, 2025, 2045, 65_500, 70_000, 131_037]
            .into_iter()
            .map(|length| (0..length).map(|at| at as u8).collect())
            .collect();
        let mut bytes = Vec::new();
        let sent = messages();
        for (unit, message) in units.iter().zip(sent.iter().cycle()) {
            message.write(size, &mut bytes);
            write_unit(unit, size, &mut bytes);
        }
        sent.iter()
            .for_each(|message| message.write(size, &mut bytes));
        let expected: Vec<FtamMessage> = sent
            .iter()
            .cycle()
            .take(units.len())
            .chain(&sent)
            .cloned()
            .collect();
        for at_once in [1, 7, 100, 4096, bytes.len()] {
            let (arrived, messages) = receive(&bytes, at_once, size);
            assert!(arrived == units, "{at_once} at once, {size:?}");
            assert_eq!(messages, expected);
        }
    }
}

#[test]
fn a_unit_fills_its_tpdus() {
    let size = TpduSize::within(Some(128));
    let mut bytes = Vec::new();
    write_unit(&[7; 400], size, &mut bytes);
    let mut lengths = Vec::new();
    let mut rest = &bytes[..];
    while let [3, 0, high, low, ..] = *rest {
        let length = usize::from(u16::from_be_bytes([high, low]));
        lengths.push((length, rest[6]));
        rest = &rest[length..];
    }
    assert!(rest.is_empty());
    // A TPKT's head, and at most 128 bytes; the TSDU of 400 bytes and its head of 23 ends with the last.
    assert_eq!(lengths, [(132, 0), (132, 0), (132, 0), (55, 0x80)]);
}
