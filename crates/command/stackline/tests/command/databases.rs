//! Databases as far ends: PostgreSQL and MariaDB, and servers of the test that do something wrong.

use crate::support::authority::{Measured, TestAuthority};
use crate::support::daemons::{Daemon, free_port, run_with, saying, served};
use crate::support::{Place, has_program, number, skip, wait_until};
use nix::unistd::{User, geteuid};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection};
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Where Debian keeps the programs of PostgreSQL's server.
fn postgres_programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let mut found = versions.map(|version| version.path().join("bin"));
    found.find(|programs| programs.join("initdb").exists())
}

/// A PostgreSQL whose user `ann` logs in with SCRAM-SHA-256, MD5, the password itself or nothing, as the database's name says.
fn postgres(place: &Place, programs: &Path, more: &[String]) -> Daemon {
    let directory = place.path("postgres");
    fs::create_dir(&directory).unwrap();
    let password = place.write("password", "sesame");
    let program = |name: &str| {
        let mut command = Command::new(programs.join(name));
        // It refuses to be root.
        if geteuid().is_root() {
            let user = User::from_name("postgres").unwrap().unwrap();
            command.uid(user.uid.as_raw()).gid(user.gid.as_raw());
            chown(&directory, Some(user.uid.as_raw()), None).unwrap();
            chown(place.path(""), Some(user.uid.as_raw()), None).unwrap();
            chown(&password, Some(user.uid.as_raw()), None).unwrap();
        }
        command.current_dir(&directory);
        command
    };
    let data = directory.join("data");
    let made = program("initdb")
        .args(["--no-sync", "-U", "ann", "-A", "scram-sha-256", "--pwfile"])
        .arg(&password)
        .arg("-D")
        .arg(&data)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let methods = "host template1 all all scram-sha-256\nhost postgres all all password\nhost trust all all trust\n\
                   host md5 all all md5\nhostssl tls all all trust\nhost template0 all all gss\n";
    fs::write(data.join("pg_hba.conf"), methods).unwrap();
    let port = free_port();
    let mut command = program("postgres");
    command
        .arg("-D")
        .arg(&data)
        .args(["-p", &port.to_string(), "-k", ""]);
    let daemon = Daemon::start(
        command
            .args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"])
            .args(more),
        port,
    );
    // It accepts connections before it answers queries.
    wait_until("PostgreSQL is ready", || {
        let mut asking = Command::new(programs.join("pg_isready"));
        let asking = asking.args(["-h", "127.0.0.1", "-p", &port.to_string()]);
        asking.output().unwrap().status.success()
    });
    daemon
}

#[test]
fn a_postgres_answers_queries_by_either_protocol() {
    let Some(programs) = postgres_programs() else {
        skip("there is no PostgreSQL (Debian: apt-get install postgresql)");
        return;
    };
    let place = Place::new();
    let server = postgres(&place, &programs, &[]);
    let to = |rest: &str| format!("to \"postgres://127.0.0.1:{}/{rest}\"", server.port);
    let login: &[_] = &[("PGUSER", "ann"), ("PGPASSWORD", "sesame")];
    let text = format!(
        "2 {} rr 0*50;
         2 {} 2 rr 0*50;
         2 {} rr 0*50 over postgres(protocol = prepared);
         2 {} rr 100*50 over postgres(protocol = prepared);
         2 {} connect_disconnect 0*5;
         1 {} rr 0*1;
         1 {} rr 0*1;",
        to("template1"),
        to("template1?query=SELECT%201%20UNION%20SELECT%202"),
        to("postgres?user=ann&query=SELECT%20*%20FROM%20generate_series(1,20000)"),
        to("template1?query=SELECT%20length($1)"),
        to("template1"),
        to("template1?query=CREATE%20DATABASE%20trust"),
        to(
            "template1?query=SET%20password_encryption=md5;%20CREATE%20ROLE%20bob%20LOGIN%20PASSWORD%20'sesame'"
        ),
    );
    let output = run_with(&place, login, &text);
    output.succeeds();
    let rows = output.json()["measurements"].clone();
    for (row, calls, answered) in [
        (0, 100.0, "1"),
        (1, 200.0, "2"),
        (2, 100.0, "20000"),
        (3, 100.0, "1"),
    ] {
        assert_eq!(number(&rows[row], "/response_s/n"), calls, "{}", rows[row]);
        assert_eq!(rows[row]["initiator"]["settings"]["rows"], answered);
    }
    assert_eq!(number(&rows[4], "/connect_s/n"), 10.0);
    run_with(&place, &[], &format!("1 {} rr 0*9", to("trust?user=ann"))).succeeds();
    let md5 = format!("1 {} rr 0*1", to("template1?query=CREATE%20DATABASE%20md5"));
    run_with(&place, login, &md5).succeeds();
    run_with(&place, login, &format!("1 {} rr 0*9", to("md5?user=bob"))).succeeds();
    for (variables, rest, calls, code, message, hint) in [
        (
            login,
            "template1?query=SELECT%20nix",
            "rr 0*9",
            1,
            "ERROR 42703: column \"nix\" does not exist",
            "",
        ),
        (
            login,
            "template1",
            "rr 9*9",
            2,
            "has no parameter for the data",
            "protocol = prepared",
        ),
        (
            login,
            "template1?query=COPY%20x%20FROM%20STDIN",
            "rr 0*9",
            1,
            "ERROR 42P01",
            "",
        ),
        (
            login,
            "tls",
            "rr 0*9",
            1,
            "FATAL 28000",
            "`over postgres(tls)`",
        ),
        (
            login,
            "template0",
            "rr 0*9",
            1,
            "an authentication that is not known here",
            "`scram-sha-256`",
        ),
        (
            &[("PGPASSWORD", "pocus")],
            "template1?user=ann",
            "rr 0*9",
            1,
            "FATAL 28P01",
            "PGPASSWORD",
        ),
        (
            &[],
            "template1?user=ann",
            "rr 0*9",
            1,
            "wants a password",
            "set PGPASSWORD",
        ),
    ] {
        let output = run_with(&place, variables, &format!("1 {} {calls}", to(rest)));
        output.fails(code, &[message]);
        if !hint.is_empty() {
            output.hints(hint);
        }
        assert!(!output.err.contains("pocus"), "{}", output.err);
    }
}

#[test]
fn a_postgres_over_tls_is_believed_by_its_certificate() {
    let Some(programs) = postgres_programs() else {
        skip("there is no PostgreSQL (Debian: apt-get install postgresql)");
        return;
    };
    let place = Place::new();
    let user = User::from_name("postgres").unwrap().unwrap();
    let owner = geteuid().is_root().then(|| user.uid.as_raw());
    let authority = TestAuthority::new(&place, owner);
    let settings = [
        "ssl=on".to_string(),
        format!("ssl_cert_file={}", authority.certificate.display()),
        format!("ssl_key_file={}", authority.key.display()),
    ];
    let settings = settings.into_iter().flat_map(|one| ["-c".to_string(), one]);
    let server = postgres(&place, &programs, &settings.collect::<Vec<_>>());
    let login: &[_] = &[("PGUSER", "ann"), ("PGPASSWORD", "sesame")];
    let address = format!("postgres://{{}}:{}/template1", server.port);
    for (over, insecure, what) in [
        ("postgres(tls)", "postgres(tls, insecure)", "rr 0*50"),
        (
            "postgres(tls, protocol = prepared)",
            "postgres(tls, insecure, protocol = prepared)",
            "rr 0*50",
        ),
    ] {
        let address = address.clone();
        let calls = 100.0;
        let postgres = Measured {
            address,
            login,
            what,
            calls,
            over,
            insecure,
        };
        postgres.is_believed_by_its_certificate(&place, &authority);
    }
    // As libpq has it, `require` checks no certificate, and `verify-full` does.
    let to = |host: &str, rest: &str| {
        let address = address.replace("{}", host);
        run_with(&place, login, &format!("1 to \"{address}{rest}\" rr 0*9"))
    };
    to("127.0.0.1", "?sslmode=require").succeeds();
    to("127.0.0.1", "?sslmode=disable").succeeds();
    to("localhost", "?sslmode=verify-full").fails(1, &["is not accepted"]);
    to("localhost", "?sslmode=prefer").fails(2, &["leaves to the server"]);
    let text = format!("1 to \"{address}?sslmode=require\" rr 0*9 over postgres(tls)");
    run_with(&place, login, &text.replace("{}", "localhost")).fails(2, &["both the address and"]);
    // A database that is for clients with TLS alone.
    let make = format!("1 to \"{address}?query=CREATE%20DATABASE%20tls\" rr 0*1");
    run_with(&place, login, &make.replace("{}", "127.0.0.1")).succeeds();
    let only = address
        .replace("{}", "127.0.0.1")
        .replace("template1", "tls");
    run_with(
        &place,
        login,
        &format!("1 to \"{only}?sslmode=require\" rr 0*9"),
    )
    .succeeds();
    run_with(&place, login, &format!("1 to \"{only}\" rr 0*9"))
        .fails(1, &["FATAL 28000"])
        .hints("`?sslmode=require` at the end of the address");
}

#[test]
fn a_database_without_tls_is_named() {
    let over = "rr 0*9 over postgres(tls, insecure)";
    for (bytes, message) in [
        (&b"N"[..], "the PostgreSQL at"),
        (b"Sx", "sent more before its TLS handshake"),
        (
            b"HTTP/1.1 400",
            "does not answer SSLRequest as PostgreSQL does",
        ),
        (
            b"E\0\0\0\x18SFATAL\0C53300\0Mfull\0\0",
            "reports: FATAL 53300: full",
        ),
    ] {
        let text = format!("1 to \"postgres://{}/d?user=ann\" {over}", saying(bytes));
        run_with(&Place::new(), &[], &text).fails(1, &[message]);
    }
    let mut greeting =
        b"\x4a\0\0\0\x0a8.0.36\0\x01\0\0\0ABCDEFGH\0\0\0\x2d\x02\0\xff\xff\x15".to_vec();
    greeting.extend_from_slice(&[0; 10]);
    greeting.extend_from_slice(b"IJKLMNOPQRST\0mysql_native_password\0");
    greeting[0] = (greeting.len() - 4) as u8;
    let mysql = saying(Box::leak(greeting.into_boxed_slice()));
    let text = format!("1 to \"mysql://{mysql}/d?user=ann&ssl-mode=REQUIRED\" rr 0*9");
    run_with(&Place::new(), &[], &text)
        .fails(1, &["the MySQL at", "has no TLS"])
        .hints("`ssl_cert`");
}

#[test]
fn what_a_postgres_does_wrong_is_said_of_it() {
    for (bytes, message) in [
        (
            &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
            "does not answer as PostgreSQL does",
        ),
        (b"R\0\0\0\x03", "sent a message without a length"),
        (b"R\x7f\xff\xff\xff", "sent a message that is too long"),
        (
            b"R\0\0\0\x08\0\0\0\x0cv=x",
            "did not prove that it knows the password",
        ),
        (
            b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0R\0\0\0\x08\0\0\0\0",
            "did not prove that it knows the password",
        ),
        (
            b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0R\0\0\0\x13\0\0\0\x0br=x,s=A,i=1",
            "its nonce does not continue",
        ),
        (
            b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05IG\0\0\0\x04",
            "wants data from the client (COPY)",
        ),
        (
            b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05Ix\0\0\0\x04",
            "sent a message that is not of PostgreSQL",
        ),
        (
            b"R\0\0\0\x08\0\0\0\0E\0\0\0\x18SFATAL\0C53300\0Mfull\0\0",
            "reports: FATAL 53300: full",
        ),
    ] {
        let text = format!("1 to \"postgres://{}/d?user=ann\" rr 0*9", saying(bytes));
        let output = run_with(&Place::new(), &[("PGPASSWORD", "sesame")], &text);
        output.fails(if message.contains("COPY") { 2 } else { 1 }, &[message]);
    }
}

fn mariadb(place: &Place, more: &[String]) -> Daemon {
    let directory = place.path("mariadb");
    let data = format!("--datadir={}", directory.join("data").display());
    fs::create_dir(&directory).unwrap();
    // One that starts removes the temporary tables of all that share its directory for them.
    let temporary = format!("--tmpdir={}", directory.display());
    fs::set_permissions(place.path(""), Permissions::from_mode(0o755)).unwrap();
    let user = User::from_uid(geteuid()).unwrap().unwrap();
    let user = format!("--user={}", user.name);
    let made = Command::new("mariadb-install-db")
        .args([
            "--no-defaults",
            "--skip-test-db",
            "--auth-root-authentication-method=normal",
        ])
        .args([&data, &user, &temporary])
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let first = place.write(
        "mariadb/first.sql",
        "CREATE DATABASE d;\nCREATE USER 'ann'@'%' IDENTIFIED BY 'sesame';\nGRANT ALL ON *.* TO 'ann'@'%';\n\
         CREATE USER 'bob'@'%' IDENTIFIED VIA unix_socket;\n\
         CREATE USER 'eve'@'%' IDENTIFIED BY 'sesame' REQUIRE SSL;\nGRANT ALL ON *.* TO 'eve'@'%';\n",
    );
    let port = free_port();
    let mut command = Command::new("mariadbd");
    command.args(["--no-defaults", "--bind-address=127.0.0.1"]);
    command.args([&data, &user, &temporary]);
    command.arg(format!("--port={port}")).args(more);
    command.arg(format!("--socket={}", directory.join("socket").display()));
    Daemon::start(
        command.arg(format!("--init-file={}", first.display())),
        port,
    )
}

#[test]
fn a_mariadb_answers_queries() {
    if !has_program("mariadbd", "mariadb-server") {
        return;
    }
    let place = Place::new();
    let server = mariadb(&place, &[]);
    let to = |rest: &str| format!("to \"mysql://127.0.0.1:{}/{rest}\"", server.port);
    let login: &[_] = &[("MYSQL_PWD", "sesame")];
    let text = format!(
        "2 {} rr 0*50;
         2 {} 2 rr 0*50;
         1 {} rr 0*9;
         2 {} connect_disconnect 0*5;
         2 {} rr 0*50 over mysql(protocol = prepared);
         2 {} rr 300*50 over mysql(protocol = prepared);
         1 {} rr 70000*5 over mysql(protocol = prepared);",
        to("d?user=ann"),
        to("d?user=ann&query=SELECT%20seq%20FROM%20seq_1_to_20000"),
        to("?user=ann&query=DO%201"),
        to("d?user=ann"),
        to("d?user=ann&query=SELECT%20seq%20FROM%20seq_1_to_300"),
        to("d?user=ann&query=SELECT%20length(%3F)"),
        to("d?user=ann&query=SELECT%20length(%3F)"),
    );
    let output = run_with(&place, login, &text);
    output.succeeds();
    let rows = output.json()["measurements"].clone();
    for (row, calls, answered) in [(0, 100.0, "1"), (1, 200.0, "20000"), (2, 9.0, "0")] {
        assert_eq!(number(&rows[row], "/response_s/n"), calls, "{}", rows[row]);
        assert_eq!(rows[row]["initiator"]["settings"]["rows"], answered);
    }
    assert_eq!(number(&rows[3], "/connect_s/n"), 10.0);
    for (row, calls, answered) in [(4, 100.0, "300"), (5, 100.0, "1"), (6, 5.0, "1")] {
        assert_eq!(number(&rows[row], "/response_s/n"), calls, "{}", rows[row]);
        assert_eq!(rows[row]["initiator"]["settings"]["rows"], answered);
    }
    for (query, data, code, message) in [
        (
            "SELECT%20%3F",
            "0",
            2,
            "has a parameter, but the call has no data",
        ),
        ("SELECT%201", "9", 2, "has no parameter for the data"),
        ("SELECT%20%3F,%3F", "9", 2, "has 2 parameters"),
        ("SELECT%20nix", "0", 1, "reports error 1054"),
    ] {
        let to = to(&format!("d?user=ann&query={query}"));
        let text = format!("1 {to} rr {data}*9 over mysql(protocol = prepared)");
        run_with(&place, login, &text).fails(code, &[message]);
    }
    for (variables, rest, code, message, hint) in [
        (
            login,
            "d?user=ann&query=SELECT%20nix",
            1,
            "reports error 1054: Unknown column 'nix'",
            "",
        ),
        (
            login,
            "nix?user=ann",
            1,
            "reports error 1049",
            "write the database as the path",
        ),
        (
            login,
            "d?user=bob",
            1,
            "reports error 1698",
            "write the user as",
        ),
        (
            &[("MYSQL_PWD", "pocus")],
            "d?user=ann",
            1,
            "reports error 1045",
            "set MYSQL_PWD",
        ),
        (&[], "d?user=ann", 1, "reports error 1045", "set MYSQL_PWD"),
        (
            login,
            "d?user=ann&password=x",
            2,
            "a password in an address would be kept",
            "set MYSQL_PWD",
        ),
    ] {
        let output = run_with(&place, variables, &format!("1 {} rr 0*9", to(rest)));
        output.fails(code, &[message]);
        if !hint.is_empty() {
            output.hints(hint);
        }
    }
}

#[test]
fn a_mariadb_over_tls_is_believed_by_its_certificate() {
    if !has_program("mariadbd", "mariadb-server") {
        return;
    }
    let place = Place::new();
    let authority = TestAuthority::new(&place, None);
    let settings = [
        format!("--ssl-cert={}", authority.certificate.display()),
        format!("--ssl-key={}", authority.key.display()),
    ];
    let server = mariadb(&place, &settings);
    let login: &[_] = &[("MYSQL_PWD", "sesame")];
    let mysql = Measured {
        address: format!("mysql://{{}}:{}/d?user=eve", server.port),
        login,
        what: "rr 0*50",
        calls: 100.0,
        over: "mysql(tls)",
        insecure: "mysql(tls, insecure)",
    };
    mysql.is_believed_by_its_certificate(&place, &authority);
    let to = |rest: &str| {
        let port = server.port;
        let text = format!("1 to \"mysql://127.0.0.1:{port}/d?user=eve{rest}\" rr 0*9");
        run_with(&place, login, &text)
    };
    to("&ssl-mode=REQUIRED").succeeds();
    to("&ssl-mode=VERIFY_CA").fails(2, &["without the server's name"]);
    to("").fails(1, &["reports error 1045"]);
}

/// A MySQL 8 whose user it does not remember: it wants the password itself, which a client gives within TLS alone.
fn mysql_over_tls() -> SocketAddr {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let config: &'static Arc<ServerConfig> = Box::leak(Box::new(Arc::new(config)));
    fn say(stream: &mut impl Write, sequence: u8, packet: &[u8]) {
        let mut bytes = (packet.len() as u32).to_le_bytes()[..3].to_vec();
        bytes.push(sequence);
        bytes.extend_from_slice(packet);
        stream.write_all(&bytes).unwrap();
        stream.flush().unwrap();
    }
    fn hear(stream: &mut impl Read) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 4];
        stream.read_exact(&mut head).ok()?;
        let length = u32::from_le_bytes([head[0], head[1], head[2], 0]);
        let mut packet = vec![0; length as usize];
        stream.read_exact(&mut packet).ok()?;
        Some((head[3], packet))
    }
    served(move |mut socket| {
        let greeting = [
            b"\x0a8.0.36\0\x01\0\0\0ABCDEFGH\0\xff\xff\x2d\x02\0\xff\xff\x15",
            &[0; 10][..],
            b"IJKLMNOPQRST\0caching_sha2_password\0",
        ];
        say(&mut socket, 0, &greeting.concat());
        let Some((1, request)) = hear(&mut socket) else {
            return;
        };
        assert_eq!(request.len(), 32);
        assert_eq!(request[1] & 8, 8);
        let mut tls = ServerConnection::new(Arc::clone(config)).unwrap();
        let mut stream = rustls::Stream::new(&mut tls, &mut socket);
        let Some((2, login)) = hear(&mut stream) else {
            return;
        };
        assert_eq!(login[..32], request[..]);
        say(&mut stream, 3, &[1, 4]);
        let (sequence, password) = hear(&mut stream).unwrap();
        assert_eq!((sequence, &password[..]), (4, &b"sesame\0"[..]));
        let ok = &[0, 0, 0, 2, 0, 0, 0];
        say(&mut stream, 5, ok);
        while let Some((0, [3, ..])) = hear(&mut stream).as_ref().map(|(n, p)| (*n, &p[..])) {
            say(&mut stream, 1, ok);
        }
    })
}

#[test]
fn a_mysql_gets_the_password_itself_within_tls() {
    let login = &[("MYSQL_PWD", "sesame")];
    let address = mysql_over_tls();
    let text = format!("1 to \"mysql://{address}/d?user=ann&ssl-mode=REQUIRED\" rr 0*9");
    run_with(&Place::new(), login, &text).succeeds();
}

/// The packets that a MySQL 8 says one after the other, of which the first greets.
fn mysql_saying(packets: &[&[u8]]) -> SocketAddr {
    let greeting = [
        b"\x0a8.0.36\0\x01\0\0\0ABCDEFGH\0\xff\xff\x2d\x02\0\xff\xff\x15",
        &[0; 10][..],
        b"IJKLMNOPQRST\0caching_sha2_password\0",
    ];
    let mut said = Vec::new();
    for (number, packet) in [&greeting.concat()[..]].iter().chain(packets).enumerate() {
        said.extend_from_slice(&(packet.len() as u32).to_le_bytes()[..3]);
        said.push(2 * number as u8);
        said.extend_from_slice(packet);
    }
    saying(Box::leak(said.into_boxed_slice()))
}

#[test]
fn what_a_mysql_does_wrong_is_said_of_it() {
    let login = &[("MYSQL_PWD", "sesame")];
    let run = |address: SocketAddr| {
        let text = format!("1 to \"mysql://{address}/d?user=ann\" rr 0*1");
        run_with(&Place::new(), login, &text)
    };
    // A greeting, the password known already, OK, and OK to the query.
    let ok = &[0, 0, 0, 2, 0, 0, 0];
    run(mysql_saying(&[&[1, 3], ok, ok])).succeeds();
    for (packets, message) in [
        (&[&[1, 4][..]][..], "wants the password itself"),
        (
            &[b"\xfemysql_clear_password\0"],
            "wants a login by mysql_clear_password",
        ),
        (
            &[
                b"\xfemysql_native_password\0ABCDEFGHIJKLMNOPQRST\0",
                b"\xfe",
            ],
            "does not answer a login as MySQL does",
        ),
        (
            &[ok, b"\xff\x7a\x04#42S02Table 'd.x' doesn't exist"],
            "reports error 1146: Table 'd.x' doesn't exist",
        ),
        (&[ok, &[0, 0xfc]], "sent an OK that is cut short"),
        (&[ok, b"\xfb/etc/passwd"], "wants a file from the client"),
        (&[ok, &[1], &[0xfe]], "sent an EOF that is cut short"),
        (&[ok, &[1], b""], "sent an empty packet"),
    ] {
        let code = if message.contains("a file from") {
            2
        } else {
            1
        };
        let output = run(mysql_saying(packets));
        output.fails(code, &[message]);
        assert!(!output.err.contains("sesame"), "{}", output.err);
    }
    for (bytes, message) in [
        (
            &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
            "sent a packet that is too long",
        ),
        (b"\x05\0\0\0\x09abcd", "does not greet as MySQL does"),
        (
            b"\x0b\0\0\0\xff\x10\x04Too many",
            "reports error 1040: Too many",
        ),
    ] {
        run(saying(bytes)).fails(1, &[message]);
    }
}
