//! The address of a far end: a server outside the run, `SCHEME://HOST[:PORT][/PATH]` (RFC 3986).

use crate::error::{Error, Result};
use alloc::format;
use alloc::string::{String, ToString};

/// The longest address, in bytes.
const LONGEST: usize = 2048;

/// The parts of a far end's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FarEndAddress {
    /// The protocol: `http`. It is the name of the stack that speaks it.
    pub scheme: String,
    /// The name or address of the host; an IPv6 address without its brackets.
    pub host: String,
    /// The port, where one is written.
    pub port: Option<u16>,
    /// What stands behind host and port, from its `/` or `?` on; may be empty. A fragment (`#...`) is left out.
    pub path: String,
}

/// Whether a text is written as an address, not as the name of a host.
#[must_use]
pub fn is_address(text: &str) -> bool {
    text.contains("://")
}

impl FarEndAddress {
    /// The parts of an address.
    ///
    /// # Errors
    /// An [`Error`] of the input when it is not an address, or has a user's name or password.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |what: &str| {
            let message = format!("`{text}` is not the address of a server: {what}");
            Err(Error::input(message).hint("write it as in \"http://127.0.0.1:8080/index.html\""))
        };
        if text.len() > LONGEST {
            return Err(Error::input(format!(
                "the address of a server has at most {LONGEST} bytes"
            )));
        }
        if text.bytes().any(|byte| !byte.is_ascii_graphic()) {
            return wrong(
                "it has spaces, control characters or letters beyond ASCII (write those as %20)",
            );
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return wrong("it has no `://`");
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            let message = "a user's name or password in an address would be kept with the results";
            return Err(Error::input(message).hint("omit it, up to the `@`"));
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => match rest.split_once(']') {
                Some((host, port)) => (
                    host,
                    port.strip_prefix(':').or(port.is_empty().then_some("")),
                ),
                None => return wrong("a `]` is missing"),
            },
            None => match authority.rsplit_once(':') {
                Some((host, _)) if host.contains(':') => {
                    return wrong("an IPv6 address is written in brackets");
                }
                Some((host, port)) => (host, Some(port)),
                None => (authority, Some("")),
            },
        };
        if host.is_empty() {
            return wrong("it has no host");
        }
        let port = match port {
            Some("") => None,
            Some(digits) => match digits.parse::<u16>() {
                Ok(port @ 1..) => Some(port),
                _ => return wrong("a port is a number from 1 to 65535"),
            },
            None => return wrong("a `:` and a port, or a path, may follow the `]`"),
        };
        Ok(Self {
            scheme: scheme.to_ascii_lowercase(),
            host: host.to_string(),
            port,
            path: path.to_string(),
        })
    }

    /// Host and port as sockets take them: `127.0.0.1:80`, `[::1]:80`.
    #[must_use]
    pub fn socket(&self, default_port: u16) -> String {
        let port = self.port.unwrap_or(default_port);
        if self.host.contains(':') {
            format!("[{}]:{port}", self.host)
        } else {
            format!("{}:{port}", self.host)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, String, Option<u16>, String) {
        let address = FarEndAddress::parse(text).unwrap();
        (address.scheme, address.host, address.port, address.path)
    }

    fn owned(
        scheme: &str,
        host: &str,
        port: Option<u16>,
        path: &str,
    ) -> (String, String, Option<u16>, String) {
        (scheme.into(), host.into(), port, path.into())
    }

    #[test]
    fn an_address_has_its_parts() {
        for (text, expected) in [
            ("http://a", owned("http", "a", None, "")),
            ("HTTP://a.b:8080", owned("http", "a.b", Some(8080), "")),
            ("http://a/b?c=d#e", owned("http", "a", None, "/b?c=d")),
            ("http://a?x=1", owned("http", "a", None, "?x=1")),
            ("echo://[::1]:7", owned("echo", "::1", Some(7), "")),
            (
                "redis://[fe80::1%eth0]/get/k",
                owned("redis", "fe80::1%eth0", None, "/get/k"),
            ),
        ] {
            assert_eq!(parts(text), expected, "{text}");
        }
        assert_eq!(
            FarEndAddress::parse("http://[::1]").unwrap().socket(80),
            "[::1]:80"
        );
        assert_eq!(
            FarEndAddress::parse("http://a:81/").unwrap().socket(80),
            "a:81"
        );
    }

    #[test]
    fn what_is_not_an_address_is_refused_with_the_reason() {
        for (text, reason) in [
            ("http:/a", "no `://`"),
            ("http://", "no host"),
            ("http://:80/", "no host"),
            ("http://a:0/", "a port is"),
            ("http://a:99999", "a port is"),
            ("http://::1/", "in brackets"),
            ("http://[::1/", "`]` is missing"),
            ("http://[::1]x", "may follow"),
            ("http://a b/", "spaces"),
            ("http://a\r\nHost: b/", "control characters"),
            ("http://u:p@a/", "password"),
        ] {
            let error = FarEndAddress::parse(text).unwrap_err();
            assert!(error.message.contains(reason), "{text}: {}", error.message);
        }
    }
}
