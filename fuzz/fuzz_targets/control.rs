//! Any bytes on the control pipe: reading never panics, what was read can be said again, and a task is checked without
//! doing anything.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stackline_live::control::{FromAgent, ToAgent, read, write};

fuzz_target!(|bytes: &[u8]| {
    let mut input = bytes;
    while let Ok(Some(message)) = read::<ToAgent>(&mut input) {
        if let ToAgent::Listen { task, .. } | ToAgent::Connect { task, .. } = &message {
            let _ = task.check();
        }
        let mut said = Vec::new();
        write(&mut said, &message).unwrap();
        assert_eq!(said.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert!(matches!(read::<ToAgent>(&mut said.as_slice()), Ok(Some(_))));
    }
    let mut input = bytes;
    while let Ok(Some(message)) = read::<FromAgent>(&mut input) {
        let mut said = Vec::new();
        write(&mut said, &message).unwrap();
        assert!(matches!(
            read::<FromAgent>(&mut said.as_slice()),
            Ok(Some(_))
        ));
    }
});
