//! Parses `/proc/self/limits`.

/// The soft and the hard limit with the kernel's name `name`; an inner `None` means unlimited.
pub(crate) fn parse(text: &str, name: &str) -> Option<(Option<u64>, Option<u64>)> {
    let rest = text
        .lines()
        .find_map(|line| line.strip_prefix(name).filter(|rest| rest.starts_with(' ')))?;
    let mut words = rest.split_ascii_whitespace();
    Some((limit(words.next()?)?, limit(words.next()?)?))
}

fn limit(word: &str) -> Option<Option<u64>> {
    if word == "unlimited" {
        Some(None)
    } else {
        word.parse().ok().map(Some)
    }
}
