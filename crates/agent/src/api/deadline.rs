//! A connection whose peer must take what it is sent.
//!
//! An answer's own deadline would not help: its body is polled only while the socket takes bytes, so that a reader who
//! stops reading would never be given up. The write itself has to fail.

use std::{
    future::Future as _,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep},
};

use super::framing::{Doubt, Heads};

/// A stream on which no write may take longer than this, and of which the heads are looked at before they are parsed.
#[derive(Debug)]
pub(super) struct Deadline<S> {
    stream: S,
    longest: Duration,
    waiting: bool,
    sleep: Pin<Box<Sleep>>,
    heads: Heads,
}

impl<S> Deadline<S> {
    pub(super) fn new(stream: S, longest: Duration) -> Self {
        let (sleep, heads) = (Box::pin(sleep(longest)), Heads::default());
        Self { stream, longest, waiting: false, sleep, heads }
    }

    /// Whether the peer left in doubt where one of its requests ends; ask again with each of them.
    pub(super) fn doubt(&self) -> Doubt {
        self.heads.doubt()
    }

    fn or_too_long<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = false;
            return written;
        }
        if !self.waiting {
            self.waiting = true;
            self.sleep.as_mut().reset(Instant::now() + self.longest);
        }
        ready!(self.sleep.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Deadline<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.heads.read(&buffer.filled()[before..]);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Deadline<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.or_too_long(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.or_too_long(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
