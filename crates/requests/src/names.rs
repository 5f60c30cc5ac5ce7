//! Names of requests without what may be secret in them: values of a URL's query, literals of a statement, arguments of a command.

/// The name with its values left out: `GET /a?q=…`, `SELECT a FROM b WHERE c = ?`. What has no values stays.
#[must_use]
pub fn masked(protocol: &str, name: &str) -> String {
    match protocol {
        "PostgreSQL" | "MySQL" => without_literals(name),
        _ if protocol.starts_with("HTTP") => without_query(name),
        _ => name.to_owned(),
    }
}

/// Keys of a URL's query stay, values go.
fn without_query(name: &str) -> String {
    let Some((path, query)) = name.split_once('?') else { return name.to_owned() };
    let keys: Vec<String> = query
        .split('&')
        .map(|pair| pair.split_once('=').map_or_else(|| "…".to_owned(), |(key, _)| format!("{key}=…")))
        .collect();
    format!("{path}?{}", keys.join("&"))
}

/// Numbers and quoted texts become `?`.
fn without_literals(statement: &str) -> String {
    let mut out = String::with_capacity(statement.len());
    let mut letters = statement.chars().peekable();
    let mut before = ' ';
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => {
                // Two quotes in a row stand for one within.
                while let Some(inner) = letters.next() {
                    if inner == '\'' && letters.next_if_eq(&'\'').is_none() {
                        break;
                    }
                }
                out.push('?');
            }
            '0'..='9' if !before.is_alphanumeric() && before != '_' && before != '$' => {
                while letters.next_if(|next| next.is_alphanumeric() || *next == '.').is_some() {}
                out.push('?');
            }
            letter if letter.is_whitespace() => {
                if !before.is_whitespace() {
                    out.push(' ');
                }
            }
            letter => out.push(letter),
        }
        before = letter;
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::masked;

    #[test]
    fn values_are_left_out() {
        for (protocol, name, kept) in [
            ("HTTP/1.1", "GET /a/7?q=secret&token", "GET /a/7?q=…&…"),
            (
                "PostgreSQL",
                "SELECT a1 FROM t2\n WHERE b = 'it''s' AND c > 1.5e3",
                "SELECT a1 FROM t2 WHERE b = ? AND c > ?",
            ),
            ("MySQL", "INSERT INTO x VALUES ($1, 0x1F, '')", "INSERT INTO x VALUES ($1, ?, ?)"),
            ("Redis", "GET user:7", "GET user:7"),
        ] {
            assert_eq!(masked(protocol, name), kept);
        }
    }
}
