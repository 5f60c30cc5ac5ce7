//! The command line of a benchmark: flags, flags with a value, numbers and words. What is taken is gone; what is left are words.

use std::str::FromStr;

/// The words behind the program's name that were not taken yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchArguments(Vec<String>);

impl BenchArguments {
    /// Those of this process, without the flag that cargo adds.
    #[must_use]
    pub fn read() -> Self {
        Self::parse(std::env::args().skip(1))
    }

    /// Those of any words.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Self {
        Self(words.into_iter().filter(|word| word != "--bench").collect())
    }

    /// Whether that flag is there.
    pub fn take_flag(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|word| word != name);
        self.0.len() < before
    }

    /// The word behind a flag.
    ///
    /// # Errors
    /// When the flag is there and nothing is behind it.
    pub fn take_word(&mut self, name: &str) -> Result<Option<String>, String> {
        let Some(at) = self.0.iter().position(|word| word == name) else {
            return Ok(None);
        };
        if at + 1 == self.0.len() {
            return Err(format!("{name} takes a value"));
        }
        self.0.remove(at);
        Ok(Some(self.0.remove(at)))
    }

    /// The number behind a flag, else `usual`.
    ///
    /// # Errors
    /// When what is behind it is no such number.
    pub fn take_number<T: FromStr>(&mut self, name: &str, usual: T) -> Result<T, String> {
        match self.take_word(name)? {
            None => Ok(usual),
            Some(word) => word
                .parse()
                .map_err(|_| format!("{name} takes a number, not `{word}`")),
        }
    }

    /// The first word that is a number.
    pub fn take_first_number<T: FromStr>(&mut self) -> Option<T> {
        let at = self.0.iter().position(|word| word.parse::<T>().is_ok())?;
        self.0.remove(at).parse().ok()
    }

    /// The words that are left.
    ///
    /// # Errors
    /// When one of them is a flag.
    pub fn into_words(self) -> Result<Vec<String>, String> {
        match self.0.iter().find(|word| word.starts_with('-')) {
            Some(flag) => Err(format!("unknown flag `{flag}` of this benchmark")),
            None => Ok(self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> BenchArguments {
        BenchArguments::parse(line.split(' ').map(str::to_owned))
    }

    #[test]
    fn what_is_taken_is_gone() {
        let mut left = arguments("--quick tcp --rounds 7 3 --bench");
        assert!(left.take_flag("--quick") && !left.take_flag("--quick"));
        assert_eq!(left.take_number("--rounds", 5), Ok(7));
        assert_eq!(left.take_number("--rounds", 5), Ok(5));
        assert_eq!(left.take_first_number(), Some(3));
        assert_eq!(left.into_words(), Ok(vec!["tcp".to_owned()]));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(arguments("--rounds").take_number("--rounds", 5).is_err());
        assert!(arguments("--rounds x").take_number("--rounds", 5).is_err());
        let other = arguments("--other").into_words();
        assert!(other.is_err_and(|why| why.contains("--other")));
    }
}
