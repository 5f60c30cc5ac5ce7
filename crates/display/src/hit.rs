//! Which items are at a place of a window: what is drawn last first, each with the symbols whose calls lead to it.

use crate::draw::{Place, points};
use crate::font::CELL;
use crate::item::{Item, Kind};
use crate::pixels::Point;
use crate::symbols::{Symbol, Symbols};

/// How far from a line is at it, pixels.
const NEAR: i64 = 2;
/// Items looked at, at most, and found.
const MOST_LOOKS: usize = 1_000_000;
/// See `MOST_LOOKS`.
pub const MOST_HITS: usize = 32;
const DEEPEST: usize = 64;

/// An item that was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The symbol that has it.
    pub symbol: u32,
    /// Its id there.
    pub item: u32,
}

/// The items at a place, the last drawn first: each item, then the calls that lead to it, from the inside.
#[must_use]
pub fn hits(symbols: &Symbols, number: u32, place: Place, at: Point) -> Vec<Hit> {
    let mut search = Search { symbols, at, found: Vec::new(), path: Vec::new(), looks: 0 };
    search.symbol(number, place);
    search.found
}

struct Search<'s> {
    symbols: &'s Symbols,
    at: Point,
    found: Vec<Hit>,
    path: Vec<Hit>,
    looks: usize,
}

impl Search<'_> {
    fn symbol(&mut self, number: u32, place: Place) {
        let Some(symbol) = self.symbols.get(number).filter(|_| self.path.len() < DEEPEST) else { return };
        for item in symbol.items().iter().rev() {
            self.looks += 1;
            if self.looks > MOST_LOOKS || self.found.len() >= MOST_HITS {
                return;
            }
            let hit = Hit { symbol: number, item: item.id };
            if item.kind == Some(Kind::Call) {
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

fn is_at(symbol: &Symbol, item: &Item, place: &Place, at: Point) -> bool {
    let corner = |x: i16, y: i16| place.point((i32::from(x), i32::from(y)));
    let (from, to) = (corner(item.x0, item.y0), corner(item.x1, item.y1));
    let within = |a: Point, b: Point| {
        (a.0.min(b.0)..=a.0.max(b.0)).contains(&at.0) && (a.1.min(b.1)..=a.1.max(b.1)).contains(&at.1)
    };
    match item.kind {
        Some(Kind::Vector) => is_near(from, to, at),
        Some(Kind::Rectangle) => within(from, to),
        Some(Kind::Text) => {
            let long = i32::try_from(symbol.bytes_of(item).len()).unwrap_or(i32::MAX / 16);
            within(from, (from.0.saturating_add(CELL.0 * long - 1), from.1.saturating_add(CELL.1 - 1)))
        }
        Some(Kind::Raster) => {
            let (right, below) = (i32::from(item.x1) - 1, i32::from(item.y1) - 1);
            within(from, (from.0.saturating_add(right), from.1.saturating_add(below)))
        }
        Some(Kind::Polyline | Kind::Spline) => {
            points(symbol, item, place).windows(2).any(|pair| is_near(pair[0], pair[1], at))
        }
        Some(Kind::Fill) => is_inside(&points(symbol, item, place), at),
        Some(Kind::Call) | None => false,
    }
}

/// Whether a place is at most two pixels from a line.
fn is_near(from: Point, to: Point, at: Point) -> bool {
    let (dx, dy) = (i64::from(to.0) - i64::from(from.0), i64::from(to.1) - i64::from(from.1));
    let (px, py) = (i64::from(at.0) - i64::from(from.0), i64::from(at.1) - i64::from(from.1));
    let square = dx * dx + dy * dy;
    if square == 0 {
        return px.abs().max(py.abs()) <= NEAR;
    }
    let along = (px * dx + py * dy).clamp(0, square);
    // The distance from the nearest place of the line, times the square of its length.
    let (ex, ey) = (i128::from(px * square - along * dx), i128::from(py * square - along * dy));
    ex * ex + ey * ey <= i128::from(NEAR * NEAR) * i128::from(square) * i128::from(square)
}

fn is_inside(points: &[Point], at: Point) -> bool {
    let ends = points.iter().zip(points.iter().skip(1).chain(points.first()));
    let crossed = ends.filter(|(a, b)| {
        (a.1 <= at.1) != (b.1 <= at.1) && {
            let x = i64::from(at.1 - a.1) * i64::from(b.0 - a.0) / i64::from(b.1 - a.1) + i64::from(a.0);
            i64::from(at.0) < x
        }
    });
    crossed.count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::Limits;

    #[test]
    fn what_is_drawn_last_is_hit_first_with_the_calls_that_lead_to_it() {
        let mut symbols = Symbols::default();
        let mut cell = Symbol::default();
        cell.add(Item::drawn(Kind::Rectangle, 1, (0, 0), (9, 9)), &[]).unwrap();
        cell.add(Item::drawn(Kind::Vector, 2, (0, 0), (9, 9)), &[]).unwrap();
        let mut array = Symbol::default();
        array.add(Item::call(10, 1, 0, 0), &[]).unwrap();
        array.add(Item { x1: 512, ..Item::call(11, 1, 100, 0) }, &[]).unwrap();
        symbols.put(&Limits::default(), 1, cell).unwrap();
        symbols.put(&Limits::default(), 2, array).unwrap();
        let place = Place { at: (0, 0), scale: 256, turns: 0 };
        let hit = |symbol, item| Hit { symbol, item };
        assert_eq!(hits(&symbols, 2, place, (5, 5)), [hit(1, 2), hit(2, 10), hit(1, 1), hit(2, 10)]);
        // Twice as large, off the line.
        assert_eq!(hits(&symbols, 2, place, (117, 3)), [hit(1, 1), hit(2, 11)]);
        assert_eq!(hits(&symbols, 2, place, (50, 5)), []);
    }
}
