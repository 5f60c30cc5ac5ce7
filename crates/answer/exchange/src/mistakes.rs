//! Mistakes in a file of another tool: all are counted, the first few are kept in words.

/// What could not be read of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportMistakes {
    /// The number of mistakes.
    pub count: u64,
    /// The first few, in words.
    pub first: Vec<String>,
}

impl ImportMistakes {
    /// Counts a mistake; keeps its words if there are fewer than `most`.
    pub(crate) fn add(&mut self, most: usize, words: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < most {
            self.first.push(words());
        }
    }
}
