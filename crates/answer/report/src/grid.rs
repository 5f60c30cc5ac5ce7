//! Columns of text under each other, in plain characters; the first of them may be wrapped to make the lines fit.

/// How a column stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A name, and figures behind it.
pub(crate) const fn name_and_figures<const COLUMNS: usize>() -> [Align; COLUMNS] {
    let mut align = [Align::Right; COLUMNS];
    align[0] = Align::Left;
    align
}

/// Between two columns.
const GAP: usize = 2;

/// The width of a text on a terminal; everything printed here is one column a character.
pub(crate) fn width(text: &str) -> usize {
    text.chars().count()
}

/// Breaks a text at spaces into lines not wider than `most` where its words allow that. Spaces before it stay.
pub(crate) fn wrap(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.trim().is_empty() || width(line) + 1 + width(word) <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The width each column needs.
pub(crate) fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    (0..columns)
        .map(|at| {
            rows.iter()
                .filter_map(|row| row.get(at))
                .map(|cell| width(cell))
                .max()
                .unwrap_or(0)
        })
        .collect()
}

/// One line, without spaces at its end.
pub(crate) fn line(cells: &[String], widths: &[usize], align: &[Align]) -> String {
    line_with_gap(cells, widths, align, GAP)
}

/// One line with so many spaces between two columns, without spaces at its end.
pub(crate) fn line_with_gap(
    cells: &[String],
    widths: &[usize],
    align: &[Align],
    gap: usize,
) -> String {
    let padded = cells
        .iter()
        .zip(widths)
        .zip(align)
        .map(|((cell, width), align)| {
            // The widest that can be formatted.
            let width = (*width).min(usize::from(u16::MAX));
            match align {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            }
        });
    padded
        .collect::<Vec<_>>()
        .join(&" ".repeat(gap))
        .trim_end()
        .to_owned()
}

/// The width of a line of such columns.
pub(crate) fn total(widths: &[usize]) -> usize {
    total_with_gap(widths, GAP)
}

/// The width of a line of such columns with so many spaces between two of them.
pub(crate) fn total_with_gap(widths: &[usize], gap: usize) -> usize {
    widths.iter().sum::<usize>() + gap * widths.len().saturating_sub(1)
}

/// The usual spaces between two columns, or one where a line would be wider than `most` with them.
pub(crate) fn fitting_gap(widths: &[usize], most: usize) -> usize {
    if total(widths) > most { 1 } else { GAP }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_never_broken() {
        assert_eq!(
            wrap("10 bulk_get bytes 1024", 12),
            ["10 bulk_get", "bytes 1024"]
        );
        assert_eq!(
            wrap("averyveryverylongword x", 5),
            ["averyveryverylongword", "x"]
        );
        assert_eq!(wrap("  indented text", 10), ["  indented", "text"]);
        assert_eq!(wrap("", 5), [""]);
    }
}
