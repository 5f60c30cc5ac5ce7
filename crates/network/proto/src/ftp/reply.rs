//! A reply of a server: three digits and a text, or several lines of which the last begins as the first does (RFC 959, 4.2).

use alloc::string::String;

/// Most lines of a reply.
pub const MOST_LINES: u32 = 1 << 10;

/// A reply: its code, and its last line as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FtpReply {
    /// The three digits, 100 to 599.
    pub code: u16,
    /// The last line, the code included.
    pub text: String,
}

impl FtpReply {
    /// Whether the server does not know the command, or its form.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        matches!(self.code, 500..=504 | 522)
    }

    /// Whether the server refuses what it was asked for, now or for ever.
    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        self.code >= 400
    }
}

/// What no reply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FtpReplyMistake {
    /// The first line does not begin with a code.
    NoCode,
    /// There are more than [`MOST_LINES`] lines.
    TooLong,
}

/// The lines of a reply that have come so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FtpReplyLines {
    begun: Option<u16>,
    lines: u32,
}

impl FtpReplyLines {
    /// Takes the next line, without its end. The code of the reply if it is the last one.
    ///
    /// # Errors
    /// A [`FtpReplyMistake`] when it can be no reply.
    pub fn take(&mut self, line: &[u8]) -> Result<Option<u16>, FtpReplyMistake> {
        self.lines += 1;
        if self.lines > MOST_LINES {
            return Err(FtpReplyMistake::TooLong);
        }
        let goes_on = line.get(3) == Some(&b'-');
        match (reply_code(line), self.begun) {
            (Some(code), None) if goes_on => {
                self.begun = Some(code);
                Ok(None)
            }
            (Some(code), None) => Ok(Some(code)),
            (Some(code), Some(first)) if code == first && !goes_on => Ok(Some(code)),
            (_, Some(_)) => Ok(None),
            (None, None) => Err(FtpReplyMistake::NoCode),
        }
    }
}

/// The code of a line of a reply: three digits, then a space, a `-`, or the end.
#[must_use]
pub fn reply_code(line: &[u8]) -> Option<u16> {
    let (digits, rest) = line.split_at_checked(3)?;
    let is_code =
        digits.iter().all(u8::is_ascii_digit) && matches!(rest.first(), None | Some(b' ' | b'-'));
    let code = core::str::from_utf8(digits).ok()?.parse().ok()?;
    (is_code && (100..600).contains(&code)).then_some(code)
}
