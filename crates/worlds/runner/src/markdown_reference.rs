//! `README.md#2`: which specification of a Markdown file is meant.

use stackline_core::error::{Error, Result};
use stackline_core::units::counted;
use stackline_spec::{MarkdownBlock, markdown_blocks};
use std::path::{Path, PathBuf};

/// The ends of the names of Markdown files.
const ENDS: [&str; 2] = ["md", "markdown"];
/// Most blocks that an error lists.
const MOST_LISTED: usize = 8;

/// A Markdown file and perhaps one of its blocks.
pub(crate) struct MarkdownReference {
    /// The file.
    pub(crate) file: PathBuf,
    /// The block's number or name.
    pub(crate) block: Option<String>,
}

impl MarkdownReference {
    /// The reference that a path is; `None` if it does not name a Markdown file.
    pub(crate) fn new(path: &Path) -> Option<Self> {
        let ends_as_markdown = |path: &Path| {
            let end = path.extension().and_then(|end| end.to_str());
            end.is_some_and(|end| ENDS.iter().any(|known| end.eq_ignore_ascii_case(known)))
        };
        if ends_as_markdown(path) {
            return Some(Self {
                file: path.to_owned(),
                block: None,
            });
        }
        let (file, block) = path.to_str()?.rsplit_once('#')?;
        let file = PathBuf::from(file);
        // A file may have such a name itself.
        (ends_as_markdown(&file) && !path.exists()).then(|| Self {
            file,
            block: Some(block.to_owned()),
        })
    }

    /// All blocks of the file.
    pub(crate) fn blocks(&self, markdown: &str) -> Result<Vec<MarkdownBlock>> {
        let blocks = markdown_blocks(markdown);
        if blocks.is_empty() {
            let message = format!("{} has no specification", self.file.display());
            return Err(
                Error::input(message).hint("put it between a line ```stackline and a line ```")
            );
        }
        Ok(blocks)
    }

    /// The block that is meant.
    pub(crate) fn chosen(&self, markdown: &str) -> Result<MarkdownBlock> {
        let mut blocks = self.blocks(markdown)?;
        let file = self.file.display();
        let message = match &self.block {
            None if blocks.len() == 1 => return Ok(blocks.remove(0)),
            None => format!(
                "{file} has {}, and none was chosen",
                counted(blocks.len() as u64, "specification")
            ),
            Some(wanted) => {
                let is_it = |block: &&MarkdownBlock| block.name.as_ref() == Some(wanted);
                let mut named = blocks.iter().filter(is_it);
                match (named.next(), named.next(), wanted.parse::<usize>()) {
                    (Some(one), None, _) => return Ok(one.clone()),
                    (Some(_), Some(_), _) => {
                        format!("{file} has several specifications named {wanted}")
                    }
                    (None, _, Ok(number)) if (1..=blocks.len()).contains(&number) => {
                        return Ok(blocks[number - 1].clone());
                    }
                    _ => format!("{file} has no specification {wanted}"),
                }
            }
        };
        Err(Error::input(message).hint(self.choices(&blocks)))
    }

    /// The hint that lists what could be chosen.
    fn choices(&self, blocks: &[MarkdownBlock]) -> String {
        let listed = blocks.iter().take(MOST_LISTED).map(|block| {
            let name = block
                .name
                .as_ref()
                .map_or_else(String::new, |name| format!(" or #{name}"));
            format!("#{}{name} (line {})", block.number, block.line)
        });
        let listed: Vec<String> = listed.collect();
        let more = if blocks.len() > MOST_LISTED {
            ", ..."
        } else {
            ""
        };
        format!(
            "write {} with {}{more} behind it",
            self.file.display(),
            listed.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "```stackline name=wan\n1 rr 1;\n```\n```stackline\n2 rr 1;\n```\n```stackline name=x\n```\n```stackline name=x\n```\n";

    fn chosen(path: &str, text: &str) -> Result<usize> {
        let reference = MarkdownReference::new(Path::new(path)).unwrap();
        reference.chosen(text).map(|block| block.number)
    }

    #[test]
    fn a_block_is_chosen_by_number_or_name() {
        assert_eq!(chosen("a.md#2", TEXT).unwrap(), 2);
        assert_eq!(chosen("a.MD#wan", TEXT).unwrap(), 1);
        assert_eq!(chosen("b/a.markdown", "```stackline\n```\n").unwrap(), 1);
        assert!(MarkdownReference::new(Path::new("a.stackline#2")).is_none());
        assert!(MarkdownReference::new(Path::new("-")).is_none());
    }

    #[test]
    fn other_choices_are_refused_with_those_that_are_there() {
        for (path, what) in [
            ("a.md", "has 4 specifications, and none was chosen"),
            ("a.md#0", "has no specification 0"),
            ("a.md#5", "has no specification 5"),
            ("a.md#lan", "has no specification lan"),
            ("a.md#x", "has several specifications named x"),
        ] {
            let error = chosen(path, TEXT).unwrap_err();
            assert!(error.message.contains(what), "{}", error.message);
            assert!(
                error
                    .hint
                    .unwrap()
                    .contains("#1 or #wan (line 2), #2 (line 5)")
            );
        }
        assert!(
            chosen("a.md", "")
                .unwrap_err()
                .hint
                .unwrap()
                .contains("```stackline")
        );
    }
}
