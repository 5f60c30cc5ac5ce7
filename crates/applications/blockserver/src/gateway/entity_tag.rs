//! The headers ETag, If-Match and If-None-Match (RFC 9110, sections 8.8.3, 13.1.1 and 13.1.2). A block's tag consists of the master's
//! identity, the set's number (which is never used again), the checksum and the length: a set that was loaded again has other tags.

use crate::client::OpenSet;

/// The tag of a block, or of a picture made from it.
pub(super) fn format_entity_tag(kind: &str, set: &OpenSet, checksum: u32, length: u32) -> String {
    let (master, set) = (set.master as u64, set.id);
    format!("\"{kind}-{master:016x}-{set}-{checksum:08x}-{length}\"")
}

/// Whether If-None-Match names this tag (weak comparison): the client has the block already.
pub(super) fn matches_entity_tag(if_none_match: &str, tag: &str) -> bool {
    let weak = |one: &str| one.trim().trim_start_matches("W/") == tag;
    if_none_match.trim() == "*" || if_none_match.split(',').any(weak)
}

/// Whether If-Match names this tag (strong comparison, which no weak tag passes).
pub(super) fn is_wanted(if_match: &str, tag: &str) -> bool {
    if_match.trim() == "*" || if_match.split(',').any(|one| one.trim() == tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_blocks::placement::BlockPlacementPolicy;
    use stackline_blocks::set::BlockSet;

    fn set(id: u32) -> OpenSet {
        let (name, placement) = ("map".into(), BlockPlacementPolicy::Hash);
        let about = BlockSet {
            name,
            block_size: 512,
            bytes: 512,
            replicas: 1,
            placement,
            picture: None,
        };
        OpenSet {
            id,
            master: 1 << 64 | 0xff,
            about,
        }
    }

    #[test]
    fn a_tag_is_found_among_others() {
        let tag = format_entity_tag("block", &set(7), 0x1f, 512);
        assert_eq!(tag, "\"block-00000000000000ff-7-0000001f-512\"");
        for header in [
            tag.as_str(),
            "*",
            "\"a\", \"block-00000000000000ff-7-0000001f-512\"",
            "W/\"block-00000000000000ff-7-0000001f-512\"",
        ] {
            assert!(matches_entity_tag(header, &tag), "{header}");
        }
        for header in [
            "",
            "block-00000000000000ff-7-0000001f-512",
            "\"a\"",
            &format_entity_tag("png", &set(7), 0x1f, 512),
            &format_entity_tag("block", &set(8), 0x1f, 512),
        ] {
            assert!(!matches_entity_tag(header, &tag), "{header}");
        }
    }

    #[test]
    fn who_insists_on_a_tag_gets_that_one_only() {
        let tag = format_entity_tag("block", &set(7), 0x1f, 512);
        for header in [
            tag.as_str(),
            "*",
            "\"a\", \"block-00000000000000ff-7-0000001f-512\"",
        ] {
            assert!(is_wanted(header, &tag), "{header}");
        }
        for header in ["", "\"a\"", "W/\"block-00000000000000ff-7-0000001f-512\""] {
            assert!(!is_wanted(header, &tag), "{header}");
        }
    }
}
