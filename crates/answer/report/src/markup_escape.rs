//! Escapes text for markup such as SVG and HTML. The data of a run's page are not markup at all: see `page::markup_safe_data`.

/// Escapes a text for use between tags or in a quoted attribute; control characters become spaces.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
