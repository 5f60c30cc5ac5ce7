//! The headers ETag and If-None-Match (RFC 9110, sections 8.8.3 and 13.1.2): a block's tag is its checksum and length.

/// The tag of a block, or of a picture made of it.
pub(super) fn of(kind: &str, checksum: u32, length: u32) -> String {
    format!("\"{kind}-{checksum:08x}-{length}\"")
}

/// Whether a client has it already.
pub(super) fn matches(if_none_match: &str, tag: &str) -> bool {
    let weak = |one: &str| one.trim().trim_start_matches("W/") == tag;
    if_none_match.trim() == "*" || if_none_match.split(',').any(weak)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_found_among_others() {
        let tag = of("block", 0x1f, 512);
        assert_eq!(tag, "\"block-0000001f-512\"");
        for header in [tag.as_str(), "*", "\"a\", \"block-0000001f-512\"", "W/\"block-0000001f-512\""] {
            assert!(matches(header, &tag), "{header}");
        }
        for header in ["", "block-0000001f-512", "\"a\"", &of("png", 0x1f, 512)] {
            assert!(!matches(header, &tag), "{header}");
        }
    }
}
