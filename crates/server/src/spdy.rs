//! SPDY/3.1 as kubectl speaks it: many streams of bytes on one connection.
//!
//! What is here: frames, header blocks ([`headers`]) and a session that hands out the streams that
//! a client opens. What it refuses to know: what a stream is for. There is no flow control, as in
//! every client that is left: a stream that nobody reads holds up its connection, and no more.

mod headers;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinHandle;

use headers::{Packer, Unpacker};

pub(crate) use headers::Headers;

/// The protocol's name in `Upgrade` headers.
pub(crate) const NAME: &str = "SPDY/3.1";

/// Streams open at one time.
const STREAMS_MAX: usize = 1_000;
/// Chunks that wait for a stream's reader, and frames that wait for the connection.
const WAITING_MAX: usize = 16;
/// Longest control frame.
const CONTROL_BYTES_MAX: usize = 64 << 10;
/// Most that is read at once of a data frame, which may have 16 MiB.
const CHUNK_BYTES: usize = 32 << 10;
/// Streams that the client is done with are forgotten when so many are known.
const KNOWN_MAX: usize = 2 * STREAMS_MAX;

const VERSION: u16 = 3;
const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const HEADERS: u16 = 8;
/// The last frame of a stream's direction.
const FIN: u8 = 1;
/// `RST_STREAM`: not wanted here.
const REFUSED: u32 = 3;
/// `RST_STREAM`: not wanted any more.
const CANCEL: u32 = 5;

/// The other side does not keep the protocol; the text says how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Broken(&'static str);

impl From<Broken> for io::Error {
    fn from(broken: Broken) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, broken)
    }
}

/// A connection whose client opens streams. Dropping it ends the connection once what was written
/// has gone out.
pub(crate) struct Session {
    opened: mpsc::Receiver<Stream>,
    reader: JoinHandle<()>,
}

/// A stream that the client has opened. Dropping it says that nothing more comes from here.
pub(crate) struct Stream {
    /// What the client says about it.
    pub headers: Headers,
    /// What the client sends; it ends when the client has sent all.
    pub input: mpsc::Receiver<Bytes>,
    /// Where answers go.
    pub output: Output,
    /// Ends when the client or the connection drops the stream.
    pub alive: watch::Receiver<()>,
}

/// The writing half of a stream.
pub(crate) struct Output {
    id: u32,
    frames: mpsc::Sender<Frame>,
    /// Given back when nobody can answer any more.
    _room: OwnedSemaphorePermit,
}

/// What is to be sent.
enum Frame {
    Data(u32, Bytes),
    Finish(u32),
    Pong(u32),
    Reply(u32),
    Reset(u32, u32),
}

impl Session {
    /// Serves a connection.
    pub(crate) fn start(io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Session {
        let (reading, writing) = tokio::io::split(io);
        let (frames, outgoing) = mpsc::channel(WAITING_MAX);
        let (open, opened) = mpsc::channel(1);
        tokio::spawn(async move {
            if let Err(error) = write(writing, outgoing).await {
                tracing::debug!("a SPDY connection cannot be written: {error}");
            }
        });
        let reader = tokio::spawn(async move {
            let reader = Reader {
                reading,
                unpacker: Unpacker::new(),
                known: BTreeMap::new(),
                newest: 0,
                room: Arc::new(Semaphore::new(STREAMS_MAX)),
                open,
                frames,
            };
            if let Err(error) = reader.run().await {
                tracing::debug!("a SPDY connection ended: {error}");
            }
        });
        Session { opened, reader }
    }

    /// The next stream that the client opens; `None` at the end of the connection.
    pub(crate) async fn next(&mut self) -> Option<Stream> {
        self.opened.recv().await
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Output {
    /// Sends bytes; false when the connection is gone.
    pub(crate) async fn send(&self, bytes: Bytes) -> bool {
        bytes.is_empty() || self.frames.send(Frame::Data(self.id, bytes)).await.is_ok()
    }

    /// Says that nothing more comes.
    pub(crate) async fn finish(&self) {
        // A connection that is gone needs no end.
        let _gone = self.frames.send(Frame::Finish(self.id)).await;
    }

    /// Says that the stream is of no use any more.
    pub(crate) async fn cancel(&self) {
        // A connection that is gone needs no end.
        let _gone = self.frames.send(Frame::Reset(self.id, CANCEL)).await;
    }
}

/// What the reader knows of a stream: its end drops the client's side of it.
struct Known {
    /// `None` once the client has sent all.
    input: Option<mpsc::Sender<Bytes>>,
    alive: watch::Sender<()>,
}

impl Known {
    fn is_heard(&self) -> bool {
        let input = self.input.as_ref();
        !self.alive.is_closed() || input.is_some_and(|input| !input.is_closed())
    }
}

struct Reader<R> {
    reading: R,
    unpacker: Unpacker,
    known: BTreeMap<u32, Known>,
    newest: u32,
    room: Arc<Semaphore>,
    open: mpsc::Sender<Stream>,
    frames: mpsc::Sender<Frame>,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    async fn run(mut self) -> io::Result<()> {
        let mut head = [0; 8];
        loop {
            match self.reading.read_exact(&mut head).await {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error),
            }
            let [a, b, c, d, flags, length @ ..] = head;
            let length = u32::from_be_bytes([0, length[0], length[1], length[2]]) as usize;
            let word = u32::from_be_bytes([a, b, c, d]);
            if word >> 31 == 0 {
                self.data(word, flags, length).await?;
            } else if u16::from_be_bytes([a & 0x7f, b]) != VERSION {
                return Err(Broken("a frame is of another version").into());
            } else if length > CONTROL_BYTES_MAX {
                return Err(Broken("a control frame is too long").into());
            } else {
                let mut body = vec![0; length];
                self.reading.read_exact(&mut body).await?;
                self.control(u16::from_be_bytes([c, d]), flags, &body)
                    .await?;
            }
        }
    }

    async fn data(&mut self, id: u32, flags: u8, mut length: usize) -> io::Result<()> {
        while length > 0 {
            let mut chunk = vec![0; length.min(CHUNK_BYTES)];
            self.reading.read_exact(&mut chunk).await?;
            length -= chunk.len();
            if let Some(known) = self.known.get_mut(&id)
                && let Some(input) = &known.input
                && input.send(chunk.into()).await.is_err()
            {
                // Its reader has gone: what comes is passed over.
                known.input = None;
            }
        }
        if flags & FIN != 0
            && let Some(known) = self.known.get_mut(&id)
        {
            known.input = None;
        }
        Ok(())
    }

    async fn control(&mut self, kind: u16, flags: u8, body: &[u8]) -> io::Result<()> {
        let (id, rest) = body
            .split_first_chunk()
            .map(|(id, rest)| (u32::from_be_bytes(*id) & 0x7fff_ffff, rest))
            .unwrap_or_default();
        match kind {
            SYN_STREAM => {
                // Which stream it belongs to, and its priority, are of no use here.
                let block = rest.get(6..).ok_or(Broken("a frame is cut off"))?;
                let headers = self.unpacker.unpack(block)?;
                self.opened(id, flags, headers).await?;
            }
            SYN_REPLY | HEADERS => {
                // What was squeezed later needs what was squeezed before.
                self.unpacker.unpack(rest)?;
            }
            RST_STREAM => {
                self.known.remove(&id);
            }
            // The client's own come back to it; an even number would be an answer to ours.
            PING if id % 2 == 1 => send(&self.frames, Frame::Pong(id)).await,
            _ => {}
        }
        Ok(())
    }

    async fn opened(&mut self, id: u32, flags: u8, headers: Headers) -> io::Result<()> {
        if id.is_multiple_of(2) || id <= self.newest {
            return Err(Broken("a stream has a wrong number").into());
        }
        self.newest = id;
        if self.known.len() >= KNOWN_MAX {
            self.known.retain(|_, known| known.is_heard());
        }
        let Ok(room) = self.room.clone().try_acquire_owned() else {
            send(&self.frames, Frame::Reset(id, REFUSED)).await;
            return Ok(());
        };
        send(&self.frames, Frame::Reply(id)).await;
        let (sender, input) = mpsc::channel(WAITING_MAX);
        let (lives, alive) = watch::channel(());
        let known = Known {
            input: (flags & FIN == 0).then_some(sender),
            alive: lives,
        };
        self.known.insert(id, known);
        let stream = Stream {
            headers,
            input,
            output: Output {
                id,
                frames: self.frames.clone(),
                _room: room,
            },
            alive,
        };
        // A session that takes no more streams is about to end.
        let _ending = self.open.send(stream).await;
        Ok(())
    }
}

async fn send(frames: &mpsc::Sender<Frame>, frame: Frame) {
    // A connection that cannot be written ends by itself.
    let _gone = frames.send(frame).await;
}

async fn write(
    writing: impl AsyncWrite + Unpin,
    mut frames: mpsc::Receiver<Frame>,
) -> io::Result<()> {
    let mut writing = BufWriter::with_capacity(CHUNK_BYTES, writing);
    let mut packer = Packer::new()?;
    while let Some(frame) = frames.recv().await {
        match frame {
            Frame::Data(id, bytes) => data(&mut writing, id, 0, &bytes).await?,
            Frame::Finish(id) => data(&mut writing, id, FIN, &[]).await?,
            Frame::Pong(id) => control(&mut writing, PING, &[&id.to_be_bytes()]).await?,
            Frame::Reply(id) => {
                let block = packer.pack(&Headers::new())?;
                control(&mut writing, SYN_REPLY, &[&id.to_be_bytes(), &block]).await?;
            }
            Frame::Reset(id, why) => {
                let parts: [&[u8]; 2] = [&id.to_be_bytes(), &why.to_be_bytes()];
                control(&mut writing, RST_STREAM, &parts).await?;
            }
        }
        if frames.is_empty() {
            writing.flush().await?;
        }
    }
    writing.shutdown().await
}

async fn data(
    writing: &mut (impl AsyncWrite + Unpin),
    id: u32,
    flags: u8,
    bytes: &[u8],
) -> io::Result<()> {
    writing.write_u32(id).await?;
    writing.write_u32(word(flags, bytes.len())?).await?;
    writing.write_all(bytes).await
}

async fn control(
    writing: &mut (impl AsyncWrite + Unpin),
    kind: u16,
    parts: &[&[u8]],
) -> io::Result<()> {
    writing.write_u16(0x8000 | VERSION).await?;
    writing.write_u16(kind).await?;
    let length = parts.iter().map(|part| part.len()).sum();
    writing.write_u32(word(0, length)?).await?;
    for part in parts {
        writing.write_all(part).await?;
    }
    Ok(())
}

/// Flags and a length in 24 bits.
fn word(flags: u8, length: usize) -> io::Result<u32> {
    u32::try_from(length)
        .ok()
        .filter(|length| length >> 24 == 0)
        .map(|length| u32::from(flags) << 24 | length)
        .ok_or_else(|| Broken("a frame is too long").into())
}

#[cfg(test)]
mod tests;
