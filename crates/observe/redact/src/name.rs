//! A name in two forms: the redacted one that is kept by default, and the whole one for `--keep-contents`.

use crate::{LONGEST_NAME, secret_words};
use std::fmt;
use std::sync::Arc;

/// The name of something in a foreign program's messages. Only this crate can make one, so that no text reaches a run without redaction.
/// Copies share their texts.
#[derive(Clone, PartialEq, Eq)]
pub struct RedactedName {
    /// The redacted form.
    kept: Arc<str>,
    /// The unredacted form.
    whole: Arc<str>,
}

impl RedactedName {
    /// A constant text of stackline's own.
    #[must_use]
    pub fn fixed(text: &'static str) -> Self {
        Self::harmless(text)
    }

    /// A number behind constant words, such as `command 7`.
    #[must_use]
    pub fn number(words: &'static str, number: u64) -> Self {
        Self::harmless(&format!("{words}{number}"))
    }

    /// A number before constant words.
    #[must_use]
    pub fn count(number: u64, words: &'static str) -> Self {
        Self::harmless(&format!("{number}{words}"))
    }

    /// The name of a host between other words, as DNS and TLS use it. It is kept if it is a valid host name: without it, the entry would
    /// be useless.
    #[must_use]
    pub fn host(before: &str, host: &str, behind: &'static str) -> Self {
        let fits = |letter: char| {
            letter.is_alphanumeric() || matches!(letter, '.' | '-' | '_' | '*' | ':')
        };
        let is_host = host.chars().all(fits);
        let kept = if is_host { host } else { "…" };
        let room = LONGEST_NAME.saturating_sub(before.len() + behind.len());
        let [kept, whole] = [kept, host].map(|host| {
            printable(
                format!(
                    "{before}{}{behind}",
                    &host[..host.floor_char_boundary(room)]
                )
                .as_bytes(),
            )
        });
        Self::new(&kept, &whole)
    }

    /// An identifier behind constant words: of a database, a prepared statement, a channel.
    #[must_use]
    pub fn identifier(words: &'static str, identifier: &[u8]) -> Self {
        let kept = format!("{words}{}", secret_words::redact_identifier(identifier));
        Self::new(&kept, &printable(&[words.as_bytes(), identifier].concat()))
    }

    /// The same name with constant words before it.
    #[must_use]
    pub fn behind(&self, words: &'static str) -> Self {
        Self::new(
            &format!("{words}{}", self.kept),
            &format!("{words}{}", self.whole),
        )
    }

    /// A name of both forms; each is cut at [`LONGEST_NAME`] bytes.
    pub(crate) fn new(kept: &str, whole: &str) -> Self {
        if kept == whole {
            Self::harmless(kept)
        } else {
            Self {
                kept: cut(kept).into(),
                whole: cut(whole).into(),
            }
        }
    }

    fn harmless(text: &str) -> Self {
        let kept: Arc<str> = cut(text).into();
        Self {
            whole: Arc::clone(&kept),
            kept,
        }
    }

    /// The redacted form, which runs keep.
    #[must_use]
    pub fn kept(&self) -> &str {
        &self.kept
    }

    /// The unredacted form, up to [`LONGEST_NAME`] bytes. It is for runs whose user asked for contents (`--keep-contents`), and to be
    /// compared with a server's log.
    #[must_use]
    pub fn whole(&self) -> &str {
        &self.whole
    }

    /// [`Self::whole`] if `contents` is set, else [`Self::kept`].
    #[must_use]
    pub fn text(&self, contents: bool) -> &str {
        if contents { &self.whole } else { &self.kept }
    }

    /// Whether the name is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.whole.is_empty()
    }
}

impl Default for RedactedName {
    fn default() -> Self {
        Self::harmless("")
    }
}

impl fmt::Debug for RedactedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.kept, f)
    }
}

/// Bytes as text without control characters, which could steer a terminal, cut at [`LONGEST_NAME`] bytes.
#[must_use]
pub fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST_NAME)]);
    let name: String = text.chars().filter(|letter| !letter.is_control()).collect();
    cut(&name).to_owned()
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST_NAME)]
}
