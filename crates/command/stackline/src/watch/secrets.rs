//! How switches are accessed: names from the command line, secrets from a file or the environment. It prints no secret.

use crate::exit::{Error, Result};
use crate::flags;
use stackline_monitor::snmp::{SHORTEST_PASSWORD, SnmpAccess, SnmpSecret};
use std::path::Path;

/// The name of each secret in the file and in the environment.
const COMMUNITY: (&str, &str) = ("community", "STACKLINE_SNMP_COMMUNITY");
const AUTHENTICATION: (&str, &str) = ("authentication", "STACKLINE_SNMP_AUTHENTICATION");
const PRIVACY: (&str, &str) = ("privacy", "STACKLINE_SNMP_PRIVACY");

/// Longest file of secrets that is read.
const LONGEST: u64 = 64 << 10;

/// The access that the flags ask for.
pub(super) fn access(flags: &flags::WatchFlags) -> Result<SnmpAccess> {
    let file = match &flags.snmp_secrets {
        Some(path) => read(path)?,
        None => String::new(),
    };
    access_with(flags, &file, |name| std::env::var(name).ok())
}

/// Reads a file of secrets: a regular one or a pipe, of bounded size.
fn read(path: &Path) -> Result<String> {
    stackline_guard::files::read_text(path, LONGEST).map_err(|cause| {
        Error::input(format!("cannot read {}: {cause}", path.display()))
            .hint("specify a file of `name = value` lines")
    })
}

fn access_with(
    flags: &flags::WatchFlags,
    file: &str,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<SnmpAccess> {
    let secret = |(name, variable): (&str, &str)| {
        let value = in_file(file, name)
            .or_else(|| environment(variable))
            .filter(|value| !value.is_empty());
        value.map(SnmpSecret).ok_or_else(|| {
            let hint =
                format!("write `{name} = ...` to a file for --snmp-secrets, or set {variable}");
            Error::input(format!("--snmp needs the {name} secret")).hint(hint)
        })
    };
    let Some(name) = &flags.snmp_user else {
        return Ok(SnmpAccess::Community(secret(COMMUNITY)?));
    };
    let password = |which| match secret(which)? {
        short if short.0.len() < SHORTEST_PASSWORD => {
            let message =
                format!("an SNMPv3 password must have at least {SHORTEST_PASSWORD} characters");
            Err(Error::input(message).hint("use the password set on the switch"))
        }
        long => Ok(long),
    };
    let authentication = match flags.snmp_auth {
        Some(hash) => Some((hash, password(AUTHENTICATION)?)),
        None => None,
    };
    let privacy = match flags.snmp_privacy {
        Some(cipher) => Some((cipher, password(PRIVACY)?)),
        None => None,
    };
    Ok(SnmpAccess::User {
        name: name.clone(),
        authentication,
        privacy,
    })
}

/// The value of the line `name = value`. A line that begins with # has another name.
fn in_file(file: &str, name: &str) -> Option<String> {
    file.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;
    use stackline_monitor::snmp::Privacy;

    fn flags(words: &[&str]) -> flags::WatchFlags {
        let words = ["stackline", "watch", "--snmp", "switch1"]
            .iter()
            .chain(words);
        match flags::StacklineFlags::try_parse_from(words)
            .unwrap()
            .command
        {
            flags::StacklineCommand::Watch(watch) => watch,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn secrets_come_from_the_file_before_the_environment() {
        let environment = |name: &str| {
            (name == "STACKLINE_SNMP_COMMUNITY").then(|| "from the environment".to_owned())
        };
        let community =
            |flags: &flags::WatchFlags, file: &str| match access_with(flags, file, environment)
                .unwrap()
            {
                SnmpAccess::Community(secret) => secret.0,
                SnmpAccess::User { .. } => panic!("a user"),
            };
        assert_eq!(community(&flags(&[]), ""), "from the environment");
        assert_eq!(
            community(&flags(&[]), "# comment\n community = from = file \n"),
            "from = file"
        );
        let error = access_with(&flags(&[]), "", |_| None).unwrap_err();
        assert!(
            error
                .hint
                .as_ref()
                .is_some_and(|hint| hint.contains("STACKLINE_SNMP_COMMUNITY")),
            "{error:?}"
        );
    }

    #[test]
    fn a_short_password_is_refused() {
        let words = flags(&[
            "--snmp-user",
            "name",
            "--snmp-auth",
            "sha256",
            "--snmp-privacy",
            "aes128",
        ]);
        let file = "authentication = first password\nprivacy = second password\n";
        let SnmpAccess::User {
            name,
            authentication,
            privacy,
        } = access_with(&words, file, |_| None).unwrap()
        else {
            panic!()
        };
        assert_eq!(
            (name.as_str(), authentication.unwrap().1.0.as_str()),
            ("name", "first password")
        );
        assert_eq!(privacy.unwrap().0, Privacy::Aes128);
        assert!(
            access_with(
                &words,
                "authentication = short\nprivacy = second password\n",
                |_| None
            )
            .is_err()
        );
        assert!(access_with(&words, "authentication = first password\n", |_| None).is_err());
    }
}
