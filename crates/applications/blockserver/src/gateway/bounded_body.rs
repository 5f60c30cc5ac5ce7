//! A body that ends when it gets nothing from the servers for too long, whatever the reason: so no request holds its connection forever.

use hyper::body::{Body, Frame, SizeHint};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Sleep;

/// A body with a limit on silence.
pub(super) struct Bounded<B> {
    body: B,
    patience: Duration,
    /// The timer that runs while the body waits for data.
    silent: Option<Pin<Box<Sleep>>>,
}

impl<B> Bounded<B> {
    pub(super) const fn new(body: B, patience: Duration) -> Self {
        Self {
            body,
            patience,
            silent: None,
        }
    }
}

impl<B: Body<Error = io::Error> + Unpin> Body for Bounded<B> {
    type Data = B::Data;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<B::Data>>>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.body).poll_frame(context);
        if polled.is_ready() {
            this.silent = None;
            return polled;
        }
        let patience = this.patience;
        let silent = this
            .silent
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        let words = "the servers sent nothing for too long";
        silent
            .as_mut()
            .poll(context)
            .map(|()| Some(Err(io::Error::new(io::ErrorKind::TimedOut, words))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use std::future::poll_fn;

    /// Gives nothing, ever.
    struct Never;

    impl Body for Never {
        type Data = Bytes;
        type Error = io::Error;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
            Poll::Pending
        }
    }

    #[test]
    fn a_body_that_gets_nothing_ends() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let ended = runtime.block_on(async {
            let mut body = Bounded::new(Never, Duration::from_millis(20));
            poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
        });
        assert_eq!(ended.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
