//! Who a client is to a server that asks: a user and a password from the environment of the initiator's agent. They stand in no address,
//! and what is shown of a server's words does not have the password.

use super::words::shown;
use std::env;

/// A user and a password, either of which may be absent.
pub(super) struct FarEndLogin {
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
}

impl FarEndLogin {
    /// What the two variables of the environment say.
    pub(super) fn from_environment(user: &str, password: &str) -> Self {
        Self {
            user: variable(user),
            password: variable(password),
        }
    }

    /// What a server said, as it may be shown.
    pub(super) fn shown(&self, text: &[u8]) -> String {
        match &self.password {
            Some(password) => {
                let text = String::from_utf8_lossy(text).replace(password.as_str(), "***");
                shown(text.as_bytes())
            }
            None => shown(text),
        }
    }
}

/// The value of a variable of the environment, unless it is empty.
pub(super) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_repeats_the_password_is_shown_without_it() {
        let login = FarEndLogin {
            user: None,
            password: Some("secret".into()),
        };
        assert_eq!(login.shown(b"500 PASS secret?\r\n"), "500 PASS ***?");
    }
}
