//! A name in two forms: what is kept of it by default, and the whole of it, which only `--keep-contents` asks for.

use crate::{LONGEST_NAME, secret_words};
use std::fmt;
use std::sync::Arc;

/// What something is called that a program said. It is made by the functions of this crate alone, so no text reaches a run around
/// them. Copies share their texts.
#[derive(Clone, PartialEq, Eq)]
pub struct RedactedName {
    kept: Arc<str>,
    whole: Arc<str>,
}

impl RedactedName {
    /// A text of our own.
    #[must_use]
    pub fn fixed(text: &'static str) -> Self {
        Self::harmless(text)
    }

    /// A number behind words of our own, such as `command 7`.
    #[must_use]
    pub fn number(words: &'static str, number: u64) -> Self {
        Self::harmless(&format!("{words}{number}"))
    }

    /// A number between words of our own.
    #[must_use]
    pub fn count(number: u64, words: &'static str) -> Self {
        Self::harmless(&format!("{number}{words}"))
    }

    /// The name of a host between words of our own, as DNS and TLS say it. It is kept if it may be one: without it nothing can be
    /// found.
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
        Self::of(&kept, &whole)
    }

    /// An identifier behind words of our own: of a database, a prepared statement, a channel.
    #[must_use]
    pub fn identifier(words: &'static str, identifier: &[u8]) -> Self {
        let kept = format!("{words}{}", secret_words::redact_identifier(identifier));
        Self::of(&kept, &printable(&[words.as_bytes(), identifier].concat()))
    }

    /// The same name behind words of our own.
    #[must_use]
    pub fn behind(&self, words: &'static str) -> Self {
        Self::of(
            &format!("{words}{}", self.kept),
            &format!("{words}{}", self.whole),
        )
    }

    /// Both forms; each is cut at [`LONGEST_NAME`].
    pub(crate) fn of(kept: &str, whole: &str) -> Self {
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

    /// What a run keeps of it.
    #[must_use]
    pub fn kept(&self) -> &str {
        &self.kept
    }

    /// All of it, as far as a name goes: with values. It is for runs whose user asked for contents (`--keep-contents`), and to
    /// compare with what a server's log says.
    #[must_use]
    pub fn whole(&self) -> &str {
        &self.whole
    }

    /// [`Self::whole`] where contents are asked for, else [`Self::kept`].
    #[must_use]
    pub fn text(&self, contents: bool) -> &str {
        if contents { &self.whole } else { &self.kept }
    }

    /// Whether there is none.
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

/// The text of bytes, with what steers a terminal left out, cut at [`LONGEST_NAME`].
#[must_use]
pub fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST_NAME)]);
    let name: String = text.chars().filter(|letter| !letter.is_control()).collect();
    cut(&name).to_owned()
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST_NAME)]
}
