//! The small edits of a text that are tried at a mistake, the likeliest first.

use super::foreign_words::{SAY_NOTHING, translate_word};
use super::quoted;
use crate::diagnostic::{Diagnostic, DiagnosticReport, nearest};
use crate::spelling::{self, fold};
use crate::token::{SpecToken, TokenKind, lex};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

/// Punctuation that other languages use, with what is tried instead.
const SIGNS: &[(&str, &[&str])] = &[
    (":", &[" =", " ", ","]),
    ("=", &["", " ", " via"]),
    ("/", &[",", " per "]),
    ("-", &[","]),
    (",", &["", ";", "|"]),
    (";", &[",", ""]),
    ("&", &["|"]),
    ("|", &[""]),
    ("..", &["..."]),
    ("[", &[""]),
    ("]", &[""]),
    ("{", &["<", ""]),
    ("}", &[">", ""]),
    ("(", &["", "{"]),
    (")", &["", "}"]),
    ("$", &[""]),
    ("µ", &["u"]),
    ("%", &[""]),
    ("'", &["\""]),
];
/// Signs and words that may be missing behind the token before a mistake.
const BEHIND: &[&str] = &[
    "%", ";", ",", ":", " =", ")", "*", " 0 ms", " bit/s", " packets", "}",
];
/// Words that may be missing before the mistake itself.
const BEFORE: &[&str] = &[
    "in ", "over ", "across ", "via ", "on ", "file ", "memory ", "to ", "at ", "repeat ",
];

/// Replaces a part of a text, and may put another text before the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RepairEdit {
    /// The bytes that are replaced.
    part: Range<usize>,
    /// The text that replaces them.
    instead: String,
    /// Text put before the whole text; empty for most edits.
    before: String,
}

impl RepairEdit {
    fn new(part: Range<usize>, instead: impl Into<String>) -> Self {
        Self {
            part,
            instead: instead.into(),
            before: String::new(),
        }
    }

    pub(super) fn apply(&self, text: &str) -> String {
        let head = &text[..self.part.start];
        // No space stands before a comma.
        let head = if self.instead.starts_with(',') {
            head.trim_end_matches([' ', '\t'])
        } else {
            head
        };
        format!(
            "{}{head}{}{}",
            self.before,
            self.instead,
            &text[self.part.end..]
        )
    }

    /// About where the replacement ends in the changed text, in bytes.
    pub(super) fn end(&self) -> usize {
        self.before.len() + self.part.start + self.instead.len().saturating_sub(1)
    }
}

/// The edits that the mistake's own hint suggests.
pub(super) fn hinted_edits(text: &str, mistake: &Diagnostic) -> Vec<RepairEdit> {
    MistakeContext::find(text, mistake).hinted(mistake)
}

/// A text with its tokens, and the place of the mistake in it.
struct MistakeContext<'t> {
    text: &'t str,
    tokens: Vec<SpecToken>,
    /// The bytes of the comments.
    comments: Vec<Range<usize>>,
    /// Index of the token at the mistake, or of the first one behind it.
    here: usize,
    /// The bytes of the mistake; may be empty.
    span: Range<usize>,
}

/// All edits that are tried at a mistake, without duplicates.
pub(super) fn find_edits(text: &str, mistake: &Diagnostic) -> Vec<RepairEdit> {
    let place = MistakeContext::find(text, mistake);
    let mut edits: Vec<RepairEdit> = Vec::new();
    let all = place
        .hinted(mistake)
        .into_iter()
        .chain(place.numbers())
        .chain(place.words())
        .chain(place.signs());
    let all = all
        .chain(place.missing())
        .chain(place.order())
        .chain(place.left_out());
    for edit in all {
        let changes_comment = place
            .comments
            .iter()
            .any(|comment| comment.start < edit.part.end && edit.part.start < comment.end);
        if !changes_comment && !edits.contains(&edit) {
            edits.push(edit);
        }
    }
    edits
}

impl<'t> MistakeContext<'t> {
    fn find(text: &'t str, mistake: &Diagnostic) -> Self {
        let read = lex(text, mistake.origin, &mut DiagnosticReport::default());
        let (tokens, comments) = (read.list, read.comments);
        let span = mistake.span.clone();
        let here = tokens
            .iter()
            .position(|token| token.span.end > span.start)
            // The list ends with `End`, so it is never empty.
            .unwrap_or(tokens.len() - 1);
        Self {
            text,
            tokens,
            comments: (comments.iter())
                .map(|comment| comment.span.start..comment.span.end)
                .collect(),
            here,
            span,
        }
    }

    /// The bytes of a token.
    fn range(&self, token: usize) -> Option<Range<usize>> {
        self.tokens
            .get(token)
            .map(|token| token.span.start..token.span.end)
    }

    /// The bytes of the token `steps` before the mistake.
    fn before(&self, steps: usize) -> Option<Range<usize>> {
        self.range(self.here.checked_sub(steps)?)
    }

    /// The bytes of the mistake, or of the token there if the mistake is empty.
    fn wrong(&self) -> Range<usize> {
        let empty = self.span.is_empty();
        self.range(self.here)
            .filter(|_| empty)
            .unwrap_or_else(|| self.span.clone())
    }

    /// The edits for the code in a hint that says what to write (`write`, `did you mean`).
    fn hinted(&self, mistake: &Diagnostic) -> Vec<RepairEdit> {
        let names = |hint: &&String| {
            ["write ", "did you mean "]
                .iter()
                .any(|begin| hint.starts_with(begin))
        };
        let codes = mistake
            .hint
            .iter()
            .filter(names)
            .flat_map(|hint| quoted(hint));
        codes.flat_map(|code| self.as_hinted(code)).collect()
    }

    /// Puts the code of a hint in the mistake's place. The replaced part begins where the code's first word already
    /// stands, if it does, and ends at one of several places up to the value behind the mistake.
    fn as_hinted(&self, code: &str) -> Vec<RepairEdit> {
        const BACK: usize = 4;
        let wrong = self.wrong();
        let first = code.split(' ').next();
        let stands = (1..=BACK)
            .filter_map(|steps| self.before(steps))
            .find(|word| first == Some(&self.text[word.clone()]));
        let (next, after) = (self.range(self.here + 1), self.range(self.here + 2));
        let value = match (&next, &after) {
            (Some(sign), Some(value)) if &self.text[sign.clone()] == "=" => Some(value.end),
            _ => None,
        };
        // A corrected number, as for `100k`, replaces the number before the mistake too.
        let number = self.before(1).filter(|before| {
            before.end == wrong.start && code.starts_with(|c: char| c.is_ascii_digit())
        });
        let from = stands
            .as_ref()
            .or(number.as_ref())
            .map_or(wrong.start, |word| word.start);
        let before = stands.and(self.before(1)).map(|before| before.end);
        let ends = [value, Some(wrong.end), before, next.map(|next| next.end)];
        // An edit must not join two words or numbers to one.
        let joins = |end: usize| {
            code.ends_with(char::is_alphanumeric)
                && self.text[end..].starts_with(char::is_alphanumeric)
        };
        let ends = ends
            .into_iter()
            .flatten()
            .filter(|end| *end > from && !joins(*end));
        ends.map(|end| RepairEdit::new(from..end, code)).collect()
    }

    /// Numbers in other forms near the mistake: `1,5` and `10,000`; `30%` for `0.3` and the other way round.
    fn numbers(&self) -> Vec<RepairEdit> {
        const NEAR: usize = 4;
        let near = self.here.saturating_sub(NEAR)..(self.here + NEAR).min(self.tokens.len());
        let number = |token: &SpecToken| matches!(token.kind, TokenKind::Number(_));
        let mut edits = Vec::new();
        for three in self.tokens[near.clone()].windows(3) {
            let close = three[0].span.end == three[1].span.start
                && three[1].span.end == three[2].span.start;
            if close && number(&three[0]) && three[1].kind == TokenKind::Comma && number(&three[2])
            {
                // Three digits behind a comma are thousands, others are decimals.
                let thousands = three[2].span.end - three[2].span.start == 3;
                edits.push(RepairEdit::new(
                    three[1].span.start..three[1].span.end,
                    if thousands { "" } else { "." },
                ));
            }
        }
        for two in self.tokens[near].windows(2) {
            match (two[0].kind, two[1].kind) {
                (TokenKind::Number(share), TokenKind::Percent) => {
                    edits.push(RepairEdit::new(
                        two[0].span.start..two[1].span.end,
                        format!("{}", share / 100.0),
                    ));
                }
                (TokenKind::Number(share), _) if share > 0.0 && share < 1.0 => {
                    edits.push(RepairEdit::new(
                        two[0].span.start..two[0].span.end,
                        format!("{}%", share * 100.0),
                    ));
                }
                _ => {}
            }
        }
        edits
    }

    /// Words of the language for foreign words at the mistake or next to it, and for misspelt ones at the mistake.
    fn words(&self) -> Vec<RepairEdit> {
        let wrong = self.wrong();
        let mut places: Vec<Range<usize>> = [
            Some(wrong.clone()),
            self.before(1),
            self.before(2),
            self.before(3),
        ]
        .into_iter()
        .flatten()
        .collect();
        // A flag such as `-t` is two tokens, a sign and a word.
        places.extend(self.range(self.here + 1).map(|next| wrong.start..next.end));
        places.extend(self.range(self.here + 2).map(|next| wrong.start..next.end));
        places.extend(self.range(self.here + 1));
        let mut edits = Vec::new();
        for place in places {
            let word = &self.text[place.clone()];
            let folded = if word.starts_with('-') {
                word.to_string()
            } else {
                fold(word)
            };
            edits.extend(
                translate_word(&folded)
                    .iter()
                    .map(|ours| RepairEdit::new(place.clone(), *ours)),
            );
        }
        let word = &self.text[wrong.clone()];
        let ours = [
            spelling::HEADS,
            spelling::CLAUSES,
            spelling::COMPOSERS,
            &["from", "to", "reordering", "ecn"],
        ]
        .concat();
        edits.extend(nearest(word, ours).map(|near| RepairEdit::new(wrong.clone(), near)));
        edits
    }

    /// Punctuation of other languages at the mistake, replaced by what is used here.
    fn signs(&self) -> Vec<RepairEdit> {
        let wrong = self.wrong();
        let sign = &self.text[wrong.clone()];
        let two = |end: &str| {
            self.text[wrong.start..]
                .starts_with(end)
                .then_some(wrong.start..wrong.start + end.len())
        };
        let mut edits: Vec<RepairEdit> = Vec::new();
        edits.extend(two("//").map(|part| RepairEdit::new(part, "#")));
        edits.extend(two("<->").map(|part| RepairEdit::new(part, "-")));
        // Two numbers never become one.
        let digit = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_digit());
        let joins = digit(self.text[..wrong.start].chars().next_back())
            && digit(self.text[wrong.end..].chars().next());
        let instead = SIGNS
            .iter()
            .find(|(theirs, _)| *theirs == sign)
            .map_or(&[][..], |(_, instead)| instead);
        let instead = instead
            .iter()
            .filter(|instead| !(joins && instead.is_empty()));
        edits.extend(instead.map(|instead| RepairEdit::new(wrong.clone(), *instead)));
        // `a-b` is one name: the `-` between two names needs spaces.
        edits.extend(
            self.before(1)
                .filter(|name| self.text[name.clone()].contains('-'))
                .map(|name| {
                    let spaced = self.text[name.clone()].replacen('-', " - ", 1);
                    RepairEdit::new(name, spaced)
                }),
        );
        edits
    }

    /// What may be missing behind what stands before the mistake, before it, around it, or where a brace should close.
    fn missing(&self) -> Vec<RepairEdit> {
        let wrong = self.wrong();
        let mut edits: Vec<RepairEdit> = Vec::new();
        if let Some(before) = self.before(1) {
            edits.extend(
                BEHIND
                    .iter()
                    .map(|missing| RepairEdit::new(before.end..before.end, *missing)),
            );
        }
        edits.extend(
            BEFORE
                .iter()
                .map(|missing| RepairEdit::new(wrong.start..wrong.start, *missing)),
        );
        if let Some(before) = self.before(1) {
            edits.push(RepairEdit::new(
                before.end..wrong.end,
                format!("({})", &self.text[wrong.clone()]),
            ));
        }
        let run = self.text[wrong.start..]
            .find(|c: char| c.is_whitespace() || matches!(c, ';' | ',' | ')'));
        let run = wrong.start..run.map_or(self.text.len(), |length| wrong.start + length);
        let quotes = format!("\"{}\"", self.text[run.clone()].trim_matches('"'));
        edits.push(RepairEdit::new(run.clone(), quotes.clone()));
        edits.push(RepairEdit::new(run, format!("file {quotes}")));
        if self.text[wrong.clone()].starts_with('{') {
            let ends = self.tokens.windows(2).filter(|two| {
                matches!(two[0].kind, TokenKind::Semicolon | TokenKind::CloseBrace)
                    && matches!(two[1].kind, TokenKind::Number(_))
            });
            edits.extend(
                ends.map(|two| RepairEdit::new(two[1].span.start..two[1].span.start, "} ")),
            );
        }
        edits
    }

    /// Swaps neighbouring words or groups of words, and moves an item from the middle of a specification to the front
    /// of the text.
    fn order(&self) -> Vec<RepairEdit> {
        let mut edits = Vec::new();
        let wrong = self.wrong();
        if spelling::ITEMS.contains(&self.text[wrong.clone()].as_ref())
            && let Some(value) = self.range(self.here + 1)
        {
            let item = format!("{}; ", &self.text[wrong.start..value.end]);
            edits.push(RepairEdit {
                part: wrong.start..value.end,
                instead: String::new(),
                before: item,
            });
        }
        let words = self.spaced();
        let at = words
            .iter()
            .position(|word| word.end > wrong.start)
            .unwrap_or(0);
        for (first, middle, last) in [
            (1, 0, 2),
            (1, 1, 3),
            (1, 0, 1),
            (1, 1, 2),
            (2, 0, 2),
            (0, 2, 4),
            (0, 2, 3),
            (0, 3, 4),
            (0, 1, 3),
            (0, 1, 2),
        ] {
            let Some(from) = at.checked_sub(first) else {
                continue;
            };
            let (Some(a), Some(b)) = (
                words.get(from..at + middle),
                words.get(at + middle..at + last),
            ) else {
                continue;
            };
            let (Some(a0), Some(a1), Some(b0), Some(b1)) =
                (a.first(), a.last(), b.first(), b.last())
            else {
                continue;
            };
            let (left, right) = (&self.text[a0.start..a1.end], &self.text[b0.start..b1.end]);
            edits.push(RepairEdit::new(a0.start..b1.end, format!("{right} {left}")));
        }
        edits
    }

    /// The bytes of the words between white space, without the punctuation at their ends.
    fn spaced(&self) -> Vec<Range<usize>> {
        let mut words = Vec::new();
        for word in self.text.split_whitespace() {
            let kept = word.trim_end_matches([';', ',', '}']);
            if !kept.is_empty() {
                // `word` is a part of `text`: the difference is its offset.
                let from = word.as_ptr().addr() - self.text.as_ptr().addr();
                words.push(from..from + kept.len());
            }
        }
        words
    }

    /// Leaves out a word that says nothing, with a `:` behind it, or such a word and the `=` behind it.
    fn left_out(&self) -> Vec<RepairEdit> {
        let wrong = self.wrong();
        let nothing =
            |part: &Range<usize>| SAY_NOTHING.contains(&fold(&self.text[part.clone()]).as_str());
        let mut edits = Vec::new();
        if nothing(&wrong) {
            edits.push(RepairEdit::new(wrong.clone(), ""));
            let colon = self
                .range(self.here + 1)
                .filter(|next| &self.text[next.clone()] == ":");
            edits.extend(colon.map(|colon| RepairEdit::new(wrong.start..colon.end, "")));
        }
        let named = self
            .before(1)
            .filter(|name| nothing(name) && &self.text[wrong.clone()] == "=");
        edits.extend(named.map(|name| RepairEdit::new(name.start..wrong.end, "")));
        edits
    }
}
