//! The address of a web server to which is posted. Its path, its query and its login may be secrets: only the server is ever named.

use crate::error::{Error, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt;

/// The longest address, in bytes.
const LONGEST_URL: usize = 4096;

/// An address of HTTP or HTTPS.
#[derive(Clone, PartialEq, Eq)]
pub struct PushUrl {
    pub(super) is_tls: bool,
    pub(super) host: String,
    pub(super) port: u16,
    /// Path and query.
    path: String,
    /// The value of `Authorization`, if the address has a login.
    authorization: Option<String>,
}

impl fmt::Debug for PushUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushUrl")
            .field("server", &self.server())
            .finish_non_exhaustive()
    }
}

impl PushUrl {
    /// Parses `http://HOST[:PORT][/PATH]`, perhaps with `https`, a login (`USER:PASSWORD@`) and a query.
    ///
    /// # Errors
    /// With what is wrong. No error quotes the address.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let wrong =
            |what: &str| {
                Err(Error::input(format!("this is not an address to post to: {what}"))
                .hint("write it as in http://collector:4318 or https://hooks.example/services/KEY"))
            };
        let is_plain = |c: char| c.is_ascii_graphic();
        if text.len() > LONGEST_URL || !text.chars().all(is_plain) {
            return wrong(
                "it is too long, or has spaces or other characters that are not of addresses",
            );
        }
        let (is_tls, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            _ => return wrong("it does not begin with http:// or https://"),
        };
        // A fragment is never sent.
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (login, place) = match authority.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, authority),
        };
        let Some((host, port)) = host_and_port(place, if is_tls { 443 } else { 80 }) else {
            return wrong("its host or port cannot be one");
        };
        let path = match path.strip_prefix('/') {
            Some(_) => path.to_owned(),
            None => format!("/{path}"),
        };
        Ok(Self {
            is_tls,
            host,
            port,
            path,
            authorization: login.map(|login| format!("Basic {}", STANDARD.encode(decoded(login)))),
        })
    }

    /// The server, for messages: `https://collector:4318`.
    #[must_use]
    pub fn server(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}", self.place())
    }

    /// Host and port, as `Host` has them.
    pub(super) fn place(&self) -> String {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        match (self.is_tls, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }

    /// The path and query, with `below` behind the path.
    pub(super) fn target(&self, below: &str) -> String {
        match (below, self.path.split_once('?')) {
            ("", _) => self.path.clone(),
            (below, Some((path, query))) => {
                format!("{}{below}?{query}", path.trim_end_matches('/'))
            }
            (below, None) => format!("{}{below}", self.path.trim_end_matches('/')),
        }
    }

    pub(super) fn authorization(&self) -> Option<&str> {
        self.authorization.as_deref()
    }
}

fn host_and_port(place: &str, default: u16) -> Option<(String, u16)> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, behind) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (
                host,
                behind
                    .strip_prefix(':')
                    .or(behind.is_empty().then_some(""))?,
            )
        }
        None => place.split_once(':').unwrap_or((place, "")),
    };
    let is_host = |c: char| c.is_ascii_alphanumeric() || "._-:".contains(c);
    if host.is_empty() || host.len() > 253 || !host.chars().all(is_host) {
        return None;
    }
    let port = match port {
        "" => default,
        digits => digits.parse().ok().filter(|port| *port > 0)?,
    };
    Some((host.to_owned(), port))
}

/// A login with its characters in per cent signs (RFC 3986, 2.1) replaced.
fn decoded(text: &str) -> Vec<u8> {
    let (bytes, mut decoded, mut at) = (text.as_bytes(), Vec::new(), 0);
    while let Some(byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).filter(|_| *byte == b'%');
        let value = digits
            .and_then(|digits| str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(value.unwrap_or(*byte));
        at += if value.is_some() { 3 } else { 1 };
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, String, Option<String>) {
        let url = PushUrl::parse(text).unwrap();
        let login = url.authorization().map(str::to_owned);
        (url.server(), url.target("/v1/metrics"), login)
    }

    #[test]
    fn addresses_have_their_parts() {
        let plain = |server: &str, target: &str| (server.to_owned(), target.to_owned(), None);
        assert_eq!(
            parts("http://collector:4318"),
            plain("http://collector:4318", "/v1/metrics")
        );
        assert_eq!(
            parts("HTTPS://hooks.example/a/KEY/?x=1#part"),
            plain("https://hooks.example", "/a/KEY/v1/metrics?x=1")
        );
        assert_eq!(
            parts("http://[::1]:80/"),
            plain("http://[::1]", "/v1/metrics")
        );
        assert_eq!(
            parts("https://me:p%40ss@[2001:db8::1]:8443/"),
            (
                "https://[2001:db8::1]:8443".to_owned(),
                "/v1/metrics".to_owned(),
                // me:p@ss
                Some("Basic bWU6cEBzcw==".to_owned())
            )
        );
        assert_eq!(PushUrl::parse("http://h?k=1").unwrap().target(""), "/?k=1");
    }

    #[test]
    fn wrong_addresses_are_refused_and_never_quoted() {
        for text in [
            "",
            "collector:4318",
            "ftp://h/secret",
            "http://",
            "http://:80/secret",
            "http://h:0/secret",
            "http://h:99999/secret",
            "http://h/secret\r\nX: y",
            "http://[::1/secret",
            "http://[zz]/secret",
            &format!("http://h/secret{}", "x".repeat(5000)),
        ] {
            let error = PushUrl::parse(text).unwrap_err();
            assert!(!error.message.contains("secret"), "{}", error.message);
        }
        let url = PushUrl::parse("https://me:word@h/secret?key=1").unwrap();
        let shown = format!("{url:?} {}", url.server());
        assert!(
            !shown.contains("secret") && !shown.contains("word"),
            "{shown}"
        );
    }
}
