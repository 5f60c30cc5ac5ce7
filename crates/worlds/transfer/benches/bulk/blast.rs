//! Ours: a channel over UDP, blasts with selective retransmission.

use crate::net::SERVER;
use crate::{Failure, Made, Side};
use stackline_transfer::{
    BlastChannel, BlastChannelListener, BlastChannelOptions, PacketWaiting, SealKey,
};

struct Blast(BlastChannel);

fn words(options: fn(BlastChannelOptions) -> BlastChannelOptions, ready: &dyn Fn()) -> Made {
    let options = options(BlastChannelOptions::default());
    let listener = BlastChannelListener::bind(format!("{SERVER}:7001").parse()?, &options)?;
    ready();
    Ok(Box::new(Blast(listener.accept()?)))
}

fn dial(options: fn(BlastChannelOptions) -> BlastChannelOptions) -> Made {
    let options = options(BlastChannelOptions::default());
    Ok(Box::new(Blast(BlastChannel::connect(
        format!("{SERVER}:7001").parse()?,
        &options,
    )?)))
}

const fn plain(options: BlastChannelOptions) -> BlastChannelOptions {
    options
}

fn spinning(options: BlastChannelOptions) -> BlastChannelOptions {
    BlastChannelOptions {
        waiting: PacketWaiting::Spin,
        ..options
    }
}

fn checked(mut options: BlastChannelOptions) -> BlastChannelOptions {
    options.blast.checked = true;
    options
}

fn sealed(options: BlastChannelOptions) -> BlastChannelOptions {
    BlastChannelOptions {
        key: Some(SealKey::new(b"what nobody else has")),
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
