//! Splits a stream of bytes into lines, with a limit.

use bytes::{Bytes, BytesMut};
use futures::stream::{self, Stream, StreamExt};

/// The longest line that a watch may send; a longer one ends the stream with an error.
pub const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The lines of a stream, without their line ends; empty lines are passed over.
pub fn lines<S>(source: S) -> impl Stream<Item = Result<Bytes, std::io::Error>> + Send
where
    S: Stream<Item = Result<Bytes, std::io::Error>> + Send,
{
    let state = Splitter {
        source: Box::pin(source),
        chunk: Bytes::new(),
        begun: BytesMut::new(),
        ended: false,
    };
    stream::unfold(state, |mut state| async move {
        let line = state.next().await?;
        Some((line, state))
    })
}

struct Splitter<S> {
    source: std::pin::Pin<Box<S>>,
    /// What came last; lines that stand in it whole are parts of it.
    chunk: Bytes,
    /// The beginning of a line that the pieces before `chunk` held.
    begun: BytesMut,
    ended: bool,
}

impl<S: Stream<Item = Result<Bytes, std::io::Error>>> Splitter<S> {
    async fn next(&mut self) -> Option<Result<Bytes, std::io::Error>> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.chunk) {
                let mut line = self.chunk.split_to(at + 1);
                line.truncate(at);
                if !self.begun.is_empty() {
                    self.begun.extend_from_slice(&line);
                    line = self.begun.split().freeze();
                }
                if line.is_empty() {
                    continue;
                }
                return Some(Ok(line));
            }
            self.begun.extend_from_slice(&self.chunk);
            self.chunk = Bytes::new();
            if self.ended {
                return None;
            }
            if self.begun.len() > LINE_BYTES_MAX {
                self.ended = true;
                return Some(Err(std::io::Error::other(format!(
                    "a line is longer than {LINE_BYTES_MAX} bytes"
                ))));
            }
            match self.source.next().await {
                Some(Ok(chunk)) => self.chunk = chunk,
                Some(Err(error)) => {
                    self.ended = true;
                    return Some(Err(error));
                }
                None => self.ended = true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_may_come_in_pieces_and_a_torn_one_is_dropped() {
        let chunks = ["{\"a\"", ":1}\n\n{\"b\":2}\n{\"to", "rn"];
        let source = stream::iter(chunks.map(|chunk| Ok(Bytes::from_static(chunk.as_bytes()))));
        let found: Vec<_> = lines(source)
            .map(|line| line.expect("no error was fed"))
            .collect()
            .await;
        assert_eq!(found, ["{\"a\":1}", "{\"b\":2}"]);
    }
}
