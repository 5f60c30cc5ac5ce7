//! Table 5-2: memory of a display file and of the picture as bits, and from where on the file takes less.

use stackline_display::scenes::{inverters, polygon, structured_inverters};
use stackline_display::symbols::Symbol;
use stackline_report::sheet::{Sheet, SheetCell};

/// Bytes of a display file as printed, pixels of a side of the picture, bytes of it as printed.
const PRINTED: [(&str, f64, f64, f64); 3] = [
    ("vector", 12_600.0, 800.0, 80_000.0),
    ("rectangle, unstructured", 15_600.0, 400.0, 34_000.0),
    ("rectangle, structured", 900.0, 400.0, 34_000.0),
];

pub(super) fn sheet() -> Sheet {
    let columns = [
        ("benchmark", ""),
        ("printed", "printed"),
        ("here", "here"),
        ("bits_printed", "bitmap"),
        ("bits", "w x h / 8"),
        ("items", "items"),
        ("even", "even at"),
    ];
    let mut sheet = Sheet::new(
        "Table 5-2",
        "bytes of the display file and of the picture's bits",
        &columns,
    );
    let bytes = |items: &[stackline_display::item::DisplayItem]| {
        let mut symbol = Symbol::default();
        items.iter().for_each(|item| {
            let _ = symbol.add(*item, &[]);
        });
        (symbol.memory() as f64, items.len() as f64)
    };
    let structured = structured_inverters([1, 2, 3]);
    let structured = structured
        .iter()
        .map(|items| bytes(items))
        .fold((0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
    let here = [bytes(&polygon()), bytes(&inverters()), structured];
    for ((name, printed, side, bits), (memory, items)) in PRINTED.into_iter().zip(here) {
        let own = side * side / 8.0;
        sheet.rows.push(vec![
            SheetCell::text(name),
            SheetCell::Number(printed, 0),
            SheetCell::Number(memory, 0),
            SheetCell::Number(bits, 0),
            SheetCell::Number(own, 0),
            SheetCell::Number(items, 0),
            SheetCell::Number(own / 20.0, 0),
        ]);
    }
    let then = 23 * 20 + 32 * super::case::CALL_BYTES;
    sheet.note(format!(
        "An item takes 20 bytes, so a display file takes less than the bits while a picture has fewer items than the last column. Structured, \
         23 rectangles, two calls of the contact cut and 30 of the inverter are kept here; printed are 900 bytes, which 53 items of 20 bytes are \
         not. With calls of 14 bytes, which need no second corner, they would be {then}; the simulated wire has such calls.",
    ))
}
