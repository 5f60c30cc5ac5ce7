//! Helpers to collect phrases that describe something: properties that do not hold or have no value are not mentioned.

/// A list of phrases.
pub(crate) trait Phrases {
    /// Adds the phrase if the condition holds.
    fn when(&mut self, holds: bool, phrase: &str);
    /// Adds the phrase for a value, if there is one.
    fn with<T>(&mut self, value: Option<T>, phrase: impl FnOnce(T) -> String);
}

impl Phrases for Vec<String> {
    fn when(&mut self, holds: bool, phrase: &str) {
        self.extend(holds.then(|| phrase.to_owned()));
    }

    fn with<T>(&mut self, value: Option<T>, phrase: impl FnOnce(T) -> String) {
        self.extend(value.map(phrase));
    }
}
