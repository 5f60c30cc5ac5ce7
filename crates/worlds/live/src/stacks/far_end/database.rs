//! What the clients of databases have in common: their addresses, as in `postgres://127.0.0.1/DATABASE?user=NAME&query=SELECT%201`.

use super::words::percent_decoded_text;
use crate::error::{Error, Result};
use nix::unistd::{User, geteuid};
use stackline_core::far_end::FarEndAddress;

/// The words of a database's address.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DatabaseAddress {
    /// Empty if there is none.
    pub(super) database: String,
    pub(super) user: Option<String>,
    pub(super) query: String,
}

impl DatabaseAddress {
    /// Those of `address`; `password` is the variable of the environment where a password belongs.
    pub(super) fn new(address: &FarEndAddress, password: &str) -> Result<Self> {
        let (path, parameters) = address.path.split_once('?').unwrap_or((&address.path, ""));
        let mut words = Self {
            database: text(path.trim_matches('/'))?,
            user: None,
            query: "SELECT 1".to_string(),
        };
        for parameter in parameters.split('&').filter(|word| !word.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            match name {
                "user" => words.user = Some(text(value)?),
                "query" => words.query = text(value)?,
                "password" => {
                    let message = "a password in an address would be kept with the results";
                    return Err(Error::input(message).hint(format!(
                        "set {password} in the environment of the initiator's agent"
                    )));
                }
                _ => {
                    let message = format!("the address of a database has no `{name}`");
                    return Err(Error::input(message)
                        .hint("behind the `?` may stand `user=NAME` and `query=SELECT%201`, with `&` between them"));
                }
            }
        }
        Ok(words)
    }

    /// The user: that of the address, that of the environment, or who runs this.
    pub(super) fn find_user(&self, environment: Option<String>) -> Result<String> {
        let system = || {
            let found = User::from_uid(geteuid()).ok().flatten();
            found.map(|user| user.name)
        };
        let user = self.user.clone().or(environment).or_else(system);
        user.ok_or_else(|| {
            Error::input("the address has no user, and this process has no name")
                .hint("write `?user=NAME` at its end")
        })
    }
}

/// A word of the address: no text of these protocols can have a zero byte.
fn text(word: &str) -> Result<String> {
    let text = percent_decoded_text(word)?;
    if text.contains('\0') {
        return Err(Error::input(format!("`{word}` has a zero byte")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_database_user_and_query() {
        let words = |path: &str| {
            let address = FarEndAddress::parse(&format!("postgres://h{path}")).unwrap();
            DatabaseAddress::new(&address, "PGPASSWORD")
        };
        let plain = words("").unwrap();
        assert_eq!(
            (plain.database.as_str(), plain.query.as_str()),
            ("", "SELECT 1")
        );
        let full = words("/d%20b?user=ann&query=SELECT%201+1%20%26%201").unwrap();
        assert_eq!(
            (full.database.as_str(), full.user.as_deref()),
            ("d b", Some("ann"))
        );
        assert_eq!(full.query, "SELECT 1+1 & 1");
        assert_eq!(full.find_user(None).unwrap(), "ann");
        assert_eq!(plain.find_user(Some("bob".into())).unwrap(), "bob");
        for (path, message) in [
            ("/d?password=x", "a password in an address"),
            ("/d?host=x", "has no `host`"),
            ("/d%00", "zero byte"),
        ] {
            assert!(words(path).unwrap_err().message.contains(message));
        }
    }
}
