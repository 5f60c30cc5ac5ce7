//! File servers as far ends: vsftpd, and FTP servers of the test that do something wrong.

use crate::support::authority::TestAuthority;
use crate::support::daemons::{Daemon, free_port, replying, run_with};
use crate::support::{Place, has_program, number, skip};
use nix::unistd::{User, geteuid};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::process::Command;

/// A vsftpd for anonymous users, with a file to get and a directory to put into.
fn vsftpd(place: &Place, more: &str) -> Daemon {
    let root = place.path("root");
    let file = place.write("root/pub/file", vec![7; 100_000]);
    place.write("root/pub/empty", "");
    let incoming = root.join("incoming");
    fs::create_dir(&incoming).unwrap();
    let anonymous = User::from_name("ftp").unwrap().unwrap();
    chown(&incoming, Some(anonymous.uid.as_raw()), None).unwrap();
    for path in [&place.path(""), &root, &root.join("pub"), &file] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    let port = free_port();
    let root = root.display();
    let text = format!(
        "listen=YES\nlisten_port={port}\nlisten_address=127.0.0.1\nbackground=NO\nanonymous_enable=YES\nanon_root={root}\n\
         write_enable=YES\nanon_upload_enable=YES\nanon_other_write_enable=YES\nseccomp_sandbox=NO\nisolate_network=NO\n\
         connect_from_port_20=NO\nsecure_chroot_dir={root}\nxferlog_enable=NO\n{more}\n"
    );
    let configuration = place.write("vsftpd.conf", text);
    Daemon::start(Command::new("/usr/sbin/vsftpd").arg(configuration), port)
}

#[test]
fn files_go_both_ways_whoever_connects() {
    if !has_program("/usr/sbin/vsftpd", "vsftpd") {
        return;
    }
    if !geteuid().is_root() {
        skip("vsftpd gives up the rights of root, so it needs them");
        return;
    }
    for mode in ["passive", "active"] {
        let place = Place::new();
        let server = vsftpd(&place, "");
        let to = |path: &str| format!("to \"ftp://127.0.0.1:{}/{path}\"", server.port);
        let over = format!("over ftp_file(mode = {mode})");
        let text = format!(
            "2 {} rr 0*50;
             1 {} 2 bulk_get 70000*5 {over};
             1 timelimit 0.2 {} bulk_get 3000 {over};
             1 {} bulk_put 70000*5 {over};
             2 {} connect_disconnect 0*3;",
            to(""),
            to("pub/file"),
            to("pub/file"),
            to("incoming/new"),
            to(""),
        );
        let output = run_with(&place, &[], &text);
        output.succeeds();
        let rows = output.json()["measurements"].clone();
        assert_eq!(number(&rows[0], "/response_s/n"), 100.0, "{}", rows[0]);
        // Units do not end where files do.
        assert_eq!(number(&rows[1], "/initiator/received_bytes"), 7e5);
        assert_eq!(rows[1]["initiator"]["settings"]["file"], "100000 B");
        assert!(number(&rows[2], "/throughput_bit_s/mean") > 0.0);
        assert_eq!(number(&rows[3], "/initiator/sent_bytes"), 3.5e5);
        assert_eq!(
            fs::metadata(place.path("root/incoming/new")).unwrap().len(),
            350_000
        );
        assert_eq!(number(&rows[4], "/connect_s/n"), 6.0);
        for (path, what, code, message) in [
            ("pub/none", "bulk_get", 1, "answers RETR with 550"),
            (
                "pub/empty",
                "bulk_get",
                1,
                "`pub/empty` of the FTP server is empty",
            ),
            ("pub/new", "bulk_put", 1, "answers STOR with 553"),
            ("", "bulk_put", 2, "names no file"),
            ("a%0d%0aQUIT", "bulk_put", 2, "has control characters"),
        ] {
            let text = format!("1 {} {what} 9*9 {over}", to(path));
            run_with(&place, &[], &text).fails(code, &[message]);
        }
        let user = [("FTP_USER", "ann"), ("FTP_PASSWORD", "sesame")];
        run_with(&place, &user, &format!("1 {} rr 0*9", to("")))
            .fails(1, &["with 530"])
            .hints("set FTP_USER and FTP_PASSWORD");
    }
}

#[test]
fn files_go_both_ways_over_tls() {
    if !has_program("/usr/sbin/vsftpd", "vsftpd") || !geteuid().is_root() {
        return;
    }
    for (scheme, stack, implicit, option) in [
        ("ftp", "ftp_file", "NO", "tls, "),
        ("ftps", "ftps", "YES", ""),
    ] {
        let place = Place::new();
        let authority = TestAuthority::new(&place, None);
        let more = format!(
            "ssl_enable=YES\nallow_anon_ssl=YES\nforce_anon_logins_ssl=YES\nforce_anon_data_ssl=YES\nrequire_ssl_reuse=YES\n\
             implicit_ssl={implicit}\nrsa_cert_file={}\nrsa_private_key_file={}",
            authority.certificate.display(),
            authority.key.display()
        );
        let server = vsftpd(&place, &more);
        for mode in ["passive", "active"] {
            let to = |path: &str| format!("to \"{scheme}://localhost:{}/{path}\"", server.port);
            let over = format!("over {stack}({option}mode = {mode})");
            let text = format!(
                "2 {} rr 0*50 {over};
                 1 {} 2 bulk_get 70000*20 {over};
                 1 timelimit 0.2 {} bulk_get 3000 {over};
                 6 {} bulk_put 70000*5 {over};",
                to(""),
                to("pub/file"),
                to("pub/file"),
                to("incoming/new"),
            );
            let output = run_with(&place, &[authority.variable()], &text);
            output.succeeds();
            let rows = output.json()["measurements"].clone();
            assert_eq!(number(&rows[0], "/response_s/n"), 100.0, "{}", rows[0]);
            assert!(rows[0]["initiator"]["settings"]["tls"].is_string());
            assert_eq!(number(&rows[1], "/initiator/received_bytes"), 2.8e6);
            assert!(number(&rows[2], "/throughput_bit_s/mean") > 0.0);
            assert_eq!(number(&rows[3], "/initiator/sent_bytes"), 6.0 * 3.5e5);
            let length = fs::metadata(place.path("root/incoming/new")).unwrap().len();
            assert_eq!(length, 350_000);
        }
        let file = |scheme: &str, over: &str| {
            let port = server.port;
            let text = format!("1 to \"{scheme}://localhost:{port}/pub/file\" bulk_get 9*9 {over}");
            run_with(&place, &[], &text)
        };
        file(scheme, &format!("over {stack}({option}insecure)")).succeeds();
        let over = if option.is_empty() {
            ""
        } else {
            "over ftp_file(tls)"
        };
        file(scheme, over).fails(1, &["is not accepted"]);
        if implicit == "NO" {
            file("ftp", "")
                .fails(1, &["the FTP server at", "530"])
                .hints("`over ftp_file(tls)` asks for TLS");
            file("ftps", "over ftps(insecure)")
                .fails(1, &["does not speak TLS"])
                .hints("`over ftp_file(tls)` changes to it later");
        }
    }
}

#[test]
fn what_a_file_server_lacks_or_denies_of_tls_is_said_of_it() {
    for (lines, message) in [
        (&["220 hello", "502 AUTH?"][..], "the FTP server at"),
        (
            &["220 hello", "234 go on\r\n230 in"],
            "sent more before its TLS handshake",
        ),
    ] {
        let text = format!(
            "1 to \"ftp://{}/file\" bulk_get 9*9 over ftp_file(tls, insecure)",
            replying(lines)
        );
        run_with(&Place::new(), &[], &text).fails(1, &[message]);
    }
}

#[test]
fn what_a_server_forbids_is_said_of_it() {
    if !has_program("/usr/sbin/vsftpd", "vsftpd") || !geteuid().is_root() {
        return;
    }
    let place = Place::new();
    let server = vsftpd(&place, "port_enable=NO\npasv_enable=NO");
    for mode in ["passive", "active"] {
        let port = server.port;
        let text = format!(
            "1 to \"ftp://127.0.0.1:{port}/pub/file\" bulk_get 9*9 over ftp_file(mode = {mode})"
        );
        run_with(&place, &[], &text)
            .fails(1, &["the FTP server at", "with 550 Permission denied."]);
    }
}

#[test]
fn what_a_file_server_does_wrong_is_said_of_it() {
    const LOGIN: [&str; 3] = [
        "220 hello",
        "230-welcome\r\n 230 not yet\r\n230 you are in",
        "200 binary",
    ];
    let after =
        |more: &[&'static str]| replying(Box::leak([&LOGIN[..], more].concat().into_boxed_slice()));
    for (address, message) in [
        (
            replying(&["HTTP/1.1 400 Bad Request"]),
            "sent a line that is not of FTP",
        ),
        (
            replying(&["421 too many users"]),
            "answers a connection with 421 too many users",
        ),
        (
            replying(&["220 hello", "331 password?", "530 PASS sesame is wrong"]),
            "answers PASS with 530 PASS *** is wrong",
        ),
        (
            replying(&["220 hello", "230 in"]),
            "closed the connection within",
        ),
        (after(&["229 (|||0|)"]), "names no port for files"),
        (
            after(&["500 EPSV?", "227 (10,0,0,1,9,9)"]),
            "wants files to go over another host, 10.0.0.1",
        ),
        (
            after(&["502 EPSV?", "227 (1,2,3)"]),
            "names no port for files",
        ),
        (
            after(&["522 EPSV?", "425 no way"]),
            "answers PASV with 425 no way",
        ),
        (after(&["229 (|||1|)"]), "cannot connect to 127.0.0.1:1"),
    ] {
        let text = format!("1 to \"ftp://{address}/file\" bulk_get 9*9");
        let login = [("FTP_USER", "ann"), ("FTP_PASSWORD", "sesame")];
        let output = run_with(&Place::new(), &login, &text);
        output.fails(
            if message.starts_with("cannot") { 3 } else { 1 },
            &[message],
        );
        assert!(!output.err.contains("sesame"), "{}", output.err);
    }
    // The server of an active client does not come.
    let text = format!(
        "1 to \"ftp://{}/file\" bulk_get 9*9 over ftp_file(mode = active, timeout = 50 ms)",
        after(&["200 fine", "150 soon"])
    );
    run_with(&Place::new(), &[], &text).fails(1, &["the server at"]);
}
