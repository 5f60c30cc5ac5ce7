//! What the clients of databases have in common: their addresses, as in `postgres://127.0.0.1/DATABASE?user=NAME&query=SELECT%201`.

use super::tls::TlsTrust;
use super::words::percent_decoded_text;
use crate::error::{Error, Result};
use nix::unistd::{User, geteuid};
use stackline_core::far_end::FarEndAddress;
use stackline_core::plan::Stack;

/// The words of a database's address.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DatabaseAddress {
    /// Empty if there is none.
    pub(super) database: String,
    pub(super) user: Option<String>,
    pub(super) query: String,
    /// Whether the connection is one of TLS, and whose certificates are believed then, if the address says so.
    tls: Option<DatabaseTls>,
}

/// What an address says of TLS, as the databases' own clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DatabaseTls {
    Off,
    On(TlsTrust),
}

/// The parameters of TLS: libpq's, and that of MySQL's clients.
const TLS_PARAMETERS: [&str; 2] = ["sslmode", "ssl-mode"];

impl DatabaseAddress {
    /// Those of `address`; `password` is the variable of the environment where a password belongs.
    pub(super) fn new(address: &FarEndAddress, password: &str) -> Result<Self> {
        let (path, parameters) = address.path.split_once('?').unwrap_or((&address.path, ""));
        let mut words = Self {
            database: text(path.trim_matches('/'))?,
            user: None,
            query: "SELECT 1".to_string(),
            tls: None,
        };
        for parameter in parameters.split('&').filter(|word| !word.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            match name {
                "user" => words.user = Some(text(value)?),
                "query" => words.query = text(value)?,
                name if TLS_PARAMETERS.contains(&name) => {
                    words.tls = Some(DatabaseTls::parse(name, value)?);
                }
                "password" => {
                    let message = "a password in an address would be kept with the results";
                    return Err(Error::input(message).hint(format!(
                        "set {password} in the environment of the initiator's agent"
                    )));
                }
                _ => {
                    let message = format!("the address of a database has no `{name}`");
                    return Err(Error::input(message)
                        .hint("behind the `?` may stand `user=NAME`, `query=SELECT%201` and `sslmode=require`, with `&` between them"));
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

impl DatabaseTls {
    /// What a parameter's value says: of PostgreSQL's clients
    /// (<https://www.postgresql.org/docs/current/libpq-ssl.html>, table 32.1), or of MySQL's (`--ssl-mode`).
    fn parse(name: &str, value: &str) -> Result<Self> {
        match value.to_ascii_lowercase().as_str() {
            "disable" | "disabled" => Ok(Self::Off),
            "require" | "required" => Ok(Self::On(TlsTrust::Anyone)),
            "verify-full" | "verify_identity" => Ok(Self::On(TlsTrust::Authorities)),
            "allow" | "prefer" | "preferred" => {
                let message =
                    format!("`{name}={value}` leaves to the server whether TLS is measured");
                Err(Error::input(message).hint("write `require`, `verify-full` or `disable`"))
            }
            "verify-ca" | "verify_ca" => {
                let message = format!("`{name}={value}`, without the server's name, is not known");
                Err(Error::input(message).hint(
                    "write `verify-full`, which checks the name too, or `require`, which checks nothing",
                ))
            }
            _ => {
                let message = format!("`{name}` has no value `{value}`");
                Err(Error::input(message).hint("write `require`, `verify-full` or `disable`"))
            }
        }
    }
}

/// Whether a database is asked for TLS, by its address or the option `tls`, and whose certificates are believed.
pub(super) fn find_trust(
    address: &FarEndAddress,
    stack: &Stack,
    password: &str,
) -> Result<Option<TlsTrust>> {
    let written = DatabaseAddress::new(address, password)?.tls;
    match (written, stack.flag("tls")) {
        (None, false) | (Some(DatabaseTls::Off), false) => Ok(None),
        (None, true) => Ok(Some(TlsTrust::in_options(stack))),
        (Some(DatabaseTls::On(trust)), false) => Ok(Some(trust)),
        (Some(_), true) => Err(Error::input(
            "both the address and the option `tls` say what to do about TLS",
        )
        .hint("keep one of them")),
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
        for (path, tls) in [
            ("/d", None),
            ("/d?sslmode=disable", Some(DatabaseTls::Off)),
            (
                "/d?sslmode=require",
                Some(DatabaseTls::On(TlsTrust::Anyone)),
            ),
            (
                "/d?ssl-mode=VERIFY_IDENTITY",
                Some(DatabaseTls::On(TlsTrust::Authorities)),
            ),
        ] {
            assert_eq!(words(path).unwrap().tls, tls, "{path}");
        }
        for (path, message) in [
            ("/d?sslmode=prefer", "leaves to the server"),
            ("/d?sslmode=verify-ca", "without the server's name"),
            ("/d?sslmode=yes", "has no value `yes`"),
            ("/d?password=x", "a password in an address"),
            ("/d?host=x", "has no `host`"),
            ("/d%00", "zero byte"),
        ] {
            assert!(words(path).unwrap_err().message.contains(message));
        }
    }
}
