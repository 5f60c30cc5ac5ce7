//! The data of a page as one block of base64, so that no text in it can become markup: a JSON object with texts and small tables, and
//! columns of numbers.
//!
//! The format: the object's length (4 bytes, little endian), the object, then all columns; compressed with zlib. The object's
//! `columns` gives the place of each column after the object: `[offset, bytes, numbers]`. Base64 contains no `<`.

use super::packed_columns::PageColumn;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// The compression level: higher ones take much longer and save little.
const LEVEL: u8 = 5;

/// Packs the object and the columns into a block.
pub(super) fn pack(mut head: Map<String, Value>, columns: &[(String, PageColumn)]) -> String {
    let mut places = Map::new();
    let mut offset = 0;
    for (name, column) in columns {
        places.insert(
            name.clone(),
            json!([offset, column.bytes.len(), column.count]),
        );
        offset += column.bytes.len();
    }
    head.insert("columns".into(), places.into());
    let head = Value::Object(head).to_string();
    let mut block = Vec::with_capacity(4 + head.len() + offset);
    block.extend((head.len() as u32).to_le_bytes());
    block.extend(head.as_bytes());
    columns
        .iter()
        .for_each(|(_, column)| block.extend(&column.bytes));
    STANDARD.encode(miniz_oxide::deflate::compress_to_vec_zlib(&block, LEVEL))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The object and the bytes behind it.
    pub(in crate::page) fn unpack(text: &str) -> (Value, Vec<u8>) {
        let block =
            miniz_oxide::inflate::decompress_to_vec_zlib(&STANDARD.decode(text).unwrap()).unwrap();
        let length = u32::from_le_bytes([block[0], block[1], block[2], block[3]]) as usize;
        (
            serde_json::from_slice(&block[4..4 + length]).unwrap(),
            block[4 + length..].to_vec(),
        )
    }

    #[test]
    fn a_block_says_where_its_columns_are() {
        let mut columns = [
            ("a".to_owned(), PageColumn::default()),
            ("b".to_owned(), PageColumn::default()),
        ];
        columns[0].1.plain(300);
        columns[1].1.plain(7);
        let mut head = Map::new();
        head.insert("title".into(), "</script><b>".into());
        let text = pack(head, &columns);
        assert!(
            text.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
        );
        let (head, bytes) = unpack(&text);
        assert_eq!(head["title"], "</script><b>");
        assert_eq!(head["columns"], json!({"a": [0, 2, 1], "b": [2, 1, 1]}));
        assert_eq!(bytes, [0xac, 2, 7]);
    }
}
