//! The web server that many run: HTTP/1.1 and HTTP/2 of nginx, over TLS and without, in one table.

use crate::support::{Place, has_program, number, skip, wait_until};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

/// A running nginx, and its ports: over TLS, HTTP/1.1 alone without it, and HTTP/2 at once.
struct Nginx {
    process: Child,
    ports: [u16; 3],
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its workers leave with it.
        let id = nix::unistd::Pid::from_raw(self.process.id() as i32);
        let _ = nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM);
        let _ = self.process.wait();
    }
}

/// Ports that nobody listens on.
fn free_ports() -> [u16; 3] {
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

fn nginx(place: &Place) -> Nginx {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let certificate = place.write("nginx/certificate.pem", made.cert.pem());
    let key = place.write("nginx/key.pem", made.signing_key.serialize_pem());
    let directory = place.path("nginx");
    let ports = free_ports();
    let [tls, plain, http2] = ports;
    let (directory, certificate, key) = (directory.display(), certificate.display(), key.display());
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|what| format!("{what}_temp_path {directory}/{what};\n"))
        .concat();
    let text = format!(
        "daemon off; worker_processes 1; pid {directory}/pid; error_log stderr;
         events {{ worker_connections 256; }}
         http {{
           log_format connections '$connection'; access_log {directory}/connections.log connections; {temporary}
           server {{
             listen 127.0.0.1:{tls} ssl http2; listen 127.0.0.1:{plain}; listen 127.0.0.1:{http2} http2;
             ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate {certificate}; ssl_certificate_key {key};
             location / {{ return 200 \"0123456789\"; }}
           }}
         }}"
    );
    let configuration = place.write("nginx/nginx.conf", text);
    let process = Command::new("/usr/sbin/nginx")
        .arg("-p")
        .arg(place.path("nginx"))
        .arg("-c")
        .arg(configuration)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let nginx = Nginx { process, ports };
    wait_until("nginx listens", || {
        TcpStream::connect(("127.0.0.1", tls)).is_ok()
    });
    nginx
}

#[test]
fn one_table_has_every_version_that_a_web_server_speaks() {
    if !has_program("/usr/sbin/nginx", "nginx-light") {
        skip("no nginx");
        return;
    }
    let place = Place::new();
    let nginx = nginx(&place);
    let [tls, plain, http2] = nginx.ports;
    let text = format!(
        "2 to \"http://127.0.0.1:{plain}/\" rr 0*50;
         2 to \"http://127.0.0.1:{http2}/\" rr 0*50 over http(version = http2);
         2 to \"https://localhost:{tls}/\" rr 0*50 over https(insecure);
         2 to \"https://localhost:{tls}/\" rr 0*50 over https(insecure, version = http2);
         2 to \"https://localhost:{tls}/\" connect_disconnect 0*5 over https(insecure, version = http2);
         2 to \"https://localhost:{tls}/\" bulk_get 10*50 over https(insecure, version = http2);
         1 to \"http://127.0.0.1:{http2}/\" rr 0*2500 over http(version = http2);"
    );
    let rows = place.measure(&text);
    for row in &rows[..4] {
        assert_eq!(number(row, "/response_s/n"), 100.0, "{row}");
        assert_eq!(row["initiator"]["settings"]["body"], "10 B", "{row}");
    }
    let settings = |row: usize, name: &str| rows[row]["initiator"]["settings"][name].clone();
    assert_eq!(settings(1, "http"), "2");
    assert_eq!([settings(2, "tls"), settings(3, "tls")], ["TLSv1_3"; 2]);
    assert_eq!(number(&rows[4], "/connect_s/n"), 10.0);
    assert_eq!(number(&rows[5], "/initiator/received_bytes"), 1000.0);
    // It closes a connection after 1,000 requests.
    assert_eq!(number(&rows[6], "/response_s/n"), 2500.0);
    let flags = rows[6]["flags"].to_string();
    assert!(flags.contains("include connecting again"), "{flags}");
    // Without the option its certificate is not believed, whatever the version.
    let strict = format!("1 to \"https://localhost:{tls}/\" rr 0*5 over https(version = http2)");
    place
        .run(&strict)
        .fails(1, &["the certificate of the server at", "is not accepted"]);
}

/// How many connections carried the requests that the server has logged, and how many requests these were; then the log is empty.
fn connections(place: &Place) -> (usize, usize) {
    let log = place.path("nginx/connections.log");
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, "").unwrap();
    let numbers: std::collections::BTreeSet<&str> = text.lines().collect();
    (numbers.len(), text.lines().count())
}

#[test]
fn pairs_share_a_connection_to_a_web_server() {
    if !has_program("/usr/sbin/nginx", "nginx-light") {
        skip("no nginx");
        return;
    }
    let place = Place::new();
    let nginx = nginx(&place);
    let [tls, _, http2] = nginx.ports;
    for (text, expected) in [
        (
            format!(
                "1 8 to \"http://127.0.0.1:{http2}/\" rr 0*50 over http(version = http2, streams = 8)"
            ),
            (1, 400),
        ),
        (
            format!(
                "1 6 to \"https://localhost:{tls}/\" rr 0*50 over https(insecure, version = http2, streams = 4)"
            ),
            (2, 300),
        ),
    ] {
        let row = place.measure(&text).remove(0);
        assert_eq!(number(&row, "/response_s/n"), expected.1 as f64, "{row}");
        assert_eq!(connections(&place), expected, "{text}");
    }
    // It closes a connection after 1,000 requests: the pairs go on together on another one.
    let row = place.measure(&format!(
        "1 4 to \"http://127.0.0.1:{http2}/\" rr 0*700 over http(version = http2, streams = 4)"
    ));
    let row = &row[0];
    assert_eq!(number(row, "/response_s/n"), 2800.0, "{row}");
    let (used, requests) = connections(&place);
    assert!(
        (3..=12).contains(&used) && requests >= 2800,
        "{used}, {requests}"
    );
    place
        .run(&format!(
            "1 2 to \"http://127.0.0.1:{http2}/\" rr 0*5 over http(streams = 2)"
        ))
        .mistakes(&["`streams` has no effect without `version = http2`"]);
}
