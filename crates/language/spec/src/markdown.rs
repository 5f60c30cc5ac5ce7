//! Specifications in fenced blocks of Markdown (CommonMark 0.31, section 4.5) whose first word is `stackline`.
//!
//! A block is named by its number or by `name=WORD` behind that word. Blocks inside of lists may be indented; those in quotations are
//! not looked for.

use crate::diagnostic::Diagnostic;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

/// The first word behind the fence of a specification.
const LANGUAGE: &str = "stackline";
/// What stands before a block's name.
const NAME: &str = "name=";
/// The least length of a fence.
const SHORTEST_FENCE: usize = 3;

/// A specification in a Markdown text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkdownBlock {
    /// Its number among the specifications, from 1.
    pub number: usize,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The line of its first line of text, from 1.
    pub line: usize,
    /// The bytes of the Markdown text between the fences.
    pub span: Range<usize>,
    /// The white space before its fence.
    indentation: String,
}

/// A fence that is open.
struct Fence<'t> {
    mark: char,
    length: usize,
    /// The words behind it, if it begins a specification.
    words: Option<&'t str>,
    indentation: &'t str,
    /// The line and the byte at which what it encloses begins.
    line: usize,
    begins: usize,
}

impl<'t> Fence<'t> {
    /// The fence that a line opens; its text begins at a byte.
    fn opened(text: &'t str, line: usize, begins: usize) -> Option<Self> {
        let content = text.trim();
        let mark = content.chars().next().filter(|mark| "`~".contains(*mark))?;
        let length = content.chars().take_while(|one| *one == mark).count();
        let info = content.get(length..)?.trim();
        // Text between accents on one line is code, not a fence.
        if length < SHORTEST_FENCE || (mark == '`' && info.contains('`')) {
            return None;
        }
        let words = info.strip_prefix(LANGUAGE);
        let is_whole = |rest: &&str| rest.is_empty() || rest.starts_with(char::is_whitespace);
        Some(Self {
            mark,
            length,
            words: words.filter(is_whole),
            indentation: &text[..text.len() - text.trim_start().len()],
            line: line + 1,
            begins,
        })
    }

    /// Whether a line closes it.
    fn is_closed_by(&self, text: &str) -> bool {
        let content = text.trim();
        content.len() >= self.length && content.chars().all(|one| one == self.mark)
    }

    /// The specification that it encloses, up to a byte.
    fn block(&self, number: usize, ends: usize) -> Option<MarkdownBlock> {
        let mut words = self.words?.split_whitespace();
        let name = words.find_map(|word| word.strip_prefix(NAME));
        Some(MarkdownBlock {
            number,
            name: name
                .filter(|name| !name.is_empty())
                .map(ToString::to_string),
            line: self.line,
            span: self.begins..ends,
            indentation: self.indentation.to_string(),
        })
    }
}

/// The specifications of a Markdown text, in their order. A block that is not closed reaches to the end.
#[must_use]
pub fn markdown_blocks(markdown: &str) -> Vec<MarkdownBlock> {
    let mut blocks: Vec<MarkdownBlock> = Vec::new();
    let mut open: Option<Fence<'_>> = None;
    let mut at = 0;
    for (index, text) in markdown.split_inclusive('\n').enumerate() {
        let next = at + text.len();
        match &open {
            Some(fence) if fence.is_closed_by(text) => {
                blocks.extend(fence.block(blocks.len() + 1, at));
                open = None;
            }
            Some(_) => {}
            None => open = Fence::opened(text, index + 1, next),
        }
        at = next;
    }
    if let Some(fence) = open {
        blocks.extend(fence.block(blocks.len() + 1, at));
    }
    blocks
}

impl MarkdownBlock {
    /// The Markdown text with spaces in place of all that is not in the block: it has the block's meaning, and places in it are places in
    /// the Markdown text.
    #[must_use]
    pub fn in_place(&self, markdown: &str) -> String {
        let before = markdown.get(..self.span.start).unwrap_or_default();
        let blank = before
            .bytes()
            .map(|byte| if byte == b'\n' { '\n' } else { ' ' });
        let mut text: String = blank.collect();
        text.push_str(self.text(markdown));
        text
    }

    /// The text of the block.
    #[must_use]
    pub fn text<'t>(&self, markdown: &'t str) -> &'t str {
        markdown.get(self.span.clone()).unwrap_or_default()
    }

    /// The text of the block without the indentation of its fence.
    #[must_use]
    pub fn unindented(&self, markdown: &str) -> String {
        let lines = self.text(markdown).split_inclusive('\n');
        lines
            .map(|line| {
                line.strip_prefix(&*self.indentation)
                    .unwrap_or_else(|| line.trim_start_matches([' ', '\t']))
            })
            .collect()
    }
}

/// A Markdown text with all its specifications in their canonical form.
///
/// # Errors
/// The diagnostics of those that cannot be read, with their places in the Markdown text.
pub fn format_markdown(markdown: &str) -> Result<String, Vec<Diagnostic>> {
    let mut formatted = String::new();
    let mut mistakes = Vec::new();
    let mut at = 0;
    for block in markdown_blocks(markdown) {
        let Range { start, end } = block.span.clone();
        formatted.push_str(&markdown[at..start]);
        at = end;
        match crate::format(block.text(markdown)) {
            Ok(text) => {
                for line in text.split_inclusive('\n') {
                    if !line.trim().is_empty() {
                        formatted.push_str(&block.indentation);
                    }
                    formatted.push_str(line);
                }
            }
            Err(diagnostics) => mistakes.extend(diagnostics.into_iter().map(|mut mistake| {
                mistake.span = mistake.span.start + start..mistake.span.end + start;
                mistake
            })),
        }
    }
    formatted.push_str(&markdown[at..]);
    if mistakes.is_empty() {
        Ok(formatted)
    } else {
        Err(mistakes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec;

    #[test]
    fn blocks_have_numbers_names_and_lines() {
        let text = "# A\n\n```stackline name=wan\n1 rr 32;\n```\n\n``` sh\n```stackline\n```\n\n~~~~ stackline\n2 rr 1;\n~~~\n~~~~\n```stacklines\n1;\n```\n- x\n  ```stackline\n  3 rr 7;\n";
        let blocks = markdown_blocks(text);
        let shown: Vec<_> = blocks
            .iter()
            .map(|block| {
                (
                    block.number,
                    block.name.as_deref(),
                    block.line,
                    block.unindented(text),
                )
            })
            .collect();
        let expected = vec![
            (1, Some("wan"), 4, "1 rr 32;\n".to_string()),
            (2, None, 12, "2 rr 1;\n~~~\n".to_string()),
            (3, None, 20, "3 rr 7;\n".to_string()),
        ];
        assert_eq!(shown, expected);
        for block in &blocks {
            let in_place = block.in_place(text);
            assert_eq!(in_place.len(), block.span.end);
            assert_eq!(in_place.trim(), block.text(text).trim());
            assert_eq!(
                in_place.lines().count(),
                text[..block.span.end].lines().count()
            );
        }
    }

    #[test]
    fn code_on_a_line_and_other_languages_are_no_specifications() {
        for text in [
            "",
            "```stackline``` is how one begins",
            "``stackline\n1;\n``",
            "```\nstackline\n```",
            "> ```stackline\n> 1;\n> ```",
        ] {
            assert_eq!(markdown_blocks(text), [], "{text}");
        }
        assert_eq!(markdown_blocks("```stackline\n```")[0].span, 13..13);
    }

    #[test]
    fn all_blocks_are_formatted_and_nothing_else() {
        let text = "* ä `x`\n\n  ```stackline\n  10   rr 32*5   over tcp ;\n  ```\nrest  of\n";
        let formatted = format_markdown(text).unwrap();
        assert_eq!(
            formatted,
            "* ä `x`\n\n  ```stackline\n  10 rr 32*5 over tcp;\n  ```\nrest  of\n"
        );
        assert_eq!(format_markdown(&formatted).unwrap(), formatted);
        let wrong = format!("{text}```stackline\n10 rr (;\n```\n");
        let mistakes = format_markdown(&wrong).unwrap_err();
        assert!(
            mistakes[0].span.start >= text.len() && wrong.get(mistakes[0].span.clone()).is_some()
        );
    }
}
