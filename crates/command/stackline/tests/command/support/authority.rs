//! An authority of the test, the certificates that it signs, and what holds of every server that has one.

use super::daemons::run_with;
use super::{Place, number};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::PathBuf;

/// The certificate of an authority, as a file, and those of a server named `localhost` that it signed.
pub(crate) struct TestAuthority {
    pub(crate) file: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    /// The same for a certificate that has expired.
    pub(crate) expired: PathBuf,
    pub(crate) expired_key: PathBuf,
}

impl TestAuthority {
    /// Writes its files into the place; `owner` is the only user who can read the keys, as some servers want it.
    pub(crate) fn new(place: &Place, owner: Option<u32>) -> Self {
        let mut own = CertificateParams::new(Vec::new()).unwrap();
        own.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let file = own.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(own, key);
        let signed = |name: &str, year: i32| {
            let mut of_server = CertificateParams::new(vec!["localhost".into()]).unwrap();
            of_server.not_before = date_time_ymd(2019, 1, 1);
            of_server.not_after = date_time_ymd(year, 1, 1);
            let key = KeyPair::generate().unwrap();
            let certificate = of_server.signed_by(&key, &issuer).unwrap().pem();
            let written = (
                place.write(&format!("{name}.pem"), certificate),
                place.write(&format!("{name}.key"), key.serialize_pem()),
            );
            fs::set_permissions(&written.1, Permissions::from_mode(0o600)).unwrap();
            if owner.is_some() {
                chown(&written.1, owner, None).unwrap();
            }
            written
        };
        let (certificate, key) = signed("server", 2100);
        let (expired, expired_key) = signed("expired", 2020);
        Self {
            file: place.write("authority.pem", file),
            certificate,
            key,
            expired,
            expired_key,
        }
    }

    /// The variable that lets a client believe it.
    pub(crate) fn variable(&self) -> (&'static str, &str) {
        ("SSL_CERT_FILE", self.file.to_str().unwrap())
    }
}

/// A server as it is measured: its address at a host, which has to be `{}` in it, a login, and what is done.
pub(crate) struct Measured<'t> {
    pub(crate) address: String,
    pub(crate) login: &'t [(&'t str, &'t str)],
    /// How the part goes on behind the address, and the calls that this makes.
    pub(crate) what: &'t str,
    pub(crate) calls: f64,
    /// The options with which the certificate is checked, and without.
    pub(crate) over: &'t str,
    pub(crate) insecure: &'t str,
}

impl Measured<'_> {
    /// That the server is believed by its authority and its name, or with `insecure`, and not otherwise.
    pub(crate) fn is_believed_by_its_certificate(&self, place: &Place, authority: &TestAuthority) {
        let text = |host: &str, over: &str| {
            let (address, what) = (self.address.replace("{}", host), self.what);
            let over = if over.is_empty() {
                String::new()
            } else {
                format!("over {over}")
            };
            format!("2 to \"{address}\" {what} {over}")
        };
        let believing = [self.login, &[authority.variable()]].concat();
        for (variables, text) in [
            (&believing[..], text("localhost", self.over)),
            (self.login, text("127.0.0.1", self.insecure)),
        ] {
            let output = run_with(place, variables, &text);
            output.succeeds();
            let row = output.json()["measurements"][0].clone();
            assert_eq!(number(&row, "/response_s/n"), self.calls, "{row}");
            let settings = &row["initiator"]["settings"];
            assert_eq!(settings["tls"], "TLSv1_3", "{row}");
        }
        for (variables, host, message) in [
            (
                &believing[..],
                "127.0.0.1",
                "it is for localhost, not for 127.0.0.1",
            ),
            (self.login, "localhost", "by an unknown authority"),
        ] {
            let output = run_with(place, variables, &text(host, self.over));
            output.fails(1, &["the certificate of the server at", message]);
            output.hints("insecure)`");
        }
    }
}
