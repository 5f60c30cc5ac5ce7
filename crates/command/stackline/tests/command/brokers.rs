//! Brokers as far ends: NATS and MQTT, of the daemons that many run, and of servers of the test that do something wrong.

use crate::support::authority::{Measured, TestAuthority};
use crate::support::daemons::{Daemon, free_port, run_with, saying};
use crate::support::{Place, has_program, number};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread;

const NATS_LOGIN: &[(&str, &str)] = &[("NATS_USER", "ann"), ("NATS_PASSWORD", "sesame")];

fn nats(more: &[&str]) -> Daemon {
    let port = free_port();
    let mut command = Command::new("nats-server");
    command.args(["-a", "127.0.0.1", "-p", &port.to_string()]);
    command.args(["--user", "ann", "--pass", "sesame"]);
    Daemon::start(command.args(more), port)
}

/// A client of NATS that answers requests on `echo`, and one that floods the subject `flood`, until the server leaves.
fn nats_clients(port: u16) {
    let client = || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let login = "CONNECT {\"verbose\":false,\"user\":\"ann\",\"pass\":\"sesame\"}\r\nSUB echo 1\r\nPING\r\n";
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        stream.write_all(login.as_bytes()).unwrap();
        while line != "PONG\r\n" {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        (stream, reader)
    };
    let (mut flood, _) = client();
    let unit = format!("PUB flood 1000\r\n{}\r\n", "x".repeat(1000));
    thread::spawn(move || while flood.write_all(unit.as_bytes()).is_ok() {});
    let (mut echo, mut reader) = client();
    thread::spawn(move || {
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
            if let ["MSG", "echo", _, to, length] = line.split_whitespace().collect::<Vec<_>>()[..]
            {
                let mut data = vec![0; length.parse::<usize>().unwrap() + 2];
                reader.read_exact(&mut data).unwrap();
                let head = format!("PUB {to} {length}\r\n");
                echo.write_all(&[head.as_bytes(), &data].concat()).unwrap();
            }
            line.clear();
        }
    });
}

#[test]
fn a_nats_server_carries_pings_requests_and_floods() {
    if !has_program("nats-server", "nats-server") {
        return;
    }
    let (place, server) = (Place::new(), nats(&[]));
    let port = server.port;
    nats_clients(port);
    let text = format!(
        "2 to \"nats://127.0.0.1:{port}\" rr 0*50;
         2 to \"nats://127.0.0.1:{port}\" 2 rr 100*50;
         2 to \"nats://127.0.0.1:{port}/echo\" rr 100*50;
         2 to \"nats://127.0.0.1:{port}/echo\" rr 0*50 2000/s;
         1 to \"nats://127.0.0.1:{port}/put\" bulk_put 1000*1000;
         1 to \"nats://127.0.0.1:{port}/flood\" bulk_get 700*1000;
         1 to \"nats://127.0.0.1:{port}/>\" bulk_get 700*1000;"
    );
    let output = run_with(&place, NATS_LOGIN, &text);
    output.succeeds();
    let rows = output.json()["measurements"].clone();
    for (row, calls) in [100.0, 200.0, 100.0, 100.0].into_iter().enumerate() {
        assert_eq!(number(&rows[row], "/response_s/n"), calls, "{}", rows[row]);
    }
    assert_eq!(rows[2]["initiator"]["settings"]["message"], "100 B");
    assert_eq!(number(&rows[4], "/initiator/sent_bytes"), 1e6);
    assert_eq!(number(&rows[5], "/initiator/received_bytes"), 7e5);
    assert_eq!(number(&rows[6], "/initiator/received_bytes"), 7e5);
    let nobody = format!("1 to \"nats://127.0.0.1:{port}/none\" rr 9*9");
    run_with(&place, NATS_LOGIN, &nobody)
        .fails(1, &["nobody serves the subject `none`"])
        .hints("start its service");
    let quiet =
        format!("1 to \"nats://127.0.0.1:{port}/none\" bulk_get 9*9 over nats(timeout = 50 ms)");
    run_with(&place, NATS_LOGIN, &quiet)
        .fails(1, &["does not answer for 50.0 ms"])
        .hints("does anybody publish on `none` meanwhile?");
    let large = format!("1 to \"nats://127.0.0.1:{port}/put\" bulk_put 2 MB*9");
    run_with(&place, NATS_LOGIN, &large).fails(2, &["takes messages of at most 1048576 B"]);
    let ping = format!("1 to \"nats://127.0.0.1:{port}\" rr 0*9");
    run_with(&place, &[], &ping)
        .fails(1, &["wants a login"])
        .hints("set NATS_USER and NATS_PASSWORD");
    let wrong = [("NATS_USER", "ann"), ("NATS_PASSWORD", "pocus")];
    let refused = run_with(&place, &wrong, &ping);
    refused.fails(1, &["refuses the login (Authorization Violation)"]);
    assert!(!refused.err.contains("pocus"), "{}", refused.err);
}

#[test]
fn what_a_nats_server_does_wrong_is_said_of_it() {
    for (bytes, message) in [
        (
            &b"220 mail.example ESMTP\r\n"[..],
            "does not greet as NATS does",
        ),
        (b"INFO {\"tls_required\":true}\r\n", "wants TLS"),
        (
            b"INFO {}\r\n-ERR 'maximum connections exceeded'\r\n",
            "reports: maximum connections exceeded",
        ),
        (
            b"INFO {}\r\nPONG\r\nMSG a 1 99999999999999999999\r\n",
            "sent a line that is not of NATS",
        ),
        (
            b"INFO {}\r\nPONG\r\nHMSG a 1 9 8\r\n",
            "sent a line that is not of NATS",
        ),
        (
            b"INFO {}\r\nPONG\r\nPING\r\nMSG a.b 7 3\r\nabc\r\nPONG\r\n-ERR 'Stale Connection'\r\n",
            "reports: Stale Connection",
        ),
    ] {
        let text = format!("1 to \"nats://{}\" rr 0*9", saying(bytes));
        run_with(&Place::new(), &[], &text).fails(1, &[message]);
    }
    for (path, message) in [
        ("/a%20b", "`a b` is not a subject of NATS"),
        ("/a.*", "nothing can be published on `a.*`"),
    ] {
        let text = format!(
            "1 to \"nats://{}{path}\" rr 0*9",
            saying(b"INFO {}\r\nPONG\r\n")
        );
        run_with(&Place::new(), &[], &text).fails(2, &[message]);
    }
}

const MQTT_LOGIN: &[(&str, &str)] = &[("MQTT_USER", "ann"), ("MQTT_PASSWORD", "sesame")];

fn mosquitto(place: &Place, more: &str) -> Daemon {
    let port = free_port();
    let passwords = place.write("passwords", "");
    let made = Command::new("mosquitto_passwd")
        .args(["-b", passwords.to_str().unwrap(), "ann", "sesame"])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    // It stays who started it: it could not read the passwords as another.
    let user = std::env::var("USER").unwrap_or_else(|_| "root".into());
    let text = format!(
        "user {user}\nlistener {port} 127.0.0.1\nallow_anonymous false\npassword_file {}\n{more}\n",
        passwords.display()
    );
    let configuration = place.write("mosquitto.conf", text);
    Daemon::start(Command::new("mosquitto").arg("-c").arg(configuration), port)
}

#[test]
fn an_mqtt_broker_delivers_as_often_as_its_quality_of_service_says() {
    if !has_program("mosquitto", "mosquitto") {
        return;
    }
    let place = Place::new();
    let broker = mosquitto(&place, "");
    let port = broker.port;
    for qos in 0..3 {
        let over = format!("over mqtt(qos = {qos})");
        let text = format!(
            "2 to \"mqtt://127.0.0.1:{port}/room/1\" rr 0*50 {over};
             2 to \"mqtt://127.0.0.1:{port}/room/1\" 2 rr 100*50 {over};
             1 to \"mqtt://127.0.0.1:{port}/room/1\" bulk_put 300*1000 {over};"
        );
        let output = run_with(&place, MQTT_LOGIN, &text);
        output.succeeds();
        let rows = output.json()["measurements"].clone();
        assert_eq!(number(&rows[0], "/response_s/n"), 100.0, "{}", rows[0]);
        assert_eq!(number(&rows[1], "/response_s/n"), 200.0, "{}", rows[1]);
        assert_eq!(number(&rows[2], "/initiator/sent_bytes"), 3e5);
        // What one client puts, another gets.
        let put =
            format!("1 timelimit 60 to \"mqtt://127.0.0.1:{port}/room/2\" bulk_put 300 {over}");
        let elsewhere = Place::new();
        let mut putting = elsewhere.command(&["run", "-e", &put]);
        let putting = elsewhere.start(putting.envs(MQTT_LOGIN.iter().copied()));
        let get = format!("1 to \"mqtt://127.0.0.1:{port}/room/+\" bulk_get 700*300 {over}");
        let output = run_with(&place, MQTT_LOGIN, &get);
        output.succeeds();
        let row = output.json()["measurements"][0].clone();
        assert_eq!(number(&row, "/initiator/received_bytes"), 2.1e5, "{row}");
        drop(putting);
    }
    let ping = format!("1 to \"mqtt://127.0.0.1:{port}\" rr 0*9");
    run_with(&place, &[], &ping)
        .fails(
            1,
            &["refuses the connection: this client is not authorized"],
        )
        .hints("set MQTT_USER and MQTT_PASSWORD");
    let nowhere = format!("1 to \"mqtt://127.0.0.1:{port}\" bulk_put 9*9");
    run_with(&place, MQTT_LOGIN, &nowhere).fails(2, &["names no topic"]);
}

#[test]
fn what_a_broker_does_wrong_is_said_of_it() {
    for (bytes, message) in [
        (
            &b"\x20\x02\0\x03"[..],
            "refuses the connection: it is not available at present",
        ),
        (
            b"\x20\x02\0\x63",
            "the reason is one that MQTT 3.1.1 does not have",
        ),
        (b"\xd0\0", "does not answer CONNECT with CONNACK"),
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            "sent a packet that is not of MQTT 3.1.1",
        ),
        (
            b"\x20\x02\0\0\x40\x02\0\x01",
            "acknowledged what was not sent",
        ),
        (
            b"\x20\x02\0\0\x30\x03\0\x09a",
            "sent a message that is shorter than it says",
        ),
        (
            b"\x20\x02\0\0\x30\xff\xff\xff\xff\x7f",
            "sent a packet that is not of MQTT 3.1.1",
        ),
    ] {
        let text = format!("1 to \"mqtt://{}/a\" rr 0*9", saying(bytes));
        run_with(&Place::new(), &[], &text).fails(1, &[message]);
    }
    // SUBACK that refuses.
    let address = saying(b"\x20\x02\0\0\x90\x03\0\x01\x80");
    let text = format!("1 to \"mqtt://{address}/a\" bulk_get 9*9");
    run_with(&Place::new(), &[], &text).fails(1, &["refuses the subscription"]);
}

#[test]
fn brokers_over_tls_are_believed_by_their_certificates() {
    if !has_program("nats-server", "nats-server") || !has_program("mosquitto", "mosquitto") {
        return;
    }
    let place = Place::new();
    let authority = TestAuthority::new(&place, None);
    let (certificate, key) = (authority.certificate.display(), authority.key.display());
    let server = nats(&[
        "--tls",
        &format!("--tlscert={certificate}"),
        &format!("--tlskey={key}"),
    ]);
    let nats = Measured {
        address: format!("tls://{{}}:{}", server.port),
        login: NATS_LOGIN,
        what: "rr 100*50",
        calls: 100.0,
        over: "",
        insecure: "nats_tls(insecure)",
    };
    nats.is_believed_by_its_certificate(&place, &authority);
    let plain = format!("1 to \"nats://127.0.0.1:{}\" rr 0*9", server.port);
    run_with(&place, NATS_LOGIN, &plain)
        .fails(1, &["the NATS server at", "wants TLS"])
        .hints("`tls://` is NATS with TLS");
    let broker = mosquitto(&place, &format!("certfile {certificate}\nkeyfile {key}"));
    let mqtt = Measured {
        address: format!("mqtts://{{}}:{}/room/1", broker.port),
        login: MQTT_LOGIN,
        what: "rr 100*50",
        calls: 100.0,
        over: "",
        insecure: "mqtts(insecure)",
    };
    mqtt.is_believed_by_its_certificate(&place, &authority);
    let plain = format!("1 to \"mqtt://127.0.0.1:{}\" rr 0*9", broker.port);
    run_with(&place, MQTT_LOGIN, &plain)
        .fails(1, &["the server at"])
        .hints("`mqtts://` is with TLS");
}

#[test]
fn a_broker_without_tls_is_named() {
    let believing = "(insecure)";
    let nats = saying(b"INFO {\"version\":\"2\"}\r\n");
    run_with(&Place::new(), &[], &format!("1 to \"tls://{nats}\" rr 0*9"))
        .fails(1, &["the NATS server at", "has no TLS"])
        .hints("`nats://` is without TLS");
    // Who stands between may not put words into the session.
    let early = saying(b"INFO {\"tls_required\":true}\r\n+OK\r\n");
    run_with(
        &Place::new(),
        &[],
        &format!("1 to \"tls://{early}\" rr 0*9 over nats_tls{believing}"),
    )
    .fails(1, &["sent more before its TLS handshake"]);
    let mqtt = saying(b"\x20\x02\0\0");
    run_with(
        &Place::new(),
        &[],
        &format!("1 to \"mqtts://{mqtt}\" rr 0*9 over mqtts{believing}"),
    )
    .fails(1, &["does not speak TLS"])
    .hints("`mqtt://` is without TLS");
    // An alert of TLS is one although it answers something else.
    let alert = saying(b"\x15\x03\x01\0\x02\x02\x46");
    for scheme in ["mqtt", "redis", "nats"] {
        let text = format!("1 to \"{scheme}://{alert}\" rr 0*9 over {scheme}(timeout = 1 s)");
        run_with(&Place::new(), &[], &text)
            .fails(1, &["speaks TLS there"])
            .hints("is with TLS");
    }
}

#[test]
fn a_put_has_as_many_messages_without_acknowledgement_as_it_may() {
    // A broker that acknowledges a message only when the client has stopped to send more.
    let (counted, counts) = std::sync::mpsc::channel();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut packet = || {
            let mut head = [0; 2];
            stream.read_exact(&mut head).ok()?;
            let mut body = vec![0; usize::from(head[1])];
            stream.read_exact(&mut body).ok()?;
            Some((head[0], body, stream.try_clone().unwrap()))
        };
        let (_, _, mut out) = packet().unwrap();
        out.write_all(b"\x20\x02\0\0").unwrap();
        let mut waiting = Vec::new();
        while let Some((kind, body, _)) = packet() {
            if kind & 0xf0 == 0x30 {
                waiting.push([body[3], body[4]]);
            }
            if waiting.len() == 3 {
                for [high, low] in waiting.drain(..) {
                    out.write_all(&[0x40, 2, high, low]).unwrap();
                }
                counted.send(()).unwrap();
            }
        }
    });
    let text = format!("1 to \"mqtt://{address}/a\" bulk_put 10*9 over mqtt(inflight = 3)");
    run_with(&Place::new(), &[], &text).succeeds();
    assert_eq!(counts.try_iter().count(), 3);
}

#[test]
fn a_unit_that_ends_with_a_message_waits_for_no_other() {
    let nats = saying(b"INFO {}\r\nPONG\r\nMSG a 2 2\r\nab\r\nMSG a 2 4\r\ncdef\r\n");
    let mqtt =
        saying(b"\x20\x02\0\0\x90\x03\0\x01\x01\x30\x05\0\x01aab\x30\x07\0\x01acdef\xb0\x02\0\x02");
    for text in [
        format!("1 to \"nats://{nats}/a\" bulk_get 3*2"),
        format!("1 to \"mqtt://{mqtt}/a\" bulk_get 3*2"),
    ] {
        let output = run_with(&Place::new(), &[], &text);
        output.succeeds();
        let row = output.json()["measurements"][0].clone();
        assert_eq!(number(&row, "/initiator/received_bytes"), 6.0, "{row}");
    }
}
