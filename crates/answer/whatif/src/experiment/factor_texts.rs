//! Collects the factors of an experiment: those written in the specification, then those given on the command line.

use stackline_core::error::{Error, Result};
use stackline_spec::{Diagnostic, Factor};

/// The factors written in `text`, then the `given` ones. `refuse` makes the error for a given factor with mistakes.
///
/// # Errors
/// If there is no factor, one has a mistake, or one is given twice.
pub fn parse_factors(
    given: &[String],
    text: &str,
    refuse: &mut dyn FnMut(&str, &[Diagnostic]) -> Error,
) -> Result<Vec<Factor>> {
    // Mistakes in the text are reported when the specification is checked.
    let mut factors = stackline_spec::factors(text).unwrap_or_default();
    for one in given {
        match stackline_spec::factor(one) {
            Ok(factor) => factors.push(factor),
            Err(mistakes) => return Err(refuse(one, &mistakes)),
        }
    }
    if factors.is_empty() {
        return Err(Error::input("no factor is specified")
            .hint("specify at least one, as in `--factor 'bandwidth of a - b x 10' --factor 'receive_buffer = 64 KiB, 1 MiB'`"));
    }
    let is_twice = |at: &usize| {
        let before = &factors[..*at];
        before.iter().any(|one| one.name == factors[*at].name)
    };
    match (1..factors.len()).find(is_twice) {
        Some(twice) => Err(given_twice(given, &factors[twice].name)),
        None => Ok(factors),
    }
}

/// The error for a factor that is given twice, with a hint how to give all its levels at once.
fn given_twice(given: &[String], name: &str) -> Error {
    let mut same = given
        .iter()
        .map(|text| text.trim())
        .filter(|text| text.starts_with(name));
    let (first, again) = (same.next().unwrap_or(name), same.next().unwrap_or("x 10"));
    let levels = again
        .strip_prefix(name)
        .unwrap_or(again)
        .trim()
        .trim_start_matches('=')
        .trim();
    Error::input(format!("the factor `{name}` is specified twice")).hint(format!(
        "specify all its levels at once: `--factor '{first}, {levels}'`"
    ))
}
