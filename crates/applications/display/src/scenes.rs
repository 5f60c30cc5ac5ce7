//! The pictures of the paper's benchmarks (Lantz, Nowicki and Theimer 1985, section 3.1.1): the fully connected polygon of 36 corners, an
//! array of 5 by 6 NMOS inverters of 26 rectangles, and letters.
//!
//! The paper does not print where the rectangles of an inverter lie: these follow Mead and Conway's design rules, in four layers.

use crate::item::{DisplayItem, DisplayItemKind};

/// The number of corners of the polygon.
pub const CORNERS: usize = 36;
/// The radius of the polygon, pixels.
pub const RADIUS: f64 = 350.0;
/// Columns and rows of the array of inverters.
pub const ARRAY: (i16, i16) = (6, 5);
/// The distance from one inverter to the next, pixels.
pub const PITCH: (i16, i16) = (64, 78);
/// The number of letters in a line of the text benchmark.
pub const LETTERS: usize = 80;

/// The fully connected polygon: a vector between every two corners.
#[must_use]
pub fn polygon() -> Vec<DisplayItem> {
    let corner = |number: usize| {
        let angle = std::f64::consts::TAU * number as f64 / CORNERS as f64;
        let at = |value: f64| (RADIUS + 10.0 + RADIUS * value).round() as i16;
        (at(angle.cos()), at(angle.sin()))
    };
    let pairs = (0..CORNERS).flat_map(|from| (from + 1..CORNERS).map(move |to| (from, to)));
    pairs
        .zip(1..)
        .map(|((from, to), id)| {
            DisplayItem::drawn(DisplayItemKind::Vector, id, corner(from), corner(to))
        })
        .collect()
}

/// The rectangles of a contact cut: diffusion, metal, and the cut through them.
fn cut() -> [(i16, i16, i16, i16, u8); 3] {
    [(0, 0, 7, 7, 1), (0, 0, 7, 7, 4), (2, 2, 5, 5, 0)]
}

/// `many` lines of 10 pixels, as `x11perf -line10` draws them, side by side and one below the other.
#[must_use]
pub fn short_lines(many: u32) -> Vec<DisplayItem> {
    let line = |number: u32| {
        let (x, y) = ((number % 64 * 12) as i16, (number / 64 % 128 * 6) as i16);
        DisplayItem::drawn(DisplayItemKind::Vector, number + 1, (x, y), (x + 9, y + 4))
    };
    (0..many).map(line).collect()
}

/// The rectangles of an inverter without its contact cuts: left, top, right, bottom, layer. They are 20, which with the 3 of a cut makes
/// the 23 defined rectangles that the paper states.
const OWN: [(i16, i16, i16, i16, u8); 20] = [
    (0, 0, 63, 7, 4),
    (0, 68, 63, 75, 4),
    (28, 4, 35, 72, 1),
    (20, 20, 43, 27, 2),
    (20, 16, 43, 33, 3),
    (8, 48, 47, 55, 2),
    (0, 48, 8, 55, 2),
    (28, 32, 55, 39, 1),
    (48, 32, 63, 39, 4),
    (24, 26, 39, 35, 2),
    (20, 30, 27, 37, 1),
    (36, 60, 43, 67, 1),
    (12, 60, 27, 64, 2),
    (40, 44, 59, 47, 2),
    (48, 31, 57, 40, 1),
    (50, 33, 55, 38, 4),
    (51, 34, 54, 37, 0),
    (24, 33, 33, 42, 2),
    (26, 35, 31, 40, 1),
    (27, 36, 30, 39, 0),
];
/// The positions of an inverter's two contact cuts: to the supply and to ground.
const CUTS: [(i16, i16); 2] = [(28, 0), (28, 68)];

fn rectangle(of: (i16, i16, i16, i16, u8), id: u32, at: (i16, i16)) -> DisplayItem {
    let (left, top, right, bottom, layer) = of;
    let corners = ((left + at.0, top + at.1), (right + at.0, bottom + at.1));
    let colour = if layer == 0 { 1 } else { u32::from(layer) + 1 };
    DisplayItem {
        data: colour,
        ..DisplayItem::drawn(DisplayItemKind::Rectangle, id, corners.0, corners.1).stippled(layer)
    }
}

/// The array of inverters with every rectangle as an item of its own: 780 items.
#[must_use]
pub fn inverters() -> Vec<DisplayItem> {
    let places = (0..ARRAY.1)
        .flat_map(|row| (0..ARRAY.0).map(move |column| (column * PITCH.0, row * PITCH.1)));
    let mut items = Vec::new();
    for (x, y) in places {
        let cuts = CUTS
            .into_iter()
            .flat_map(|(left, top)| cut().map(|one| (one, (x + left, y + top))));
        for (one, at) in OWN.into_iter().map(|one| (one, (x, y))).chain(cuts) {
            items.push(rectangle(one, items.len() as u32 + 1, at));
        }
    }
    items
}

/// The same array as three symbols: the contact cut, the inverter that calls it, and the array that calls the inverter.
#[must_use]
pub fn structured_inverters(numbers: [u32; 3]) -> [Vec<DisplayItem>; 3] {
    let [cut_number, inverter_number, _] = numbers;
    let cut = cut()
        .into_iter()
        .zip(1..)
        .map(|(one, id)| rectangle(one, id, (0, 0)))
        .collect();
    let mut inverter: Vec<DisplayItem> = OWN
        .into_iter()
        .zip(1..)
        .map(|(one, id)| rectangle(one, id, (0, 0)))
        .collect();
    inverter.extend(
        CUTS.into_iter()
            .zip(OWN.len() as u32 + 1..)
            .map(|((x, y), id)| DisplayItem::call(id, cut_number, x, y)),
    );
    let places = (0..ARRAY.1)
        .flat_map(|row| (0..ARRAY.0).map(move |column| (column * PITCH.0, row * PITCH.1)));
    let array = places
        .zip(1..)
        .map(|((x, y), id)| DisplayItem::call(id, inverter_number, x, y))
        .collect();
    [cut, inverter, array]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::{self, SymbolPlacement};
    use crate::pixels::Pixels;
    use crate::symbols::{DisplayClientLimits, Symbol, Symbols};

    fn symbol(items: &[DisplayItem]) -> Symbol {
        let mut symbol = Symbol::default();
        items
            .iter()
            .for_each(|item| symbol.add(*item, &[]).unwrap());
        symbol
    }

    #[test]
    fn the_pictures_have_as_many_items_as_the_paper_says_and_take_as_much_memory() {
        let (polygon, array) = (polygon(), inverters());
        assert_eq!(
            (polygon.len(), array.len()),
            (CORNERS * (CORNERS - 1) / 2, 780)
        );
        assert_eq!(
            (symbol(&polygon).memory(), symbol(&array).memory()),
            (12_600, 15_600)
        );
        let long: f64 = polygon
            .iter()
            .map(|v| f64::from(v.x1 - v.x0).hypot(f64::from(v.y1 - v.y0)))
            .sum();
        // Printed: 288,364 pixels.
        assert!((long / 288_364.0 - 1.0).abs() < 0.002, "{long}");
        let [cut, inverter, calls] = structured_inverters([1, 2, 3]);
        // 23 rectangles are defined, two cuts called in the inverter, which is called 30 times.
        assert_eq!((cut.len(), inverter.len(), calls.len()), (3, 22, 30));
    }

    #[test]
    fn structure_changes_nothing_that_is_seen() {
        let mut symbols = Symbols::default();
        let limits = DisplayClientLimits::default();
        symbols.put(&limits, 9, symbol(&inverters())).unwrap();
        for (number, items) in (1..).zip(structured_inverters([1, 2, 3])) {
            symbols.put(&limits, number, symbol(&items)).unwrap();
        }
        let place = SymbolPlacement {
            at: (0, 0),
            scale: 256,
            turns: 0,
        };
        let (mut plain, mut structured) = (Pixels::new(400, 400), Pixels::new(400, 400));
        assert_eq!(
            draw::draw_symbol(&mut plain, &symbols, 9, place),
            (780, true)
        );
        assert_eq!(
            draw::draw_symbol(&mut structured, &symbols, 3, place),
            (780 + 30 + 60, true)
        );
        assert_eq!(plain, structured);
    }
}
