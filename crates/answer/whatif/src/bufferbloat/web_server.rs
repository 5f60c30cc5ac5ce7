//! The web server that a question about latency is put to: its addresses, and the version of HTTP that each of them speaks.

use super::own_words;
use stackline_core::error::{Error, Result};
use stackline_core::far_end::FarEndAddress;
use stackline_live::stacks::negotiate_http_version;
use std::collections::BTreeMap;

/// What is asked of a web server.
#[derive(Clone, Debug)]
pub struct BufferbloatAddresses {
    /// The address of something large: it is what is downloaded.
    pub url: String,
    /// What the probes request; the root of the same server if it is not given.
    pub probe: Option<String>,
    /// Where uploads are posted; the same address as downloads if it is not given.
    pub upload: Option<String>,
    /// The version of HTTP, as the option `version` names it; what the server chooses if it is not given.
    pub version: Option<String>,
    /// Whether any certificate is believed.
    pub insecure: bool,
}

/// An address and the version of HTTP that is spoken there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebAddress {
    /// The address.
    pub url: String,
    /// The version, as the option `version` names it.
    pub version: String,
}

/// A web server that is asked.
#[derive(Clone, Debug)]
pub struct BufferbloatServer {
    /// What is downloaded.
    pub download: WebAddress,
    /// What the probes request.
    pub probe: WebAddress,
    /// Where uploads are posted.
    pub upload: WebAddress,
    /// Whether any certificate is believed.
    pub insecure: bool,
    /// Whether the server has chosen the version.
    pub by_alpn: bool,
}

impl BufferbloatServer {
    /// Finds out which version of HTTP is spoken, unless that is said: over TLS the server chooses (ALPN), which takes a connection; without
    /// TLS it is HTTP/1.1.
    ///
    /// # Errors
    /// An [`Error`] of the input for what is not the address of a web server, else why the server cannot be asked.
    pub fn ask(addresses: BufferbloatAddresses) -> Result<Self> {
        let BufferbloatAddresses {
            url,
            probe,
            upload,
            version,
            insecure,
        } = addresses;
        let probe = probe.unwrap_or_else(|| format!("{}/", origin(&url)));
        let upload = upload.unwrap_or_else(|| url.clone());
        let all = [url, probe, upload];
        for url in &all {
            check_address(url, version.as_deref())?;
        }
        let mut known: BTreeMap<String, String> = BTreeMap::new();
        let mut spoken = |url: String| -> Result<WebAddress> {
            let origin = origin(&url).to_ascii_lowercase();
            let version = match (&version, known.get(&origin)) {
                (Some(version), _) | (None, Some(version)) => version.clone(),
                (None, None) if has_tls(&url) => negotiate_http_version(&url, insecure)
                    .map_err(own_words)?
                    .to_owned(),
                (None, None) => "http1".to_owned(),
            };
            known.insert(origin, version.clone());
            Ok(WebAddress { url, version })
        };
        let [download, probe, upload] = all;
        Ok(Self {
            by_alpn: version.is_none() && has_tls(&download),
            download: spoken(download)?,
            probe: spoken(probe)?,
            upload: spoken(upload)?,
            insecure,
        })
    }

    /// Whether probes can be on the connections that carry a load to that address: they are requests to the same server, and its version of
    /// HTTP has several on one connection.
    #[must_use]
    pub fn shares_with(&self, load: &WebAddress) -> bool {
        self.probe.version != "http1"
            && load.version == self.probe.version
            && origin(&load.url).eq_ignore_ascii_case(origin(&self.probe.url))
    }

    /// Why a load has no probes on its connections, if it has none.
    pub(super) fn why_not_shared(&self) -> &'static str {
        let all = [&self.download, &self.probe, &self.upload];
        match all.iter().any(|address| address.version == "http1") {
            true => "over HTTP/1.1 a connection carries one request at a time",
            false => "the probes' address is on another server than the load's",
        }
    }

    /// What is asked, by which version: `https://a.example/big (HTTP/2, which the server chose)`.
    #[must_use]
    pub fn title(&self) -> String {
        let WebAddress { url, version } = &self.download;
        let chosen = if self.by_alpn {
            ", as the server chose"
        } else {
            ""
        };
        format!("{url} ({}{chosen})", shown_version(version))
    }
}

/// A version of HTTP as people write it.
#[must_use]
pub(super) fn shown_version(version: &str) -> &'static str {
    match version {
        "http3" => "HTTP/3",
        "http2" => "HTTP/2",
        _ => "HTTP/1.1",
    }
}

pub(super) fn has_tls(url: &str) -> bool {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"))
}

/// Scheme, host and port of an address.
fn origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url[host..].find(['/', '?', '#']);
    &url[..end.map_or(url.len(), |end| host + end)]
}

/// Checks that it is the address of a web server which can speak that version.
fn check_address(url: &str, version: Option<&str>) -> Result<()> {
    let address = FarEndAddress::parse(url)?;
    match (address.scheme.as_str(), version) {
        ("http", Some("http3")) => {
            let message = format!("HTTP/3 is spoken over TLS alone, and `{url}` is without it");
            Err(Error::input(message).hint("write https://, or --http 1"))
        }
        ("http" | "https", _) => Ok(()),
        _ => {
            let message = format!("`{url}` is not the address of a web server");
            Err(Error::input(message).hint("it begins with http:// or https://"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(url: &str) -> BufferbloatAddresses {
        BufferbloatAddresses {
            url: url.into(),
            probe: None,
            upload: None,
            version: None,
            insecure: false,
        }
    }

    #[test]
    fn what_is_not_given_is_the_root_and_the_same_address() {
        let server = BufferbloatServer::ask(addresses("http://a.example:81/big?x=1")).unwrap();
        assert_eq!(server.probe.url, "http://a.example:81/");
        assert_eq!(server.upload.url, "http://a.example:81/big?x=1");
        assert_eq!(server.title(), "http://a.example:81/big?x=1 (HTTP/1.1)");
        assert!(!server.shares_with(&server.download));
    }

    #[test]
    fn probes_share_connections_of_http2_and_http3_to_their_own_server() {
        let ask = |probe: &str, version: &str| {
            BufferbloatServer::ask(BufferbloatAddresses {
                probe: Some(probe.into()),
                version: Some(version.into()),
                ..addresses("https://a.example/big")
            })
            .unwrap()
        };
        let shares = |server: BufferbloatServer| server.shares_with(&server.download);
        assert!(shares(ask("https://a.example/small", "http2")));
        assert!(shares(ask("https://a.example/small", "http3")));
        assert!(!shares(ask("https://a.example/small", "http1")));
        assert!(!shares(ask("https://b.example/small", "http2")));
        assert!(!shares(ask("https://a.example:8443/small", "http2")));
    }

    #[test]
    fn addresses_that_cannot_be_asked_are_refused() {
        let refused = |url: &str, version: Option<&str>| {
            let asked = BufferbloatServer::ask(BufferbloatAddresses {
                version: version.map(str::to_owned),
                ..addresses(url)
            });
            asked.unwrap_err().to_string()
        };
        assert!(refused("ftp://a/", None).contains("not the address of a web server"));
        assert!(refused("http://a/", Some("http3")).contains("over TLS alone"));
    }
}
