//! The web server that many run: HTTP/1.1 and HTTP/2 of nginx, over TLS and without, in one table.

use crate::support::{Place, has_program, number, skip, wait_until};
use std::collections::BTreeSet;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

/// A running nginx, and its ports: over TLS, HTTP/1.1 alone without it, HTTP/2 at once, and HTTP/1.1 alone over TLS.
pub(crate) struct Nginx {
    process: Child,
    pub(crate) ports: [u16; 4],
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
fn free_ports() -> [u16; 4] {
    let listeners = [(); 4].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// Starts nginx; it has 1 MB at `/big`, takes uploads at `/up`, and has ten bytes elsewhere.
pub(crate) fn nginx(place: &Place) -> Nginx {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let certificate = place.write("nginx/certificate.pem", made.cert.pem());
    let key = place.write("nginx/key.pem", made.signing_key.serialize_pem());
    let directory = place.path("nginx");
    let ports = free_ports();
    place.write("nginx/big", vec![b'x'; 1_000_000]);
    let [tls, plain, http2, tls_http1] = ports;
    let (directory, certificate, key) = (directory.display(), certificate.display(), key.display());
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|what| format!("{what}_temp_path {directory}/{what};\n"))
        .concat();
    let text = format!(
        "daemon off; worker_processes 1; pid {directory}/pid; error_log stderr;
         events {{ worker_connections 256; }}
         http {{
           log_format connections '$connection $uri'; access_log {directory}/connections.log connections; {temporary}
           server {{
             listen 127.0.0.1:{tls} ssl http2; listen 127.0.0.1:{plain}; listen 127.0.0.1:{http2} http2;
             listen 127.0.0.1:{tls_http1} ssl;
             ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate {certificate}; ssl_certificate_key {key};
             root {directory};
             location / {{ return 200 \"0123456789\"; }}
             location = /big {{ }}
             location = /up {{ proxy_pass http://127.0.0.1:{plain}/; }}
             location /missing {{ return 404; }}
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
    let [tls, plain, http2, _] = nginx.ports;
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
    let number = |line: &'_ str| line.split(' ').next().unwrap_or_default().to_owned();
    let numbers: BTreeSet<String> = text.lines().map(number).collect();
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
    let [tls, _, http2, _] = nginx.ports;
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

/// The numbers of the connections on which the server was asked for that.
pub(crate) fn connections_with(place: &Place, uri: &str) -> BTreeSet<String> {
    let log = std::fs::read_to_string(place.path("nginx/connections.log")).unwrap();
    let asked = log.lines().filter_map(|line| line.split_once(' '));
    asked
        .filter(|(_, of)| *of == uri)
        .map(|(number, _)| number.to_owned())
        .collect()
}

#[test]
fn parts_that_name_a_connection_share_it() {
    if !has_program("/usr/sbin/nginx", "nginx-light") {
        skip("no nginx");
        return;
    }
    let place = Place::new();
    let nginx = nginx(&place);
    let [tls, _, http2, _] = nginx.ports;
    let over = "over https(insecure, version = http2, connection = main)";
    let rows = place.measure(&format!(
        "1 parallel: 2 to \"https://localhost:{tls}/a\" rr 0*50 {over} | 2 to \"https://localhost:{tls}/b\" rr 0*60 {over}"
    ));
    let calls = |row: usize| number(&rows[row], "/response_s/n");
    assert_eq!([calls(0), calls(1)], [100.0, 120.0], "{rows:?}");
    let [first, second] = ["/a", "/b"].map(|uri| connections_with(&place, uri));
    // The first pairs of both parts are on one connection, the second ones on another.
    assert_eq!((first.len(), &first), (2, &second));
    // A run after it has connections of its own, and a part with another name too.
    let other = "over http(version = http2, connection = other, streams = 3)";
    let main = "over http(version = http2, connection = main, streams = 3)";
    place.measure(&format!(
        "2 parallel: 3 to \"http://127.0.0.1:{http2}/c\" rr 0*20 {main} | 3 to \"http://127.0.0.1:{http2}/d\" rr 0*20 {other}"
    ));
    let [first, second] = ["/c", "/d"].map(|uri| connections_with(&place, uri));
    assert_eq!((first.len(), second.len()), (2, 2));
    assert!(first.is_disjoint(&second), "{first:?} {second:?}");
}

#[test]
fn parts_that_cannot_share_a_connection_are_refused() {
    let place = Place::new();
    let check = |parts: &str, expected: &str| {
        let finished = place.stackline(&["check", "-e", &format!("1 parallel: {parts}")]);
        finished.mistakes(&[&format!("cannot share the connection `x`: {expected}")]);
    };
    let over = "over http(version = http2, connection = x)";
    let at = |host: &str| format!("to \"http://{host}/\" rr 0*5");
    check(
        &format!("{} {over} | {} {over}", at("a"), at("a:81")),
        "their addresses name different servers",
    );
    check(
        &format!(
            "{} {over} | {} over http(version = http2, connection = x, nagle)",
            at("a"),
            at("a")
        ),
        "the option `nagle` differs",
    );
    let many = "over http(version = http2, connection = x, streams = 100)";
    check(
        &format!("{} {many} | {} {many}", at("a"), at("a")),
        "200 pairs would be on it, and 128 can be",
    );
    let alone = "1 to \"http://a/\" rr 0*5 over http(connection = x)";
    place
        .stackline(&["check", "-e", alone])
        .mistakes(&["`connection` has no effect without `version = http2`"]);
}

#[test]
fn data_that_a_server_does_not_read_is_not_counted_as_sent() {
    if !has_program("/usr/sbin/nginx", "nginx-light") {
        skip("no nginx");
        return;
    }
    let place = Place::new();
    let nginx = nginx(&place);
    let [_, plain, http2, _] = nginx.ports;
    let url = format!("http://127.0.0.1:{http2}");
    let over = "over http(version = http2";
    // nginx answers at `/` and resets the stream; what the first window had room for has left, most has not.
    for what in ["rr 1 MiB*3", "bulk_put 64 KiB*500"] {
        place
            .run(&format!("1 to \"{url}/\" {what} {over})"))
            .fails(1, &["before it had received its body"])
            .hints("send the data to an address that reads it");
    }
    let text = format!(
        "1 to \"{url}/up\" rr 100000*5 {over});
         1 to \"{url}/up\" bulk_put 64 KiB*10 {over}, method = post);
         1 to \"{url}/up\" bulk_put 64 KiB*10 {over}, content_length = 640 KiB);
         1 to \"http://127.0.0.1:{plain}/up\" bulk_put 64 KiB*10 over http(content_length = 640 KiB);"
    );
    let rows = place.measure(&text);
    assert_eq!(number(&rows[0], "/response_s/n"), 5.0);
    for row in &rows[1..] {
        assert_eq!(number(row, "/initiator/sent_bytes"), 655_360.0, "{row}");
    }
    for (units, message) in [("*9", "less data"), ("*11", "more data")] {
        let text =
            format!("1 to \"{url}/up\" bulk_put 64 KiB{units} {over}, content_length = 640 KiB)");
        place.run(&text).fails(2, &[message, "655360 B"]);
    }
}
