//! Items of symbols: how they are kept, found, changed and given back, and what no client may take.

use super::*;
use std::collections::BTreeSet;

proptest::proptest! {
    /// In whatever order ids come.
    #[test]
    fn an_id_is_of_one_item(changes in proptest::collection::vec((0..12_u32, 0..4_u8), 0..60)) {
        let (mut symbol, mut known) = (Symbol::default(), BTreeSet::new());
        for (id, what) in changes {
            let refused = match what {
                0 => symbol.delete(id).err(),
                _ => symbol.add(vector(id), b"").err(),
            };
            let expected = match what {
                0 => (!known.remove(&id)).then_some(DisplayRefusal::NoItem),
                _ => (!known.insert(id)).then_some(DisplayRefusal::ItemExists),
            };
            proptest::prop_assert_eq!(refused, expected);
            let there = symbol.items().iter().filter(|item| item.kind.is_some()).count();
            proptest::prop_assert_eq!((there, symbol.len()), (known.len(), known.len()));
        }
    }
}

fn vector(id: u32) -> DisplayItem {
    DisplayItem::drawn(DisplayItemKind::Vector, id, (0, 0), (9, 9))
}

const LIMITS: DisplayClientLimits = DisplayClientLimits {
    bytes: 1 << 20,
    symbols: 4,
    windows: 1,
};

#[test]
fn items_take_twenty_bytes_as_long_as_ids_grow() {
    let mut symbol = Symbol::default();
    (0..1000).for_each(|id| symbol.add(vector(2 * id), &[]).unwrap());
    assert_eq!(symbol.memory(), 20_000);
    assert_eq!(symbol.add(vector(10), &[]), Err(DisplayRefusal::ItemExists));
    symbol.add(vector(11), &[]).unwrap();
    assert!(symbol.memory() > 30_000);
    assert_eq!(symbol.item(11).map(|item| item.id), Some(11));
    for id in 0..900 {
        symbol.delete(2 * id).unwrap();
    }
    assert_eq!(
        (symbol.len(), symbol.delete(0)),
        (101, Err(DisplayRefusal::NoItem))
    );
    assert_eq!(
        (symbol.item(11).is_some(), symbol.item(1900).is_some()),
        (true, true)
    );
    symbol
        .change(
            DisplayItem {
                x1: 77,
                ..vector(1900)
            },
            &[],
        )
        .unwrap();
    assert_eq!(symbol.item(1900).unwrap().x1, 77);
}

/// A chain of symbols, each of which calls the next.
fn chain(symbols: &mut Symbols, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let mut symbol = Symbol::default();
        symbol
            .add(DisplayItem::call(1, number + 1, 0, 0), &[])
            .unwrap();
        symbols
            .put(&DisplayClientLimits::default(), number, symbol)
            .unwrap();
    }
}

/// Units of work, not time: a chain costs what its bytes bring, in whatever order it is defined.
#[test]
fn a_long_chain_of_symbols_costs_no_search() {
    for reversed in [false, true] {
        let mut symbols = Symbols::default();
        if reversed {
            (0..60_000)
                .rev()
                .for_each(|number| chain(&mut symbols, number..number + 1));
            assert_eq!(symbols.work, MOST_WORK, "what nobody calls makes no circle");
        } else {
            chain(&mut symbols, 0..60_000);
            assert!(
                symbols.work >= MOST_WORK - 60_000 * SYMBOL_WORK,
                "{}",
                symbols.work
            );
        }
        let mut last = Symbol::default();
        last.add(DisplayItem::call(1, 0, 0, 0), &[]).unwrap();
        assert_eq!(
            symbols.put(&DisplayClientLimits::default(), 60_000, last),
            Err(DisplayRefusal::Circle)
        );
    }
}

/// Calls of the head of a chain in a symbol that is called: looked through once as long as it is open, and else as its bytes allow.
#[test]
fn work_for_a_search_comes_from_bytes() {
    let mut symbols = Symbols::default();
    chain(&mut symbols, 1000..21_000);
    chain(&mut symbols, 1..2);
    symbols
        .put(&DisplayClientLimits::default(), 2, Symbol::default())
        .unwrap();
    symbols.earns(1 << 20);
    for id in 1..=2000 {
        symbols
            .add(
                &DisplayClientLimits::default(),
                2,
                DisplayItem::call(id, 1000, 0, 0),
                &[],
            )
            .unwrap();
    }
    let once = MOST_WORK - symbols.work;
    assert!((640_000..=680_000).contains(&once), "{once}");
    // Symbol 1 gets a call in turn, for which it has to be looked again.
    symbols
        .put(&DisplayClientLimits::default(), 30_000, {
            let mut top = Symbol::default();
            top.add(DisplayItem::call(1, 1, 0, 0), &[]).unwrap();
            top
        })
        .unwrap();
    let mut opened = 0;
    let refused = loop {
        symbols
            .add(
                &DisplayClientLimits::default(),
                1,
                DisplayItem::call(10_000 + opened, 50_000, 0, 0),
                &[],
            )
            .unwrap();
        symbols.earns(40);
        opened += 1;
        if let Err(why) = symbols.add(
            &DisplayClientLimits::default(),
            2,
            DisplayItem::call(10_000 + opened, 1000, 0, 0),
            &[],
        ) {
            break why;
        }
    };
    assert_eq!((refused, opened), (DisplayRefusal::Work, 6));
    // What was not looked through to its end is not taken for harmless.
    symbols
        .put(&DisplayClientLimits::default(), 21_000, Symbol::default())
        .unwrap();
    symbols.earns(1 << 20);
    assert_eq!(
        symbols.add(
            &DisplayClientLimits::default(),
            21_000,
            DisplayItem::call(1, 1000, 0, 0),
            &[]
        ),
        Err(DisplayRefusal::Circle)
    );
    // Calls that are gone, whichever way they went, call nobody.
    symbols.delete(1).unwrap();
    assert!(!symbols.callers.contains_key(&2));
    let mut other = Symbol::default();
    other.add(vector(1), &[]).unwrap();
    symbols
        .put(&DisplayClientLimits::default(), 2, other)
        .unwrap();
    assert_eq!(symbols.callers.get(&1000), None);
}

#[test]
fn what_items_hold_is_kept_changed_and_given_back() {
    let mut symbol = Symbol::default();
    let text = |id| DisplayItem::drawn(DisplayItemKind::Text, id, (0, 0), (0, 0));
    (0..4).for_each(|id| symbol.add(text(id), b"letters").unwrap());
    symbol.change(text(2), b"more").unwrap();
    (0..2).chain([3]).for_each(|id| symbol.delete(id).unwrap());
    assert_eq!(symbol.bytes_of(symbol.item(2).unwrap()), b"more");
    assert_eq!((symbol.items().len(), symbol.memory()), (1, 20 + 4 + 16));
    assert_eq!(symbol.add(vector(9), b"x"), Err(DisplayRefusal::Bytes));
    assert_eq!(
        symbol.add(
            DisplayItem::drawn(DisplayItemKind::Raster, 9, (0, 0), (9, 2)),
            &[0; 3]
        ),
        Err(DisplayRefusal::Bytes)
    );
}

#[test]
fn no_symbol_calls_itself_and_no_client_takes_more_than_it_may() {
    let mut symbols = Symbols::default();
    let calling = |called: u32| {
        let mut symbol = Symbol::default();
        symbol.add(DisplayItem::call(1, called, 0, 0), &[]).unwrap();
        symbol
    };
    symbols.put(&LIMITS, 1, calling(2)).unwrap();
    symbols.put(&LIMITS, 2, calling(3)).unwrap();
    assert_eq!(
        symbols.put(&LIMITS, 3, calling(1)),
        Err(DisplayRefusal::Circle)
    );
    assert_eq!(
        symbols.put(&LIMITS, 3, calling(3)),
        Err(DisplayRefusal::Circle)
    );
    symbols.put(&LIMITS, 3, Symbol::default()).unwrap();
    assert_eq!(
        symbols.add(&LIMITS, 3, DisplayItem::call(1, 1, 0, 0), &[]),
        Err(DisplayRefusal::Circle)
    );
    symbols.put(&LIMITS, 4, Symbol::default()).unwrap();
    assert_eq!(
        symbols.put(&LIMITS, 5, Symbol::default()),
        Err(DisplayRefusal::TooMany)
    );
    let full = (1..)
        .find_map(|id| {
            symbols
                .add(&LIMITS, 4, vector(id), &[])
                .err()
                .map(|why| (id, why))
        })
        .unwrap();
    assert_eq!(full, ((1 << 20) / 20 - 1, DisplayRefusal::Memory));
    let counted: usize = (1..=4)
        .filter_map(|number| symbols.get(number))
        .map(Symbol::memory)
        .sum();
    assert_eq!(symbols.memory(), counted);
    symbols.delete(4).unwrap();
    assert_eq!(symbols.memory(), 40);
}
