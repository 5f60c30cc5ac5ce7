//! Two ends of a TELNET connection, one of which gets whatever bytes say: they never talk for ever, and one takes no more than it was sent.
#![no_main]

use stackline_proto::papers::telnet::{Telnet, TelnetOption, TelnetRole, Whose};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for role in [TelnetRole::User, TelnetRole::Server] {
        let mut end = Telnet::new(role);
        end.ask(TelnetOption::Binary, Whose::Own, true);
        let asked = end.output().len();
        let mut data = Vec::new();
        for piece in bytes.chunks(13) {
            end.receive(piece, &mut data);
        }
        let said = end.output();
        assert!(data.len() <= bytes.len() && said.len() <= bytes.len() + asked);
        end.send(&data);
        let mut other = Telnet::new(role);
        other.receive(&end.output(), &mut Vec::new());
    }
});
