//! Another protocol's bytes inside the messages of a websocket.

use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_tungstenite::tungstenite::Message;

use super::channels::{farewell, socket};
use super::upgrade::Io;

/// Bytes that may wait on either way.
const WAITING_BYTES: usize = 64 << 10;

/// The inner bytes. The websocket ends when they do, and they when it does.
pub(super) async fn open(io: Io) -> DuplexStream {
    let (mut sink, mut source) = socket(io).await.split();
    let (inner, outer) = tokio::io::duplex(WAITING_BYTES);
    let (mut reading, mut writing) = tokio::io::split(outer);
    let inward = async move {
        while let Some(Ok(message)) = source.next().await {
            let written = match message {
                Message::Binary(bytes) => writing.write_all(&bytes).await,
                Message::Close(_) => break,
                _ => Ok(()),
            };
            if written.is_err() {
                break;
            }
        }
        // Who does not read any more needs no end.
        let _gone = writing.shutdown().await;
    };
    let outward = async move {
        let mut buffer = vec![0; WAITING_BYTES];
        while let Ok(count @ 1..) = reading.read(&mut buffer).await {
            let bytes = bytes::Bytes::copy_from_slice(&buffer[..count]);
            if sink.send(Message::Binary(bytes)).await.is_err() {
                return;
            }
        }
        farewell(&mut sink).await;
    };
    tokio::spawn(async move {
        // When the client has gone, answers lead nowhere; the inner side hears of it by its end.
        tokio::select! {
            () = inward => {}
            () = outward => {}
        }
    });
    inner
}
