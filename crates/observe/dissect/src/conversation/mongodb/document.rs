//! Reads MongoDB documents (BSON), as far as they are held: the command in a request, and whether a response reports a failure.

use super::super::RedactedName;
use super::super::records::RecordFieldReader;
use stackline_redact::operation;

/// Commands whose first value is a collection.
const AT_COLLECTION: [&str; 20] = [
    "aggregate",
    "collMod",
    "collStats",
    "compact",
    "count",
    "create",
    "createIndexes",
    "delete",
    "distinct",
    "drop",
    "dropIndexes",
    "find",
    "findAndModify",
    "findandmodify",
    "insert",
    "killCursors",
    "listIndexes",
    "mapReduce",
    "update",
    "validate",
];
/// Types of BSON elements.
const DOUBLE: u8 = 1;
const STRING: u8 = 2;
const DOCUMENT: u8 = 3;
const ARRAY: u8 = 4;

/// A field of a document.
#[derive(Clone, Copy, Debug)]
struct BsonElement<'b> {
    kind: u8,
    name: &'b [u8],
    value: &'b [u8],
}

impl<'b> BsonElement<'b> {
    /// The value of a string, without its final zero byte.
    fn text(&self) -> Option<&'b [u8]> {
        let text = self.value.get(4..)?;
        (self.kind == STRING).then(|| text.strip_suffix(b"\0").unwrap_or(text))
    }

    /// The value of a boolean or an integer; of a double only whether it differs from 0.
    fn number(&self) -> Option<u64> {
        match (self.kind, self.value) {
            (DOUBLE, value) => {
                let bits = f64::from_bits(RecordFieldReader(value).little(8)?);
                Some(u64::from(bits != 0.0))
            }
            (8 | 16 | 18, value) => RecordFieldReader(value).little(value.len()),
            _ => None,
        }
    }

    /// The fields of a value that is itself a document or an array.
    fn elements(&self) -> BsonElements<'b> {
        let is_document = matches!(self.kind, DOCUMENT | ARRAY);
        elements(if is_document { self.value } else { &[] })
    }
}

/// The fields of a document, up to the first one that is not held or of unknown type.
#[derive(Clone, Copy, Debug)]
struct BsonElements<'b>(RecordFieldReader<'b>);

/// The fields of a document.
fn elements(document: &[u8]) -> BsonElements<'_> {
    BsonElements(RecordFieldReader(document.get(4..).unwrap_or_default()))
}

impl<'b> Iterator for BsonElements<'b> {
    type Item = BsonElement<'b>;

    fn next(&mut self) -> Option<BsonElement<'b>> {
        let fields = &mut self.0;
        let kind = u8::try_from(fields.number(1)?).ok()?;
        if kind == 0 {
            return None;
        }
        let name = fields.text();
        let announced = || usize::try_from(RecordFieldReader(fields.0).little(4)?).ok();
        // As in the BSON specification: strings leave the four bytes of their length out, documents
        // count them.
        let length = match kind {
            STRING | 13 | 14 => announced()?.checked_add(4)?,
            DOCUMENT | ARRAY => announced()?,
            5 => announced()?.checked_add(5)?,
            DOUBLE | 9 | 17 | 18 => 8,
            7 => 12,
            8 => 1,
            16 => 4,
            19 => 16,
            6 | 10 | 127 | 255 => 0,
            _ => return None,
        };
        // The last field may be held in part only.
        let value = fields.take(length.min(fields.0.len()))?;
        Some(BsonElement { kind, name, value })
    }
}

/// The name of a command, such as `find orders`: its first field, and the collection.
pub(super) fn command(document: &[u8]) -> Option<RedactedName> {
    let first = elements(document).next()?;
    let is_get_more = first.name == b"getMore";
    let named = |name: &[u8]| elements(document).find(|element| element.name == name);
    let is_at_collection = AT_COLLECTION
        .iter()
        .any(|command| command.as_bytes() == first.name);
    let collection = match is_get_more {
        true => named(b"collection").and_then(|element| element.text()),
        false => first.text().filter(|_| is_at_collection),
    };
    let name = operation::redact_named_command(first.name, collection.unwrap_or_default());
    let waits = named(b"maxAwaitTimeMS").is_some() || is_get_more && named(b"maxTimeMS").is_some();
    Some(if waits {
        operation::blocking(&name)
    } else {
        name
    })
}

/// The error code of a response that reports a failure; 0 if it has no code. `None` for a success.
pub(super) fn failure(document: &[u8]) -> Option<u64> {
    let code = |of: BsonElements<'_>| {
        of.into_iter()
            .find(|element| element.name == b"code")
            .and_then(|code| code.number())
    };
    for element in elements(document) {
        match element.name {
            b"ok" if element.number() == Some(0) => {
                return Some(code(elements(document)).unwrap_or(0));
            }
            b"writeConcernError" => return Some(code(element.elements()).unwrap_or(0)),
            b"writeErrors" => {
                let first = element.elements().next()?;
                return Some(code(first.elements()).unwrap_or(0));
            }
            _ => {}
        }
    }
    None
}
