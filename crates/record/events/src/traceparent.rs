//! Ids that are passed on with a request: the `traceparent` header of W3C Trace Context (Recommendation of 23 November
//! 2021, section 3.2), `00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01`.
//!
//! An application puts it into a field of its own request. Both ends derive the same unit id from it, so their events
//! form one lifeline (the path of one unit through programs and hosts):
//!
//! ```
//! use stackline_events::{event, traceparent::Traceparent};
//!
//! // Whoever calls.
//! let parent = Traceparent::new(0x0af7651916cd43dd8448eb211c80319c, 0xb7ad6b7169203331).unwrap();
//! let request = format!("GET /set/3 HTTP/1.1\r\ntraceparent: {parent}\r\n\r\n");
//! event!("APP_CALL", parent.unit());
//!
//! // Whoever is called.
//! let field = request.lines().find_map(|line| line.strip_prefix("traceparent: ")).unwrap();
//! let received: Traceparent = field.parse().unwrap();
//! event!("APP_INDICATION", received.unit());
//! assert_eq!(received.unit(), parent.unit());
//! ```

use std::fmt;
use std::str::FromStr;

/// The longest header that is read, in bytes: later versions may add fields.
const LONGEST: usize = 512;

/// The id of a request and of the trace that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Traceparent {
    trace: u128,
    parent: u64,
    /// Whether the caller may have recorded the request, and flags of later versions (section 3.2.2.5).
    pub flags: u8,
}

impl Traceparent {
    /// A header for a trace and a request in it, without flags; `None` when one of them is 0.
    #[must_use]
    pub const fn new(trace: u128, parent: u64) -> Option<Self> {
        if trace == 0 || parent == 0 {
            None
        } else {
            Some(Self {
                trace,
                parent,
                flags: 0,
            })
        }
    }

    /// The `trace-id`.
    #[must_use]
    pub const fn trace(self) -> u128 {
        self.trace
    }

    /// The `parent-id`.
    #[must_use]
    pub const fn parent(self) -> u64 {
        self.parent
    }

    /// The header for a request that this program makes in turn, in the same trace; `None` for 0.
    #[must_use]
    pub const fn child(self, parent: u64) -> Option<Self> {
        if parent == 0 {
            None
        } else {
            Some(Self { parent, ..self })
        }
    }

    /// The `unit` of the request's events: the last eight bytes of `trace-id`, exclusive-or `parent-id`, without the
    /// highest bit. Clients in all languages compute it the same way.
    #[must_use]
    pub const fn unit(self) -> i64 {
        ((self.trace as u64 ^ self.parent) & i64::MAX as u64) as i64
    }
}

impl fmt::Display for Traceparent {
    /// Writes version 00 with the one flag of that version, as section 4.3 requires.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{:032x}-{:016x}-{:02x}",
            self.trace,
            self.parent,
            self.flags & 1
        )
    }
}

impl FromStr for Traceparent {
    type Err = String;

    /// Parses a header's value. A later version may have more fields behind another `-`; version `ff` is invalid.
    fn from_str(text: &str) -> Result<Self, String> {
        read(text.trim_matches([' ', '\t'])).ok_or_else(|| {
            let shown: String = text.chars().take(80).collect();
            format!(
                "`{}` is not a traceparent; hint: use 00-TRACE-PARENT-FLAGS with 32, 16 and 2 hexadecimal digits, not all 0",
                shown.escape_debug()
            )
        })
    }
}

fn read(text: &str) -> Option<Traceparent> {
    let bytes = text.as_bytes();
    if bytes.len() > LONGEST {
        return None;
    }
    let (known, more) = bytes.split_at_checked(55)?;
    let dashes = [2, 35, 52].iter().all(|at| known[*at] == b'-');
    let version = number(&known[..2])?;
    let ended = more.is_empty() || (version > 0 && more[0] == b'-');
    if !dashes || !ended || version == 0xff {
        return None;
    }
    let found = Traceparent::new(number(&known[3..35])?, number(&known[36..52])? as u64)?;
    Some(Traceparent {
        flags: number(&known[53..])? as u8,
        ..found
    })
}

/// The value of hexadecimal digits, lower case only.
fn number(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PRINTED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn the_printed_one() {
        let read: Traceparent = PRINTED.parse().unwrap();
        assert_eq!(read.trace(), 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!((read.parent(), read.flags), (0xb7ad_6b71_6920_3331, 1));
        assert_eq!(read.to_string(), PRINTED);
        assert_eq!(read.unit(), 0x33e5_8050_75a0_02ad);
        assert_eq!(
            read.child(7).unwrap().to_string(),
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000007-01"
        );
        assert_eq!(
            (
                read.child(0),
                Traceparent::new(0, 1),
                Traceparent::new(1, 0)
            ),
            (None, None, None)
        );
    }

    #[test]
    fn versions_to_come_are_read_as_far_as_they_are_known() {
        let read = |text: &str| text.parse::<Traceparent>().ok();
        let known = read(PRINTED);
        assert_eq!(read(&PRINTED.replacen("00", "cc", 1)), known);
        assert_eq!(
            read(&format!("{}-what-will-be", PRINTED.replacen("00", "cc", 1))),
            known
        );
        assert_eq!(read(&format!(" {PRINTED}\t")), known);
        assert_eq!(
            read(&PRINTED.replace("-01", "-ff")).map(|read| read.to_string()),
            Some(PRINTED.to_owned())
        );
        for wrong in [
            PRINTED.replacen("00", "ff", 1),
            format!("{PRINTED}-more"),
            format!("{}.more", PRINTED.replacen("00", "cc", 1)),
            PRINTED.to_uppercase(),
            PRINTED.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            PRINTED.replace("b7ad6b7169203331", &"0".repeat(16)),
            PRINTED.replace('-', "_"),
            PRINTED[1..].to_owned(),
            String::new(),
            format!("cc{}-{}", &PRINTED[2..], "x".repeat(1 << 20)),
        ] {
            assert_eq!(read(&wrong), None, "{wrong:.80}");
        }
    }

    proptest! {
        #[test]
        fn what_was_printed_is_read(trace in 1_u128.., parent in 1_u64.., sampled: bool) {
            let mut parent = Traceparent::new(trace, parent).unwrap();
            parent.flags = u8::from(sampled);
            prop_assert_eq!(parent.to_string().parse(), Ok(parent));
            prop_assert!(parent.unit() >= 0);
        }

        #[test]
        fn hostile_text_is_harmless(text in "\\PC{0,80}|[0-9a-f-]{50,60}") {
            let _ = text.parse::<Traceparent>();
        }
    }
}
