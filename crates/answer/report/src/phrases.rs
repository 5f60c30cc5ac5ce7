//! What there is to say of a thing, phrase by phrase: what does not hold, or has no value, is not mentioned.

/// A list of phrases.
pub(crate) trait Phrases {
    /// Says it where it holds.
    fn when(&mut self, holds: bool, phrase: &str);
    /// Says it of a value that is there.
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
