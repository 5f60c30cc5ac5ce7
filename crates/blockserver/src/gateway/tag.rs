//! The headers ETag, If-Match and If-None-Match (RFC 9110, sections 8.8.3, 13.1.1 and 13.1.2): a block's tag is its checksum and length.

/// The tag of a block, or of a picture made of it.
pub(super) fn of(kind: &str, checksum: u32, length: u32) -> String {
    format!("\"{kind}-{checksum:08x}-{length}\"")
}

/// Whether a client has it already.
pub(super) fn matches(if_none_match: &str, tag: &str) -> bool {
    let weak = |one: &str| one.trim().trim_start_matches("W/") == tag;
    if_none_match.trim() == "*" || if_none_match.split(',').any(weak)
}

/// Whether what a client insists on is what is there: the strong comparison, which no weak tag passes.
pub(super) fn is_wanted(if_match: &str, tag: &str) -> bool {
    if_match.trim() == "*" || if_match.split(',').any(|one| one.trim() == tag)
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

    #[test]
    fn who_insists_on_a_tag_gets_that_one_only() {
        let tag = of("block", 0x1f, 512);
        for header in [tag.as_str(), "*", "\"a\", \"block-0000001f-512\""] {
            assert!(is_wanted(header, &tag), "{header}");
        }
        for header in ["", "\"a\"", "W/\"block-0000001f-512\""] {
            assert!(!is_wanted(header, &tag), "{header}");
        }
    }
}
