//! Networks that are written for other tools, as the text of a network of the language: what they say, with what would
//! really happen there as comments.
//!
//! It opens no file. Sizes and counts of what is read are bounded; what has no equivalent is an error that says what
//! comes closest, and never left out without a word.

mod foreign_form;
mod mahimahi;
mod mininet;
mod network_text;
mod queueing_disciplines;
mod shell_words;

use foreign_form::ForeignForm;
use stackline_core::error::{Error, Result};

/// The longest text that is read, in bytes.
pub const LONGEST: usize = 4 << 20;

/// Forms of other tools, as they are named for `--as`: the first one that recognises a text reads it.
const FORMS: &[ForeignForm] = &[queueing_disciplines::FORM, mahimahi::FORM, mininet::FORM];

/// The names of the forms, each with what it is.
pub fn forms() -> impl Iterator<Item = (&'static str, &'static str)> {
    FORMS.iter().map(|form| (form.name, form.what))
}

/// The text of the network `name` that `text` describes, in the form named `form` or in the one that it seems to have.
///
/// # Errors
/// What cannot be read, with its line where it has one, and what to do about it.
pub fn read(text: &str, form: Option<&str>, name: &str) -> Result<String> {
    if text.len() > LONGEST {
        let message = "the network's text is longer than 4 MiB";
        return Err(Error::input(message).hint("keep only what describes the network"));
    }
    let known = || {
        let names: Vec<&str> = FORMS.iter().map(|form| form.name).collect();
        names.join(", ")
    };
    let found = match form {
        Some(form) => FORMS.iter().find(|known| known.name == form),
        None => FORMS.iter().find(|known| (known.recognises)(text)),
    };
    let Some(found) = found else {
        let error = match form {
            Some(form) => Error::input(format!("`{form}` is not a form of networks")),
            None => Error::input("the text has none of the forms of networks that are known"),
        };
        return Err(error.hint(format!("known forms: {}", known())));
    };
    Ok((found.read)(text)?.print(name))
}
