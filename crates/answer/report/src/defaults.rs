//! Notes on settings that a stack used by default: one line for each stack if all rows agree, else one for each different value with
//! its rows.

use stackline_analyze::Summary;
use std::collections::BTreeMap;

/// What the initiator and the responder of a row used for one setting; `None` if the side does not report it.
type Used<'s> = [Option<&'s str>; 2];

/// The notes, each with the rows (from 1) it holds for; without rows it holds for all rows of the stack that it names.
pub(crate) fn defaults(summaries: &[(usize, &Summary)]) -> Vec<(String, Vec<usize>)> {
    let mut stacks: Vec<&str> = Vec::new();
    for name in summaries.iter().map(|(_, summary)| name(summary)) {
        if !stacks.contains(&name) {
            stacks.push(name);
        }
    }
    let rows = |stack: &str| {
        summaries
            .iter()
            .filter(|(_, s)| name(s) == stack)
            .copied()
            .collect::<Vec<_>>()
    };
    stacks
        .into_iter()
        .flat_map(|stack| of_stack(stack, &rows(stack)))
        .collect()
}

/// The name of a stack without options, such as `tcp` of `tcp(nodelay)`; several stacks together stay as written.
fn name(summary: &Summary) -> &str {
    let several = summary.stack.contains(" + ");
    summary
        .stack
        .split('(')
        .next()
        .filter(|_| !several)
        .unwrap_or(&summary.stack)
}

fn of_stack(stack: &str, rows: &[(usize, &Summary)]) -> Vec<(String, Vec<usize>)> {
    let mut by_setting: BTreeMap<&str, Vec<(usize, Used<'_>)>> = BTreeMap::new();
    for (row, summary) in rows {
        for (setting, used) in of_row(summary) {
            by_setting.entry(setting).or_default().push((*row, used));
        }
    }
    let (agreed, various): (Vec<_>, Vec<_>) = by_setting
        .into_iter()
        .partition(|(_, all)| agreed(all).is_some());
    let texts = agreed
        .iter()
        .filter_map(|(setting, all)| Some(format!("{setting} {}", self::agreed(all)?)));
    let texts: Vec<String> = texts.collect();
    let mut lines = Vec::new();
    if !texts.is_empty() {
        lines.push((
            format!("{stack} by default: {}", texts.join(", ")),
            Vec::new(),
        ));
    }
    for (setting, all) in various {
        for (row, used) in all {
            let line = format!("{stack} by default: {setting} {}", said(used));
            match lines.iter_mut().find(|(other, _)| *other == line) {
                Some((_, rows)) => rows.push(row),
                None => lines.push((line, vec![row])),
            }
        }
    }
    lines
}

/// The default settings of a row. Sizes in bytes are left out, as the kernel tunes them from run to run (they are in the JSON);
/// except the receive buffer where data units can be lost, as it decides how many are.
fn of_row(summary: &Summary) -> BTreeMap<&str, Used<'_>> {
    let mut out: BTreeMap<&str, Used<'_>> = BTreeMap::new();
    for (at, side) in [&summary.initiator, &summary.responder]
        .into_iter()
        .enumerate()
    {
        for (setting, value) in &side.settings {
            let matters =
                !value.ends_with(" B") || (setting == "receive_buffer" && summary.lost.is_some());
            if !summary.options.contains(setting) && matters {
                out.entry(setting).or_default()[at] = Some(value);
            }
        }
    }
    out
}

/// The one value that every side of every row used.
fn agreed<'s>(all: &[(usize, Used<'s>)]) -> Option<&'s str> {
    let mut values = all
        .iter()
        .flat_map(|(_, used)| used.iter().flatten().copied());
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

fn said(used: Used<'_>) -> String {
    match used {
        [Some(a), Some(b)] if a == b => a.to_owned(),
        [Some(a), Some(b)] => format!("{a} at the initiator, {b} at the responder"),
        [Some(a), None] => format!("{a} at the initiator"),
        [None, b] => format!("{} at the responder", b.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(
        stack: &str,
        written: &[&str],
        initiator: &[(&str, &str)],
        responder: &[(&str, &str)],
    ) -> Summary {
        let settings = |all: &[(&str, &str)]| {
            all.iter()
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                .collect()
        };
        let mut summary = Summary {
            stack: stack.into(),
            ..Summary::default()
        };
        summary.options = written.iter().map(|name| (*name).to_owned()).collect();
        (summary.initiator.settings, summary.responder.settings) =
            (settings(initiator), settings(responder));
        summary
    }

    fn lines(rows: &[Summary]) -> Vec<(String, Vec<usize>)> {
        defaults(
            &rows
                .iter()
                .enumerate()
                .map(|(at, row)| (at + 1, row))
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn one_line_a_stack_whatever_was_written() {
        let usual = [("nodelay", "off"), ("receive", "block"), ("mss", "1448 B")];
        let spin = [("nodelay", "off"), ("receive", "spin")];
        let rows = [
            row("tcp", &[], &usual, &usual),
            row("udp", &[], &[("gso", "off")], &[("gso", "off")]),
            row("tcp(receive = spin)", &["receive"], &spin, &spin),
        ];
        let all = |line: &str| (line.to_owned(), vec![]);
        assert_eq!(
            lines(&rows),
            [
                all("tcp by default: nodelay off, receive block"),
                all("udp by default: gso off")
            ]
        );
        assert!(lines(&[row("tcp", &["nodelay"], &spin[..1], &[])]).is_empty());
        let together = row("tcp(nodelay) + udp", &["nodelay"], &[("gso", "off")], &[]);
        assert_eq!(
            lines(&[together]),
            [all("tcp(nodelay) + udp by default: gso off")]
        );
    }

    #[test]
    fn where_rows_or_sides_differ_the_rows_are_named() {
        let with = |a, b| {
            row(
                "tcp",
                &[],
                &[("congestion", a), ("nodelay", "off")],
                &[("congestion", b)],
            )
        };
        let rows = [with("bbr", "bbr"), with("cubic", "bbr"), with("bbr", "bbr")];
        let expected = [
            ("tcp by default: nodelay off", vec![]),
            ("tcp by default: congestion bbr", vec![1, 3]),
            (
                "tcp by default: congestion cubic at the initiator, bbr at the responder",
                vec![2],
            ),
        ];
        assert_eq!(
            lines(&rows),
            expected.map(|(line, rows)| (line.to_owned(), rows))
        );
    }
}
