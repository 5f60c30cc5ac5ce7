//! Parses lines of the text form into columns without allocating for each line. A usual line is parsed in one pass
//! over its bytes; an unusual one (an escaped character, more than 16 fields, a mistake) is parsed by `events::text`.

use memchr::{memchr, memchr_iter};
use stackline_events::table::FIELDS;
use stackline_events::text::{LONGEST, TextEvent, Wrong};
use stackline_events::value::canonical;
use stackline_events::{EventTable, EventValue};
use std::collections::BTreeMap;

/// Number of mistakes that are reported with their text.
const REPORTED: usize = 5;
/// The longest host name that is accepted, in bytes.
const LONGEST_HOST: usize = 1 << 12;
/// Nanoseconds in a second.
const NANOS: u64 = 1_000_000_000;

/// What was found in the lines of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ImportLineCounts {
    /// Number of lines, including empty ones and comments.
    pub(super) lines: u64,
    /// Number of lines that are not events, by cause.
    pub(super) refused: BTreeMap<&'static str, u64>,
    /// The first of them: line number and what is wrong.
    pub(super) first: Vec<(u64, String)>,
    /// Number of events dated after the import; they are kept.
    pub(super) future: u64,
    /// Line number of the first such event.
    pub(super) first_future: Option<u64>,
}

impl ImportLineCounts {
    /// Counts the current line as not an event.
    pub(super) fn refuse(&mut self, cause: &'static str, what: String) {
        *self.refused.entry(cause).or_default() += 1;
        if self.first.len() < REPORTED {
            self.first.push((self.lines, what));
        }
    }

    /// Counts a line that is longer than the buffer.
    pub(super) fn refuse_endless(&mut self) {
        self.lines += 1;
        self.refuse("too long", "it is longer than 1 MiB".into());
    }
}

/// Adds the events of whole lines to a table. Events later than `present_ns` are counted in `met` and kept.
pub(super) fn parse(
    bytes: &[u8],
    present_ns: u64,
    table: &mut EventTable,
    met: &mut ImportLineCounts,
) {
    let mut memo = Memo {
        slots: [(&[], 0); SLOTS],
    };
    let mut begin = 0;
    let ends =
        memchr_iter(b'\n', bytes).chain((bytes.last() != Some(&b'\n')).then_some(bytes.len()));
    for end in ends.filter(|_| !bytes.is_empty()) {
        met.lines += 1;
        let before = table.len();
        if usual(bytes, begin, end, table, &mut memo).is_none() {
            unusual(&bytes[begin..end], table, met);
        }
        if table.len() > before && table.at_ns[before] > present_ns {
            met.future += 1;
            met.first_future.get_or_insert(met.lines);
        }
        begin = end + 1;
    }
}

/// Parses the line at `begin..end` if it has the usual form. Returns `None` when `unusual` has to parse it; the table
/// is unchanged then.
fn usual<'t>(
    bytes: &'t [u8],
    begin: usize,
    end: usize,
    table: &mut EventTable,
    memo: &mut Memo<'t>,
) -> Option<()> {
    let mut end = end;
    while end > begin && bytes[end - 1] == b'\r' {
        end -= 1;
    }
    while end > begin && matches!(bytes[end - 1], b' ' | b'\t') {
        end -= 1;
    }
    if end > begin && bytes[end - 1] == b';' {
        end -= 1;
    }
    if end - begin >= LONGEST as usize || *bytes.get(begin)? == b'#' {
        return None;
    }
    let mut at = begin;
    let keyword = name(bytes, &mut at, end)?;
    let host = name(bytes, &mut at, end).filter(|host| host.len() <= LONGEST_HOST)?;
    let seconds = time(bytes, &mut at, end)?;
    // The nanoseconds are the line's last field, or data follow.
    skip_blanks(bytes, &mut at, end);
    let (nanos, length) = digits(bytes, at);
    at += length;
    if length == 0 || length > 9 || at > end {
        return None;
    }
    // The column of times is signed: it ends in the year 2262.
    let at_ns = seconds
        .checked_mul(NANOS)?
        .checked_add(nanos)
        .filter(|at| i64::try_from(*at).is_ok())?;
    let (mut values, mut count) = ([EventValue::Absent; FIELDS], 0);
    skip_blanks(bytes, &mut at, end);
    while at < end {
        if bytes[at] != b';' || count == FIELDS {
            return None;
        }
        at += 1;
        values[count] = value(bytes, &mut at, end)?;
        count += 1;
    }
    let (keyword, host) = (memo.number(keyword, table)?, memo.number(host, table)?);
    table.push_known(keyword, host, at_ns, &values[..count]);
    Some(())
}

/// Parses any line; one that is not an event is counted with its cause.
#[cold]
fn unusual(line: &[u8], table: &mut EventTable, met: &mut ImportLineCounts) {
    if line.len() as u64 >= LONGEST {
        return met.refuse("too long", "it is longer than 1 MiB".into());
    }
    let Ok(line) = std::str::from_utf8(line) else {
        return met.refuse("not UTF-8", "it is not UTF-8".into());
    };
    let line = line.trim_end_matches('\r');
    if line.starts_with('#') || line.trim_matches([' ', '\t']).is_empty() {
        return;
    }
    let event = match TextEvent::parse(line) {
        Ok(event) => event,
        Err(wrong) => return met.refuse(cause(&wrong), wrong.to_string()),
    };
    if i64::try_from(event.at_ns).is_err() {
        met.refuse(
            "time out of range",
            format!(
                "{} s after 1970 is later than the year 2262",
                event.at_ns / NANOS
            ),
        );
    } else if event.host.len() > LONGEST_HOST {
        met.refuse(
            "host name too long",
            "its host name is longer than 4 KiB".into(),
        );
    } else {
        table.push_event(&event);
    }
}

/// The name under which a cause is counted.
fn cause(wrong: &Wrong) -> &'static str {
    match wrong {
        Wrong::Short(_) => "cut short",
        Wrong::Empty("keyword") => "no keyword",
        Wrong::Empty("host") => "no host",
        Wrong::Number(_) | Wrong::Empty(_) => "no time",
        Wrong::Nanoseconds(_) | Wrong::Seconds(_) => "time out of range",
    }
}

#[inline]
fn skip_blanks(bytes: &[u8], at: &mut usize, end: usize) {
    while *at < end && matches!(bytes[*at], b' ' | b'\t') {
        *at += 1;
    }
}

/// Parses a non-empty field that another one follows, without the blanks around it. Moves behind its semicolon.
#[inline]
fn name<'t>(bytes: &'t [u8], at: &mut usize, end: usize) -> Option<&'t [u8]> {
    skip_blanks(bytes, at, end);
    let begin = *at;
    let semicolon = begin + memchr(b';', &bytes[begin..end])?;
    *at = semicolon + 1;
    let field = trimmed(&bytes[begin..semicolon]);
    (!field.is_empty()).then_some(field)
}

/// Parses the number of seconds. Moves behind its semicolon.
#[inline]
fn time(bytes: &[u8], at: &mut usize, end: usize) -> Option<u64> {
    skip_blanks(bytes, at, end);
    let (seconds, length) = digits(bytes, *at);
    *at += length;
    skip_blanks(bytes, at, end);
    if length == 0 || *at >= end || bytes[*at] != b';' {
        return None;
    }
    *at += 1;
    Some(seconds)
}

/// Parses a data field. Moves to the semicolon behind it, or to the end.
#[inline]
fn value<'t>(bytes: &'t [u8], at: &mut usize, end: usize) -> Option<EventValue<'t>> {
    skip_blanks(bytes, at, end);
    let begin = *at;
    let (number, length) = digits(bytes, begin);
    // A leading zero would be lost in a number: such a field is a text.
    let usual = length == 1 || (length > 1 && bytes[begin] != b'0');
    if usual && begin + length <= end {
        *at = begin + length;
        skip_blanks(bytes, at, end);
        if *at == end || bytes[*at] == b';' {
            return Some(EventValue::Number(number as i64));
        }
    }
    let stop = memchr(b';', &bytes[begin..end]).map_or(end, |length| begin + length);
    *at = stop;
    let field = trimmed(&bytes[begin..stop]);
    if field.is_empty() {
        return Some(EventValue::Absent);
    }
    if let Some(number) = canonical(field) {
        return Some(EventValue::Number(number));
    }
    // A `%` may be an escape, which `unusual` decodes.
    if memchr(b'%', field).is_some() {
        return None;
    }
    std::str::from_utf8(field).ok().map(EventValue::Text)
}

/// The field without the blanks at its end.
fn trimmed(field: &[u8]) -> &[u8] {
    let length = field
        .iter()
        .rposition(|byte| !matches!(byte, b' ' | b'\t'))
        .map_or(0, |last| last + 1);
    &field[..length]
}

/// The number formed by the digits from `at` on, and how many digits there are; (0, 0) for more than 18. Reads eight
/// digits at once.
#[inline]
fn digits(bytes: &[u8], at: usize) -> (u64, usize) {
    let Some(first) = bytes.get(at..).and_then(<[u8]>::first_chunk) else {
        return few_digits(bytes, at);
    };
    let (value, length) = eight_digits(*first);
    if length < 8 {
        return (value, length);
    }
    let Some(second) = bytes[at + 8..].first_chunk() else {
        return few_digits(bytes, at);
    };
    let (more, length) = eight_digits(*second);
    if length == 8 {
        return few_digits(bytes, at);
    }
    (value * TENS[length] + more, 8 + length)
}

/// Powers of ten by number of digits.
const TENS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// The number formed by the digits at the beginning of eight bytes, and how many digits there are.
#[inline]
fn eight_digits(bytes: [u8; 8]) -> (u64, usize) {
    let word = u64::from_le_bytes(bytes);
    // A byte's highest bit is set if the byte is not a digit. A carry may spoil the bits above the first such byte,
    // which are not used.
    // 0x46 carries for what is above `9`, 0x30 borrows for what is below `0`.
    let other = (word.wrapping_add(0x4646_4646_4646_4646)
        | word.wrapping_sub(0x3030_3030_3030_3030))
        & 0x8080_8080_8080_8080;
    let length = (other.trailing_zeros() / 8) as usize;
    if length == 0 {
        return (0, 0);
    }
    // Moves the digits to the end of the word, with zeros before them, then combines pairs, fours and eights of
    // digits.
    let digits = (word & 0x0f0f_0f0f_0f0f_0f0f) << (64 - 8 * length);
    let pairs = (digits.wrapping_mul(10 << 8 | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100 << 16 | 1) >> 16) & 0x0000_ffff_0000_ffff;
    (fours.wrapping_mul(10_000 << 32 | 1) >> 32, length)
}

/// Like [`digits`], one digit at a time: near the end of the bytes, or for 16 digits and more.
fn few_digits(bytes: &[u8], at: usize) -> (u64, usize) {
    let digits = bytes
        .get(at..)
        .unwrap_or_default()
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        // A nineteenth digit is read only to reject numbers of more than 18.
        .take(19);
    let (value, length) = digits.fold((0_u64, 0), |(value, length), digit| {
        (
            value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')),
            length + 1,
        )
    });
    if length == 19 {
        (0, 0)
    } else {
        (value, length)
    }
}

/// A small cache of the numbers of recent keywords and hosts, so that a usual one is found by one comparison.
struct Memo<'t> {
    slots: [(&'t [u8], u32); SLOTS],
}

/// Entries of the cache.
const SLOTS: usize = 64;

impl<'t> Memo<'t> {
    /// The number of a name in the table; `None` when the name may contain an escape or is not UTF-8.
    #[inline]
    fn number(&mut self, name: &'t [u8], table: &mut EventTable) -> Option<u32> {
        let mark = name.len()
            + usize::from(name[name.len() - 1]) * 5
            + usize::from(name[name.len() / 2]) * 3;
        let slot = &mut self.slots[mark % SLOTS];
        if slot.0 != name {
            if memchr(b'%', name).is_some() {
                return None;
            }
            *slot = (name, table.names.number(std::str::from_utf8(name).ok()?));
        }
        Some(slot.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use stackline_events::text::EventTextReader;

    fn parsed(bytes: &[u8]) -> (EventTable, ImportLineCounts) {
        let (mut table, mut met) = (EventTable::default(), ImportLineCounts::default());
        parse(bytes, u64::MAX, &mut table, &mut met);
        (table, met)
    }

    #[test]
    fn numbers_of_any_length_are_read() {
        for length in 1..=18 {
            let text = &"987654321098765432"[..length];
            for behind in ["", ";", " x", "        9"] {
                let bytes = format!("{text}{behind}");
                assert_eq!(
                    digits(bytes.as_bytes(), 0),
                    (text.parse().unwrap(), length),
                    "{bytes}"
                );
            }
        }
        assert_eq!(digits(b"1234567890123456789;", 0), (0, 0));
        assert_eq!(digits(b"", 0), (0, 0));
    }

    #[test]
    fn wrong_lines_are_counted_by_cause_and_reported() {
        let long = "x".repeat(5000);
        let lines = format!(
            "A; h; 1; 2; 3\n\n# words\nA; h; 1\nA; h; x; 2\nA; h; 1; 1000000000\nA; {long}; 1; 2\nA; h; 9999999999; 0\nA; h; 1; 2\r\n"
        );
        let (table, met) = parsed(&[lines.as_bytes(), b"A; h\xff; 1; 2\nB; h; 5; 6"].concat());
        assert_eq!((table.len(), met.lines), (3, 11));
        let causes: Vec<_> = met.refused.into_iter().collect();
        assert_eq!(
            causes,
            [
                ("cut short", 1),
                ("host name too long", 1),
                ("no time", 1),
                ("not UTF-8", 1),
                ("time out of range", 2)
            ]
        );
        assert_eq!(met.first[0].0, 4);
        assert!(
            met.first[0]
                .1
                .starts_with("the number of nanoseconds is missing")
        );
    }

    #[test]
    fn what_a_line_lacks_is_counted_apart_from_lines_that_are_cut() {
        let lines = "; h; 1795289216; 1; 1\n ;h;1;1\nX; ; 1795289216; 1; 1\nX;;1;1\nX; h; ; 1\nX; h; 1; ; 1\n";
        let cut = "X\nX;\nX; h\nX; h;\nX; ;\nX; h; 1\nX; h; 1;\n;\n";
        let (table, met) = parsed(format!("{lines}{cut}").as_bytes());
        let causes: Vec<_> = met.refused.into_iter().collect();
        assert_eq!(
            causes,
            [
                ("cut short", 8),
                ("no host", 2),
                ("no keyword", 2),
                ("no time", 2)
            ]
        );
        assert!(
            table.is_empty() && met.first[0].1.starts_with("the keyword is missing"),
            "{:?}",
            met.first
        );
    }

    #[test]
    fn what_is_later_than_the_present_is_kept_and_counted() {
        let (mut table, mut met) = (EventTable::default(), ImportLineCounts::default());
        parse(
            b"A; h; 1; 0\nA; h; 3; 0\nA; h; 4; 0\n",
            2 * NANOS,
            &mut table,
            &mut met,
        );
        assert_eq!((table.len(), met.future, met.first_future), (3, 2, Some(2)));
    }

    /// What the reader of single lines makes of it.
    fn slowly(bytes: &[u8]) -> (Vec<String>, u64) {
        let (mut lines, mut refused) = (Vec::new(), 0);
        for event in EventTextReader::new(bytes, "x") {
            match event {
                Ok(event) if i64::try_from(event.at_ns).is_ok() => {
                    let mut table = EventTable::default();
                    table.push_event(&event);
                    lines.push(table.event(0).to_string());
                }
                _ => refused += 1,
            }
        }
        (lines, refused)
    }

    proptest! {
        #[test]
        fn lines_are_read_as_the_reader_of_single_lines_does(
            lines in proptest::collection::vec("[AB]( |%41|%3B|;)?; ?[hk]{1,2} ?; ?[0-9]{1,21}; {0,2}[0-9]{1,10} ?(; ?(-?[0-9]{1,20}|[a-c%; 0-9]{0,5}| )){0,18};?\t?\r?", 0..9)
        ) {
            let text = lines.join("\n");
            let (table, met) = parsed(text.as_bytes());
            let (expected, refused) = slowly(text.as_bytes());
            let read: Vec<String> = (0..table.len()).map(|row| table.event(row).to_string()).collect();
            prop_assert_eq!(read, expected);
            prop_assert_eq!(met.refused.values().sum::<u64>(), refused);
        }

        #[test]
        fn hostile_bytes_are_harmless(bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b';'), Just(b'\n'), b'0'..=b'9'], 0..400)) {
            let (table, met) = parsed(&bytes);
            let (expected, refused) = slowly(&bytes);
            prop_assert_eq!(table.len(), expected.len());
            prop_assert_eq!(met.refused.values().sum::<u64>(), refused);
        }
    }
}
