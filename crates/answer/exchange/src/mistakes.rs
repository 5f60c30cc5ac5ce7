//! What could not be read of a file of another tool: all of it counted, the first few in words.

/// What could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportMistakes {
    /// How much.
    pub count: u64,
    /// The first few, in words.
    pub first: Vec<String>,
}

impl ImportMistakes {
    /// Counts one; its words are kept as long as there are fewer than `most`.
    pub(crate) fn add(&mut self, most: usize, words: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < most {
            self.first.push(words());
        }
    }
}
