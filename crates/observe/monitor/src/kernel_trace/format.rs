//! The kernel's description of a trace event: the place of each field, and the names of its values.
//!
//! Offsets and names differ between kernels, so nothing is assumed beyond this text. No length is trusted.

use std::collections::BTreeMap;

/// The most fields of a format that are read; formats of the kernel have fewer.
const MOST_FIELDS: usize = 256;
/// Most named values that are read of a field.
const MOST_NAMES: usize = 4_096;

/// The place of a field in a record, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TraceFieldLayout {
    offset: usize,
    size: usize,
}

/// One event's description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TraceEventFormat {
    /// The number its records begin with.
    pub(crate) id: u16,
    /// The fields by name. They are few and looked up several times a record, which is faster in a list than in a map.
    fields: Vec<(String, TraceFieldLayout)>,
    /// By field, the names of its values.
    names: BTreeMap<String, BTreeMap<u64, String>>,
}

impl TraceEventFormat {
    /// Reads a `format` file; `None` when it has no number.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut format = Self::default();
        let mut id = None;
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("ID:") {
                id = rest.trim().parse().ok();
            } else if let Some(rest) = line.trim_start().strip_prefix("field:") {
                format
                    .fields
                    .extend(field(rest).filter(|_| format.fields.len() < MOST_FIELDS));
            } else if let Some(rest) = line.strip_prefix("print fmt:") {
                format.names = names(rest);
            }
        }
        Some(Self { id: id?, ..format })
    }

    /// Whether there is such a field.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.layout(field).is_some()
    }

    fn layout(&self, field: &str) -> Option<TraceFieldLayout> {
        let found = self.fields.iter().find(|(name, _)| name == field);
        found.map(|(_, layout)| *layout)
    }

    /// The bytes of a field of a record.
    pub(crate) fn bytes<'r>(&self, record: &'r [u8], field: &str) -> Option<&'r [u8]> {
        let field = self.layout(field)?;
        record.get(field.offset..field.offset.checked_add(field.size)?)
    }

    /// An unsigned number in a field, in the machine's byte order.
    pub(crate) fn number(&self, record: &[u8], field: &str) -> Option<u64> {
        let bytes = self.bytes(record, field)?;
        Some(match *bytes {
            [a] => a.into(),
            [a, b] => u16::from_ne_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
            _ => u64::from_ne_bytes(bytes.try_into().ok()?),
        })
    }

    /// A signed number in a field.
    pub(crate) fn signed(&self, record: &[u8], field: &str) -> Option<i64> {
        let bits = self
            .layout(field)?
            .size
            .checked_mul(8)
            .filter(|bits| (1..=64).contains(bits))?;
        let unused = 64 - u32::try_from(bits).ok()?;
        // Shifted up and back: the sign fills the unused bits.
        Some(self.number(record, field)?.cast_signed() << unused >> unused)
    }

    /// The text of a field that holds the text's place in the record (`__data_loc`: length in the upper 16 bits, offset in the
    /// lower), up to its first zero byte.
    pub(crate) fn text<'r>(&self, record: &'r [u8], field: &str) -> Option<&'r [u8]> {
        let place = u32::try_from(self.number(record, field)?).ok()?;
        let (offset, length) = ((place & 0xffff) as usize, (place >> 16) as usize);
        record
            .get(offset..offset + length)?
            .split(|byte| *byte == 0)
            .next()
    }

    /// The name of the field that follows another one in the record.
    pub(crate) fn behind(&self, field: &str) -> Option<&str> {
        let before = self.layout(field)?.offset;
        let behind = self
            .fields
            .iter()
            .filter(|(_, field)| field.offset > before);
        behind
            .min_by_key(|(_, field)| field.offset)
            .map(|(name, _)| name.as_str())
    }

    /// The name of a value.
    pub(crate) fn name(&self, field: &str, value: u64) -> Option<&str> {
        Some(self.names.get(field)?.get(&value)?.as_str())
    }

    /// The value of a name.
    pub(crate) fn value(&self, field: &str, name: &str) -> Option<u64> {
        self.names
            .get(field)?
            .iter()
            .find(|(_, other)| *other == name)
            .map(|(value, _)| *value)
    }
}

/// Parses the name and place of a field: `__u8 saddr[4]; offset:34; size:4; signed:0;` or `__data_loc char[] name; offset:8; size:4;
/// signed:0;`
fn field(text: &str) -> Option<(String, TraceFieldLayout)> {
    let mut parts = text.split(';').map(str::trim);
    let declared = parts.next()?;
    let declared = declared
        .strip_suffix(']')
        .and_then(|array| array.rsplit_once('['))
        .map_or(declared, |(name, _)| name);
    let name = declared
        .rsplit([' ', '*'])
        .next()
        .filter(|name| !name.is_empty())?;
    let (mut offset, mut size) = (None, None);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", number)) => offset = number.parse().ok(),
            Some(("size", number)) => size = number.parse().ok(),
            _ => {}
        }
    }
    Some((
        name.to_owned(),
        TraceFieldLayout {
            offset: offset?,
            size: size?,
        },
    ))
}

/// Parses the names of values, by field: `__print_symbolic(REC->reason, { 2, "NOT_SPECIFIED" }, { 3, "NO_SOCKET" })`
fn names(text: &str) -> BTreeMap<String, BTreeMap<u64, String>> {
    let mut all = BTreeMap::new();
    for call in text.split("__print_symbolic(REC->").skip(1) {
        let Some((field, mut rest)) = call.split_once(',') else {
            continue;
        };
        let mut names = BTreeMap::new();
        while let Some(pair) = rest.trim_start_matches([',', ' ']).strip_prefix('{') {
            let Some((pair, behind)) = pair.split_once('}') else {
                break;
            };
            let named = pair
                .split_once(',')
                .and_then(|(value, name)| Some((number(value)?, unquoted(name)?)));
            names.extend(named.filter(|_| names.len() < MOST_NAMES));
            rest = behind;
        }
        all.insert(field.trim().to_owned(), names);
    }
    all
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn unquoted(text: &str) -> Option<String> {
    Some(text.trim().strip_prefix('"')?.strip_suffix('"')?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_found_where_this_kernel_has_them() {
        let format = TraceEventFormat::parse(include_str!("samples/6.18/kfree_skb")).unwrap();
        assert_eq!(format.id, 2310);
        assert_eq!(
            format.layout("reason").unwrap(),
            TraceFieldLayout {
                offset: 36,
                size: 4
            }
        );
        assert_eq!(
            format.layout("rx_sk").unwrap(),
            TraceFieldLayout {
                offset: 24,
                size: 8
            },
            "a pointer"
        );
        assert_eq!(format.name("reason", 6), Some("SOCKET_RCVBUFF"));
        assert_eq!(format.value("reason", "NOT_SPECIFIED"), Some(2));
        let mut record = [0; 40];
        record[32..34].copy_from_slice(&2_048_u16.to_ne_bytes());
        record[36..].copy_from_slice(&65_u32.to_ne_bytes());
        assert_eq!(format.number(&record, "protocol"), Some(2_048));
        assert_eq!(
            format
                .number(&record, "reason")
                .and_then(|at| format.name("reason", at)),
            Some("QDISC_OVERLIMIT")
        );
        assert_eq!(format.number(&record[..38], "reason"), None, "too short");
    }

    #[test]
    fn an_older_kernel_lacks_what_came_later() {
        let format = TraceEventFormat::parse(include_str!("samples/5.10/kfree_skb")).unwrap();
        assert!(format.has("protocol") && !format.has("reason") && !format.has("rx_sk"));
        let format =
            TraceEventFormat::parse(include_str!("samples/5.10/tcp_retransmit_skb")).unwrap();
        assert!(format.has("saddr") && !format.has("err") && !format.has("nothing"));
    }

    proptest! {
        #[test]
        fn any_text_is_harmless(text in "(ID: [0-9]{0,7}\n|\tfield:[a-z \\[\\]*]{0,12};\toffset:[0-9]{0,20};\tsize:[0-9]{0,20};\n|print fmt: .{0,60}\n){0,6}", record: Vec<u8>) {
            if let Some(format) = TraceEventFormat::parse(&text) {
                for (field, _) in &format.fields {
                    let _ = format.number(&record, field);
                }
            }
        }

        #[test]
        fn any_print_format_is_harmless(text in "(__print_symbolic\\(REC->|[a-z]|,|\\{|\\}|\"|[0-9]| ){0,40}") {
            let _ = names(&text);
        }
    }
}
