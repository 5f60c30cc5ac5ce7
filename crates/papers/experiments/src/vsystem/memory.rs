//! Table 5-2: the memory of a picture as a display file (its list of items) and as a bitmap, and the number of items below which the file
//! is smaller.

use crate::printed_and_here::{self, PrintedValue};
use stackline_display::scenes::{inverters, polygon, structured_inverters};
use stackline_display::symbols::Symbol;
use stackline_report::sheet::{Sheet, SheetCell};

/// A picture of Table 5-2.
struct PictureInPrint {
    name: &'static str,
    /// The printed size of its display file, bytes.
    file: f64,
    /// The side of the square picture, pixels.
    side: f64,
    /// The printed size of its bitmap, bytes.
    bits: f64,
}

const PRINTED: [PictureInPrint; 3] = [
    PictureInPrint {
        name: "vector",
        file: 12_600.0,
        side: 800.0,
        bits: 80_000.0,
    },
    PictureInPrint {
        name: "rectangle, unstructured",
        file: 15_600.0,
        side: 400.0,
        bits: 34_000.0,
    },
    PictureInPrint {
        name: "rectangle, structured",
        file: 900.0,
        side: 400.0,
        bits: 34_000.0,
    },
];

pub(super) fn sheet() -> Sheet {
    let mut sheet = printed_and_here::sheet(
        "Table 5-2",
        "bytes of the display file and of the picture as a bitmap (width x height / 8)",
        &[
            ("benchmark", ""),
            ("value", "bytes"),
            ("items", "items"),
            ("even", "break-even at"),
        ],
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
    for (picture, (memory, items)) in PRINTED.into_iter().zip(here) {
        let bits = picture.side * picture.side / 8.0;
        let file = PrintedValue::new(picture.file, memory, 0)
            .because("calls take 20 bytes here; 14 would match the published size");
        let picture_bits = PrintedValue::new(picture.bits, bits, 0)
            .because("34,000 bytes hold 522 by 522 pixels; the text says about 400");
        for (value, compared) in [("display file", file), ("bits", picture_bits)] {
            sheet.rows.push(compared.row([
                SheetCell::text(picture.name),
                SheetCell::text(value),
                SheetCell::Number(items, 0),
                SheetCell::Number(bits / 20.0, 0),
            ]));
        }
    }
    let then = 23 * 20 + 32 * super::case::CALL_BYTES;
    sheet.note(format!(
        "An item takes 20 bytes, so a display file is smaller than the bitmap if the picture has fewer items than the last column shows. For the structured picture, 23 rectangles, two calls of the contact cut and 30 of the inverter are kept here; the published 900 bytes are less than 53 items of 20 bytes would take. With calls of 14 bytes, which need no second corner, the same items would take {then}; the simulated wire carries such calls.",
    ))
}
