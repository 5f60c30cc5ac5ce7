//! Lays out text in aligned columns, and wraps text.

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// The alignment of a name column followed by columns of figures.
pub(crate) const fn name_and_figures<const COLUMNS: usize>() -> [Align; COLUMNS] {
    let mut align = [Align::Right; COLUMNS];
    align[0] = Align::Left;
    align
}

/// Spaces between two columns.
const GAP: usize = 2;

/// The width of a text on a terminal, in characters; all characters printed here are one column wide.
pub(crate) fn width(text: &str) -> usize {
    text.chars().count()
}

/// Breaks a text at spaces into lines of at most `most` characters, unless a word is longer. Leading spaces are kept.
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

/// The width that each column needs.
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

/// One line of a table, without trailing spaces.
pub(crate) fn line(cells: &[String], widths: &[usize], align: &[Align]) -> String {
    line_with_gap(cells, widths, align, GAP)
}

/// One line of a table with `gap` spaces between columns, without trailing spaces.
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
            // `format!` allows no larger width.
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

/// The width of a line with columns of these widths.
pub(crate) fn total(widths: &[usize]) -> usize {
    total_with_gap(widths, GAP)
}

/// The width of a line with columns of these widths and `gap` spaces between them.
pub(crate) fn total_with_gap(widths: &[usize], gap: usize) -> usize {
    widths.iter().sum::<usize>() + gap * widths.len().saturating_sub(1)
}

/// The usual gap between columns, or one space if a line would be wider than `most` with it.
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
