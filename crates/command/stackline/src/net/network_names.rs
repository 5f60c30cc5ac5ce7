//! Names of networks and of links, as a person writes and reads them.

use stackline_core::network::NetworkLink;

/// As a shell takes it.
pub(super) fn quoted(name: &str) -> String {
    if name.contains('(') {
        format!("'{name}'")
    } else {
        name.to_string()
    }
}

/// A link by its ends, as the language writes it.
pub(super) fn link_name(link: &NetworkLink) -> String {
    format!(
        "{} {} {}",
        link.ends.0,
        if link.one_way { "->" } else { "-" },
        link.ends.1
    )
}

/// The first of a list, with the number of the others.
pub(super) fn shortened(all: &[String]) -> String {
    const MOST: usize = 8;
    let shown = all
        .iter()
        .take(MOST)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if all.len() > MOST {
        format!("{shown} and {} more", all.len() - MOST)
    } else {
        shown
    }
}
