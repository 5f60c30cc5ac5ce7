//! Hit testing: which items are at a point of a window, the last drawn first, each with the calls that lead to it. An area is hit wherever
//! it is painted, whatever its stipple leaves out; text and rasters within their bounding box; lines within two pixels.

use crate::draw::{DEEPEST, SymbolPlacement, points};
use crate::font::CELL;
use crate::item::{DisplayItem, DisplayItemKind};
use crate::pixels::{PixelPoint, is_filled};
use crate::symbols::{Symbol, Symbols};

/// The distance within which a line is hit, pixels.
const NEAR: i64 = 2;
/// The limit on items and points that are examined for one event.
const MOST_LOOKS: usize = 1_000_000;
/// Points of the drawn curve per point of a spline item.
const SPLINE: usize = 17;
/// The limit on items and calls that are reported for one event.
pub const MOST_HITS: usize = 32;

/// An item that was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The symbol that contains the item.
    pub symbol: u32,
    /// The item's id in that symbol.
    pub item: u32,
}

/// The items at a point, the last drawn first; each is followed by the calls that lead to it, innermost first. Also whether all candidates
/// were examined.
#[must_use]
pub fn find_hits(
    symbols: &Symbols,
    number: u32,
    place: SymbolPlacement,
    at: PixelPoint,
) -> (Vec<Hit>, bool) {
    let mut search = DisplayHitSearch {
        symbols,
        at,
        found: Vec::new(),
        path: Vec::new(),
        looks: 0,
    };
    search.symbol(number, place);
    (search.found, search.looks <= MOST_LOOKS)
}

struct DisplayHitSearch<'s> {
    symbols: &'s Symbols,
    at: PixelPoint,
    found: Vec<Hit>,
    path: Vec<Hit>,
    looks: usize,
}

impl DisplayHitSearch<'_> {
    fn symbol(&mut self, number: u32, place: SymbolPlacement) {
        // As deep as drawing goes.
        let Some(symbol) = self
            .symbols
            .get(number)
            .filter(|_| self.path.len() <= DEEPEST)
        else {
            return;
        };
        for item in symbol.items().iter().rev() {
            self.looks += looks(symbol, item);
            if self.looks > MOST_LOOKS || self.found.len() >= MOST_HITS {
                return;
            }
            let hit = Hit {
                symbol: number,
                item: item.id,
            };
            if item.kind == Some(DisplayItemKind::Call) {
                self.path.push(hit);
                self.symbol(item.data, place.of_call(item));
                self.path.pop();
            } else if is_at(symbol, item, &place, self.at) {
                self.found.push(hit);
                self.found.extend(self.path.iter().rev());
            }
        }
    }
}

/// The cost of testing an item, in looks ([`MOST_LOOKS`]).
fn looks(symbol: &Symbol, item: &DisplayItem) -> usize {
    let points = || symbol.bytes_of(item).len() / 4;
    match item.kind {
        Some(DisplayItemKind::Polyline | DisplayItemKind::Fill) => 1 + points(),
        Some(DisplayItemKind::Spline) => 1 + SPLINE * points(),
        _ => 1,
    }
}

/// Whether an item, placed like this, is at a point.
fn is_at(symbol: &Symbol, item: &DisplayItem, place: &SymbolPlacement, at: PixelPoint) -> bool {
    let corner = |x: i16, y: i16| place.point((i32::from(x), i32::from(y)));
    let (from, to) = (corner(item.x0, item.y0), corner(item.x1, item.y1));
    let within = |a: PixelPoint, b: PixelPoint| {
        (a.0.min(b.0)..=a.0.max(b.0)).contains(&at.0)
            && (a.1.min(b.1)..=a.1.max(b.1)).contains(&at.1)
    };
    match item.kind {
        Some(DisplayItemKind::Vector) => is_near(from, to, at),
        Some(DisplayItemKind::Rectangle) => within(from, to),
        Some(DisplayItemKind::Text) => {
            let long = i32::try_from(symbol.bytes_of(item).len()).unwrap_or(i32::MAX / 16);
            within(
                from,
                (
                    from.0.saturating_add(CELL.0 * long - 1),
                    from.1.saturating_add(CELL.1 - 1),
                ),
            )
        }
        Some(DisplayItemKind::Raster) => {
            let (right, below) = (i32::from(item.x1) - 1, i32::from(item.y1) - 1);
            within(
                from,
                (from.0.saturating_add(right), from.1.saturating_add(below)),
            )
        }
        Some(DisplayItemKind::Polyline | DisplayItemKind::Spline) => points(symbol, item, place)
            .windows(2)
            .any(|pair| is_near(pair[0], pair[1], at)),
        Some(DisplayItemKind::Fill) => is_filled(&points(symbol, item, place), at),
        Some(DisplayItemKind::Call) | None => false,
    }
}

/// Whether a point is at most [`NEAR`] pixels from a line.
fn is_near(from: PixelPoint, to: PixelPoint, at: PixelPoint) -> bool {
    let (dx, dy) = (
        i64::from(to.0) - i64::from(from.0),
        i64::from(to.1) - i64::from(from.1),
    );
    let (px, py) = (
        i64::from(at.0) - i64::from(from.0),
        i64::from(at.1) - i64::from(from.1),
    );
    let square = dx * dx + dy * dy;
    if square == 0 {
        return px.abs().max(py.abs()) <= NEAR;
    }
    // Beyond an end, that end is the nearest point.
    let along = (px * dx + py * dy).clamp(0, square);
    // The distance from the nearest point of the line, times the square of its length. Nested calls may place things far away, hence 128
    // bits.
    let off =
        |p: i64, d: i64| i128::from(p) * i128::from(square) - i128::from(along) * i128::from(d);
    let (ex, ey, near) = (
        off(px, dx),
        off(py, dy),
        i128::from(NEAR) * i128::from(square),
    );
    // The first two keep the squares within 128 bits.
    ex.abs() <= near && ey.abs() <= near && ex * ex + ey * ey <= near * near
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw;
    use crate::pixels::Pixels;
    use crate::symbols::DisplayClientLimits;

    const HERE: SymbolPlacement = SymbolPlacement {
        at: (0, 0),
        scale: 256,
        turns: 0,
    };

    /// An item in symbol 1, which symbol 2 calls.
    fn called(item: DisplayItem, bytes: &[u8], call: DisplayItem) -> Symbols {
        let (mut inner, mut outer, mut symbols) =
            (Symbol::default(), Symbol::default(), Symbols::default());
        inner.add(item, bytes).unwrap();
        outer.add(call, &[]).unwrap();
        symbols
            .put(&DisplayClientLimits::default(), 1, inner)
            .unwrap();
        symbols
            .put(&DisplayClientLimits::default(), 2, outer)
            .unwrap();
        symbols
    }

    /// Pixels that are painted and not hit, and that are hit and not painted.
    fn differing(
        symbols: &Symbols,
        number: u32,
        place: SymbolPlacement,
    ) -> (Vec<PixelPoint>, Vec<PixelPoint>) {
        let mut pixels = Pixels::new(90, 90);
        draw::draw_symbol(&mut pixels, symbols, number, place);
        let all = (0..90).flat_map(|y| (0..90).map(move |x| (x, y)));
        let is_painted = |at: PixelPoint| pixels.at(at) != Some(0);
        let differ =
            all.filter(|at| is_painted(*at) == find_hits(symbols, number, place, *at).0.is_empty());
        differ.partition(|at| is_painted(*at))
    }

    #[test]
    fn what_is_drawn_last_is_hit_first_with_the_calls_that_lead_to_it() {
        let mut symbols = Symbols::default();
        let mut cell = Symbol::default();
        cell.add(
            DisplayItem::drawn(DisplayItemKind::Rectangle, 1, (0, 0), (9, 9)),
            &[],
        )
        .unwrap();
        cell.add(
            DisplayItem::drawn(DisplayItemKind::Vector, 2, (0, 0), (9, 9)),
            &[],
        )
        .unwrap();
        let mut array = Symbol::default();
        array.add(DisplayItem::call(10, 1, 0, 0), &[]).unwrap();
        array
            .add(
                DisplayItem {
                    x1: 512,
                    ..DisplayItem::call(11, 1, 100, 0)
                },
                &[],
            )
            .unwrap();
        symbols
            .put(&DisplayClientLimits::default(), 1, cell)
            .unwrap();
        symbols
            .put(&DisplayClientLimits::default(), 2, array)
            .unwrap();
        let hit = |symbol, item| Hit { symbol, item };
        assert_eq!(
            find_hits(&symbols, 2, HERE, (5, 5)).0,
            [hit(1, 2), hit(2, 10), hit(1, 1), hit(2, 10)]
        );
        // Twice as large, off the line.
        assert_eq!(
            find_hits(&symbols, 2, HERE, (117, 3)).0,
            [hit(1, 1), hit(2, 11)]
        );
        assert_eq!(find_hits(&symbols, 2, HERE, (50, 5)).0, []);
    }

    #[test]
    fn a_fill_is_hit_where_it_is_painted() {
        let points = [(9, 21), (-23, 8), (-20, -9), (15, -19)];
        let bytes: Vec<u8> = points
            .iter()
            .flat_map(|(x, y): &(i16, i16)| [x.to_be_bytes(), y.to_be_bytes()].concat())
            .collect();
        for (scale, turns, view) in [
            (256, 0, 256),
            (256, 0, 200),
            (256, 1, 256),
            (300, 1, 256),
            (300, 2, 200),
        ] {
            let call = DisplayItem {
                x1: scale,
                y1: turns,
                ..DisplayItem::call(2, 1, 40, 40)
            };
            let symbols = called(
                DisplayItem::drawn(DisplayItemKind::Fill, 1, (0, 0), (0, 0)),
                &bytes,
                call,
            );
            assert_eq!(
                differing(
                    &symbols,
                    2,
                    SymbolPlacement {
                        scale: view,
                        ..HERE
                    }
                ),
                (vec![], vec![]),
                "{scale} {turns} {view}"
            );
        }
    }

    /// As far as calls within calls move, scale and turn it, no number is too large.
    #[test]
    fn what_lies_as_far_away_as_can_be_is_drawn_and_hit() {
        let bytes: Vec<u8> = [0x7f, 0xff, 0x80, 0x00, 0x80, 0x00, 0x7f, 0xff].repeat(2);
        for (kind, x, turns) in (1..8).flat_map(|kind| {
            [
                (kind, i16::MAX, 0),
                (kind, i16::MIN, 0),
                (kind, i16::MIN, 1),
            ]
        }) {
            let kind = DisplayItemKind::from_number(kind).unwrap();
            let mut symbols = Symbols::default();
            let mut inner = Symbol::default();
            let to = if kind == DisplayItemKind::Raster {
                (16, 8)
            } else {
                (i16::MIN, i16::MAX)
            };
            let has_bytes = matches!(
                kind,
                DisplayItemKind::Text
                    | DisplayItemKind::Polyline
                    | DisplayItemKind::Spline
                    | DisplayItemKind::Fill
                    | DisplayItemKind::Raster
            );
            let held = if has_bytes { bytes.as_slice() } else { &[] };
            inner
                .add(DisplayItem::drawn(kind, 1, (x, x), to), held)
                .unwrap();
            symbols
                .put(&DisplayClientLimits::default(), 0, inner)
                .unwrap();
            for number in 1..=64 {
                let mut symbol = Symbol::default();
                symbol
                    .add(
                        DisplayItem {
                            x1: i16::MAX,
                            y1: turns,
                            ..DisplayItem::call(1, number - 1, x, x)
                        },
                        &[],
                    )
                    .unwrap();
                symbols
                    .put(&DisplayClientLimits::default(), number, symbol)
                    .unwrap();
            }
            for scale in [1, 256, 1 << 16] {
                let place = SymbolPlacement {
                    at: (i32::from(x), i32::from(x)),
                    scale,
                    turns: 0,
                };
                draw::draw_symbol(&mut Pixels::new(20, 20), &symbols, 64, place);
                for at in [(0, 0), (i32::from(i16::MAX), i32::from(i16::MIN))] {
                    assert!(find_hits(&symbols, 64, place, at).1);
                }
            }
        }
    }

    /// Points count, not items: one event costs no more over a far curve than over many lines.
    #[test]
    fn looking_for_hits_ends_with_its_budget() {
        let far = |count: usize| {
            [[0x7f, 0x00, 0x7f, 0x00], [0x7f, 0x10, 0x7f, 0x10]]
                .concat()
                .repeat(count / 2)
        };
        for (kind, looked) in [
            (DisplayItemKind::Fill, 62),
            (DisplayItemKind::Polyline, 62),
            (DisplayItemKind::Spline, 3),
        ] {
            let (mut inner, mut outer, mut symbols) =
                (Symbol::default(), Symbol::default(), Symbols::default());
            inner
                .add(DisplayItem::drawn(kind, 1, (0, 0), (0, 0)), &far(16_000))
                .unwrap();
            outer
                .add(
                    DisplayItem::drawn(DisplayItemKind::Rectangle, 1, (0, 0), (9, 9)),
                    &[],
                )
                .unwrap();
            (2..=60_001).for_each(|id| outer.add(DisplayItem::call(id, 1, 0, 0), &[]).unwrap());
            symbols
                .put(&DisplayClientLimits::default(), 1, inner)
                .unwrap();
            symbols
                .put(&DisplayClientLimits::default(), 2, outer)
                .unwrap();
            let mut search = DisplayHitSearch {
                symbols: &symbols,
                at: (5, 5),
                found: Vec::new(),
                path: Vec::new(),
                looks: 0,
            };
            search.symbol(2, HERE);
            let one = looks(symbols.get(1).unwrap(), &symbols.get(1).unwrap().items()[0]);
            assert!(
                search.looks <= MOST_LOOKS + one + DEEPEST,
                "{kind:?}: {}",
                search.looks
            );
            assert_eq!(MOST_LOOKS / one, looked, "{kind:?}");
            assert_eq!(
                find_hits(&symbols, 2, HERE, (5, 5)),
                (vec![], false),
                "{kind:?}"
            );
        }
    }

    /// So many calls within each other are drawn, and hit.
    #[test]
    fn what_is_called_deepest_is_hit() {
        for depth in [1, 63, 64, 65, 66] {
            let mut symbols = Symbols::default();
            for number in 0..=depth {
                let mut symbol = Symbol::default();
                let square = DisplayItem::drawn(DisplayItemKind::Rectangle, 1, (3, 3), (5, 5));
                symbol
                    .add(
                        if number == 0 {
                            square
                        } else {
                            DisplayItem::call(1, number - 1, 0, 0)
                        },
                        &[],
                    )
                    .unwrap();
                symbols
                    .put(&DisplayClientLimits::default(), number, symbol)
                    .unwrap();
            }
            assert_eq!(
                differing(&symbols, depth, HERE),
                (vec![], vec![]),
                "{depth}"
            );
            let is_drawn = depth as usize <= DEEPEST;
            assert_eq!(
                find_hits(&symbols, depth, HERE, (4, 4)).0.is_empty(),
                !is_drawn,
                "{depth}"
            );
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(400))]

        /// Whatever is painted is hit, and of areas and full rasters nothing else is.
        #[test]
        fn what_is_hit_is_what_is_painted(
            kind in 1_u8..8, from in (-20_i16..70, -20_i16..70), to in (1_i16..60, 1_i16..60),
            points in proptest::collection::vec((-25_i16..25, -25_i16..25), 1..7),
            (scale, turns) in (1_i16..700, 0_i16..4), (at, view) in ((-20..60, -20..60), 1..700)
        ) {
            let kind = DisplayItemKind::from_number(kind).unwrap();
            let bytes = match kind {
                DisplayItemKind::Vector | DisplayItemKind::Rectangle | DisplayItemKind::Call => vec![],
                DisplayItemKind::Text => b"Ag".to_vec(),
                DisplayItemKind::Raster => vec![0xff; usize::try_from(to.0).unwrap().div_ceil(8) * usize::try_from(to.1).unwrap()],
                _ => points.iter().flat_map(|(x, y)| [x.to_be_bytes(), y.to_be_bytes()].concat()).collect(),
            };
            let call = DisplayItem { x1: scale, y1: turns, ..DisplayItem::call(2, 1, 20, 20) };
            let symbols = called(DisplayItem::drawn(kind, 1, from, to), &bytes, call);
            let (painted, hit) = differing(&symbols, 2, SymbolPlacement { at, scale: view, turns: 0 });
            proptest::prop_assert_eq!(painted, vec![]);
            if matches!(kind, DisplayItemKind::Rectangle | DisplayItemKind::Fill | DisplayItemKind::Raster) {
                proptest::prop_assert_eq!(hit, vec![]);
            }
        }
    }
}
