//! The header with which a proxy names the connection it forwards (HAProxy's PROXY protocol, versions 1 and 2). It stands before all
//! bytes of the client.

/// The longest header of version 1, in bytes; it is a line of text.
const LONGEST_LINE: usize = 107;
const LINE: &[u8] = b"PROXY ";
const BINARY: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// The length of the header at the beginning of a stream; it exceeds the length of `begin` if more bytes are needed. `None` if there is
/// no header.
pub(super) fn length(begin: &[u8]) -> Option<usize> {
    let begins = |with: &[u8]| {
        let some = begin.len().min(with.len());
        some > 0 && begin[..some] == with[..some]
    };
    if begins(BINARY) {
        let Some(head) = begin.get(..16) else {
            return (begin.len() >= 4).then_some(16);
        };
        let is_version_2 = head[12] >> 4 == 2;
        return is_version_2.then(|| 16 + usize::from(u16::from_be_bytes([head[14], head[15]])));
    }
    if !begins(LINE) || begin.len() < LINE.len() {
        return None;
    }
    let line = &begin[..begin.len().min(LONGEST_LINE)];
    match line.windows(2).position(|two| two == b"\r\n") {
        Some(at) => Some(at + 2),
        None => (begin.len() < LONGEST_LINE).then_some(begin.len() + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_have_their_length_and_others_none() {
        let line = b"PROXY TCP4 10.0.0.1 10.0.0.2 1000 80\r\n";
        assert_eq!(length(&[line, &b"GET /"[..]].concat()), Some(line.len()));
        assert!(length(&line[..20]).is_some_and(|length| length > 20));
        let binary = [BINARY, &[0x21, 0x11, 0, 12], &[7; 12], b"GET /"].concat();
        assert_eq!(length(&binary), Some(28));
        assert_eq!(length(&binary[..14]), Some(16));
        for other in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"",
            b"PRO",
            b"PROPFIND / HTTP/1.1\r\n",
            b"\r\n",
        ] {
            assert_eq!(length(other), None, "{other:?}");
        }
        assert_eq!(length(&[LINE, &[b'x'; 200]].concat()), None);
    }
}
