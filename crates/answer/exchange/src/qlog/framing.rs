//! Splits qlog files into records: one JSON document, records behind separators (RFC 7464), or one record per line; and finds the
//! complete part of a document that was cut short.

use crate::json_mistake_place;
use serde_json::Value as Json;
use serde_json::error::Category;

/// The record separator of JSON-SEQ (RFC 7464).
const SEPARATOR: u8 = 0x1e;
/// The brackets that are open around an event of a document, and the text that closes the document behind it.
const AROUND_EVENT: (&[u8], &[u8]) = (b"{[{[", b"]}]}");
/// The same around a whole trace.
const AROUND_TRACE: (&[u8], &[u8]) = (b"{[", b"]}");

/// The byte between the records of a sequence; `None` for a single document.
pub(super) fn find_separator(bytes: &[u8]) -> Option<u8> {
    if bytes.contains(&SEPARATOR) {
        return Some(SEPARATOR);
    }
    let first = bytes.trim_ascii_start().split(|byte| *byte == b'\n').next();
    let header: Json = serde_json::from_slice(first?).ok()?;
    (is_header(&header) && header.get("traces").is_none()).then_some(b'\n')
}

/// Whether a record is the header of a qlog file.
pub(super) fn is_header(record: &Json) -> bool {
    ["qlog_version", "file_schema"]
        .iter()
        .any(|name| record.get(name).is_some())
}

/// The records that are not empty.
pub(super) fn records(bytes: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    bytes
        .split(move |byte| *byte == separator)
        .map(<[u8]>::trim_ascii)
        .filter(|record| !record.is_empty())
}

/// The document up to its last complete event before a mistake, closed behind it.
pub(super) fn whole_part(bytes: &[u8], mistake: &serde_json::Error) -> Option<Json> {
    let until = match mistake.classify() {
        Category::Eof => bytes.len(),
        _ => json_mistake_place(bytes, mistake),
    };
    let (end, closing) = last_whole(&bytes[..until])?;
    serde_json::from_slice(&[&bytes[..end], closing].concat()).ok()
}

/// The end of the last complete event or trace, and the text that closes the document there.
fn last_whole(bytes: &[u8]) -> Option<(usize, &'static [u8])> {
    let (mut open, mut last) = (Vec::new(), None);
    let (mut within_text, mut escaped) = (false, false);
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if within_text => escaped = true,
            b'"' => within_text = !within_text,
            _ if within_text => {}
            b'{' | b'[' => open.push(*byte),
            b'}' | b']' => {
                open.pop();
                let around = [AROUND_EVENT, AROUND_TRACE]
                    .into_iter()
                    .find(|(around, _)| open == *around);
                last = around.map_or(last, |(_, closing)| Some((at + 1, closing)));
            }
            _ => {}
        }
    }
    last
}
