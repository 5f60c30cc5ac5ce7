//! Ours: a channel over UDP, blasts with selective retransmission.

use crate::net::SERVER;
use crate::{Failure, Made, Side};
use stackline_transfer::{Channel, Key, Listener, Options, Waiting};

struct Blast(Channel);

fn words(options: fn(Options) -> Options, ready: &dyn Fn()) -> Made {
    let options = options(Options::default());
    let listener = Listener::bind(format!("{SERVER}:7001").parse()?, &options)?;
    ready();
    Ok(Box::new(Blast(listener.accept()?)))
}

fn dial(options: fn(Options) -> Options) -> Made {
    let options = options(Options::default());
    Ok(Box::new(Blast(Channel::connect(
        format!("{SERVER}:7001").parse()?,
        &options,
    )?)))
}

const fn plain(options: Options) -> Options {
    options
}

fn spinning(options: Options) -> Options {
    Options {
        waiting: Waiting::Spin,
        ..options
    }
}

fn checked(mut options: Options) -> Options {
    options.blast.checked = true;
    options
}

fn sealed(options: Options) -> Options {
    Options {
        key: Some(Key::new(b"what nobody else has")),
        ..options
    }
}

/// A variant of the benchmark.
macro_rules! mover {
    ($name:ident, $options:ident) => {
        /// Both ends.
        pub(crate) mod $name {
            use crate::Made;

            pub(crate) fn listen(ready: &dyn Fn()) -> Made {
                super::words(super::$options, ready)
            }

            pub(crate) fn connect() -> Made {
                super::dial(super::$options)
            }
        }
    };
}

mover!(usual, plain);
mover!(spin, spinning);
mover!(check, checked);
mover!(seal, sealed);

impl Side for Blast {
    fn send(&mut self, data: &[u8]) -> Result<(), Failure> {
        Ok(self.0.send(data)?)
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<(), Failure> {
        self.0.receive_into(into)?;
        Ok(())
    }
}
