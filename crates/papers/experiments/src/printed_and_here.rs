//! What is printed beside what came here: how far off it is, and why where that is more than a tenth. One place makes these columns, so that
//! no table leaves them out where they contradict.

use stackline_report::sheet::{Sheet, SheetCell, SheetColumn};

/// From this difference on a reason stands beside it, percent.
const NEEDS_REASON: f64 = 10.0;
/// What stands there where nobody knows.
const NOT_KNOWN: &str = "not known";

/// The columns, behind those of the values themselves.
pub(crate) const COLUMNS: [(&str, &str); 2] = [("off_percent", "off %"), ("why", "why")];

/// By how much a value is off what is printed, percent.
pub(crate) fn off_percent(printed: f64, here: f64) -> f64 {
    100.0 * (here / printed - 1.0)
}

/// The cells of those columns; `printed` is absent where the paper has no number there.
pub(crate) fn cells(printed: Option<f64>, here: f64, why: Option<&str>) -> [SheetCell; 2] {
    let Some(printed) = printed.filter(|printed| *printed != 0.0) else {
        return [SheetCell::Absent, SheetCell::text("")];
    };
    let off = off_percent(printed, here);
    let reason = match why {
        _ if off.abs() <= NEEDS_REASON => "",
        Some(why) => why,
        None => NOT_KNOWN,
    };
    [SheetCell::Number(off, 0), SheetCell::text(reason)]
}

/// One value that the paper prints.
pub(crate) struct PrintedValue {
    /// What it is, with its unit.
    pub(crate) what: &'static str,
    pub(crate) printed: f64,
    pub(crate) here: f64,
    /// Digits behind the point.
    pub(crate) digits: usize,
    /// Why it is off, where that is known.
    pub(crate) why: Option<&'static str>,
}

/// A table of values one below the other.
pub(crate) fn sheet(name: &str, title: &str, values: &[PrintedValue]) -> Sheet {
    let mut sheet = Sheet::new(
        name,
        title,
        &[("value", "value"), ("printed", "printed"), ("here", "here")],
    );
    sheet.columns.extend(columns());
    sheet.rows = values
        .iter()
        .map(|value| {
            let number = |figure| SheetCell::Number(figure, value.digits);
            let own = [
                SheetCell::text(value.what),
                number(value.printed),
                number(value.here),
            ];
            let compared = cells(Some(value.printed), value.here, value.why);
            own.into_iter().chain(compared).collect()
        })
        .collect();
    sheet
}

/// The columns as a sheet has them.
pub(crate) fn columns() -> impl Iterator<Item = SheetColumn> {
    COLUMNS.into_iter().map(|(key, head)| SheetColumn {
        head: head.into(),
        key,
    })
}

/// Whether each row of a sheet that has a difference above a tenth has a reason beside it, and whether it has the columns at all.
#[cfg(test)]
pub(crate) fn has_reasons(sheet: &Sheet) -> bool {
    let place = |key: &str| sheet.columns.iter().position(|column| column.key == key);
    let (Some(off), Some(why)) = (place("off_percent"), place("why")) else {
        return false;
    };
    sheet.rows.iter().all(|row| match (&row[off], &row[why]) {
        (SheetCell::Number(off, _), SheetCell::Text(why)) => {
            off.abs() <= NEEDS_REASON || !why.is_empty()
        }
        (SheetCell::Absent, _) => true,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_off_by_more_than_a_tenth_has_a_reason() {
        let why = |printed, here, why| match &cells(Some(printed), here, why)[1] {
            SheetCell::Text(words) => words.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(why(100.0, 109.0, Some("noise")), "", "near enough");
        assert_eq!(why(100.0, 111.0, Some("noise")), "noise");
        assert_eq!(why(100.0, 111.0, None), NOT_KNOWN);
        assert_eq!(why(100.0, 80.0, None), NOT_KNOWN);
        assert_eq!(cells(None, 80.0, None)[0], SheetCell::Absent);
    }

    #[test]
    fn a_table_has_its_columns() {
        let value = PrintedValue {
            what: "sum, Mbit/s",
            printed: 8.4,
            here: 12.6,
            digits: 1,
            why: None,
        };
        let sheet = sheet("T", "t", &[value]);
        assert!(has_reasons(&sheet));
        assert_eq!(
            sheet.rows[0][3],
            SheetCell::Number(off_percent(8.4, 12.6), 0)
        );
        assert!(!has_reasons(&Sheet::new("T", "t", &[("a", "a")])));
    }
}
