//! A client of the same protocol, against a session that sends back what it is sent.

use super::*;
use tokio::io::DuplexStream;

struct Client {
    io: DuplexStream,
    packer: Packer,
    unpacker: Unpacker,
}

fn echo() -> Client {
    let (ours, theirs) = tokio::io::duplex(1 << 10);
    tokio::spawn(async move {
        let mut session = Session::start(theirs);
        while let Some(mut stream) = session.next().await {
            tokio::spawn(async move {
                while let Some(bytes) = stream.input.recv().await {
                    stream.output.send(bytes).await;
                }
                stream.output.finish().await;
            });
        }
    });
    Client {
        io: ours,
        packer: Packer::new().unwrap(),
        unpacker: Unpacker::new(),
    }
}

impl Client {
    async fn open(&mut self, id: u32, flags: u8) {
        let headers = Headers::from([("streamtype".to_owned(), id.to_string())]);
        let block = self.packer.pack(&headers).unwrap();
        let mut body = id.to_be_bytes().to_vec();
        body.extend_from_slice(&[0; 6]);
        body.extend_from_slice(&block);
        self.control(SYN_STREAM, flags, &body).await;
    }

    async fn control(&mut self, kind: u16, flags: u8, body: &[u8]) {
        let head = [(0x8000 | VERSION).to_be_bytes(), kind.to_be_bytes()].concat();
        self.io.write_all(&head).await.unwrap();
        let length = word(flags, body.len()).unwrap();
        self.io.write_u32(length).await.unwrap();
        self.io.write_all(body).await.unwrap();
    }

    async fn data(&mut self, id: u32, flags: u8, bytes: &[u8]) {
        data(&mut self.io, id, flags, bytes).await.unwrap();
    }

    /// The next frame, as text.
    async fn frame(&mut self) -> String {
        let Ok(first) = self.io.read_u32().await else {
            return "end".to_owned();
        };
        let second = self.io.read_u32().await.unwrap();
        let mut body = vec![0; (second & 0xff_ffff) as usize];
        self.io.read_exact(&mut body).await.unwrap();
        let end = if second >> 24 == u32::from(FIN) {
            " fin"
        } else {
            ""
        };
        if first >> 31 == 0 {
            return format!("{first}: {}{end}", String::from_utf8(body).unwrap());
        }
        let (id, rest) = body.split_first_chunk().unwrap();
        let id = u32::from_be_bytes(*id);
        match first as u16 {
            SYN_REPLY => format!(
                "{id} is open with {:?}",
                self.unpacker.unpack(rest).unwrap()
            ),
            RST_STREAM => format!("{id} is refused with {}", rest[3]),
            PING => format!("ping {id}"),
            kind => format!("{kind}?"),
        }
    }
}

#[tokio::test]
async fn streams_are_told_apart_and_end_one_by_one() {
    let mut client = echo();
    client.open(1, 0).await;
    assert_eq!(client.frame().await, "1 is open with {}");
    client.open(3, FIN).await;
    let mut both = [client.frame().await, client.frame().await];
    both.sort();
    assert_eq!(both, ["3 is open with {}", "3:  fin"]);
    client.data(1, 0, b"one").await;
    assert_eq!(client.frame().await, "1: one");
    client.control(PING, 0, &7_u32.to_be_bytes()).await;
    assert_eq!(client.frame().await, "ping 7");
    client.data(1, FIN, b"two").await;
    assert_eq!(client.frame().await, "1: two");
    assert_eq!(client.frame().await, "1:  fin");
    client.data(99, 0, b"for nobody").await;
    client.open(5, 0).await;
    assert_eq!(client.frame().await, "5 is open with {}");
}

#[tokio::test]
async fn a_reset_stream_ends_without_the_others() {
    let mut client = echo();
    for id in [1, 3] {
        client.open(id, 0).await;
        client.frame().await;
    }
    let body = [1_u32.to_be_bytes(), CANCEL.to_be_bytes()].concat();
    client.control(RST_STREAM, 0, &body).await;
    assert_eq!(client.frame().await, "1:  fin");
    client.data(3, 0, b"still here").await;
    assert_eq!(client.frame().await, "3: still here");
}

#[tokio::test]
async fn who_breaks_the_protocol_is_left() {
    let http = b"GET / HTTP/1.1\r\n\r\n";
    let mut other_version = vec![0x80, 2, 0, 1, 0, 0, 0, 0];
    other_version.extend_from_slice(&[0; 8]);
    let too_long = [0x80, 3, 0, 1, 0, 0xff, 0xff, 0xff];
    let no_headers = [0x80, 3, 0, 1, 0, 0, 0, 4, 0, 0, 0, 1];
    for bytes in [&other_version[..], &too_long, &no_headers] {
        let mut client = echo();
        client.io.write_all(bytes).await.unwrap();
        assert_eq!(client.frame().await, "end", "{bytes:?}");
    }
    let mut client = echo();
    client.io.write_all(http).await.unwrap();
    client.io.shutdown().await.unwrap();
    assert_eq!(client.frame().await, "end");
    let mut client = echo();
    client.open(2, 0).await;
    assert_eq!(client.frame().await, "end", "even numbers are the server's");
}

#[tokio::test]
async fn streams_have_a_bound() {
    let mut client = echo();
    let most = u32::try_from(STREAMS_MAX).unwrap();
    for id in 0..most {
        client.open(2 * id + 1, 0).await;
        client.frame().await;
    }
    client.open(2 * most + 1, 0).await;
    assert_eq!(
        client.frame().await,
        format!("{} is refused with 3", 2 * most + 1)
    );
    client.data(1, FIN, b"").await;
    assert_eq!(client.frame().await, "1:  fin");
}
